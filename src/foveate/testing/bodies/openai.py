"""Rules of chat completions: for single messages, for a list of them, and for tools.

OpenAI itself accepts arguments that are not JSON, but most compatible servers do not, so they are refused here. Keys of
messages that no server documents are refused. Unknown keys and kinds of parts pass unless `strict`. Known parts of
other providers are always refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import field

from .media import IMAGE_TYPES, data_fault
from .values import TOOL_NAME, Facts, Fault, encodes, is_json, strings, unknown_keys

__all__ = ["OpenAIRules"]


_CALLS_MAX: Final = 128
_CALL_ID_MAX: Final = 40
_STRING_MAX: Final = 10_485_760
_SPEAKER: Final = re.compile(r"[^\s<|\\/>]{1,64}").fullmatch

_ROLES: Final[dict[str, frozenset[str]]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset({"role", "content", "name", "tool_calls", "refusal", "audio", "function_call"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "function": frozenset({"role", "content", "name"}),
}
"""The roles, and the keys that a strict reader accepts for each."""
_OF_SERVERS: Final = frozenset(
    {"name", "refusal", "audio", "annotations", "tool_calls", "function_call", "tool_call_id", "parsed"}
    | {"reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "reasoning_opaque"}
    | {"extra_content", "thinking_blocks", "provider_specific_fields", "prefix", "partial", "cache_control"}
)
"""Further keys that OpenAI or another server documents."""

_PARTS: Final[dict[str, frozenset[str]]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
    "function": frozenset(),
}
_OPEN: Final = frozenset({"user", "assistant"})
"""Roles that may have kinds of parts newer than this module."""
_MISPLACED: Final = _PARTS["user"] | {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
"""Known kinds of parts that belong to another role or provider, unless they belong to the role."""

_KEYS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset({"type", "text"}),
    "refusal": frozenset({"type", "refusal"}),
    "image_url": frozenset({"type", "image_url"}),
    "input_audio": frozenset({"type", "input_audio"}),
    "file": frozenset({"type", "file"}),
    "function": frozenset({"id", "type", "function"}),
    "custom": frozenset({"id", "type", "custom"}),
}
_NO_EXTRA: Final = "Additional properties are not allowed"
_NO_SURROGATES: Final = "We could not parse the JSON body of your request: surrogates not allowed"
_NO_MATCH: Final = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'."
_NO_IMAGE: Final = "Expected a base64-encoded data URL with an image MIME type"
_EMPTY_ARRAY: Final = "empty array. Expected an array with minimum length 1, but got an empty array instead."


class _OpenAIFacts(Facts):
    """The facts of a message: its calls and its answer."""

    calls: list[str] = field(default_factory=list)
    answer: str | None = None


class _OpenAIReader:
    """Reads messages one by one."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def read(self, message: object) -> _OpenAIFacts:
        """Return the facts and problems of one message."""
        facts = _OpenAIFacts()
        if not isinstance(message, dict):
            facts.fault("shape", "", "expected an object")
            return facts
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            supported = ", ".join(map(repr, _ROLES))
            facts.fault("role", ".role", f"Invalid value: {role!r}. Supported values are: {supported}.")
            return facts
        facts.role = role
        if role == "assistant":
            self._calls(message.get("tool_calls"), facts)
        elif role == "tool":
            answer = message.get("tool_call_id")
            if isinstance(answer, str) and answer:
                facts.answer = answer
            else:
                facts.fault("call-id", ".tool_call_id", "Missing required parameter: 'tool_call_id'.")
        self._content(message, facts)
        if (name := message.get("name")) is not None and not (isinstance(name, str) and _SPEAKER(name)):
            problem = "string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'."
            facts.fault("name", ".name", problem)
        for key in unknown_keys(message, _ROLES[role] if self.strict else _ROLES[role] | _OF_SERVERS):
            facts.fault("keys", f".{key}", _NO_EXTRA)
        return facts

    def _content(self, message: Mapping[str, Any], facts: _OpenAIFacts) -> None:
        content = message.get("content")
        if isinstance(content, str):
            self._text(content, ".content", facts)
        elif isinstance(content, list):
            if not content:
                facts.fault("empty", ".content", _EMPTY_ARRAY)
            for index, part in enumerate(content):
                self._part(part, f".content[{index}]", facts)
        elif content is not None:
            problem = f"expected one of a string or array of objects, but got {type(content).__name__} instead."
            facts.fault("content", ".content", problem)
        elif facts.role != "assistant" or all(
            message.get(key) is None for key in ("tool_calls", "function_call", "audio", "refusal")
        ):
            facts.fault("content", ".content", "Invalid value for 'content': expected a string, got null.")

    def _text(self, text: object, path: str, facts: _OpenAIFacts) -> None:
        if not isinstance(text, str):
            facts.fault("content", path, f"expected a string, but got {type(text).__name__} instead.")
            return
        facts.size += len(text)
        if not encodes(text):
            facts.fault("utf8", path, _NO_SURROGATES)
        if len(text) > _STRING_MAX:
            facts.fault("size", path, f"string too long. Expected a string with maximum length {_STRING_MAX}")

    def _part(self, part: object, path: str, facts: _OpenAIFacts) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            facts.fault("block", path, "each part must be an object with a `type`")
            return
        role, allowed = facts.role, _PARTS[facts.role]
        if kind == "image_url" and role != "user":
            problem = "Image URLs are only allowed for messages with role 'user', but this message with role"
            facts.fault("block", path, f"{problem} {role!r} contains an image URL.")
        elif kind not in allowed and (self.strict or role not in _OPEN or kind in _MISPLACED):
            supported = ", ".join(map(repr, sorted(allowed)))
            facts.fault("block", path, f"Invalid value: {kind!r}. Supported values are: {supported}.")
        if kind == "text" or kind == "refusal":
            self._text(part.get(kind), f"{path}.{kind}", facts)
        elif kind == "image_url":
            self._image(part.get("image_url"), f"{path}.image_url", facts)
        else:
            file, sound = part.get("file"), part.get("input_audio")
            if isinstance(file, dict) and not (file.get("file_id") or (file.get("file_data") and file.get("filename"))):
                facts.fault("media", f"{path}.file", f"Missing required parameter: '{path[1:]}.file.file_id'.")
            if isinstance(sound, dict) and (form := sound.get("format")) not in ("wav", "mp3"):
                problem = f"Invalid value: {form!r}. Supported values are: 'wav' and 'mp3'."
                facts.fault("media", f"{path}.input_audio.format", problem)
            for text in strings(part):
                self._text(text, path, facts)
        if self.strict:
            for key in unknown_keys(part, _KEYS.get(kind, part)):
                facts.fault("keys", f"{path}.{key}", _NO_EXTRA)

    def _image(self, image: object, path: str, facts: _OpenAIFacts) -> None:
        facts.images += 1
        url = image.get("url") if isinstance(image, dict) else None
        if not isinstance(url, str) or not url:
            facts.fault("media", path, "Missing required parameter: 'url'.")
            return
        facts.size += len(url)
        if url.startswith("data:"):
            head, comma, data = url.removeprefix("data:").partition(",")
            mime, _, coding = head.partition(";")
            if not comma or not coding.endswith("base64"):
                facts.fault("media", f"{path}.url", f"{_NO_IMAGE}, but got a value that is not base64-encoded.")
            elif mime not in IMAGE_TYPES:
                facts.fault("media", f"{path}.url", f"{_NO_IMAGE}, but got unsupported MIME type {mime!r}.")
            elif fault := data_fault(data):
                facts.fault("media", f"{path}.url", f"{_NO_IMAGE}, but got {fault}.")
        elif not url.startswith(("https://", "http://")):
            facts.fault("media", f"{path}.url", f"{_NO_IMAGE}, but got a value without the 'data:' prefix.")

    def _calls(self, calls: object, facts: _OpenAIFacts) -> None:
        if calls is None:
            return
        if not isinstance(calls, list):
            facts.fault("shape", ".tool_calls", "expected an array of objects")
            return
        if not calls:
            facts.fault("empty", ".tool_calls", _EMPTY_ARRAY)
        if len(calls) > _CALLS_MAX:
            problem = f"array too long. Expected an array with maximum length {_CALLS_MAX}, but got {len(calls)}."
            facts.fault("size", ".tool_calls", problem)
        for index, call in enumerate(calls):
            self._call(call, f".tool_calls[{index}]", facts)

    def _call(self, call: object, path: str, facts: _OpenAIFacts) -> None:
        kind = call.get("type") if isinstance(call, dict) else None
        what = call.get(kind) if isinstance(call, dict) and kind in ("function", "custom") else None
        if not isinstance(call, dict) or not isinstance(what, dict):
            facts.fault("shape", path, "expected an object with an id, the type 'function' or 'custom', and its field")
            return
        self._call_id(call.get("id"), f"{path}.id", facts)
        name = what.get("name")
        if not isinstance(name, str) or not TOOL_NAME(name):
            facts.fault("name", f"{path}.{kind}.name", _NO_MATCH)
        field_name = "arguments" if kind == "function" else "input"
        self._text(what.get(field_name), f"{path}.{kind}.{field_name}", facts)
        if kind == "function" and isinstance(what.get(field_name), str) and not is_json(what[field_name]):
            facts.fault("arguments", f"{path}.function.arguments", "tool call arguments must be valid JSON")
        if self.strict:
            for key in unknown_keys(call, _KEYS[str(kind)]):
                facts.fault("keys", f"{path}.{key}", _NO_EXTRA)
            for key in unknown_keys(what, ("name", field_name)):
                facts.fault("keys", f"{path}.{kind}.{key}", _NO_EXTRA)

    def _call_id(self, call_id: object, path: str, facts: _OpenAIFacts) -> None:
        if not isinstance(call_id, str) or not call_id:
            problem = "empty string. Expected a string with minimum length 1, but got an empty string instead."
            facts.fault("call-id", path, problem)
            return
        if call_id in facts.calls:
            facts.fault("call-id", path, f"Duplicate call ids submitted: {call_id!r}")
        facts.calls.append(call_id)
        if len(call_id) > _CALL_ID_MAX:
            problem = f"string too long. Expected a string with maximum length {_CALL_ID_MAX}, but got {len(call_id)}."
            facts.fault("call-id", path, problem)
        if not encodes(call_id):
            facts.fault("utf8", path, _NO_SURROGATES)


