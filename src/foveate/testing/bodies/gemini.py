"""Rules of Gemini's `generateContent` for contents, tools and the system instruction.

It takes the body of the REST API and the keyword arguments of the SDK, whose instruction and tools are in `config`. As
in the API, names of fields may be `inlineData` or `inline_data`, and base64 may have either alphabet. The rules that
depend on the model follow `model`, if the body names it, and are those of the newest models otherwise. Sources:
Google's reference, its guide "Thought signatures", and the texts of its errors in public reports, 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import field

from .media import data_fault
from .values import Facts, Fault, encodes, strings, unknown_keys

__all__ = ["GeminiFacts", "GeminiReader", "GeminiRules"]

TOOL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}").fullmatch
NO_TOOL: Final = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
)
OLD: Final = re.compile(r"gemini-[12](\.\d+)?-|gemma-").match
"""Models that take calls without a signature."""
PREFILLED: Final = re.compile(r"gemini-[12](\.\d+)?-|gemini-3(\.[01])?-|gemma-").match
"""Models that go on with an answer that was begun for them."""

DATA: Final = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode")
DATA_ALL: Final = frozenset({*DATA, "codeExecutionResult", "toolCall", "toolResponse"})
ABOUT: Final = frozenset(
    {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", "mediaProcessing"}
)
MIMES: Final = re.compile(r"(image/(png|jpeg|webp|heic|heif)|(audio|video|text)/[\w.+-]+|application/pdf)").fullmatch
MIMES_OF_RESULTS: Final = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
IMAGES_MAX: Final = 900
TOOLS_MAX: Final = 512

NO_DATA: Final = "required oneof field 'data' must have one initialized field"
CALL_ORDER: Final = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
ANSWER_ORDER: Final = "Please ensure that function response turn comes immediately after a function call turn."
ANSWER_COUNT: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
NO_SIGNATURE: Final = "Function call is missing a thought_signature in functionCall parts."
NO_SURROGATES: Final = "Invalid JSON payload received: a string is not valid UTF-8"

SERVED: Final = {"toolResponse": "toolCall", "codeExecutionResult": "executableCode"}
"""Results of tools that Google runs, and their uses."""
SERVED_ORDER: Final = "has no {0} before it. Return all parts of the model's content."

Call = tuple[str, str | None]
"""The name of a function, and the id of its call."""


def named(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields under the names of the REST API."""
    if not any("_" in str(key) for key in value):
        return dict(value)
    return {re.sub("_([a-z])", lambda found: found[1].upper(), str(key)): item for key, item in value.items()}


class GeminiFacts(Facts):
    """The facts of a content: its calls and responses, and whether its first call has a signature."""

    calls: list[Call] = field(default_factory=list)
    answers: list[Call] = field(default_factory=list)
    served: list[Call] = field(default_factory=list)
    """Uses and results of tools that Google runs, in order: the kind of the part, and its id."""
    speaks: bool = False
    """Whether it has a part that is no function response."""
    is_signed: bool = False


