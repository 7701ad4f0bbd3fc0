"""Ages: what of the history was kept long enough is erased, a piece at a time; what the view still shows waits.

Which messages these are is worked out in `core/retention.py`, from their stamps. Here stamps, views of forks and, where
a rule asks for them, bodies are fetched for it, and the store is told to erase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct, structs

from ..core.edits import Summarize
from ..core.handles import quoted_positions
from ..core.redacted_form import ERASED
from ..core.retention import Age, AgeKind, OverAgeCheck, Visible, Wait, over_age_runs, shows_again
from ..core.runs import AgentRun
from ..core.stamps import StampRow
from ..core.view import Entry
from ..errors import ConflictError, NoSuchConversation
from ..limits import Limits
from ..ports import Branch, Erasure, Head
from .erasing import Erasing
from .state import State, row_of
from .steps import ATTEMPTS, Step

__all__ = ["Aged", "AgedKind", "LettingGo"]

_ROWS = 1000
"""Stamps read at a time, without holding anybody up."""
_BODIES = 100
"""Messages read at a time, where a rule is about what they hold."""
_PIECE = 4000
"""Messages erased by one transaction: some tenths of a second. Before it all stamps are read, while others write."""


class AgedKind(Struct, frozen=True):
    """What is over its age by the rules for one kind."""

    kind: AgeKind
    messages: int
    bytes: int
    """As they are stored, packed."""


class Aged(Struct, frozen=True):
    """What of one conversation is over its age, and what was done about it."""

    conversation: str
    kinds: tuple[AgedKind, ...] = ()
    """What goes, by the kind of the rule that says so."""
    waiting: tuple[tuple[Wait, int], ...] = ()
    """How many messages are over their age and wait, by why."""
    runs: int = 0
    """Runs of agents whose texts go."""
    erased: tuple[Erasure, ...] = ()
    """What was done, a transaction each; nothing for a dry run."""

    @property
    def messages(self) -> int:
        """Messages that go."""
        return sum(one.messages for one in self.kinds)

    @property
    def bytes(self) -> int:
        """Bytes of these messages, packed."""
        return sum(one.bytes for one in self.kinds)


class _Old(NamedTuple):
    """What is over its age now."""

    aging: OverAgeCheck
    runs: list[AgentRun]
    head: Head
    """The conversation when it was looked."""
    others: list[Head]
    """The other branches of its tree, each when it was looked at."""

    def told(self, name: str) -> Aged:
        going = list(self.aging.due.values())
        counts = Counter(one.age.kind for one in going if one.row.size)
        sizes: Counter[AgeKind] = Counter()
        for one in going:
            sizes[one.age.kind] += one.row.size
        kinds = tuple(AgedKind(kind, counts[kind], sizes[kind]) for kind in sorted(counts))
        waits = Counter(why for _, why in self.aging.waiting.values())
        return Aged(name, kinds, tuple(sorted(waits.items())), len(self.runs))


class _Looked(NamedTuple):
    """A fork when it was looked at. Where nothing came to it since, it is not opened again."""

    head: Head
    shown: Visible
    copies: list[tuple[StampRow, frozenset[int]]]


class LettingGo:
    """The steps of an engine that erase what was kept long enough."""

    def __init__(self, engine: Erasing) -> None:
        self._engine = engine
        self._takes_summaries = False
        """Whether something went although it is shown: summaries that told of it went too."""
        self._looked: dict[int, _Looked] = {}
        """By branch."""

    def age(self, ages: Sequence[Age], who: str, reason: str, *, dry_run: bool) -> Step[Aged]:
        """Erase what is over its age; a dry run only tells what that is. Raises ConflictError where others kept
        changing
        the view.
        """
        yield from self._engine.refresh()
        old = yield from self._old(ages)
        told, done = old.told(self._engine.head.name), list[Erasure]()
        for _ in range(0 if dry_run else ATTEMPTS):
            if (yield from self._let_go(old, who, reason, done)):
                yield from self._bring_back()
                return Aged(told.conversation, told.kinds, told.waiting, told.runs, tuple(done))
            yield from self._engine.refresh()
            old = yield from self._old(ages)
            told = told if done else old.told(self._engine.head.name)  # Else what went already would not be told.
        if dry_run:
            return told
        yield from self._bring_back()
        raise ConflictError(
            f"Others kept changing {self._engine.head.name!r}, or a fork that shares what is over its age: not all of "
            f"that went. What did is told by erasures(). Do it again when there is less going on."
        )

    # ------------------------------------------------------------------------------------------------------- looking

    def _old(self, ages: Sequence[Age]) -> Step[_Old]:
        """What is over its age in the conversation as it stands."""
        now, head = self._engine.clock(), self._engine.head
        aging = OverAgeCheck(ages, now, shown_by(self._engine, (yield from self._touched(head, ages, now))))
        others: list[Head] = []
        for first in range(1, head.position + 1, _ROWS):
            rows = yield partial(self._engine.store.stamps, head, first, first + _ROWS - 1)
            for row in rows:
                aging.take(row)
        yield from self._look_for_media(aging)
        if aging.due:
            others = yield from self._spare_shared(aging, ages, now)
            yield from self._read_searches(aging)
            aging.spare_copied()
        runs: list[AgentRun] = []
        if any(age.kind == "runs" for age in ages):
            there = yield partial(self._engine.store.runs, head)
            runs = [run for run in over_age_runs(there, ages, now) if run.conversation == head.name and _says(run)]
        return _Old(aging, runs, head, others)

    def _look_for_media(self, aging: OverAgeCheck) -> Step[None]:
        unsure = list(aging.undecided)
        for start in range(0, len(unsure), _BODIES):
            rows = yield partial(self._engine.store.get_many, self._engine.head, unsure[start : start + _BODIES])
            for row in rows:
                aging.set_has_media(row.position, has_media=any(True for _ in row_of(row).message.media()))

    def _read_searches(self, aging: OverAgeCheck) -> Step[None]:
        quoted = yield from self._quoted(self._engine.head, aging.searches)
        for position, places in quoted.items():
            aging.set_quotes(position, places)

    def _quoted(self, head: Head, searches: Sequence[int]) -> Step[dict[int, frozenset[int]]]:
        """Which places the results of searches at these positions quote."""
        found: dict[int, frozenset[int]] = {}
        for start in range(0, len(searches), _BODIES):
            rows = yield partial(self._engine.store.get_many, head, searches[start : start + _BODIES])
            found |= {row.position: frozenset(quoted_positions(row_of(row).message.text)) for row in rows}
        return found

    def _copies(self, head: Head, shared: int) -> Step[list[tuple[StampRow, frozenset[int]]]]:
        """The messages behind position `shared` in which a fork shows others again, with the places that they name."""
        copies: list[StampRow] = []
        for first in range(shared + 1, head.position + 1, _ROWS):
            rows = yield partial(self._engine.store.stamps, head, first, first + _ROWS - 1)
            copies += [row for row in rows if shows_again(row)]
        searches = [row.position for row in copies if row.stamp.expanded and row.stamp.expanded.form == "search"]
        quoted = yield from self._quoted(head, searches)
        return [(row, quoted.get(row.position, frozenset())) for row in copies]

    def _touched(self, head: Head, ages: Sequence[Age], now: int) -> Step[int]:
        """When the newest message of a conversation was said: where that decides, the latest time of all its messages,
        since the clock may have gone back before the last of them.
        """
        rows = yield partial(self._engine.store.stamps, head, head.position, head.position)
        touched: int = rows[0].stamp.time if rows else now
        if any(age.kind == "conversations" and age.is_over(0, now - touched) for age in ages):
            for first in range(1, head.position + 1, _ROWS):
                rows = yield partial(self._engine.store.stamps, head, first, first + _ROWS - 1)
                touched = max(touched, *(row.stamp.time for row in rows))
        return touched

    def _spare_shared(self, aging: OverAgeCheck, ages: Sequence[Age], now: int) -> Step[list[Head]]:
        """What a fork shares goes only where it is over its age there too. All forks, as they are when it is looked."""
        engine, seen = self._engine, list[Head]()
        branches: list[Branch] = yield partial(engine.store.branches, engine.head)
        oldest = min(aging.due)
        for branch, shared in _sharing(branches, engine.head.branch):
            if shared < oldest or not aging.due:
                seen.append(branch.head)
                continue
            there = self._looked.get(branch.head.branch)
            if there is None or there.head != branch.head or any(age.kind == "conversations" for age in ages):
                there = yield from self._look(branch, shared, ages, now)
                self._looked[branch.head.branch] = there
            seen.append(there.head)
            aging.spare_shared(shared, there.shown, there.copies)
        return seen

    def _look(self, branch: Branch, shared: int, ages: Sequence[Age], now: int) -> Step[_Looked]:
        engine = self._engine
        other = State(
            engine.store,
            engine.format,
            engine.profile,
            engine.counter,
            engine.clock,
            policies=(),
            floor=(),
            limits=Limits(None, None, engine.profile),
            prices=engine.prices,
        )
        try:
            yield from other.open(branch.head.tenant, branch.head.name, create=False)
        except NoSuchConversation as error:
            raise ConflictError(
                f"The fork {branch.head.name!r} was given another name meanwhile. Do it again."
            ) from error
        shown = shown_by(other, (yield from self._touched(other.head, ages, now)))
        return _Looked(other.head, shown, (yield from self._copies(other.head, shared)))

    # ------------------------------------------------------------------------------------------------------- letting go

    def _let_go(self, old: _Old, who: str, reason: str, done: list[Erasure]) -> Step[bool]:
        """Erase what was found, piece by piece. False where the view changed meanwhile: look anew then."""
        engine = self._engine
        going = old.aging.due
        if not going and not old.runs:
            return True
        yield from engine.save_snapshot()  # What goes is not in it, so the conversation need not be read anew.
        apart: dict[bool, list[int]] = {True: [], False: []}
        for position in sorted(going):
            is_all = old.aging.is_untouched or "shown" in going[position].age.even
            apart[is_all].append(position)
        pieces = [
            (some[start : start + _PIECE], not is_all)
            for is_all, some in apart.items()
            for start in range(0, len(some), _PIECE)
        ]
        runs: list[tuple[list[int], bool]] = [([], True)] if old.runs else []
        for positions, keep_shown in (*pieces, *runs):
            ids = [run.id for run in old.runs] if not positions else False
            is_end = old.aging.is_untouched and bool(positions) and positions == pieces[-1][0]
            seen = [structs.replace(one, erased=engine.head.erased) for one in (old.head, *old.others)]
            erase = partial(
                engine.store.erase,
                seen[0],
                _spans(positions),
                runs=is_end or ids,
                keep_shown=keep_shown,
                seen=seen,
                is_still=old.aging.is_untouched,
            )
            try:
                one: Erasure = yield partial(erase, who=who, reason=reason, time=engine.clock())
            except ConflictError:
                return False
            engine.head = yield partial(engine.store.open, engine.head.tenant, engine.head.name, create=False)
            if one.number:
                done.append(one)
                self._takes_summaries |= not keep_shown
            if engine.head.number != old.head.number:
                return False
        return True

    def _bring_back(self) -> Step[None]:
        """Let what is still there of what lost its summary be shown."""
        yield from self._engine.refresh()
        if self._takes_summaries:
            yield from self._engine.bring_back()


def shown_by(state: State, touched: int) -> Visible:
    """What the view of a conversation shows. `touched`: when its newest message was said."""
    entries = state.projection.entries()
    rows = [entry for entry in entries if entry.source is not None and entry.position]
    covers = [cover for cover in state.projection.covers() if isinstance(cover.edit, Summarize) and cover.edit.outlives]
    return Visible(
        turn=state.projection.facts.turn,
        whole=frozenset(one.position for one in (*rows, *state.projection.withheld()) if not _is_short(one)),
        short=frozenset(one.position for one in rows if _is_short(one)),
        pinned=frozenset(one.position for one in rows if one.pins),
        last_input=state.projection.facts.last_input,
        outlived=tuple((cover.first, cover.last) for cover in covers),
        touched=touched,
    )


def _is_short(entry: Entry) -> bool:
    """Whether the view shows nothing of the original of a message, but another form in the place of each part."""
    if entry.source is None or not entry.shrunk:
        return False
    parts = [(index,) for index in range(len(entry.source.parts))]
    return () in entry.shrunk or all(path in entry.shrunk for path in parts)


def _says(run: AgentRun) -> bool:
    """Whether a text of the run may be left."""
    texts = [text for text in (run.task, run.result, run.reason) if text]
    return not texts or any(text != ERASED for text in texts)


def _sharing(branches: Iterable[Branch], number: int) -> Iterator[tuple[Branch, int]]:
    """The other branches of a tree, each with the last position that it has in common with this one."""
    tree = {branch.head.branch: branch for branch in branches}

    def past(at: int) -> dict[int, int]:
        """The branches that this one came from, and itself: up to which position it has each."""
        found, last = dict[int, int](), tree[at].head.position
        while at in tree and at not in found:
            found[at] = last
            last, at = min(last, tree[at].position), tree[at].parent
        return found

    own = past(number)
    for at, branch in tree.items():
        if at != number:
            common = [min(last, own[place]) for place, last in past(at).items() if place in own]
            yield branch, max(common, default=0)


def _spans(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Positions in order as runs of neighbours."""
    spans: list[tuple[int, int]] = []
    for position in positions:
        if spans and spans[-1][1] == position - 1:
            spans[-1] = spans[-1][0], position
        else:
            spans.append((position, position))
    return spans
