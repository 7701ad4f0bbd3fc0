"""Writes conversations, and what belongs to them, to an archive: a piece at a time, whatever their size.

Reads a store through its port alone, and while others write to it: where each conversation of a tree ends is looked up
once, and what comes later is left out. Messages and records are read through the store's own checks, so what is damaged
stops the export. Snapshots and the index of words are not exported: they are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..core import wire
from ..core.journal import Record
from ..errors import Damaged
from ..ports import IMPORTING, Appended, Branch, Database, Head, Store
from . import lines
from .files import writing
from .large import LARGE, Large
from .lines import Count, Fork, Line, Tally

__all__ = ["export_archive", "records_of"]

_MESSAGES, _EDITS = 100, 500
"""Read at a time."""
_BYTES = 4_000_000
"""Of messages read at a time, about."""


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

    Raises NoSuchConversation, Damaged where something that was to be exported is, and BadSetting where the file cannot
    be written; then there is no new file.
    """
    found = _lines(store, tenant, conversation, catalog)
    if isinstance(target, str | Path):
        with writing(Path(target).expanduser(), overwrite=overwrite) as file:
            return _write(found, file, on_progress)
    return _write(found, target, on_progress)


def records_of(store: Store, head: Head, after: int) -> Iterator[tuple[str, Record]]:
    """The records of a conversation behind edit `after`, where one ends, each with its id; some at a time."""
    while after < head.number:
        some = store.records(replace(head, number=min(after + _EDITS, head.number)), after)
        if not some:
            raise Damaged(f"Edit {after + 1} of {head.name!r} is missing. Run `verify` to see what else is.")
        yield from some
        after = some[-1][1].last


def _write(found: Iterator[Line], file: BinaryIO, on_progress: Callable[[Count], object] | None) -> Count:
    tally = Tally()
    for line in found:
        raw = lines.encode(line)
        file.write(raw)
        tally.add(line, raw)
        if on_progress and tally.lines % 1000 == 0:
            on_progress(tally.count)
    file.write(lines.encode(tally.ending()))
    return tally.count


def _lines(store: Database, tenant: str, conversation: str | None, catalog: bool) -> Iterator[Line]:
    yield lines.Opening(lines.FORMAT, lines.VERSION, tenant, conversation, catalog)
    if catalog:
        yield from map(lines.PromptLine, store.prompts(tenant))
        yield from map(lines.ActionLine, store.actions(tenant))
        yield from map(lines.BindingLine, store.bindings(tenant))
    done: set[str] = set()
    names = store.names(tenant) if conversation is None else [conversation]
    for name in names:
        if name in done or (conversation is None and name.startswith(IMPORTING)):
            continue
        head = store.open(tenant, name, create=False)
        whole = store.branches(head)
        tree = _related(whole, head.branch)
        if len(tree) > 1:
            done.update(branch.head.name for branch in tree)
        yield from _tree(store, tree)
        if tree[0] == whole[0]:
            yield from _beside(store, tree[0].head)


def _related(branches: list[Branch], wanted: int) -> list[Branch]:
    """Those that have a past in common with the wanted branch: what was begun anew under an erased name lies beside."""
    origin: dict[int, int] = {}
    for branch in branches:
        origin[branch.head.branch] = origin[branch.parent] if branch.parent else branch.head.branch
    return [branch for branch in branches if origin[branch.head.branch] == origin[wanted]]


def _tree(store: Database, tree: list[Branch]) -> Iterator[Line]:
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


def _beside(store: Database, head: Head) -> Iterator[Line]:
    """What a tree has as a whole."""
    for run in store.runs(head):
        yield lines.RunLine(run)
        yield from map(lines.StepLine, store.steps(head, run.id))
    yield from map(lines.ErasureLine, store.erasures(head))


def _fork(branch: Branch, numbers: dict[int, int]) -> Fork:
    head = branch.head
    left = numbers[branch.parent] if branch.parent else 0
    ends = head.position, head.tip, head.seal, head.number, head.record
    return Fork(numbers[head.branch], head.name, left, branch.position, branch.number, *ends)


def _messages(store: Database, head: Head, after: int) -> Iterator[Appended]:
    count = _MESSAGES
    while after < head.position:
        some = store.messages(head, after + 1, min(after + count, head.position))
        yield from some
        after = some[-1].position
        size = sum(len(row.body) for row in some)
        count = max(1, min(_MESSAGES, len(some) * _BYTES // max(size, 1)))  # Fewer of large ones.


def _message(row: Appended, first: tuple[int, int] | None, name: str) -> Line:
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
