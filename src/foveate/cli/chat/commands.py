"""Commands that a user types in a chat, such as `/context` and `/why 12`.

Each command is a function of the session and the text after the command's name. The commands use public methods of
conversations only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from ...core.handles import parse_handle
from ...core.messages import Message
from ...core.plurals import plural
from ...core.stamps import is_interrupted
from ...errors import BadInput
from ...models import PROVIDERS
from ..options import handle_of
from ..tables import table_lines
from ..text import beginning, brief, message_text, shortened
from ..wrapping import output_width
from .options import DEMO
from .rendering import bill_table, kind_table, largest, saving_table
from .session import ChatSession

__all__ = ["COMMANDS", "Command", "complete_line", "run_command"]

_MARGIN = "   "
"""Before each line of a table."""
_RECENT = 20
"""Messages that /history lists by default."""


class Command(Struct, frozen=True):
    """One command."""

    name: str
    takes: str
    about: str
    run: Callable[[ChatSession, str], str]
    """Returns the text to show, or "". Raises BadInput and the errors of conversations."""
    arguments: Callable[[ChatSession], Sequence[str]] = lambda session: ()
    """Returns the arguments that Tab offers, the likeliest first."""


def run_command(session: ChatSession, line: str) -> bool:
    """Run a line that begins with a slash. Returns whether the chat ends. Raises the errors of the command."""
    name, _, rest = line[1:].strip().partition(" ")
    name = _OTHER_NAMES.get(name, name)
    if name == "quit":
        return True
    command = next((command for command in COMMANDS if command.name == name), None)
    if command is None:
        raise BadInput(_unknown(name))
    if answer := command.run(session, rest.strip()):
        session.notify(answer)
    return False


def complete_line(session: ChatSession, text: str) -> list[str]:
    """Return the lines that begin with `text`: commands, or one command with its arguments."""
    name, space, _ = text.removeprefix("/").partition(" ")
    if not text.startswith("/"):
        return []
    if not space:
        names = [*(f"/{command.name}{' ' * bool(command.takes)}" for command in COMMANDS), "/quit"]
        return [line for line in names if line.startswith(text)]
    command = next((command for command in COMMANDS if command.name == name), None)
    values = command.arguments(session) if command else ()
    return [line for value in values if (line := f"/{name} {value}").startswith(text)]


def _unknown(name: str) -> str:
    near = get_close_matches(name, [*(command.name for command in COMMANDS), *_OTHER_NAMES], n=3, cutoff=0.5)
    hint = f" Did you mean {', '.join(f'/{name}' for name in near)}?" if near else ""
    return f"There is no /{name[:40]}.{hint} Type /help for the commands; a line that begins with // is for the model."


# -------------------------------------------------------------------------------------------------------- arguments


def _handles(session: ChatSession) -> list[str]:
    return [entry.handle for entry in reversed(session.chat.view.entries)]


def _shrunk(session: ChatSession) -> list[str]:
    return [entry.handle for entry in reversed(session.chat.view.entries) if entry.shrunk or entry.span is not None]


def _pinned(session: ChatSession) -> list[str]:
    return [entry.handle for entry in session.chat.view.entries if entry.is_pinned()]


def _edits(session: ChatSession) -> list[str]:
    return [str(receipt.last) for receipt in reversed(session.chat.journal.receipts()) if receipt.author != "undo"]


def _models(session: ChatSession) -> list[str]:
    used = session.chat.totals().by_model
    return list(dict.fromkeys([*used, DEMO, *(f"{provider}:" for provider in PROVIDERS)]))


# --------------------------------------------------------------------------------------------------------- the commands


def _context(session: ChatSession, rest: str) -> str:
    context = session.context()
    sizes = f"the history has {context.tokens_whole:,} tokens, the view {context.tokens_shown:,}"
    rows = largest(session.chat.view)
    entries = f"{context.entries} of {context.messages} messages shown; {sizes}. The largest:" if rows else ""
    return "\n".join(filter(None, [_table(kind_table(context), 1), entries, _table(rows, 2)]))


def _why(session: ChatSession, rest: str) -> str:
    return session.chat.explain(_handle(rest, "/why"))


def _expand(session: ChatSession, rest: str) -> str:
    handle = _handle(rest, "/expand")
    before = session.chat.view.tokens
    session.chat.expand(handle, reason="asked for by /expand")
    added = session.chat.view.tokens - before
    original = _text(session.chat.originals(handle))
    return f"The next call shows {handle} in full again, {added:,} tokens more:\n{original}"


def _pin(session: ChatSession, rest: str) -> str:
    handle = _handle(rest, "/pin")
    session.chat.pin(handle)
    return f"{handle} is pinned: it stays as it is shown now. /unpin {handle} releases it."


def _unpin(session: ChatSession, rest: str) -> str:
    handle = _handle(rest, "/unpin")
    session.chat.unpin(handle)
    return f"{handle} is no longer pinned."


def _compact(session: ChatSession, rest: str) -> str:
    session.show_receipt(session.chat.compact(rest))
    return ""


def _undo(session: ChatSession, rest: str) -> str:
    if rest and not _COUNT.fullmatch(rest):
        raise BadInput("/undo takes the number of an edit, as /why shows it, or nothing for the newest change.")
    receipt = session.chat.undo(int(rest) if rest else None)
    return f"Undone: {receipt.tokens_before:,} -> {receipt.tokens_after:,} tokens."


def _fork(session: ChatSession, rest: str) -> str:
    if not rest:
        raise BadInput("A fork needs a name, such as /fork another-try.")
    if len(rest.split()) > 1:
        raise BadInput(f"The name of a fork has no blanks: /fork {'-'.join(rest.split())[:60]}.")
    before = session.name
    session.fork(rest)
    return f"You are now in {rest}, a fork of {before} with the same history. {before} stays as it is."


def _cost(session: ChatSession, rest: str) -> str:
    context = session.context()
    if not context.totals.calls:
        return "The model has not been called yet."
    note = (
        "Input is the sum of cached, written and other. Saved: compared with calls that send the whole history, both "
        "with a warm cache. Summaries by a model are not included."
    )
    if context.dollars is not None:
        note += " Each call has the price of its own model."
    if context.dollars is not None and context.unpriced:
        note += " Dollars leave out the models without a price."
    if stopped := context.totals.calls_estimated:
        note += f" {plural(stopped, 'call')} stopped before the end: their tokens are an estimate."
    bill = bill_table(context) or [()]
    tables = (_table(bill[1:], 1, bill[0]), _table(saving_table(context), 1))
    return "\n".join([*filter(None, tables), note])


def _search(session: ChatSession, rest: str) -> str:
    if not rest:
        raise BadInput('/search needs words, such as /search port, or /search "the port" for a phrase.')
    hits = session.chat.search(rest)
    rows = [(hit.handle, hit.who, f"turn {hit.turn}", brief(hit.snippet, 100)) for hit in hits]
    return _table(rows, 4) if rows else f"No text that the view hides or shortens has {rest!r:.60}."


def _tools(session: ChatSession, rest: str) -> str:
    rows = [
        (tool.name, brief(tool.description, 80), "asks you first" if session.asks_before(tool) else "")
        for tool in session.tools
    ]
    rows.append(("expand", "Shows what was shortened or left out.", ""))
    return _table(rows, 3)


def _history(session: ChatSession, rest: str) -> str:
    first, last = max(1, len(session.chat) - _RECENT + 1), None
    if rest:
        handle = parse_handle(_handle(rest, "/history"))
        first, last = handle.first, handle.last if handle.last > handle.first else None
    history = session.chat.history(first, last)
    shown = {entry.id for entry in session.chat.view if not entry.shrunk and entry.span is None}
    rows = [
        (
            row.handle,
            row.message.role,
            beginning(row.message, 80),
            ", ".join(
                [
                    *(["stopped"] if is_interrupted(row.stamp.stop) else []),
                    *(["not shown in full"] if row.id not in shown else []),
                ]
            ),
        )
        for row in history
    ]
    return _table(rows, 4) if rows else "There are no messages yet."


def _model(session: ChatSession, rest: str) -> str:
    if not rest:
        return f"{session.model}. /model NAME switches to another one, such as anthropic:claude-haiku-4-5."
    session.switch_model(rest)
    return f"From now on {session.model} answers, in a window of {session.chat.budget.window:,} tokens."


def _resume(session: ChatSession, rest: str) -> str:
    runs, newest = session.chat.journal.runs(), session.chat.history(max(1, len(session.chat)))
    is_answered = any(
        row.message.role == "assistant" and not row.message.calls and not is_interrupted(row.stamp.stop)
        for row in newest
    )
    if not newest or (is_answered and (not runs or runs[-1].state == "done")):  # A fork has no runs of its own yet.
        raise BadInput("There is nothing to resume: the last answer is complete.")
    session.send(None)
    return ""


def _help(session: ChatSession, rest: str) -> str:
    rows = [(f"/{command.name} {command.takes}".rstrip(), command.about) for command in COMMANDS]
    numbers = "N is the number of a message: 12 or m12. EDIT is the number of an edit, as /why shows it."
    return f"{_table([*rows, ('/quit', 'end the chat, as Ctrl-D does')], 2)}\n{numbers}"


COMMANDS = (
    Command("context", "", "show the tokens in the window by kind, and the largest messages", _context),
    Command("why", "N", "explain why message N looks as it does", _why, _handles),
    Command("expand", "N", "show message N in full again", _expand, _shrunk),
    Command("pin", "N", "keep message N as it is shown", _pin, _handles),
    Command("unpin", "N", "release a pinned message", _unpin, _pinned),
    Command("compact", "[FOCUS]", "replace the oldest part by a summary now", _compact),
    Command("undo", "[EDIT]", "undo the newest change of the view, or one edit", _undo, _edits),
    Command("fork", "NAME", "continue in a copy of this conversation", _fork),
    Command("cost", "", "show the tokens billed and the saving", _cost),
    Command("search", "WORDS", "find words in messages that are hidden or shortened", _search),
    Command("tools", "", "list the tools of the model", _tools),
    Command("history", "[N]", f"list the newest {_RECENT} messages, those from N on, or N-N", _history),
    Command("model", "[NAME]", "switch to another model", _model, _models),
    Command("resume", "", "continue an answer that was stopped or failed", _resume),
    Command("help", "", "show this list", _help),
)
_OTHER_NAMES = {"exit": "quit", "q": "quit", "?": "help", "h": "help"}
_COUNT = re.compile(r"[1-9]\d{0,8}")


def _handle(text: str, command: str) -> str:
    if handle := handle_of(text):
        return handle
    raise BadInput(f"{command} needs a message, such as {command} 12. /history and /context show the numbers.")


def _text(originals: Sequence[Message]) -> str:
    return shortened("\n".join(map(message_text, originals)), 8, 120).replace(", --full shows all", "")


def _table(rows: Sequence[Sequence[str]], left: int, titles: Sequence[str] = ()) -> str:
    """Align rows in columns: the first `left` columns to the left, the others to the right."""
    width = output_width()
    lines = table_lines(titles, rows, left=left, room=None if width is None else width - len(_MARGIN))
    return "\n".join(f"{_MARGIN}{line}" for line, _ in lines)
