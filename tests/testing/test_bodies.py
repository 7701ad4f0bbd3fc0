"""The checker of request bodies: each rule refuses its planted violation and accepts the legal form."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from foveate.errors import BadSetting
from foveate.testing.bodies import RULES, BodyChecker, Refusal, check_body

Body = dict[str, Any]
Change = Callable[[Body], object]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HALF = "half a pair: \ud83d"


PDF_DATA = "data:application/pdf;base64,JVBERi0xLjQK"


def png(width: int, height: int) -> str:
    """Return the first bytes of a PNG of this size. The checker reads no more."""
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + size + b"\x08\x06\x00\x00\x00" * 3).decode()


def image(data: str = PNG, mime: str = "image/png") -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def anthropic() -> Body:
    """Return a legal request of the Messages API: thinking, two calls, an image in a result, a user at the end."""
    return {
        "model": "claude-haiku-4-5",
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}, {"name": "bash", "input_schema": {}}],
        "messages": [
            {"role": "user", "content": "Why does it fail?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "it"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "exit 1", "is_error": True},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "x"}, image()],
                    },
                    {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It is the token."}]},
            {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
        ],
    }


def gemini() -> Body:
    """Return a legal request of `generateContent`: a thought, calls with and without an id, an image in a response."""
    shot = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "look"}, {"name": "bash"}]}, {"googleSearch": {}}],
        "contents": [
            {"role": "user", "parts": [{"text": "Why?"}, copy.deepcopy(shot)]},
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {"text": "Let me see."},
                    {"functionCall": {"id": "call-1", "name": "look", "args": {}}, "thoughtSignature": "c2lnbmVk"},
                    {"functionCall": {"name": "bash", "args": {"at": "it"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "call-1", "name": "look", "response": {"output": ""}, "parts": [shot]}},
                    {"functionResponse": {"name": "bash", "response": {"error": "exit 1"}}},
                ],
            },
            {"role": "model", "parts": [{"text": "It is the token."}, {"text": "", "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [{"text": "Fix it."}]},
        ],
    }


def openai() -> Body:
    """Return a legal request of chat completions: two calls answered in another order, an image of the user."""
    return {
        "model": "gpt-5",
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Why?"}, picture(f"data:image/png;base64,{PNG}")]},
            {"role": "assistant", "content": None, "tool_calls": [asked("a", at="it"), asked("b")]},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}]},
            {"role": "assistant", "content": "It is the token."},
            {"role": "user", "content": "Fix it.", "name": "ann"},
        ],
    }


def asked(call_id: str, **arguments: object) -> Body:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": json.dumps(arguments)}}


def picture(url: str) -> Body:
    return {"type": "image_url", "image_url": {"url": url}}


BODIES: dict[str, Callable[[], Body]] = {"anthropic": anthropic, "openai": openai, "gemini": gemini}


def put(*path: Any) -> Change:
    """Return a change that puts the last item of `path` at the place of the rest."""

    def change(body: Body) -> None:
        target: Any = body
        for step in path[:-2]:
            target = target[step]
        target[path[-2]] = path[-1]

    return change


def drop(*path: Any) -> Change:
    """Return a change that removes the value at `path`."""

    def change(body: Body) -> None:
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]

    return change


def add(*path: Any) -> Change:
    """Return a change that inserts the last item of `path` before the place of the rest."""

    def change(body: Body) -> None:
        target: Any = body
        for step in path[:-2]:
            target = target[step]
        target.insert(path[-2], path[-1])

    return change


def both(*changes: Change) -> Change:
    return lambda body: [change(body) for change in changes]


M = "messages"
C = "content"
SAY = {"type": "text", "text": "And?"}
USE = {"type": "tool_use", "id": "toolu_9", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "ok"}
MARK = {"type": "ephemeral"}
SERVED = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
THINK = {"type": "thinking", "thinking": "", "signature": "c2ln"}
SOON = {"role": "system", "content": "soon", "clear_at": "next_user_message"}
SUMMED = {"type": "compaction", "content": "so far"}


def instructed(place: int, message: Body) -> Change:
    """Return a change that inserts a system message, for a model that takes one."""
    return both(put("model", "claude-opus-5-5"), add(M, place, message))


ANTHROPIC: list[tuple[str, str, Change]] = [
    ("role", "messages[0].role", put(M, 0, "role", "system")),
    ("role", "messages[0].role", put(M, 0, "role", "tool")),
    ("first", "messages[0]", drop(M, 0)),
    ("shape", "messages[3]", put(M, 3, "hello")),
    ("content", "messages[0].content", put(M, 0, C, None)),
    ("content", "messages[4].content[0].text", put(M, 4, C, 0, "text", 7)),
    ("content", "messages[2].content[0].is_error", put(M, 2, C, 0, "is_error", "yes")),
    ("content", "messages[2].content[1].content", put(M, 2, C, 1, C, {"a": 1})),
    ("empty", "messages[0].content", put(M, 0, C, "")),
    ("empty", "messages[0].content", put(M, 0, C, [])),
    ("empty", "messages[0].content", put(M, 0, C, " \n")),
    ("empty", "messages[4].content[0].text", put(M, 4, C, 0, "text", "")),
    ("empty", "messages[4].content[0].text", put(M, 4, C, 0, "text", "\t")),
    ("empty", "messages[2].content[1].content[0].text", put(M, 2, C, 1, C, 0, "text", "")),
    ("empty", "messages[2].content[0].content", put(M, 2, C, 0, C, "")),
    ("empty", "system[0].text", put("system", 0, "text", "")),
    ("block", "messages[0].content[0]", put(M, 0, C, [USE, SAY])),
    ("block", "messages[3].content[0]", add(M, 3, C, 0, image())),
    ("block", "messages[3].content[0]", put(M, 3, C, 0, "words")),
    ("block", "messages[3].content[0]", put(M, 3, C, 0, {"type": "refusal", "refusal": "no"})),
    ("block", "messages[4].content[1]", add(M, 4, C, 1, picture("https://example.com/a.png"))),
    ("block", "messages[2].content[1].content[0]", put(M, 2, C, 1, C, 0, picture("https://example.com/a.png"))),
    ("block", "messages[2].content[1].content[0]", put(M, 2, C, 1, C, 0, None)),
    ("block", "messages[2].content[0].content[0]", put(M, 2, C, 0, C, [image()])),
    ("pairing", "messages[1]", drop(M, 2, C, 0)),
    ("pairing", "messages[1]", put(M, 2, C, "Well?")),
    ("pairing", "messages[1]", both(add(M, 2, anthropic()[M][4]), add(M, 3, anthropic()[M][3]))),
    ("pairing", "messages[4]", add(M, 4, {"role": "assistant", "content": [USE]})),
    ("pairing", "messages[4].content[0]", add(M, 4, C, 0, RESULT)),
    ("pairing", "messages[4].content[0]", add(M, 4, C, 0, {**RESULT, "tool_use_id": "toolu_1"})),
    ("pairing", "messages[2].content[2]", add(M, 2, C, 2, {**RESULT, "tool_use_id": "toolu_1"})),
    ("pairing", "messages[3].content[0]", add(M, 3, C, 0, SERVED)),
    ("order", "messages[2].content[1]", add(M, 2, C, 0, SAY)),
    ("order", "messages[3].content[0]", add(M, 2, {"role": "user", "content": "Well?"})),
    ("order", "messages[1].content[4]", add(M, 1, C, 4, SAY)),
    ("order", "messages[1].content[3]", add(M, 1, C, 3, THINK)),
    ("order", "messages[2].content[0]", add(M, 2, {"role": "assistant", "content": [SAY]})),
    ("call-id", "messages[1].content[3].id", put(M, 1, C, 2, "id", "toolu_2")),
    ("call-id", "messages[3].content[1].id", both(add(M, 3, C, 1, {**USE, "id": "toolu_1"}), add(M, 4, C, 0, RESULT))),
    ("call-id", "messages[1].content[2].id", put(M, 1, C, 2, "id", "call#1")),
    ("call-id", "messages[2].content[1].tool_use_id", put(M, 2, C, 1, "tool_use_id", "")),
    ("name", "messages[1].content[2].name", put(M, 1, C, 2, "name", "")),
    ("name", "messages[1].content[2].name", put(M, 1, C, 2, "name", "n" * 201)),
    ("name", "tools[0].name", put("tools", 0, "name", "a tool")),
    ("arguments", "messages[1].content[2].input", put(M, 1, C, 2, "input", '{"at":"i')),
    ("arguments", "messages[1].content[2].input", put(M, 1, C, 2, "input", {"at": HALF})),
    ("utf8", "messages[0].content", put(M, 0, C, HALF)),
    ("utf8", "messages[2].content[0].content", put(M, 2, C, 0, C, HALF)),
    ("utf8", "messages[1].content[0].thinking", put(M, 1, C, 0, "thinking", HALF)),
    ("utf8", "messages[3].content[0]", add(M, 3, C, 0, {"type": "container_upload", "file_id": HALF})),
    ("utf8", "system", put("system", HALF)),
    ("media", "messages[2].content[1].content[1].source", put(M, 2, C, 1, C, 1, image(mime="image/tiff"))),
    ("media", "messages[2].content[1].content[1].source", put(M, 2, C, 1, C, 1, image("not base64!"))),
    ("media", "messages[2].content[1].content[1].source", put(M, 2, C, 1, C, 1, image(PNG[:-1]))),
    ("media", "messages[2].content[1].content[1].source", put(M, 2, C, 1, C, 1, image(mime="image/jpeg"))),
    ("media", "messages[2].content[1].content[1].source", put(M, 2, C, 1, C, 1, image(png(8_001, 5)))),
    ("media", "messages[2].content[1].content[1].source", put(M, 2, C, 1, C, 1, image("A" * 10_485_764))),
    ("media", "messages[2].content[1].content[1].source", drop(M, 2, C, 1, C, 1, "source")),
    (
        "media",
        "messages[4].content[1].source",
        add(M, 4, C, 1, {"type": "image", "source": {"type": "url", "url": "x"}}),
    ),
    ("media", "messages[4].content[1].source", add(M, 4, C, 1, {**image("JVBERi0xLjQK"), "type": "document"})),
    ("media", "messages[4].content[20].source", put(M, 4, C, [image()] * 20 + [image(png(2_001, 5))])),
    ("media", "messages", put(M, 4, C, [image()] * 100)),
    ("thinking", "messages[1].content[0].signature", put(M, 1, C, 0, "signature", "")),
    ("thinking", "messages[1].content[0].signature", drop(M, 1, C, 0, "signature")),
    ("thinking", "messages[1].content[0].data", put(M, 1, C, 0, {"type": "redacted_thinking"})),
    ("thinking", "messages[3].content[1]", add(M, 3, C, 1, THINK)),
    (
        "thinking",
        "messages[1].content[0]",
        both(put("thinking", {"type": "enabled"}), drop(M, 1, C, 0), drop(M, slice(3, 5)), drop(M, 2, C, 2)),
    ),
    (
        "thinking",
        "messages[3].content[0]",
        both(put("thinking", {"type": "disabled"}), add(M, 3, C, 0, THINK), drop(M, 4)),
    ),
    ("fallback", "messages[3].content[0]", put(M, 3, C, [THINK, {"type": "fallback"}, {"type": "text", "text": "x"}])),
    ("trailing", "messages[3].content", both(put(M, 3, C, 0, "text", "It is "), drop(M, 4))),
    ("trailing", "messages[3].content", both(put(M, 3, C, "It is\n"), drop(M, 4))),
    ("prefill", "messages[3]", both(put("model", "claude-opus-4-6"), drop(M, 4))),
    ("cache", "messages[1].content[0].cache_control", put(M, 1, C, 0, "cache_control", MARK)),
    ("cache", "messages[4].content[0].cache_control", put(M, 4, C, 0, "cache_control", {"type": "for ever"})),
    ("cache", "messages[4].content[0]", put(M, 4, C, 0, "cache_control", {"type": "ephemeral", "ttl": "1h"})),
    (
        "cache",
        "messages[4].content[0]",
        both(*(put(*path, "cache_control", MARK) for path in (("tools", 0), (M, 3, C, 0), (M, 4, C, 0)))),
    ),
    (
        "cache",
        "messages[2].content[2]",
        both(
            put("cache_control", MARK), put("tools", 0, "cache_control", MARK), put("tools", 1, "cache_control", MARK)
        ),
    ),
    ("system", "system", put("system", {"text": "Be brief."})),
    ("system", "system[0]", put("system", 0, image())),
    ("keys", "messages[0].reasoning_content", put(M, 0, "reasoning_content", "hm")),
    ("keys", "messages[0].clear_at", put(M, 0, "clear_at", "never")),
    ("keys", "messages[3].output_config", put(M, 3, "output_config", {"effort": "low"})),
    ("role", "messages[1].role", add(M, 1, {"role": "system", "content": "Be brief."})),
    ("system", "messages[0]", instructed(0, {"role": "system", "content": "Be brief."})),
    ("system", "messages[4]", instructed(4, {"role": "system", "content": "Be brief."})),
    ("system", "messages[5].content[0]", instructed(5, {"role": "system", "content": [image()]})),
    ("empty", "messages[5].content", instructed(5, {"role": "system", "content": []})),
    ("system", "messages[5].clear_at", instructed(5, {**SOON, "clear_at": "soon"})),
    ("system", "messages[5].output_config", instructed(5, {**SOON, "output_config": {"effort": "low"}})),
    ("system", "messages[5].output_config", instructed(5, {"role": "system", "content": [], "output_config": "low"})),
    ("system", "messages[5].content", instructed(5, {**SOON, "content": [{"type": "tool_removal", "tool": {}}]})),
    (
        "cache",
        "messages[5].content[0].cache_control",
        instructed(5, {**SOON, "content": [{**SAY, "cache_control": MARK}]}),
    ),
    ("compaction", "messages[3].content[0].content", add(M, 3, C, 0, {**SUMMED, "content": ""})),
    ("compaction", "messages[3].content[0]", add(M, 3, C, 0, {**SUMMED, "signature": "c2ln"})),
    (
        "compaction",
        "messages[0].content[0]",
        put(M, [{"role": "user", "content": [{**SUMMED, "signature": "c2ln"}, SUMMED, SAY]}]),
    ),
    ("tools", "tools", put("tools", {})),
    ("tools", "tools[0]", put("tools", 0, "look")),
    ("tools", "tools[0].input_schema", drop("tools", 0, "input_schema")),
    ("tools", "tools[1].name", put("tools", 1, "name", "look")),
    ("messages", "messages", put(M, [])),
    ("messages", "messages", drop(M)),
    ("size", "", put(M, 0, C, "long " * 6_500_000)),
]

OPENAI: list[tuple[str, str, Change]] = [
    ("role", "messages[0].role", put(M, 0, "role", "model")),
    ("role", "messages[0].role", drop(M, 0, "role")),
    ("shape", "messages[0]", put(M, 0, "hello")),
    ("shape", "messages[2].tool_calls", put(M, 2, "tool_calls", {})),
    ("shape", "messages[2].tool_calls[0]", put(M, 2, "tool_calls", 0, "type", "magic")),
    ("content", "messages[5].content", put(M, 5, C, None)),
    ("content", "messages[6].content", put(M, 6, C, None)),
    ("content", "messages[4].content", drop(M, 4, C)),
    ("content", "messages[6].content", put(M, 6, C, {"text": "hi"})),
    (
        "content",
        "messages[2].tool_calls[0].function.arguments",
        put(M, 2, "tool_calls", 0, "function", "arguments", {}),
    ),
    ("empty", "messages[6].content", put(M, 6, C, [])),
    ("empty", "messages[5].tool_calls", put(M, 5, "tool_calls", [])),
    ("block", "messages[1].content[0]", put(M, 1, C, 0, "words")),
    ("block", "messages[1].content[0]", put(M, 1, C, 0, {"type": "tool_use", "id": "a"})),
    ("block", "messages[0].content[0]", put(M, 0, C, [picture("https://example.com/a.png")])),
    ("block", "messages[4].content[1]", add(M, 4, C, 1, picture("https://example.com/a.png"))),
    ("block", "messages[4].content[0]", put(M, 4, C, 0, {"type": "future", "x": 1})),
    ("block", "messages[5].content[0]", put(M, 5, C, [{"type": "file", "file": {"file_id": "f"}}])),
    ("pairing", "messages[2].tool_calls", drop(M, 3)),
    ("pairing", "messages[2].tool_calls", drop(M, slice(3, 7))),
    ("pairing", "messages[2].tool_calls", add(M, 3, {"role": "user", "content": "Well?"})),
    ("pairing", "messages[5].tool_call_id", add(M, 5, {"role": "tool", "tool_call_id": "a", "content": "x"})),
    ("pairing", "messages[6].tool_call_id", add(M, 6, {"role": "tool", "tool_call_id": "a", "content": "x"})),
    ("pairing", "messages[3].tool_call_id", put(M, 3, "tool_call_id", "c")),
    ("call-id", "messages[3].tool_call_id", drop(M, 3, "tool_call_id")),
    ("call-id", "messages[2].tool_calls[0].id", put(M, 2, "tool_calls", 0, "id", "")),
    ("call-id", "messages[2].tool_calls[0].id", put(M, 2, "tool_calls", 0, "id", "x" * 65)),
    ("call-id", "messages[2].tool_calls[2].id", add(M, 2, "tool_calls", 2, asked("a"))),
    (
        "name",
        "messages[2].tool_calls[0].function.name",
        put(M, 2, "tool_calls", 0, "function", "name", "functions.look"),
    ),
    ("name", "messages[2].tool_calls[0].function.name", put(M, 2, "tool_calls", 0, "function", "name", "")),
    ("name", "messages[6].name", put(M, 6, "name", "ann smith")),
    ("name", "tools[0].function.name", put("tools", 0, "function", "name", "look!")),
    (
        "arguments",
        "messages[2].tool_calls[0].function.arguments",
        put(M, 2, "tool_calls", 0, "function", "arguments", '{"at":"i'),
    ),
    (
        "arguments",
        "messages[2].tool_calls[0].function.arguments",
        put(M, 2, "tool_calls", 0, "function", "arguments", ""),
    ),
    (
        "arguments",
        "messages[2].tool_calls[0].function.arguments",
        put(M, 2, "tool_calls", 0, "function", "arguments", '{"n":NaN}'),
    ),
    ("utf8", "messages[6].content", put(M, 6, C, HALF)),
    (
        "utf8",
        "messages[1].content[1]",
        put(M, 1, C, 1, {"type": "file", "file": {"filename": HALF, "file_data": PDF_DATA}}),
    ),
    ("media", "messages[1].content[1].image_url.url", put(M, 1, C, 1, picture(f"data:image/tiff;base64,{PNG}"))),
    ("media", "messages[1].content[1].image_url.url", put(M, 1, C, 1, picture("data:image/png;base64,???"))),
    ("media", "messages[1].content[1].image_url.url", put(M, 1, C, 1, picture(f"data:image/png,{PNG}"))),
    ("media", "messages[1].content[1].image_url.url", put(M, 1, C, 1, picture(PNG))),
    ("media", "messages[1].content[1].image_url", put(M, 1, C, 1, "image_url", PNG)),
    ("media", "messages", put(M, 1, C, [picture("https://example.com/a.png")] * 501)),
    ("media", "messages[1].content[1].file", put(M, 1, C, 1, {"type": "file", "file": {"file_data": PDF_DATA}})),
    (
        "media",
        "messages[1].content[1].input_audio.format",
        put(M, 1, C, 1, {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mpeg"}}),
    ),
    ("system", "system", put("system", "Be brief.")),
    ("tools", "tools", put("tools", [])),
    ("tools", "tools", put("tools", {})),
    ("tools", "tools", put("tools", openai()["tools"] * 129)),
    ("tools", "tools[0]", put("tools", 0, {"name": "look", "input_schema": {}})),
    ("messages", "messages", put(M, [])),
    ("messages", "messages", put(M, "hello")),
    ("keys", "messages[1].timestamp", put(M, 1, "timestamp", 7)),
    ("size", "messages[6].content", put(M, 6, C, "x" * 10_485_761)),
    (
        "size",
        "messages[2].tool_calls",
        put(M, 2, "tool_calls", [asked("a"), asked("b")] + [asked(f"c{i}") for i in range(127)]),
    ),
]

K = "contents"
P = "parts"
SIGNED = {"functionCall": {"name": "bash", "args": {}}, "thoughtSignature": "c2ln"}
SHOT = {"inlineData": {"mimeType": "image/png", "data": PNG}}

GEMINI: list[tuple[str, str, Change]] = [
    ("role", "contents[3].role", put(K, 3, "role", "assistant")),
    ("role", "contents[3].role", put(K, 3, "role", "function")),
    ("first", "contents[0]", add(K, 0, {"role": "model", "parts": [{"text": "Hello."}]})),
    ("shape", "contents[3]", put(K, 3, "hello")),
    ("shape", "contents[3].parts[0]", put(K, 3, P, 0, "hello")),
    ("empty", "contents[3].parts", put(K, 3, P, [])),
    ("empty", "contents[0].parts[0].text", put(K, 0, P, 0, "text", "")),
    ("content", "contents[0].parts[0].text", put(K, 0, P, 0, "text", 7)),
    ("block", "contents[0].parts[0]", put(K, 0, P, 0, {})),
    ("block", "contents[0].parts[0]", put(K, 0, P, 0, {"thoughtSignature": "c2ln"})),
    ("block", "contents[0].parts[0]", put(K, 0, P, 0, {**SHOT, "text": "two"})),
    ("block", "contents[4].parts[0].functionCall", put(K, 4, P, 0, SIGNED)),
    ("block", "contents[3].parts[0].functionResponse", put(K, 3, P, 0, {"functionResponse": {"name": "a"}})),
    (
        "block",
        "contents[2].parts[0].functionResponse.parts[0]",
        put(K, 2, P, 0, "functionResponse", P, [{"text": "x"}]),
    ),
    ("content", "contents[2].parts[0].functionResponse.response", put(K, 2, P, 0, "functionResponse", "response", "x")),
    ("pairing", "contents[1]", drop(K, 2, P, 0)),
    ("pairing", "contents[1]", drop(K, 2)),
    ("pairing", "contents[2]", put(K, 2, P, 1, "functionResponse", "name", "other")),
    ("pairing", "contents[2]", put(K, 2, P, 0, "functionResponse", "id", "call-9")),
    ("pairing", "contents[4]", put(K, 4, P, [gemini()[K][2][P][1]])),
    ("keys", "contents[3].turnComplete", put(K, 3, "turnComplete", True)),
    ("order", "contents[2].parts", add(K, 2, P, 2, {"text": "And?"})),
    ("order", "contents[2]", add(K, 1, {"role": "model", "parts": [{"text": "Wait."}]})),
    ("call-id", "contents[1].parts", put(K, 1, P, 3, "functionCall", "id", "call-1")),
    ("call-id", "contents[1].parts[2].functionCall.id", put(K, 1, P, 2, "functionCall", "id", "")),
    ("name", "contents[1].parts[2].functionCall.name", put(K, 1, P, 2, "functionCall", "name", "a tool")),
    ("name", "contents[1].parts[2].functionCall.name", put(K, 1, P, 2, "functionCall", "name", "7up")),
    ("name", "contents[1].parts[2].functionCall.name", put(K, 1, P, 2, "functionCall", "name", "n" * 129)),
    ("name", "tools[0].functionDeclarations[0].name", put("tools", 0, "functionDeclarations", 0, "name", "")),
    ("arguments", "contents[1].parts[2].functionCall.args", put(K, 1, P, 2, "functionCall", "args", "{}")),
    ("arguments", "contents[1].parts[2].functionCall", put(K, 1, P, 2, "functionCall", "willContinue", True)),
    ("utf8", "contents[0].parts[0]", put(K, 0, P, 0, "text", HALF)),
    ("utf8", "contents[1].parts[2]", put(K, 1, P, 2, "functionCall", "args", {"at": HALF})),
    ("utf8", "systemInstruction.parts[0]", put("systemInstruction", P, 0, "text", HALF)),
    ("media", "contents[0].parts[1].inlineData.mimeType", put(K, 0, P, 1, "inlineData", "mimeType", "image/gif")),
    ("media", "contents[0].parts[1].inlineData.data", put(K, 0, P, 1, "inlineData", "data", "not base64!")),
    ("media", "contents[0].parts[1].fileData", put(K, 0, P, 1, {"fileData": {"mimeType": "image/png"}})),
    (
        "media",
        "contents[2].parts[0].functionResponse.parts[0].inlineData.mimeType",
        put(K, 2, P, 0, "functionResponse", P, 0, "inlineData", "mimeType", "audio/wav"),
    ),
    ("media", "contents", put(K, 4, P, [SHOT] * 899)),
    ("thinking", "contents[1]", both(drop(K, 1, P, 2, "thoughtSignature"), drop(K, 3), drop(K, 3))),
    ("thinking", "contents[4].parts[0]", put(K, 4, P, 0, {"text": "hm", "thought": True})),
    ("thinking", "contents[1].parts[2].thoughtSignature", put(K, 1, P, 2, "thoughtSignature", "")),
    ("prefill", "contents[3]", drop(K, 4)),
    ("system", "systemInstruction", put("systemInstruction", {"text": "Be brief."})),
    ("system", "systemInstruction.parts[0]", put("systemInstruction", P, 0, SHOT)),
    ("tools", "tools", put("tools", {})),
    ("tools", "tools[0].functionDeclarations[1]", put("tools", 0, "functionDeclarations", [{"name": "look"}] * 2)),
    (
        "tools",
        "tools[0].functionDeclarations[0]",
        put("tools", 0, "functionDeclarations", 0, {"name": "look", "parameters": {}, "parametersJsonSchema": {}}),
    ),
    ("tools", "tools[0]", put("tools", 0, {"type": "function", "function": {"name": "look"}})),
    ("messages", "contents", put(K, [])),
    ("size", "", put(K, 4, P, 0, "text", "x" * 20_000_000)),
]

STRICT: list[tuple[str, str, str, Change]] = [
    ("anthropic", "keys", "messages[4].content[0].annotations", put(M, 4, C, 0, "annotations", [])),
    ("anthropic", "keys", "messages[2].content[1].content[0].id", put(M, 2, C, 1, C, 0, "id", "x")),
    ("anthropic", "keys", "system[0].priority", put("system", 0, "priority", 1)),
    ("anthropic", "block", "messages[3].content[0]", add(M, 3, C, 0, {"type": "future_block", "x": 1})),
    ("anthropic", "block", "messages[2].content[1].content[0]", add(M, 2, C, 1, C, 0, {"type": "future_block"})),
    ("gemini", "keys", "contents[3].parts[0].hologram", put(K, 3, P, 0, {"hologram": {}})),
    ("openai", "keys", "messages[5].reasoning_content", put(M, 5, "reasoning_content", "hm")),
    ("openai", "keys", "messages[3].name", put(M, 3, "name", "look")),
    ("openai", "keys", "messages[1].content[0].cache_control", put(M, 1, C, 0, "cache_control", MARK)),
    ("openai", "keys", "messages[2].tool_calls[0].index", put(M, 2, "tool_calls", 0, "index", 0)),
    (
        "openai",
        "keys",
        "messages[2].tool_calls[0].function.parsed",
        put(M, 2, "tool_calls", 0, "function", "parsed", {}),
    ),
    ("openai", "block", "messages[1].content[0]", add(M, 1, C, 0, {"type": "video_url", "video_url": {"url": "x"}})),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("provider", BODIES)
def test_good_request_is_accepted(provider, strict):
    body = BODIES[provider]()
    before = copy.deepcopy(body)
    assert check_body(provider, body, strict=strict) == []
    assert check_body(provider, json.dumps(body).encode(), strict=strict) == []
    assert body == before


PLANTED = [("anthropic", *one) for one in ANTHROPIC] + [("openai", *one) for one in OPENAI]
PLANTED += [("gemini", *one) for one in GEMINI]


@pytest.mark.parametrize(
    ("provider", "rule", "where", "change"), PLANTED, ids=lambda value: "" if callable(value) else value
)
def test_planted_fault_is_refused_by_its_rule_and_at_its_place(provider, rule, where, change):
    body = BODIES[provider]()
    change(body)
    results = check_body(provider, body)
    assert {refusal.rule for refusal in results} <= {rule, "pairing"}  # An unreadable call cannot be paired.
    assert (rule, where) in [(refusal.rule, refusal.where) for refusal in results], [str(one) for one in results]


@pytest.mark.parametrize(
    "change",
    [
        instructed(5, {"role": "system", "content": "Be brief."}),
        instructed(3, {"role": "system", "content": [{"type": "tool_addition", "tool": {}}, SAY]}),
        both(instructed(5, SOON), instructed(5, {"role": "system", "content": "Be brief.", "clear_at": "never"})),
        instructed(4, {"role": "system", "content": [], "output_config": {"effort": "low"}}),
        instructed(0, {"role": "system", "content": [], "output_config": {"effort": "low"}}),
        both(
            put("model", "claude-opus-5-5"),
            put(M, 4, "role", "system"),
            add(M, 3, C, 1, SEARCH),
            add(M, 3, C, 2, SERVED),
        ),
        add(M, 3, C, 0, SUMMED),
        both(drop(M, slice(0, 3)), add(M, 0, C, 0, {**SUMMED, "signature": "c2ln"})),
        add(M, 3, C, 0, {**SUMMED, "content": None}),
    ],
)
def test_system_message_or_compaction_in_its_place_is_accepted(change):
    body = anthropic()
    change(body)
    assert check_body("anthropic", body) == []


@pytest.mark.parametrize(
    ("provider", "rule", "where", "change"), STRICT, ids=lambda value: "" if callable(value) else value
)
def test_strict_gateway_refuses_unknown_keys(provider, rule, where, change):
    """F09."""
    body = BODIES[provider]()
    change(body)
    assert check_body(provider, body) == []
    assert [(refusal.rule, refusal.where) for refusal in check_body(provider, body, strict=True)] == [(rule, where)]


def test_every_rule_is_planted_somewhere():
    assert {rule for _, rule, *_ in [*PLANTED, *STRICT]} | {"json"} == set(RULES)


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("gemini-2.5-pro", set()),
        ("models/gemini-3.1-pro-preview", {"thinking"}),
        ("gemini-3.7-flash", {"thinking", "prefill"}),
        ("gemini-flash-latest", {"thinking", "prefill"}),
    ],
)
def test_the_model_decides_about_signatures_and_the_last_content(model, rules):
    body = gemini()
    del body[K][1][P][2]["thoughtSignature"], body[K][4]
    assert {refusal.rule for refusal in check_body("gemini", {**body, "model": model})} == rules


def test_calls_before_the_newest_input_need_no_signature():
    body = gemini()
    del body[K][1][P][2]["thoughtSignature"]
    assert check_body("gemini", body) == []


def test_the_keywords_of_the_sdk_are_checked_like_the_body():
    body = gemini()
    tools, system = body.pop("tools"), body.pop("systemInstruction")
    keywords = {**body, "model": "gemini-3.8-flash", "config": {"tools": tools, "system_instruction": system}}
    assert check_body("gemini", keywords) == []
    keywords["config"]["tools"] = tools * 2
    assert [refusal.rule for refusal in check_body("gemini", keywords)] == ["tools", "tools"]


def test_names_and_base64_of_the_sdk_are_accepted():
    """The SDK sends names of both forms in one request, and base64 of the URL's alphabet."""
    body = gemini()
    body[K][0][P][1] = {"inline_data": {"mime_type": "image/png", "data": "__-_"}}
    body[K][2][P][0]["functionResponse"][P] = [{"inline_data": {"mime_type": "image/png", "data": "__-_"}}]
    body[K][1][P][2]["thought_signature"] = body[K][1][P][2].pop("thoughtSignature")
    body["tools"] = [{"function_declarations": [{"name": "look", "parameters_json_schema": {}}]}]
    assert check_body("gemini", {**body, K: body[K][:3]}) == []


