"""Find all data in a tree of forks that derives from some messages: what an erasure has to change.

A pure function of the stored data. It names the rows, edits, snapshots, runs and steps that contain text of the
messages, and their replacements; a store writes these in one transaction. Called for messages that are erased already,
it names what is left, which proves the erasure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..core.edits import Edit, Hide, Record, Replace, Restore, Summarize, named_messages, target_of
from ..core.effective_edits import EffectiveEdits
from ..core.handles import parse_handle, quoted_positions
from ..core.ids import ERASED, erased_edit, erased_stamp, is_erased
from ..core.messages import Message
from ..core.runs import AgentRun, AgentRunStep, step_name
from ..core.snapshots import Cover, Snapshot, topmost
from ..core.stamps import Stamp
from ..errors import UnknownHandle
from .lineage import Lineage, Range, position_ranges, record_ranges

__all__ = ["DerivedData", "Ends", "Place", "Row", "Tree", "derived_data"]

T = TypeVar("T", AgentRun, AgentRunStep)

Ends = Mapping[int, tuple[int, int, int]]
"""By branch: its newest message, its newest edit, and the newest erasure that it knows."""


class Place(NamedTuple):
    """The row of a message: its own branch and position."""

    branch: int
    position: int


class Row(NamedTuple):
    """The row of a message, without its body."""

    position: int
    id: str
    stamp: Stamp
    has_body: bool


class Tree(Protocol):
    """A tree of forks as it is stored. The rows and records of a branch are its own, without those that it shares."""

    def branches(self) -> Mapping[int, Lineage]:
        """Return all branches with their lineages."""
        ...

    def rows(self, branch: int, first: int = 1) -> Iterable[Row]:
        """Yield the rows of a branch from a position on, in order."""
        ...

    def message(self, place: Place) -> Message | None:
        """Return the message of a row; None if it is erased or damaged."""
        ...

    def records(self, branch: int) -> Iterable[Record]:
        """Yield the records of a branch, in order."""
        ...

    def snapshots(self) -> Iterable[tuple[int, bytes]]:
        """Yield the snapshots with their branches."""
        ...

    def runs(self) -> Sequence[AgentRun]:
        """Return all runs of the tree."""
        ...

    def steps(self, run: str) -> Sequence[AgentRunStep]:
        """Return the steps of a run."""
        ...


class DerivedData(Struct):
    """The data that derives from some messages, and its replacements."""

    ids: dict[str, int]
    """The messages and those that repeat them: id to position."""
    places: dict[Place, str]
    """Their rows, and the id of each."""
    bodies: list[Place]
    """Those of the rows that still have a body."""
    stamps: dict[Place, Stamp]
    """Those of the rows whose stamps contain facts of an application, and the stamps without these."""
    records: list[tuple[int, Record]]
    """Records with an edit that contains derived text, by branch, and without this text."""
    edits: int
    """The number of edits that change in these records."""
    snapshots: dict[int, bytes]
    """Snapshots that contain derived text, by branch, without it; b"" for one that is to be deleted."""
    runs: list[AgentRun]
    steps: list[AgentRunStep]

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to erase."""
        return not (self.bodies or self.stamps or self.records or self.snapshots or self.runs or self.steps)


_END = 2**62
"""After every position."""

_Redact = Callable[[int, Edit, int], Edit]
"""Returns an edit without derived text, from its number, the edit, and the newest position at its time."""


def derived_data(
    tree: Tree,
    ids: Collection[str],
    *,
    runs: Callable[[AgentRun], bool] = lambda run: False,
    keep_shown: bool = False,
    proves: bool = False,
) -> DerivedData:
    """Return everything that derives from the messages with these ids.

    `runs`: whether all texts of a run are erased too. `keep_shown`: summaries that a view shows are only marked (see
    `Erases.erase`). `proves`: the messages are erased already, and the result is what is left. Two things are none
    then: shortened results of erased calls (at the erasure they may contain the call; those made later cannot), and
    marked summaries.
    """
    return _Search(tree, runs, keep_shown, proves).run(ids)


class _Copy(NamedTuple):
    """A message that repeats others."""

    place: Place
    row: Row


