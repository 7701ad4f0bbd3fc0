"""Export conversations to an archive, a piece at a time.

Others may write meanwhile: the end of each conversation is read once, and later changes are left out. If something is
erased in a tree during its export, its lines are discarded and written again, because the archive would contain it in
one place and not in another. The store checks all messages and records, so damaged ones stop the export. Saved views
and the word index are not exported.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from ...core import wire
from ...core.edits import Record
from ...errors import ConflictError, Damaged
from ...ports import IMPORTING, Branch, Database, Erasure, Head, StoredMessage
from ...stores.checks import check_texts
from . import lines
from .files import writing
from .lines import LARGE, Count, Fork, LargeBodies, Line, Tally

__all__ = ["export_archive", "records_of"]

_MESSAGES, _EDITS = 100, 500
"""Read at a time."""
_BYTES = 4_000_000
"""Bytes of messages read at a time, about."""
_BUFFER = 1_000_000
"""Bytes of a tree that are buffered in memory; more go to a temporary file without a name."""
_ATTEMPTS = 8
"""Attempts to write a tree in which something is erased meanwhile."""


def export_archive(
    store: Database,
    target: str | Path | BinaryIO,
    *,
    tenant: str = "",
    conversation: str | None = None,
    catalog: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[Count], object] | None = None,
) -> Count:
    """Write a conversation with all its forks, or all conversations of a tenant, to an archive; return its size.

    `target`: a file, which appears when it is complete (`.gz` and `.zst` are compressed), or a file object for bytes.
    `catalog`: also write the tenant's actions, bindings and prompts. `overwrite`: replace an existing file.
    `on_progress` is called from time to time with the size so far.

    Raises NoSuchConversation, Damaged if a conversation is damaged, ConflictError if something is erased in the same
    tree again and again, and BadSetting if the tenant is no string or the file cannot be written. There is no new file
    then.
    """
    check_texts("conversation", tenant=tenant)
    if isinstance(target, str | Path):
        path = Path(target).expanduser()
        with writing(path, overwrite=overwrite) as file:
            return _written(_Output(file, on_progress, path.parent), store, tenant, conversation, catalog)
    return _written(_Output(target, on_progress), store, tenant, conversation, catalog)


def records_of(store: Database, head: Head, after: int) -> Iterator[tuple[str, Record]]:
    """Yield the records of a conversation after edit `after`, the last of a record, each with its id; some at a
    time.
    """
    while after < head.number:
        some = store.records(replace(head, number=min(after + _EDITS, head.number)), after)
        if not some:
            raise Damaged(f"Edit {after + 1} of {head.label} is missing. Run `verify` to see what else is missing.")
        yield from some
        after = some[-1][1].last


class _Output:
    """Writes lines to a file, and counts them."""

    def __init__(
        self,
        file: BinaryIO,
        on_progress: Callable[[Count], object] | None,
        folder: Path | None = None,
        tally: Tally | None = None,
    ) -> None:
        """`folder`: for temporary files; None: the folder of the system. `tally`: of the lines before."""
        self._file, self._on_progress, self._folder = file, on_progress, folder
        self._tally = tally or Tally()

    def put(self, some: Iterable[Line]) -> None:
        for line in some:
            raw = lines.encode(line)
            self._file.write(raw)
            self._tally.add(line, raw)
            if self._on_progress and self._tally.lines % 1000 == 0:
                self._on_progress(self._tally.count)

    def put_if(self, some: Iterable[Line], is_wanted: Callable[[], bool]) -> bool:
        """Write lines to a buffer, and then to the file if they are still wanted; return whether they were."""
        with SpooledTemporaryFile(_BUFFER, dir=str(self._folder) if self._folder else None) as buffer:
            trial = _Output(cast("BinaryIO", buffer), self._on_progress, tally=self._tally.copy())
            trial.put(some)
            if not is_wanted():
                return False
            buffer.seek(0)
            shutil.copyfileobj(buffer, self._file, _BUFFER)
        self._tally = trial._tally
        return True

    def end(self) -> Count:
        self._file.write(lines.encode(self._tally.ending()))
        return self._tally.count


def _written(output: _Output, store: Database, tenant: str, conversation: str | None, catalog: bool) -> Count:
    output.put([lines.Opening(lines.FORMAT, lines.VERSION, tenant, conversation, catalog)])
    if catalog:
        output.put(map(lines.PromptLine, store.prompts(tenant)))
        output.put(map(lines.ActionLine, store.actions(tenant)))
        output.put(map(lines.BindingLine, store.bindings(tenant)))
    done: set[str] = set()
    for name in store.names(tenant) if conversation is None else [conversation]:
        if name not in done and not (conversation is None and name.startswith(IMPORTING)):
            done.update(_with_tree_of(store, tenant, name, output))
    return output.end()


def _with_tree_of(store: Database, tenant: str, name: str, output: _Output) -> list[str]:
    """Write the tree of a conversation as it is at one moment. Return its names, or none if it has no forks."""
    for _ in range(_ATTEMPTS):
        head = store.open(tenant, name, create=False)
        erased = store.erasures(head)
        tree, is_all = _related(store.branches(head), head.branch)
        if output.put_if(_tree(store, tree, erased if is_all else None), partial(_is_still, store, head, erased)):
            return [
                branch.head.name for branch in tree if len(tree) > 1
            ]  # Most have no forks, so few names are remembered.
    raise ConflictError(
        f"Something was erased in {name!r}, or in a fork of it, during each of {_ATTEMPTS} attempts. Nothing was "
        "exported. Export it when the erasing has ended."
    )


def _is_still(store: Database, head: Head, erased: list[Erasure]) -> bool:
    """Return whether nothing else was erased in the tree of a conversation."""
    return store.erasures(head) == erased


def _related(whole: list[Branch], wanted: int) -> tuple[list[Branch], bool]:
    """Return the branches with a common past with the wanted one, and whether the data of the whole tree goes with
    them.

    A conversation that started again under a name that was freed by renaming may be in the same tree without one.
    """
    origin: dict[int, int] = {}
    for branch in whole:
        origin[branch.head.branch] = origin[branch.parent] if branch.parent else branch.head.branch
    tree = [branch for branch in whole if origin[branch.head.branch] == origin[wanted]]
    return tree, tree[0] == whole[0]


def _tree(store: Database, tree: list[Branch], erased: Sequence[Erasure] | None) -> Iterator[Line]:
    """Yield the lines of a tree. `erased`: its erasures, which are written with its runs; None: neither is written."""
    # Numbered from 1, so that the archive is the same for each store.
    numbers = {branch.head.branch: number for number, branch in enumerate(tree, 1)}
    yield lines.TreeLine(tuple(_fork(branch, numbers) for branch in tree))
    large = LargeBodies[str, tuple[int, int]]()
    for branch in tree:
        number = numbers[branch.head.branch]
        yield lines.BranchLine(number)
        for row in _messages(store, branch.head, branch.position):
            yield _message(row, large.get(row.body_hash), branch.head.name)
            if len(row.body) > LARGE and row.body_hash not in large and not row.is_released:
                large.keep(row.body_hash, (number, row.position))
        for id, record in records_of(store, branch.head, branch.number):
            yield lines.RecordLine(id, Raw(wire.encode_record(record)))
    if erased is not None:
        for run in store.runs(tree[0].head):
            yield lines.RunLine(run)
            yield from map(lines.StepLine, store.steps(tree[0].head, run.id))
        yield from map(lines.ErasureLine, erased)


def _fork(branch: Branch, numbers: dict[int, int]) -> Fork:
    head = branch.head
    left = numbers[branch.parent] if branch.parent else 0
    ends = head.position, head.tip, head.seal, head.number, head.record
    return Fork(numbers[head.branch], head.name, left, branch.position, branch.number, *ends)


def _messages(store: Database, head: Head, after: int) -> Iterator[StoredMessage]:
    count = _MESSAGES
    while after < head.position:
        some = store.messages(head, after + 1, min(after + count, head.position))
        yield from some
        after = some[-1].position
        size = sum(len(row.body) for row in some)
        count = max(1, min(_MESSAGES, len(some) * _BYTES // max(size, 1)))  # Fewer large ones.


def _message(row: StoredMessage, first: tuple[int, int] | None, name: str) -> Line:
    line = lines.MessageLine(position=row.position, id=row.id, seal=row.seal, stamp=row.stamp)
    if not row.body:
        return replace(line, erased=row.body_hash)
    if first and not row.is_released:
        return replace(line, same=first)
    try:
        wire.decode_message(row.body)
    except (msgspec.DecodeError, ValueError) as error:
        raise Damaged(
            f"Message {row.position} of {name!r} matches its hash, but is not a valid message: {error}."
        ) from error
    return replace(line, message=Raw(row.body), released=row.body_hash if row.is_released else UNSET)
