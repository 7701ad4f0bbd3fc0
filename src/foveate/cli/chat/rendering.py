"""Text of a chat: functions from events to pieces of text with styles.

The functions are pure and know nothing of terminals. They copy the text of a model or a tool unchanged; `screen.py`
makes its control characters visible.
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
from ...core.handles import Handle
from ...core.messages import Message, ToolCall, ToolResult
from ...core.plurals import plural
from ...core.receipts import Receipt
from ...core.sizes import tokens_of
from ...core.totals import ModelTotals
from ...core.view import Entry, View
from ...expand.tool import NAMES
from ..text import brief

__all__ = [
    "COLOURS",
    "ChatEvent",
    "Notice",
    "Piece",
    "Question",
    "ScreenState",
    "Waiting",
    "bar",
    "bill_table",
    "call_summary",
    "kind_table",
    "largest",
    "money",
    "render",
    "saving_table",
    "status",
    "waiting_text",
]


_QUESTION_CHARACTERS = 4_000
"""Largest number of characters of a call that a question shows."""
_SUMMARY_WIDTH = 72
"""Characters of the arguments of a call on one line."""


class Piece(Struct, frozen=True):
    """Some text and its style: a style of rich, or ""."""

    text: str
    style: str = ""


class Notice(Struct, frozen=True):
    """A message of the chat itself, in whole lines."""

    text: str
    style: str = ""


class Question(Struct, frozen=True):
    """A request to approve a call. The next line of the user is the answer."""

    call: ToolCall


class Waiting(Struct, frozen=True):
    """The model has been called and has not answered yet."""


ChatEvent = AgentEvent | Context | Notice | Question | Waiting
"""Everything that a chat shows."""


class ScreenState(Struct, frozen=True):
    """The part of the screen's state that decides how the next event looks."""

    open: str = ""
    """Style of the line that has not ended yet: "said" for text of the model, "" for no such line."""
    has_streamed: bool = False
    """Whether text of the current reply is on the screen."""


def render(before: ScreenState, event: ChatEvent) -> tuple[ScreenState, list[Piece]]:
    """Return the new state of the screen, and the pieces to print for `event`."""
    match event:
        case TextDelta(text):
            return _streamed(before, "said", "", text)
        case ReasoningDelta(text):
            return _streamed(before, "thought", "dim italic", text)
        case ModelReplied(message):
            pieces = _line_end(before)
            if not before.has_streamed and message.text.strip():
                pieces.append(Piece(f"{message.text.strip()}\n"))
            for call in message.calls:  # The conversation answers these calls itself, without an event.
                if call.name in NAMES:
                    pieces += [Piece(f"  * {call.name}", "cyan"), Piece(f" {call_summary(call)}\n")]
            return ScreenState(), pieces
        case ToolCalled() | Waiting():
            return before, []
        case SubAgentEvent(event=event):
            return render(before, event)
        case ViewChanged(receipt):
            return _block(before, Piece(f"{_receipt_text(receipt)}\n", "dim"))
        case ToolAnswered(call, result, seconds):
            return _block(before, *_result_pieces(call, result, seconds))
        case RunEnded(outcome):
            return _block(before, *_end_pieces(outcome.run.state, outcome.run.reason))
        case Context():
            return _block(before, *(Piece(text, style) for text, style in status(event)), Piece("\n"))
        case Notice(text, style):
            return _block(before, Piece(f"{text}\n", style))
        case Question(call):
            return _block(before, Piece(f"  ? {call.name}", "yellow"), Piece(f" {_question_text(call)}\n"))


def waiting_text(event: ChatEvent) -> str:
    """Return what the chat waits for after `event`; "" if it waits for nothing, or for the user."""
    match event:
        case ToolCalled(call):
            return f"{call.name} {call_summary(call)} ...".replace("  ", " ")
        case Waiting() | ToolAnswered() | ViewChanged():
            return "..."
    return ""