class _Search:
    def __init__(self, tree: Tree, runs: Callable[[AgentRun], bool], keep_shown: bool, proves: bool) -> None:
        self._tree, self._is_whole, self._keep_shown, self._proves = tree, runs, keep_shown, proves
        self._families = dict(tree.branches())
        self._ends: set[str] = set()
        """Ids at the ends of summarized spans."""
        self._targets: set[str] = set()
        """Ids of messages with a replacement."""
        self._outliving: set[tuple[int, int]] = set()
        """Marked summaries: the branch of the edit, and its number."""
        self._gone: dict[int, list[int]] = {}
        """By branch: the positions of the messages to erase, in order."""
        self._tombstones: dict[int, list[int]] = {}
        """By branch: the positions of messages that were erased before, in order; only with `keep_shown`."""
        self._covering: dict[int, list[tuple[int, Edit]]] = {}
        """By branch: the edits that hide or restore messages, without their texts; only with `keep_shown`."""
        for branch in self._families:
            for record in tree.records(branch):
                for number, edit in record.numbered():
                    self._note(branch, number, edit)
        self._positions: dict[str, int] = {}
        self._answers: list[tuple[Place, Row]] = []
        """Results with a replacement."""
        self._first_of_run: dict[str, str] = {}
        """By run: the id of the newest user message before its first message."""
        self._rows: dict[Place, Row] = {}
        """The rows of the messages to erase."""

    def _note(self, branch: int, number: int, edit: Edit) -> None:
        if isinstance(edit, Replace):
            self._targets.add(edit.target.message)
        elif isinstance(edit, Summarize):
            self._ends |= {edit.span.first, edit.span.last}
            if edit.outlives:
                self._outliving.add((branch, number))
        if self._keep_shown and isinstance(edit, Hide | Summarize | Restore):
            self._ends.update(named_messages([edit]))
            bare = replace(edit, text="", refused=()) if isinstance(edit, Summarize) else edit
            self._covering.setdefault(branch, []).append((number, bare))

    def run(self, wanted: Collection[str]) -> DerivedData:
        ids = set(wanted)
        while True:  # A message that repeats one of them may be on other branches too, with the same id.
            copies = self._read_rows(ids)
            more = {copy.row.id for copy in copies if self._repeats(copy, ids)}
            if more <= ids:
                break
            ids |= more
        messages = filter(None, map(self._tree.message, self._rows))
        quotes = [plain for message in messages if (plain := _plain(message.text))]
        runs, steps = self._runs_and_steps(ids, quotes)
        shown = self._shown() if self._keep_shown else set()
        redact = {branch: self._redact(branch, ids, shown) for branch in self._families}
        records = list(self._records(redact))
        return DerivedData(
            {row.id: place.position for place, row in self._rows.items()},
            {place: row.id for place, row in self._rows.items()},
            [place for place, row in self._rows.items() if row.has_body],
            {p: bare for p, row in self._rows.items() if (bare := erased_stamp(row.stamp)) != row.stamp},
            [(branch, record) for branch, record, _ in records],
            sum(edits for _, _, edits in records),
            dict(self._snapshots(redact)),
            runs,
            steps,
        )

    # ------------------------------------------------------------------------------------------------------ messages

    def _read_rows(self, ids: set[str]) -> list[_Copy]:
        """Collect facts about the rows, and return the messages that repeat others."""
        copies: list[_Copy] = []
        self._rows, self._answers, self._gone, self._tombstones = {}, [], {}, {}
        for branch in self._families:
            user = ""
            for row in self._tree.rows(branch):
                place = Place(branch, row.position)
                if row.id in ids:
                    self._rows[place] = row
                    self._gone.setdefault(branch, []).append(row.position)
                elif self._keep_shown and not row.has_body:
                    self._tombstones.setdefault(branch, []).append(row.position)
                if row.id in self._ends:
                    self._positions[row.id] = row.position
                if row.id in self._targets and row.stamp.origin in ("tool", "derived"):
                    self._answers.append((place, row))
                if row.stamp.expanded is not None:
                    copies.append(_Copy(place, row))
                if row.stamp.step:
                    self._first_of_run.setdefault(row.stamp.step.rpartition("/")[0], user)
                elif row.stamp.origin == "user":
                    user = row.id
        return copies

    def _repeats(self, copy: _Copy, ids: set[str]) -> bool:
        shown = copy.row.stamp.expanded
        if shown is None or not shown.is_copy:
            return False
        if shown.message in ids:
            return True
        erased = self._erased_before(copy.place)
        if shown.handle:
            try:
                span = parse_handle(shown.handle)
            except UnknownHandle:
                return bool(erased)
            return any(span.first <= position <= span.last for position in erased)
        if shown.form != "search" or not copy.row.has_body:
            return False
        message = self._tree.message(copy.place)
        found = quoted_positions(message.text) if message else set()
        return any(position in found for position in erased)

    def _erased_before(self, place: Place) -> list[int]:
        return [position for position in self._visible(place.branch, self._gone) if position < place.position]

    def _visible(self, branch: int, places: Mapping[int, Sequence[int]]) -> list[int]:
        """Return the positions among `places` (by branch, in order) that a branch shows."""
        found: list[int] = []
        for part in position_ranges(self._families[branch], branch, 1, _END):
            there = places.get(part.branch, ())
            found += there[bisect_left(there, part.first) : bisect_right(there, part.last)]
        return found

    def _answering(self, erased: Sequence[int], branch: int, ids: set[str]) -> set[str]:
        """Return the ids of results whose calls are erased: their replacements may contain the call."""
        where = set(erased)
        turns = {
            row.stamp.turn: place.position
            for place, row in self._rows.items()
            if place.position in where and row.stamp.origin not in ("tool", "user")  # These make no calls.
        }
        return {
            row.id
            for place, row in self._answers
            if place.branch == branch and row.id not in ids and turns.get(row.stamp.turn, _END) < place.position
        }

    # ------------------------------------------------------------------------------------------------------- the view

    def _shown(self) -> set[tuple[int, int]]:
        """Return the summaries that the view of a branch shows: the branch of the edit, and its number."""
        shown: set[tuple[int, int]] = set()
        for branch in self._families:
            edits = [
                (part.branch, number, edit)
                for part in self._parts(branch)
                for number, edit in self._covering.get(part.branch, ())
                if part.first <= number <= part.last
            ]
            owners = {number: owner for owner, number, _ in edits}
            effective = EffectiveEdits(((number, edit) for _, number, edit in edits), self._positions)
            covers = [
                Cover(number, *span, edit, 0, 0)
                for number, edit in effective.covers.items()
                if (span := effective.range_of(target_of(edit)))
            ]
            tops = (cover.number for cover in topmost(covers) if isinstance(cover.edit, Summarize))
            shown |= {(owners[number], number) for number in tops}
        return shown

    def _parts(self, branch: int) -> list[Range]:
        """Return the rows of a branch's records, including shared ones."""
        return list(record_ranges(self._families[branch], branch, 1, _END))

    def _redact(self, branch: int, ids: set[str], shown: set[tuple[int, int]]) -> _Redact:
        erased = self._visible(branch, self._gone)
        gone = sorted({*erased, *self._visible(branch, self._tombstones)})
        answers: set[str] = set()
        # With `keep_shown` every shown replacement stays, even that of the result of an erased call.
        spares_answers = self._proves or self._keep_shown
        for part in () if spares_answers else position_ranges(self._families[branch], branch, 1, _END):
            answers |= self._answering(erased, part.branch, ids)

        def redact(number: int, edit: Edit, newest: int) -> Edit:
            match edit:
                case Replace(target=target) if target.message in ids or target.message in answers:
                    return erased_edit(edit)
                case Summarize() if self._proves and (branch, number) in self._outliving:
                    return edit
                case Summarize(span=span):
                    first, last = self._positions.get(span.first, 1), self._positions.get(span.last, newest)
                    if self._keep_shown and (branch, number) in shown:
                        return replace(edit, outlives=True) if _any_in(gone, first, last) and not edit.erased else edit
                    is_over = (branch, number) in self._outliving and _any_in(gone, first, last)
                    return erased_edit(edit) if is_over or _any_in(erased, first, last) else edit
            return edit

        return redact

    def _records(self, redact: Mapping[int, _Redact]) -> Iterator[tuple[int, Record, int]]:
        for branch, change in redact.items():
            for record in self._tree.records(branch):
                edits = tuple(change(number, edit, record.position) for number, edit in record.numbered())
                if edits != record.edits:
                    gone = sum(is_erased(new) and new != old for new, old in zip(edits, record.edits, strict=True))
                    yield branch, replace(record, edits=edits), gone

    def _snapshots(self, redact: Mapping[int, _Redact]) -> Iterator[tuple[int, bytes]]:
        for branch, body in self._tree.snapshots():
            snapshot = Snapshot.decode(body)
            if snapshot is None:  # Of another version, or damaged: it is never read.
                if self._rows:
                    yield branch, b""
            elif self._strip(snapshot, branch, redact):
                yield branch, snapshot.encode() if self._keep_shown else b""

    def _strip(self, snapshot: Snapshot, branch: int, redact: Mapping[int, _Redact]) -> bool:
        """Change a snapshot as its records change; return whether it changed."""
        parts = self._parts(branch)

        def changed(number: int, edit: Edit) -> Edit:
            owner = next((part.branch for part in parts if part.first <= number <= part.last), branch)
            return redact[owner](number, edit, snapshot.position)

        kept = [replace(slot, edits=[(n, changed(n, edit)) for n, edit in slot.edits]) for slot in snapshot.kept]
        covers = [replace(cover, edit=changed(cover.number, cover.edit)) for cover in snapshot.covers]
        is_changed = (kept, covers) != (snapshot.kept, snapshot.covers)
        snapshot.kept, snapshot.covers = kept, covers
        return is_changed

    # ------------------------------------------------------------------------------------------------ runs and steps

    def _runs_and_steps(self, ids: set[str], quotes: Sequence[str]) -> tuple[list[AgentRun], list[AgentRunStep]]:
        names = {row.stamp.step for row in self._rows.values() if row.stamp.step}
        replies = {
            (row.stamp.step.rpartition("/")[0], row.stamp.turn)
            for row in self._rows.values()
            if row.stamp.step and row.stamp.origin == "assistant"
        }
        bare: set[str] = set()
        """Names of steps whose sub-agents' runs lose all texts."""
        without_task: set[str] = set()
        """Names of steps whose sub-agents' runs lose their tasks."""
        runs: list[AgentRun] = []
        steps: list[AgentRunStep] = []
        for run in sorted(self._tree.runs(), key=lambda run: (run.parent != "", run.begun)):
            is_whole = run.parent in bare or self._is_whole(run)
            there = self._tree.steps(run.id)
            last = max((step.number for step in there if step.kind == "model"), default=0)
            fields: set[str] = {"task", "result", "reason"} if is_whole else set()
            if run.parent in without_task or self._first_of_run.get(run.id) in ids:
                fields.add("task")
            fields |= {name for name in ("task", "result", "reason") if _quotes_any(getattr(run, name), quotes)}
            for step in there:
                name = step_name(run.id, step.number)
                if is_whole or step.message in ids or name in names:
                    erased = _without(step, ("input", "output", "error"))
                    bare.add(name)
                    if step.number == last:
                        fields.add("result")
                elif (run.id, step.turn) in replies:
                    erased = _without(step, ("input",))
                    without_task.add(name)
                else:
                    continue
                if erased != step:
                    steps.append(erased)
            if (erased_run := _without(run, fields)) != run:
                runs.append(erased_run)
        return runs, steps


def _any_in(positions: Sequence[int], first: int, last: int) -> bool:
    """Return whether one of these positions, which are in order, is in this span."""
    at = bisect_left(positions, first)
    return at < len(positions) and positions[at] <= last


# ------------------------------------------------------------------------------------------------------------ texts

_SPACE = re.compile(r"\s+")
_QUOTE = 12
"""Characters from which a text counts as quoted within another: shorter texts are in many others."""
_CUT = " .\u2026"
"""Characters at the end of a text that was cut short."""


def _quotes_any(text: str, quotes: Iterable[str]) -> bool:
    """Return whether a text equals or is the beginning of one of `quotes`, or contains one. Blanks do not count.

    `quotes`: as `_plain` returns them, none of them empty.
    """
    plain = _plain(text)
    if not plain or plain == ERASED:
        return False
    return any(plain in quote or (len(quote) >= _QUOTE and quote in plain) for quote in quotes)


def _without(value: T, fields: Collection[str]) -> T:
    """Return a run or a step without these texts."""
    changes: dict[str, Any] = {name: ERASED for name in fields if getattr(value, name)}
    return replace(value, **changes)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip().rstrip(_CUT)
