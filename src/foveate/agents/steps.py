"""The next steps of a loop agent: plain values, and how they are read from a model's JSON.

A step is read in any spelling that is unambiguous. Anything else is refused in words for the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..core.json_objects import objects_in
from ..core.results import plain_name
from ..errors import BadInput

__all__ = [
    "ActionCall",
    "Actions",
    "BadStep",
    "Chat",
    "ExpandMessage",
    "Failed",
    "NextStep",
    "Retry",
    "SubAgentTask",
    "SubAgents",
    "Success",
    "read_step",
]

_T = TypeVar("_T")


class ActionCall(Struct, frozen=True):
    """One action that the model chose."""

    name: str
    params: Mapping[str, Any] = {}

    @property
    def arguments(self) -> str:
        """The parameters as JSON text."""
        return json.dumps(dict(self.params), ensure_ascii=False)


class Actions(Struct, frozen=True):
    """Carry out actions, in parallel if they allow it."""

    actions: tuple[ActionCall, ...]


class SubAgentTask(Struct, frozen=True):
    """One task for another agent."""

    name: str
    task: str


class SubAgents(Struct, frozen=True):
    """Give tasks to other agents, which work at the same time."""

    tasks: tuple[SubAgentTask, ...]


class Chat(Struct, frozen=True):
    """Send a message to the user, and wait for the answer."""

    message: str


class ExpandMessage(Struct, frozen=True):
    """Show the original of a message again."""

    message: str | int
    """A handle such as `m5`, the id of a message, or its index, from 0, in the view."""
    reason: str = ""
    lines: str = ""
    """Only these lines, such as `1-40`."""
    items: str = ""
    """Only these elements, rows or records."""
    pattern: str = ""
    """Only the matches of this regular expression."""

    @property
    def part(self) -> dict[str, str]:
        """The part that is wanted, by kind; empty: all of the message."""
        return {kind: text for kind in ("lines", "items", "pattern") if (text := getattr(self, kind))}


class Retry(Struct, frozen=True):
    """Think again, or continue thinking."""

    reason: str = ""


class Success(Struct, frozen=True):
    """The task is done."""

    message: str = ""


class Failed(Struct, frozen=True):
    """The task cannot be done."""

    reason: str = ""


NextStep = Actions | SubAgents | Chat | ExpandMessage | Retry | Success | Failed


class BadStep(BadInput):
    """An answer contains no step. The text says why, in words for the model."""


def read_step(text: str) -> NextStep:
    """Return the step in an answer: the first JSON object that is meant as a step. Raises BadStep.

    `taskComplete: true` means success, with its message, unless the step is of type Failed.
    """
    first: BadStep | None = None
    faults: list[str] = []
    for fields in _candidates(text, faults):
        try:
            return _step(fields)
        except BadStep as error:
            first = first or error
    if first is None and faults:
        raise BadStep(f"its JSON is not valid: {faults[0]}")
    raise first or BadStep("there is no JSON object in it with taskComplete and nextStep")


def _candidates(text: str, faults: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects that are meant as steps, also one that is wrapped, as in `{"response": {...}}`."""
    for fields in (_normalized(found) for found, _, _ in objects_in(text, faults)):
        if _MARKS & fields.keys():
            yield fields
        else:
            yield from (inner for inner in fields.values() if isinstance(inner, dict) and _SURE & inner.keys())


def _convert(kind: type[_T], fields: Mapping[str, Any]) -> _T:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        text = str(error).replace(" - at `$.", " at `").replace(" - at `$`", "")
        raise BadStep(text[:1].lower() + text[1:]) from error


# ------------------------------------------------------------------------------------------------------------ reading

_TYPES = "Actions, Sub-Agent, Chat, expand-message, Retry, Success, Failed"

_NAMES = {
    name.lower(): name
    for name in (
        *("taskComplete", "message", "reasoning", "nextStep", "type", "step", "actions", "name", "params"),
        *(
            "subAgent",
            "subAgents",
            "messageIndex",
            "messageId",
            "handle",
            "reason",
            "task",
            "lines",
            "items",
            "pattern",
        ),
    )
} | {"parameters": "params", "arguments": "params", "agent": "name", "itemrange": "items", "linerange": "lines"}
"""Names of fields by their plain spelling."""
_SURE = {"taskComplete", "nextStep"}
_MARKS = _SURE | {"step", "type"}
"""An object with one of these fields is meant as a step."""


_Range = str | int | tuple[int, int]


class _Call(Struct):
    name: str
    params: dict[str, Any] | None = None


class _Task(Struct):
    name: str
    message: str | None = None
    task: str | None = None


