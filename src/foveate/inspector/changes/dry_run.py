"""A plan that is not applied, as figures: what it changes, saves and rewrites."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ...core.call_context import Prices
from ...core.context import Rates
from ...core.economy import is_cold
from ...core.edits import Edit, Hide, Replace, Restore, Span, Summarize, Target
from ...core.handles import Handle
from ...core.messages import Message
from ...core.planner import Plan
from ...core.view import Entry, View

__all__ = ["DryRun", "EntryChange", "NeededSummary", "RequestFigures", "cached_tokens", "measure_plan"]


class EntryChange(Struct, frozen=True):
    """One place of the view that the plan changes."""

    handle: str
    """Such as `m12`, or `m3-m17` for several messages."""
    position: int
    """The position of the first of these messages in the history."""
    was: str
    """`whole`, `shrunk`, `summary`, `nothing`, or the number of messages that a summary replaces."""
    becomes: str
    """The same after the plan."""
    tokens_before: int
    """Tokens that this place takes without the plan."""
    tokens_after: int
    """Tokens that it takes with the plan."""
    before: Message | None
    """The message that is shown without the plan; None if nothing, or several messages are."""
    after: Message | None
    """The message that is shown with the plan; None if nothing is."""
    policies: tuple[str, ...] = ()
    """The policies that ask for the change."""
    reasons: tuple[str, ...] = ()
    """Their reasons."""


class RequestFigures(Struct, frozen=True):
    """The input of the next model call."""

    tokens: int
    """Tokens of all messages, estimated, without the program's system prompt and tools."""
    cached: int
    """Tokens of the beginning that is the same as in the newest request, so that the provider's cache holds it."""
    cost: float
    """In tokens at the price of uncached input."""
    dollars: float | None = None
    """US dollars; None if the prices of the model are not known."""

    @property
    def written(self) -> int:
        """Return the tokens after the cached beginning."""
        return self.tokens - self.cached


class NeededSummary(Struct, frozen=True):
    """A summary that the plan needs before it is complete."""

    policy: str
    """The policy that asks for it."""
    is_due: bool
    """Whether the plan waits for it. Others are written ahead of time."""


class DryRun(Struct, frozen=True):
    """The effect of a plan. Tokens are estimates of the conversation's counter."""

    turn: int
    """The number of the model call that would see it first."""
    before: RequestFigures
    """The next request without the plan."""
    after: RequestFigures
    """The next request with the plan."""
    rewritten: int
    """Tokens that the cache holds now, and that a provider writes again after the plan."""
    is_cold: bool
    """Whether the provider's cache no longer holds the conversation, or never did."""
    saved_later: float
    """Saved by each further request, in tokens at the price of uncached input."""
    dollars_later: float | None
    """The same in US dollars; None if the prices are not known."""
    pays_after: int | None
    """Number of further requests after which the plan has paid for the rewritten cache; 0: at once, None: never."""
    usable: int | None
    """Tokens that the messages of a request may take; None without a window."""
    changes: tuple[EntryChange, ...]
    """The changed places, in order."""
    summaries: tuple[NeededSummary, ...]
    """The summaries that are still to be written."""
    edits: int
    """Number of edits that the plan would commit."""
    overhead: int = 0
    """Tokens of the newest request outside its messages: system prompt and tools, as far as they are known."""

    def __bool__(self) -> bool:
        """Return whether there is anything to apply."""
        return bool(self.edits or any(summary.is_due for summary in self.summaries))


def measure_plan(
    plan: Plan, sent: Sequence[Entry], *, first: int, rates: Rates | None = None, overhead: int = 0
) -> DryRun:
    """Return the effect of a plan.

    `sent`: the entries of the newest request, which the provider's cache holds. `first`: the number that the first edit
    of the plan would have. `rates`: the model's prices in US dollars (`core.context.rates_of`). `overhead`: tokens of
    the request outside its messages, which the budget of the plan leaves out.
    """
    prices = plan.before.call.prices
    cold = is_cold(plan.before, prices)
    figures = [_figures(view, () if cold else sent, prices, rates) for view in (plan.before, plan.after)]
    before, after = figures
    saving = prices.read * (before.tokens - after.tokens)
    extra = after.cost - before.cost
    return DryRun(
        turn=plan.before.turn,
        before=before,
        after=after,
        rewritten=max(0, before.cached - after.cached - max(0, before.tokens - after.tokens)),
        is_cold=cold,
        saved_later=saving,
        dollars_later=_dollars(plan.before, rates, read=before.tokens - after.tokens),
        pays_after=0 if extra <= 0 else math.ceil(extra / saving) if saving > 0 else None,
        usable=plan.before.budget.usable if plan.before.budget.has_window else None,
        changes=tuple(_changes(plan, first)),
        summaries=tuple(NeededSummary(request.needs.request.policy, request.is_due) for request in plan.open_requests),
        edits=len(plan.edits),
        overhead=overhead,
    )


