"""Calls of `expand` are answered inside of an answer: the client sees one answer, and the history has every reply."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import Interrupted

from foveate import Message, ToolCall
from foveate.conversation.request_items import _Written
from foveate.core.edits import CALLER
from foveate.requests import events as stream_events
from foveate.requests.events import EventSplitter, StreamEvent, write_event
from foveate.requests.request import MAX_EXPANSIONS, NotContinued, WireRequest
from foveate.requests.splice_anthropic import AnthropicSplice
from foveate.requests.splice_gemini import GeminiSplice
from foveate.requests.splice_responses import ResponsesSplice
from foveate.stores.memory import MemoryStore
from foveate.testing import say
from foveate.testing.responses import events

from client import EVENTS, Client, calls_in, expansion, gathered, names_in, read, reply, said, spoken, text_in, usage_in  # isort: skip

FORMATS = ["anthropic", "openai", "openai_responses", "gemini"]
WAYS = [
    pytest.param(0, id="whole"),
    pytest.param(7, id="pieces"),
    pytest.param(10**6, id="streamed"),
    pytest.param(EVENTS, id="events"),
]
LOG = "".join(f"line {number}: all is well\n" for number in range(400))


def begun(format: str, *replies: Message, size: int = 0, **options: Any) -> Client:
    """A client that has read two logs, of which the view shows one. `replies`: those after that."""
    first = [reply(read("r1"), text="Reading."), reply(read("r2")), *replies]
    client = Client(format, first, **options)
    client.say("Read the logs.")
    for _ in range(2):
        client.ask(stream=size > 0, size=size or 1)
        client.give(LOG)
    return client


def unchanged(client: Client) -> None:
    """Assert that the list of the client forked and edited nothing, in this process and in another one."""
    assert client.store.names("") == ["c"]
    for chat in (client.chat, client.opened()):
        count = len(chat)
        followed = chat.follow(client.items)
        assert (followed.added, followed.hidden, followed.edited, followed.former) == ((), 0, 0, "")
        assert len(chat) == count
    authors = {edit.policy for record in client.chat.journal.records() for edit in record.edits}
    assert CALLER not in authors


@pytest.mark.parametrize("size", WAYS)
@pytest.mark.parametrize("format", FORMATS)
def test_client_sees_one_answer_without_the_expansion(format: str, size: int):
    client = begun(format, expansion("e1", text="Let me look. "), say("All is well."), say("Yes."), size=size)
    answer = client.ask(stream=size > 0, size=size or 1)
    assert text_in(format, answer) == "Let me look. All is well."
    assert calls_in(format, answer) == []
    assert b"expand" not in client.streams[-1]
    assert names_in([row.message for row in client.chat.history()]) == ["read", "read", "expand"]
    unchanged(client)
    client.say("Sure?")
    client.ask(stream=size > 0, size=size or 1)
    sent = said(client.model.requests[-1])
    assert sent.count("Let me look.") == 1
    assert sent.count('"e1"') == 2  # The call, and its result.
    unchanged(client)


@pytest.mark.parametrize("size", WAYS)
@pytest.mark.parametrize("format", FORMATS)
def test_result_of_the_expansion_reaches_the_model(format: str, size: int):
    arguments = '{"handle": "m3", "lines": "17"}'
    client = begun(format, expansion("e1", arguments), say("It says: all is well."), size=size)
    client.ask(stream=size > 0, size=size or 1)
    assert "line 16: all is well" in said(client.model.requests[-1])
    assert "line 16: all is well" not in said(client.model.requests[-2]["tools"])
    assert client.model.requests[-1]["tools"] == client.model.requests[0]["tools"]


@pytest.mark.parametrize("size", WAYS)
@pytest.mark.parametrize("format", FORMATS)
def test_usage_is_that_of_the_last_prompt_and_every_call_is_billed(format: str, size: int):
    client = begun(format, expansion("e1"), say("Well."), size=size)
    usage = usage_in(format, client.ask(stream=size > 0, size=size or 1))
    last = client.model.billed[-1].total
    if format == "anthropic":
        prompt = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    elif format == "gemini":
        prompt = usage["promptTokenCount"]
        output = usage["candidatesTokenCount"] + usage["thoughtsTokenCount"]
        assert usage["totalTokenCount"] == prompt + output
        assert output == 8  # 6 for the call, and 2 for the answer.
    else:
        prompt = usage["prompt_tokens" if format == "openai" else "input_tokens"]
        output = usage["completion_tokens" if format == "openai" else "output_tokens"]
        assert usage["total_tokens"] == prompt + output
    assert prompt == last  # The size of the client's context: a client compacts by it.
    totals = client.chat.totals()
    assert totals.calls == 4
    known = totals.usage
    assert (known.input or 0) + (known.cache_read or 0) + (known.cache_write or 0) == sum(
        bill.total for bill in client.model.billed
    )


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_split_at_blank_lines_alone(end: str, size: int):
    sent = end.join(["event: ping", 'data: {"number": 1}', "", "data: {", 'data: "number": 2}', "", ""]).encode()
    splitter = EventSplitter()
    found = [event for at in range(0, len(sent), size) for event in splitter.feed(sent[at : at + size])]
    shown = [(event.name, event.data) for event in found if event.raw.strip()]
    assert shown == [("ping", {"number": 1}), ("", {"number": 2})]
    assert b"".join(event.raw for event in found) + bytes(splitter._rest) == sent


def test_blocks_of_a_server_that_begins_at_one_get_their_numbers():
    splice = AnthropicSplice(lambda name: name == "expand")
    block = {"type": "text", "text": ""}
    sent = [
        {"type": "content_block_start", "index": 1, "content_block": block},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Well."}},
    ]
    shown = [event for data in sent for event in EventSplitter().feed(splice.add(_event_of(data)))]
    assert [event.data for event in shown] == [{**data, "index": 0} for data in sent]


@pytest.mark.parametrize("size", [1, 10**6])
@pytest.mark.parametrize("beginning", [b"", b'data: {"candidates": [{"content": {"parts": [{"text": "Well"}]}}]}\n\n'])
def test_an_error_that_is_no_event_passes(beginning: bytes, size: int):
    """Google ends a stream that fails so, and its SDKs look for it. A part of it does not pass, as that of an event."""
    error = b'{\n  "error": {\n    "code": 503,\n    "message": "Overloaded.",\n    "status": "UNAVAILABLE"\n  }\n}\n'
    for end in (error, error[:40]):
        request = begun("gemini", say("Well.")).request(stream=True)
        sent = beginning + end
        shown = b"".join(request.feed(sent[at : at + size]) for at in range(0, len(sent), size)) + request.ended()
        assert shown == (sent if end == error else beginning)
        assert request.follow_up is None
        assert not request.is_complete


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_that_is_cut_in_its_last_blank_line_keeps_every_byte(format: str):
    """Google's SDK for JavaScript takes an event for cut if the last byte of the blank line is missing."""
    client = begun(format, say("Well."))
    request = client.request(stream=True)
    response = client.model.answer(json.loads(request.content)).response
    sent = b"".join(events(response, usage=True)).replace(b"\n", b"\r\n")
    assert b"".join([request.feed(sent[:-1]), request.feed(sent[-1:]), request.ended()]) == sent


