"""Deferral: soft edits that wait until they pay.

An edit makes the provider write the rest of the prompt to its cache again. The number of later requests that it makes
cheaper is unknown. So the rule is the one for renting skis: rent until the rent has reached the price of a pair. Edits
wait until the tokens that they could have saved cost as much as making the edits now.

The policy keeps only caches between calls. To find out since when an edit was due, it asks the deferred policies which
edits they would have returned at earlier calls, for the part of the view that existed then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.budget import measure_excess
from ..core.call_context import Prices
from ..core.economy import flush_cost, is_cold, reasoning_cost, saving
from ..core.edits import Edit, Hide, Path, Replace, Span, Summarize, Target
from ..core.entry_facts import EntryFact
from ..core.growing import Growing, notes
from ..core.messages import Message, Part, Reasoning, ToolResult
from ..core.planner import Policy
from ..core.sizes import MESSAGE_TOKENS, tokens_of
from ..core.summaries import NeedsSummary
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds

__all__ = ["when_it_pays"]

_KEPT_MAX = 40
"""Earlier calls whose edits are kept for a conversation."""
_PROBES = 10
"""Maximum number of earlier calls for which the policies are asked. The remaining uncertainty, a small share of the
sum, is counted by half.
"""

EditKey = tuple[str, str | Path]
"""The part of the view that an edit changes."""


class _Wanted(NamedTuple):
    """An edit that a policy returned, with its key; None for an edit that never waits."""

    key: EditKey | None
    edit: Edit | NeedsSummary


@check_kinds
def when_it_pays(
    policy: Policy | Sequence[Policy],
    *,
    prices: Prices | None = None,
    threshold: float = 1.0,
    patience: float = 1.0,
    partly: bool = False,
) -> Policy:
    """Return one policy that makes the edits of these policies when they pay, all at once.

    Edits pay when the requests since they were due have wasted `patience` times the cost of making all of them now.
    More than 1.0 allows for content that the model will request again. `partly`: if the edits together do not pay,
    check only those of the newer half, then of the newer quarter, and so on, since late edits rewrite little.

    If long requests cost more (`Prices.long_from`), what they cost more counts as wasted too, as soon as the edits
    together make them shorter.

    Edits do not wait if the cache is cold, or if the view is over its budget or above `threshold`, a share of the
    usable tokens: use the threshold of compaction, so that summaries may become needless. Pins, restores, tasks and
    summary requests never wait.

    If the model binds reasoning to everything before it, edits also cost the reasoning that they would invalidate: the
    model may have to think it again. So edits behind the last reasoning come first.

    All policies see the same view. If two of them edit the same message, the first one wins. `prices`: default those of
    the view. Raises BadSetting for values out of range.
    """
    if not patience >= 0:
        raise BadSetting(f"patience of when_it_pays is {patience}. Set it to 0 or more.")
    if not 0 < threshold <= 1:
        raise BadSetting(f"threshold of when_it_pays is {threshold}. Set it above 0, and to at most 1.")
    policies = (policy,) if callable(policy) else tuple(policy)
    return _WhenItPays(policies, prices, threshold, patience, partly)


class _WhenItPays:
    """The policy of `when_it_pays`."""

    __name__ = "when_it_pays"
    before_calls_only = True
    """Read by the engine. After a reply nothing is sent yet, so there is nothing to decide."""

    def __init__(
        self,
        policies: tuple[Policy, ...],
        prices: Prices | None,
        threshold: float,
        patience: float,
        partly: bool,
    ) -> None:
        self._policies, self._prices, self._threshold = policies, prices, threshold
        self._patience, self._partly = patience, partly
        self._past, self._measured = _PastEdits(policies), notes()

    def __call__(self, view: View) -> list[Edit | NeedsSummary]:
        prices = self._prices or view.call.prices
        waits = not is_cold(view, prices)
        wanted = self._past.present_edits(view, waits=waits)
        edits = [edit for _, edit in wanted]
        if not waits:
            return edits
        waiting = _WaitingEdits.measure(view, wanted, self._measured.of(view))
        if not waiting.edits or measure_excess(view) or view.tokens > self._threshold * view.budget.usable:
            return edits
        if self._pays(waiting, prices):
            return edits
        newer_parts = waiting.newer_parts() if self._partly else ()
        paying = next((part.edits for part in newer_parts if self._pays(part, prices)), {})
        return [edit for key, edit in wanted if key is None or key in paying]

    def _pays(self, waiting: _WaitingEdits, prices: Prices) -> bool:
        lost = waiting.lost_reasoning()
        cost = flush_cost(waiting.rewritten_tokens() - lost, prices) * self._patience + reasoning_cost(lost, prices)
        return _has_wasted(waiting, self._past, cost - waiting.surcharge(prices), prices)

    @property
    def optional(self) -> bool:
        """Return whether all policies are left out without a summarizer."""
        return all(getattr(policy, "optional", False) for policy in self._policies)

    @property
    def needs_summarizer(self) -> bool:
        """Return whether one of the policies needs a summarizer."""
        return any(getattr(policy, "needs_summarizer", False) for policy in self._policies)

    def idle_note(self, usable: int, *, has_summarizer: bool) -> str:
        """Return what the policies report that cannot act as they are opened; "" for nothing."""
        notes = (getattr(policy, "idle_note", None) for policy in self._policies)
        return " ".join(filter(None, (note(usable, has_summarizer=has_summarizer) for note in notes if note)))

    def __getattr__(self, name: str) -> object:
        """Return the attribute of the first policy that has it, such as `tool_results_keep`."""
        for policy in self.__dict__.get("_policies", ()):
            if hasattr(policy, name):
                return getattr(policy, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class _WaitingEdit(NamedTuple):
    """An edit that may wait, and what it does to the view."""

    edit: Edit | NeedsSummary
    saved: int
    """Tokens that it saves."""
    since: int
    """The call before the first one at which it can have been due."""
    first: int
    """Index of the first entry that it edits."""
    last: int
    """Index of the last one."""


class _WaitingEdits:
    """The edits of a view that may wait."""

    def __init__(self, view: View, edits: dict[EditKey, _WaitingEdit]) -> None:
        self.view, self.edits = view, edits
        self.total = sum([edit.saved for edit in edits.values()])
        """Tokens that they save."""
        self._first = min([edit.first for edit in edits.values()], default=len(view.entries))

    @classmethod
    def measure(cls, view: View, wanted: Iterable[_Wanted], known: dict[EditKey, _WaitingEdit]) -> _WaitingEdits:
        """Return those among edits that may wait. `known`: those measured at the last call, for the same entries."""
        edits: dict[EditKey, _WaitingEdit] = {}
        for key, edit in wanted:
            if key is not None:
                measured = known.get(key)
                if measured is None or measured.edit is not edit:
                    measured = _measure(view, key, edit)
                if measured is not None:
                    edits[key] = measured
        known.clear()
        known.update(edits)
        return cls(view, edits)

    def newer_parts(self) -> Iterator[_WaitingEdits]:
        """Yield the newer half of the edits that save tokens, then the newer half of these, and so on."""
        items = sorted([item for item in self.edits.items() if item[1].saved], key=lambda item: item[1].first)
        while items := items[(len(items) + 1) // 2 :]:
            yield _WaitingEdits(self.view, dict(items))

    def rewritten_tokens(self) -> int:
        """Return the tokens after the first edit that the cache already holds and that stay in the view."""
        entries, last, first = self.view.entries, self.view.turn - 1, self._first
        known = _SUMS.of(self.view)
        behind = known.tokens[-1] - known.tokens[first]
        index = len(entries) - 1
        while index >= first and known.turns[index] >= last:
            behind -= entries[index].tokens if entries[index].stamp.turn >= last else 0
            index -= 1
        return behind - self.total

    def lost_reasoning(self) -> int:
        """Return the tokens of reasoning that these edits would invalidate, in messages that they do not edit."""
        if not self.view.call.binds_reasoning or not self.edits:
            return 0
        edited = {index for edit in self.edits.values() for index in range(edit.first, edit.last + 1)}
        sums = _SUMS.of(self.view).reasoning
        kept = sum([sums[index + 1] - sums[index] for index in edited])
        return sums[-1] - sums[self._first] - kept

    def wasted_at_most(self) -> int:
        """Return the tokens that were read in vain if each edit was due as soon as its entries existed."""
        return sum([edit.saved * (self.view.turn - edit.since) for edit in self.edits.values()])

    def surcharge(self, prices: Prices) -> float:
        """Return what the requests cost more since they are long, if these edits make them shorter; otherwise 0."""
        view, budget = self.view, self.view.budget
        limit = int(prices.long_from / budget.scale) - budget.overhead
        if not prices.long_from or not view.tokens - self.total <= limit < view.tokens:
            return 0.0
        known = _SUMS.of(view)
        first = bisect_right(known.tokens, limit) - 1  # The entry with which the requests became long.
        return (prices.long_factor - 1) * saving(limit, prices) * (view.turn - known.turns[first])

    def due_tokens(self, past: _PastEdits, turn: int) -> int:
        """Return the tokens that those of these edits save that were already due at an earlier call."""
        due = past.keys_at(self.view, turn)
        return sum([edit.saved for key, edit in self.edits.items() if key in due and edit.since < turn])


def _measure(view: View, key: EditKey, edit: Edit | NeedsSummary) -> _WaitingEdit | None:
    """Return an edit with its effect; None if the view does not show what it edits."""
    indices = [index for id in _end_ids(key) if (index := view.index_of(id)) is not None]
    if not indices:
        return None
    first, last = min(indices), max(indices)
    entries = view.entries[first : last + 1]
    since = max([max(entry.stamp.turn, entry.renewed) for entry in entries])
    return _WaitingEdit(edit, max(0, _saved_tokens(edit, entries)), since, first, last)


class _Sums(Struct):
    """Sums over the entries of a view, added in order."""

    tokens: list[int] = field(default_factory=lambda: [0])
    """The tokens before each entry, and of all."""
    reasoning: list[int] = field(default_factory=lambda: [0])
    """The tokens of reasoning before each entry, and of all."""
    turns: list[int] = []
    """The newest turn of a stamp up to each entry."""

    def copy(self) -> _Sums:
        return _Sums(self.tokens.copy(), self.reasoning.copy(), self.turns.copy())

    def add(self, entry: Entry) -> None:
        turn = entry.stamp.turn
        self.tokens.append(self.tokens[-1] + entry.tokens)
        self.reasoning.append(self.reasoning[-1] + _reasoning_tokens(entry.message))
        self.turns.append(max(turn, self.turns[-1]) if self.turns else turn)


_SUMS = Growing[_Sums](_Sums, _Sums.add, _Sums.copy, name="sums", kind=_Sums)


class _PastEdits:
    """The edits that policies returned, or would have returned, at earlier calls, for the entries of a present view.

    They are kept with the conversation until an edit changes one of these entries.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies, self._keys = policies, notes()

    def present_edits(self, view: View, *, waits: bool) -> list[_Wanted]:
        """Return the edits for a view, and note them for later calls. `waits`: see `_collect_edits`."""
        wanted = _collect_edits(self._policies, view, waits=waits)
        self._note(view, view.turn, wanted)
        return wanted

    def keys_at(self, view: View, turn: int) -> Set[EditKey]:
        """Return the keys of the edits at the call `turn`, for the present entries that existed then."""
        kept: dict[int, Set[EditKey]] = self._keys.of(view)
        if turn in kept:
            kept[turn] = kept.pop(turn)  # The calls that are asked about are kept longest.
            return kept[turn]
        before = _entries_before(view, turn)
        is_beginning = view.entries[: len(before)] == before  # Entries compare by identity.
        marks = view.marks if is_beginning else view.marks.past(len(before))
        past = replace(view, entries=before, turn=turn, marks=marks)
        return self._note(view, turn, _collect_edits(self._policies, past))

    def _note(self, view: View, turn: int, wanted: Iterable[_Wanted]) -> Set[EditKey]:
        keys = frozenset([key for key, _ in wanted if key is not None])
        kept = self._keys.of(view)
        kept.pop(turn, None)
        kept[turn] = keys
        if len(kept) > _KEPT_MAX:
            del kept[next(iter(kept))]
        return keys


