"""Claude Code's lines: what each one is, and which of them are the conversation.

The lines are a tree by `parentUuid`, and what leads to its newest leaf is the conversation. But the tree also forks
where nobody went back: lines that share one `message.id` are one response, written block by block, and each result of a
parallel batch hangs from its own call. So a line off the way still belongs if it is a block of a response on it or
answers a call on it; the rest was left behind by a rewind. A native compaction starts a new root, whose
`logicalParentUuid` names what came before: both are read as one history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from .source import Source
from .tree import Node, unravel

__all__ = ["Line", "Lines", "Said", "is_summary", "sorted_out", "threads"]


class Said(Struct, frozen=True):
    content: Any = None
    id: str | None = ""
    model: str | None = ""
    usage: dict[str, Any] | None = None
    stop_reason: Any = None


class Line(Struct, frozen=True, rename="camel"):
    """The fields that tell what a line is and where it belongs; all others are left alone."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | UnsetType | None = UNSET
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: Any = None
    is_sidechain: bool | None = False
    is_meta: bool | None = False
    is_compact_summary: bool | None = False
    is_api_error_message: bool | None = False
    message: Any = None
    data: Any = None
    attachment: Any = None
    tool_use_result: Any = None

    said: Said | None = None
    """The message, on a line of the conversation; lines of other types may use the field for anything."""

    def blocks(self, kind: str, name: str) -> set[str]:
        """The ids, in the field `name`, of the message's blocks of this kind."""
        content = self.said.content if self.said else None
        blocks = content if isinstance(content, list) else []
        return {str(block.get(name)) for block in blocks if isinstance(block, dict) and block.get("type") == kind}


Lines = list[tuple[int, Line]]


def threads(lines: Lines) -> list[list[Node]]:
    """The conversation first, then what rewinds left behind; each node carries its line."""
    return unravel(list(_nodes(lines)), _joins) or [[]]


def sorted_out(source: Source) -> tuple[Lines, dict[str, Lines], Counter[str]]:
    """The lines of the conversation, those of each sub-agent, and what the rest is."""
    main: Lines = []
    sides: dict[str, Lines] = {}
    agents: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for number, value in source.lines():
        line = _line(source, number, value)
        if line is None:
            continue
        told = line.data if line.type == "progress" and isinstance(line.data, dict) else {}
        if isinstance(told.get("message"), dict):
            # A sub-agent's message, passed on as progress of the call that started it.
            passed_on = {**told["message"], "agentId": told.get("agentId") or "agent", "isSidechain": True}
            line = _line(source, number, passed_on) or line
        if not line.uuid or line.uuid in agents:
            counted["repeated lines" if line.uuid else "other lines"] += 1
            continue
        agent = ""
        if line.is_sidechain:
            # Older versions name no agent; there a side chain is what hangs from its first line.
            agent = line.agent_id or agents.get(line.parent_uuid or "") or line.uuid
        agents[line.uuid] = agent
        (sides.setdefault(agent, []) if agent else main).append((number, line))
    return main, sides, counted


def _line(source: Source, number: int, value: Any) -> Line | None:
    line = source.shaped(number, value, Line)
    if line is None or line.type not in ("user", "assistant") or line.message is None:
        return line
    said = source.shaped(number, line.message, Said)
    return structs.replace(line, said=said) if said else None


def _nodes(lines: Lines) -> Iterator[Node]:
    known = {line.uuid for _, line in lines}
    before = ""
    for number, line in lines:
        key = line.uuid or ""
        parent = line.parent_uuid or line.logical_parent_uuid or ""
        if parent not in known:
            # A person who goes back to the very start begins a new root. Any other line without a known parent
            # follows a line that is missing or damaged, or a compaction: it goes on from the line before it.
            fresh = line.parent_uuid is None and line.type == "user" and not is_summary(line)
            parent = "" if fresh and not line.blocks("tool_result", "tool_use_id") else before
        yield Node(number, key, parent, line, line.said is not None)
        before = key


def _joins(way: Sequence[Node]) -> Callable[[Node], bool]:
    """Tests whether a line off the way belongs all the same: see the top of this file."""
    responses = {node.line.said.id for node in way if node.line.type == "assistant" and node.says} - {None, ""}
    calls: set[str] = set().union(*(node.line.blocks("tool_use", "id") for node in way))
    answered: set[str] = set().union(*(node.line.blocks("tool_result", "tool_use_id") for node in way))
    way_keys = {node.key for node in way}
    answers: set[str] = set()

    def belongs(node: Node) -> bool:
        line: Line = node.line
        if line.type == "assistant":
            if line.said is None or line.said.id not in responses:
                return False
            calls.update(line.blocks("tool_use", "id"))
            return True
        found = line.blocks("tool_result", "tool_use_id")
        if found and found <= calls - answered:
            answers.add(node.key)
            return True
        # A summary beside messages that its compaction kept, and what the program adds to a result off the way.
        return is_summary(line) or (bool(line.is_meta) and node.parent not in way_keys and bool(answers))

    return belongs


def is_summary(line: Line) -> bool:
    """Whether this is the user's message by which a native compaction hands its summary on."""
    content = line.said.content if line.said else ""
    begins = isinstance(content, str) and content.startswith(
        "This session is being continued from a previous conversation"
    )
    return bool(line.is_compact_summary) or begins
