"""Releasing in the SQL store: one transaction commits a record and stores outlines in place of messages.

The tree is locked meanwhile, so that no other writer forks a conversation that would share these messages.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core import wire
from ...core.edits import Record
from ...core.originals import RELEASED
from ...errors import StoreError
from ...ports import Head
from ..checks import check_release, step_released
from ..codec import DamagedBody, pack_outline
from ..derived_data import Place
from ..words import KEYS_VERSION, keys_of, text_of
from . import statements as sql
from .driver import Driver, Session
from .eraser import indexed_places, lock_tree
from .erasure_tree import SqlTree, hash_of
from .journal import Journal
from .rows import body_or_empty, key, with_body
from .runs import pack_text
from .words import drop_words, insert_words, remove_words

__all__ = ["Releases"]


class Releases:
    """Replaces messages by their outlines."""

    def __init__(self, driver: Driver, journal: Journal) -> None:
        self._driver, self._journal = driver, journal

    def release(self, head: Head, record: Record, record_id: str, outlines: Mapping[int, bytes]) -> Head:
        commit = self._journal.committing(head, record, record_id)
        output = pack_text(RELEASED)
        packed = {position: pack_outline(outline) for position, outline in outlines.items()}

        def work(session: Session) -> Head:
            lock_tree(session, head)
            now = commit(session)
            tree, large = SqlTree(session, now), set[bytes]()
            check_release(head, record, outlines, tree.branches())
            places = [Place(head.branch, position) for position in outlines]
            indexed = {at.position for at in indexed_places(session, now, places)}
            if indexed and not self._driver.has_index:
                raise StoreError(
                    f"{self._driver.place} has an index with words of these messages, and was opened without it. Open "
                    f"it with search. Nothing was written."
                )
            for position, outline in outlines.items():
                rows = session.rows(sql.MESSAGES, (*with_body(now), position, position))
                for at, id, seal, stamp, digest, stored in rows:
                    if position in indexed:
                        self._replace_words(session, now, position, body_or_empty(digest, stored), outline)
                    hash = bytes.fromhex(hash_of(now, at, digest, stored))
                    session.rows(sql.DROP_MESSAGE, (*key(now), position))
                    session.each(sql.ADD_MESSAGE, [(*key(now), at, id, seal, stamp, hash, packed[position])])
                    if digest is not None:
                        large.add(hash)
                    if step := step_released(record, id.hex(), wire.decode_stamp(stamp)):
                        session.rows(sql.ERASE_STEP, (None, output, None, now.tenant, now.root, *step))
            session.rows(sql.DROP_VIEWS, (now.tenant, now.root))
            if large:
                large.difference_update(hash for _, hash in tree.large())
                session.each(sql.DROP_BODY, [(now.tenant, now.root, hash) for hash in sorted(large)])
            return now

        return self._driver.write(work)

    def _replace_words(self, session: Session, now: Head, position: int, body: bytes, outline: bytes) -> None:
        """Index the outline instead of the message. An index that cannot be changed is dropped, and built again."""
        mark = session.rows(sql.MARK, key(now))
        try:
            if not mark:
                return  # Dropped before, for another message.
            if mark[0][1] != KEYS_VERSION:
                raise DamagedBody("it has another version of the keys")
            remove_words(session, key(now), {position: keys_of(text_of(body))})
            insert_words(session, key(now), position, keys_of(text_of(outline)))
        except DamagedBody:
            drop_words(session, key(now))