def test_usage_behind_the_end_of_a_changed_stream_is_counted_once():
    """Gemini may send the usage in an event of its own, behind the reason of the end."""
    splice = GeminiSplice("expand".__eq__)
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("expand", "read")]
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 7, "totalTokenCount": 17}
    sent: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": calls}}]},
        {"candidates": [{"finishReason": "STOP"}]},
        {"usageMetadata": usage},
    ]
    shown = [event for data in sent for event in EventSplitter().feed(splice.add(_event_of(data)))]
    assert [event.data for event in shown] == [
        {"candidates": [{"content": {"role": "model", "parts": calls[1:]}}]},
        {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]},
        {"usageMetadata": usage},
    ]


def _event_of(data: dict[str, Any]) -> StreamEvent:
    (event,) = EventSplitter().feed(write_event(data, data.get("type", "")))
    return event


@pytest.mark.parametrize("format", FORMATS)
def test_request_tells_the_tokens_of_the_whole_history(format: str):
    client = begun(format, expansion("e1"), say("Well."), say("Yes."))
    for question in ("Sure?", "Really?"):
        client.ask()
        client.say(question)
        request = client.request()
        assert request.tokens_history == client.chat.totals().tokens_history > request.view.tokens
        client.chat = client.opened()
        assert client.request().tokens_history == request.tokens_history


