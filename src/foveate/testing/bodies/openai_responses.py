"""Rules of OpenAI's Responses API: single items, and the list of items with its tools.

Source: the reference of the Responses API, and error messages that users report, as of November 2026. Reasoning is
checked by its place: the provider also compares the ids of items that it stores, which a client cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .media import IMAGE_TYPES, data_fault
from .values import TOOL_NAME, Facts, Fault, encodes, is_json, strings, unknown_keys

__all__ = ["ResponsesRules"]

ID_MAX: Final = 64
STRING_MAX: Final = 10_485_760
TOOLS_MAX: Final = 128
IMAGES_MAX: Final = 500

ANSWERS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
"""Calls that need an answer, and the items that answer them."""
OF_MODEL: Final = frozenset(
    {"reasoning", "program", "program_output", "mcp_list_tools", "mcp_approval_request", "item_reference", "compaction"}
    | {"agent_message", "multi_agent_call_output"}
)
PARTS: Final[dict[str, frozenset[str]]] = {
    "user": frozenset({"input_text", "input_image", "input_file", "input_audio"}),
    "system": frozenset({"input_text", "input_image", "input_file"}),
    "developer": frozenset({"input_text", "input_image", "input_file"}),
    "assistant": frozenset({"output_text", "refusal"}),
    "": frozenset({"input_text", "input_image", "input_file"}),
}
"""Kinds of parts in the content of a role; "": of an answer."""
FOREIGN: Final = frozenset({"text", "image_url", "file", "tool_use", "tool_result", "image", "document", "thinking"})
KEYS: Final[dict[str, frozenset[str]]] = {
    "message": frozenset({"type", "role", "content", "id", "status", "phase", "agent"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
    "function_call": frozenset({"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"}),
    "function_call_output": frozenset({"type", "id", "call_id", "output", "status", "caller", "name", "namespace"}),
}
"""The keys that a strict reader accepts. It refuses no key of other items."""
OF_SERVERS: Final = KEYS["message"] | {"internal_chat_message_metadata_passthrough"}
"""The keys of a message that some server of this API accepts: the backend of ChatGPT takes the last one from Codex."""
NO_KEY: Final = "Missing required parameter: "


class ItemFacts(Facts):
    """The facts of an item that its neighbours need. The role is that of a message."""

    kind: str = ""
    id: str = ""
    call: str | None = None
    """The id of a call to answer."""
    ran: str = ""
    """The id of a call that the provider ran."""
    answer: str | None = None
    program: str = ""
    """The id of a program, or of the program whose output this is."""
    is_of_model: bool = False
    needs_next: bool = False
    """Whether the next item must be of the same response."""
    is_bare: bool = False
    """Whether the item is known by its id alone."""


class ResponsesRules:
    """The rules of the Responses API."""

    list_name = "input"
    bytes_max = 50_000_000

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def read(self, item: object) -> ItemFacts:
        """Return the facts and problems of one item."""
        facts = ItemFacts()
        if not isinstance(item, dict):
            facts.fault("shape", "", "expected an object")
            return facts
        kind = item.get("type", "message" if "role" in item else "item_reference" if "id" in item else None)
        if not isinstance(kind, str):
            facts.fault("shape", ".type", f"{NO_KEY}'type'.")
            return facts
        facts.kind = kind
        self._id(item, facts)
        match kind:
            case "message":
                self._message(item, facts)
            case "reasoning":
                self._reasoning(item, facts)
            case "compaction":
                facts.is_of_model = True
                if not isinstance(item.get("encrypted_content"), str):
                    facts.fault("shape", ".encrypted_content", f"{NO_KEY}'encrypted_content'.")
            case _ if kind in FOREIGN:
                facts.fault("block", ".type", f"Invalid value: {kind!r}.")
            case "mcp_approval_response":
                facts.answer = self._call_id(item.get("approval_request_id"), ".approval_request_id", facts)
                if not isinstance(item.get("approve"), bool):
                    facts.fault("content", ".approve", "expected a boolean")
            case _ if kind.endswith("_output") and kind not in OF_MODEL:
                self._answer(item, kind, facts)
            case _:
                facts.is_of_model = kind in OF_MODEL or kind.endswith("_call")
                if kind in ("program", "program_output"):
                    facts.program = self._call_id(item.get("call_id"), ".call_id", facts) or ""
                if kind in ANSWERS:
                    self._call(item, kind, facts)
                for text in strings(item):
                    self._text(text, "", facts)
        known = KEYS.get(kind, item) if self.strict else OF_SERVERS if kind == "message" else item
        for key in unknown_keys(item, known):
            facts.fault("keys", f".{key}", f"Unknown parameter: {key!r}.")
        return facts

    def _id(self, item: Mapping[str, Any], facts: ItemFacts) -> None:
        value = item.get("id")
        if value is None:
            return
        if not isinstance(value, str) or not value:
            facts.fault("shape", ".id", "expected a string with minimum length 1")
        elif len(value) > ID_MAX:
            problem = f"string too long. Expected a string with maximum length {ID_MAX}, but got {len(value)}."
            facts.fault("call-id", ".id", problem)
        else:
            facts.id = value

    def _message(self, item: Mapping[str, Any], facts: ItemFacts) -> None:
        role = item.get("role")
        if role not in ("user", "assistant", "system", "developer"):
            supported = "'assistant', 'system', 'developer', and 'user'"
            facts.fault("role", ".role", f"Invalid value: {role!r}. Supported values are: {supported}.")
            return
        facts.role, facts.is_of_model = role, role == "assistant"
        if item.get("tool_calls"):
            facts.fault("shape", ".tool_calls", "Unknown parameter: 'tool_calls'.")
        self._content(item.get("content"), role, ".content", facts)

    def _reasoning(self, item: Mapping[str, Any], facts: ItemFacts) -> None:
        facts.is_of_model = True
        encrypted = item.get("encrypted_content")
        facts.needs_next = bool(facts.id or encrypted)
        facts.is_bare = bool(facts.id and not encrypted)
        if not isinstance(item.get("summary"), list):
            facts.fault("thinking", ".summary", f"{NO_KEY}'summary'.")
        for text in strings(item):
            self._text(text, "", facts)

    def _call(self, item: Mapping[str, Any], kind: str, facts: ItemFacts) -> None:
        environment = item.get("environment")
        by_provider = (kind == "tool_search_call" and item.get("execution") == "server") or (
            kind == "shell_call"
            and isinstance(environment, dict)
            and str(environment.get("type")).startswith("container")
        )
        if by_provider:
            facts.ran = str(item.get("call_id"))
            return
        key = "id" if kind == "mcp_approval_request" else "call_id"
        facts.call = self._call_id(item.get(key), f".{key}", facts)
        if kind in ("function_call", "custom_tool_call"):
            name = item.get("name")
            if not isinstance(name, str) or not TOOL_NAME(name):
                pattern = "^[a-zA-Z0-9_-]+$"
                facts.fault("name", ".name", f"string does not match pattern. Expected the pattern {pattern!r}.")
        if kind == "function_call":
            arguments = item.get("arguments")
            if not isinstance(arguments, str):
                facts.fault("arguments", ".arguments", f"{NO_KEY}'arguments'.")
            elif not is_json(arguments):
                facts.fault("arguments", ".arguments", "function call arguments must be valid JSON")
        elif kind == "custom_tool_call" and not isinstance(item.get("input"), str):
            facts.fault("arguments", ".input", f"{NO_KEY}'input'.")
        elif kind in ("local_shell_call", "shell_call") and not isinstance(item.get("action"), dict):
            facts.fault("arguments", ".action", f"{NO_KEY}'action'.")
        elif kind == "apply_patch_call" and not isinstance(item.get("operation"), dict):
            facts.fault("arguments", ".operation", f"{NO_KEY}'operation'.")

    def _answer(self, item: Mapping[str, Any], kind: str, facts: ItemFacts) -> None:
        if kind == "tool_search_output" and (item.get("execution") == "server" or item.get("call_id") is None):
            facts.is_of_model = True
            return
        key = "id" if kind == "local_shell_call_output" and "call_id" not in item else "call_id"
        facts.answer = self._call_id(item.get(key), f".{key}", facts)
        output = item.get("output")
        match kind:
            case "computer_call_output":
                if isinstance(output, dict) and output.get("type") == "computer_screenshot":
                    self._image(output, ".output", facts)
                else:
                    facts.fault("content", ".output", "expected an object of the type 'computer_screenshot'")
            case "shell_call_output":
                if not isinstance(output, list) or not all(map(_is_shell_output, output)):
                    facts.fault("content", ".output", "expected an array of objects with stdout, stderr and outcome")
            case "apply_patch_call_output":
                if item.get("status") not in ("completed", "failed"):
                    facts.fault("content", ".status", "Supported values are: 'completed' and 'failed'.")
                if output is not None and not isinstance(output, str):
                    facts.fault("content", ".output", "expected a string")
            case "tool_search_output":
                if not isinstance(item.get("tools"), list):
                    facts.fault("content", ".tools", f"{NO_KEY}'tools'.")
            case "local_shell_call_output":
                if not isinstance(output, str):
                    facts.fault("content", ".output", "expected a string")
            case _:
                self._content(output, "", ".output", facts)
                return
        for text in strings(item):
            self._text(text, "", facts)

    def _content(self, content: object, role: str, path: str, facts: ItemFacts) -> None:
        if isinstance(content, str):
            self._text(content, path, facts)
            return
        if not isinstance(content, list):
            facts.fault("content", path, "expected one of a string or array of objects")
            return
        if not content and role:
            facts.fault("empty", path, "empty array. Expected an array with minimum length 1.")
        for index, part in enumerate(content):
            self._part(part, role, f"{path}[{index}]", facts)

    def _part(self, part: object, role: str, path: str, facts: ItemFacts) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            facts.fault("block", path, f"{NO_KEY}'type'.")
            return
        known = set().union(*PARTS.values()) | FOREIGN
        if kind in known and kind not in PARTS[role]:
            supported = ", ".join(map(repr, sorted(PARTS[role])))
            facts.fault("block", f"{path}.type", f"Invalid value: {kind!r}. Supported values are: {supported}.")
            return
        if kind in ("input_text", "output_text", "refusal"):
            key = "refusal" if kind == "refusal" else "text"
            self._text(part.get(key), f"{path}.{key}", facts)
        elif kind == "input_image":
            self._image(part, path, facts)
        else:
            if kind == "input_file" and not any(part.get(key) for key in ("file_data", "file_id", "file_url")):
                facts.fault("media", path, "Missing required parameter: one of 'file_data', 'file_id', 'file_url'.")
            elif kind == "input_file" and part.get("file_data") and "." not in str(part.get("filename", "")):
                facts.fault("media", path, "Expected context stuffing file type to be a supported format but got none.")
            for text in strings(part):
                self._text(text, path, facts, limit=False)

    def _image(self, part: Mapping[str, Any], path: str, facts: ItemFacts) -> None:
        facts.images += 1
        url = part.get("image_url")
        if url is None and isinstance(part.get("file_id"), str):
            return
        if not isinstance(url, str) or not url:
            facts.fault("media", path, "Missing required parameter: one of 'image_url', 'file_id'.")
            return
        facts.size += len(url)
        head, comma, data = url.partition(",")
        if not url.startswith("data:"):
            if not url.startswith(("https://", "http://")):
                facts.fault("media", f"{path}.image_url", "Expected a valid URL.")
        elif not comma or not head.endswith(";base64") or head[5:-7] not in IMAGE_TYPES:
            facts.fault("media", f"{path}.image_url", f"unsupported image data: {head[:60]!r}")
        elif fault := data_fault(data):
            facts.fault("media", f"{path}.image_url", f"The image data is not valid: {fault}.")

    def _text(self, text: object, path: str, facts: ItemFacts, *, limit: bool = True) -> None:
        if not isinstance(text, str):
            facts.fault("content", path, "expected a string")
            return
        facts.size += len(text)
        if not encodes(text):
            facts.fault("utf8", path, "We could not parse the JSON body of your request: surrogates not allowed")
        if limit and len(text) > STRING_MAX:
            facts.fault("size", path, f"string too long. Expected a string with maximum length {STRING_MAX}")

    def _call_id(self, call_id: object, path: str, facts: ItemFacts) -> str | None:
        if not isinstance(call_id, str) or not call_id:
            facts.fault("call-id", path, f"{NO_KEY}'call_id'.")
            return None
        if len(call_id) > ID_MAX:
            problem = f"string too long. Expected a string with maximum length {ID_MAX}, but got {len(call_id)}."
            facts.fault("call-id", path, problem)
        return call_id

    def judge(self, items: Sequence[ItemFacts], body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the problems across items and tools, with paths from the top."""
        # With these fields, the provider puts what it stores before the items.
        continues = bool(body.get("previous_response_id") or body.get("conversation"))
        yield from _pairs(items, continues=continues)
        yield from _programs(items, continues=continues)
        yield from _reasoning_places(items, is_stored=body.get("store") is not False)
        yield from _ids(items)
        for place, facts in enumerate(items[:-1]):
            if facts.kind == "compaction_trigger":
                yield "order", f"input[{place}]", "A compaction_trigger must be the final item."
        if (images := sum([facts.images for facts in items])) > IMAGES_MAX:
            yield "media", "input", f"too many images: {images} > {IMAGES_MAX}"
        if "system" in body:
            yield "system", "system", "Unknown parameter: 'system'."
        if "messages" in body:
            yield "messages", "messages", "Unsupported parameter: 'messages'. It has moved to 'input' in this API."
        if not isinstance(body.get("instructions", ""), str | None):
            yield "system", "instructions", "expected a string"
        yield from _tools(body.get("tools"))


