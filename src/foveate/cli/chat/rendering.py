"""What a chat tells, and how it reads: a pure function from what happened to pieces of text with their styles.

Knows the events of agents and nothing of terminals. What a model or a tool wrote is told as it was written: whoever
prints the pieces makes its control characters visible (`screen.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...agents.events import (
    AgentEvent,
    ModelReplied,
    ReasoningDelta,
    RunEnded,
    SubAgentEvent,
    TextDelta,
    ToolAnswered,
    ToolCalled,
    ViewChanged,
)
from ...core.context import Context, ContextKind, tokens_by_kind
from ...core.messages import Message, ToolCall, ToolResult
from ...core.receipts import Receipt
from ...core.sizes import tokens_of
from ...core.view import Entry, View
from ...expansion.tool import NAMES

__all__ = [
    "COLOURS",
    "Notice",
    "Piece",
    "Question",
    "Shown",
    "Told",
    "Waiting",
    "asked_for",
    "bar",
    "brief",
    "cost_table",
    "kind_table",
    "largest",
    "money",
    "shown",
    "status",
    "waits_for",
]

_JUDGED = 4_000
"""Characters of a call that are shown to whoever is asked for it."""


class Piece(Struct, frozen=True):
    """Some text, and how it looks: a style of rich, or ""."""

    text: str
    style: str = ""


class Notice(Struct, frozen=True):
    """Something the chat itself says, in whole lines."""

    text: str
    style: str = ""


class Question(Struct, frozen=True):
    """Whether a call may be made. Whoever reads answers with the next line."""

    call: ToolCall


class Waiting(Struct, frozen=True):
    """The model is asked, and nothing has come of it yet."""


Told = AgentEvent | Context | Notice | Question | Waiting
"""All that a chat tells."""


class Shown(Struct, frozen=True):
    """What of it is on the screen already, as far as it bears on what comes next."""

    open: str = ""
    """The style of the line that is not ended yet; "" where none is, "said" for the model's words."""
    has_streamed: bool = False
    """Whether words of the reply that comes have been shown."""


def shown(before: Shown, told: Told) -> tuple[Shown, list[Piece]]:
    """What is shown next, and how the screen stands then."""
    match told:
        case TextDelta(text):
            return _flowing(before, "said", "", text)
        case ReasoningDelta(text):
            return _flowing(before, "thought", "dim italic", text)
        case ModelReplied(message):
            pieces = _ended(before)
            if not before.has_streamed and message.text.strip():
                pieces.append(Piece(f"{message.text.strip()}\n"))
            for call in message.calls:  # What the conversation answers itself, nobody else tells of.
                if call.name in NAMES:
                    pieces += [Piece(f"  * {call.name}", "cyan"), Piece(f" {asked_for(call)}\n")]
            return Shown(), pieces
        case ToolCalled() | Waiting():
            return before, []
        case SubAgentEvent(event=event):
            return shown(before, event)
        case ViewChanged(receipt):
            return _block(before, Piece(f"{_of_receipt(receipt)}\n", "dim"))
        case ToolAnswered(call, result, seconds):
            return _block(before, *_of_result(call, result, seconds))
        case RunEnded(outcome):
            return _block(before, *_of_end(outcome.run.state, outcome.run.reason))
        case Context():
            return _block(before, *(Piece(text, style) for text, style in status(told)), Piece("\n"))
        case Notice(text, style):
            return _block(before, Piece(f"{text}\n", style))
        case Question(call):
            return _block(before, Piece(f"  ? {call.name}", "yellow"), Piece(f" {_whole(call)}\n"))


def waits_for(told: Told) -> str:
    """What the chat waits for once this has happened; "" where it waits for nothing, or for the user."""
    match told:
        case ToolCalled(call):
            return f"{call.name} {asked_for(call)} ...".replace("  ", " ")
        case Waiting() | ToolAnswered() | ViewChanged():
            return "..."
    return ""


