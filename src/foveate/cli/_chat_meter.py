"""The meter of a chat as text: one line after each reply, and the tables of /context and /cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.context import Context, ContextKind, kinds_of
from ..core.view import Entry, View

__all__ = ["COLOURS", "bar", "cost_table", "kind_table", "largest", "money", "status"]

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
    kinds = kinds_of(entry)
    kind = max(kinds, key=kinds.__getitem__)
    return f"{kind} ({entry.tool})" if entry.tool else kind


def _facts(entry: Entry) -> str:
    facts: Sequence[str] = (
        *([f"{entry.stamp.tokens:,} as said"] if entry.span is None and entry.tokens != entry.stamp.tokens else ()),
        *(["pinned"] if entry.pinned else ()),
    )
    return ", ".join(facts)


def _share(tokens: int, context: Context) -> str:
    return _percent(tokens / context.window) if context.window else ""


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _dollars(amount: float) -> str:
    return f"-${-amount:.4f}" if amount < 0 else f"${amount:.4f}"
