"""`foveate show`: the view of one model call, and the reason for each change in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from ..errors import BadSetting, NoSuchConversation
from .options import Provider, command_line, policies_of, settings_of, store_of

if TYPE_CHECKING:
    from .. import Conversation
    from ..core.edits import Record
    from ..core.view import Entry, View

__all__ = ["show"]


def show(
    file: str,
    name: str | None = None,
    /,
    *,
    turn: int | None = None,
    policy: str | None = None,
    window: int | None = None,
    provider: Provider | None = None,
    receipts: bool = False,
    tenant: str | None = None,
    full: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
) -> int:
    """Show what the model saw at one call: each message of the view, and why it looks as it does.

    Example: `foveate show session.jsonl --turn 40`, or `foveate show chats.db fix-login --receipts`

    Parameters
    ----------
    file
        A recording, which is replayed first; or a store of conversations: a SQLite file or a URL.
    name
        The conversation in the store (default: list the conversations).
    turn
        The number of the model call, from 1 (default: the last call).
    policy
        For a recording: the policy of the replay (default: from the settings, else balanced).
    window
        For a recording: the model's window in tokens (default: that of the recording's model, else 200000).
    provider
        The format and rules: anthropic, openai, openai_responses or gemini (default: for a recording as recorded, else
        anthropic).
    receipts
        List what each plan and each edit changed instead, such as checkpoints, with their summaries.
    tenant
        For a store: the tenant (default: from the settings, else the empty one).
    full
        Show the complete text of each message and summary.
    as_json
        Print JSON Lines: one object for each conversation, message of the view or receipt, with complete texts.
    reader
        For a recording: its format, if detection fails. An unknown name lists the formats.
    lenient
        For a recording: skip damaged lines and count them.
    """
    url = store_of(file)
    if url is not None:
        _refuse("recordings, and {} is a store", file, policy=policy, window=window, format=reader, lenient=lenient)
        tenant = settings_of()["tenant"] if tenant is None else tenant
        if name is None:
            return _list(url, file, tenant, as_json)
        with _stored(url, file, name, provider or "anthropic", tenant) as chat:
            _show(chat, name, turn, receipts, full, as_json)
        return 0
    if name is not None:
        raise BadSetting(f"{file} is a recording, not a store. It holds one conversation, and takes no name.")
    _refuse("stores, and {} is a recording", file, tenant=tenant)
    (policy,) = policies_of(policy, None)
    with _replayed(Path(file), policy, window, provider, reader, lenient) as chat:
        _show(chat, f"{Path(file).name} under {policy}", turn, receipts, full, as_json)
    return 0


def _refuse(where: str, file: str, **options: object) -> None:
    """Raise BadSetting if an option is given that has no effect here."""
    from ..stores import without_password

    for name, value in options.items():
        if value is not None and value is not False:
            raise BadSetting(f"--{name} belongs to {where.format(without_password(file))}. Leave it out.")


def _show(chat: Conversation, title: str, turn: int | None, receipts: bool, full: bool, as_json: bool) -> None:
    from .db.target import print_json

    if not receipts and as_json:
        records = _records(chat)
        print_json(_facts(entry, records) for entry in chat.as_of(_turn(chat, title, turn)[0]))
    elif not receipts:
        _print(chat, title, turn, full)
    elif turn is None and as_json:
        print_json(chat.journal.receipts())
    elif turn is None:
        _print_receipts(chat, title, full)
    else:
        raise BadSetting("--receipts lists the changes of all calls. Leave --turn out.")


# -------------------------------------------------------------------------------------------------- conversations


def _list(url: str, name: str, tenant: str, as_json: bool) -> int:
    from ..core.conversation_names import ancestors
    from ..core.plurals import plural
    from ..open import open_store
    from ..stores import readable, without_password
    from .db.target import print_json
    from .output import heading, say

    with closing(open_store(readable(url))) as store:
        names = store.names(tenant)
    if as_json:
        print_json({"name": title} for title in names)
        return 0
    known = set(names)
    heading(f"{without_password(name)}: {plural(len(names), 'conversation')}")
    for title in names:
        depth = sum(ancestor in known for ancestor in ancestors(title))
        say(f"  {'  ' * depth}{title}")
    if names:
        say(f"Show one: {command_line('show', without_password(name), names[0], tenant=tenant or None)}")
    return 0


@contextmanager
def _stored(url: str, title: str, name: str, provider: Provider, tenant: str) -> Iterator[Conversation]:
    from ..counters import counter_for
    from ..open import Options, open_conversation, open_store
    from ..stores import readable, without_password

    with closing(open_store(readable(url))) as store:
        if name not in store.names(tenant):
            advice = command_line("show", without_password(title), tenant=tenant or None)
            raise NoSuchConversation(name, f"{without_password(title)}; {advice} lists the conversations")
        # `off`: plan and write nothing. `expand`: show the texts of the newest request.
        options: dict[str, Any] = {"store": store, "format": provider, "policy": "off", "expand": True}
        chat = open_conversation(name, **options, options=Options(tenant=tenant))
        if model := _model(chat):  # Texts in place of messages are counted as when it was called.
            chat.close()
            counter = counter_for(model, provider)
            chat = open_conversation(name, **options, options=Options(tenant=tenant, counter=counter))
        yield chat


def _model(chat: Conversation) -> str:
    """Return the name of the model that wrote the newest replies; "" if it has none."""
    rows = chat.history(max(1, len(chat) - 100))
    return next((row.stamp.model for row in reversed(rows) if row.stamp.model), "")


@contextmanager
def _replayed(
    file: Path, policy: str, window: int | None, provider: Provider | None, reader: str | None, lenient: bool
) -> Iterator[Conversation]:
    from ..open import Options, open_conversation, open_store
    from ..replay.corpus import settings_of_recording
    from ..replay.recordings import read_recording
    from ..replay.run import replay

    if window is not None and window < 1:
        raise BadSetting(f"--window must be a whole number above 0, not {window}.")
    recording = read_recording(file, lenient=lenient, format=reader)
    own_window, own_format, prices = settings_of_recording(recording)
    size, rules = window or own_window, provider or own_format
    with closing(open_store("memory:")) as store:
        replay(recording, policy=policy, window=size, provider=rules, prices=prices, store=store, name="shown")
        options = Options(tenant="", counter="characters")  # As in the replay.
        yield open_conversation(
            "shown", store=store, format=rules, policy="off", window=size, expand=True, options=options
        )


# --------------------------------------------------------------------------------------------------------- output


def _print(chat: Conversation, title: str, turn: int | None, full: bool) -> None:
    """Print the view at a call, one block an entry, and its totals."""
    from ..core.plurals import plural
    from ..replay.numbers import count, percent
    from .output import heading, say

    turn, calls = _turn(chat, title, turn)
    view = chat.as_of(turn)
    records = _records(chat)
    has_window = view.budget.window < 10**9  # A conversation without a window has a very large one here.
    heading(title, f"call {count(turn)} of {count(calls)}" if turn <= calls else "the next call")
    for entry in view:
        say()
        _print_entry(entry, records, full)
    say()
    window = view.budget.window
    share = f", {percent(view.tokens / window)} of the window of {count(window)}" if has_window else ""
    heading(f"{plural(len(view), 'message')} in the view, {count(view.tokens)} tokens{share}")
    say(_summary(view))
    _print_family(chat)


def _turn(chat: Conversation, title: str, turn: int | None) -> tuple[int, int]:
    """Return the number of the call to show, and of all calls. Raises BadSetting if there is no such call."""
    from ..core.plurals import plural

    calls = max((row.stamp.turn for row in chat.history() if row.message.role == "assistant"), default=0)
    turn = turn if turn is not None else max(calls, 1)
    if not 1 <= turn <= calls + 1:
        raise BadSetting(
            f"There is no turn {turn}: {title} has {plural(calls, 'model call')}. Name one of 1 to {calls + 1}; "
            f"{calls + 1} is the next call."
        )
    return turn, calls


def _records(chat: Conversation) -> dict[int, Record]:
    """Return the journal's record of each edit, by the number of the edit."""
    return {number: record for record in chat.journal.records() for number, _ in record.numbered()}


