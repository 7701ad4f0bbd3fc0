"""Retention: messages over their age are erased, some at a time; those that the view still shows wait.

`core/retention.py` decides from stamps which messages are over their age. Here the stamps, the views of forks and, if a
rule needs them, bodies are read for it, and the store erases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from ..core.edits import Summarize
from ..core.handles import quoted_positions
from ..core.ids import ERASED
from ..core.retention import Age, AgeKind, OverAgeCheck, Visible, Wait, over_age_runs, shows_again
from ..core.runs import AgentRun
from ..core.stamps import StampRow
from ..core.view import Entry
from ..errors import ConflictError, NoSuchConversation
from ..ports import Branch, Erasure, Head
from .block_releases import BlockReleases
from .edit import Eraser
from .loading import row_of
from .releases import last_shared
from .state import ATTEMPTS, State

__all__ = ["RetentionCount", "RetentionReport", "RetentionRun"]

_ROWS = 1000
"""Stamps read at a time, without delaying other writers."""
_BODIES = 100
"""Messages read at a time, if a rule needs their content."""
_BATCH = 4000
"""Messages erased by one transaction, which takes some tenths of a second."""


class RetentionCount(Struct, frozen=True):
    """Messages over their age by the rules for one kind."""

    kind: AgeKind
    """The kind of the rules."""
    messages: int
    """Number of messages to erase, or with blocks to release."""
    bytes: int
    """As stored, compressed. For `plugin_blocks`: of the released content, before compression."""


class RetentionReport(Struct, frozen=True):
    """Messages of one conversation that are over their age, and the erasures."""

    conversation: str
    """Name of the conversation."""
    kinds: tuple[RetentionCount, ...] = ()
    """Messages to erase, by the kind of their rule; for `plugin_blocks`, messages with blocks to release."""
    waiting: tuple[tuple[Wait, int], ...] = ()
    """How many messages are over their age and wait, by reason."""
    runs: int = 0
    """Runs of agents whose texts are erased."""
    erased: tuple[Erasure, ...] = ()
    """The erasures, one for each transaction; empty for a dry run."""

    @property
    def messages(self) -> int:
        """Number of messages to erase, or with blocks to release."""
        return sum(count.messages for count in self.kinds)

    @property
    def bytes(self) -> int:
        """Bytes of these messages, compressed."""
        return sum(count.bytes for count in self.kinds)


class _OverAge(NamedTuple):
    """Messages and runs over their age now."""

    check: OverAgeCheck
    runs: list[AgentRun]
    head: Head
    """The conversation as it was read."""
    others: list[Head]
    """The other branches of its tree as they were read."""

    def report(self, name: str) -> RetentionReport:
        going = list(self.check.due.values())
        counts = Counter(message.age.kind for message in going if message.row.size)
        sizes: Counter[AgeKind] = Counter()
        for message in going:
            sizes[message.age.kind] += message.row.size
        kinds = tuple(RetentionCount(kind, counts[kind], sizes[kind]) for kind in sorted(counts))
        waits = Counter(reason for _, reason in self.check.waiting.values())
        return RetentionReport(name, kinds, tuple(sorted(waits.items())), len(self.runs))


class _Blocks(NamedTuple):
    """Released blocks of plugins."""

    messages: int
    bytes: int
    forked: int
    """Messages whose blocks wait, because a fork shares them."""

    def add_to(self, report: RetentionReport) -> RetentionReport:
        """Return the report with these blocks."""
        kinds, waits = report.kinds, dict(report.waiting)
        if self.messages:
            blocks = RetentionCount("plugin_blocks", self.messages, self.bytes)
            kinds = tuple(sorted((*kinds, blocks), key=lambda count: count.kind))
        if self.forked:
            waits["forked"] = waits.get("forked", 0) + self.forked
        return structs.replace(report, kinds=kinds, waiting=tuple(sorted(waits.items())))


class _Fork(NamedTuple):
    """A fork as it was read. It is opened again only if its head has moved."""

    head: Head
    shown: Visible
    copies: list[tuple[StampRow, frozenset[int]]]


class RetentionRun:
    """Erases the messages of one conversation that are over their age."""

    def __init__(self, state: State, eraser: Eraser) -> None:
        self._state, self._eraser = state, eraser
        self._erases_summaries = False
        """Whether something shown was erased, and with it summaries of it."""
        self._forks: dict[int, _Fork] = {}
        """By branch."""

    def apply(self, ages: Sequence[Age], who: str, reason: str, *, dry_run: bool) -> RetentionReport:
        """Erase what is over its age; with `dry_run` only report it.

        Raises ConflictError if other writers kept changing the view.
        """
        state = self._state
        state.refresh()
        blocks = self._release_blocks(ages, dry_run=dry_run)
        due = self._find(ages)
        report, erased = blocks.add_to(due.report(state.head.name)), list[Erasure]()
        for _ in range(0 if dry_run else ATTEMPTS):
            if self._erase(due, who, reason, erased):
                self._restore_uncovered()
                return structs.replace(report, erased=tuple(erased))
            state.refresh()
            due = self._find(ages)
            if not erased:  # Else the report goes on counting what is erased already.
                report = blocks.add_to(due.report(state.head.name))
        if dry_run:
            return report
        self._restore_uncovered()
        raise ConflictError(
            f"Other writers kept changing {state.head.label}, or a fork that shares what is over its age, so not all "
            f"of that was erased. `privacy.erasures()` lists what was. Try again later."
        )

    # ------------------------------------------------------------------------------------------------------ releasing

    def _release_blocks(self, ages: Sequence[Age], *, dry_run: bool) -> _Blocks:
        """Release the blocks of plugins over their age; with `dry_run` only count them."""
        releases = BlockReleases(self._state, ages)
        for _ in range(ATTEMPTS):
            due = releases.find()
            try:
                if not dry_run:
                    releases.release(due)
            except ConflictError:
                self._state.refresh()
                continue
            return _Blocks(len(due), sum(block.saved for block in due), releases.forked)
        raise ConflictError(
            f"Other writers kept changing the view of {self._state.head.label}, so not all blocks of plugins were "
            f"released. Try again later."
        )

    # ------------------------------------------------------------------------------------------------------- looking

    def _find(self, ages: Sequence[Age]) -> _OverAge:
        """Return what is over its age in the conversation as it stands."""
        state = self._state
        now, head = state.clock(), state.head
        check = OverAgeCheck(ages, now, _shown_by(state, self._newest_time(head, ages, now)))
        others: list[Head] = []
        for first in range(1, head.position + 1, _ROWS):
            for row in state.store.stamps(head, first, first + _ROWS - 1):
                check.take(row)
        self._look_for_media(check)
        if check.due:
            others = self._spare_shared(check, ages, now)
            for position, places in self._quoted(head, check.searches).items():
                check.set_quotes(position, places)
            check.spare_copied()
        runs: list[AgentRun] = []
        if any(age.kind == "runs" for age in ages):
            stored = state.store.runs(head)
            runs = [run for run in over_age_runs(stored, ages, now) if run.conversation == head.name and _has_text(run)]
        return _OverAge(check, runs, head, others)

    def _look_for_media(self, check: OverAgeCheck) -> None:
        unsure = list(check.undecided)
        for start in range(0, len(unsure), _BODIES):
            for row in self._state.store.get_many(self._state.head, unsure[start : start + _BODIES]):
                check.set_has_media(row.position, has_media=any(True for _ in row_of(row).message.media()))

    def _quoted(self, head: Head, searches: Sequence[int]) -> dict[int, frozenset[int]]:
        """Return the positions that the results of searches at these positions quote."""
        quoted: dict[int, frozenset[int]] = {}
        for start in range(0, len(searches), _BODIES):
            rows = self._state.store.get_many(head, searches[start : start + _BODIES])
            quoted |= {row.position: frozenset(quoted_positions(row_of(row).message.text)) for row in rows}
        return quoted

    def _copies(self, head: Head, shared: int) -> list[tuple[StampRow, frozenset[int]]]:
        """Return a fork's messages after position `shared` that show others again, with the positions they name."""
        copies: list[StampRow] = []
        for first in range(shared + 1, head.position + 1, _ROWS):
            rows = self._state.store.stamps(head, first, first + _ROWS - 1)
            copies += [row for row in rows if shows_again(row)]
        searches = [row.position for row in copies if row.stamp.expanded and row.stamp.expanded.form == "search"]
        quoted = self._quoted(head, searches)
        return [(row, quoted.get(row.position, frozenset())) for row in copies]

    def _newest_time(self, head: Head, ages: Sequence[Age], now: int) -> int:
        """Return the time of the newest message.

        If that decides, it is the latest time of all messages, since the clock may have gone back before the last one.
        """
        store = self._state.store
        rows = store.stamps(head, head.position, head.position)
        newest: int = rows[0].stamp.time if rows else now
        if any(age.kind == "conversations" and age.is_over(0, now - newest) for age in ages):
            for first in range(1, head.position + 1, _ROWS):
                rows = store.stamps(head, first, first + _ROWS - 1)
                newest = max(newest, *(row.stamp.time for row in rows))
        return newest

    def _spare_shared(self, check: OverAgeCheck, ages: Sequence[Age], now: int) -> list[Head]:
        """Keep what a fork shares and still needs. Returns all forks as they were read."""
        state, seen = self._state, list[Head]()
        branches = state.store.branches(state.head)
        oldest = min(check.due)
        for branch, shared in last_shared(branches, state.head.branch):
            if shared < oldest or not check.due:
                seen.append(branch.head)
                continue
            fork = self._forks.get(branch.head.branch)
            if fork is None or fork.head != branch.head or any(age.kind == "conversations" for age in ages):
                fork = self._read_fork(branch, shared, ages, now)
                self._forks[branch.head.branch] = fork
            seen.append(fork.head)
            check.spare_shared(shared, fork.shown, fork.copies)
        return seen

    def _read_fork(self, branch: Branch, shared: int, ages: Sequence[Age], now: int) -> _Fork:
        state = self._state
        other = State(
            state.store,
            state.format,
            structs.replace(state.model, window=None),
            state.clock,
        )
        try:
            other.open(branch.head.tenant, branch.head.name, create=False)
        except NoSuchConversation as error:
            raise ConflictError(f"The fork {branch.head.label} was renamed meanwhile. Try again.") from error
        shown = _shown_by(other, self._newest_time(other.head, ages, now))
        return _Fork(other.head, shown, self._copies(other.head, shared))

    # ------------------------------------------------------------------------------------------------------- erasing

    def _erase(self, due: _OverAge, who: str, reason: str, erased: list[Erasure]) -> bool:
        """Erase in batches. Returns False if the view changed meanwhile, so that everything must be found again."""
        state, check = self._state, due.check
        going = check.due
        if not going and not due.runs:
            return True
        # Without the erased messages, so that the conversation need not be read again. Erasures delete what it shows.
        state.save_snapshot(has_view=False)
        by_kind: dict[bool, list[int]] = {True: [], False: []}
        for position in sorted(going):
            by_kind[check.is_untouched or "shown" in going[position].age.even].append(position)
        batches = [
            (positions[start : start + _BATCH], not is_all)
            for is_all, positions in by_kind.items()
            for start in range(0, len(positions), _BATCH)
        ]
        runs: list[tuple[list[int], bool]] = [([], True)] if due.runs else []
        for positions, keep_shown in (*batches, *runs):
            ids = [run.id for run in due.runs] if not positions else False
            is_end = check.is_untouched and bool(positions) and positions == batches[-1][0]
            seen = [structs.replace(head, erased=state.head.erased) for head in (due.head, *due.others)]
            try:
                erasure = state.store.erase(
                    seen[0],
                    _spans(positions),
                    runs=is_end or ids,
                    keep_shown=keep_shown,
                    seen=seen,
                    is_still=check.is_untouched,
                    who=who,
                    reason=reason,
                    time=state.clock(),
                )
            except ConflictError:
                return False
            state.head = state.store.open(state.head.tenant, state.head.name, create=False)
            if erasure.number:
                erased.append(erasure)
                self._erases_summaries |= not keep_shown
            if state.head.number != due.head.number:
                return False
        return True

    def _restore_uncovered(self) -> None:
        self._state.refresh()
        if self._erases_summaries:
            self._eraser.restore_uncovered()