class _Next(Struct, rename="camel"):
    type: str | None = None
    step: str | None = None
    actions: list[_Call] | None = None
    sub_agent: _Task | str | list[_Task | str] | None = None
    sub_agents: _Task | str | list[_Task | str] | None = None
    name: str | None = None
    params: dict[str, Any] | None = None
    message: str | int | None = None
    task: str | None = None
    message_index: str | int | float | None = None
    message_id: str | int | None = None
    handle: str | None = None
    reason: str | None = None
    lines: _Range | None = None
    items: _Range | None = None
    pattern: str | None = None


class _Answer(Struct, rename="camel"):
    task_complete: bool | None = None
    message: str | int | None = None
    reasoning: str | None = None
    reason: str | None = None
    next_step: _Next | str | None = None


def _step(fields: Mapping[str, Any]) -> NextStep:
    answer = _convert(_Answer, fields)
    message = _text(answer.message)
    if isinstance(answer.next_step, str):
        next = _Next(type=answer.next_step)
    elif answer.next_step is not None:
        next = answer.next_step
    else:  # The step itself, without an object around it.
        next = _convert(_Next, fields)
    kind = plain_name(next.type or next.step or "")
    reason = next.reason or _text(next.message) or answer.reason or answer.reasoning or ""
    if answer.task_complete:
        return Failed(reason or message) if kind in _FAILED else Success(message or _text(next.message))
    match kind:
        case "":
            raise BadStep(f"taskComplete is not true, and nextStep says no type; allowed: {_TYPES}")
        case "actions" | "action" | "executeactions":
            return _actions(next)
        case "subagent" | "subagents":
            return _sub_agents(next, message)
        case "chat":
            if not (text := _text(next.message) or message):
                raise BadStep("a step of type Chat needs a message, a text for the user")
            return Chat(text)
        case "expandmessage" | "expand":
            return _expansion(next)
        case "retry" | "continue":
            return Retry(reason or message)
        case "success":
            return Success(_text(next.message) or message or next.reason or "")
        case _ if kind in _FAILED:
            return Failed(next.reason or _text(next.message) or message or reason)
        case _:
            raise BadStep(f"the type of nextStep is {next.type or next.step!r:.60}; allowed: {_TYPES}")


_FAILED = ("failed", "fail", "failure")


def _actions(next: _Next) -> Actions:
    calls = next.actions
    if calls is None and next.name:
        calls = [_Call(next.name, next.params)]
    if not calls:
        raise BadStep('a step of type Actions needs actions, a list of one or more {"name": ..., "params": {...}}')
    return Actions(tuple(ActionCall(call.name, call.params or {}) for call in calls))


def _sub_agents(next: _Next, message: str) -> SubAgents:
    chosen = next.sub_agents or next.sub_agent or next.name or []
    tasks: list[SubAgentTask] = []
    for item in chosen if isinstance(chosen, list) else [chosen]:
        task = _Task(item) if isinstance(item, str) else item
        text = task.message or task.task or next.task or _text(next.message) or message
        if task.name and not text:
            raise BadStep("subAgent needs a message: the task, with all that the sub-agent has to know")
        tasks.append(SubAgentTask(task.name, text))
    if not tasks or not all(task.name for task in tasks):
        raise BadStep('a step of type Sub-Agent needs subAgent, such as {"name": ..., "message": ...}')
    return SubAgents(tuple(tasks))


def _expansion(next: _Next) -> ExpandMessage:
    for value in (next.message_index, next.message_id, next.handle, next.message):
        if value is None or value == "" or (isinstance(value, float) and not value.is_integer()):
            continue
        message = int(value) if isinstance(value, float) else value
        if isinstance(message, str):
            message = _handle(message.strip())
        parts = (_range(next.lines), _range(next.items), next.pattern or "")
        return ExpandMessage(message, next.reason or "", *parts)
    raise BadStep('a step of type expand-message needs messageIndex, a whole number, or message, a handle such as "m5"')


def _handle(text: str) -> str | int:
    """Read a handle, plain or as a placeholder writes it, `expand("m5")`. A number is an index."""
    if match := re.fullmatch(r"expand\(\s*[\"']?([^\"',)]+)[\"']?.*\)", text):
        return match[1].strip()
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _range(value: _Range | None) -> str:
    match value:
        case None:
            return ""
        case (first, last):
            return f"{first}-{last}"
        case _:
            return str(value)


def _text(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _normalized(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with its fields in the spelling of `_NAMES`. Parameters stay as they are."""
    renamed: dict[str, Any] = {}
    for name, value in fields.items():
        known = _NAMES.get(plain_name(name), name)
        if known == "params" or not isinstance(value, dict | list):
            renamed.setdefault(known, value)
        elif isinstance(value, dict):
            renamed.setdefault(known, _normalized(value))
        else:
            renamed.setdefault(known, [_normalized(item) if isinstance(item, dict) else item for item in value])
    return renamed
