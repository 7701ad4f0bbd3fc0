"""Soft edits that wait until they pay.

The rule is that of somebody who rents skis until the rent has come to the price of a pair: edits wait until what
they could have saved has come to what making them now costs. That is never far above the best one could have done.

Nothing is remembered from call to call but to save time. Since when an edit was due is found by asking the policy what
it would have wanted at earlier calls, of that part of the view which was there then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from msgspec.structs import replace

from ..core.budget import measure_excess
from ..core.economy import flush_cost, is_cold, saving
from ..core.edits import Edit, Hide, Path, Replace, Span, Summarize, Target
from ..core.messages import Message, Part, ToolResult
from ..core.planner import Policy
from ..core.sizes import MESSAGE_TOKENS, tokens_of
from ..core.summaries import NeedsSummary
from ..core.view import Entry, Prices, View
from ..errors import BadSetting

__all__ = ["MAX_DEFERRED", "when_it_pays"]

MAX_DEFERRED = 0.5
"""Share of the usable budget that edits which wait may come to."""

_LOOKS = 10
"""How often a policy is asked about earlier calls, at most. What is still open then is a small share of the sum, and is
taken in the middle.
"""

Key = tuple[str, str | Path]
"""What an edit changes: two edits with the same key come to the same."""


def when_it_pays(
    policy: Policy | Sequence[Policy],
    *,
    prices: Prices | None = None,
    max_deferred: float = MAX_DEFERRED,
    threshold: float = 1.0,
    patience: float = 1.0,
    partly: bool = False,
) -> Policy:
    """This policy, or several as one, with edits that wait until they pay.

    The edits are made, all at once, when the requests since each became due have wasted on what it would have saved
    `patience` times as much as making all of them now costs; above 1, it allows for what the model asks for again.
    `partly`: where that is not so of all of them, those of the newer half are looked at alone, then of the newer
    quarter, and so on, since what stands near the end costs little to change.

    They are made at once where that is free (the cache is cold), where the view is over its budget or above
    `threshold`, a share of the usable tokens (that at which a summary would be made, so that it may become needless),
    and where they come to more than `max_deferred`: a share of the usable tokens, or tokens if it is above 1. What is
    no soft edit (pins, restores, tasks, the wish for a summary) never waits.

    Several policies look at the same view, and where two of them want the same message, the first has it. `prices`
    are those of the view unless given. Raises BadSetting for a `max_deferred` of 0 or less, and for a `threshold` that
    is not above 0 and at most 1, and for a negative `patience`.
    """
    if not patience >= 0:
        raise BadSetting(f"when_it_pays needs a patience of 0 or more, not {patience}.")
    if not max_deferred > 0 or not 0 < threshold <= 1:
        raise BadSetting(
            f"when_it_pays needs a max_deferred above 0 and 0 < threshold <= 1, not {max_deferred} and {threshold}."
        )
    policies = (policy,) if callable(policy) else tuple(policy)
    return _WhenItPays(policies, prices, max_deferred, threshold, patience, partly)


class _WhenItPays:
    """The policy; see `when_it_pays`."""

    __name__ = "when_it_pays"
    before_calls_only = True
    """Read by the engine: behind a reply nothing is sent yet, so there is nothing to decide."""

    def __init__(
        self,
        policies: tuple[Policy, ...],
        prices: Prices | None,
        max_deferred: float,
        threshold: float,
        patience: float,
        partly: bool,
    ) -> None:
        self._policies, self._prices, self._max_deferred, self._threshold = policies, prices, max_deferred, threshold
        self._patience, self._partly = patience, partly
        self._past = _Past(policies)

    def __call__(self, view: View) -> list[Edit | NeedsSummary]:
        wanted = _wanted(self._policies, view)
        waiting = _Waiting(view, wanted)
        if not waiting.saved or measure_excess(view) or view.tokens > self._threshold * view.budget.usable:
            return wanted
        prices, bound = self._prices or view.call.prices, self._max_deferred
        if bound <= 1:
            bound *= view.budget.usable
        if is_cold(view, prices) or waiting.total > bound or self._pays(waiting, prices):
            return wanted
        newer = waiting.newer() if self._partly else ()
        paying = next((part.saved for part in newer if self._pays(part, prices)), {})
        return [edit for edit in wanted if (key := _key(edit)) is None or key in paying]

    def _pays(self, waiting: _Waiting, prices: Prices) -> bool:
        cost = flush_cost(waiting.rewritten(), prices) * self._patience
        return _have_wasted(waiting, self._past, cost, prices)

    @property
    def optional(self) -> bool:
        """Whether all of it steps aside where nobody writes summaries."""
        return all(getattr(policy, "optional", False) for policy in self._policies)

    @property
    def needs_summarizer(self) -> bool:
        """Whether one of these cannot do without summaries."""
        return any(getattr(policy, "needs_summarizer", False) for policy in self._policies)

    def __getattr__(self, name: str) -> object:
        """What a policy says of itself, such as that it needs a summarizer, is true of it inside here too."""
        for policy in self.__dict__.get("_policies", ()):
            if hasattr(policy, name):
                return getattr(policy, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class _Waiting:
    """The edits of a view that could wait: what each saves, and where."""

    def __init__(self, view: View, wanted: Iterable[Edit | NeedsSummary]) -> None:
        self.view = view
        self.saved: dict[Key, int] = {}
        self.since: dict[Key, int] = {}
        """The call before the first one at which the edit can have been due."""
        soft = [(key, edit) for edit in wanted if (key := _key(edit)) is not None]
        named = {id for _, edit in soft for id in _ends(edit)}
        places: dict[str, int] = {}
        for index, entry in enumerate(view.entries if soft else ()):
            if entry.id in named:
                places.setdefault(entry.id, index)
            if entry.span is not None and entry.span.last in named:
                places.setdefault(entry.span.last, index)
        self._places: dict[Key, int] = {}
        for key, edit in soft:
            ends = [places[id] for id in _ends(edit) if id in places]
            if not ends:
                continue
            touched = view.entries[min(ends) : max(ends) + 1]
            self.saved[key] = max(0, _saved(edit, touched))
            self.since[key] = max(max(entry.stamp.turn, entry.renewed) for entry in touched)
            self._places[key] = min(ends)

    @property
    def total(self) -> int:
        return sum(self.saved.values())

    def newer(self) -> Iterator[_Waiting]:
        """The newer half of those that save something, then of what is left, and so on."""
        keys = sorted([key for key, tokens in self.saved.items() if tokens], key=self._places.__getitem__)
        while keys := keys[(len(keys) + 1) // 2 :]:
            part = _Waiting(self.view, ())
            for key in keys:
                part.saved[key], part.since[key] = self.saved[key], self.since[key]
                part._places[key] = self._places[key]
            yield part

    def rewritten(self) -> int:
        """Tokens that would be written again: behind the first edit, less what goes, less what is new in any case."""
        last = self.view.turn - 1
        first = min(self._places.values(), default=len(self.view.entries))
        behind = sum([entry.tokens for entry in self.view.entries[first:] if entry.stamp.turn < last])
        return behind - self.total

    def at_most(self) -> int:
        """Tokens read in vain, had each edit been due as soon as what it changes was there."""
        return sum([tokens * (self.view.turn - self.since[key]) for key, tokens in self.saved.items()])

    def due(self, past: _Past, turn: int) -> int:
        """Tokens that those of these edits save which were due at an earlier call already, and could be."""
        due = past.wanted(self.view, turn)
        return sum([tokens for key, tokens in self.saved.items() if key in due and self.since[key] < turn])


class _Past:
    """What policies would have wanted at earlier calls. What was worked out for one plan serves the next ones too."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self._known: dict[int, tuple[tuple[Entry, ...], frozenset[Key]]] = {}

    def wanted(self, view: View, turn: int) -> frozenset[Key]:
        """What they would have changed at the call `turn`, of what is in the view now and was there then."""
        then = tuple([entry for entry in view.entries if entry.stamp.turn < turn])
        known = self._known.get(turn)
        if known is None or known[0] != then:  # Compared by identity: what is shown has not changed since.
            wanted = _wanted(self._policies, replace(view, entries=then, turn=turn, _sizes=None))
            known = then, frozenset(key for edit in wanted if (key := _key(edit)) is not None)
            if len(self._known) >= 2 * _LOOKS:
                self._known.clear()
            self._known[turn] = known
        return known[1]


