"""Results: what a tool or an action answered, in a message of any role.

The result of a native call is a message of role tool. A loop agent's calls, its *actions*, are JSON in the model's
text, and each result is a message of role user with origin `tool`. Policies treat both alike. This module reads an
action's result as a `ToolResult`, and a step of actions with its results as calls and tool results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from .caches import cached, newest_forms
from .json_objects import objects_in
from .messages import Content, Media, Message, Opaque, ResultState, Text, ToolCall, ToolResult
from .stamps import Stamp

if TYPE_CHECKING:
    from .view import Entry

__all__ = [
    "ActionStep",
    "action_result",
    "headline",
    "headline_of",
    "is_action_result",
    "is_loose_result",
    "is_step_note",
    "merged_headline",
    "native_message",
    "native_steps",
    "plain_name",
    "read_actions",
    "with_headline",
]

_NAME_MAX = 80
"""Characters of a name in a headline: models invent long ones."""
_HEADLINE = re.compile(
    r"(?:(?:Result of [^\n]{1,120}?(?P<failed>, which failed)?|Action results|(?P<some>\d+) of (?P<all>\d+) failed):)"
    r"(?:\n+|\Z)"
)


def is_step_note(message: Message, stamp: Stamp) -> bool:
    """Return whether an agent wrote this message of role user, as an answer to a step that has no result."""
    return message.role == "user" and stamp.origin == "derived" and stamp.expanded is None


def is_action_result(message: Message, stamp: Stamp) -> bool:
    """Return whether an action or another agent answered with this message of role user."""
    return message.role == "user" and stamp.origin == "tool"


# ----------------------------------------------------------------------------------------------------------- headlines


def headline(name: str, state: ResultState = "ok", *, place: int = 1, of: int = 1, what: str = "Result of") -> str:
    """Return the first line of an action's result. `place`, from 1: among the `of` actions of its step."""
    name = " ".join(name.split())[:_NAME_MAX]
    number = f" ({place} of {of})" if of > 1 else ""
    return f"{what} {name}{number}:" if state == "ok" else f"{what} {name}{number}, which failed:"


def merged_headline(failed: int, of: int) -> str:
    """Return the first line of a message with all results of a step."""
    return f"{failed} of {of} failed:" if failed else "Action results:"


def with_headline(entry: Entry, text: str) -> str:
    """Return a short form of an entry's content. That of an action's result begins with the headline of the result, as
    no call stands next to it.
    """
    source = entry.outline
    if source is None or not is_action_result(source, entry.stamp):
        return text
    head = headline_of(source).rstrip() or (headline(entry.tool) if entry.tool else "Result:")
    return f"{head}\n{text}"


def headline_of(message: Message) -> str:
    """Return the headline of an action's result with the white space after it; "" if it has none."""
    match = _HEADLINE.match(_first_text(message))
    return match[0] if match else ""


def _first_text(message: Message) -> str:
    return message.parts[0].text if message.parts and isinstance(message.parts[0], Text) else ""


# ------------------------------------------------------------------------------------------------------------- results


def action_result(message: Message, name: str) -> ToolResult:
    """Return the content of an action's result, without its headline. The headline says whether the action failed.

    `name`: of the action. The result has no call id.
    """
    content: list[Content] = [part for part in message.parts if isinstance(part, Text | Media | Opaque)]
    state: ResultState = "ok"
    if match := _HEADLINE.match(_first_text(message)):
        has_failed = match["failed"] or (match["all"] and match["some"] == match["all"])
        state = "error" if has_failed else "ok"
        rest = _first_text(message)[match.end() :]
        content[:1] = [Text(rest)] if rest else []
    return ToolResult("", tuple(content), state, name)


def native_message(entry: Entry) -> Message | None:
    """Return the appended message of an entry; of an action's result, its content as a tool result."""
    source = entry.source
    if source is None or not is_action_result(source, entry.stamp):
        return source
    return _as_tool_message(source, entry.tool, "")


def _as_tool_message(message: Message, name: str, call_id: str) -> Message:
    return Message("tool", (replace(action_result(message, name), call_id=call_id),))


# --------------------------------------------------------------------------------------------------------------- steps


class ActionStep(Struct, frozen=True):
    """A text of the model that calls actions in JSON."""

    words: str
    """Text of the model outside of the calls."""
    calls: tuple[ToolCall, ...]
    """The calls, in order. They have no ids."""


_NAMES = ("name", "tool", "action", "toolname", "actionname", "function")
_ARGUMENTS = ("params", "parameters", "arguments", "args", "input", "actioninput", "toolinput")
_FENCE = re.compile(r"```\w*")


@cached(64)
def read_actions(text: str) -> ActionStep | None:
    """Return the calls in the first JSON object of a text that has some; None if there is none.

    A call is an object with a name (`name`, `tool`, `action`) and either arguments (`params`, `arguments`, `input`, as
    an object or as JSON text) or no object inside; then its other fields are the arguments.
    """
    if "{" not in text:
        return None
    for fields, start, end in objects_in(text, []):
        calls: list[ToolCall] = []
        words = [_FENCE.sub("", text[:start])]
        _collect(fields, calls, words)
        if calls:
            words.append(_FENCE.sub("", text[end:]))
            return ActionStep("\n".join(line for word in words if (line := word.strip())), tuple(calls))
    return None


def _collect(value: Any, calls: list[ToolCall], words: list[str]) -> None:
    """Add the calls inside a value of JSON, and the texts of more than one word that are outside of calls."""
    match value:
        case dict() if (call := _call_in(value)) is not None:
            calls.append(call)
        case dict():
            for inner in value.values():
                _collect(inner, calls, words)
        case list():
            for inner in value:
                _collect(inner, calls, words)
        case str() if any(map(str.isspace, value.strip())):
            words.append(value)
        case _:
            pass


