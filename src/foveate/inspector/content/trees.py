"""JSON as a tree that opens and closes: exact numbers, repeated keys, and a bounded number of nodes.

A node is named by the positions of its ancestors' children, as `3.0.12`, so that a page shows what another page leaves
out. The reader of the standard library's `json` module keeps each number as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from .characters import visible

__all__ = ["MOST_PARSED", "Node", "TreeLimits", "child_at", "parse_tree", "render_tree", "short"]

MOST_PARSED = 4_000_000
"""Characters. A longer text is shown as text."""
_DEEPEST = 200
"""Levels of nesting. A text that is nested deeper is shown as text."""


class Node:
    """An object or an array. Arrays in it become nodes when they are read: most of a long text is never shown."""

    __slots__ = ("_children", "is_object")

    def __init__(self, children: Sequence[Any], is_object: bool = True) -> None:
        """`children`: the pairs of an object, or the values of an array."""
        self._children, self.is_object = children, is_object

    @property
    def size(self) -> int:
        """Return the number of children."""
        return len(self._children)

    def pairs(self, first: int = 0, last: int | None = None) -> list[tuple[str, Any]]:
        """Return the keys and values from number `first` (from 0) to before `last`. The keys of an array are empty."""
        children = self._children[first:last]
        pairs = children if self.is_object else [("", value) for value in children]
        return [(key, _as_node(value)) for key, value in pairs]


class Literal(str):
    """A number, `true`, `false` or `null`, as it is written."""

    __slots__ = ()


class TreeLimits(NamedTuple):
    """How much of a tree is shown at once."""

    nodes: int
    """Most nodes in all."""
    children: int
    """Most children of a node."""
    open_levels: int
    """Levels that are open at first."""
    characters: int
    """Most characters of a string."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=Node,
    parse_int=Literal,
    parse_float=Literal,
    parse_constant=Literal,
    strict=False,
)
_BRACKETS = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?)*+([\[\]{}]?)', re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1, "": 0}


def parse_tree(text: str) -> Node | None:
    """Return the object or array in a text; None if the text is no JSON, too long or nested too deeply."""
    if len(text) > MOST_PARSED or text.lstrip()[:1] not in ("{", "[") or _is_deep(text):
        return None
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    value = _as_node(value)
    return value if isinstance(value, Node) else None


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += _STEPS[bracket]
        if depth > _DEEPEST:
            return True
    return False


def _as_node(value: Any) -> Any:
    """Return an array as a node."""
    return Node(value, is_object=False) if isinstance(value, list) else value


def short(value: Any) -> str:
    """Return a value that is no string in a few characters: a literal as it is written, or the size of a node."""
    if isinstance(value, Node):
        return _size(value)
    return str(value) if isinstance(value, str) else {True: "true", False: "false"}.get(value, "null")


def child_at(tree: Any, path: str) -> Any:
    """Return the value at a path such as `3.0.12`; the tree itself for "". Raises LookupError if there is none."""
    value = tree
    for step in path.split(".") if path else ():
        is_number = step.isascii() and step.isdigit() and len(step) < 10
        if not isinstance(value, Node) or not is_number or int(step) >= value.size:
            raise LookupError(path)
        value = value.pairs(int(step), int(step) + 1)[0][1]
    return value


class _Budget:
    def __init__(self, nodes: int) -> None:
        self.nodes = nodes


def render_tree(
    tree: Node, limits: TreeLimits, more: Callable[[str, int], str | None], *, at: str, first: int
) -> Markup:
    """Return the markup of the children of a node from number `first` (from 0).

    `at`: the path of the node. `more(path, first)`: the URL of a page with the children of a node from this number, or
    with the whole of a string; None if there is no page.
    """
    pieces: list[str] = []
    _add_children(pieces, tree, limits, more, at, first, 0, _Budget(limits.nodes))
    return Markup('<div class="c-tree">{}</div>').format(Markup("".join(pieces)))


def _add_children(
    pieces: list[str],
    node: Node,
    limits: TreeLimits,
    more: Callable[[str, int], str | None],
    path: str,
    first: int,
    depth: int,
    budget: _Budget,
) -> None:
    last = min(node.size, first + min(limits.children, budget.nodes))
    budget.nodes -= last - first  # Before the levels below, so that a long child does not hide those after it.
    for index, (key, value) in enumerate(node.pairs(first, last), first):
        label = (
            f'<span class="c-name">{visible(key)}</span>' if node.is_object else f'<span class="c-index">{index}</span>'
        )
        here = f"{path}.{index}" if path else str(index)
        if isinstance(value, Node):
            if not value.size:
                pieces.append(f'<div class="c-leaf">{label}<span class="c-size">{_size(value)}</span></div>')
                continue
            is_open = " open" if depth < limits.open_levels and budget.nodes > 0 else ""
            pieces.append(
                f'<details class="c-node"{is_open}><summary class="c-key">{label}'
                f'<span class="c-size">{_size(value)}</span></summary>'
            )
            _add_children(pieces, value, limits, more, here, 0, depth + 1, budget)
            pieces.append("</details>")
        else:
            pieces.append(_leaf(label, value, limits.characters, here, more))
    if last < node.size:
        pieces.append(_link(more(path, last), f"{node.size - last:,} more"))


def _leaf(label: str, value: Any, most: int, path: str, more: Callable[[str, int], str | None]) -> str:
    if not isinstance(value, str) or isinstance(value, Literal):
        shown = f'<span class="c-num">{visible(short(value)[:most])}</span>'
    elif "\n" in value[:most]:
        shown = f'<pre class="c-long">{visible(value[:most])}</pre>'
    else:
        shown = f'<span class="c-str">{visible(value[:most])}</span>'
    rest = (
        _link(more(path, 0), f"all {len(value):,} characters") if isinstance(value, str) and len(value) > most else ""
    )
    return f'<div class="c-leaf">{label}{shown}{rest}</div>'


def _link(url: str | None, text: str) -> str:
    if url is None:
        return f'<span class="c-cut">{text}</span>'
    return str(Markup('<a class="c-more" data-way="here" href="{}">{}</a>').format(url, text))


def _size(node: Node) -> str:
    count = node.size
    if node.is_object:
        return f"{{{count:,} key{'' if count == 1 else 's'}}}"
    return f"[{count:,} item{'' if count == 1 else 's'}]"