def _entries_before(view: View, turn: int) -> tuple[Entry, ...]:
    """Return the entries that existed before a call."""
    turns = _SUMS.of(view).turns
    size = bisect_left(turns, turn)
    if size and turns[-1] == turns[size - 1]:
        return view.entries
    return (*view.entries[:size], *[entry for entry in view.entries[size:] if entry.stamp.turn < turn])


def _between(before: int, behind: int) -> int:
    """Return the call between two others with the roundest number, so that later plans probe the same calls."""
    step = 1 << (behind - before).bit_length()
    while (middle := behind - 1 - (behind - 1) % step) <= before:
        step >>= 1
    return middle


def _has_wasted(waiting: _WaitingEdits, past: _PastEdits, cost: float, prices: Prices) -> bool:
    """Return whether the tokens that were read in vain have cost at least `cost`.

    The due tokens only grow from call to call. So two known calls bound the sum of the calls between them. The policies
    are asked about a call in the middle only while the bounds leave the answer open.
    """
    if saving(waiting.wasted_at_most(), prices) < cost:
        return False
    first, last = min([edit.since for edit in waiting.edits.values()]), waiting.view.turn
    known = waiting.total  # Tokens at the known calls.
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
    for _ in range(_PROBES):
        if saving(known + least, prices) >= cost or saving(known + most, prices) < cost or not gaps:
            break
        _, before, due_before, behind, due_behind = heappop(gaps)
        calls = behind - before - 1
        least -= calls * due_before
        most -= calls * due_behind
        middle = _between(before, behind)
        due = min(max(waiting.due_tokens(past, middle), due_before), due_behind)
        known += due
        open_gap(before, due_before, middle, due)
        open_gap(middle, due, behind, due_behind)
    return saving(known * 2 + least + most, prices) >= cost * 2


