"""Which lines of a tree are the conversation, and which were left behind.

Programs that let a person go back record a tree: every line names its parent. The conversation is the way to the newest
leaf; every other limb is a branch, left behind by a rewind. This file knows nodes and their parents, and nothing of
what they say.
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
    """The key of the line before it; empty, or unknown to the tree, at a root."""
    line: Any
    says: bool = True
    """Whether it is part of a conversation, and no mere notice."""


def unravel(
    nodes: Sequence[Node], joins: Callable[[Sequence[Node]], Callable[[Node], bool]] = lambda way: lambda node: False
) -> list[list[Node]]:
    """The conversation first, then the branches in the order they begin; each in the order of the file.

    `joins(way)` looks at the nodes on the way to the newest leaf and returns a test: does a node off the way, whose
    parent belongs to the conversation, belong to it too? Notices are told apart from what is said, and make no branch.
    """
    threads: list[list[Node]] = []
    limbs: list[Sequence[Node]] = [nodes]
    while limbs:
        limb = limbs.pop(0)
        leaf = next((node for node in reversed(limb) if node.says), None)
        if leaf is None:
            if not threads and limb:
                threads.append(list(limb))
            continue
        way = _way(leaf, {node.key: node for node in limb})
        belongs = joins([node for node in limb if node.key in way])
        roots: dict[str, str] = {}
        grown: dict[str, list[Node]] = {}
        thread: list[Node] = []
        for node in limb:
            if node.key in way or (node.parent not in roots and (not node.says or belongs(node))):
                thread.append(node)
            else:
                roots[node.key] = root = roots.get(node.parent, node.key)
                grown.setdefault(root, []).append(node)
        threads.append(thread)
        limbs.extend(grown.values())
    return [threads[0], *sorted(threads[1:], key=lambda thread: thread[0].number)] if threads else []


def _way(leaf: Node, known: dict[str, Node]) -> set[str]:
    """The keys on the way from the leaf to its root. A damaged file may hold a circle: each key is passed once."""
    way: set[str] = set()
    node: Node | None = leaf
    while node is not None and node.key not in way:
        way.add(node.key)
        node = known.get(node.parent)
    return way