def asked_for(call: ToolCall, width: int = 72) -> str:
    """What a call is about, on one line: its arguments, without the names where there is no need for them."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return brief(call.arguments, width)
    if not isinstance(given, dict):
        return brief(call.arguments, width)
    first, *others = [*given.items(), ("", None)]
    said = [_value(first[1])] if first[0] else []
    said += [f"{name}={_value(value)}" for name, value in others if name]
    return brief(" ".join(said), width)


def brief(text: str, width: int = 72) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 8 * width].split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _whole(call: ToolCall) -> str:
    """All that a call is about, to be judged: nothing of it is left out unseen."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    match given:
        case {**items} if len(items) == 1:
            text = _value(next(iter(items.values())))
        case {**items}:
            text = "".join(f"\n{name}: {_value(value)}" for name, value in items.items())
        case _:
            text = call.arguments
    if len(text) > _JUDGED:
        left_out = len(text) - _JUDGED
        text = f"{text[: _JUDGED // 2]}\n[... {left_out:,} characters are left out here ...]\n{text[-_JUDGED // 2 :]}"
    return text.replace("\n", "\n      ")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flowing(before: Shown, open: str, style: str, text: str) -> tuple[Shown, list[Piece]]:
    """Words as they come: on the line that is open, where it is of their kind."""
    pieces = [] if before.open == open else _ended(before)
    if before.open != open:
        text = text.lstrip("\n")
    is_said = before.has_streamed or (open == "said" and bool(text.strip()))
    if not text:
        return replace(before, open="" if pieces else before.open, has_streamed=is_said), pieces
    return Shown("" if text.endswith("\n") else open, is_said), [*pieces, Piece(text, style)]


def _block(before: Shown, *pieces: Piece) -> tuple[Shown, list[Piece]]:
    """Lines of their own."""
    return replace(before, open=""), [*_ended(before), *pieces]


def _ended(before: Shown) -> list[Piece]:
    return [Piece("\n")] if before.open else []


def _of_receipt(receipt: Receipt) -> str:
    who = ", ".join(receipt.policies) or receipt.author
    edits = len(receipt.edits)
    size = f"{receipt.tokens_before:,} -> {receipt.tokens_after:,} tokens"
    written = f", written by {', '.join(receipt.by)}" if receipt.by else ""
    undo = "" if receipt.author == "undo" else "; /undo takes it back"
    return f"  ~ {who}: {edits} edit{'s' * (edits != 1)}, {size}{written}{undo}"


def _of_result(call: ToolCall, result: ToolResult, seconds: float) -> Iterator[Piece]:
    is_ok = result.state == "ok"
    yield Piece(f"  {'*' if is_ok else '!'} {call.name}", "cyan" if is_ok else "red")
    if about := asked_for(call):
        yield Piece(f" {about}")
    if is_ok:
        tokens = tokens_of(Message("tool", (result,)))
        yield Piece(f"  {tokens:,} tokens, {seconds:.1f} s\n", "dim")
    else:
        yield Piece(f"  {brief(result.text, 160)}\n", "red")


_LIMITS = {
    "turns": "it has called the model as often as it may",
    "tokens": "it has used as many tokens as it may",
    "money": "it has cost as much as it may",
    "time": "it has taken as long as it may",
    "length": "its answer was cut off, for it was as long as it may be",
}
_REFUSALS = {
    "refusal": "the model refuses to answer",
    "filtered": "a filter of the provider has cut the answer off",
}


def _of_end(state: str, reason: str) -> Iterator[Piece]:
    if state == "stopped":
        yield Piece(f"  Stopped: {_LIMITS.get(reason, reason)}. /resume goes on.\n", "yellow")
    elif state == "failed":
        yield Piece(f"  It did not get through: {_REFUSALS.get(reason, reason)}\n", "red")


COLOURS: dict[ContextKind, str] = {
    "system": "white",
    "tools": "bright_black",
    "user": "green",
    "assistant": "blue",
    "reasoning": "bright_blue",
    "calls": "cyan",
    "results": "yellow",
    "media": "bright_yellow",
    "plugins": "bright_green",
    "summaries": "magenta",
    "shrunk": "bright_magenta",
    "expanded": "red",
}
_WIDTH = 24
"""Characters of the bar."""

Styled = tuple[str, str]
"""A text and its style."""


def status(context: Context) -> Iterator[Styled]:
    """One line: a bar of the window by kind, its largest kinds, the cache's share, money so far and saved."""
    yield "  [", "dim"
    yield from bar(context)
    yield "] ", "dim"
    share = f" of {context.window:,} ({_percent(context.tokens / context.window)})" if context.window else ""
    largest = sorted(context.kinds.items(), key=lambda item: -item[1])[:3]
    yield f"{context.tokens:,}{share}", "dim"
    for place, (kind, tokens) in enumerate(largest):
        yield ", " if place else ": ", "dim"
        yield f"{kind} {tokens:,}", COLOURS[kind]
    if context.cached is not None:
        yield f" | cache {_percent(context.cached)}", "dim"
    if context.totals.calls_billed:
        so_far, saved = money(context)
        unit = "" if context.dollars is not None else " input tokens"
        yield f" | cost {so_far}, saved {saved}{unit}", "dim"