def _shown_by(state: State, newest_time: int) -> Visible:
    """Return what the view of a conversation shows. `newest_time`: of its newest message."""
    entries = state.projection.entries()
    rows = [entry for entry in entries if entry.outline is not None]
    covers = [cover for cover in state.projection.covers() if isinstance(cover.edit, Summarize) and cover.edit.outlives]
    withheld = state.projection.withheld()
    return Visible(
        turn=state.projection.facts.turn,
        whole=frozenset(entry.position for entry in (*rows, *withheld) if not _is_short(entry)),
        short=frozenset(entry.position for entry in rows if _is_short(entry)),
        pinned=frozenset(entry.position for entry in rows if entry.pins),
        last_input=state.projection.facts.last_input,
        outlived=tuple((cover.first, cover.last) for cover in covers),
        touched=newest_time,
    )


def _is_short(entry: Entry) -> bool:
    """Return whether the view replaces every part of a message by another form."""
    if entry.outline is None or not entry.shrunk:
        return False
    parts = [(index,) for index in range(len(entry.outline.parts))]
    return () in entry.shrunk or all(path in entry.shrunk for path in parts)


def _has_text(run: AgentRun) -> bool:
    """Return whether a text of the run may be left to erase."""
    texts = [text for text in (run.task, run.result, run.reason) if text]
    return not texts or any(text != ERASED for text in texts)


def _spans(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending positions as spans of neighbours."""
    spans: list[tuple[int, int]] = []
    for position in positions:
        if spans and spans[-1][1] == position - 1:
            spans[-1] = spans[-1][0], position
        else:
            spans.append((position, position))
    return spans