def _between(before: int, behind: int) -> int:
    """A call between two: the one whose number is the roundest, so that the next plans ask about the same ones."""
    step = 1 << (behind - before).bit_length()
    while (middle := behind - 1 - (behind - 1) % step) <= before:
        step >>= 1
    return middle


def _have_wasted(waiting: _Waiting, past: _Past, cost: float, prices: Prices) -> bool:
    """Whether the tokens that were read in vain have cost as much as this.

    What is due only grows from call to call. So between two calls that are known, the sum is known within bounds, and
    the policy is asked about a call in the middle only where, and while, the bounds leave the answer open.
    """
    if saving(waiting.at_most(), prices) < cost:
        return False
    first, last = min(waiting.since.values()), waiting.view.turn
    known = waiting.total  # tokens at the calls that are known
    gaps: list[tuple[int, int, int, int, int]] = []  # (-spread, call before, due there, call behind, due there)
    least = most = 0

    def open_gap(before: int, due_before: int, behind: int, due_behind: int) -> None:
        nonlocal least, most
        calls = behind - before - 1
        least += calls * due_before
        most += calls * due_behind
        if calls > 0 and due_behind > due_before:
            heappush(gaps, (-calls * (due_behind - due_before), before, due_before, behind, due_behind))

    open_gap(first, 0, last, waiting.total)
    for _ in range(_LOOKS):
        if saving(known + least, prices) >= cost or saving(known + most, prices) < cost or not gaps:
            break
        _, before, due_before, behind, due_behind = heappop(gaps)
        calls = behind - before - 1
        least -= calls * due_before
        most -= calls * due_behind
        middle = _between(before, behind)
        due = min(max(waiting.due(past, middle), due_before), due_behind)
        known += due
        open_gap(before, due_before, middle, due)
        open_gap(middle, due, behind, due_behind)
    return saving(known * 2 + least + most, prices) >= cost * 2