def test_what_a_view_keeps_is_freed_with_its_conversation():
    def kept() -> int:
        gc.collect()
        return sum(type(value) is _Written for value in gc.get_objects())

    before = kept()
    client = begun("anthropic", say("Well."))
    client.ask()
    assert kept() > before
    del client
    assert kept() == before


@pytest.mark.parametrize("size", WAYS)
@pytest.mark.parametrize("format", FORMATS)
def test_calls_of_the_client_beside_ours_reach_the_client_alone(format: str, size: int):
    mixed = reply(
        read("r3"), ToolCall("e1", "expand", '{"handle": "m3"}'), read("r4"), ToolCall("e2", "expand", "{}"), text="So."
    )
    client = begun(format, expansion("e0", text="Hm. "), mixed, say("Done."), size=size)
    answer = client.ask(stream=size > 0, size=size or 1)
    assert calls_in(format, answer) == ["r3", "r4"]
    assert text_in(format, answer) == "Hm. So."
    client.give("ok")
    client.ask(stream=size > 0, size=size or 1)
    assert [row.message.role for row in client.chat.history()].count("tool") == 7
    for id in ("e0", "e1", "e2", "r3", "r4"):
        assert said(client.model.requests[-1]).count(f'"{id}"') == 2
    unchanged(client)


def test_request_for_an_approval_beside_ours_reaches_the_client():
    """Only the client can approve the call of an MCP tool."""
    asked = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "look", "arguments": "{}"}
    ours = {"type": "function_call", "id": "fc_1", "call_id": "e1", "name": "expand", "arguments": "{}"}
    splice = ResponsesSplice("expand".__eq__)
    splice.receive({"id": "resp_1", "status": "completed", "output": [ours, asked]})
    assert not splice.asks_only_us
    assert splice.joined()["output"] == [asked]


@pytest.mark.parametrize("format", FORMATS)
def test_answers_without_expansions_pass_byte_by_byte(format: str):
    client = begun(format, say("Well."))
    client.say("And?")
    request = client.request(stream=True)
    response = client.model.answer(json.loads(request.content)).response
    sent = b": a comment\n\n" + b"".join(events(response, usage=True)).replace(b"\n\n", b"\r\n\r\n", 3)
    sent = b'event: ping\ndata: {"type": "ping"}\n\n' + sent
    assert not request.is_complete
    out = b"".join(request.feed(sent[at : at + 5]) for at in range(0, len(sent), 5))
    assert request.is_complete
    out += request.ended()
    assert out == sent
    assert client.chat.history()[-1].message.text == "Well."
    assert client.request().received(b"[ 1 ]") == b"[ 1 ]"


@pytest.mark.parametrize("is_joined", [False, True])
@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_pieces_of_a_text_are_not_split(format: str, is_joined: bool, monkeypatch: pytest.MonkeyPatch):
    client = begun(format, say("All is well, and the log has no error at all."))
    client.say("And?")
    request = client.request(stream=True)
    sent = list(events(client.model.answer(json.loads(request.content)).response, usage=True))
    split: list[StreamEvent] = []
    feed = EventSplitter.feed

    def counted(splitter: EventSplitter, piece: bytes) -> Iterator[StreamEvent]:
        for event in feed(splitter, piece):
            split.append(event)
            yield event

    monkeypatch.setattr(EventSplitter, "feed", counted)
    pieces = [b"".join(sent)] if is_joined else sent
    assert [request.feed(piece) for piece in pieces] == pieces
    assert 0 < len(split) < len(sent) / 2
    request.ended()
    assert client.chat.history()[-1].message.text == "All is well, and the log has no error at all."