class GeminiReader:
    """Reads contents one by one."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def read(self, content: object) -> GeminiFacts:
        """Return the facts and problems of one content."""
        facts = GeminiFacts()
        if not isinstance(content, dict):
            facts.fault("shape", "", "expected an object")
            return facts
        role, parts = content.get("role", "user"), content.get("parts")
        if role not in ("user", "model"):
            facts.fault("role", ".role", "Please use a valid role: user, model.")
            return facts
        facts.role = role
        if not isinstance(parts, list) or not parts:
            facts.fault("empty", ".parts", "contents.parts must not be empty.")
            return facts
        for index, part in enumerate(parts):
            self._part(part, f".parts[{index}]", facts)
        if facts.answers and facts.speaks:
            facts.fault("order", ".parts", "function responses share a content with other parts")
        for each, where in ((facts.calls, "functionCall"), (facts.answers, "functionResponse")):
            ids = [own for _, own in each if own]
            if len(set(ids)) < len(ids):
                facts.fault("call-id", ".parts", f"{where} ids are not unique: {', '.join(ids)}")
        for key in unknown_keys(content, ("role", "parts")):
            facts.fault("keys", f".{key}", f"Unknown name {key!r}: Cannot find field.")
        return facts

    def _part(self, part: object, path: str, facts: GeminiFacts) -> None:
        if not isinstance(part, dict):
            facts.fault("shape", path, "expected an object")
            return
        part = named(part)
        kinds = [key for key in part if key in DATA_ALL]
        if not kinds and not part.keys() - ABOUT:
            facts.fault("block", path, NO_DATA)
            return
        if len(kinds) > 1:
            facts.fault("block", path, f"oneof field 'data' is already set. Cannot set {kinds[1]!r}.")
            return
        for text in strings({key: value for key, value in part.items() if not isinstance(value, bytes)}):
            facts.size += len(text)
            if not encodes(text):
                facts.fault("utf8", path, NO_SURROGATES)
        kind = kinds[0] if kinds else ""
        facts.speaks = facts.speaks or kind != "functionResponse"
        if part.get("thought") is True and facts.role != "model":
            facts.fault("thinking", path, "only a model's content has thoughts")
        signature = part.get("thoughtSignature")
        if signature is not None and not (isinstance(signature, str | bytes) and signature):
            facts.fault("thinking", f"{path}.thoughtSignature", "expected base64-encoded bytes")
        match kind:
            case "text":
                self._text(part["text"], bool(signature), f"{path}.text", facts)
            case "inlineData" | "fileData":
                self._media(part[kind], kind, f"{path}.{kind}", facts, in_result=False)
            case "functionCall":
                self._call(part[kind], bool(signature), f"{path}.{kind}", facts)
            case "functionResponse":
                self._answer(part[kind], f"{path}.{kind}", facts)
            case "toolCall" | "toolResponse" | "executableCode" | "codeExecutionResult":
                self._served(part[kind], kind, f"{path}.{kind}", facts)
        if self.strict:
            for key in unknown_keys(part, DATA_ALL | ABOUT):
                facts.fault("keys", f"{path}.{key}", f"Unknown name {key!r}: Cannot find field.")

    def _text(self, text: object, is_signed: bool, path: str, facts: GeminiFacts) -> None:
        if not isinstance(text, str):
            facts.fault("content", path, "expected a string")
        elif not text and not is_signed:
            facts.fault("empty", path, "Model input cannot be empty.")

    def _media(self, inner: object, kind: str, path: str, facts: GeminiFacts, *, in_result: bool) -> None:
        if not isinstance(inner, dict):
            facts.fault("shape", path, "expected an object")
            return
        inner = named(inner)
        mime = inner.get("mimeType")
        facts.images += not isinstance(mime, str) or mime.startswith("image/")
        if kind == "fileData":
            if not isinstance(inner.get("fileUri"), str) or not inner["fileUri"]:
                facts.fault("media", path, "fileUri is required")
            return
        if not isinstance(mime, str) or not (mime in MIMES_OF_RESULTS if in_result else MIMES(mime)):
            facts.fault("media", f"{path}.mimeType", f"Unsupported MIME type: {mime}")
        data = inner.get("data")
        if isinstance(data, str):
            data = data.replace("-", "+").replace("_", "/")
        if not (isinstance(data, bytes) and data) and (fault := data_fault(data)):
            facts.fault("media", f"{path}.data", fault)

    def _call(self, call: object, is_signed: bool, path: str, facts: GeminiFacts) -> None:
        if facts.role != "model":
            facts.fault("block", path, "a function call in a content of the user")
            return
        own = self._named(call, path, facts)
        if own is None or not isinstance(call, dict):
            return
        if not facts.calls:
            facts.is_signed = is_signed
        facts.calls.append(own)
        if not isinstance(call.get("args", {}), dict):
            facts.fault("arguments", f"{path}.args", "expected an object")
        if named(call).keys() & {"partialArgs", "willContinue"}:
            facts.fault("arguments", path, "a call that is not complete")

    def _answer(self, answer: object, path: str, facts: GeminiFacts) -> None:
        if facts.role == "model":
            facts.fault("block", path, "a function response in a content of the model")
            return
        own = self._named(answer, path, facts)
        if own is None or not isinstance(answer, dict):
            return
        facts.answers.append(own)
        if not isinstance(answer.get("response"), dict):
            facts.fault("content", f"{path}.response", "expected an object")
        parts = answer.get("parts", [])
        if not isinstance(parts, list):
            facts.fault("shape", f"{path}.parts", "expected a list")
            return
        for index, part in enumerate(parts):
            inner = named(part).get("inlineData") if isinstance(part, dict) else None
            if inner is not None:
                self._media(inner, "inlineData", f"{path}.parts[{index}].inlineData", facts, in_result=True)
            elif not isinstance(part, dict) or not part or "text" in part:
                facts.fault("block", f"{path}.parts[{index}]", NO_DATA)

    def _served(self, inner: object, kind: str, path: str, facts: GeminiFacts) -> None:
        if facts.role != "model":
            facts.fault("block", path, f"{kind} in a content of the user")
        own = inner.get("id") if isinstance(inner, dict) else None
        facts.served.append((kind, own if isinstance(own, str) and own else None))

    def _named(self, inner: object, path: str, facts: GeminiFacts) -> Call | None:
        """Return the name and the id of a call or a response."""
        if not isinstance(inner, dict):
            facts.fault("shape", path, "expected an object")
            return None
        name, own = inner.get("name"), inner.get("id")
        if not isinstance(name, str) or not TOOL(name):
            facts.fault("name", f"{path}.name", NO_TOOL)
            name = str(name)
        if own is not None and not (isinstance(own, str) and own):
            facts.fault("call-id", f"{path}.id", "expected a string that is not empty")
            own = None
        return name, own


class GeminiRules(GeminiReader):
    """The rules of `generateContent`."""

    list_name = "contents"
    bytes_max = 20_000_000

    def judge(self, contents: Sequence[GeminiFacts], body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the problems across contents, instruction and tools, with paths from the top."""
        config = body.get("config")
        settings: Mapping[str, Any] = config if isinstance(config, dict) else body
        model = str(body.get("model") or "").rpartition("/")[2]
        if contents[0].role == "model":
            yield "first", "contents[0]", "Please ensure that the first content is the user's."
        yield from _turns(contents)
        yield from _served(contents)
        if not OLD(model):
            yield from _signatures(contents)
        if contents[-1].role == "model" and not PREFILLED(model):
            last = f"contents[{len(contents) - 1}]"
            yield "prefill", last, "Requests ending with a model turn are not supported."
        if (images := sum([facts.images for facts in contents])) > IMAGES_MAX:
            yield "media", "contents", f"too many images: {images} > {IMAGES_MAX}"
        yield from _instruction(settings.get("systemInstruction", settings.get("system_instruction")))
        yield from _tools(settings.get("tools"))