def _wanted(policies: Sequence[Policy], view: View) -> list[Edit | NeedsSummary]:
    """What all policies want; of several that want the same message, what the first wants."""
    if len(policies) == 1:
        return list(policies[0](view))
    wanted: list[Edit | NeedsSummary] = []
    taken: set[str] = set()
    for policy in policies:
        new = [edit for edit in policy(view) if (key := _key(edit)) is None or key[0] not in taken]
        for edit in new:
            if _key(edit) is not None:
                taken |= _covered(edit, view)
        wanted += new
    return wanted


def _covered(edit: Edit | NeedsSummary, view: View) -> set[str]:
    """The messages that an edit is about."""
    ends = _ends(edit)
    if len(ends) < 2:
        return set(ends)
    places = [index for index, entry in enumerate(view.entries) if entry.id in ends]
    return {entry.id for entry in view.entries[places[0] : places[-1] + 1]} if places else set(ends)


def _key(edit: Edit | NeedsSummary) -> Key | None:
    """What a soft edit changes; None for what never waits."""
    match edit:
        case Replace(target=Target(message, path)) | Hide(target=Target(message, path)):
            return message, path
        case Hide(target=Span(first, last)) | Summarize(span=Span(first, last)):
            return first, last
        case _:
            return None


def _ends(edit: Edit | NeedsSummary) -> tuple[str, ...]:
    match edit:
        case Replace(target=Target(message)) | Hide(target=Target(message)):
            return (message,)
        case Hide(target=Span(first, last)) | Summarize(span=Span(first, last)):
            return first, last
        case _:
            return ()


def _saved(edit: Edit | NeedsSummary, touched: Sequence[Entry]) -> int:
    """About how many tokens an edit takes off these entries."""
    before = sum([entry.tokens for entry in touched])
    match edit:
        case Replace(target=Target(_, ()), content=content):
            return before - _size(content)
        case Replace(target=Target(_, path), content=content):
            return _size(_part(touched[0], path)) - _size(content)
        case Hide(target=Target(_, (_, *_) as path)):
            return _size(_part(touched[0], tuple(path))) - MESSAGE_TOKENS
        case Summarize(text=text, keep=keep):
            kept = sum([entry.tokens for entry in touched if entry.id in keep])
            return before - kept - MESSAGE_TOKENS - (len(text) + 3) // 4
        case _:
            return before


def _size(parts: Sequence[Part]) -> int:
    return tokens_of(Message("user", tuple(parts)))


def _part(entry: Entry, path: Path) -> tuple[Part, ...]:
    """The part of what was appended that a path leads to, if it does."""
    parts: Sequence[Part] = entry.source.parts if entry.source else ()
    found: tuple[Part, ...] = ()
    for index in path:
        if not 0 <= index < len(parts):
            return ()
        found = (parts[index],)
        parts = found[0].content if isinstance(found[0], ToolResult) else ()
    return found
