"""Pieces of streams, as different servers send them, gathered into whole responses."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Message, Reasoning, Text, ToolCall
from foveate.errors import BadMessage, BrokenStream, UnknownFormat
from foveate.formats import gather, get_format
from foveate.ports import Delta
from foveate.testing.openai_responses import response_events
from foveate.testing.responses import split_words


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """Return one chunk of a chat completion."""
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(id: str | None = None, name: str | None = None, arguments: Any = "", **more: Any) -> dict[str, Any]:
    """Return one piece of a call."""
    fields: dict[str, Any] = {"id": id, "function": {"name": name, "arguments": arguments}, **more}
    return {key: value for key, value in fields.items() if value is not None}


def completed(*chunks: dict[str, Any]) -> tuple[list[Delta], Message]:
    """Return the pieces in the chunks, and the message that they form."""
    gatherer = gather("openai")
    pieces = [piece for one in chunks for piece in gatherer.feed(one)]
    whole = gatherer.whole()
    assert whole is not None
    return pieces, get_format("openai").parse_reply(whole)[0]


def test_parallel_calls_are_joined_by_their_index():
    pieces, message = completed(
        chunk(role="assistant", content=None),
        chunk(tool_calls=[call("a", "look", index=0, type="function")]),
        chunk(tool_calls=[call("b", "list", index=1, type="function")]),
        chunk(tool_calls=[call(arguments='{"x":', index=0), call(arguments="{}", index=1)]),
        chunk(tool_calls=[call(arguments="1}", index=0)]),
        chunk("tool_calls"),
    )
    assert message.calls == (ToolCall("a", "look", '{"x":1}'), ToolCall("b", "list", "{}"))
    assert [piece.name for piece in pieces if piece.name] == ["look", "list"]


@pytest.mark.parametrize("index", [None, 0], ids=["none", "all zero"])
def test_whole_calls_without_a_useful_index_are_separated_by_ids(index: int | None):
    """Google's compatible server sends calls whole, without an index or each with 0."""
    signature = {"google": {"thought_signature": "c2lnbmVk"}}
    more: dict[str, Any] = {"type": "function"} if index is None else {"type": "function", "index": index}
    _, message = completed(
        chunk(role="assistant", tool_calls=[call("a", "look", '{"x":1}', extra_content=signature, **more)]),
        chunk(tool_calls=[call("b", "look", '{"x":2}', **more)]),
        chunk("stop"),
    )
    assert [(one.call_id, one.arguments) for one in message.calls] == [("a", '{"x":1}'), ("b", '{"x":2}')]
    [wire] = get_format("openai").render([message])
    assert [one.get("extra_content") for one in wire["tool_calls"]] == [signature, None]


def test_repeated_names_and_ids_are_kept_once():
    _, message = completed(
        chunk(tool_calls=[call("a", "look", '{"x"', index=0)]),
        chunk(tool_calls=[call("a", "look", ":1}", index=0)]),
        chunk(tool_calls=[call("", "", "", index=0)]),
        chunk("tool_calls"),
    )
    assert message.calls == (ToolCall("a", "look", '{"x":1}'),)


def test_calls_without_ids_and_indices_begin_at_a_function_name():
    _, message = completed(
        chunk(tool_calls=[call(name="look", arguments='{"x":')]),
        chunk(tool_calls=[call(arguments="1}")]),
        chunk(tool_calls=[call(name="list", arguments="{}")]),
        chunk("tool_calls"),
    )
    assert [(one.name, one.arguments) for one in message.calls] == [("look", '{"x":1}'), ("list", "{}")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_return_in_the_field_of_their_server(field: str):
    pieces, message = completed(
        chunk(**{field: "Let me "}), chunk(**{field: "think."}), chunk(content="So."), chunk("stop")
    )
    assert [(piece.kind, piece.text) for piece in pieces] == [
        *(("reasoning", "Let me "), ("reasoning", "think."), ("text", "So.")),
    ]
    assert get_format("openai").render([message]) == [{"role": "assistant", "content": "So.", field: "Let me think."}]


def test_numbered_parts_of_thoughts_are_joined_by_number():
    """OpenRouter sends them so; the model's provider expects them back unchanged."""
    _, message = completed(
        chunk(reasoning_details=[{"type": "reasoning.text", "text": "Let me ", "index": 0}]),
        chunk(reasoning_details=[{"type": "reasoning.text", "text": "think.", "index": 0, "signature": None}]),
        chunk(reasoning_details=[{"type": "reasoning.text", "signature": "s1", "index": 0}], content="So."),
        chunk(reasoning_details=[{"type": "reasoning.encrypted", "data": "xyz", "index": 0}]),
        chunk("stop"),
    )
    [wire] = get_format("openai").render([message])
    assert wire["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Let me think.", "index": 0, "signature": "s1"},
        {"type": "reasoning.encrypted", "data": "xyz", "index": 0},
    ]