def _turns(contents: Sequence[GeminiFacts]) -> Iterator[Fault]:
    """Yield problems of calls and responses: all the responses to the calls of a content are the next content."""
    for place, facts in enumerate(contents):
        before = contents[place - 1] if place else GeminiFacts()
        after = contents[place + 1] if place + 1 < len(contents) else GeminiFacts()
        where = f"contents[{place}]"
        if facts.calls:
            if before.role != "user":
                yield "order", where, CALL_ORDER
            if len(after.answers) != len(facts.calls):
                yield "pairing", where, ANSWER_COUNT
            else:
                for number, (call, answer) in enumerate(zip(facts.calls, after.answers, strict=True)):
                    ids = {call[1], answer[1]} - {None}
                    if call[0] != answer[0] or len(ids) > 1:
                        problem = f"function response {number} is for {answer[0]}, and call {number} for {call[0]}"
                        yield "pairing", f"contents[{place + 1}]", problem
        if facts.answers and not before.calls:
            yield "pairing", where, ANSWER_ORDER


def _served(contents: Sequence[GeminiFacts]) -> Iterator[Fault]:
    """Yield uses and results of Google's own tools that are alone: a pair is in consecutive contents of the model."""
    waiting: list[Call] = []
    for place, facts in enumerate(contents):
        if facts.role == "user":
            yield from _alone(waiting, place)
            waiting = []
        for kind, own in facts.served:
            use = (SERVED.get(kind, kind), own)
            if kind not in SERVED:
                waiting.append(use)
            elif use in waiting:
                waiting.remove(use)
            else:
                yield "pairing", f"contents[{place}]", f"{kind} {own or ''} " + SERVED_ORDER.format(SERVED[kind])
    yield from _alone(waiting, len(contents))


def _alone(waiting: Sequence[Call], place: int) -> Iterator[Fault]:
    for kind, own in waiting:
        yield "pairing", f"contents[{place - 1}]", f"{kind} {own or ''} has no result in its turn."


def _signatures(contents: Sequence[GeminiFacts]) -> Iterator[Fault]:
    """Yield the calls without a signature since the user spoke last."""
    for place in range(len(contents) - 1, -1, -1):
        facts = contents[place]
        if facts.role == "user" and facts.speaks:
            return
        if facts.calls and not facts.is_signed:
            yield "thinking", f"contents[{place}]", f"{NO_SIGNATURE} Function call {facts.calls[0][0]}, {place}."


def _instruction(instruction: object) -> Iterator[Fault]:
    if instruction is None or isinstance(instruction, str):
        return
    parts = instruction.get("parts") if isinstance(instruction, dict) else None
    if not isinstance(parts, list) or not parts:
        yield "system", "systemInstruction", "expected a content with parts"
        return
    for place, part in enumerate(parts):
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str) or not text:
            yield "system", f"systemInstruction.parts[{place}]", "expected text that is not empty"
        elif not encodes(text):
            yield "utf8", f"systemInstruction.parts[{place}]", NO_SURROGATES


def _tools(tools: object) -> Iterator[Fault]:
    if tools is None:
        return
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and tool for tool in tools):
        yield "tools", "tools", "expected a list of objects"
        return
    names: list[str] = []
    for place, tool in enumerate(tools):
        for number, declared in enumerate(named(tool).get("functionDeclarations") or ()):
            where = f"tools[{place}].functionDeclarations[{number}]"
            function = named(declared) if isinstance(declared, dict) else {}
            name = function.get("name")
            if not isinstance(name, str) or not TOOL(name):
                yield "name", f"{where}.name", NO_TOOL
                continue
            if name in names:
                yield "tools", where, f"Duplicate function declaration found: {name}"
            names.append(name)
            if {"parameters", "parametersJsonSchema"} <= function.keys():
                yield "tools", where, "parameters and parametersJsonSchema are mutually exclusive."
        if "name" in tool or "function" in tool:
            yield "tools", f"tools[{place}]", "Unknown name: Cannot find field."
    if len(names) > TOOLS_MAX:
        yield "tools", "tools", f"at most {TOOLS_MAX} function declarations, not {len(names)}"
