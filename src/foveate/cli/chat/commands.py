"""What can be typed in a chat that is not for the model: `/context`, `/why 12` and the like.

A table of commands, each a function of the talk and of what stands behind its name. They look at the conversation, or
change it, by the methods that every program has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain

from msgspec import Struct

from ...core.edits import Restore, Task
from ...core.messages import Message
from ...core.receipts import Receipt
from ...errors import BadInput
from ..text import beginning, said, shortened
from .rendering import brief, cost_table, kind_table, largest
from .session import Talk

__all__ = ["COMMANDS", "Command", "is_over"]

_RECENT = 20
"""Messages of the history that are told unless more are asked for."""


class Command(Struct, frozen=True):
    """One command."""

    name: str
    takes: str
    about: str
    run: Callable[[Talk, str], str]
    """What it answers; "" for nothing. Raises BadInput and the conversation's errors."""


def is_over(talk: Talk, line: str) -> bool:
    """Carry out a line that begins with a slash. Whether the chat is at its end. Raises what the command raises."""
    name, _, rest = line[1:].strip().partition(" ")
    name = _OTHER_NAMES.get(name, name)
    if name == "quit":
        return True
    command = next((one for one in COMMANDS if one.name == name), None)
    if command is None:
        raise BadInput(_unknown(name))
    if answer := command.run(talk, rest.strip()):
        talk.note(answer)
    return False


def _unknown(name: str) -> str:
    near = get_close_matches(name, [*(one.name for one in COMMANDS), *_OTHER_NAMES], n=3, cutoff=0.5)
    meant = f" Did you mean {', '.join(f'/{one}' for one in near)}?" if near else ""
    return f"There is no /{name[:40]}.{meant} /help tells what there is; a line that begins with // is for the model."


# ---------------------------------------------------------------------------------------------------- what they do


def _context(talk: Talk, rest: str) -> str:
    context = talk.context()
    whole = f"said in whole {context.tokens_whole:,} tokens, shown as {context.tokens_shown:,}"
    rows = largest(talk.chat.view)
    entries = f"{context.entries} of {context.messages} messages shown; {whole}. The largest:" if rows else ""
    return "\n".join(filter(None, [_table(kind_table(context), 1), entries, _table(rows, 2)]))


def _why(talk: Talk, rest: str) -> str:
    return talk.chat.explain(_handle(rest, "/why 12"))


def _expand(talk: Talk, rest: str) -> str:
    handle = _handle(rest, "/expand 12")
    before = talk.chat.view.tokens
    talk.chat.expand(handle, reason="asked for by /expand")
    added = talk.chat.view.tokens - before
    original = _text(talk.chat.originals(handle))
    return f"{handle} is shown whole again from the next call on, {added:,} tokens more:\n{original}"


def _pin(talk: Talk, rest: str) -> str:
    handle = _handle(rest, "/pin 12")
    talk.chat.pin(handle)
    return f"{handle} is pinned: it stays as it is shown now. /unpin {handle} takes that back."


def _unpin(talk: Talk, rest: str) -> str:
    handle = _handle(rest, "/unpin 12")
    talk.chat.unpin(handle)
    return f"{handle} is no longer pinned."


def _compact(talk: Talk, rest: str) -> str:
    talk.tell_receipt(talk.chat.compact(rest))
    return ""


def _undo(talk: Talk, rest: str) -> str:
    what: Receipt | int
    if rest:
        if not _COUNT.fullmatch(rest):
            raise BadInput("/undo takes the number of an edit, as /why tells it, or nothing for the newest change.")
        what = int(rest)
    else:
        what = _newest(talk.chat.receipts())
    receipt = talk.chat.undo(what)
    return f"Taken back: {receipt.tokens_before:,} -> {receipt.tokens_after:,} tokens."


def _newest(receipts: Sequence[Receipt]) -> Receipt:
    """The newest change that was not taken back."""
    undone = {
        number
        for receipt in receipts
        if receipt.author == "undo"
        for edit in receipt.edits
        if isinstance(edit, Restore)
        for number in edit.edits
    }
    for receipt in reversed(receipts):
        made = {number for number, edit in enumerate(receipt.edits, receipt.first) if not isinstance(edit, Task)}
        if receipt.author != "undo" and not undone >= made:
            return receipt
    raise BadInput("There is nothing to take back: no edit changes what is shown.")


def _fork(talk: Talk, rest: str) -> str:
    if not rest:
        raise BadInput("A fork needs a name, such as /fork another-try.")
    before = talk.name
    talk.fork(rest)
    return f"This is {rest} now, with all that was said; {before} stays as it is."