def test_a_long_first_event_in_small_pieces_is_searched_once(monkeypatch: pytest.MonkeyPatch):
    """`response.created` repeats the instructions and the tools of the request."""
    pattern, looked = stream_events._EVENT_END, 0

    class Counted:
        def search(self, text: bytes, start: int = 0) -> Any:
            nonlocal looked
            looked += len(text) - start
            return pattern.search(text, start)

    monkeypatch.setattr(stream_events, "_EVENT_END", Counted())
    event = write_event({"type": "response.created", "instructions": "Be brief. " * 2_000})
    beginning = stream_events.Beginning()
    assert b"".join(beginning.feed(event[i : i + 100]) for i in range(0, len(event), 100)) == event
    assert looked < 2 * len(event)


def test_only_events_that_may_change_are_decoded(monkeypatch: pytest.MonkeyPatch):
    client = begun("anthropic", say("All is well."))
    client.say("And?")
    request = client.request(stream=True)
    sent = list(events(client.model.answer(json.loads(request.content)).response, usage=True))
    added: list[str] = []
    add = AnthropicSplice.add
    monkeypatch.setattr(AnthropicSplice, "add", lambda self, event: added.append(event.name) or add(self, event))
    assert [request.feed(piece) for piece in sent] == sent
    assert added == ["message_start", "content_block_start", "message_delta"]


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_call_is_held_back_in_a_stream_with_carriage_returns(format: str, end: bytes):
    client = begun(format, expansion("e1", text="Let me look at the log."), say("Well."))
    request = client.request(stream=True)
    response = client.model.answer(json.loads(request.content)).response
    out = request.feed(b"".join(events(response, usage=True)).replace(b"\n", end))
    assert b"Let" in out
    assert b"expand" not in out
    request.ended()
    assert request.follow_up is not None


@pytest.mark.parametrize("format", FORMATS)
def test_pings_and_unknown_events_pass_while_a_call_is_held_back(format: str):
    client = begun(format, expansion("e1"), say("Well."))
    request = client.request(stream=True)
    out = b""
    for _ in range(2):
        response = client.model.answer(json.loads(request.content)).response
        for event in events(response, usage=True):
            out += request.feed(b'event: ping\ndata: {"type": "ping"}\n\n' + event)
        out += request.ended()
    pings = out.count(b'event: ping\ndata: {"type": "ping"}\n\n')
    assert pings >= 2 if format == "gemini" else pings > 10
    out = out.replace(b'event: ping\ndata: {"type": "ping"}\n\n', b"")
    assert text_in(format, gathered(format, out)) == "Well."