def call_summary(call: ToolCall) -> str:
    """Return the arguments of a call on one line; the first argument without its name."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return brief(call.arguments, _SUMMARY_WIDTH)
    if not isinstance(arguments, dict):
        return brief(call.arguments, _SUMMARY_WIDTH)
    first, *others = [*arguments.items(), ("", None)]
    words = [_value(first[1])] if first[0] else []
    words += [f"{name}={_value(value)}" for name, value in others if name]
    return brief(" ".join(words), _SUMMARY_WIDTH)


def _question_text(call: ToolCall) -> str:
    """Return all arguments of a call; the text says how many characters it omits."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    match arguments:
        case {**items} if len(items) == 1:
            text = _value(next(iter(items.values())))
        case {**items}:
            text = "".join(f"\n{name}: {_value(value)}" for name, value in items.items())
        case _:
            text = call.arguments
    if len(text) > _QUESTION_CHARACTERS:
        half = _QUESTION_CHARACTERS // 2
        text = f"{text[:half]}\n[... {len(text) - _QUESTION_CHARACTERS:,} characters omitted ...]\n{text[-half:]}"
    return text.replace("\n", "\n      ")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _streamed(before: ScreenState, open: str, style: str, text: str) -> tuple[ScreenState, list[Piece]]:
    """Append streamed text to the open line if that has the same kind."""
    pieces = [] if before.open == open else _line_end(before)
    if before.open != open:
        text = text.lstrip("\n")
    has_streamed = before.has_streamed or (open == "said" and bool(text.strip()))
    if not text:
        return replace(before, open="" if pieces else before.open, has_streamed=has_streamed), pieces
    return ScreenState("" if text.endswith("\n") else open, has_streamed), [*pieces, Piece(text, style)]


def _block(before: ScreenState, *pieces: Piece) -> tuple[ScreenState, list[Piece]]:
    """Print whole lines."""
    return replace(before, open=""), [*_line_end(before), *pieces]


def _line_end(before: ScreenState) -> list[Piece]:
    return [Piece("\n")] if before.open else []


def _receipt_text(receipt: Receipt) -> str:
    author = ", ".join(receipt.policies) or receipt.author
    edits = plural(len(receipt.edits), "edit")
    size = f"{receipt.tokens_before:,} -> {receipt.tokens_after:,} tokens"
    written = f", written by {', '.join(receipt.by)}" if receipt.by else ""
    undo = "" if receipt.author == "undo" else "; /undo reverts it"
    return f"  ~ {author}: {edits}, {size}{written}{undo}"


def _result_pieces(call: ToolCall, result: ToolResult, seconds: float) -> Iterator[Piece]:
    is_ok = result.state == "ok"
    yield Piece(f"  {'*' if is_ok else '!'} {call.name}", "cyan" if is_ok else "red")
    if summary := call_summary(call):
        yield Piece(f" {summary}")
    if is_ok:
        tokens = tokens_of(Message("tool", (result,)))
        yield Piece(f"  {tokens:,} tokens, {seconds:.1f} s\n", "dim")
    else:
        yield Piece(f"  {brief(result.text, 160)}\n", "red")


_LIMITS = {
    "turns": "the answer reached the limit of model calls",
    "tokens": "the answer reached the limit of tokens",
    "money": "the answer reached the limit of money",
    "time": "the answer reached the limit of time",
    "length": "the provider cut the answer at its largest length",
}
_REFUSALS = {
    "refusal": "the model refuses to answer",
    "filtered": "a filter of the provider cut the answer",
}


def _end_pieces(state: str, reason: str) -> Iterator[Piece]:
    if state == "stopped":
        yield Piece(f"  Stopped: {_LIMITS.get(reason, reason)}. /resume continues it.\n", "yellow")
    elif state == "failed":
        yield Piece(f"  Failed: {_REFUSALS.get(reason, reason)}\n", "red")


# ------------------------------------------------------------------------------------------- the meter of the window

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
_BAR_WIDTH = 24
"""Characters."""

Styled = tuple[str, str]
"""A text and its style."""


def status(context: Context) -> Iterator[Styled]:
    """Yield one line: a bar of the window by kind, the largest kinds, the cache's share, the cost and the saving."""
    yield "  [", "dim"
    yield from bar(context)
    yield "] ", "dim"
    share = f" of {context.window:,} ({_percent(context.tokens / context.window)})" if context.window else ""
    kinds = sorted(context.kinds.items(), key=lambda item: -item[1])[:3]
    yield f"{context.tokens:,}{share}", "dim"
    for place, (kind, tokens) in enumerate(kinds):
        yield ", " if place else ": ", "dim"
        yield f"{kind} {tokens:,}", COLOURS[kind]
    if context.cached is not None:
        yield f" | cache {_percent(context.cached)}", "dim"
    if context.totals.calls_billed:
        cost, saved = money(context)
        unit = " input tokens" if context.dollars is None else ""
        if context.dollars is not None and context.unpriced:
            unit = f" (without {_names(context.unpriced)})"
        yield f" | cost {cost}, saved {saved}{unit}", "dim"


def bar(context: Context, width: int = _BAR_WIDTH) -> Iterator[Styled]:
    """Yield the window as a bar: used tokens in the colours of their kinds, and dots for the free part."""
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
    """Return the cost and the saving: in dollars if the price is known, else in tokens at the price of input."""
    if context.dollars is not None and context.dollars_saved is not None:
        return _dollars(context.dollars), _dollars(context.dollars_saved)
    return f"{round(context.cost):,}", f"{round(context.saved):,}"