def _call_in(fields: Mapping[str, Any]) -> ToolCall | None:
    plain = {plain_name(key): key for key in reversed(list(fields))}
    name_key = next((plain[key] for key in _NAMES if key in plain and isinstance(fields[plain[key]], str)), None)
    if name_key is None:
        return None
    arguments_key = next((plain[key] for key in _ARGUMENTS if key in plain), None)
    if arguments_key is None:
        rest = {key: value for key, value in fields.items() if key != name_key}
        has_inner = any(isinstance(value, dict | list) for value in rest.values())
        return None if has_inner else ToolCall("", fields[name_key], _json(rest))
    match fields[arguments_key]:
        case dict() as arguments:
            return ToolCall("", fields[name_key], _json(arguments))
        case None:
            return ToolCall("", fields[name_key])
        case str() as text:
            return ToolCall("", fields[name_key], text if text.lstrip()[:1] == "{" else _json({arguments_key: text}))
        case other:
            return ToolCall("", fields[name_key], _json({arguments_key: other}))


def plain_name(name: str) -> str:
    """Return a name without case, hyphens, blanks and underscores."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --------------------------------------------------------------------------------------------------------- native form


def native_steps(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the same entries, with each step of actions and its results in the form of calls and tool results.

    The k-th message after a step answers its k-th call if the step has as many calls as messages follow, each of them a
    result of the action that the call names. Other steps and results stay as they are. Handles, ids and stamps stay.
    """
    if not any(is_loose_result(entry) for entry in entries):
        return tuple(entries)
    return tuple(native for unit, end in _units(entries) for native in (_cached_unit(unit, end) if end else unit))


def _units(entries: Sequence[Entry]) -> Iterator[tuple[tuple[Entry, ...], int]]:
    """Yield each step with its results, with the position after them, and all other entries with 0."""
    index = 0
    while index < len(entries):
        after = index + 1
        behind = _without_stand_ins(entries, after)
        while behind < len(entries) and is_loose_result(entries[behind]):
            after = behind + 1
            behind = _without_stand_ins(entries, after)
        is_step = after > index + 1 and entries[index].message.role == "assistant"
        behind = entries[behind].position if behind < len(entries) else entries[after - 1].position + 1
        yield tuple(entries[index:after]), behind if is_step else 0
        index = after


def _without_stand_ins(entries: Sequence[Entry], index: int) -> int:
    """Return the index of the first entry from `index` on that is no stand-in between two messages."""
    while index < len(entries) and entries[index].is_between:
        index += 1
    return index


def is_loose_result(entry: Entry) -> bool:
    """Return whether an entry shows the result of an action, not of a call."""
    return entry.is_result and entry.message.role == "user" and entry.kind == "message"


def _cached_unit(unit: tuple[Entry, ...], behind: int) -> tuple[Entry, ...]:
    """Return the native form of a unit. An unchanged unit gives the same entries in every view."""

    def make() -> tuple[Entry, ...] | None:
        native = _native_unit(unit, behind)
        return None if native is unit else native

    return newest_forms(unit[-1], "native", (behind, unit[:-1]), make) or unit


def _native_unit(unit: tuple[Entry, ...], behind: int) -> tuple[Entry, ...]:
    step, results = unit[0], [entry for entry in unit[1:] if not entry.is_between]
    if step.outline is None or step.outline.calls or step.kind != "message":
        return unit
    actions = read_actions(step.source.text if step.source else "")
    if actions is None or len(actions.calls) != behind - step.position - 1:
        return unit
    places = [result.position - step.position for result in results]
    called = [actions.calls[place - 1].name if place <= len(actions.calls) else "" for place in places]
    if not all(_is_name(name, result.tool) for name, result in zip(called, results, strict=True)):
        return unit
    ids = [f"{step.handle}.{place}" for place in range(1, len(actions.calls) + 1)]
    calls = [replace(call, call_id=id) for call, id in zip(actions.calls, ids, strict=True)]
    answered = [calls[place - 1] for place in places]  # A result that was removed leaves its call out.
    source = _message_of(actions.words, answered)
    native: list[Entry] = []
    for call, result in zip(answered, results, strict=True):
        as_native = partial(_as_tool_message, name=call.name, call_id=call.call_id)
        appended = result.appended
        assert appended is not None, "a result is no summary"
        converted = as_native(appended) if isinstance(appended, Message) else appended.converted(as_native)
        native.append(replace(result, appended=converted, message=as_native(result.message)))
    shown = iter(native)
    step = replace(step, appended=source, message=_shown_step(step, source, answered, places))
    return step, *(entry if entry.is_between else next(shown) for entry in unit[1:])


def _message_of(words: str, calls: Sequence[ToolCall]) -> Message:
    return Message("assistant", (*([Text(words)] if words else []), *calls))


def _shown_step(step: Entry, source: Message, answered: Sequence[ToolCall], places: Sequence[int]) -> Message:
    """Return the native form of the text that the view shows of a step, which may be shortened."""
    if step.message is step.source:
        return source
    actions = read_actions(step.message.text)
    if actions is None or len(actions.calls) < max(places):
        return _message_of(step.message.text, [replace(call, arguments="{}") for call in answered])
    shown = [
        replace(actions.calls[place - 1], call_id=call.call_id, name=call.name)
        for place, call in zip(places, answered, strict=True)
    ]
    return _message_of(actions.words, shown)


def _is_name(called: str, tool: str) -> bool:
    return bool(called) and (not tool or plain_name(called) == plain_name(tool))