def test_refusals_usage_and_server_fields_stay_with_the_response():
    gatherer = gather("openai")
    pieces = gatherer.feed({**chunk(refusal="I "), "system_fingerprint": "f"})
    pieces += gatherer.feed(chunk("stop", refusal="won't."))
    gatherer.feed({"id": "c1", "model": "m", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert gatherer.whole() == {
        "id": "c1",
        "model": "m",
        "system_fingerprint": "f",
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": None, "refusal": "I won't."},
            }
        ],
    }
    assert "".join(piece.text for piece in pieces) == "I won't."


def test_an_empty_field_does_not_remove_an_earlier_value():
    gatherer = gather("openai")
    gatherer.feed({**chunk(content="", tool_calls=[call("a", "look", "{}", index=0)]), "usage": {"prompt_tokens": 7}})
    gatherer.feed({**chunk("tool_calls", content=None), "usage": None, "service_tier": None})
    whole = gatherer.whole()
    assert whole is not None
    assert (whole["usage"], whole["service_tier"]) == ({"prompt_tokens": 7}, None)
    assert whole["choices"][0]["message"]["content"] is None


def test_content_that_turns_from_text_to_parts_is_kept_whole():
    gatherer = gather("openai")
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    for one in (chunk(content=[thought]), chunk(content="So "), chunk(content="it is."), chunk("stop")):
        gatherer.feed(one)
    whole = gatherer.whole()
    assert whole is not None
    parts = whole["choices"][0]["message"]["content"]
    assert (parts[0], "".join(part["text"] for part in parts[1:])) == (thought, "So it is.")


def test_only_the_first_of_several_answers_is_gathered():
    other = {"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}
    both = {"id": "c", "choices": [other, *chunk("stop", content="mine")["choices"]]}
    pieces, message = completed(both)
    assert (pieces, message) == ([Delta("text", "mine")], Message("assistant", (Text("mine"),)))


def test_a_response_is_incomplete_until_its_end_arrives():
    gatherer = gather("openai")
    assert gatherer.whole() is None
    gatherer.feed(chunk(content="half"))
    gatherer.feed({"id": "c1", "choices": [], "usage": {"prompt_tokens": 7}})
    assert gatherer.whole() is None
    messages = gather("anthropic")
    assert messages.whole() is None
    for event in events([{"type": "text", "text": "half"}])[:-1]:
        messages.feed(event)
    assert messages.whole() is None


def events(blocks: list[dict[str, Any]], deltas: dict[int, list[dict[str, Any]]] | None = None) -> list[dict[str, Any]]:
    """Return the events of an answer whose blocks begin like this and grow by these deltas."""
    begun: dict[str, Any] = {"id": "m1", "role": "assistant", "type": "message", "content": [], "stop_reason": None}
    stream: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**begun, "usage": {"input_tokens": 7, "output_tokens": 1}}}
    ]
    for index, block in enumerate(blocks):
        stream.append({"type": "content_block_start", "index": index, "content_block": block})
        for delta in (deltas or {}).get(index, ()):
            stream.append({"type": "content_block_delta", "index": index, "delta": delta})
        stream.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 30, "cache_read_input_tokens": None}
    stream.append(
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}
    )
    return [*stream, {"type": "message_stop"}]