def kind_table(context: Context) -> list[tuple[str, str, str]]:
    """Return rows of kind, tokens and share of the window, the largest kind first, then the totals."""
    kinds = sorted(context.kinds.items(), key=lambda item: -item[1])
    rows = [(str(kind), f"{tokens:,}", _share(tokens, context)) for kind, tokens in kinds]
    if context.window is None or context.free is None:
        return [*rows, ("all", f"{context.tokens:,}", "")]
    return [
        *rows,
        ("all", f"{context.tokens:,}", _share(context.tokens, context)),
        ("reserved for the answer", f"{context.reserve:,}", _share(context.reserve, context)),
        ("free", f"{context.free:,}", _share(context.free, context)),
        ("window", f"{context.window:,}", ""),
    ]


def largest(view: View, most: int = 8) -> list[tuple[str, str, str, str]]:
    """Return rows of the largest messages in the view: handle, kind, tokens, original size."""
    entries = sorted(view.entries, key=lambda entry: (-entry.tokens, entry.position))[:most]
    return [
        (str(Handle(entry.position, entry.last)), _kind(entry), f"{entry.tokens:,}", _facts(entry)) for entry in entries
    ]


def bill_table(context: Context) -> list[tuple[str, ...]]:
    """Return a title row, and the bill of each model; the last row has their sums. Empty without a bill.

    Each call has the price of its own model. Without any known price, costs are in tokens at the price of input.
    """
    models = [(name, model) for name, model in context.totals.by_model.items() if model.calls_billed]
    rows = [_bill_row(name or "unknown", model, _cost_cell(context, name, model)) for name, model in models]
    if len(models) > 1:
        everything = ModelTotals(context.totals.calls_billed, context.totals.usage)
        rows.append(_bill_row("all", everything, money(context)[0]))
    unit = "cost" if context.dollars is not None else "cost in input tokens"
    return [("model", "calls", "input", "cached", "written", "other", "output", unit), *rows] if rows else []


def _bill_row(name: str, model: ModelTotals, cost: str) -> tuple[str, ...]:
    used = model.usage
    counts = (used.prompt_tokens, used.cache_read, used.cache_write, used.input, used.output)
    return (name, f"{model.calls_billed:,}", *(f"{count or 0:,}" for count in counts), cost)


def _cost_cell(context: Context, name: str, model: ModelTotals) -> str:
    if context.dollars is None:
        return f"{round(model.cost(context.prices)):,}"
    return _dollars(context.dollars_by_model[name]) if name in context.dollars_by_model else "no price"


def saving_table(context: Context) -> list[tuple[str, str]]:
    """Return rows of a label and a figure: the content of all requests, what they would hold otherwise, the saving."""
    totals = context.totals
    messages, whole, again = (
        round(tokens * context.scale) for tokens in (totals.tokens_sent, totals.tokens_whole, totals.tokens_rebilled)
    )
    rows = [("messages in all calls", f"{messages:,}")]
    prompts = totals.usage.prompt_tokens
    if prompts is not None and totals.calls_billed == totals.calls and prompts >= messages:
        rows.append(("system prompt and tools in all calls", f"{prompts - messages:,}"))
        rows.append(("input of all calls", f"{prompts:,}"))
    unit = "US dollars" if context.dollars is not None else "in tokens at the price of input"
    return [
        *rows,
        ("messages if each call sent the whole history", f"{whole:,}"),
        ("messages written again because of edits", f"{again:,}"),
        (f"saved, {unit}", money(context)[1]),
    ]


def _names(models: Sequence[str]) -> str:
    """Return the name of one model, or the number of several."""
    return (models[0] or "an unknown model") if len(models) == 1 else f"{len(models)} models"


def _kind(entry: Entry) -> str:
    kinds = tokens_by_kind(entry)
    kind = max(kinds, key=kinds.__getitem__)
    return f"{kind} ({entry.tool})" if entry.tool else kind


def _facts(entry: Entry) -> str:
    facts: Sequence[str] = (
        *([f"{entry.stamp.tokens:,} originally"] if entry.span is None and entry.tokens != entry.stamp.tokens else ()),
        *(["pinned"] if entry.is_pinned() else ()),
    )
    return ", ".join(facts)


def _share(tokens: int, context: Context) -> str:
    return _percent(tokens / context.window) if context.window else ""


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _dollars(amount: float) -> str:
    return f"-${-amount:.4f}" if amount < 0 else f"${amount:.4f}"
