"""Frames of Amazon Bedrock: every event of an answer in frames is that of the same answer in server-sent events."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from aws_frames import METRICS, as_sse, chunk, events_in, exception, framed, frames_in
from client import expansion, read, reply
from hypothesis import given
from hypothesis import strategies as st

from foveate import Message, ToolCall
from foveate.requests.answer import Answer
from foveate.requests.event_frames import Frame, FrameSplitter, write_chunk, write_exception
from foveate.requests.framed_answer import FramedAnswer
from foveate.testing import ScriptedModel, say

EXPAND = ToolCall("e1", "expand", '{"handle": "m3"}')
EXAMPLE = bytes.fromhex("0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936")
"""The frame `payload_no_headers` of AWS's test vectors for event streams."""
ANSWERS = {
    "text": [say("Log 7 has an error.")],
    "call": [reply(read("c1"))],
    "expand": [expansion("e1"), say("Log 7.")],
    "text and expand": [expansion("e1", text="Let me see."), say("Log 7.")],
    "twice": [expansion("e1", text="A."), expansion("e2", text="B.", thought="Hm."), reply(read("c1"), text="C.")],
    "both": [reply(EXPAND, read("c1"), text="Let me see.")],
    "both in the other order": [reply(read("c1"), EXPAND, read("c2"))],
    "not continued": [expansion("e1", text="Let me see.")],
}


def responses(replies: Sequence[Message]) -> list[dict[str, Any]]:
    model = ScriptedModel(replies, "anthropic")
    request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Which log?"}]}
    return [model.answer(request).response for _ in replies]


def passed(answer: Answer, streams: Sequence[Sequence[bytes]]) -> bytes:
    """Return what a client gets for streams that continue each other."""
    out = b""
    for number, pieces in enumerate(streams):
        if number:
            assert answer.asks_only_us
            answer.continue_with_next()
        out += b"".join(map(answer.feed, pieces)) + answer.rest()
    return out + answer.close()


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("size", [1, 50, 1000, 100_000])
def test_frames_hold_the_events_of_the_same_answer(name: str, size: int):
    """`size`: bytes of a piece."""
    streams = [b"".join(framed(each, number)) for number, each in enumerate(responses(ANSWERS[name]))]
    plain = passed(Answer("anthropic", {"expand"}.__contains__), [[as_sse(stream)] for stream in streams])
    cut = [[stream[at : at + size] for at in range(0, len(stream), size)] for stream in streams]
    answer = FramedAnswer("anthropic", {"expand"}.__contains__)
    out = passed(answer, cut)
    lines = [line.removeprefix(b"data: ") for line in plain.splitlines() if line.startswith(b"data: ")]
    assert events_in(out) == [json.loads(line) for line in lines]
    assert out.startswith(before_expand(streams[0]))  # A frame whose event passes keeps its bytes.
    assert answer.reply() == last_reply(streams[-1])
    if name in ("text", "call"):
        assert out == streams[0]


def before_expand(stream: bytes) -> bytes:
    """Return the frames before the call of `expand`, or before the two at the end of the message."""
    came = [raw for raw, _, _ in frames_in(stream)]
    ours = [at for at, raw in enumerate(came) if '"name": "expand"' in json.dumps(events_in(raw))]
    return b"".join(came[: ours[0] if ours else -2])


def last_reply(stream: bytes) -> dict[str, Any] | None:
    answer = Answer("anthropic", {"expand"}.__contains__)
    answer.feed(as_sse(stream))
    return answer.reply()


def test_metrics_of_all_calls_are_in_the_last_event():
    streams = [framed(each, number) for number, each in enumerate(responses(ANSWERS["twice"]))]
    out = passed(FramedAnswer("anthropic", {"expand"}.__contains__), streams)
    metrics = [events_in(b"".join(frames))[-1][METRICS] for frames in streams]
    assert events_in(out)[-1][METRICS] == {
        **metrics[-1],
        "outputTokenCount": sum(each["outputTokenCount"] for each in metrics),
        "invocationLatency": sum(each["invocationLatency"] for each in metrics),
    }


def test_an_example_of_aws_is_a_frame():
    event = b": a frame without an event\n\n"
    for size in (1, 5, 100):
        splitter = FrameSplitter()
        pieces = [EXAMPLE[at : at + size] for at in range(0, len(EXAMPLE), size)]
        assert [frame for piece in pieces for frame in splitter.feed(piece)] == [Frame(EXAMPLE, event)]
        assert splitter.rest() == b""


def test_headers_of_all_types_are_read():
    """AWS has ten types. Bedrock's are texts, but gateways may add others."""
    values = [b"\0", b"\1", b"\2a", b"\3ab", b"\4abcd", b"\5abcdefgh", b"\6\0\3abc"]
    values += [b"\x08abcdefgh", b"\x09" + b"a" * 16]
    more = b"".join(b"\1" + b"abcdefghi"[at : at + 1] + value for at, value in enumerate(values))
    plain = chunk({"type": "ping"})
    raw = with_headers(plain, more)
    [frame] = FrameSplitter().feed(raw)
    assert frame == Frame(raw, b'event: ping\ndata: {"type":"ping"}\n\n')
    [frame] = FrameSplitter().feed(with_headers(plain, b"\xff", is_last=True))  # A name without an end.
    assert frame.event == b": a frame without an event\n\n"


def with_headers(raw: bytes, more: bytes, *, is_last: bool = False) -> bytes:
    """Return a frame with more headers before its own, or behind them."""
    size, head = struct.unpack_from(">II", raw)
    own, payload = raw[12 : 12 + head], raw[12 + head : -4]
    prelude = struct.pack(">II", size + len(more), head + len(more))
    rest = prelude + struct.pack(">I", zlib.crc32(prelude)) + (own + more if is_last else more + own) + payload
    return rest + struct.pack(">I", zlib.crc32(rest))


def test_written_frames_are_whole():
    event = b'{"type":"ping","text":"\xc3\xa9"}'
    assert events_in(write_chunk(event)) == [json.loads(event)]
    for status, kind in {
        429: "throttlingException",
        400: "validationException",
        418: "internalServerException",
    }.items():
        for content in (b'{"message":"Slow."}', b'{"type":"error","error":{"message":"Slow."}}', b"Slow."):
            [(raw, headers, payload)] = frames_in(write_exception(status, content))
            assert (headers, json.loads(payload)) == (
                {
                    ":exception-type": kind,
                    ":content-type": "application/json",
                    ":message-type": "exception",
                },
                {"message": "Slow."},
            )
            assert raw == b"".join(frame.raw for frame in FrameSplitter().feed(raw))


def test_an_exception_is_an_error_inside():
    [frame] = FrameSplitter().feed(exception("throttlingException", "Slow."))
    error = {"type": "error", "error": {"type": "throttlingException", "message": "Slow."}}
    assert frame.event.startswith(b"event: error\ndata: ")
    assert json.loads(frame.event.split(b"data: ")[1]) == error


@given(st.binary(max_size=200))
def test_bytes_that_are_no_frames_come_back(content: bytes):
    splitter = FrameSplitter()
    found = b"".join(frame.raw for byte in content for frame in splitter.feed(bytes([byte])))
    assert found + splitter.rest() == content