# --------------------------------------------------------------------------------------------------------------- edits


def _collect_edits(policies: Sequence[Policy], view: View, *, waits: bool = True) -> list[_Wanted]:
    """Return the edits of all policies. If several edit the same message, only the first policy's edit is kept.

    `waits`: whether edits may wait. If all are made at once, no text is written for a message that a summary replaces.
    """
    wanted: list[_Wanted] = []
    taken: set[str] = set()
    costly = [getattr(policy, "edits_besides", None) if len(policies) > 1 else None for policy in policies]
    returned = [policy(view) if edits is None else () for policy, edits in zip(policies, costly, strict=True)]
    replaced: set[str] = set()
    if not waits:
        returned = [list(edits) for edits in returned]
        spans = [edit.span for edit in chain(*returned) if isinstance(edit, Summarize)]
        replaced.update(*[_edited_ids((span.first, span.last), view) for span in spans])
    for plain, edits_besides in zip(returned, costly, strict=True):
        # A policy whose edits cost much leaves out those in vain.
        edits = edits_besides(view, taken | replaced) if edits_besides else plain
        new = [_Wanted(_key(edit), edit) for edit in edits]
        if taken:
            new = [item for item in new if item.key is None or item.key[0] not in taken]
        for key, _ in new:
            if key is not None:
                taken.update(_edited_ids(key, view))
        wanted += new
    return wanted


