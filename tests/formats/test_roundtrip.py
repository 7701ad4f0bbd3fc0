"""Round trips: content that a format carries comes back unchanged; the tests list the rest."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from format_views import view
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from foveate.core.profiles import PROFILES
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.formats.json import encode, parse_object, to_text

FORMATS = ["openai", "anthropic", "gemini"]

words = st.text(max_size=12)
ids = st.text("abcXYZ019_-", min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, values, max_size=3)


def back(name: str, messages: list[Message]) -> list[Message]:
    """Return the messages after a trip over the wire: written, sent as JSON, read."""
    format = get_format(name)
    wires = json.loads(encode(format.render(messages)))
    return [message for wire in wires for message in format.parse(wire)]


def extras(name: str) -> st.SearchStrategy[Extra | None]:
    """Generate unknown fields of this format."""
    fields = st.dictionaries(st.sampled_from(["new", "x-1", "ü"]), values, min_size=1, max_size=2)
    return st.none() | fields.map(lambda given: Extra(name, to_text(given, "here")))


def opaques(name: str) -> st.SearchStrategy[Opaque]:
    """Generate blocks of unknown kinds of this format."""
    kinds = st.sampled_from(["hologram", "scent"])
    return st.builds(
        lambda kind, extra: Opaque(name, kind, to_text({"type": kind, **extra}, "here")), kinds, st.just({}) | objects_x
    )


objects_x = st.dictionaries(st.sampled_from(["a", "b", "source"]), values, max_size=2)
base64 = st.binary(min_size=1, max_size=6).map(lambda raw: b64encode(raw).decode())
urls = words.map(lambda path: f"https://x.test/{path}")


def anthropic_media() -> st.SearchStrategy[Media]:
    name, more = "anthropic", extras("anthropic")
    kept = more.map(lambda extra: extra or Extra(name, "{}"))
    none = st.just("")
    return st.one_of(
        st.builds(Media, st.sampled_from(["image/png", "image/x"]), st.just("base64"), base64, none, more),
        st.builds(Media, st.just(""), st.just("url"), urls, none, more),
        st.builds(Media, st.just(""), st.just("file"), ids, none, kept),
        st.builds(Media, st.sampled_from(["application/pdf", "text/plain"]), st.just("base64"), base64, words, more),
        st.builds(Media, st.just("application/pdf"), st.just("url"), urls, words, more),
        st.builds(Media, st.just("application/octet-stream"), st.just("file"), ids, words, kept),
    )


def anthropic_messages() -> st.SearchStrategy[Message]:
    more = extras("anthropic")
    content: st.SearchStrategy[Content] = st.builds(Text, words, more) | anthropic_media() | opaques("anthropic")
    thoughts = st.builds(Reasoning, words, words, st.just(""), st.just("anthropic"), more) | st.builds(
        Reasoning, st.just(""), st.just(""), ids, st.just("anthropic"), more
    )
    arguments = objects.map(lambda given: to_text(given, "here"))
    calls = st.builds(ToolCall, words, words, arguments, more)
    results = st.builds(
        ToolResult, words, st.lists(content, max_size=3).map(tuple), st.sampled_from(["ok", "error"]), st.just(""), more
    )
    parts: st.SearchStrategy[Part] = content | thoughts | calls
    none = st.just("")
    return st.one_of(
        st.builds(Message, st.just("system"), st.lists(st.builds(Text, words, more)).map(tuple), none, more),
        st.builds(Message, st.just("user"), st.lists(content, max_size=3).map(tuple), none, more),
        st.builds(Message, st.just("assistant"), st.lists(parts, max_size=4).map(tuple), none, more),
        st.builds(lambda result, extra: Message("tool", (result,), "", extra), results, more),
    )


@settings(max_examples=settings.default.max_examples)
@given(st.lists(anthropic_messages(), max_size=5))
def test_content_that_anthropic_carries_comes_back(messages: list[Message]):
    assert back("anthropic", messages) == messages


def openai_media() -> st.SearchStrategy[Media]:
    name, more = "openai", extras("openai")
    kept = more.map(lambda extra: extra or Extra(name, "{}"))
    nested = st.just(Extra(name, '{"image_url":{"detail":"low"}}'))
    none = st.just("")
    return st.one_of(
        st.builds(Media, st.sampled_from(["image/png", ""]), st.just("base64"), base64, none, more | nested),
        st.builds(Media, st.just(""), st.just("url"), urls, none, more | nested),
        st.builds(Media, st.sampled_from(["audio/wav", "audio/x"]), st.just("base64"), base64, none, more),
        st.builds(Media, st.just("application/pdf"), st.just("base64"), base64, words, more),
        st.builds(Media, st.just("application/octet-stream"), st.just("file"), ids, words, kept),
    )


def openai_messages() -> st.SearchStrategy[Message]:
    more = extras("openai")
    text = st.builds(Text, words, more)
    content: st.SearchStrategy[Content] = text | openai_media() | opaques("openai")
    refusal = words.map(lambda text: Text(text, Extra("openai", '{"type":"refusal"}')))
    custom = st.builds(
        lambda call_id, name, text: ToolCall(
            call_id, name, to_text({"input": text}, "here"), Extra("openai", '{"type":"custom"}')
        ),
        words,
        words,
        words,
    )
    calls = st.builds(ToolCall, words, words, words, more) | custom
    thoughts = st.sampled_from([None, Extra("openai", '{"type":"reasoning"}')]).flatmap(
        lambda extra: words.map(lambda text: [Reasoning(text, "", "", "openai", extra)])
    )

    def answer(thought: list[Part], texts: list[Part], asked: list[Part], name: str, extra: Extra | None) -> Message:
        return Message("assistant", (*thought, *texts, *asked), name, extra)

    developer = st.just(Extra("openai", '{"role":"developer"}'))
    result = st.builds(
        lambda call_id, content, name: ToolResult(call_id, tuple(content), "ok", name),
        words,
        st.lists(text | opaques("openai"), min_size=1, max_size=3),
        words,
    )
    return st.one_of(
        st.builds(Message, st.just("system"), st.lists(text).map(tuple), words, more | developer),
        st.builds(Message, st.just("user"), st.lists(content, max_size=3).map(tuple), words, more),
        st.builds(
            answer,
            st.just([]) | thoughts,
            st.lists(content | refusal, max_size=3),
            st.lists(calls, max_size=2),
            words,
            more,
        ),
        st.builds(lambda result, extra: Message("tool", (result,), "", extra), result, more),
    )


@settings(max_examples=settings.default.max_examples)
@given(st.lists(openai_messages(), max_size=5))
def test_content_that_openai_carries_comes_back(messages: list[Message]):
    assert back("openai", messages) == messages


def gemini_media() -> st.SearchStrategy[Media]:
    name, more = "gemini", extras("gemini")
    kept = more.map(lambda extra: extra or Extra(name, "{}"))
    nested = st.just(Extra(name, '{"inlineData":{"new":1},"thought":true}'))
    mimes = st.sampled_from(["image/png", "audio/wav", ""])
    return st.one_of(
        st.builds(Media, mimes, st.just("base64"), base64, words, more | nested),
        st.builds(Media, mimes, st.just("url"), urls, words, more),
        st.builds(Media, mimes, st.just("file"), ids.map(lambda path: f"gs://{path}"), words, kept),
    )


def gemini_messages() -> st.SearchStrategy[Message]:
    signed = st.just(Extra("gemini", '{"thoughtSignature":"c2ln"}'))
    more = extras("gemini") | signed
    signature = st.binary(min_size=1, max_size=6).map(lambda data: b64encode(data).decode())
    said = words.filter(bool)
    content: st.SearchStrategy[Content] = st.builds(Text, said, more) | gemini_media()
    opaque = opaques("gemini").map(lambda each: Opaque("gemini", each.kind, to_text({each.kind: each.body}, "here")))
    thoughts = st.one_of(
        st.builds(Reasoning, said, st.just("") | signature, st.just(""), st.just("gemini"), extras("gemini")),
        st.builds(Reasoning, st.just(""), signature, st.just(""), st.just("gemini"), extras("gemini")),
        st.just(Reasoning("", "", "", "gemini")),
        st.just(Reasoning("", "c2ln", "", "gemini", Extra("gemini", '{"thought":true}'))),
    )
    arguments = objects.map(lambda given: to_text(given, "here"))
    nameless = st.just(Extra("gemini", '{"functionCall":{"id":null},"thoughtSignature":"c2ln"}'))
    calls = st.one_of(
        st.builds(ToolCall, ids, words, arguments, more),
        st.builds(lambda name, text, extra: ToolCall(name, name, text, extra), ids, arguments, nameless),
    )

    def result(text: str | None, media: list[Media], state: Any, name: str, extra: Extra | None) -> ToolResult:
        return ToolResult("c", (*(() if text is None else (Text(text),)), *media), state if text else "ok", name, extra)

    field = st.sampled_from(["rows", "result"]).map(
        lambda key: Extra("gemini", to_text({"functionResponse": {"response": key}}, "here"))
    )
    results = st.one_of(
        st.builds(
            result,
            st.none() | words,
            st.lists(gemini_media(), max_size=2),
            st.sampled_from(["ok", "error"]),
            said,
            more,
        ),
        st.builds(result, words, st.just([]), st.just("ok"), said, field),
    )
    none = st.just("")
    parts: st.SearchStrategy[Part] = content | thoughts | calls | opaque
    return st.one_of(
        st.builds(Message, st.just("system"), st.lists(st.builds(Text, words)).map(tuple), none, extras("gemini")),
        st.builds(Message, st.just("user"), st.lists(content | opaque, max_size=3).map(tuple), none, extras("gemini")),
        st.builds(Message, st.just("assistant"), st.lists(parts, max_size=4).map(tuple), none, extras("gemini")),
        st.builds(lambda result, extra: Message("tool", (result,), "", extra), results, extras("gemini")),
    )


@settings(max_examples=settings.default.max_examples)
@given(st.lists(gemini_messages(), max_size=5))
def test_content_that_gemini_carries_comes_back(messages: list[Message]):
    assert back("gemini", messages) == messages


def test_openai_loses_only_documented_content():
    image = Media("image/png", "base64", "AAAA")
    cannot = {
        "an error": (ToolResult("a", (Text("t"),), "error"), ToolResult("a", (Text("t"),))),
        "a result without content": (ToolResult("a"), ToolResult("a", (Text(""),))),
        "a signature": (Reasoning("hm", "s", format="openai"), Reasoning("hm", format="openai")),
    }
    for part, heard in cannot.values():
        role: Any = "tool" if isinstance(part, ToolResult) else "assistant"
        assert back("openai", [Message(role, (part,))]) == [Message(role, (heard,))]
    shown = back("openai", [Message("tool", (ToolResult("a", (image,)),))])
    assert [message.role for message in shown] == ["tool", "user"]
    assert list(shown[1].media()) == [image]
    swapped = back("openai", [Message("assistant", (ToolCall("a", "f"), Text("t")))])
    assert swapped == [Message("assistant", (Text("t"), ToolCall("a", "f")))]


def test_anthropic_loses_only_documented_content():
    cut = back("anthropic", [Message("assistant", (ToolCall("a", "f", '{"x":'),))])
    assert cut == [Message("assistant", (ToolCall("a", "f", '{"_arguments":"{\\"x\\":"}'),))]
    stopped = back("anthropic", [Message("tool", (ToolResult("a", (Text("t"),), "interrupted", "grep"),))])
    assert stopped == [Message("tool", (ToolResult("a", (Text("t"),), "error"),))]
    named = back("anthropic", [Message("user", (Text("t"),), "ann")])
    assert named == [Message("user", (Text("t"),))]


@settings(max_examples=settings.default.max_examples)
@given(st.lists(anthropic_messages() | openai_messages() | gemini_messages(), max_size=4))
def test_foreign_content_does_not_leak_into_a_format(messages: list[Message]):
    """Extras and unknown blocks of one format never reach the other; calls, results and text do.

    Gemini reads an empty id as no id, and then the name of the tool is the id.
    """
    for name in FORMATS:
        messages_back = back(name, messages)
        called = [call for message in messages for call in message.calls]
        expected = [call.call_id or (call.name if name == "gemini" else "") for call in called]
        assert [call.call_id for message in messages_back for call in message.calls] == expected
        for message in messages_back:
            for part in (message, *message.parts):
                assert not isinstance(part, Opaque) or part.format == name
                assert getattr(part, "extra", None) is None or part.extra.format == name  # type: ignore[union-attr]
        view_of = view(*messages) if messages else view()
        get_format(name).body(view_of, profile=PROFILES[name], system="s")


def test_an_anthropic_conversation_survives_a_switch_to_openai():
    wires: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "why?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "ü.py", "lines": [1, 2]}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x = 1"}]},
    ]
    messages = [message for wire in wires for message in get_format("anthropic").parse(wire)]
    assert get_format("openai").render(messages) == [
        {"role": "user", "content": "why?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"ü.py","lines":[1,2]}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x = 1"},
    ]
    visited = back("openai", messages)
    del wires[1]["content"][0]  # Reasoning belongs to its provider.
    assert get_format("anthropic").render(visited) == wires


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)

NAMES = [
    *("role", "content", "type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id"),
    *("is_error", "source", "title", "media_type", "url", "file_id", "citations", "cache_control", "image_url", "file"),
    *("input_audio", "refusal", "function", "custom", "arguments", "tool_calls", "function_call", "tool_call_id"),
    *(
        "parts",
        "functionCall",
        "functionResponse",
        "response",
        "args",
        "inlineData",
        "fileUri",
        "thought",
        "candidates",
    ),
    *("thoughtSignature", "mimeType", "inline_data", "thought_signature"),
    *("reasoning", "reasoning_content", "parsed", "annotations", "usage", "file_data", "filename", "format", "new"),
]
KINDS = [
    *("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "image_url", "file"),
    *("input_audio", "refusal", "function", "custom", "base64", "url", "content", "message", "hologram", "user"),
    *(
        "assistant",
        "model",
        "system",
        "developer",
        "tool",
        "data:image/png;base64,AA",
        "data:a/b;base64,AA=",
        "text/plain",
    ),
]


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """Return every place inside a JSON value: a container, with a key or an index."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *nodes(value[key]))]


