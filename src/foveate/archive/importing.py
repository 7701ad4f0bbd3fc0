"""Brings an archive into a store: checked as a whole first, then written a tree at a time.

New conversations are written under names of their own and get theirs at the very end, in one transaction, so that
nobody meets half of one. An import that broke off is made again and goes on where it was. What is there already is left
as it is; what was erased there stays erased.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct

from ..core import ids, wire
from ..core.edits import Record
from ..core.runs import AgentRun, AgentRunStep
from ..errors import BadSetting, StoreError
from ..ports import IMPORTING, Database, Erasure, Head, StoredMessage, append
from . import lines
from .checking import Conflicts, check, opened
from .lines import (
    ActionLine,
    BindingLine,
    BranchLine,
    ErasureLine,
    Fork,
    Line,
    MessageLine,
    PromptLine,
    RecordLine,
    RunLine,
    StepLine,
    TreeLine,
)
from .reading import each_line, opening_of

__all__ = ["Imported", "import_archive"]

_ROWS, _BYTES = 500, 4_000_000
"""Messages, or records, and bytes of them, up to which they are written in one transaction."""


class Imported(Struct, frozen=True):
    """What an import came to."""

    conversations: int = 0
    """Of the archive."""
    new: int = 0
    """Of these, how many were not there before."""
    messages: int = 0
    """How many were written; the others were there."""
    records: int = 0
    renamed: dict[str, str] = {}
    """Conversations that got another name, from the archive's name to theirs."""


def import_archive(
    store: Database,
    path: str | Path,
    *,
    tenant: str | None = None,
    on_conflict: Conflicts = "refuse",
    on_progress: Callable[[str, int], object] | None = None,
) -> Imported:
    """Bring what an archive holds into a store, and tell what it came to.

    The file is read twice: all of it is checked before anything is written, every hash computed again. `tenant`: whose
    it becomes (default: whose it was). What is there already and the same is passed over; a conversation that is there
    and stops earlier is continued. `on_conflict`: where one of the same name has another past, `"refuse"` it all, or
    `"rename"` its whole tree (`NAME~imported`). `on_progress` is called now and then with `check` or `write` and the
    number of the line.

    Raises BadTranscript where the file is not sound, naming the line, and BadSetting where something that is there
    already differs; then nothing was written. Raises StoreError where the store cannot go on: import again, and it goes
    on from there.
    """
    if on_conflict not in ("refuse", "rename"):
        raise BadSetting(f'on_conflict is "refuse" or "rename", not {on_conflict!r}.')
    file = Path(path).expanduser()
    whose = opening_of(file).tenant if tenant is None else tenant
    suffixes = check(file, store, whose, on_conflict, _telling(on_progress, "check"))
    told = _telling(on_progress, "write")
    importing = _Importing(store, whose, suffixes)
    for number, line in each_line(file):
        importing.take(line)
        told(number)
    importing.finish()
    return importing.result


