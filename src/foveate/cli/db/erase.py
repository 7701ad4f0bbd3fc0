"""`foveate db erase` and `foveate db age`: take messages out of a database for good."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ...core.handles import parse_handle
from ...core.retention import Age, read_rule
from ...errors import BadSetting, ConflictError, UnknownHandle
from ...ports import Database, Erased
from ...replay.numbers import count, plural
from ..text import printable
from .target import NOBODYS, NOWHERE, AsJson, Where, opened, print_json

if TYPE_CHECKING:
    from ...engine.aging import Aged

__all__ = ["age", "erase"]


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
    from ..output import say

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


def age(
    *conversations: str,
    older: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    every_tenant: Annotated[bool, Parameter(negative=())] = False,
    reason: str = "age",
    who: str = "",
    yes: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Tell what is older than it may be, and with --yes erase it with all that was made of it, in every conversation.

    What a conversation's view shows waits until it shows it no more; so do pinned messages, system prompts and the last
    input of the user, unless an age says `even shown`, `even short`, `even pinned`, `even system` or `even input`.
    Places and hashes stay. Vacuum from time to time: a SQLite file uses the room again, and gives it back only then.

    Example: `foveate db age --older "tool results=90 days" --older "media=30 days and 200 turns" --yes`

    Parameters
    ----------
    conversations
        Names of conversations (else all of the tenant).
    older
        How long a kind is kept: tool results (of one tool: tool results:grep), assistant messages, user messages,
        media, all; and, as a time, runs and conversations. Said again for others (else as [ages] in foveate.toml
        says).
    every_tenant
        The conversations of all tenants.
    reason
        Why, without a word of what is gone.
    who
        Who has it erased.
    yes
        Erase; else only tell.
    """
    ages = _ages(older)
    if every_tenant and conversations:
        raise BadSetting("Name conversations, or say --every-tenant for all there are.")
    done: list[Aged] = []
    late: ConflictError | None = None
    with opened(where) as (store, tenant):
        try:
            for owner, one in _each(store, tenant, conversations, ages, every_tenant, reason, who, yes):
                if as_json:
                    print_json([{"tenant": owner, **msgspec.to_builtins(one)}])
                done.append(one)
        except ConflictError as error:
            late = error
    if not as_json:
        _print_age(done, ages, yes)
    if late:
        raise late
    return 0


def _ages(older: Sequence[str]) -> tuple[Age, ...]:
    from ...settings.ages import ages_in

    found = tuple(map(read_rule, older)) or ages_in(Path(os.curdir))
    if not found:
        raise BadSetting(
            'Older than what? Say --older "tool results=90 days", or write a table [ages] into foveate.toml.'
        )
    return found


def _each(
    store: Database,
    tenant: str,
    names: Sequence[str],
    ages: tuple[Age, ...],
    every_tenant: bool,
    reason: str,
    who: str,
    yes: bool,
) -> Iterator[tuple[str, Aged]]:
    from ...aging import age_database, age_tenant

    if every_tenant:
        yield from age_database(store, ages, reason=reason, who=who, dry_run=not yes)
    else:
        for one in age_tenant(store, ages, tenant, names=names, reason=reason, who=who, dry_run=not yes):
            yield tenant, one


def _print_age(done: Sequence[Aged], ages: Sequence[Age], yes: bool) -> None:
    from ..output import print_table, say

    touched = sum(bool(one.messages or one.runs) for one in done)
    messages, sizes, waits = Counter[str](), Counter[str](), Counter[str]()
    for one in done:
        for kind in one.kinds:
            messages[kind.kind] += kind.messages
            sizes[kind.kind] += kind.bytes
        waits.update(dict(one.waiting))
    runs = sum(one.runs for one in done)
    rows = [
        (kind.replace("_", " "), count(messages[kind]), count(sizes[kind]))
        for kind in dict.fromkeys(age.kind for age in ages)
        if kind != "runs"
    ]
    if any(age.kind == "runs" for age in ages):
        rows.append(("runs", count(runs), ""))
    print_table(("over its age", "messages", "bytes"), rows)
    if waits:
        say("Waiting: " + ", ".join(f"{count(number)} {why}" for why, number in sorted(waits.items())) + ".")
    if not done:
        say(NOBODYS)
    elif not touched:
        say(f"Nothing goes, of {plural(len(done), 'conversation')}.")
    elif yes:
        erased = sum(part.messages for one in done for part in one.erased)
        say(f"{plural(erased, 'message')} erased, of {plural(touched, 'conversation')}. Now vacuum: foveate db vacuum")
    else:
        say(f"Of {plural(touched, 'conversation')}. Say --yes to erase them, for good.")
