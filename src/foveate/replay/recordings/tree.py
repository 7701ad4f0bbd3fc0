"""Separation of a conversation tree into the conversation and its abandoned branches.

Programs with a rewind record a tree: every line names its parent. The conversation is the path to the newest leaf; a
rewind left every other limb behind as a branch. This module knows nodes and parents, not their content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

__all__ = ["Node", "unravel"]


class Node(Struct, eq=False):
    """A line in its place in the tree."""

    number: int
    """The line of the file."""
    key: str
    parent: str
    """The key of the parent; empty, or unknown to the tree, at a root."""
    line: Any
    is_message: bool = True
    """Whether it is part of a conversation, not just a notice."""


def unravel(
    nodes: Sequence[Node], joins: Callable[[Sequence[Node]], Callable[[Node], bool]] = lambda path: lambda node: False
) -> list[list[Node]]:
    """Return the conversation, then the branches in the order they begin; each in the order of the file.

    `joins(path)` gets the nodes on the path to the newest leaf and returns a test: does a node off the path, with a
    parent in the conversation, belong to the conversation too? Notices alone make no branch.
    """
    threads: list[list[Node]] = []
    limbs: list[Sequence[Node]] = [nodes]
    while limbs:
        limb = limbs.pop(0)
        leaf = next((node for node in reversed(limb) if node.is_message), None)
        if leaf is None:
            if not threads and limb:
                threads.append(list(limb))
            continue
        path = _path(leaf, {node.key: node for node in limb})
        belongs = joins([node for node in limb if node.key in path])
        roots: dict[str, str] = {}
        branches: dict[str, list[Node]] = {}
        thread: list[Node] = []
        for node in limb:
            if node.key in path or (node.parent not in roots and (not node.is_message or belongs(node))):
                thread.append(node)
            else:
                roots[node.key] = root = roots.get(node.parent, node.key)
                branches.setdefault(root, []).append(node)
        threads.append(thread)
        limbs.extend(branches.values())
    return [threads[0], *sorted(threads[1:], key=lambda thread: thread[0].number)] if threads else []


def _path(leaf: Node, known: dict[str, Node]) -> set[str]:
    """Return the keys on the path from the leaf to its root.

    A damaged file may hold a cycle, so each key counts once.
    """
    path: set[str] = set()
    node: Node | None = leaf
    while node is not None and node.key not in path:
        path.add(node.key)
        node = known.get(node.parent)
    return path