class _Tree:
    """The tree that is being written."""

    def __init__(self, store: Database, tenant: str, line: TreeLine, suffix: str) -> None:
        self.forks = {fork.branch: fork for fork in line.branches}
        self.heads: dict[int, Head] = {}
        self.renaming: dict[str, str] = {}
        """From the name under which it is written to the name it shall have."""
        self.fork = line.branches[0]
        self.runs: dict[str, AgentRun] | None = None
        self.steps: dict[int, AgentRunStep] = {}
        self._store, self._tenant, self._suffix = store, tenant, suffix
        self._tag = blake2b(lines.encode(line) + suffix.encode(), digest_size=8).hexdigest()
        self._rows: list[StoredMessage] = []
        self._records: list[tuple[str, Record]] = []
        self._size = 0
        self.messages = self.records = 0

    @property
    def head(self) -> Head:
        return self.heads[self.fork.branch]

    def begin(self, fork: Fork) -> None:
        self.fork = fork
        name = fork.name + self._suffix
        head = opened(self._store, self._tenant, name)
        if head is None:
            beside = f"{IMPORTING}{self._tag}-{fork.branch}"
            self.renaming[beside] = name
            head = opened(self._store, self._tenant, beside)
            if head is None and fork.parent:
                head = self._store.fork(self.heads[fork.parent], beside, fork.after, fork.after_edit)
            elif head is None:
                head = self._store.open(self._tenant, beside)
        self.heads[fork.branch] = head

    def message(self, line: MessageLine) -> None:
        if line.position <= self.head.position:
            return
        body, digest = self._said(line)
        self._rows.append(StoredMessage(line.position, line.id, line.seal, line.stamp, body, digest))
        self._added(len(body))

    def record(self, line: RecordLine) -> None:
        body = bytes(line.record)
        record = wire.decode_record(body)
        if record.first > self.head.number:
            self._records.append((line.id, record))
            self._added(len(body))

    def run(self, run: AgentRun) -> None:
        if self.runs is None:
            self.runs = {run.id: run for run in self._store.runs(self.heads[1])}
        there = self.runs.get(run.id)
        self.steps = {step.number: step for step in self._store.steps(self.heads[1], run.id)} if there else {}
        if there is None or (there.state == "running" and there != run):
            self._store.put_run(self.heads[1], run)

    def step(self, step: AgentRunStep) -> None:
        there = self.steps.get(step.number)
        if there is None or (there.state == "running" and there != step):
            self._store.put_step(self.heads[1], step)

    def erasure(self, erased: Erasure) -> None:
        # A tree that was there has records of its own, and lacks what was erased elsewhere.
        if self.heads[1].name in self.renaming:
            self._store.add_erasure(self.heads[1], erased)

    def flush(self) -> None:
        """Write what was gathered: first messages, since the records that follow tell of them."""
        if self._rows:
            self.heads[self.fork.branch] = append(self._store, self.head, self._rows)
        if self._records:
            self.heads[self.fork.branch] = self._store.commit_all(self.head, self._records)
        self.messages += len(self._rows)
        self.records += len(self._records)
        self._rows, self._records, self._size = [], [], 0

    def end(self) -> None:
        """Give the new conversations their names."""
        for branch, head in self.heads.items():
            fork = self.forks[branch]
            if head.name in self.renaming and _ends(head) != _ends(fork):
                raise StoreError(f"Somebody else wrote to {fork.name!r} while it was imported. Import again.")
        if self.renaming:
            self._store.rename(self._tenant, self.renaming)

    def _added(self, size: int) -> None:
        self._size += size
        if len(self._rows) + len(self._records) >= _ROWS or self._size >= _BYTES:
            self.flush()

    def _said(self, line: MessageLine) -> tuple[bytes, str]:
        if isinstance(line.message, msgspec.Raw):
            body = bytes(line.message)
            return body, ids.body_hash(body)
        if isinstance(line.same, tuple):
            branch, position = line.same
            if branch == self.fork.branch and position > self.head.position:
                self.flush()  # It is not written yet.
            (row,) = self._store.get_many(self.heads[branch], [position])
            return row.body, row.body_hash
        return b"", str(line.erased)


class _Importing:
    def __init__(self, store: Database, tenant: str, suffixes: dict[int, str]) -> None:
        self._store, self._tenant, self._suffixes = store, tenant, suffixes
        self._trees = 0
        self._now: _Tree | None = None
        self._counts = dict.fromkeys(("conversations", "new", "messages", "records"), 0)
        self._renamed: dict[str, str] = {}

    @property
    def result(self) -> Imported:
        return Imported(**self._counts, renamed=self._renamed)

    def take(self, line: Line) -> None:
        match line:
            case PromptLine(prompt=prompt):
                self._store.put_prompt(self._tenant, prompt)
            case ActionLine(action=action):
                self._store.put_action(self._tenant, action)
            case BindingLine(binding=binding):
                self._store.put_binding(self._tenant, binding)
            case TreeLine(branches=branches):
                self.finish()
                self._trees += 1
                suffix = self._suffixes.get(self._trees, "")
                if suffix:
                    self._renamed.update((fork.name, fork.name + suffix) for fork in branches)
                self._now = _Tree(self._store, self._tenant, line, suffix)
            case _ if self._now is not None:
                _into(self._now, line)

    def finish(self) -> None:
        """The tree is read to its end, if there is one."""
        tree, self._now = self._now, None
        if tree is not None:
            tree.flush()
            tree.end()
            added = len(tree.forks), len(tree.renaming), tree.messages, tree.records
            for what, count in zip(self._counts, added, strict=True):
                self._counts[what] += count


def _into(tree: _Tree, line: Line) -> None:
    match line:
        case BranchLine(branch=branch):
            tree.flush()
            tree.begin(tree.forks[branch])
        case MessageLine():
            tree.message(line)
        case RecordLine():
            tree.record(line)
        case RunLine(run=run):
            tree.flush()
            tree.run(run)
        case StepLine(step=step):
            tree.step(step)
        case ErasureLine(erasure=erased):
            tree.flush()
            tree.erasure(erased)


def _ends(end: Head | Fork) -> tuple[int, str, str, int, str]:
    return end.position, end.tip, end.seal, end.number, end.record


def _telling(on_progress: Callable[[str, int], object] | None, doing: str) -> Callable[[int], object]:
    def tell(number: int) -> None:
        if on_progress is not None and number % 1000 == 0:
            on_progress(doing, number)

    return tell
