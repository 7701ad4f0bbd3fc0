"""`foveate db verify`: whether what is in a database is what was put there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from ...archive import KeptHead, Verified, heads_in, verified, verify_all
from ...errors import BadSetting, Damaged, FoveateError
from ...ports import Database, Finding
from ...replay.numbers import count, plural
from ..files import text_from
from ..output import status_line
from ..text import printable
from .target import NOBODYS, NOWHERE, AsJson, Where, check_names, opened, print_json

__all__ = ["verify"]


def verify(
    *conversations: str,
    head: Annotated[list[str] | None, Parameter(allow_leading_hyphen=True)] = None,
    erased: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Hash everything anew and tell what does not match: the whole database, or the conversations that are named.

    The whole is every conversation of every tenant, or of the one that `--tenant` or the settings name, and whatever
    belongs to no conversation; the database checks its own files too. With `--head`, also check that each history
    runs through the heads that `foveate db head` printed, and tell what was added since. Nothing is changed. Ends with
    1 where something is wrong.

    Example: `foveate db verify --store sqlite:///chat.db`

    Parameters
    ----------
    conversations
        Their names; none for all.
    head
        A head, as text or in a file; `-` for standard input. May be said several times.
    erased
        Count what was erased too, and tell what there still is that was made of it.
    """
    from ..output import say

    check_names(conversations)
    heads = [one for said in head or () for one in heads_in(said if said.startswith("{") else text_from(said))]
    sums = _Sums()
    with opened(where) as (store, tenant), status_line() as told:
        whose = tenant if tenant or where.tenant is not None else None
        for one in _looked_at(store, whose, conversations, heads):
            findings = [*one.findings, *(_left_over(store, one, sums) if erased and one.name else ())]
            sums.add(one, len(findings))
            told(f"{plural(sums.conversations, 'conversation')}, {plural(sums.messages, 'message')} verified")
            for finding in findings:
                if as_json:
                    print_json([_Told(one.tenant, one.name, finding.where, finding.problem)])
                else:
                    say(f"{_label(one, tenant)}: {printable(finding.where)}: {printable(finding.problem)}")
            for note in () if as_json else one.notes:
                say(f"{_label(one, tenant)}: {printable(note)}." if one.name else printable(note))
    if where.tenant and not (conversations or heads or sums.conversations or sums.strays):
        raise BadSetting(NOBODYS)  # Not "all is well": the name may be misspelt, or all of it is gone.
    if not as_json:
        if erased:
            say(f"{plural(sums.erased, 'message')} erased.")
        say(f"{sums.said(len(heads))}.")
    return 1 if sums.wrong or sums.strays else 0


class _Told(Struct):
    """A line of JSON."""

    tenant: str
    conversation: str
    """"" for what belongs to none."""
    where: str
    problem: str


class _Sums:
    """What was looked at, and what came of it."""

    def __init__(self) -> None:
        self.conversations = self.messages = self.wrong = self.strays = self.erased = 0
        self.tenants: set[str] = set()
        self.seen: set[tuple[str, str]] = set()
        """Conversations of which was counted what is erased."""

    def add(self, one: Verified, findings: int) -> None:
        if not one.name:
            self.strays += findings
            return
        self.conversations += 1
        self.messages += one.messages
        self.tenants.add(one.tenant)
        self.wrong += bool(findings)

    def said(self, heads: int) -> str:
        what = plural(self.conversations, "conversation")
        of = f" of {plural(len(self.tenants), 'tenant')}" if len(self.tenants) > 1 else ""
        of += f" and {plural(heads, 'head')}" if heads else ""
        wrong = [f"something is wrong with {count(self.wrong)}"] if self.wrong else []
        if self.strays:
            wrong.append(f"{plural(self.strays, 'thing')} belong{'s' * (self.strays == 1)} to no conversation")
        return f"{what}{of} verified: {' and '.join(wrong) or 'all is well'}"


def _label(one: Verified, tenant: str) -> str:
    """Whose it is, where that is not the one who was asked for, and its name."""
    name = one.name or "(no conversation)"
    return printable(name if one.tenant == tenant else f"{one.tenant}/{name}")


def _left_over(store: Database, one: Verified, sums: _Sums) -> list[Finding]:
    if (one.tenant, one.name) in sums.seen:
        return []
    sums.seen.add((one.tenant, one.name))
    try:
        gone, found = store.leftovers(store.open(one.tenant, one.name, create=False))
    except FoveateError as error:  # It is damaged, which is told already, or there is none of this name.
        return [Finding("erased", f"what is erased cannot be told: {error}")]
    sums.erased += gone
    return found


def _looked_at(store: Database, whose: str | None, names: tuple[str, ...], heads: list[KeptHead]) -> Iterator[Verified]:
    if not names:
        yield from verify_all(store, tenant=whose, heads=heads)
        return
    tenant = whose or ""
    for name in names:
        own = [kept for kept in heads if (kept.tenant, kept.name) == (tenant, name)]
        try:
            yield verified(store, store.open(tenant, name, create=False), own)
        except Damaged as error:
            yield Verified(tenant, name, findings=(Finding("head", str(error)),))
    for kept in heads:
        if kept.tenant != tenant or kept.name not in names:
            yield verified(store, None, [kept])
