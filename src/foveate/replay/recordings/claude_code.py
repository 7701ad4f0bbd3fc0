"""Reader for Claude Code sessions: JSON Lines, one event a line, messages in Anthropic's shape.

Claude Code writes a response block by block, a line each; the reader joins them into one message. The lines are a tree
by `parentUuid`, and the path to its newest leaf is the conversation. The tree also forks without a rewind: the results
of a parallel batch each follow their own call. So a line off the path still belongs if it is a block of a response on
the path or answers a call on it. The rest was left behind by a rewind. A native compaction starts a new root, whose
`logicalParentUuid` names the line before: both are read as one history, and its summary is a marked user message.

The format is internal to its program and grows: unknown lines are counted, never refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from ...core.messages import Message
from ...core.stamps import Origin, Stop, Usage
from ...formats.stops import recorded_stop
from .recording import Reader, RecordedMessage, Recording, collect_notes, make_usage, most_common_model, to_milliseconds
from .source import Sample, Source
from .tree import Node, unravel

__all__ = ["READER", "Body", "Line", "Lines", "is_summary", "sort_lines", "threads"]


class Body(Struct, frozen=True):
    content: Any = None
    id: str | None = ""
    model: str | None = ""
    usage: dict[str, Any] | None = None
    stop_reason: Any = None


class Line(Struct, frozen=True, rename="camel"):
    """The fields that identify a line and its place; all others are ignored."""

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

    body: Body | None = None
    """The message, on a line of the conversation. Lines of other types may use the field differently."""

    def blocks(self, kind: str, name: str) -> set[str]:
        """Return the ids, in the field `name`, of the message's blocks of this kind."""
        content = self.body.content if self.body else None
        blocks = content if isinstance(content, list) else []
        return {str(block.get(name)) for block in blocks if isinstance(block, dict) and block.get("type") == kind}


Lines = list[tuple[int, Line]]


def threads(lines: Lines) -> list[list[Node]]:
    """Return the conversation, then the branches that rewinds left behind. Each node carries its line."""
    return unravel(list(_nodes(lines)), _joins) or [[]]


def sort_lines(source: Source) -> tuple[Lines, dict[str, Lines], Counter[str]]:
    """Sort the lines: the conversation, the lines of each sub-agent, and counts of the rest."""
    main: Lines = []
    sides: dict[str, Lines] = {}
    agents: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for number, value in source.lines():
        line = _line(source, number, value)
        if line is None:
            continue
        progress = line.data if line.type == "progress" and isinstance(line.data, dict) else {}
        if isinstance(progress.get("message"), dict):
            # A sub-agent's message, passed on as progress of the call that started it.
            passed_on = {**progress["message"], "agentId": progress.get("agentId") or "agent", "isSidechain": True}
            line = _line(source, number, passed_on) or line
        if not line.uuid or line.uuid in agents:
            counted["repeated lines" if line.uuid else "other lines"] += 1
            continue
        agent = ""
        if line.is_sidechain:
            # Older versions name no agent: there a side chain is every line that descends from its first line.
            agent = line.agent_id or agents.get(line.parent_uuid or "") or line.uuid
        agents[line.uuid] = agent
        (sides.setdefault(agent, []) if agent else main).append((number, line))
    return main, sides, counted


def _line(source: Source, number: int, value: Any) -> Line | None:
    line = source.convert(number, value, Line)
    if line is None or line.type not in ("user", "assistant") or line.message is None:
        return line
    body = source.convert(number, line.message, Body)
    return structs.replace(line, body=body) if body else None


def _nodes(lines: Lines) -> Iterator[Node]:
    known = {line.uuid for _, line in lines}
    before = ""
    for number, line in lines:
        key = line.uuid or ""
        parent = line.parent_uuid or line.logical_parent_uuid or ""
        if parent not in known:
            # A user message without a parent is a rewind to the very start: a new root. Any other line without a known
            # parent follows a missing or damaged line, or a compaction, so it continues from the line before it.
            is_new_root = line.parent_uuid is None and line.type == "user" and not is_summary(line)
            parent = "" if is_new_root and not line.blocks("tool_result", "tool_use_id") else before
        yield Node(number, key, parent, line, line.body is not None)
        before = key