def test_orphaned_result_is_refused_and_the_pair_accepted():
    """F01: a cut after the call left its answer, and every later request was a 400."""
    body = anthropic()
    cut = {**body, "messages": [body["messages"][0], *body["messages"][2:]]}
    whole = {**body, "messages": [body["messages"][0], *body["messages"][3:]]}
    assert {refusal.rule for refusal in check_body("anthropic", cut)} == {"pairing"}
    assert check_body("anthropic", whole) == []
    body = openai()
    cut = {**body, "messages": [*body["messages"][:2], *body["messages"][3:]]}
    assert [refusal.where for refusal in check_body("openai", cut)] == [
        "messages[2].tool_call_id",
        "messages[3].tool_call_id",
    ]


def test_late_result_is_refused_in_both_places():
    """F02."""
    body = openai()
    late = body["messages"].pop(3)
    body["messages"].append(late)
    assert [(refusal.rule, refusal.where) for refusal in check_body("openai", body)] == [
        ("pairing", "messages[2].tool_calls"),
        ("pairing", "messages[6].tool_call_id"),
    ]
    body["messages"].insert(4, body["messages"].pop())
    assert check_body("openai", body) == []


def test_cut_arguments_are_refused_and_whole_ones_accepted():
    """F08."""
    body = openai()
    function = body["messages"][2]["tool_calls"][0]["function"]
    function["arguments"] = '{"text": "' + "word " * 50
    assert [refusal.rule for refusal in check_body("openai", body)] == ["arguments"]
    function["arguments"] += '"}'
    assert check_body("openai", body) == []