@st.composite
def nearly_right(draw: st.DrawFn) -> Any:
    """Generate a wire message of either provider with a few wrong values."""
    name = draw(st.sampled_from(FORMATS))
    made = {"anthropic": anthropic_messages, "openai": openai_messages, "gemini": gemini_messages}[name]()
    messages = draw(st.lists(made, min_size=1, max_size=2))
    wire = json.loads(encode(get_format(name).render(messages)))[0]
    for _ in range(draw(st.integers(0, 3))):
        places = nodes(wire)
        container, key = draw(st.sampled_from(places))
        other, at = draw(st.sampled_from(places))
        match draw(st.integers(0, 4)):
            case 0:
                del container[key]
            case 1:
                container[key] = draw(anything)
            case 2:
                container[key] = draw(st.sampled_from(KINDS))
            case 3:
                container[key] = json.loads(json.dumps(other[at]))
            case _ if isinstance(container, dict):
                container[draw(st.sampled_from(NAMES))] = json.loads(json.dumps(other[at]))
        if not wire:
            break
    return wire


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=settings.default.max_examples // 2)
@given(wire=nearly_right() | anything)
def test_any_input_is_refused_or_comes_back(name: str, wire: Any):
    format = get_format(name)
    for reading in (format.parse_reply, format.parse):
        try:
            read = reading(wire)
        except BadMessage:
            read = ()
    messages = [message for message in read if isinstance(message, Message)]
    again = [message for wire in format.render(messages) for message in format.parse(wire)]
    if name != "openai" or not any(list(message.media()) for message in messages if message.role == "tool"):
        assert again == messages