def _joins(path: Sequence[Node]) -> Callable[[Node], bool]:
    """Return a test for lines off the path that still belong to it (see the module docstring)."""
    responses = {node.line.body.id for node in path if node.line.type == "assistant" and node.is_message} - {None, ""}
    calls: set[str] = set().union(*(node.line.blocks("tool_use", "id") for node in path))
    answered: set[str] = set().union(*(node.line.blocks("tool_result", "tool_use_id") for node in path))
    path_keys = {node.key for node in path}
    answers: set[str] = set()

    def belongs(node: Node) -> bool:
        line: Line = node.line
        if line.type == "assistant":
            if line.body is None or line.body.id not in responses:
                return False
            calls.update(line.blocks("tool_use", "id"))
            return True
        results = line.blocks("tool_result", "tool_use_id")
        if results and results <= calls - answered:
            answers.add(node.key)
            return True
        # A summary next to messages that its compaction kept, or text that the program adds to a result off the path.
        return is_summary(line) or (bool(line.is_meta) and node.parent not in path_keys and bool(answers))

    return belongs


def is_summary(line: Line) -> bool:
    """Return whether this is the user message with the summary of a native compaction."""
    content = line.body.content if line.body else ""
    begins = isinstance(content, str) and content.startswith(
        "This session is being continued from a previous conversation"
    )
    return bool(line.is_compact_summary) or begins


def _recognises(sample: Sample) -> bool:
    return any(
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and (
            "parentUuid" in value
            or "sessionId" in value
            or "leafUuid" in value
            or value["type"] == "file-history-snapshot"
        )
        for value in sample.lines
    )


def _read(source: Source) -> Recording:
    lines, sides, counted = sort_lines(source)
    name = next((line.session_id for _, line in lines if line.session_id), "")
    chains: list[Recording] = []
    if not any(line.body for _, line in lines) and sides:
        # In the file of a sub-agent the side chain is the conversation.
        name = next(iter(sides))
        lines = sides.pop(name)
    for agent, side in sides.items():
        if any(line.body for _, line in side):
            counted["side-chain lines"] += len(side)
            chains.append(_recording(source, agent, side, Counter()))
    for file in _subagent_files(source):
        of_agent = _read(file)
        source.damaged += file.damaged
        counted["side-chain lines"] += len(of_agent.messages)
        chains = [chain for chain in chains if chain.name != of_agent.name] + [of_agent]
    recording = _recording(source, name, lines, counted)
    return structs.replace(recording, side_chains=tuple(chains))


def _subagent_files(source: Source) -> Iterator[Source]:
    """Yield the files of sub-agents, which newer versions keep in a folder named like the session."""
    for path in sorted((Path(source.path).with_suffix("") / "subagents").glob("agent-*.jsonl")):
        if path.stat().st_size:
            yield Source(path, lenient=source.lenient, line_limit=source.line_limit)


READER = Reader("claude_code", _recognises, _read)


class _Draft(Struct):
    """One message while the reader joins its lines."""

    number: int
    line: Line
    content: Any
    """Text, or Anthropic's blocks."""
    origin: Origin | None = None
    usage: Usage | None = None
    stop: Stop | None = None


def _recording(source: Source, name: str, lines: Lines, counted: Counter[str]) -> Recording:
    conversation, *left_behind = threads(lines)
    branches = []
    for thread in left_behind:
        counted["rewound lines"] += len(thread)
        branches.append(_thread(source, name, thread, Counter()))
    main = _thread(source, name, conversation, counted)
    return structs.replace(main, branches=tuple(branches))


