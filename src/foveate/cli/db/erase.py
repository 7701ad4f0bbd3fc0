"""`foveate db erase` and `foveate db age`: remove messages from a database permanently."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ...core.handles import parse_handle
from ...core.plurals import plural
from ...core.retention import Age, read_rule
from ...errors import BadSetting, ConflictError, UnknownHandle
from ...ports import Database, Erasure, wall_clock
from ...replay.numbers import count
from ..options import command_line, handle_of
from ..text import one_line
from .target import NOWHERE, AsJson, Where, no_conversations, opened, print_json

if TYPE_CHECKING:
    from ...conversation.retention import RetentionReport

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
    """Erase messages, with everything derived from them, in all forks.

    Without handles the command erases all messages of the conversation. This cannot be undone. Positions and hashes
    stay, so that `foveate db verify` still proves the rest, and a record says who erased what, when and why. Vacuum
    afterwards: until then the file may still contain the erased bytes.

    Example: `foveate db erase support-456 m12 --reason "request of the customer" --yes`

    Parameters
    ----------
    conversation
        The conversation's name.
    handles
        Messages, such as m12 or 12, or m3-m17.
    everything
        Erase all conversations of the tenant.
    reason
        The reason for the record. Do not quote erased text.
    who
        The person or program, for the record.
    yes
        Erase. Without it the command only says what it would erase.
    """
    from ...ops.retention import erase_conversation, erase_tenant
    from ..output import say

    if (conversation is None) != everything:
        raise BadSetting("Name a conversation to erase, or use --everything for all conversations of the tenant.")
    with opened(where, reads=not yes) as (store, tenant):
        if everything and not store.names(tenant):
            raise BadSetting(no_conversations(where))
        if not yes:
            subject = _preview(store, tenant, conversation, handles)
            raise BadSetting(f"{subject} would be erased permanently. Repeat the command with --yes to erase them.")
        if conversation is None:
            pieces = erase_tenant(store, tenant, reason=reason, who=who, clock=wall_clock)
            done = [piece for group in pieces.values() for piece in group]
        elif not handles:
            done = erase_conversation(store, conversation, tenant=tenant, reason=reason, who=who, clock=wall_clock)
        else:
            done = _erased(store, tenant, conversation, handles, reason, who)
    if as_json:
        print_json(done)
    else:
        counts = (
            (sum(piece.messages for piece in done), "message"),
            (sum(piece.edits for piece in done), "edit"),
            (sum(piece.runs for piece in done), "run"),
            (sum(piece.steps for piece in done), "step"),
        )
        messages, *derived = [plural(number, noun) for number, noun in counts if number or noun == "message"]
        also = f", and {' and '.join(derived)} derived from them" if derived else ""
        advice = command_line("db", "vacuum", store=where.store)
        say(f"{messages} erased{also}. Now run: {advice}" if done else "There was nothing left to erase.")
    return 0


def _erased(
    store: Database, tenant: str, conversation: str, handles: tuple[str, ...], reason: str, who: str
) -> list[Erasure]:
    head = store.open(tenant, conversation, create=False)
    spans = _spans(handles, head.position)  # Check all handles before erasing any message.
    done = store.erase(head, spans, who=who, reason=reason, time=wall_clock())
    return [done] if done.number else []


def _spans(handles: tuple[str, ...], last: int) -> list[tuple[int, int]]:
    spans = []
    for handle in handles:
        parsed = parse_handle(handle_of(handle) or handle)
        if parsed.path:
            raise BadSetting(f"{handle} names a part, but only whole messages can be erased: m{parsed.first}.")
        if parsed.last > last:
            known = f"messages m1 to m{last}" if last else "no messages"
            raise UnknownHandle(handle, f"This conversation has {known}.")
        spans.append((parsed.first, parsed.last))
    return spans


def _preview(store: Database, tenant: str, conversation: str | None, handles: tuple[str, ...]) -> str:
    from ...ops.retention import sub_agents

    if conversation is None:
        return f"All messages of {plural(len(store.names(tenant)), 'conversation')}"
    head = store.open(tenant, conversation, create=False)
    spans = _spans(handles, head.position)
    positions = {position for first, last in spans for position in range(first, last + 1)}
    number = len(positions) if handles else head.position
    others = () if handles else sub_agents(store, tenant, conversation)
    also = f", and all of {plural(len(others), 'conversation')} of sub-agents," if others else ""
    return f"{count(number)} of the {plural(head.position, 'message')} of {one_line(conversation)}{also}"


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
    """Count the messages that are older than their retention, and erase them with --yes.

    Kinds: tool results (of one tool: tool results:grep), assistant messages, user messages, media, plugin blocks, all,
    runs and conversations. Ages: a time, a number of turns, or both; a time only for runs and conversations. Blocks of
    plugins are released: their messages stay.

    A message stays while a view shows it, while it is pinned, and if it is a system prompt or the last user input,
    unless its rule ends with `even shown`, `even short`, `even pinned`, `even system` or `even input`. Positions and
    hashes stay. A SQLite file reuses the free space, and shrinks only by a vacuum.

    Example: `foveate db age --older "tool results=90 days" --older "media=30 days and 200 turns" --yes`

    Parameters
    ----------
    conversations
        Names of conversations (default: all of the tenant).
    older
        A rule, KIND=AGE. Can be repeated (default: the table [ages] in foveate.toml).
    every_tenant
        Apply the rules to all tenants.
    reason
        The reason for the record. Do not quote erased text.
    who
        The person or program, for the record.
    yes
        Erase. Without it the command only counts.
    """
    ages = _ages(older)
    if every_tenant and conversations:
        raise BadSetting("Name conversations, or use --every-tenant for all conversations, not both.")
    done: list[RetentionReport] = []
    conflict: ConflictError | None = None
    with opened(where, reads=not yes) as (store, tenant):
        try:
            for owner, run in _each(store, tenant, conversations, ages, every_tenant, reason, who, yes):
                if as_json:
                    print_json([{"tenant": owner, **msgspec.to_builtins(run)}])
                done.append(run)
        except ConflictError as error:
            conflict = error
    if not as_json:
        _print_age(done, ages, yes, where)
    if conflict:
        raise conflict
    return 0


def _ages(older: Sequence[str]) -> tuple[Age, ...]:
    from ...settings import load_ages

    ages = tuple(map(read_rule, older)) or load_ages(Path(os.curdir))
    if not ages:
        raise BadSetting(
            'Retention needs rules. Name one, such as --older "tool results=90 days", or add an [ages] table to '
            "foveate.toml."
        )
    return ages


def _each(
    store: Database,
    tenant: str,
    names: Sequence[str],
    ages: tuple[Age, ...],
    every_tenant: bool,
    reason: str,
    who: str,
    yes: bool,
) -> Iterator[tuple[str, RetentionReport]]:
    from ...ops.retention import age_database, age_tenant

    if every_tenant:
        yield from age_database(store, ages, reason=reason, who=who, dry_run=not yes)
    else:
        for run in age_tenant(store, ages, tenant, names=names, reason=reason, who=who, dry_run=not yes):
            yield tenant, run


def _print_age(done: Sequence[RetentionReport], ages: Sequence[Age], yes: bool, where: Where) -> None:
    from ..output import print_table, say

    touched = sum(bool(run.messages or run.runs) for run in done)
    messages, sizes, waits = Counter[str](), Counter[str](), Counter[str]()
    for run in done:
        for kind in run.kinds:
            messages[kind.kind] += kind.messages
            sizes[kind.kind] += kind.bytes
        waits.update(dict(run.waiting))
    runs = sum(run.runs for run in done)
    rows = [
        (kind.replace("_", " "), count(messages[kind]), count(sizes[kind]))
        for kind in dict.fromkeys(age.kind for age in ages)
        if kind != "runs"
    ]
    if any(age.kind == "runs" for age in ages):
        rows.append(("runs", count(runs), ""))
    print_table(("older than its age", "messages", "bytes"), rows)
    if waits:
        say("Waiting: " + ", ".join(f"{count(number)} {why}" for why, number in sorted(waits.items())) + ".")
    if not done:
        say(no_conversations(where))
    elif not touched:
        say(f"Nothing to erase in {plural(len(done), 'conversation')}.")
    elif yes:
        erased, released = sum(part.messages for run in done for part in run.erased), messages["plugin_blocks"]
        parts = [f"{plural(erased, 'message')} erased"] if erased or not released else []
        parts += [f"blocks in {plural(released, 'message')} released"] if released else []
        advice = command_line("db", "vacuum", store=where.store)
        say(f"{', '.join(parts)} in {plural(touched, 'conversation')}. Now run: {advice}")
    else:
        say(f"In {plural(touched, 'conversation')}. Repeat the command with --yes to erase them permanently.")