@pytest.mark.parametrize("size", WAYS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("arguments", ["{}", '{"handle": "m99"}', "[1]", '{"handle": "m3", "pattern": "("}'])
def test_broken_arguments_get_an_answer(format: str, size: int, arguments: str):
    if format in ("anthropic", "gemini") and arguments == "[1]":
        pytest.skip("This API sends objects.")
    client = begun(format, expansion("e1", arguments), say("Well."), size=size)
    assert text_in(format, client.ask(stream=size > 0, size=size or 1)) == "Well."
    assert [row.message.result.state for row in client.chat.history() if row.message.result][-1] == "error"
    unchanged(client)


@pytest.mark.parametrize("size", WAYS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_model_that_only_expands_is_stopped(format: str, size: int):
    endless = [expansion(f"e{number}", f'{{"handle": "m3", "lines": "{number + 1}"}}') for number in range(30)]
    client = begun(format, *endless, size=size)
    before = len(client.model.requests)
    answer = client.ask(stream=size > 0, size=size or 1)
    assert len(client.model.requests) - before == MAX_EXPANSIONS + 2
    assert f"`expand` {MAX_EXPANSIONS} times" in said(client.model.requests[-1])
    assert calls_in(format, answer) == []
    first = (answer.get("choices") or answer.get("candidates") or [{}])[0]
    stop = answer.get("stop_reason") or answer.get("status") or first.get("finish_reason") or first["finishReason"]
    assert stop in ("end_turn", "completed", "stop", "STOP")
    client.say("Go on.")
    client.model._answers = iter([say("Well.")])
    client.ask(stream=size > 0, size=size or 1)
    unchanged(client)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_cut_anywhere_records_nothing_and_the_next_request_is_legal(format: str):
    client = begun(format, expansion("e1", text="Let me look."), say("Well."), expansion("e2"), say("Now."))
    request = client.request(stream=True)
    response = client.model.answer(json.loads(request.content)).response
    sent, count = b"".join(events(response, usage=True)), len(client.chat)
    for end in range(0, len(sent) - 60, 97):
        cut = client.request(stream=True)
        out = cut.feed(sent[:end]) + cut.ended()
        if cut.follow_up is None:
            assert b'"e1"' not in out
            assert len(client.chat) == count
            assert b"[DONE]" not in out
            assert b"message_stop" not in out
        else:
            assert format == "openai"  # The reason for the end has come; only the usage is missing.
            break
    client.ask(stream=True)
    unchanged(client)


@pytest.mark.parametrize("format", FORMATS)
def test_an_error_of_a_follow_up_ends_the_stream(format: str):
    client = begun(format, expansion("e1", text="Let me look."), say("Well."))
    request = client.request(stream=True)
    response = client.model.answer(json.loads(request.content)).response
    out = request.feed(b"".join(events(response, usage=True))) + request.ended()
    assert request.follow_up
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    for content in (json.dumps(error).encode(), b"<html>", b""):
        event = request.failure(529, content)
        data = json.loads(event if format == "gemini" else event.split(b"data: ", 1)[1])
        assert data.get("error") or data["message"]
        assert event.endswith(b"\n\n")
    assert b"message_stop" not in out
    assert text_in(format, client.ask()) == "Well."  # The client asks again.
    assert client.store.names("") == ["c"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_follow_up_that_is_too_long_is_made_smaller(format: str):
    client = begun(format, expansion("e1", '{"handle": "m3"}'), say("Well."), policy="balanced", window=9_000)
    request = client.request()
    response = client.model.answer(json.loads(request.content)).response
    assert request.received(json.dumps(response).encode()) is None
    error = {"error": {"message": "prompt is too long: 9000 tokens > 6000 maximum", "code": "context_length_exceeded"}}
    before = request.content
    assert request.refused(400, json.dumps(error).encode())
    assert request.follow_up == request.content
    assert len(request.content) < len(before)
    assert not request.refused(500, b"")


def test_thinking_stays_in_the_history_and_is_sent_once():
    replies = [
        expansion("e1", thought="Where is it?", text="Let me look."),
        reply(read("r3"), thought="Aha.", text="One more."),
        reply(thought="So.", text="Well."),
    ]
    client = begun("anthropic", *replies, model="claude-opus-5-5", policy="none")
    answer = client.ask(stream=True)
    kinds = [block["type"] for block in answer["content"]]
    assert kinds == ["thinking", "text", "thinking", "text", "tool_use"]
    client.give("ok")
    client.ask(stream=True)
    sent = client.model.requests[-1]["messages"]
    blocks = [block for message in sent for block in message["content"] if isinstance(block, dict)]
    thoughts = [block for block in blocks if block["type"] == "thinking"]
    assert [block["thinking"] for block in thoughts] == ["Where is it?", "Aha."]
    assert {block["signature"] for block in thoughts} < {block.get("signature") for block in answer["content"]}
    unchanged(client)


def test_an_answer_that_looks_like_its_last_reply_is_the_history_s_own():
    client = begun("anthropic", expansion("e1", thought="Where?"), reply(thought="So.", text="Well."), say("Yes."))
    assert [block["type"] for block in client.ask()["content"]] == ["thinking", "thinking", "text"]
    client.say("Sure?")
    client.ask()
    assert said(client.model.requests[-1]).count('"Where?"') == 1
    unchanged(client)


def fail_to_record(*args: object, **keywords: object) -> str:
    raise ZeroDivisionError("the disk is full")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_that_cannot_be_recorded_reaches_the_client(
    format: str, stream: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    client = begun(format, reply(read("r3"), text="Let me look."))
    monkeypatch.setattr(client.chat._session.exchange, "record", fail_to_record)
    answer = client.ask(stream=stream, size=10**6)
    assert (text_in(format, answer), calls_in(format, answer)) == ("Let me look.", ["r3"])
    assert "the disk is full" in caplog.text


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_that_cannot_be_continued_is_an_error(format: str, monkeypatch: pytest.MonkeyPatch):
    """An answer without its calls would end the work of the client, which asks again for an error."""
    client = begun(format, *[expansion("e1", text="Let me look.")] * 2, say("Well."))
    with monkeypatch.context() as patch:
        patch.setattr(client.chat._session.exchange, "record", fail_to_record)
        request, streamed = client.request(), client.request(stream=True)
        response = client.model.answer(json.loads(request.content)).response
        with pytest.raises(NotContinued, match=r"Send the request again\. the disk is full"):
            request.received(json.dumps(response).encode())
        end = streamed.feed(b"".join(events(response, usage=True))) + streamed.ended()
    assert (request.follow_up, streamed.follow_up) == (None, None)
    assert b"Send the request again. the disk is full" in end.split(b"data: ")[-1]
    assert not any(word in end for word in (b"message_stop", b'"stop"', b"response.completed"))
    assert text_in(format, client.ask()).endswith("Well.")


@pytest.mark.parametrize("format", FORMATS)
def test_questions_behind_one_list_get_their_own_answers(format: str):
    """An agent asks them at the same time. Each answer expands something."""
    questions = {"First?": 1, "Second?": 2, "Third?": 3}
    client = begun(format, *(expansion(f"e{count}") for count in questions.values()), *map(say, questions))
    items, requests = client.items, list[WireRequest]()
    for question, count in questions.items():
        client.items = [*items, *[spoken(format, question)] * count]  # None is as long as another one.
        requests.append(client.request())
    replies = [client.model.answer(json.loads(request.content)).response for request in requests]
    for number in (1, 0, 2):
        assert requests[number].received(json.dumps(replies[number]).encode()) is None
    for question, request in zip(questions, requests, strict=True):
        sent = said(json.loads(request.content))
        assert [sent.count(each) for each in questions] == [
            count if each == question else 0 for each, count in questions.items()
        ]
        assert [sent.count(f'"e{count}"') for count in questions.values()] == [
            2 if each == question else 0 for each in questions
        ]  # The call, and its result.
        whole = request.received(json.dumps(client.model.answer(json.loads(request.content)).response).encode())
        assert whole is not None
        assert text_in(format, json.loads(whole)) == question


@pytest.mark.parametrize("format", FORMATS)
def test_a_reply_is_stored_behind_its_own_question(format: str, caplog: pytest.LogCaptureFixture):
    """The list of the client brings a reply to a question that is not the newest one."""
    client = begun(format, say("One."), say("Two."), say("Three."))
    items, requests = client.items, list[WireRequest]()
    for question in ("First?", "Second?"):
        client.items = [*items, spoken(format, question)]
        requests.append(client.request())
    for request in requests:
        assert request.received(json.dumps(client.model.answer(json.loads(request.content)).response).encode())
    assert [row.message.text for row in client.chat.history()][-2:] == ["Second?", "Two."]
    assert "Another request of 'c' went on first." in caplog.text
    client.items = [*items, spoken(format, "First?"), spoken(format, "One.", "assistant")]
    client.say("So?")
    client.ask()
    sent = said(client.model.requests[-1])
    assert [sent.count(text) for text in ("First?", "One.", "Second?", "Two.")] == [1, 1, 0, 0]


@pytest.mark.parametrize("question", ["First?", "Second?"])
@pytest.mark.parametrize("format", FORMATS)
def test_another_process_goes_on_at_any_moment_of_an_expansion(format: str, question: str):
    """Two agents whose lists begin alike, such as forks of one session, meet in the same conversation."""
    for n in range(1, 200):
        plain = MemoryStore()
        store: Any = Interrupted(plain)
        client = begun(format, expansion("e1"), store=store)
        other = Client(format, [say("Two.")], store=plain)
        other.items = [*client.items, spoken(format, question), spoken(format, "Other?")]
        client.say("First?")
        request = client.request()
        reply = client.model.answer(json.loads(request.content)).response
        store.interrupt(n, other.ask)
        with suppress(NotContinued):
            assert request.received(json.dumps(reply).encode()) is None
            sent = said(json.loads(request.content))
            assert [sent.count(text) for text in ("First?", '"e1"', "Other?", "Two.")] == [1, 2, 0, 0]
            assert len(request.take_answered()) == 1
            asked = [row for row in client.chat.history() if "expand" in names_in([row.message])]
            # However often it was tried. The bill may stand in a former course.
            assert sum(row.stamp.usage is not None for row in asked) <= 1
        if store.has_waited():
            break
        other.say("Go on.")
        sent = said(json.loads(other.request().content))
        assert [sent.count(text) for text in ("Other?", "Two.")] == [1, 1]
        if question != "First?":  # Behind the same question, the expansion belongs to both lists.
            assert '"e1"' not in sent
    else:
        pytest.fail("There is no end of operations.")
    assert n > 5


@pytest.mark.parametrize("format", FORMATS)
def test_another_process_goes_on_at_any_moment_of_planning(format: str):
    for n in range(1, 200):
        plain = MemoryStore()
        store: Any = Interrupted(plain)
        client = begun(format, store=store)
        other = Client(format, [say("Two.")], store=plain)
        other.items = [*client.items, spoken(format, "Second?")]
        client.give(LOG)  # There is a result to shorten.
        client.say("First?")
        store.interrupt(n, other.ask)
        sent = said(json.loads(client.request().content))
        assert [sent.count(text) for text in ("First?", "Second?", "Two.")] == [1, 0, 0]
        if store.has_waited():
            break
    else:
        pytest.fail("There is no end of operations.")
    assert n > 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_request_made_smaller_shows_its_own_list(format: str):
    client = begun(format, policy="balanced", window=9_000)
    items, requests = client.items, list[WireRequest]()
    for questions in (["First?"], ["Second?", "Or which?"]):
        client.items = [*items, *(spoken(format, question) for question in questions)]
        requests.append(client.request())
    error = {"error": {"message": "prompt is too long: 9000 tokens > 6000 maximum", "code": "context_length_exceeded"}}
    assert requests[0].refused(400, json.dumps(error).encode())
    sent = said(json.loads(requests[0].content))
    assert [sent.count(question) for question in ("First?", "Second?", "Or which?")] == [1, 0, 0]


def test_expansions_are_not_offered_where_the_provider_stores_responses():
    client = Client("openai_responses", [say("Hi.")])
    client.fields = {}
    client.say("Hello.")
    client.ask()
    assert [tool["name"] for tool in client.model.requests[-1]["tools"]] == ["read"]


@pytest.mark.parametrize(
    ("format", "choice"),
    [
        ("anthropic", {"tool_choice": {"type": "none"}}),
        ("anthropic", {"tool_choice": {"type": "tool", "name": "read"}}),
        ("openai", {"tool_choice": "none"}),
        ("openai", {"tool_choice": {"type": "function", "function": {"name": "read"}}}),
        ("openai_responses", {"tool_choice": "none"}),
        ("openai_responses", {"tool_choice": {"type": "function", "name": "read"}}),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}}}),
    ],
)
def test_a_choice_that_forbids_expansions_changes_no_other_byte(format: str, choice: dict[str, Any]):
    """The tools, the instruction and the notes are in the cached prefix, and the next request may expand again."""
    client = begun(format, reply(read("r3")), expansion("e1"), say("Done."))
    plain = json.loads(client.request().content)
    assert "expand" in said({"tools": plain["tools"]})
    client.fields |= choice
    assert json.loads(client.request().content) == {**plain, **choice}
    client.ask(stream=True)
    client.give("ok")
    for key in choice:
        del client.fields[key]
    client.ask(stream=True)
    assert LOG.splitlines()[7] in said(client.model.requests[-1])
    unchanged(client)