def _is_shell_output(output: object) -> bool:
    return isinstance(output, dict) and all(
        isinstance(output.get(key), kind) for key, kind in (("stdout", str), ("stderr", str), ("outcome", dict))
    )


def _pairs(items: Sequence[ItemFacts], *, continues: bool) -> Iterator[Fault]:
    """Yield problems of calls and answers: an answer of the call's kind follows the call, once."""
    calls: dict[str, int] = {}
    answered: dict[str, int] = {}
    ran = {facts.ran for facts in items if facts.ran}
    for place, facts in enumerate(items):
        if facts.call is not None:
            if facts.call in calls:
                yield "call-id", f"input[{place}].call_id", f"Duplicate call ids submitted: {facts.call!r}"
            calls[facts.call] = place
        if facts.answer is None or facts.answer in ran:
            continue
        where, call = f"input[{place}]", calls.get(facts.answer)
        if call is None:
            if not continues:
                problem = f"No tool call found for function call output with call_id {facts.answer}."
                yield "pairing", where, problem
        elif ANSWERS.get(items[call].kind, f"{items[call].kind}_output") != facts.kind:
            yield "pairing", where, f"A {items[call].kind} is answered by a {facts.kind}: {facts.answer}."
        elif facts.answer in answered:
            yield (
                "pairing",
                where,
                f"Duplicate output for call {facts.answer}, as in input[{answered[facts.answer]}].",
            )
        else:
            answered[facts.answer] = place
    for call_id, place in calls.items():
        if call_id not in answered:
            yield "pairing", f"input[{place}]", f"No tool output found for function call {call_id}."


