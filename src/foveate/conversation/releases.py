"""Releases: originals that no edit keeps leave the store together with the commit of these edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ..core import ids, wire
from ..core.edits import Edit, Hide, Path, Replace, Target
from ..core.originals import released_form
from ..ports import Branch, Database, Head

__all__ = ["last_shared", "released_edits"]


def released_edits(store: Database, head: Head, edits: Sequence[Edit]) -> tuple[tuple[Edit, ...], dict[int, bytes]]:
    """Return the edits with the hashes of the outlines that the store shall keep, and these outlines by position.

    The store keeps messages that another branch shares, because that branch may show them whole. A store without
    `Releases` keeps all.
    """
    paths: dict[str, set[Path]] = {}
    for edit in edits:
        if target := _released_target(edit):
            paths.setdefault(target.message, set()).add(target.path)
    if not paths or getattr(store, "release", None) is None:
        return tuple(edits), {}
    shared = max((last for _, last in last_shared(store.branches(head), head.branch)), default=0)
    positions = [position for position in store.locate(head, list(paths)).values() if position > shared]
    outlines: dict[int, bytes] = {}
    hashes: dict[str, str] = {}
    for row in store.get_many(head, positions):
        if not row.body:  # It was erased meanwhile.
            continue
        message = wire.decode_message(row.body)
        outline = released_form(message, row.stamp, paths[row.id])
        if outline is not message:
            outlines[row.position] = wire.encode_message(outline)
            hashes[row.id] = ids.body_hash(outlines[row.position])
    return tuple(_with_hash(edit, hashes) for edit in edits), outlines


def last_shared(branches: Iterable[Branch], number: int) -> Iterator[tuple[Branch, int]]:
    """Yield the other branches of a tree, each with the last position that it shares with this one."""
    tree = {branch.head.branch: branch for branch in branches}

    def past(at: int) -> dict[int, int]:
        """Return the branches in the past of a branch, itself included, each with its last position in it."""
        lasts, last = dict[int, int](), tree[at].head.position
        while at in tree and at not in lasts:
            lasts[at] = last
            last, at = min(last, tree[at].position), tree[at].parent
        return lasts

    own = past(number)
    for at, branch in tree.items():
        if at != number:
            common = [min(last, own[place]) for place, last in past(at).items() if place in own]
            yield branch, max(common, default=0)


def _released_target(edit: Edit) -> Target | None:
    if isinstance(edit, Replace | Hide) and not edit.keeps_original and isinstance(edit.target, Target):
        return edit.target
    return None


def _with_hash(edit: Edit, hashes: dict[str, str]) -> Edit:
    target = _released_target(edit)
    if target is None or target.message not in hashes or not isinstance(edit, Replace | Hide):
        return edit
    return replace(edit, released=hashes[target.message])