def _facts(entry: Entry, records: Mapping[int, Record]) -> dict[str, object]:
    """Return an entry of the view as an object of JSON."""
    from ..core.explain import explain
    from ..core.handles import Handle
    from ..core.wire import encode_message

    return {
        "handle": str(Handle(entry.position, entry.last)),
        "kind": entry.kind,
        "tool": entry.tool,
        "tokens": entry.tokens,
        "tokens_recorded": entry.stamp.tokens,
        "edits": list(entry.edits),
        "pinned": entry.is_pinned(),
        "reasons": explain(entry, records).split("\n")[1:],
        "message": msgspec.json.decode(encode_message(entry.message)),
    }


def _print_family(chat: Conversation) -> None:
    """Print the parent and the children of a conversation, and the totals with the children."""
    from ..replay.numbers import count
    from .output import say

    if (parent := chat.parent()) is not None:
        say(f"Child of {parent}.")
    if children := chat.children():
        totals = chat.totals(children=True)
        say(f"Children ({count(len(children))}): {', '.join(children)}.")
        say(f"With its children: {str(totals).splitlines()[0]}")


def _print_receipts(chat: Conversation, title: str, full: bool) -> None:
    """Print one line a receipt, and the summaries that it made."""
    from ..core.edits import Summarize
    from ..core.plurals import plural
    from .output import heading, say
    from .text import shortened

    receipts = chat.journal.receipts()
    positions = {row.id: row.position for row in chat.history()} if receipts else {}
    heading(title, plural(len(receipts), "receipt"))
    for receipt in receipts:
        say(str(receipt))
        for edit in receipt.edits:
            if isinstance(edit, Summarize):
                first, last = positions.get(edit.span.first), positions.get(edit.span.last)
                say(f"  m{first}{f'-m{last}' if last != first else ''} as a summary:", style="italic")
                for line in (edit.text if full else shortened(edit.text)).split("\n"):
                    say(f"  │ {line}")


