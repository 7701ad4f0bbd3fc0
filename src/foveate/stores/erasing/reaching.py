"""What is reached: rows that show a message again, edits and snapshots made of it, runs and steps that repeat it.

Looks at a whole tree of forks, and changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ...core.edits import Edit, Hide, Record, Replace, Restore, Summarize, named_messages
from ...core.effective_edits import EffectiveEdits
from ...core.handles import parse_handle, quoted_positions
from ...core.redacted_form import erased_edit, erased_stamp, is_erased
from ...core.runs import AgentRun, AgentRunStep, step_name
from ...core.snapshots import Cover, Snapshot, topmost
from ...errors import UnknownHandle
from ..lineage import Range, position_ranges, record_ranges
from . import texts
from .found import Reach
from .tree import Place, Seen, Tree

__all__ = ["reach"]

_END = 2**62
"""Behind every position."""

_Redact = Callable[[int, Edit, int], Edit]
"""An edit as it is to be, by its number, as it is, and the newest position that it could see."""


def reach(
    tree: Tree,
    ids: Collection[str],
    *,
    runs: Callable[[AgentRun], bool] = lambda run: False,
    keep_shown: bool = False,
    proves: bool = False,
) -> Reach:
    """Everything made of the messages with these ids. `runs`: of which runs all texts go too. `keep_shown`: summaries
    that a view shows are only marked, see `Store.erase`.

    `proves`: it is asked what was left over. Then two things are none: a form in which results of erased calls are
    shown (while it is erased it may tell what was asked; one that is made afterwards cannot), and what was marked.
    """
    return _Reaching(tree, runs, keep_shown, proves).all(ids)


class _Copy(NamedTuple):
    """A message in which the conversation showed others again."""

    place: Place
    seen: Seen


class _Reaching:
    def __init__(self, tree: Tree, runs: Callable[[AgentRun], bool], keep_shown: bool, proves: bool) -> None:
        self._tree, self._is_whole, self._keep_shown, self._proves = tree, runs, keep_shown, proves
        self._families = dict(tree.branches())
        self._ends: set[str] = set()
        """Ids at the ends of spans."""
        self._targets: set[str] = set()
        """Ids of messages that are shown in another form."""
        self._outliving: set[tuple[int, int]] = set()
        """Summaries that are marked: the branch that has the edit, and its number."""
        self._gone: dict[int, list[int]] = {}
        """By branch: positions of the messages that are erased, in order."""
        self._tombstones: dict[int, list[int]] = {}
        """By branch: positions of others that were erased before, in order; only where it counts."""
        self._covering: dict[int, list[tuple[int, Edit]]] = {}
        """By branch: its edits that cover messages, or show what was covered, without their texts."""
        for branch in self._families:
            for record in tree.records(branch):
                for number, edit in record.numbered():
                    self._note(branch, number, edit)
        self._positions: dict[str, int] = {}
        self._answers: list[tuple[Place, Seen]] = []
        """Results that are shown in another form."""
        self._first_of_run: dict[str, str] = {}
        """Id of the newest message of a user before the first one of a run."""
        self._rows: dict[Place, Seen] = {}
        """Of the messages that are erased."""

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

    def all(self, asked: Collection[str]) -> Reach:
        ids = set(asked)
        while True:  # A message that showed one of them may itself lie on other branches, under the same id.
            copies = self._read_rows(ids)
            more = {copy.seen.id for copy in copies if self._tells(copy, ids)}
            if more <= ids:
                break
            ids |= more
        said = [message.text for place in self._rows if (message := self._tree.said(place))]
        runs, steps = self._runs_and_steps(ids, texts.plain(said))
        shown = self._shown() if self._keep_shown else set()
        redact = {branch: self._redact(branch, ids, shown) for branch in self._families}
        records = list(self._records(redact))
        return Reach(
            {seen.id: place.position for place, seen in self._rows.items()},
            {place: seen.id for place, seen in self._rows.items()},
            [place for place, seen in self._rows.items() if seen.has_body],
            {p: bare for p, seen in self._rows.items() if (bare := erased_stamp(seen.stamp)) != seen.stamp},
            [(branch, record) for branch, record, _ in records],
            sum(edits for _, _, edits in records),
            dict(self._snapshots(redact)),
            runs,
            steps,
        )

    # ------------------------------------------------------------------------------------------------------ messages

    def _read_rows(self, ids: set[str]) -> list[_Copy]:
        """Note what is to be known of the rows, and return those that showed others again."""
        copies: list[_Copy] = []
        self._rows, self._answers, self._gone, self._tombstones = {}, [], {}, {}
        for branch in self._families:
            user = ""
            for seen in self._tree.rows(branch):
                place = Place(branch, seen.position)
                if seen.id in ids:
                    self._rows[place] = seen
                    self._gone.setdefault(branch, []).append(seen.position)
                elif self._keep_shown and not seen.has_body:
                    self._tombstones.setdefault(branch, []).append(seen.position)
                if seen.id in self._ends:
                    self._positions[seen.id] = seen.position
                if seen.id in self._targets and seen.stamp.origin in ("tool", "derived"):
                    self._answers.append((place, seen))
                if seen.stamp.expanded is not None:
                    copies.append(_Copy(place, seen))
                if seen.stamp.step:
                    self._first_of_run.setdefault(seen.stamp.step.rpartition("/")[0], user)
                elif seen.stamp.origin == "user":
                    user = seen.id
        return copies

    def _tells(self, copy: _Copy, ids: set[str]) -> bool:
        shown = copy.seen.stamp.expanded
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
        if shown.form != "search" or not copy.seen.has_body:
            return False
        message = self._tree.said(copy.place)
        found = quoted_positions(message.text) if message else set()
        return any(position in found for position in erased)

    def _erased_before(self, place: Place) -> list[int]:
        return [position for position in self._visible(place.branch, self._gone) if position < place.position]

    def _visible(self, branch: int, places: Mapping[int, Sequence[int]]) -> list[int]:
        """The positions that a branch has of these, which are told in order for the branch that they lie on."""
        found: list[int] = []
        for part in position_ranges(self._families[branch], branch, 1, _END):
            there = places.get(part.branch, ())
            found += there[bisect_left(there, part.first) : bisect_right(there, part.last)]
        return found

    def _answering(self, erased: Sequence[int], branch: int, ids: set[str]) -> set[str]:
        """Results of calls that were erased: the form that they are shown in may tell what was asked."""
        where = set(erased)
        turns = {seen.stamp.turn: place.position for place, seen in self._rows.items() if place.position in where}
        return {
            seen.id
            for place, seen in self._answers
            if place.branch == branch and seen.id not in ids and turns.get(seen.stamp.turn, _END) < place.position
        }

    # ------------------------------------------------------------------------------------------------------- the view

    def _shown(self) -> set[tuple[int, int]]:
        """Summaries that some branch's view shows: the branch that has the edit, and its number."""
        shown: set[tuple[int, int]] = set()
        for branch in self._families:
            edits = [
                (part.branch, number, edit)
                for part in self._parts(branch)
                for number, edit in self._covering.get(part.branch, ())
                if part.first <= number <= part.last
            ]
            owners = {number: owner for owner, number, _ in edits}
            standing = EffectiveEdits(((number, edit) for _, number, edit in edits), self._positions)
            covers = [
                Cover(number, *run, edit, 0, 0)
                for number, edit in standing.covers.items()
                if (run := standing.range_of(edit.span if isinstance(edit, Summarize) else edit.target))
            ]
            tops = (cover.number for cover in topmost(covers) if isinstance(cover.edit, Summarize))
            shown |= {(owners[number], number) for number in tops}
        return shown

    def _parts(self, branch: int) -> list[Range]:
        """Where the records of a branch lie, those that it shares too."""
        return list(record_ranges(self._families[branch], branch, 1, _END))

    def _redact(self, branch: int, ids: set[str], shown: set[tuple[int, int]]) -> _Redact:
        erased = self._visible(branch, self._gone)
        gone = sorted({*erased, *self._visible(branch, self._tombstones)})
        answers: set[str] = set()
        # A form that is shown stays, whatever it answers, where what is shown is kept.
        spares_answers = self._proves or self._keep_shown
        for part in () if spares_answers else position_ranges(self._families[branch], branch, 1, _END):
            answers |= self._answering(erased, part.branch, ids)

        def redact(number: int, edit: Edit, seen: int) -> Edit:
            match edit:
                case Replace(target=target) if target.message in ids or target.message in answers:
                    return erased_edit(edit)
                case Summarize() if self._proves and (branch, number) in self._outliving:
                    return edit
                case Summarize(span=span):
                    first, last = self._positions.get(span.first, 1), self._positions.get(span.last, seen)
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
            if snapshot is None:  # Of another version, or damaged: it may say anything, and nobody reads it.
                if self._rows:
                    yield branch, b""
            elif self._strip(snapshot, branch, redact):
                yield branch, snapshot.encode() if self._keep_shown else b""

    def _strip(self, snapshot: Snapshot, branch: int, redact: Mapping[int, _Redact]) -> bool:
        """Change a snapshot as the records change that it was made of. Whether there was anything to change."""
        parts = self._parts(branch)

        def changed(number: int, edit: Edit) -> Edit:
            owner = next((part.branch for part in parts if part.first <= number <= part.last), branch)
            return redact[owner](number, edit, snapshot.position)

        kept = [replace(one, edits=[(n, changed(n, edit)) for n, edit in one.edits]) for one in snapshot.kept]
        covers = [replace(one, edit=changed(one.number, one.edit)) for one in snapshot.covers]
        is_told = (kept, covers) != (snapshot.kept, snapshot.covers)
        snapshot.kept, snapshot.covers = kept, covers
        return is_told

    # ------------------------------------------------------------------------------------------------ runs and steps

    def _runs_and_steps(self, ids: set[str], said: Sequence[str]) -> tuple[list[AgentRun], list[AgentRunStep]]:
        names = {seen.stamp.step for seen in self._rows.values() if seen.stamp.step}
        replies = {
            (seen.stamp.step.rpartition("/")[0], seen.stamp.turn)
            for seen in self._rows.values()
            if seen.stamp.step and seen.stamp.origin == "assistant"
        }
        bare: set[str] = set()
        """Names of steps whose sub-agents' runs are erased whole."""
        asked: set[str] = set()
        """Names of steps whose sub-agents' tasks are erased."""
        runs: list[AgentRun] = []
        steps: list[AgentRunStep] = []
        for run in sorted(self._tree.runs(), key=lambda run: (run.parent != "", run.begun)):
            is_whole = run.parent in bare or self._is_whole(run)
            there = self._tree.steps(run.id)
            last = max((step.number for step in there if step.kind == "model"), default=0)
            fields: set[str] = {"task", "result", "reason"} if is_whole else set()
            if run.parent in asked or self._first_of_run.get(run.id) in ids:
                fields.add("task")
            fields |= {name for name in ("task", "result", "reason") if texts.repeats(getattr(run, name), said)}
            for step in there:
                name = step_name(run.id, step.number)
                if is_whole or step.message in ids or name in names:
                    erased = texts.erased_step(step, ("input", "output", "error"))
                    bare.add(name)
                    if step.number == last:
                        fields.add("result")
                elif (run.id, step.turn) in replies:
                    erased = texts.erased_step(step, ("input",))
                    asked.add(name)
                else:
                    continue
                if erased != step:
                    steps.append(erased)
            if (told := texts.erased_run(run, fields)) != run:
                runs.append(told)
        return runs, steps


def _any_in(positions: Sequence[int], first: int, last: int) -> bool:
    """Whether one of these positions, which are in order, lies in this run."""
    at = bisect_left(positions, first)
    return at < len(positions) and positions[at] <= last
