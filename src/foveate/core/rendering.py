"""Rendering of one message: its edits applied, and legal for its provider.

`apply_edits` applies a message's own edits (replaced and hidden parts). `legalized` removes content that a provider
refuses in any message: blank text, foreign or unsigned reasoning, arguments that are not a JSON object. Rules across
several messages (answers and their calls, ids) are in `legalize.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from typing import TypeVar

import msgspec

from .caches import cached
from .edits import Edit, Hide, Path, Replace, Target
from .fallbacks import void_parts
from .messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .profiles import Profile
from .readable import block_content
from .server_tools import partner_of, server_block
from .tool_names import tool_name

__all__ = [
    "NO_ERROR_TEXT",
    "EditedMessage",
    "apply_edits",
    "can_apply",
    "is_carried",
    "is_directive",
    "legalized",
    "trim_end",
]

NO_ERROR_TEXT = "[The tool failed and said nothing.]"
"""The text of an error without content, which Anthropic refuses."""

T = TypeVar("T", bound=Hashable)

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


class EditedMessage(msgspec.Struct, frozen=True):
    """A message after its edits."""

    message: Message
    """The message to show."""
    shrunk: tuple[Path, ...] = ()
    """Paths in the appended message whose content was replaced or hidden."""
    edits: tuple[int, ...] = ()
    """Numbers of the edits that apply."""
    by: tuple[str, ...] = ()
    """For each of these paths: the policy of the last edit."""
    expandable: bool = True
    """Whether all of these edits let the model expand the original."""


def apply_edits(message: Message, edits: Sequence[tuple[int, Edit]]) -> EditedMessage:
    """Return the message with these numbered edits applied in order. Skips edits that cannot apply.

    A server tool's use and its result are replaced or hidden together: an edit of one also hides the other.
    """
    content: dict[Path, tuple[Part, ...]] = {}
    by: dict[Path, Replace | Hide] = {}
    numbers: list[int] = []
    for number, edit in edits:
        match edit:
            case Replace() if edit.erased and not message.parts:
                pass  # Both the message and the replacement are erased. Nothing needs to replace them.
            case Replace(target=target):
                path = _narrowed(message, target)
                replaced = _replaced(message, path, edit)
                if replaced is not None:
                    content[path], by[path] = replaced, edit
                    numbers.append(number)
                    _hide_partner(message, path, edit, content, by)
            case Hide(target=Target() as target) if target.path:
                if _may_hide(message, target.path):
                    content[target.path], by[target.path] = (), edit
                    numbers.append(number)
                    _hide_partner(message, target.path, edit, content, by)
            case _:
                pass
    if not content:
        return EditedMessage(message)
    return EditedMessage(
        _rebuilt(message, content),
        _shared(tuple(content)),
        tuple(numbers),
        _shared(tuple([by[path].policy for path in content])),
        all(edit.expandable for edit in by.values() if isinstance(edit, Replace)),
    )


@cached(1 << 10)
def _shared(value: T) -> T:
    """Return an equal tuple, the same one for many messages: most edits change the same part by the same policy."""
    return value


def _hide_partner(
    message: Message,
    path: Path,
    edit: Replace | Hide,
    content: dict[Path, tuple[Part, ...]],
    by: dict[Path, Replace | Hide],
) -> None:
    """Hide the other block of a server tool with the one that an edit changes."""
    partner = partner_of(message.parts, path[0]) if len(path) == 1 else None
    if partner is not None and (partner,) not in content:
        content[(partner,)], by[(partner,)] = (), edit


def can_apply(message: Message, edit: Replace | Hide) -> bool:
    """Return whether this edit can change the message: its path exists and the part allows the edit."""
    return bool(apply_edits(message, ((1, edit),)).edits)


def is_carried(part: Reasoning, profile: Profile) -> bool:
    """Return whether the provider's messages have a place for this reasoning of its own.

    Chat completions have no place for encrypted reasoning, and strict servers have none for any reasoning.
    """
    return profile.signed_reasoning or not (part.encrypted or profile.strict)


def is_directive(message: Message, profile: Profile) -> bool:
    """Return whether a system message has no content and only settings for the provider, such as an effort.

    Anthropic takes such a message at any place.
    """
    if message.role != "system" or message.parts or message.extra is None or message.extra.format != profile.format:
        return False
    return profile.system_places == "after_user" and "output_config" in msgspec.json.decode(message.extra.fields)


def _narrowed(message: Message, target: Target) -> Path:
    """Return the path of the only part for a message of one part, so that a result keeps its call."""
    return (0,) if not target.path and len(message.parts) == 1 else target.path


def _part_at(message: Message, path: Path) -> Part | None:
    match path:
        case (i,) if 0 <= i < len(message.parts):
            return message.parts[i]
        case (i, j) if 0 <= i < len(message.parts):
            result = message.parts[i]
            if isinstance(result, ToolResult) and 0 <= j < len(result.content):
                return result.content[j]
    return None


def _replaced(message: Message, path: Path, edit: Replace) -> tuple[Part, ...] | None:
    """Return the content at `path` after the edit, or None if the edit cannot apply.

    It cannot apply to a wrong path, to reasoning, or with invalid arguments.
    """
    if not path:
        return edit.content if not message.calls and message.result is None else None
    match _part_at(message, path):
        case None | Reasoning():
            return None
        case ToolResult() as result:
            return (ToolResult(result.call_id, edit.content, result.state, result.name, result.extra),)
        case ToolCall() as call:
            if len(edit.content) == 1 and isinstance(edit.content[0], Text) and _is_object(edit.content[0].text):
                return (ToolCall(call.call_id, call.name, edit.content[0].text, call.extra),)
            return None
        case _:
            return edit.content


def _may_hide(message: Message, path: Path) -> bool:
    """Return whether an edit may hide this part. Calls and results are hidden only as whole messages, and reasoning
    stays with the calls it led to.
    """
    match _part_at(message, path):
        case None | ToolCall() | ToolResult():
            return False
        case Reasoning():
            return not message.calls
        case _:
            return True


def _rebuilt(message: Message, content: dict[Path, tuple[Part, ...]]) -> Message:
    if () in content:
        return Message(message.role, content[()], message.name, message.extra)
    parts: list[Part] = []
    for i, part in enumerate(message.parts):
        if (i,) in content:
            parts.extend(content[(i,)])
        elif isinstance(part, ToolResult) and any(len(path) == 2 and path[0] == i for path in content):
            shown = [new for j, old in enumerate(part.content) for new in content.get((i, j), (old,))]
            nested = tuple(new for new in shown if isinstance(new, Text | Media | Opaque))
            parts.append(ToolResult(part.call_id, nested, part.state, part.name, part.extra))
        else:
            parts.append(part)
    return Message(message.role, tuple(parts), message.name, message.extra)


def legalized(message: Message, profile: Profile, *, stale: bool, compacts: bool = False) -> tuple[Message | None, str]:
    """Return the message without content that its provider refuses, and the reason of the change ("" for no change).

    `stale`: an edit before this message voids bound reasoning. `compacts`: its compaction is active. Returns None as
    the message if nothing is left.
    """
    why = ""
    parts: list[Part] = []
    void = void_parts(message.parts)
    for index, part in enumerate(message.parts):
        if index in void:
            why = why or "blocks before the place where another model went on are refused"
            continue
        match part:
            case Text() if not part.text.strip():
                why = why or "blank text is refused"
                continue
            case Reasoning():
                problem = _reasoning_problem(part, profile, stale)
                if problem:
                    why = why or problem
                    continue
            case Opaque() if part.format != profile.format:
                why = why or "a block that only another provider knows is refused"
                if message.role == "user" and server_block(part) is None:
                    parts += block_content(part)  # In a reply, the model would take these words for its own.
                continue
            case Opaque() if message.role != "assistant" and server_block(part):
                why = why or "a server tool's block is refused outside of the assistant's messages"
                continue
            case Opaque() if not compacts and part.is_compaction:
                why = why or "the messages that the provider compacted are shown"
                continue
            case ToolResult():
                result = _legal_result(part, profile)
                if result is not part:
                    why = why or "its result had refused content"
                part = result
            case ToolCall():
                call = _legal_call(part, profile)
                if call is not part:
                    why = why or "its call had refused arguments or a refused name"
                part = call
            case _:
                pass
        parts.append(part)
    if profile.calls_last and message.role == "assistant" and (ordered := _calls_last(parts)) != parts:
        why = why or "content after a call, and reasoning at the end, are refused"
        parts = ordered
    if message.role == "assistant" and trim_end(parts, profile):
        why = why or "white space at the end of the assistant's text is refused"
    if message.role != "tool" and all(isinstance(part, Reasoning) for part in parts):
        is_kept = not parts and is_directive(message, profile)
        return (message if is_kept else None), "" if is_kept else "a message without content is refused"
    return (Message(message.role, tuple(parts), message.name, message.extra) if why else message), why


def trim_end(parts: list[Part], profile: Profile) -> bool:
    """Remove white space from the end of a reply if its provider refuses it there. Return whether there was any."""
    last = parts[-1] if parts else None
    if not (profile.refuses_trailing_space and isinstance(last, Text) and last.text[-1:].isspace()):
        return False
    parts[-1] = Text(last.text.rstrip(), last.extra)
    return True


def _calls_last(parts: Sequence[Part]) -> list[Part]:
    """Return the same parts with reasoning and text before the first call. Reasoning does not come last."""
    others = [part for part in parts if not isinstance(part, ToolCall)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls and others and isinstance(others[-1], Reasoning):
        others.sort(key=lambda part: not isinstance(part, Reasoning))
    return [*others, *calls]


def _reasoning_problem(part: Reasoning, profile: Profile, stale: bool) -> str:
    if part.format != profile.format:
        return "another provider's reasoning is refused"
    if profile.signed_reasoning and not (part.signature or part.encrypted):
        return "unsigned reasoning is refused"
    if not is_carried(part, profile):
        return "reasoning that the format cannot carry is refused"
    if profile.binds_reasoning and stale:
        return "reasoning bound to an earlier form of the conversation is refused"
    return ""


def _legal_call(call: ToolCall, profile: Profile) -> ToolCall:
    arguments = call.arguments
    if not _is_object(arguments):
        # Kept readable: a truncated stream often holds the one value that matters.
        arguments = json.dumps({"invalid_arguments": arguments}, ensure_ascii=False) if arguments.strip() else "{}"
    name = _legal_name(call.name, profile)
    if arguments is call.arguments and name == call.name:
        return call
    return ToolCall(call.call_id, name, arguments, call.extra)


def _legal_name(name: str, profile: Profile) -> str:
    """Return the name that the definition of such a tool has (`tool_name`), or the name itself if it is legal."""
    marks = profile.tool_name_marks
    is_legal = len(name) <= profile.max_tool_name and all(found in marks for found in _NOT_PLAIN.findall(name))
    if is_legal and name and (not marks or name[0].isalpha() or name[0] == "_"):
        return name
    return tool_name(name) if name.strip() else "unnamed_tool"


def _legal_result(result: ToolResult, profile: Profile) -> ToolResult:
    content = tuple([legal for part in result.content for legal in _legal_content(part, profile)])
    if not content and result.state == "error":
        content = (Text(NO_ERROR_TEXT),)
    if content == result.content:
        return result
    return ToolResult(result.call_id, content, result.state, result.name, result.extra)


def _legal_content(part: Content, profile: Profile) -> Sequence[Content]:
    """Return a part of a result as the provider takes it: of a block of another one, its text and media."""
    match part:
        case Text() if not part.text.strip():
            return ()
        case Opaque() if server_block(part) is not None:
            return ()
        case Opaque() if part.format != profile.format:
            return block_content(part)
        case _:
            return (part,)


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