def _print_entry(entry: Entry, records: Mapping[int, Record], full: bool) -> None:
    from ..core.explain import explain
    from ..core.handles import Handle
    from ..core.plurals import plural
    from ..replay.numbers import count
    from .output import heading, say
    from .text import message_text, shortened

    handle = str(Handle(entry.position, entry.last))
    facts = [entry.message.role + (f" ({entry.tool})" if entry.tool else "")]
    if entry.kind != "message":
        facts.append(entry.kind)
    facts.append(plural(entry.tokens, "token"))
    if entry.outline is not None and entry.tokens != entry.stamp.tokens:
        facts.append(f"{count(entry.stamp.tokens)} as appended")
    heading(handle, " · ".join(facts))
    for reason in explain(entry, records).split("\n")[1:]:
        if entry.edits or entry.legalized or entry.is_pinned():
            say(f"    {reason}", style="italic")
    text = message_text(entry.message)
    for line in (text if full else shortened(text)).split("\n"):
        say(f"  │ {line}")


def _summary(view: View) -> str:
    """Return the tokens by role and the number of changed entries, in two sentences."""
    from ..core.plurals import plural
    from ..replay.numbers import count

    roles: dict[str, int] = {}
    for entry in view:
        roles[entry.message.role] = roles.get(entry.message.role, 0) + entry.tokens
    edited = sum(bool(entry.edits) for entry in view)
    fixed = sum(bool(entry.legalized) for entry in view)
    parts = ", ".join(f"{role} {count(tokens)}" for role, tokens in roles.items())
    by_role = f"Tokens by role: {parts}. " if parts else ""
    return f"{by_role}Edits changed {plural(edited, 'entry')}; {count(fixed)} changed for the provider."