def _programs(items: Sequence[ItemFacts], *, continues: bool) -> Iterator[Fault]:
    """Yield problems of programs: their output follows, before the user speaks. A request may end before that."""
    waiting: dict[str, int] = {}
    for place, facts in enumerate(items):
        if facts.kind == "program":
            waiting[facts.program] = place
        elif facts.kind == "program_output" and waiting.pop(facts.program, None) is None and not continues:
            yield "pairing", f"input[{place}]", f"No program found for program output with call_id {facts.program}."
        elif facts.role in ("user", "system", "developer"):
            for program, start in waiting.items():
                yield "pairing", f"input[{start}]", f"No program output found for program {program}."
            waiting = {}


def _reasoning_places(items: Sequence[ItemFacts], *, is_stored: bool) -> Iterator[Fault]:
    for place, facts in enumerate(items):
        if facts.is_bare and not is_stored:
            problem = f"Item with id '{facts.id}' not found. Items are not persisted when `store` is set to false."
            yield "thinking", f"input[{place}]", problem
        following = items[place + 1] if place + 1 < len(items) else None
        if facts.needs_next and (following is None or not following.is_of_model):
            problem = f"Item '{facts.id}' of type 'reasoning' was provided without its required following item."
            yield "thinking", f"input[{place}]", problem