@pytest.mark.parametrize(
    "arguments", ['{"half": "\\ud83d"}', '{"n": 123456789012345678901234567890}', '"text"', "[1]", "null"]
)
def test_unusual_json_is_json(arguments):
    body = openai()
    put(M, 2, "tool_calls", 0, "function", "arguments", arguments)(body)
    assert check_body("openai", body) == []


def test_answers_may_come_in_several_messages_of_one_turn():
    body = anthropic()
    first, second, message = body["messages"][2]["content"]
    parts = [{"role": "user", "content": [one]} for one in (first, second, message)]
    body["messages"][2:3] = parts
    assert check_body("anthropic", body) == []


def test_calls_may_come_in_several_messages_of_one_turn():
    body = anthropic()
    thought, message, first, second = body["messages"][1]["content"]
    body["messages"][1:2] = [{"role": "assistant", "content": one} for one in ([thought], [message, first], [second])]
    assert check_body("anthropic", body) == []


def test_openai_call_id_may_be_used_again_later():
    body = openai()
    body["messages"] += copy.deepcopy(body["messages"][2:5])
    assert check_body("openai", body) == []


def test_last_message_of_the_assistant_may_be_empty():
    body = anthropic()
    body["messages"][4:] = []
    body["messages"][3]["content"] = ""
    assert check_body("anthropic", body) == []