TOOLS_MAX: Final = 128
IMAGES_MAX: Final = 500


class OpenAIRules(_OpenAIReader):
    """The rules of chat completions."""

    list_name = "messages"
    bytes_max = 50_000_000

    def judge(self, messages: Sequence[_OpenAIFacts], body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the problems across messages and tools, with paths from the top."""
        yield from _pairs(messages)
        if (images := sum([facts.images for facts in messages])) > IMAGES_MAX:
            yield "media", "messages", f"too many images: {images} > {IMAGES_MAX}"
        if "system" in body:
            yield "system", "system", "Unknown parameter: 'system'."
        yield from _tools(body.get("tools"))


def _pairs(messages: Sequence[_OpenAIFacts]) -> Iterator[Fault]:
    """Yield problems of calls and answers: tool messages directly follow the message with the calls, one each, in any
    order.
    """
    open_calls: dict[str, int | None] = {}
    """The calls that tool messages may answer here, each with the position of its answer."""
    caller = 0
    for position, facts in enumerate(messages):
        if facts.role != "tool":
            if open_calls:
                yield from _unanswered(open_calls, caller)
            open_calls, caller = dict.fromkeys(facts.calls), position
            continue
        if (answer := facts.answer) is None:
            continue
        where = f"messages[{position}].tool_call_id"
        if answer not in open_calls:
            problem = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
            yield "pairing", where, f"{problem}: {answer!r}"
        elif (before := open_calls[answer]) is not None:
            problem = f"Duplicate value for 'tool_call_id' of {answer!r}"
            yield "pairing", where, f"{problem}, in messages[{before}] and messages[{position}]."
        else:
            open_calls[answer] = position
    yield from _unanswered(open_calls, caller)


def _unanswered(open_calls: Mapping[str, int | None], caller: int) -> Iterator[Fault]:
    if missing := [call_id for call_id, where in open_calls.items() if where is None]:
        problem = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}"
        )
        yield "pairing", f"messages[{caller}].tool_calls", problem


def _tools(tools: object) -> Iterator[Fault]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools", "tools", "expected an array of objects"
        return
    if not tools:
        yield "tools", "tools", _EMPTY_ARRAY
    if len(tools) > TOOLS_MAX:
        problem = f"array too long. Expected an array with maximum length {TOOLS_MAX}, but got {len(tools)}."
        yield "tools", "tools", problem
    for place, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        what = tool.get(kind) if isinstance(kind, str) else None
        if not isinstance(what, dict):
            yield "tools", f"tools[{place}]", "Missing required parameter: 'function'."
        elif not isinstance(what.get("name"), str) or not TOOL_NAME(what["name"]):
            yield "name", f"tools[{place}].{kind}.name", _NO_MATCH