def bar(context: Context, width: int = _WIDTH) -> Iterator[Styled]:
    """The window as a bar: what is taken in the colours of its kinds, dots for what is free."""
    whole = max(context.window or 0, context.tokens, 1)
    end = 0.0
    drawn = 0
    for kind, tokens in context.kinds.items():
        end += tokens * width / whole
        if round(end) > drawn:
            yield "#" * (round(end) - drawn), COLOURS[kind]
            drawn = round(end)
    if drawn < width:
        yield "." * (width - drawn), "dim"


def money(context: Context) -> tuple[str, str]:
    """What was billed and what was saved: dollars where they are known, else tokens at the price of input."""
    if context.dollars is not None and context.dollars_saved is not None:
        return _dollars(context.dollars), _dollars(context.dollars_saved)
    return f"{round(context.cost):,}", f"{round(context.saved):,}"


def kind_table(context: Context) -> list[tuple[str, str, str]]:
    """Kind, tokens and share of the window, and what is kept free and is free; the largest kind first."""
    rows = [(kind, tokens) for kind, tokens in sorted(context.kinds.items(), key=lambda item: -item[1])]
    told = [(kind, f"{tokens:,}", _share(tokens, context)) for kind, tokens in rows]
    if context.window is None or context.free is None:
        return [*told, ("all", f"{context.tokens:,}", "")]
    return [
        *told,
        ("all", f"{context.tokens:,}", _share(context.tokens, context)),
        ("kept for the answer", f"{context.reserve:,}", _share(context.reserve, context)),
        ("free", f"{context.free:,}", _share(context.free, context)),
        ("window", f"{context.window:,}", ""),
    ]


def largest(view: View, most: int = 8) -> list[tuple[str, str, str, str]]:
    """Handle, what it is, tokens, and how large it was, of the largest messages that are shown."""
    entries = sorted(view.entries, key=lambda entry: (-entry.tokens, entry.position))[:most]
    return [(_handle(entry), _what(entry), f"{entry.tokens:,}", _facts(entry)) for entry in entries]


def cost_table(context: Context) -> list[tuple[str, str]]:
    """What was billed, what would have been, and what that is in money; a figure a row."""
    totals = context.totals
    used = totals.usage
    so_far, saved = money(context)
    unit = "US dollars" if context.dollars is not None else "in tokens at the price of input"
    rows = [("calls", f"{totals.calls:,}")]
    if totals.calls_billed:
        rows += [
            ("input, not from the cache", f"{used.input or 0:,}"),
            ("read from the cache", f"{used.cache_read or 0:,}"),
            ("written to the cache", f"{used.cache_write or 0:,}"),
            ("output", f"{used.output or 0:,}"),
        ]
    if context.cached_overall is not None:
        rows.append(("share of the cache", _percent(context.cached_overall)))
    rows += [
        ("sent, all calls", f"{totals.tokens_sent:,}"),
        ("if everything were sent whole", f"{totals.tokens_whole:,}"),
        ("written again for edits", f"{totals.tokens_rebilled:,}"),
        (f"cost so far, {unit}", so_far),
        (f"saved, {unit}", saved),
    ]
    return rows


def _handle(entry: Entry) -> str:
    return entry.handle if entry.span is None else f"{entry.handle}-m{entry.last}"


def _what(entry: Entry) -> str:
    kinds = tokens_by_kind(entry)
    kind = max(kinds, key=kinds.__getitem__)
    return f"{kind} ({entry.tool})" if entry.tool else kind


def _facts(entry: Entry) -> str:
    facts: Sequence[str] = (
        *([f"{entry.stamp.tokens:,} as said"] if entry.span is None and entry.tokens != entry.stamp.tokens else ()),
        *(["pinned"] if entry.is_pinned() else ()),
    )
    return ", ".join(facts)


def _share(tokens: int, context: Context) -> str:
    return _percent(tokens / context.window) if context.window else ""


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _dollars(amount: float) -> str:
    return f"-${-amount:.4f}" if amount < 0 else f"${amount:.4f}"
