"""The JSON form of steps: how a model says them, in any spelling that is meant without doubt.

What is no step is told in words for the model. Knows nothing of how steps are carried out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..errors import BadInput
from .json_objects import objects_in
from .steps import ActionCall, Actions, Chat, ExpandMessage, Failed, NextStep, Retry, SubAgent, Success

__all__ = ["BadStep", "read_step"]

_T = TypeVar("_T")


class BadStep(BadInput):
    """An answer that says no step. The text tells the model what is wrong."""


def read_step(text: str) -> NextStep:
    """The step in an answer: that of the first JSON object that is meant as one. Raises BadStep.

    `taskComplete: true` is success, with its message, whatever else is said beside it, unless it says that it failed.
    """
    first: BadStep | None = None
    faults: list[str] = []
    for found in _meant(text, faults):
        try:
            return _step(found)
        except BadStep as error:
            first = first or error
    if first is None and faults:
        raise BadStep(f"its JSON is not valid: {faults[0]}")
    raise first or BadStep("there is no JSON object in it with taskComplete and nextStep")


def _meant(text: str, faults: list[str]) -> Iterator[dict[str, Any]]:
    """The objects that are meant as steps; also one that is wrapped, as in `{"response": {...}}`."""
    for found in map(_named, objects_in(text, faults)):
        if _MARKS & found.keys():
            yield found
        else:
            yield from (one for one in found.values() if isinstance(one, dict) and _SURE & one.keys())


def _read(kind: type[_T], found: Mapping[str, Any]) -> _T:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        told = str(error).replace(" - at `$.", " at `").replace(" - at `$`", "")
        raise BadStep(told[:1].lower() + told[1:]) from error


# ------------------------------------------------------------------------------------------------------------- the form

_TYPES = "Actions, Sub-Agent, Chat, expand-message, Retry, Success, Failed"

_NAMES = {
    name.lower(): name
    for name in (
        *("taskComplete", "message", "reasoning", "nextStep", "type", "step", "actions", "subAgent", "name", "params"),
        *("messageIndex", "messageId", "handle", "reason", "task", "lines", "items", "pattern"),
    )
} | {"parameters": "params", "arguments": "params", "agent": "name", "itemrange": "items", "linerange": "lines"}
"""Names of fields, as they are written here, by what models make of them."""
_SURE = {"taskComplete", "nextStep"}
_MARKS = _SURE | {"step", "type"}
"""An object with one of these is meant as a step."""


_Range = str | int | tuple[int, int]


class _Call(Struct):
    name: str
    params: dict[str, Any] | None = None


class _Handed(Struct):
    name: str
    message: str | None = None
    task: str | None = None


class _Next(Struct, rename="camel"):
    type: str | None = None
    step: str | None = None
    actions: list[_Call] | None = None
    sub_agent: _Handed | str | None = None
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


def _step(found: Mapping[str, Any]) -> NextStep:
    answer = _read(_Answer, found)
    said = _text(answer.message)
    if isinstance(answer.next_step, str):
        next = _Next(type=answer.next_step)
    elif answer.next_step is not None:
        next = answer.next_step
    else:  # The step itself, without anything around it.
        next = _read(_Next, found)
    kind = _plain(next.type or next.step or "")
    reason = next.reason or _text(next.message) or answer.reason or answer.reasoning or ""
    if answer.task_complete:
        return Failed(reason or said) if kind in _FAILED else Success(said or _text(next.message))
    match kind:
        case "":
            raise BadStep(f"taskComplete is not true, and nextStep says no type; allowed: {_TYPES}")
        case "actions" | "action" | "executeactions":
            return _actions(next)
        case "subagent" | "subagents":
            return _sub_agent(next, said)
        case "chat":
            if not (told := _text(next.message) or said):
                raise BadStep("a step of type Chat needs a message, a text for the user")
            return Chat(told)
        case "expandmessage" | "expand":
            return _expansion(next)
        case "retry" | "continue":
            return Retry(reason or said)
        case "success":
            return Success(_text(next.message) or said or next.reason or "")
        case _ if kind in _FAILED:
            return Failed(next.reason or _text(next.message) or said or reason)
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


def _sub_agent(next: _Next, said: str) -> SubAgent:
    handed = next.sub_agent
    if isinstance(handed, str):
        handed = _Handed(handed)
    if handed is None and next.name:
        handed = _Handed(next.name)
    if handed is None or not handed.name:
        raise BadStep('a step of type Sub-Agent needs subAgent, such as {"name": ..., "message": ...}')
    task = handed.message or handed.task or next.task or _text(next.message) or said
    if not task:
        raise BadStep("subAgent needs a message: the task, with all that the sub-agent has to know")
    return SubAgent(handed.name, task)


def _expansion(next: _Next) -> ExpandMessage:
    for named in (next.message_index, next.message_id, next.handle, next.message):
        if named is None or named == "" or (isinstance(named, float) and not named.is_integer()):
            continue
        message = int(named) if isinstance(named, float) else named
        if isinstance(message, str):
            message = _handle(message.strip())
        parts = (_range(next.lines), _range(next.items), next.pattern or "")
        return ExpandMessage(message, next.reason or "", *parts)
    raise BadStep('a step of type expand-message needs messageIndex, a whole number, or message, a handle such as "m5"')


def _handle(said: str) -> str | int:
    """A handle, bare or as it stands in a note, `expand("m5")`; a number is an index."""
    if found := re.fullmatch(r"expand\(\s*[\"']?([^\"',)]+)[\"']?.*\)", said):
        return found[1].strip()
    return int(said) if re.fullmatch(r"-?[0-9]{1,18}", said) else said


def _range(said: _Range | None) -> str:
    match said:
        case None:
            return ""
        case (first, last):
            return f"{first}-{last}"
        case _:
            return str(said)


def _text(said: str | int | None) -> str:
    return "" if said is None else str(said)


def _named(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with the names of its fields as they are written here; parameters stay as they are."""
    renamed: dict[str, Any] = {}
    for name, value in found.items():
        known = _NAMES.get(_plain(name), name)
        if known == "params" or not isinstance(value, dict | list):
            renamed.setdefault(known, value)
        elif isinstance(value, dict):
            renamed.setdefault(known, _named(value))
        else:
            renamed.setdefault(known, [_named(one) if isinstance(one, dict) else one for one in value])
    return renamed


def _plain(name: str) -> str:
    """A name without case, hyphens, blanks and underscores."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
