"""`foveate db erase`: takes what was said out of a database, for good."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter

from ...core.handles import parse_handle
from ...errors import BadSetting, UnknownHandle
from ...ports import Database, Erased
from ...replay.numbers import count, plural
from .._said import printable
from ._where import NOBODYS, NOWHERE, AsJson, Where, opened, print_json

__all__ = ["erase"]


def erase(
    conversation: str | None = None,
    /,
    *handles: str,
    everything: Annotated[bool, Parameter(negative=())] = False,
    reason: str = "",
    who: str = "",
    yes: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Erase messages with all that was made of them, in every fork that shares them; without handles, all messages.

    What was said cannot be had back. Places and hashes stay, so that `foveate db verify` proves the rest, and it is
    kept who erased what, when and why. Vacuum afterwards: until then the file may still hold bytes of it.

    Example: `foveate db erase support-456 m12 --reason "asked for by the customer" --yes`

    Parameters
    ----------
    conversation
        The conversation's name.
    handles
        Messages, such as m12 or m3-m17.
    everything
        All conversations of the tenant.
    reason
        Why, without a word of what is gone.
    who
        Who has it erased.
    yes
        Erase; else only say what would be erased.
    """
    from ...stores.erasing_all import erase_conversation, erase_tenant
    from .._print import say

    if (conversation is None) != everything:
        raise BadSetting("Name a conversation to erase, or say --everything for all conversations of the tenant.")
    with opened(where) as (store, tenant):
        if everything and not store.names(tenant):
            raise BadSetting(NOBODYS)
        if not yes:
            what = _would(store, tenant, conversation, handles)
            raise BadSetting(f"{what} would be erased, for good. Say --yes to do it.")
        if conversation is None:
            pieces = erase_tenant(store, tenant, reason=reason, who=who, clock=_now)
            done = [one for some in pieces.values() for one in some]
        elif not handles:
            done = erase_conversation(store, conversation, tenant=tenant, reason=reason, who=who, clock=_now)
        else:
            done = _erased(store, tenant, conversation, handles, reason, who)
    if as_json:
        print_json(done)
    else:
        counts = (
            (sum(one.messages for one in done), "message"),
            (sum(one.edits for one in done), "edit"),
            (sum(one.runs for one in done), "run"),
            (sum(one.steps for one in done), "step"),
        )
        messages, *told = [plural(number, what) for number, what in counts if number or what == "message"]
        also = f", with {' and '.join(told)} that told of them" if told else ""
        say(f"{messages} erased{also}. Now vacuum: foveate db vacuum" if done else "There was nothing left to erase.")
    return 0


def _erased(
    store: Database, tenant: str, conversation: str, handles: tuple[str, ...], reason: str, who: str
) -> list[Erased]:
    head = store.open(tenant, conversation, create=False)
    spans = _spans(handles, head.position)  # All of them are looked at before the first is erased.
    done = store.erase(head, spans, who=who, reason=reason, time=_now())
    return [done] if done.number else []


def _spans(handles: tuple[str, ...], last: int) -> list[tuple[int, int]]:
    spans = []
    for handle in handles:
        parsed = parse_handle(handle)
        if parsed.path:
            raise BadSetting(f"{handle} names a part; a message is erased as a whole: m{parsed.first}.")
        if parsed.last > last:
            raise UnknownHandle(handle, f"This conversation has messages m1 to m{last}.")
        spans.append((parsed.first, parsed.last))
    return spans


def _would(store: Database, tenant: str, conversation: str | None, handles: tuple[str, ...]) -> str:
    if conversation is None:
        return f"All messages of {plural(len(store.names(tenant)), 'conversation')}"
    head = store.open(tenant, conversation, create=False)
    spans = _spans(handles, head.position)
    named = {place for first, last in spans for place in range(first, last + 1)}
    number = len(named) if handles else head.position
    return f"{count(number)} of the {plural(head.position, 'message')} of {printable(conversation)}"


def _now() -> int:
    return time.time_ns() // 1_000_000
