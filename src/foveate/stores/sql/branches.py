"""Conversations of the SQL store: their names, their branches and their forks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from ...errors import BadSetting, Damaged, NoSuchConversation
from ...ports import Branch, Head, Listed
from .. import lineage
from ..checks import append_conflict, check_keys, check_names, check_point, commit_conflict, name_taken
from ..lineage import Lineage
from . import statements as sql
from .driver import Driver, Session
from .rows import current, key, link_at, record_at, time_at

__all__ = ["Branches"]


class Branches:
    """Opens, forks, lists and renames conversations."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._place = driver, driver.place

    def open(self, tenant: str, name: str, create: bool) -> Head:
        check_keys(tenant, name)
        head = self._driver.read(lambda session: self._find(session, tenant, name))
        if head is None and create:
            try:
                head = self._driver.write(lambda session: _create(session, tenant, name))
            except BadSetting:  # Another writer created it at the same time.
                head = self._driver.read(lambda session: self._find(session, tenant, name))
        if head is None:
            raise NoSuchConversation(name, self._place, tenant)
        return head

    def names(self, tenant: str) -> list[str]:
        return sorted(name for (name,) in self._driver.read(lambda session: session.rows(sql.NAMES, (tenant,))))

    def recent(self, tenant: str, words: Sequence[str], first: int, limit: int) -> tuple[list[Listed], int]:
        patterns = [f"%{_escaped(form)}%" for word in words for form in (word, word.lower())]
        page, total = self._driver.read(
            lambda session: session.ask(
                (sql.recent(len(words)), (tenant, *patterns, limit, first)),
                (sql.count_names(len(words)), (tenant, *patterns)),
            )
        )
        return [Listed(*row) for row in page], int(total[0][0])

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        check_keys(head.tenant, name)
        check_point(head, position, number)

        def work(session: Session) -> Head:
            now, family = current(session, head, self._place)
            fork = _add_fork(session, structs.replace(head, erased=now.erased), family, name, position, number)
            _take_name(session, fork)
            return fork

        return self._driver.write(work)

    def repoint(self, head: Head, position: int, number: int, keep: str) -> Head:
        check_keys(head.tenant, keep)
        check_point(head, position, number)

        def work(session: Session) -> Head:
            chains = head.position, bytes.fromhex(head.tip), head.number, bytes.fromhex(head.record)
            rows = session.rows(sql.RENAME, (keep, *key(head), head.name, *chains))
            if not rows:
                now, _ = current(session, head, self._place)
                is_same_tip = (now.name, now.position, now.tip) == (head.name, head.position, head.tip)
                raise commit_conflict(head, now) if is_same_tip else append_conflict(head, now)
            _take_name(session, Head(head.tenant, keep, head.root, head.branch))
            ((family, erased),) = rows
            old = structs.replace(head, erased=erased)
            fork = _add_fork(session, old, lineage.decode(family), head.name, position, number)
            name_key = head.tenant, lineage.root_of(head.tenant, head.name), head.name
            if not session.rows(sql.POINT_NAME, (fork.branch, *name_key)):
                raise Damaged(f"No row leads to {head.label} by its name. Run `verify`.")
            return fork

        return self._driver.write(work)

    def branches(self, head: Head) -> list[Branch]:
        def work(session: Session) -> list[Branch]:
            current(session, head, self._place)
            tree = session.rows(sql.TREE, (head.tenant, head.root))
            heads = [Head(head.tenant, name, head.root, branch) for branch, name in tree]
            return [lineage.branch_of(*current(session, each, self._place)) for each in heads]

        return self._driver.read(work)

    def rename(self, tenant: str, names: Mapping[str, str]) -> None:
        check_names(tenant, names)

        def work(session: Session) -> None:
            for old, new in sorted(names.items()):
                rows = session.rows(sql.DROP_NAME, (tenant, lineage.root_of(tenant, old), old))
                if not rows:
                    raise NoSuchConversation(old, self._place, tenant)
                head = Head(tenant, new, *rows[0])
                _take_name(session, head)
                if not session.rows(sql.SET_NAME, (new, *key(head), old)):
                    raise Damaged(f"The name {old!r} leads to a branch that has another name. Run `verify`.")

        self._driver.write(work)

    def _find(self, session: Session, tenant: str, name: str) -> Head | None:
        for home, branch in session.rows(sql.FIND, (tenant, lineage.root_of(tenant, name), name)):
            try:
                return current(session, Head(tenant, name, home, branch), self._place)[0]
            except NoSuchConversation as error:
                raise Damaged(f"The name {name!r} leads to a branch that is gone. Run `verify`.") from error
        return None


def _create(session: Session, tenant: str, name: str) -> Head:
    """Create an empty conversation, the first of its tree."""
    root = lineage.root_of(tenant, name)
    branch = session.rows(sql.NEW_BRANCH, (tenant, root))[0][0]
    # A conversation that had this name before and was renamed may have left its tree here.
    head = Head(tenant, name, root, branch, erased=session.rows(sql.LAST_ERASURE, (tenant, root))[0][0])
    _take_name(session, head)
    _add_branch(session, head, ())
    return head


def _add_fork(session: Session, head: Head, family: Lineage, name: str, position: int, number: int) -> Head:
    """Add a branch that shares this much of the head's branch."""
    tip, seal = link_at(session, head, family, position)
    record, last = record_at(session, head, family, number)
    if last != number:
        raise BadSetting(f"Edit {number} of {head.label} is in the middle of a record. Fork at the end of a record.")
    branch = session.rows(sql.NEW_BRANCH, (head.tenant, head.root))[0][0]
    # Read after NEW_BRANCH locked the tree: else the new branch would miss an erasure since the head was read.
    ((erased,),) = session.rows(sql.LAST_ERASURE, (head.tenant, head.root))
    fork = Head(head.tenant, name, head.root, branch, position, tip, seal, number, record, erased)
    time = time_at(session, head, family, position)
    _add_branch(session, fork, lineage.descend(family, head.branch, position, number), time)
    return fork


def _add_branch(session: Session, head: Head, family: Lineage, time: int = 0) -> None:
    chains = head.position, bytes.fromhex(head.tip), bytes.fromhex(head.seal), head.number, bytes.fromhex(head.record)
    session.rows(sql.ADD_BRANCH, (*key(head), head.name, lineage.encode(family), *chains, head.erased, time))


def _take_name(session: Session, head: Head) -> None:
    """Let the head's name lead to its branch. Raises BadSetting if the name is taken."""
    row = head.tenant, lineage.root_of(head.tenant, head.name), head.name, head.root, head.branch
    if not session.rows(sql.TAKE_NAME, row):
        raise name_taken(head.tenant, head.name)


def _escaped(word: str) -> str:
    """Return a word for LIKE, in which two letters stand for any text."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
