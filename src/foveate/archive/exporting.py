"""Writes conversations, and what belongs to them, to an archive: a piece at a time, whatever their size.

Reads a store through its port alone, and while others write to it: where each conversation of a tree ends is looked up
once, and what comes later is left out. What is erased in a tree while it is written would be there in one place and
gone in another, so its lines are put aside until it is known that nothing was; else they are dropped and written anew.
Messages and records are read through the store's own checks, so what is damaged stops the export. Snapshots and the
index of words are not exported: they are made again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..core import wire
from ..core.edits import Record
from ..errors import ConflictError, Damaged
from ..ports import IMPORTING, Branch, Database, Erasure, Head, StoredMessage
from . import lines
from .files import writing
from .large import LARGE, Large
from .lines import Count, Fork, Line, Tally

__all__ = ["export_archive", "records_of"]

_MESSAGES, _EDITS = 100, 500
"""Read at a time."""
_BYTES = 4_000_000
"""Of messages read at a time, about."""
_ASIDE = 1_000_000
"""Bytes of a tree that are put aside in memory; more of them lie in a file of no name until they are written."""
_ATTEMPTS = 8
"""How often a tree is written in which something was erased meanwhile."""


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
    """Write a conversation with all its forks, or all of a tenant's conversations, to an archive; tell how much it was.

    `target`: a file, which appears once it is whole (`.gz` and `.zst` are compressed), or something open for writing
    bytes. `catalog`: the tenant's actions, bindings and prompts too. `overwrite`: a file that there is. `on_progress`
    is called now and then with what was written so far.

    A tree of forks in which something is erased meanwhile is written anew, so that an archive never says in one place
    what it says in another to be erased; until it is whole, its lines are put aside, in the folder of `target`.

    Raises NoSuchConversation, Damaged where something that was to be exported is, ConflictError where something is
    erased
    in the same tree again and again, and BadSetting where the file cannot be written; then there is no new file.
    """
    if isinstance(target, str | Path):
        path = Path(target).expanduser()
        with writing(path, overwrite=overwrite) as file:
            return _written(_Output(file, on_progress, path.parent), store, tenant, conversation, catalog)
    return _written(_Output(target, on_progress), store, tenant, conversation, catalog)


def records_of(store: Database, head: Head, after: int) -> Iterator[tuple[str, Record]]:
    """The records of a conversation behind edit `after`, where one ends, each with its id; some at a time."""
    while after < head.number:
        some = store.records(replace(head, number=min(after + _EDITS, head.number)), after)
        if not some:
            raise Damaged(f"Edit {after + 1} of {head.name!r} is missing. Run `verify` to see what else is.")
        yield from some
        after = some[-1][1].last


class _Output:
    """Lines on their way to a file, counted."""

    def __init__(
        self,
        file: BinaryIO,
        on_progress: Callable[[Count], object] | None,
        folder: Path | None = None,
        tally: Tally | None = None,
    ) -> None:
        """`folder`: where lines are put aside; None: where the system has room for such. `tally`: of what came before
        in the archive.
        """
        self._file, self._on_progress, self._folder = file, on_progress, folder
        self._tally = tally or Tally()

    def put(self, found: Iterable[Line]) -> None:
        for line in found:
            raw = lines.encode(line)
            self._file.write(raw)
            self._tally.add(line, raw)
            if self._on_progress and self._tally.lines % 1000 == 0:
                self._on_progress(self._tally.count)

    def put_if(self, found: Iterable[Line], is_wanted: Callable[[], bool]) -> bool:
        """Put them aside, and then in their place, all or none: if they still are wanted once they are there."""
        with SpooledTemporaryFile(_ASIDE, dir=str(self._folder) if self._folder else None) as aside:
            trial = _Output(cast("BinaryIO", aside), self._on_progress, tally=self._tally.copy())
            trial.put(found)
            if not is_wanted():
                return False
            aside.seek(0)
            shutil.copyfileobj(aside, self._file, _ASIDE)
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
    """Write the conversation with this name and its forks, as they are at one moment. The names of them all; of
    one without forks none.
    """
    for _ in range(_ATTEMPTS):
        head = store.open(tenant, name, create=False)
        erased = store.erasures(head)
        tree, is_all = _related(store.branches(head), head.branch)
        if output.put_if(_tree(store, tree, erased if is_all else None), partial(_is_still, store, head, erased)):
            return [branch.head.name for branch in tree if len(tree) > 1]  # Few names are kept: most have no forks.
    raise ConflictError(
        f"{_ATTEMPTS} times something was erased in {name!r}, or in a fork of it, before it was written to its end. "
        "Nothing was exported. Export it when that is done."
    )


def _is_still(store: Database, head: Head, erased: list[Erasure]) -> bool:
    """Whether nothing else was erased in the tree of a conversation."""
    return store.erasures(head) == erased


def _related(whole: list[Branch], wanted: int) -> tuple[list[Branch], bool]:
    """Those that have a past in common with the wanted branch: what was begun anew under an erased name lies beside.
    And whether what the tree has as a whole goes with them.
    """
    origin: dict[int, int] = {}
    for branch in whole:
        origin[branch.head.branch] = origin[branch.parent] if branch.parent else branch.head.branch
    tree = [branch for branch in whole if origin[branch.head.branch] == origin[wanted]]
    return tree, tree[0] == whole[0]


def _tree(store: Database, tree: list[Branch], erased: Sequence[Erasure] | None) -> Iterator[Line]:
    """`erased`: what was erased in the tree, with which its runs are written; None: neither is."""
    # Numbered anew, so that an archive is the same wherever the tree lies.
    numbers = {branch.head.branch: number for number, branch in enumerate(tree, 1)}
    yield lines.TreeLine(tuple(_fork(branch, numbers) for branch in tree))
    large = Large[str, tuple[int, int]]()
    for branch in tree:
        number = numbers[branch.head.branch]
        yield lines.BranchLine(number)
        for row in _messages(store, branch.head, branch.position):
            yield _message(row, large.get(row.body_hash), branch.head.name)
            if len(row.body) > LARGE and row.body_hash not in large:
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
        count = max(1, min(_MESSAGES, len(some) * _BYTES // max(size, 1)))  # Fewer of large ones.


def _message(row: StoredMessage, first: tuple[int, int] | None, name: str) -> Line:
    line = lines.MessageLine(position=row.position, id=row.id, seal=row.seal, stamp=row.stamp)
    if not row.body:
        return replace(line, erased=row.body_hash)
    if first:
        return replace(line, same=first)
    try:
        wire.decode_message(row.body)
    except (msgspec.DecodeError, ValueError) as error:
        raise Damaged(f"Message {row.position} of {name!r} is as it was stored, but no message: {error}.") from error
    return replace(line, message=Raw(row.body))