def _thread(source: Source, name: str, nodes: Iterable[Node], counted: Counter[str]) -> Recording:
    drafts = list(_drafts(nodes, counted))
    messages = tuple(entry for draft in drafts for entry in _finished(source, draft))
    replies = [draft.line.body for draft in drafts if draft.line.type == "assistant" and draft.line.body]
    model = most_common_model(reply.model or "" for reply in replies if reply.model != "<synthetic>")
    notes = collect_notes(messages, counted)
    return Recording(source.path, READER.name, messages, model, (), name, notes, provider="anthropic")


def _drafts(nodes: Iterable[Node], counted: Counter[str]) -> list[_Draft]:
    drafts: list[_Draft] = []
    reply: _Draft | None = None
    reply_id = ""
    replies: set[str] = set()
    boundary = False
    for node in nodes:
        line: Line = node.line
        body = line.body
        if body is None or not node.is_message:
            compacted = line.subtype == "compact_boundary"
            boundary = boundary or compacted
            queued = line.attachment if isinstance(line.attachment, dict) and line.type == "attachment" else {}
            if queued.get("type") == "queued_command" and queued.get("prompt"):
                # A person typed it, or the program reported it, while the model worked; it was delivered with the next
                # results.
                typed = queued.get("commandMode", "prompt") == "prompt"
                drafts.append(_Draft(node.number, line, queued["prompt"], None if typed else "plugin"))
            else:
                counted["native compactions" if compacted else "other lines"] += 1
        elif line.type == "user":
            summary = is_summary(line)
            if summary and not boundary:
                counted["native compactions"] += 1
            boundary = False
            if not line.is_meta and not line.blocks("tool_result", "tool_use_id"):
                reply = None
            origin: Origin | None = "summary" if summary else "plugin" if line.is_meta else None
            drafts.append(_Draft(node.number, line, body.content, origin))
        elif line.is_api_error_message:
            counted["failed replies"] += 1
        else:
            if reply is None or not body.id or body.id != reply_id:
                reply, reply_id = _Draft(node.number, line, []), body.id or ""
                counted["reused ids"] += reply_id in replies
                replies.update({reply_id} - {""})
                drafts.append(reply)
            _extend(reply, body, counted)
    return drafts


def _extend(reply: _Draft, body: Body, counted: Counter[str]) -> None:
    """Add the blocks of another line to the response it belongs to."""
    content = "" if body.content is None else body.content
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_use" and block in reply.content:
            counted["repeated lines"] += 1  # A resumed session copies lines.
        else:
            reply.content.append(block)
    if body.model != "<synthetic>":  # Each line of a response repeats the reason, or has none yet.
        reply.stop = recorded_stop(body.stop_reason) or reply.stop
    usage = body.usage if body.model != "<synthetic>" else None
    if usage:
        # Each line of a response repeats its usage; only the last has the whole output.
        reply.usage = make_usage(
            input=usage.get("input_tokens"),
            cache_read=usage.get("cache_read_input_tokens"),
            cache_write=usage.get("cache_creation_input_tokens"),
            output=usage.get("output_tokens"),
        )


def _finished(source: Source, draft: _Draft) -> Iterator[RecordedMessage]:
    from ...formats.anthropic import Anthropic

    role = "assistant" if draft.line.type == "assistant" else "user"
    time = to_milliseconds(draft.line.timestamp)
    name = (role == "assistant" and draft.line.body and draft.line.body.id) or draft.line.uuid or ""
    with source.guard(draft.number):
        for message in Anthropic().parse({"role": role, "content": draft.content}):
            message = _with_state(message, draft.line)
            yield RecordedMessage(message, draft.number, time, draft.usage, name, draft.origin, draft.stop)


_STOPPED = (
    "[Request interrupted by user",
    "The user doesn't want to proceed with this tool use",
    "Interrupted by user",
)


def _with_state(message: Message, line: Line) -> Message:
    """Return the message, its result marked as interrupted if a person stopped the call."""
    result = message.result
    if result is None:
        return message
    outcome = line.tool_use_result if isinstance(line.tool_use_result, dict) else {}
    if outcome.get("interrupted") is True or (result.state == "error" and result.text.startswith(_STOPPED)):
        return structs.replace(message, parts=(structs.replace(result, state="interrupted"),))
    return message