def test_a_tool_of_the_client_with_the_same_name_is_its_own():
    own = {"name": "expand", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    client = Client("anthropic", [reply(ToolCall("x1", "expand", '{"path": "a"}')), say("Hi.")])
    client.fields["tools"] = [own]
    client.say("Hello.")
    assert calls_in("anthropic", client.ask(stream=True)) == ["x1"]
    client.give("ok")
    client.ask(stream=True)
    unchanged(client)


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_of_the_client_joins_the_last_text_before_it(format: str):
    """A client of Responses gets the texts of three replies, and its list holds the last one with the call."""
    looks = [expansion("e1", text="Let me look. "), expansion("e2", text="And again. ")]
    client = begun(format, *looks, reply(*expansion("e3").calls, read("r3")), say("Done."))
    client.ask()
    client.give("ok")
    client.ask()
    unchanged(client)


@pytest.mark.parametrize("format", FORMATS)
def test_a_text_that_is_said_again_after_a_silent_expansion_is_new(format: str):
    look = expansion("e1", text="Let me look. ")
    again = expansion("e3", text="Let me look. ")
    client = begun(format, look, expansion("e2"), say("Done."), again, say("Yes."), say("I am."))
    client.ask()
    for words in ("Go on.", "Sure?"):
        client.say(words)
        client.ask()
    unchanged(client)


def test_a_text_that_is_said_again_after_a_joined_answer_is_new():
    joined = [expansion("e1", text="Hm. "), reply(*expansion("e2").calls, read("r3"))]
    client = begun("openai_responses", *joined, say("Done."), expansion("e3", text="Hm. "), say("Yes."), say("I am."))
    client.ask()
    client.give("ok")
    client.ask()
    for words in ("Go on.", "Sure?"):
        client.say(words)
        client.ask()
    unchanged(client)


texts = st.sampled_from(["", "", "Let me look. ", "Hm. "])
requests = st.sampled_from(['{"handle": "m3"}', '{"handle": "m3", "lines": "1-2"}', '{"search": "line"}', "{}"])


@st.composite
def replies(draw: st.DrawFn) -> list[Message]:
    """Replies of a model: expansions, calls of the client, both, and texts, with equal words again and again."""
    made: list[Message] = []
    for number in range(draw(st.integers(2, 9))):
        ours = [ToolCall(f"e{number}-{n}", "expand", draw(requests)) for n in range(draw(st.integers(0, 2)))]
        own = [read(f"r{number}-{n}") for n in range(draw(st.sampled_from([0, 0, 1, 2])))]
        calls = draw(st.permutations([*ours, *own]))
        made.append(reply(*calls, text=draw(texts) if calls else "Done.", thought=draw(st.sampled_from(["", "Hm"]))))
    return made


@settings(max_examples=settings.default.max_examples // 2)
@given(st.sampled_from(FORMATS), replies(), st.sampled_from([0, 7, 10**6]), st.data())
def test_every_client_sees_legal_answers_and_its_list_changes_nothing(
    format: str, script: list[Message], size: int, data: st.DataObject
):
    if format != "anthropic":
        script = [Message("assistant", message.parts[-len(message.calls) - bool(message.text) :]) for message in script]
    client = begun(format, *script, *[say("End.")] * 20, size=size)
    for number in range(4):
        answer = client.ask(stream=size > 0, size=size or 1)
        assert not any(id.startswith("e") for id in calls_in(format, answer))
        if number == 3:
            break
        if calls_in(format, answer):
            client.give("ok")
        else:
            client.say("Go on.")
        if data.draw(st.booleans()):
            client.chat = client.opened()
    unchanged(client)
