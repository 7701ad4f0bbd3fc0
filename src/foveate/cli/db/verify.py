"""`foveate db verify` and `foveate db head`: the proof that a database is unchanged, and heads kept outside of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from ...core.plurals import plural
from ...errors import BadSetting, Damaged, FoveateError
from ...ops.archive import SavedHead, Verified, head_text, heads_in, verified, verify_all
from ...ports import IMPORTING, Database, Finding, Head
from ...replay.numbers import count
from ..files import read_text
from ..output import status_line
from ..text import one_line, printable, write_json
from .target import NOWHERE, AsJson, Where, check_names, no_conversations, opened, print_json

__all__ = ["head", "verify"]


def verify(
    *conversations: str,
    head: Annotated[list[str] | None, Parameter(allow_leading_hyphen=True)] = None,
    erased: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Recompute all hashes and report mismatches, in the whole database or in the named conversations.

    The whole database means all conversations of all tenants, or of the tenant that `--tenant` or the settings name,
    and rows that belong to no conversation; the database checks its own files too. With `--head`, also check that each
    history contains the heads that `foveate db head` printed, and report the number of messages added since. Changes
    nothing. The exit code is 1 if something is wrong.

    Example: `foveate db verify --store chat.db`

    Parameters
    ----------
    conversations
        Names of conversations (default: all).
    head
        A head, as text or in a file; - for standard input. Can be repeated.
    erased
        Count erased messages too, and report texts derived from them that still exist.
    """
    from ..output import say

    check_names(conversations)
    heads = [kept for text in head or () for kept in heads_in(text if text.startswith("{") else read_text(text))]
    sums = _Sums()
    with opened(where, reads=True) as (store, tenant), status_line() as show:
        only = tenant if tenant or where.tenant is not None else None
        for result in _verify(store, only, conversations, heads):
            findings = [*result.findings, *(_residue(store, result, sums) if erased and result.name else ())]
            sums.add(result, len(findings))
            show(f"{plural(sums.conversations, 'conversation')}, {plural(sums.messages, 'message')} verified")
            for finding in findings:
                if as_json:
                    print_json([_Problem(result.tenant, result.name, finding.where, finding.problem)])
                else:
                    say(f"{_label(result, tenant)}: {printable(finding.where)}: {printable(finding.problem)}")
            for note in () if as_json else result.notes:
                say(f"{_label(result, tenant)}: {printable(note)}." if result.name else printable(note))
    if where.tenant and not (conversations or heads or sums.conversations or sums.strays):
        raise BadSetting(no_conversations(where))  # The name of the tenant may be misspelt.
    if not as_json:
        if erased:
            say(f"{plural(sums.erased, 'message')} erased.")
        say(f"{sums.summary(len(heads))}.")
    return 1 if sums.wrong or sums.strays else 0


class _Problem(Struct):
    """A line of JSON."""

    tenant: str
    conversation: str
    """"" for rows without a conversation."""
    where: str
    problem: str


class _Sums:
    """Counts of all results."""

    def __init__(self) -> None:
        self.conversations = self.messages = self.wrong = self.strays = self.erased = 0
        self.tenants: set[str] = set()
        self.seen: set[tuple[str, str]] = set()
        """Conversations whose erased messages are counted."""

    def add(self, result: Verified, findings: int) -> None:
        if not result.name:
            self.strays += findings
            return
        self.conversations += 1
        self.messages += result.messages
        self.tenants.add(result.tenant)
        self.wrong += bool(findings)

    def summary(self, heads: int) -> str:
        conversations = plural(self.conversations, "conversation")
        of = f" of {plural(len(self.tenants), 'tenant')}" if len(self.tenants) > 1 else ""
        of += f" and {plural(heads, 'head')}" if heads else ""
        wrong = [f"something is wrong with {count(self.wrong)}"] if self.wrong else []
        if self.strays:
            wrong.append(f"{plural(self.strays, 'thing')} belong{'s' * (self.strays == 1)} to no conversation")
        return f"{conversations}{of} verified: {' and '.join(wrong) or 'all is well'}"


def _label(result: Verified, tenant: str) -> str:
    """Return the conversation's name, with its tenant if that is another one."""
    name = result.name or "(no conversation)"
    return one_line(name if result.tenant == tenant else f"{result.tenant}/{name}")


def _residue(store: Database, result: Verified, sums: _Sums) -> list[Finding]:
    if (result.tenant, result.name) in sums.seen:
        return []
    sums.seen.add((result.tenant, result.name))
    try:
        erased, findings = store.find_residue(store.open(result.tenant, result.name, create=False))
    except FoveateError as error:  # Damage is reported already; or the conversation does not exist.
        return [Finding("erased", f"erased messages cannot be counted: {error}")]
    sums.erased += erased
    return findings


def _verify(store: Database, only: str | None, names: tuple[str, ...], heads: list[SavedHead]) -> Iterator[Verified]:
    if not names:
        yield from verify_all(store, tenant=only, heads=heads)
        return
    tenant = only or ""
    for name in names:
        own = [kept for kept in heads if (kept.tenant, kept.name) == (tenant, name)]
        try:
            yield verified(store, store.open(tenant, name, create=False), own)
        except Damaged as error:
            yield Verified(tenant, name, findings=(Finding("head", str(error)),))
    for kept in heads:
        if kept.tenant != tenant or kept.name not in names:
            yield verified(store, None, [kept])


def head(*conversations: str, where: Where = NOWHERE) -> int:
    """Print the heads of conversations, one JSON line each: of the whole database, or of the named conversations.

    The whole database means all conversations of all tenants, or of the tenant that `--tenant` or the settings name.
    Store the lines where no writer of the database can change them. foveate db verify --head then proves that the
    history was not rewritten.

    Example: `foveate db head --store chat.db > heads.jsonl`

    Parameters
    ----------
    conversations
        Names of conversations (default: all).
    """
    check_names(conversations)
    with opened(where, reads=True) as (store, tenant):
        now, count = time.time_ns() // 1_000_000, 0
        is_whole = not tenant and where.tenant is None
        heads = _named(store, tenant, conversations) if conversations else _all(store, None if is_whole else tenant)
        for entry in heads:
            write_json(head_text(entry, time=now, erasures=store.erasures(entry)))
            count += 1
        if not count:
            raise BadSetting("There are no conversations.")
    return 0


def _named(store: Database, tenant: str, names: tuple[str, ...]) -> Iterator[Head]:
    return (store.open(tenant, name, create=False) for name in names)


def _all(store: Database, tenant: str | None) -> Iterator[Head]:
    for owner in store.tenants() if tenant is None else (tenant,):
        for name in store.names(owner):
            if not name.startswith(IMPORTING):
                yield store.open(owner, name, create=False)
