"""Import an archive into a store: checked as a whole first, then written tree by tree.

New conversations get temporary names, and their final names at the end, in one transaction, so that no reader sees an
incomplete one. An interrupted import continues when it is started again. Existing conversations are not changed, and
erased messages stay erased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ...core import ids, wire
from ...core.edits import Record
from ...core.runs import AgentRun, AgentRunStep
from ...errors import BadSetting, StoreError
from ...ports import IMPORTING, Database, Erasure, Head, StoredMessage, append
from . import lines
from .check import check, find_head
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
    each_line,
    opening_of,
)

__all__ = ["Imported", "UnfinishedImport", "drop_unfinished", "find_unfinished", "import_archive"]

_ROWS, _BYTES = 500, 4_000_000
"""Messages or records, and their bytes, per transaction."""


class Imported(Struct, frozen=True):
    """The result of an import."""

    conversations: int = 0
    """Conversations in the archive."""
    new: int = 0
    """Those that were not in the store before."""
    messages: int = 0
    """Messages that were written; the others were in the store."""
    records: int = 0
    """Records of journals that were added."""
    renamed: dict[str, str] = {}
    """New names of conversations, by their names in the archive."""


def import_archive(
    store: Database,
    path: str | Path,
    *,
    tenant: str | None = None,
    on_conflict: Literal["refuse", "rename"] = "refuse",
    on_progress: Callable[[str, int], object] | None = None,
) -> Imported:
    """Write the conversations of an archive to a store, and return the result.

    The file is read twice: all hashes are checked before anything is written. `tenant`: the new owner (default: the
    tenant of the archive). Equal conversations are skipped; one that ends earlier is continued. `on_conflict`: if a
    conversation of the same name has another past, `"refuse"` the whole import, or `"rename"` its tree
    (`NAME~imported`). `on_progress` is called from time to time with `check` or `write` and the number of the line.

    Raises BadTranscript with the line if the file is not sound, and BadSetting if it differs from the store; nothing is
    written then. Raises StoreError if the store fails: start the import again, and it continues.
    """
    if on_conflict not in ("refuse", "rename"):
        raise BadSetting(f'on_conflict is "refuse" or "rename", not {on_conflict!r}.')
    file = Path(path).expanduser()
    owner = opening_of(file).tenant if tenant is None else tenant
    suffixes = check(file, store, owner, on_conflict, _reporter(on_progress, "check"))
    report = _reporter(on_progress, "write")
    importer = _Importer(store, owner, suffixes)
    for number, line in each_line(file):
        importer.take(line)
        report(number)
    importer.finish()
    return importer.result


class _Tree:
    """The tree that is being written."""

    def __init__(self, store: Database, tenant: str, line: TreeLine, suffix: str) -> None:
        self.forks = {fork.branch: fork for fork in line.branches}
        self.heads: dict[int, Head] = {}
        self.renaming: dict[str, str] = {}
        """Final names, by temporary names."""
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
        head = find_head(self._store, self._tenant, name)
        if head is None:
            temporary = f"{IMPORTING}{self._tag}-{fork.branch}"
            self.renaming[temporary] = name
            head = find_head(self._store, self._tenant, temporary)
            if head is None and fork.parent:
                head = self._store.fork(self.heads[fork.parent], temporary, fork.after, fork.after_edit)
            elif head is None:
                head = self._store.open(self._tenant, temporary)
        self.heads[fork.branch] = head

    def message(self, line: MessageLine) -> None:
        if line.position <= self.head.position:
            return
        body, digest = self._body(line)
        row = StoredMessage(line.position, line.id, line.seal, line.stamp, body, digest, isinstance(line.released, str))
        self._rows.append(row)
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
        known = self.runs.get(run.id)
        self.steps = {step.number: step for step in self._store.steps(self.heads[1], run.id)} if known else {}
        if known is None or (known.state == "running" and known != run):
            self._store.put_run(self.heads[1], run)

    def step(self, step: AgentRunStep) -> None:
        known = self.steps.get(step.number)
        if known is None or (known.state == "running" and known != step):
            self._store.put_step(self.heads[1], step)

    def erasure(self, erased: Erasure) -> None:
        # A tree that existed before has its own records.
        if self.heads[1].name in self.renaming:
            self._store.add_erasure(self.heads[1], erased)

    def flush(self) -> None:
        """Write the collected rows: messages first, because records refer to them."""
        if self._rows:
            self.heads[self.fork.branch] = append(self._store, self.head, self._rows)
        if self._records:
            self.heads[self.fork.branch] = self._store.commit_all(self.head, self._records)
        self.messages += len(self._rows)
        self.records += len(self._records)
        self._rows, self._records, self._size = [], [], 0

    def end(self) -> None:
        """Give the new conversations their final names."""
        for branch, head in self.heads.items():
            fork = self.forks[branch]
            if head.name in self.renaming and _ends(head) != _ends(fork):
                raise StoreError(f"Another program wrote to {fork.name!r} during the import. Import again.")
        if self.renaming:
            self._store.rename(self._tenant, self.renaming)

    def _added(self, size: int) -> None:
        self._size += size
        if len(self._rows) + len(self._records) >= _ROWS or self._size >= _BYTES:
            self.flush()

    def _body(self, line: MessageLine) -> tuple[bytes, str]:
        if isinstance(line.message, msgspec.Raw):
            body = bytes(line.message)
            return body, line.released if isinstance(line.released, str) else ids.body_hash(body)
        if isinstance(line.same, tuple):
            branch, position = line.same
            if branch == self.fork.branch and position > self.head.position:
                self.flush()  # The message that it repeats is not written yet.
            (row,) = self._store.get_many(self.heads[branch], [position])
            return row.body, row.body_hash
        return b"", str(line.erased)


class _Importer:
    def __init__(self, store: Database, tenant: str, suffixes: dict[int, str]) -> None:
        self._store, self._tenant, self._suffixes = store, tenant, suffixes
        self._trees = 0
        self._tree: _Tree | None = None
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
                self._tree = _Tree(self._store, self._tenant, line, suffix)
            case _ if self._tree is not None:
                _into(self._tree, line)

    def finish(self) -> None:
        """End the current tree, if there is one."""
        tree, self._tree = self._tree, None
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


def _reporter(on_progress: Callable[[str, int], object] | None, phase: str) -> Callable[[int], object]:
    def report(number: int) -> None:
        if on_progress is not None and number % 1000 == 0:
            on_progress(phase, number)

    return report


class UnfinishedImport(Struct, frozen=True):
    """A tree of forks that an import started and did not finish."""

    tenant: str
    """The owner for whom the import was started."""
    names: tuple[str, ...]
    """Its conversations, which begin with `~importing `."""
    messages: int
    """Messages written so far; those that forks share count once."""


def find_unfinished(store: Database, *, tenant: str | None = None) -> Iterator[UnfinishedImport]:
    """Yield the unfinished imports of one tenant or of all. An import that is running now is among them."""
    return (unfinished for unfinished, _ in _unfinished(store, tenant))


def drop_unfinished(store: Database, *, tenant: str | None = None) -> list[UnfinishedImport]:
    """Delete the unfinished imports, and return them.

    An import that is running now fails, and must be started again. Finished imports are not touched. Raises BadSetting
    if a conversation of such a tree was renamed.
    """
    dropped = []
    for unfinished, head in _unfinished(store, tenant):
        store.discard(head, IMPORTING)
        dropped.append(unfinished)
    return dropped


def _unfinished(store: Database, tenant: str | None) -> Iterator[tuple[UnfinishedImport, Head]]:
    for owner in store.tenants() if tenant is None else (tenant,):
        known: set[str] = set()
        for name in store.names(owner):
            if name.startswith(IMPORTING) and name not in known:
                tree = store.branches(store.open(owner, name, create=False))
                names = tuple(branch.head.name for branch in tree)
                known.update(names)
                messages = sum(branch.head.position - branch.position for branch in tree)
                yield UnfinishedImport(owner, names, messages), tree[0].head