def _ids(items: Sequence[ItemFacts]) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, facts in enumerate(items):
        if not facts.id or facts.kind in ("item_reference", "local_shell_call_output"):
            continue
        if facts.id in seen:
            problem = f"Duplicate item found with id {facts.id}. Remove duplicate items from your input and try again."
            yield "call-id", f"input[{place}].id", problem
        seen.add(facts.id)


def _tools(tools: object) -> Iterator[Fault]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools", "tools", "expected an array of objects"
        return
    if len(tools) > TOOLS_MAX:
        yield "tools", "tools", f"array too long. Expected an array with maximum length {TOOLS_MAX}."
    for place, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if not isinstance(tool, dict) or not isinstance(kind, str):
            yield "tools", f"tools[{place}]", f"{NO_KEY}'tools[{place}].type'."
        elif kind in ("function", "custom", "namespace"):
            name = tool.get("name")
            if not isinstance(name, str):
                yield "tools", f"tools[{place}]", f"{NO_KEY}'tools[{place}].name'."
            elif not TOOL_NAME(name):
                yield "name", f"tools[{place}].name", "string does not match pattern '^[a-zA-Z0-9_-]+$'."
            if kind == "function" and not isinstance(tool.get("parameters", {}), dict | None):
                yield "tools", f"tools[{place}].parameters", "expected an object"