def _cost(talk: Talk, rest: str) -> str:
    context = talk.context()
    note = "Saved: against sending everything whole, with a warm cache both ways; summaries by a model are not in it."
    if context.dollars is not None:
        note += f" All at the price of {talk.model}."
    return f"{_table(cost_table(context), 1)}\n{note}"


def _search(talk: Talk, rest: str) -> str:
    if not rest:
        raise BadInput('What is to be looked for? Such as /search port, or /search "the port" for words together.')
    hits = talk.chat.search(rest)
    told = [(hit.handle, hit.who, f"turn {hit.turn}", brief(hit.snippet, 100)) for hit in hits]
    return _table(told, 4) if told else f"In what is not shown whole nothing says {rest!r:.60}."


def _tools(talk: Talk, rest: str) -> str:
    rows = [
        (tool.name, brief(tool.description, 80), "you are asked first" if talk.asks(tool) else "")
        for tool in talk.tools
    ]
    rows.append(("expand", "Shows what was shortened or left out.", ""))
    return _table(rows, 3)


def _history(talk: Talk, rest: str) -> str:
    if rest and not _COUNT.fullmatch(rest):
        raise BadInput("/history takes how many messages to show, such as /history 50.")
    rows = talk.chat.history(max(1, len(talk.chat) - int(rest or _RECENT) + 1))
    shown = {entry.id for entry in talk.chat.view if not entry.shrunk and entry.span is None}
    told = [
        (row.handle, row.message.role, beginning(row.message, 80), "" if row.id in shown else "not shown whole")
        for row in rows
    ]
    return _table(told, 4) if told else "Nothing was said yet."


def _model(talk: Talk, rest: str) -> str:
    if not rest:
        return f"{talk.model}. /model NAME takes another one, such as anthropic:claude-haiku-4-5."
    talk.use(rest)
    return f"From now on {talk.model} answers, in a window of {talk.chat.budget.window:,} tokens."


def _resume(talk: Talk, rest: str) -> str:
    runs, newest = talk.chat.runs(), talk.chat.history(max(1, len(talk.chat)))
    is_answered = bool(newest) and newest[-1].message.role == "assistant" and not newest[-1].message.calls
    if not newest or (is_answered and (not runs or runs[-1].state == "done")):  # A fork has no runs of its own yet.
        raise BadInput("There is nothing to go on with: the last answer came to its end.")
    talk.say(None)
    return ""


def _help(talk: Talk, rest: str) -> str:
    told = [(f"/{one.name} {one.takes}".rstrip(), one.about) for one in COMMANDS]
    return f"{_table([*told, ('/quit', 'end; so does Ctrl-D')], 2)}\nA message is named by its number: 12 or m12."


COMMANDS = (
    Command("context", "", "what the window holds: tokens by kind, and the largest messages", _context),
    Command("why", "N", "why message N looks as it does", _why),
    Command("expand", "N", "show message N whole again", _expand),
    Command("pin", "N", "keep message N as it is shown", _pin),
    Command("unpin", "N", "take a pin back", _unpin),
    Command("compact", "[FOCUS]", "show the oldest part as a summary, now", _compact),
    Command("undo", "[EDIT]", "take back the newest change of what is shown, or one edit", _undo),
    Command("fork", "NAME", "go on in a copy of this conversation", _fork),
    Command("cost", "", "what was billed, and what was saved", _cost),
    Command("search", "WORDS", "find words in what is not shown whole", _search),
    Command("tools", "", "what the model may use", _tools),
    Command("history", "[COUNT]", "what was said, shown or not", _history),
    Command("model", "[NAME]", "let another model answer", _model),
    Command("resume", "", "go on with an answer that broke off or was stopped", _resume),
    Command("help", "", "this", _help),
)
_OTHER_NAMES = {"exit": "quit", "q": "quit", "?": "help", "h": "help"}
_COUNT = re.compile(r"[1-9]\d{0,8}")
_NUMBER = re.compile(r"m?(\d+)((?:\.\d+)*)(?:-m?(\d+))?")


def _handle(text: str, example: str) -> str:
    """`12`, `m12`, `m12.1` or `3-17` as a handle."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise BadInput(f"Which message? Such as {example}; /history and /context tell the numbers.")
    return f"m{found[1]}{found[2]}" + (f"-m{found[3]}" if found[3] else "")


def _text(originals: Sequence[Message]) -> str:
    return shortened("\n".join(map(said, originals)), 8, 120).replace(", --full shows all", "")


def _table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Rows with their columns in line, the first `left` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def cells(row: Sequence[str]) -> Iterator[str]:
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            yield cell.ljust(width) if place < left else cell.rjust(width)

    return "\n".join("  ".join(chain([" "], cells(row))).rstrip() for row in rows)
