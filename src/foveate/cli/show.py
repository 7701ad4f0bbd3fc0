"""`foveate show`: what the model saw at one call, and why each piece looks as it does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ..errors import BadInput, BadSetting, NoSuchConversation
from .options import Provider, policies_of

if TYPE_CHECKING:
    from .. import Conversation
    from ..core.edits import Record
    from ..core.view import Entry, View

__all__ = ["show"]


def show(
    file: Path,
    name: str | None = None,
    /,
    *,
    turn: int | None = None,
    policy: str | None = None,
    window: int = 200_000,
    provider: Provider = "anthropic",
    full: bool = False,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
) -> int:
    """Show what the model saw at one call: every message of the view, and why it looks as it does.

    Example: `foveate show session.jsonl --turn 40`, or `foveate show chats.db fix-login`

    Parameters
    ----------
    file
        A recording, which is replayed first, or a SQLite file of conversations.
    name
        The conversation in the SQLite file; without it they are listed.
    turn
        Which model call, counted from 1 (the last one).
    policy
        For a recording: the policy to replay it under (what settings choose, else balanced).
    window
        For a recording: the model's window in tokens (200000).
    provider
        Whose format and rules: anthropic (the default) or openai.
    full
        Show all of every message.
    reader
        The format of a recording, if it is not to be found out: a name such as codex (an unknown one lists them).
    lenient
        Skip damaged lines of a recording and count them.
    """
    if _is_database(file):
        if name is None:
            return _list(file)
        with _stored(file, name, provider) as chat:
            _print(chat, name, turn, full)
        return 0
    if name is not None:
        raise BadSetting(f"{file} is a recording, not a database: it holds one conversation, and takes no name.")
    (policy,) = policies_of(policy, None)
    with _replayed(file, policy, window, provider, reader, lenient) as chat:
        _print(chat, f"{file.name} under {policy}", turn, full)
    return 0


# -------------------------------------------------------------------------------------------------- where it comes from


def _is_database(file: Path) -> bool:
    """Whether this is a SQLite file. Raises BadInput where it is one, but not foveate's: it stays untouched."""
    try:
        with open(file, "rb") as opened:
            if opened.read(16) != b"SQLite format 3\0":
                return False
    except (FileNotFoundError, IsADirectoryError):
        return False  # The reader says what is wrong.
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {table for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise BadInput(f"{file}: SQLite cannot read it ({error}).") from error
    if not {"conversation", "migration"} <= tables:
        raise BadInput(f"{file} is a SQLite database, but holds no conversations of foveate.")
    return True


def _list(file: Path) -> int:
    from ..open import open_store
    from ..replay.numbers import plural
    from .output import heading, say

    with closing(open_store(f"sqlite:///{file}")) as store:
        names = store.names("")
    heading(f"{file}: {plural(len(names), 'conversation')}")
    for name in names:
        say(f"  {name}")
    if names:
        say(f"Show one: foveate show {file} {names[0]!r}")
    return 0


@contextmanager
def _stored(file: Path, name: str, provider: Provider) -> Iterator[Conversation]:
    from ..open import Options, open_conversation, open_store

    with closing(open_store(f"sqlite:///{file}")) as store:
        if name not in store.names(""):
            raise NoSuchConversation(name, f"{file}; foveate show {file} lists what there is")
        # `off`: nothing is planned or written here.
        yield open_conversation(name, store=store, format=provider, policy="off", options=Options(tenant=""))


@contextmanager
def _replayed(
    file: Path, policy: str, window: int, provider: Provider, reader: str | None, lenient: bool
) -> Iterator[Conversation]:
    from ..open import Options, open_conversation, open_store
    from ..replay.recordings import read_recording
    from ..replay.run import replay

    if window < 1:
        raise BadSetting("--window is a whole number above 0.")
    recording = read_recording(file, lenient=lenient, format=reader)
    with closing(open_store("memory:")) as store:
        replay(recording, policy=policy, window=window, provider=provider, store=store, name="shown")
        yield open_conversation(
            "shown", store=store, format=provider, policy="off", window=window, options=Options(tenant="")
        )


# -------------------------------------------------------------------------------------------------------- what is shown


def _print(chat: Conversation, title: str, turn: int | None, full: bool) -> None:
    """The view at a call, an entry a block, and its totals."""
    from ..replay.numbers import count, percent, plural
    from .output import heading, say

    calls = max((row.stamp.turn for row in chat.history() if row.message.role == "assistant"), default=0)
    turn = turn if turn is not None else max(calls, 1)
    if not 1 <= turn <= calls + 1:
        raise BadSetting(
            f"--turn {turn}: {title} has {plural(calls, 'model call')}; {calls + 1} would be the next one."
        )
    view = chat.as_of(turn)
    records = {number: record for record in chat.records() for number, _ in record.numbered()}
    known = view.budget.window < 10**9  # A conversation opened without a window is told none.
    heading(title, f"call {count(turn)} of {count(calls)}" if turn <= calls else "the next call")
    for entry in view:
        say()
        _block(entry, records, full)
    say()
    share = (
        f", {percent(view.tokens / view.budget.window)} of the window of {count(view.budget.window)}" if known else ""
    )
    heading(f"{plural(len(view), 'message')} in the view, {count(view.tokens)} tokens{share}")
    say(_summed(view))


def _block(entry: Entry, records: Mapping[int, Record], full: bool) -> None:
    from ..core.explain import explain
    from ..replay.numbers import count, plural
    from .output import heading, say
    from .text import said, shortened

    handle = f"{entry.handle}-m{entry.last}" if entry.span else entry.handle
    facts = [entry.message.role + (f" ({entry.tool})" if entry.tool else "")]
    if entry.kind != "message":
        facts.append(entry.kind)
    facts.append(plural(entry.tokens, "token"))
    if entry.source is not None and entry.tokens != entry.stamp.tokens:
        facts.append(f"{count(entry.stamp.tokens)} as appended")
    heading(handle, " · ".join(facts))
    for reason in explain(entry, records).split("\n")[1:]:
        if entry.edits or entry.legalized or entry.is_pinned():
            say(f"    {reason}", style="italic")
    text = said(entry.message)
    for line in (text if full else shortened(text)).split("\n"):
        say(f"  │ {line}")


def _summed(view: View) -> str:
    """What the view is made of, in one sentence."""
    from ..replay.numbers import count, plural

    roles: dict[str, int] = {}
    for entry in view:
        roles[entry.message.role] = roles.get(entry.message.role, 0) + entry.tokens
    changed = sum(bool(entry.edits) for entry in view)
    mended = sum(bool(entry.legalized) for entry in view)
    parts = ", ".join(f"{role} {count(tokens)}" for role, tokens in roles.items())
    return (
        f"Tokens by role: {parts}. {plural(changed, 'entry')} shaped by edits, {count(mended)} mended for the provider."
    )