def gathered(stream: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that these events form."""
    gatherer = gather("anthropic")
    for event in stream:
        gatherer.feed(event)
    whole = gatherer.whole()
    assert whole is not None
    return whole


def test_final_counts_replace_those_of_the_beginning():
    whole = gathered(events([{"type": "text", "text": "x"}]))
    assert (whole["usage"], whole["stop_reason"]) == ({"input_tokens": 7, "output_tokens": 30}, "end_turn")


def test_unknown_blocks_are_kept_with_their_deltas():
    blocks = [
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "mcp_tool_use", "id": "t1", "name": "look", "server_name": "s", "input": {}},
        {"type": "compaction", "content": None},
        {"type": "from_the_future", "shape": {"deep": [1]}},
        {"type": "text", "text": "", "citations": None},
    ]
    deltas = {
        1: [{"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"x"', ":1}")],
        2: [{"type": "compaction_delta", "content": piece} for piece in ("So ", "far.")],
        3: [{"type": "future_delta", "colour": "red"}],
        4: [
            {"type": "text_delta", "text": "So."},
            {"type": "citations_delta", "citation": {"cited_text": "a"}},
            {"type": "citations_delta", "citation": {"cited_text": "b"}},
        ],
    }
    assert gathered(events(blocks, deltas))["content"] == [
        blocks[0],
        {**blocks[1], "input": {"x": 1}},
        {"type": "compaction", "content": "So far."},
        {**blocks[3], "colour": "red"},
        {"type": "text", "text": "So.", "citations": [{"cited_text": "a"}, {"cited_text": "b"}]},
    ]
    gatherer = gather("anthropic")
    pieces = [piece for event in events(blocks, deltas) for piece in gatherer.feed(event)]
    assert pieces == [Delta("text", "So.")]  # Arguments of the provider's own tools are not calls of the caller.


def test_incomplete_arguments_are_not_a_valid_call():
    """The answer reached its maximal length: half a file name, or half a file, would be wrong."""
    block = {"type": "tool_use", "id": "a", "name": "write", "input": {}}
    whole = gathered(events([block], {0: [{"type": "input_json_delta", "partial_json": '{"path": "/tm'}]}))
    message, _ = get_format("anthropic").parse_reply(whole)
    assert json.loads(message.calls[0].arguments) == {"_arguments": '{"path": "/tm'}


def test_unknown_events_are_ignored():
    answer = events([{"type": "text", "text": "x"}])
    assert gathered([answer[0], {"type": "ping"}, {"type": "news", "index": 3}, *answer[1:]]) == gathered(answer)


texts = st.text(min_size=1, max_size=12)
arguments = st.dictionaries(texts, st.one_of(st.integers(), texts, st.lists(st.booleans(), max_size=3)), max_size=3)
messages = st.builds(
    lambda thought, text, asked: (thought, text, asked),
    st.one_of(st.just(""), texts),
    texts,
    st.lists(st.tuples(texts, arguments), max_size=3),
)


def cut(data: st.DataObject, text: str) -> list[str]:
    """Split a text into pieces at any places."""
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    ends = [0, *places, len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


@given(messages, st.data())
def test_a_completion_is_the_same_after_any_split_into_chunks(message: Any, data: st.DataObject):
    thought, text, asked = message
    calls = [(f"c{n}", name, json.dumps(given)) for n, (name, given) in enumerate(asked)]
    chunks = [chunk(role="assistant", content="")]
    chunks += [chunk(reasoning_content=piece) for piece in cut(data, thought)]
    chunks += [chunk(content=piece) for piece in cut(data, text)]
    pieces = [
        (n, first, piece)
        for n, (_, _, given) in enumerate(calls)
        for first, piece in [(True, ""), *[(False, one) for one in cut(data, given)]]
    ]
    mixed = sorted(pieces, key=lambda one: not one[1]) if data.draw(st.booleans()) else pieces
    for n, first, piece in mixed:
        id, name, _ = calls[n]
        chunks.append(chunk(tool_calls=[call(id, name, "", index=n) if first else call(arguments=piece, index=n)]))
    heard, message = completed(*chunks, chunk("stop"))
    parts = [Reasoning(thought, format="openai")] if thought else []
    assert message == Message("assistant", (*parts, Text(text), *(ToolCall(*one) for one in calls)))
    assert "".join(piece.text for piece in heard if piece.kind == "text") == text
    assert "".join(piece.text for piece in heard if piece.kind == "reasoning") == thought


@given(messages, st.data())
def test_an_anthropic_answer_is_the_same_after_any_split(message: Any, data: st.DataObject):
    thought, text, asked = message
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        *({"type": "tool_use", "id": f"c{n}", "name": name, "input": {}} for n, (name, _) in enumerate(asked)),
    ]
    deltas: dict[int, list[dict[str, Any]]] = {
        0: [{"type": "thinking_delta", "thinking": piece} for piece in cut(data, thought)],
        1: [{"type": "text_delta", "text": piece} for piece in cut(data, text)],
    }
    deltas[0].append({"type": "signature_delta", "signature": "signed"})
    for n, (_, wanted) in enumerate(asked):
        pieces = cut(data, json.dumps(wanted)) if wanted else [""]
        deltas[n + 2] = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    assert gathered(events(blocks, deltas))["content"] == [
        {"type": "thinking", "thinking": thought, "signature": "signed"},
        {"type": "text", "text": text},
        *({"type": "tool_use", "id": f"c{n}", "name": name, "input": given} for n, (name, given) in enumerate(asked)),
    ]


def sent(stream: list[dict[str, Any]], end: str = "\n", done: bool = False) -> bytes:
    """Return the bytes of server-sent events, with a comment and a ping among them."""
    lines = [f": comment{end}"]
    for event in stream:
        name = f"event: {event['type']}{end}" if "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}{end}{end}")
        lines.append(f'event: ping{end}data: {{"type": "ping"}}{end}{end}')
    return "".join([*lines, f"data: [DONE]{end}{end}" if done else ""]).encode()


RESPONSE = {
    "id": "resp_1",
    "status": "completed",
    "usage": {"input_tokens": 7},
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm, 世界."}], "encrypted_content": "gAAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Grüße 🙂\u2028"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I won't."}]},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at": "Tür"}'},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ],
}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "anthropic": events(
        [{"type": "text", "text": ""}, {"type": "tool_use", "id": "a", "name": "look", "input": {}}],
        {
            0: [{"type": "text_delta", "text": "Grüße, 世界 🙂\u2028"}],
            1: [{"type": "input_json_delta", "partial_json": '{"at": "Tür"}'}],
        },
    ),
    "openai": [
        chunk(role="assistant", content="Grüße, 世界 🙂\u2028"),
        chunk(tool_calls=[call("a", "look", '{"at": "Tür"}', index=0)]),
        chunk("tool_calls"),
    ],
    "openai_responses": list(response_events(RESPONSE, split_words)),
}
LAST = {
    "anthropic": b'data: {"type": "message_stop',
    "openai": b'"tool_calls"}',
    "openai_responses": b'data: {"type": "response.completed',
}
"""The beginning of the last event of each answer."""


@pytest.mark.parametrize("format", sorted(ANSWERS))
@given(data=st.data())
def test_bytes_cut_anywhere_give_the_same_as_events(format: str, data: st.DataObject):
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    body = sent(ANSWERS[format], end, done=format == "openai")
    by_events, by_bytes = gather(format), gather(format)
    expected = [piece for event in ANSWERS[format] for piece in by_events.feed(event)]
    places = [0, *sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12))), len(body)]
    heard = [piece for start, stop in pairwise(places) for piece in by_bytes.feed(body[start:stop])]
    assert (heard, by_bytes.whole()) == (expected, by_events.whole())
    assert by_bytes.whole() is not None


@pytest.mark.parametrize("format", sorted(ANSWERS))
def test_bytes_one_by_one_give_the_same_as_all_at_once(format: str):
    body = b"\xef\xbb\xbf" + sent(ANSWERS[format], "\r\n")
    slow, fast = gather(format), gather(format)
    pieces = [piece for byte in body for piece in slow.feed(bytes([byte]))]
    assert pieces == fast.feed(body.decode())  # Text is taken too.
    assert slow.whole() == fast.whole() is not None


@pytest.mark.parametrize("format", sorted(ANSWERS))
def test_a_cut_stream_of_bytes_has_no_whole(format: str):
    body = sent(ANSWERS[format])
    gatherer = gather(format)
    gatherer.feed(body[: body.rindex(LAST[format])])
    assert gatherer.whole() is None


@pytest.mark.parametrize(
    ("format", "event"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ("openai", {"error": {"type": "server_error", "code": None, "message": "Overloaded"}}),
        (
            "openai",
            {"id": "c", "error": {"code": 502, "message": "Overloaded"}, "choices": [{"index": 0, "delta": {}}]},
        ),
        ("openai", {"error": "Overloaded"}),
        ("openai", {"choices": [{"delta": {"content": ""}, "error": {"code": 502, "message": "Overloaded"}}]}),
    ],
)
def test_an_error_in_the_stream_is_raised_with_its_text(format: str, event: dict[str, Any]):
    gatherer = gather(format)
    with pytest.raises(BrokenStream, match=r"ended the stream with an error: .*Overloaded.*send the request again"):
        gatherer.feed(event)
    with pytest.raises(BrokenStream, match="Overloaded"):
        gather(format).feed(sent([event]))
    assert gatherer.whole() is None


def test_a_reply_that_ends_with_an_error_is_a_broken_stream():
    gatherer = gather("openai")
    gatherer.feed({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "I am"}}]})
    with pytest.raises(BrokenStream, match="ended the stream with an error: it gives no reason"):
        gatherer.feed({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]})
    assert gatherer.whole() is None


def test_an_error_without_a_type_is_known_by_its_name():
    with pytest.raises(BrokenStream, match="api_error: Down"):
        gather("anthropic").feed(b'event: error\ndata: {"code": "api_error", "message": "Down"}\n\n')


@pytest.mark.parametrize(
    "piece",
    [b"data: <html>\n\n", b"data: [1]\n\n", {"type": "content_block_delta", "index": 3, "delta": {"type": "x"}}],
)
def test_a_malformed_event_is_a_broken_stream(piece: object):
    with pytest.raises(BrokenStream, match="malformed event"):
        gather("anthropic").feed(piece)


def test_other_values_and_formats_are_refused():
    with pytest.raises(BadMessage, match=r"a int\. Pass an event"):
        gather("openai").feed(3)
    with pytest.raises(UnknownFormat, match="'morse'"):
        gather("morse")


def test_a_response_is_gathered_whole_and_in_pieces():
    gatherer = gather("openai_responses")
    pieces = [piece for event in ANSWERS["openai_responses"] for piece in gatherer.feed(event)]
    assert gatherer.whole() == RESPONSE
    assert "".join(piece.text for piece in pieces if piece.kind == "reasoning") == "Hm, 世界."
    assert "".join(piece.text for piece in pieces if piece.kind == "text") == "Grüße 🙂\u2028I won't."
    assert [piece.name for piece in pieces if piece.name] == ["look", "patch"]


def test_items_of_a_response_are_kept_if_its_last_event_has_none():
    """Some servers send the items only one by one."""
    *events, last = ANSWERS["openai_responses"]
    gatherer = gather("openai_responses")
    for event in [*events, {**last, "response": {"id": "resp_1", "status": "completed"}}]:
        gatherer.feed(event)
    whole = gatherer.whole()
    assert whole is not None
    assert whole["output"] == RESPONSE["output"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Overloaded"}}},
        {"type": "error", "code": "server_error", "message": "Overloaded", "param": None},
    ],
)
def test_a_response_that_fails_raises_the_error_of_the_server(event: dict[str, Any]):
    with pytest.raises(BrokenStream, match="server_error: Overloaded"):
        gather("openai_responses").feed(event)


def test_facts_beside_the_last_delta_stay_with_the_message():
    """Anthropic reports the edits of its own context management there."""
    stream = events([{"type": "text", "text": "x"}])
    stream[-2]["context_management"] = {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}
    assert gathered(stream)["context_management"] == {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}


def piece(*parts: Any, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one response of Gemini's stream."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3.8-flash", **fields}


GEMINI_STREAM = [
    piece({"text": "I lo", "thought": True}, usageMetadata={"promptTokenCount": 4}),
    piece({"text": "ok.", "thought": True}),
    piece({"text": "It is \u00bb7 "}),
    piece({"text": '\u00b0C" {in} [Oslo].'}),
    piece({"text": "", "thoughtSignature": "c2ln"}),
    piece({"functionCall": {"name": "look", "args": {"at": "it"}}, "thoughtSignature": "QQ=="}),
    piece({"functionCall": {"name": "look", "args": {}}}),
    piece({"text": ""}, finish="STOP", usageMetadata={"promptTokenCount": 4, "candidatesTokenCount": 9}),
]
GEMINI_PARTS = [
    {"text": "I look.", "thought": True},
    {"text": 'It is \u00bb7 \u00b0C" {in} [Oslo].'},
    {"text": "", "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "look", "args": {"at": "it"}}, "thoughtSignature": "QQ=="},
    {"functionCall": {"name": "look", "args": {}}},
]


def test_a_stream_of_gemini_becomes_its_response():
    gatherer = gather("gemini")
    pieces: list[Delta] = []
    for one in GEMINI_STREAM:
        assert gatherer.whole() is None
        pieces += gatherer.feed(one)
    whole = gatherer.whole()
    assert whole == {
        "candidates": [{"content": {"role": "model", "parts": GEMINI_PARTS}, "index": 0, "finishReason": "STOP"}],
        "modelVersion": "gemini-3.8-flash",
        "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 9},
    }
    assert [(one.kind, one.text, one.name) for one in pieces if one.kind == "call"] == [
        ("call", "", "look"),
        ("call", '{"at":"it"}', ""),
        ("call", "", "look"),
        ("call", "{}", ""),
    ]
    assert "".join(one.text for one in pieces if one.kind == "reasoning") == "I look."
    assert "".join(one.text for one in pieces if one.kind == "text") == GEMINI_PARTS[1]["text"]


@pytest.mark.parametrize("form", ["events", "array"])
@given(cuts=st.lists(st.integers(0, 2_000), max_size=12))
def test_bytes_of_gemini_may_be_cut_anywhere(form: str, cuts: list[int]):
    """Without `alt=sse` the API streams one JSON array."""
    lines = [json.dumps(one, ensure_ascii=False) for one in GEMINI_STREAM]
    text = (
        "".join(f"data: {line}\r\n\r\n" for line in lines) if form == "events" else "[" + "\n,\r\n".join(lines) + "]\n"
    )
    data = text.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    gatherer = gather("gemini")
    for start, end in pairwise(places):
        gatherer.feed(data[start:end])
    whole = gatherer.whole()
    assert whole is not None
    assert whole["candidates"][0]["content"]["parts"] == GEMINI_PARTS


def test_arguments_that_come_in_pieces_are_put_at_their_paths():
    """Vertex AI with `streamFunctionCallArguments`: values come with JSON paths, texts in pieces."""
    gatherer = gather("gemini")

    def part(more: bool, *arguments: dict[str, Any], **fields: Any) -> dict[str, Any]:
        call = {**fields, **({"partialArgs": list(arguments)} if arguments else {})}
        return {"functionCall": {**call, **({"willContinue": True} if more else {})}}

    text = {"jsonPath": "$.place.city", "willContinue": True}
    pieces = [
        piece({**part(True, name="weather", id="call-1"), "thoughtSignature": "c2ln"}),
        piece(part(True, {**text, "stringValue": "New "})),
        piece(part(True, {**text, "stringValue": "York"}, {"jsonPath": "$.place.city", "stringValue": ""})),
        piece(
            part(True, {"jsonPath": "$.days[1].n", "numberValue": 2.0}, {"jsonPath": "$.days[0]", "boolValue": True})
        ),
        piece(part(True, {"jsonPath": "$['a b']", "nullValue": "NULL_VALUE"})),
        piece(part(False)),
        piece({"functionCall": {"name": "other", "args": {"x": 1}}}, finish="STOP"),
    ]
    deltas = [delta for one in pieces for delta in gatherer.feed(one)]
    whole = gatherer.whole()
    assert whole is not None
    arguments = {"place": {"city": "New York"}, "days": [True, {"n": 2}], "a b": None}
    assert whole["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "weather", "id": "call-1", "args": arguments}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "other", "args": {"x": 1}}},
    ]
    assert [delta.name for delta in deltas if delta.name] == ["weather", "other"]


def test_an_error_in_a_stream_of_gemini_is_raised_with_its_words():
    error = b'[{"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}]'
    with pytest.raises(BrokenStream, match="429: Quota exceeded"):
        gather("gemini").feed(error)


def test_a_blocked_stream_of_gemini_is_whole_and_has_no_reply():
    gatherer = gather("gemini")
    gatherer.feed({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})
    whole = gatherer.whole()
    assert whole is not None
    with pytest.raises(BadMessage, match="blocked the prompt: SAFETY"):
        get_format("gemini").parse_reply(whole)


def test_objects_of_the_sdk_are_gathered_by_either_name():
    gatherer = gather("gemini")
    gatherer.feed({"candidates": [{"content": {"parts": [{"text": "hi", "thought_signature": "c2ln"}]}}]})
    gatherer.feed({"candidates": [{"finish_reason": "STOP"}], "usage_metadata": {"prompt_token_count": 3}})
    whole = gatherer.whole()
    assert whole is not None
    message, usage = get_format("gemini").parse_reply(whole)
    assert (message.text, usage.input) == ("hi", 3)