def cached_tokens(view: View, sent: Sequence[Entry]) -> int:
    """Return the tokens of the beginning of a view that is the same as in the request `sent`."""
    tokens = 0
    for old, new in zip(sent, view.entries, strict=False):
        if old.message != new.message:
            break
        tokens += new.tokens
    return tokens


def _figures(view: View, sent: Sequence[Entry], prices: Prices, rates: Rates | None) -> RequestFigures:
    cached = cached_tokens(view, sent)
    written = view.tokens - cached
    cost = prices.read * cached + prices.write * written
    return RequestFigures(view.tokens, cached, cost, _dollars(view, rates, read=cached, write=written))


def _dollars(view: View, rates: Rates | None, *, read: int, write: int = 0) -> float | None:
    if rates is None:
        return None
    _, of_read, of_write, _ = rates
    return (of_read * read + of_write * write) * view.budget.scale


# ------------------------------------------------------------------------------------------------------- the changes


def _changes(plan: Plan, first: int) -> Iterator[EntryChange]:
    """Yield the changed places in order: each entry that looks different, is gone, or is new.

    Stand-ins between messages are no places: they follow from the messages around them.
    """
    edits = dict(enumerate(plan.edits, first))
    hidden = _Hidden(plan)
    before = {_place(entry): entry for entry in plan.before.entries if not entry.is_between}
    after = {_place(entry): entry for entry in plan.after.entries if not entry.is_between}
    inside: dict[tuple[int, int, str], list[Entry]] = {}
    gone: list[Entry] = []
    covers = [entry for entry in plan.after.entries if entry.span is not None and _place(entry) not in before]
    for place, entry in before.items():
        if place in after:
            continue
        cover = next((shown for shown in covers if shown.position <= entry.position and entry.last <= shown.last), None)
        if cover is not None:
            inside.setdefault(_place(cover), []).append(entry)
        else:
            gone.append(entry)
    changes = [_gone(entry, hidden) for entry in gone]
    for place, entry in after.items():
        old = before.get(place)
        if old is None or _looks(old) != _looks(entry):
            changes.append(_changed(old, inside.get(place, ()), entry, edits))
    yield from sorted(changes, key=lambda change: change.position)


def _place(entry: Entry) -> tuple[int, int, str]:
    return entry.position, entry.last, entry.kind


def _looks(entry: Entry) -> tuple[object, ...]:
    return entry.message, entry.pins, entry.shrunk


def _changed(old: Entry | None, inside: Sequence[Entry], entry: Entry, edits: Mapping[int, Edit]) -> EntryChange:
    own = [edits[number] for number in entry.edits if number in edits]
    was = _form(old) if old is not None else f"{len(inside)} messages" if inside else "nothing"
    return EntryChange(
        handle=str(Handle(entry.position, entry.last)),
        position=entry.position,
        was=was,
        becomes=_form(entry),
        tokens_before=old.tokens if old is not None else sum(shown.tokens for shown in inside),
        tokens_after=entry.tokens,
        before=old.message if old is not None else None,
        after=entry.message,
        policies=tuple(dict.fromkeys(edit.policy for edit in own if edit.policy)),
        reasons=tuple(dict.fromkeys(edit.reason for edit in own if edit.reason)),
    )


def _gone(entry: Entry, hidden: _Hidden) -> EntryChange:
    edit = hidden.edit_of(entry)
    return EntryChange(
        handle=str(Handle(entry.position, entry.last)),
        position=entry.position,
        was=_form(entry),
        becomes="nothing",
        tokens_before=entry.tokens,
        tokens_after=0,
        before=entry.message,
        after=None,
        policies=(edit.policy,) if edit is not None and edit.policy else (),
        reasons=(edit.reason,) if edit is not None and edit.reason else (),
    )


class _Hidden:
    """The edits of a plan by the messages that they hide."""

    def __init__(self, plan: Plan) -> None:
        places = {entry.id: entry.position for entry in plan.before.entries}
        self._single: dict[str, Edit] = {}
        self._spans: list[tuple[int, int, Edit]] = []
        for edit in plan.edits:
            match edit:
                case Hide(target=Target(message=message)) | Replace(target=Target(message=message)):
                    self._single[message] = edit
                case Hide(target=Span() as span) | Summarize(span=span):
                    last = places.get(span.last, max(places.values(), default=0))
                    self._spans.append((places.get(span.first, 0), last, edit))
                case Restore() if edit.edits:  # It takes a summary away.
                    self._spans.append((0, max(places.values(), default=0), edit))
                case _:
                    pass

    def edit_of(self, entry: Entry) -> Edit | None:
        """Return the edit that hides an entry, or None if it is not known."""
        if entry.id in self._single:
            return self._single[entry.id]
        return next((edit for first, last, edit in self._spans if first <= entry.position <= last), None)


def _form(entry: Entry) -> str:
    """Return how an entry is shown, in one word."""
    if entry.kind != "message":
        return entry.kind
    return "shrunk" if entry.shrunk else "whole"