def test_server_tool_result_after_its_call_is_accepted():
    body = anthropic()
    body["messages"][3]["content"][:0] = [SEARCH, SERVED]
    assert check_body("anthropic", body) == []


def test_large_images_are_accepted_while_they_are_few():
    body = anthropic()
    body["messages"][4]["content"] = [image(png(2_001, 5))] * 19
    assert check_body("anthropic", body) == []


def test_tool_loop_that_thought_at_its_start_needs_no_thinking_later():
    body = anthropic()
    body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    body["messages"][2]["content"].pop()
    body["messages"][3:] = [{"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}]
    assert check_body("anthropic", body) == []
    body["messages"][1]["content"].pop(0)
    assert [refusal.where for refusal in check_body("anthropic", body)] == ["messages[1].content[0]"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"messages": [1], "messages"', b"\xff\xfe", b"[" * 100_000])
def test_bytes_that_are_no_json_object_are_refused(body):
    assert [refusal.rule for refusal in check_body("openai", body)] == ["json"]


@pytest.mark.parametrize("messages", [b"null", b"{}", b'"text"', b"[]", b"7"])
def test_messages_that_are_no_list_are_refused_in_bytes_too(messages):
    assert [refusal.rule for refusal in check_body("openai", b'{"messages":' + messages + b"}")] == ["messages"]


def test_refusal_names_place_rule_provider_and_reason():
    refusal = check_body("openai", {"messages": [{"role": "user", "content": []}]})[0]
    assert refusal == Refusal(
        "empty",
        "messages[0].content",
        "empty array. Expected an array with minimum length 1, but got an empty array instead.",
        "openai",
    )
    assert str(refusal).startswith("messages[0].content: empty array")
    assert str(refusal).endswith("[openai, empty]")


def test_unknown_provider_is_an_error_that_names_the_known_ones():
    with pytest.raises(BadSetting, match="anthropic, openai"):
        check_body("gemini!", {"messages": []})


@pytest.mark.parametrize("provider", BODIES)
def test_checker_that_remembers_finds_what_one_that_does_not_finds(provider):
    """The list grows, shrinks and is repaired. Earlier results must not hide new problems."""
    checker = BodyChecker(provider)
    faults = [change for one, _, _, change in PLANTED if one == provider]
    for step, change in enumerate([*faults[:40], None, *faults[:40:3]]):
        body = BODIES[provider]()
        if change:
            change(body)
        key = "contents" if provider == "gemini" else "messages"
        messages = body.get(key)
        try:
            raw = [json.dumps(one, ensure_ascii=False).encode() for one in messages or []]
        except UnicodeEncodeError:
            continue  # Values that cannot be bytes cannot be remembered.
        remembered = checker.check({**body, key: raw if isinstance(messages, list) else messages})
        assert remembered == check_body(provider, body), step


def test_checker_reads_only_the_messages_it_has_not_seen(monkeypatch):
    read: list[object] = []
    checker = BodyChecker("openai")
    rules = checker._rules
    monkeypatch.setattr(checker, "_rules", Counted(rules, read))
    messages = [json.dumps(one).encode() for one in openai()["messages"]]
    assert checker.check({"messages": messages[:5]}) == []
    assert checker.check({"messages": messages}) == []
    assert len(read) == len(messages)
    messages[1] = json.dumps({"role": "user", "content": "Why, again?"}).encode()
    assert checker.check({"messages": messages}) == []
    assert len(read) == len(messages) + 1


class Counted:
    """Rules that record the messages they read."""

    def __init__(self, rules: Any, read: list[object]) -> None:
        self.rules, self.seen, self.bytes_max, self.judge = rules, read, rules.bytes_max, rules.judge

    def read(self, message: object) -> Any:
        self.seen.append(message)
        return self.rules.read(message)


def test_values_are_read_again_each_time():
    checker = BodyChecker("openai")
    body = openai()
    assert checker.check(body) == []
    body["messages"][0]["role"] = "model"
    assert [refusal.rule for refusal in checker.check(body)] == ["role"]


def test_recorded_transcripts_are_legal_at_each_of_their_calls(transcripts):
    """Real agents sent these requests, so a checker that refuses them is wrong."""
    paths = sorted(transcripts.glob("neutral/*/*.jsonl"))[::9]
    assert paths
    for path in paths:
        checker = BodyChecker("openai", strict=True)
        messages = path.read_bytes().splitlines()
        for number, message in enumerate(messages):
            if number and b'"role": "assistant"' in message[:30]:
                assert checker.check({"messages": messages[:number]}) == [], (path.name, number)