@settings(max_examples=settings.default.max_examples)
@given(anything)
def test_json_text_is_read_back_after_writing(value: Any):
    try:
        text = to_text({"x": value}, "here")
    except BadMessage:
        return
    assert to_text(parse_object(text), "there") == text


def test_recorded_chat_completions_come_back(transcripts: Path):
    files = sorted((transcripts / "neutral").glob("*/*.jsonl"))
    for path in random.Random(1).sample(files, 8):
        format = get_format("openai")
        recorded = [json.loads(line) for line in path.read_text().splitlines()]
        messages = [message for wire in recorded for message in format.parse(wire)]
        assert len(messages) == len(recorded)
        assert back("openai", messages) == messages, path


def test_recorded_anthropic_messages_come_back(transcripts: Path):
    for path in sorted((transcripts / "raw" / "claude_code").glob("*.jsonl")):
        format = get_format("anthropic")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        recorded = [line["message"] for line in lines if isinstance(line.get("message"), dict)]
        messages = [message for wire in recorded for message in format.parse(wire)]
        assert len(messages) >= len(recorded) > 0
        assert back("anthropic", messages) == messages, path
        replies = [format.parse_reply(wire) for wire in recorded if "usage" in wire]
        assert all(usage.prompt_tokens is not None for _, usage in replies)