def _edited_ids(key: EditKey, view: View) -> Iterable[str]:
    """Return the ids of the messages that an edit changes."""
    ends = _end_ids(key)
    if len(ends) < 2:
        return ends
    known = sorted(index for id in ends if (index := view.index_of(id)) is not None)
    return [entry.id for entry in view.entries[known[0] : known[-1] + 1]] if known else ends


def _key(edit: Edit | NeedsSummary) -> EditKey | None:
    """Return the key of a soft edit; None for an edit that never waits."""
    if isinstance(edit, Replace | Hide):
        named = edit.target
        return (named.first, named.last) if isinstance(named, Span) else (named.message, named.path)
    return (edit.span.first, edit.span.last) if isinstance(edit, Summarize) else None


def _end_ids(key: EditKey) -> tuple[str, ...]:
    """Return the id of the edited message, or those of the first and the last message of a span."""
    first, last = key
    return (first, last) if isinstance(last, str) else (first,)


def _saved_tokens(edit: Edit | NeedsSummary, entries: Sequence[Entry]) -> int:
    """Return an estimate of the tokens that an edit removes from these entries."""
    before = sum([entry.tokens for entry in entries])
    # New content has no count yet: its quarter of the characters is corrected as for what it replaces.
    rate = before / max(1, sum(map(_shown_tokens, entries)))
    match edit:
        case Replace(target=Target(_, ()), content=content):
            return before - round(rate * _tokens(content))
        case Replace(target=Target(_, path), content=content):
            return round(rate * (_tokens(_part(entries[0], path)) - _tokens(content)))
        case Hide(target=Target(_, (_, *_) as path)):
            return round(rate * (_tokens(_part(entries[0], tuple(path))) - MESSAGE_TOKENS))
        case Summarize(text=text, keep=keep):
            kept = sum([entry.tokens for entry in entries if entry.id in keep])
            return before - kept - MESSAGE_TOKENS - round(rate * ((len(text) + 3) // 4))
        case _:
            return before


_SHOWN_TOKENS = EntryFact[int]("shown tokens", int)  # Waiting edits are measured at every call.


def _shown_tokens(entry: Entry) -> int:
    tokens = _SHOWN_TOKENS.of(entry)
    if tokens is None:
        _SHOWN_TOKENS.remember(entry, tokens := tokens_of(entry.message))
    return tokens


def _reasoning_tokens(message: Message) -> int:
    parts = [part for part in message.parts if isinstance(part, Reasoning)]
    return _tokens(parts) - MESSAGE_TOKENS if parts else 0


def _tokens(parts: Sequence[Part]) -> int:
    return tokens_of(Message("user", tuple(parts)))


def _part(entry: Entry, path: Path) -> tuple[Part, ...]:
    """Return the appended part at a path, if it exists."""
    parts: Sequence[Part] = entry.source.parts if entry.source else ()
    part: tuple[Part, ...] = ()
    for index in path:
        if not 0 <= index < len(parts):
            return ()
        part = (parts[index],)
        parts = part[0].content if isinstance(part[0], ToolResult) else ()
    return part
