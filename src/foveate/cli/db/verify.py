"""`foveate db verify`: whether what is in a database is what was put there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter

from ...archive import KeptHead, heads_in, verify_head
from ...errors import Damaged, FoveateError
from ...ports import Database, Finding
from ...replay.numbers import count, plural
from .._said import printable
from ._progress import progress
from ._text import text_from
from ._where import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["verify"]


def verify(
    *conversations: str,
    head: Annotated[list[str] | None, Parameter(allow_leading_hyphen=True)] = None,
    erased: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Hash everything anew and tell what does not match: all conversations of a tenant, or those that are named.

    With `--head`, tell also whether the history still runs through heads that `foveate db head` printed. Ends with 1
    where something is wrong.

    Example: `foveate db verify --head heads.jsonl`

    Parameters
    ----------
    conversations
        Their names; none for all, or for those of the heads.
    head
        A head, as text or in a file; `-` for standard input. May be said several times.
    erased
        Count what was erased too, and tell what there still is that was made of it.
    """
    from .._print import say

    heads = [one for said in head or () for one in heads_in(said if said.startswith("{") else text_from(said))]
    checked = wrong = gone = 0
    seen: set[str] = set()
    with opened(where) as (store, tenant), progress() as told:
        for name, findings in _checked(store, tenant, conversations, heads):
            checked += 1
            if erased and name not in seen:
                seen.add(name)
                number, left = _left_over(store, tenant, name)
                gone, findings = gone + number, [*findings, *left]
            wrong += bool(findings)
            told(f"{count(checked)} verified")
            for finding in findings:
                if as_json:
                    print_json([{"conversation": name, **msgspec.to_builtins(finding)}])
                else:
                    say(f"{printable(name)}: {finding.where}: {printable(finding.problem)}")
    if not as_json:
        what = plural(checked, "head") if heads and not conversations else plural(checked, "conversation")
        if erased:
            say(f"{plural(gone, 'message')} erased.")
        say(f"{what} verified: {'all is well' if not wrong else f'something is wrong with {count(wrong)}'}.")
    return 1 if wrong else 0


def _left_over(store: Database, tenant: str, name: str) -> tuple[int, list[Finding]]:
    try:
        return store.leftovers(store.open(tenant, name, create=False))
    except FoveateError as error:  # It is damaged, which is told already, or there is none of this name.
        return 0, [Finding("erased", f"what is erased cannot be told: {error}")]


def _checked(
    store: Database, tenant: str, names: tuple[str, ...], heads: list[KeptHead]
) -> Iterator[tuple[str, list[Finding]]]:
    for kept in heads:
        yield kept.name, verify_head(store, kept)
    for name in names or (() if heads else store.names(tenant)):
        try:
            yield name, store.verify(store.open(tenant, name, create=False))
        except Damaged as error:
            yield name, [Finding("head", str(error))]
