"""Ids of messages, stamps and records, to the last digit, and round trips of their bytes."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core import ids, wire
from foveate.core.edits import Hide, Pin, Record, Replace, Restore, Span, Summarize, Target, Unpin
from foveate.core.messages import Extra, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, user
from foveate.core.stamps import Expansion, Lease, PartRetention, Retention, Stamp, Stop, Usage
from foveate.errors import BadEdit, BadMessage
from foveate.testing import say
from foveate.testing.strategies import edits, messages

MANY = settings(max_examples=settings.default.max_examples * 4)
ONE, TWO = "1" * 40, "2" * 40

SAID = Message(
    "assistant",
    (
        Reasoning("hm", "c2ln", "eHg=", "anthropic", Extra("anthropic", '{"a":1}')),
        Text("żółw"),
        ToolCall("a", "t", '{"b": 2}'),
    ),
    "bot",
    Extra("openai", '{"x":null}'),
)
ANSWER = Message(
    "tool",
    (
        ToolResult(
            "a", (Text("ok"), Media("image/png", "base64", "AAAA", "p.png"), Opaque("other", "k", "{}")), "error", "t"
        ),
    ),
)
STAMP = Stamp(3, 1_700_000_000_000, 42, "assistant", "run-1", Usage(10, 20, None, 5, 2), 31)
RECORD = Record(
    4,
    (
        Replace(Target(ONE, (0, 1)), (Text("x"),), "p", "r", 9, 1),
        Hide(Span(ONE, TWO)),
        Hide(Target(ONE)),
        Summarize(Span(ONE, TWO), "s"),
        Restore((Target(ONE), Span(ONE, TWO)), (1, 2)),
        Pin(Target(ONE)),
        Unpin(Target(ONE)),
    ),
    3,
    5,
    TWO,
    7,
    9,
    8,
    7,
    6,
    "plan",
)


# ------------------------------------------------------------------------------------------------------------ identity


def test_message_ids_stay_the_same_across_versions():
    """Changing one of these digits changes the ids of all stored conversations. Add a version instead."""
    bodies = [wire.encode_message(message) for message in (SAID, ANSWER)]
    assert (
        bodies[0]
        == (
            '{"role":"assistant","parts":[{"type":"reasoning","text":"hm","signature":"c2ln","encrypted":"eHg=",'
            '"format":"anthropic","extra":["anthropic","{\\"a\\":1}"]},{"type":"text","text":"żółw"},'
            '{"type":"tool_call","call_id":"a","name":"t","arguments":"{\\"b\\": 2}"}],"name":"bot",'
            '"extra":["openai","{\\"x\\":null}"]}'
        ).encode()
    )
    assert bodies[1] == (
        b'{"role":"tool","parts":[{"type":"tool_result","call_id":"a","content":[{"type":"text","text":"ok"},'
        b'{"type":"media","mime":"image/png","source":"base64","data":"AAAA","name":"p.png"},'
        b'{"type":"opaque","format":"other","kind":"k","body":"{}"}],"state":"error","name":"t"}]}'
    )
    hashes = [ids.body_hash(body) for body in bodies]
    assert hashes == ["eb7f3d58291b5849b64733746b610e417048611c", "628f0bc3e2df3962b31bc7361a6e7a5cf2931797"]
    first = ids.message_id(ids.NO_PARENT, hashes[0])
    assert first == "034fa23a14a2aab5fed14ed08812d307c7e99959"
    assert ids.message_id(first, hashes[1]) == "877861fbd3d3fe470f1a4133fd429123c6eec324"


def test_stamp_links_stay_the_same_across_versions():
    stamp = wire.encode_stamp(STAMP)
    assert stamp.hex() == "9703cf0000018bcfe568002aa9617373697374616e74a572756e2d31950a14c005021f"
    first = ids.seal(ids.NO_PARENT, ONE, stamp)
    assert first == "200c3a62c56471bc556c158464f9611b17b54c8f"
    assert ids.seal(first, TWO, stamp) == "044957abe4c43204c9205b4f757c28fa23f768b8"
    message = replace(
        STAMP,
        lease=Lease(2, "compact"),
        retention=Retention(4, (PartRetention(), PartRetention(False, 2))),
        metadata="{}",
    )
    longer = wire.encode_stamp(message)
    assert longer[1:].startswith(stamp[1:])
    assert (wire.decode_stamp(longer), wire.decode_stamp(stamp)) == (message, STAMP)


def test_record_ids_stay_the_same_across_versions():
    body = wire.encode_record(RECORD)
    assert (
        body
        == (
            f'{{"first":4,"edits":[{{"type":"replace","target":["at","{ONE}",[0,1]],"content":[{{"type":"text","text":"x"}}],'
            '"policy":"p","reason":"r","tokens_before":9,"tokens_after":1},'
            f'{{"type":"hide","target":["span","{ONE}","{TWO}"]}},{{"type":"hide","target":["at","{ONE}",[]]}},'
            f'{{"type":"summarize","span":["span","{ONE}","{TWO}"],"text":"s"}},'
            f'{{"type":"restore","targets":[["at","{ONE}",[]],["span","{ONE}","{TWO}"]],"edits":[1,2]}},'
            f'{{"type":"pin","target":["at","{ONE}",[]]}},{{"type":"unpin","target":["at","{ONE}",[]]}}],'
            f'"turn":3,"time":5,"tip":"{TWO}","position":7,"tokens_before":9,"tokens_after":8,"bytes_before":7,'
            '"bytes_after":6,"author":"plan"}'
        ).encode()
    )
    first = ids.legacy_record_id(ids.NO_PARENT, body)
    assert first == "515a36179ff37fb0d5c2cdb413f93de2420514ae"
    assert ids.legacy_record_id(first, body) == "51de83175687bd567e4cb1c85c3e919ce3948571"


def test_equal_bytes_differ_by_chain_and_parent():
    body = wire.encode_message(user("hi"))
    names = [
        ids.body_hash(body),
        ids.message_id("", ids.body_hash(body)),
        ids.message_id(ONE, ids.body_hash(body)),
        ids.seal("", ONE, body),
        ids.seal("", TWO, body),
        ids.seal(ONE, TWO, body),
        ids.record_id("", body),
        ids.record_id(ONE, body),
        ids.legacy_record_id("", body),
    ]
    assert len({*names}) == len(names)
    assert {len(name) for name in names} == {40}
    assert len({ids.body_hash(wire.encode_message(m)) for m in (user("hi"), say("hi"), user("hi "), user("hí"))}) == 4


# ------------------------------------------------------------------------------------------------------- there and back


@MANY
@given(messages())
def test_any_message_survives_a_round_trip(message):
    body = wire.encode_message(message)
    assert wire.decode_message(body) == message
    assert wire.encode_message(wire.decode_message(body)) == body


@MANY
@given(edits([ONE, TWO]), st.integers(1, 10**6))
def test_any_record_survives_a_round_trip(result, number):
    record = Record(number, tuple(result), 1, 2, ONE, 3)
    assert wire.decode_record(wire.encode_record(record)) == record
    assert record.last == number + len(result) - 1
    assert [n for n, _ in record.numbered()] == list(range(number, number + len(result)))


@MANY
@given(
    st.builds(
        Stamp,
        st.integers(0, 2**40),
        st.integers(0, 2**53),
        st.integers(0, 2**40),
        st.sampled_from(["system", "user", "assistant", "tool", "plugin", "summary", "derived"]),
        st.text(st.characters(codec="utf-8"), max_size=5),
        st.none() | st.builds(Usage, *[st.none() | st.integers(0, 2**40)] * 5),
        st.integers(0, 2**40),
        step=st.sampled_from(["", "r1/3"]),
        stop=st.none() | st.builds(Stop, st.sampled_from(["end", "length", "other"]), st.sampled_from(["", "x"])),
    )
)
def test_any_stamp_survives_a_round_trip(stamp):
    assert wire.decode_stamp(wire.encode_stamp(stamp)) == stamp


def test_ten_megabytes_of_text_survive_a_round_trip():
    message = user('żółw 🐢 \\ " \n' * 900_000)
    body = wire.encode_message(message)
    assert len(message.text) > 10_000_000
    assert wire.decode_message(body) == message


def test_nul_and_control_characters_survive():
    message = user("".join(map(chr, range(32))) + "\x7f\u2028\ufeff\U0010ffff")
    assert wire.decode_message(wire.encode_message(message)) == message


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "message",
    [
        user("half \ud83d of a pair"),
        Message("user", (Text("x", Extra("openai", '"\udc00"')),)),
        Message("user", (Text("x"),), name="\ud800"),
        Message("assistant", (ToolCall("\ud800", "t"),)),
        Message("assistant", (ToolCall("a", "t", '{"x":"\ud800"}'),)),
        Message("tool", (ToolResult("a", (Text("\ud800"),)),)),
        Message("user", (Media("image/png", "url", "https://\ud800"),)),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_anywhere(message):
    with pytest.raises(BadMessage, match="surrogatepass"):
        wire.encode_message(message)


def test_the_repair_in_the_error_keeps_whole_pairs():
    mended = "a\ud83d\ude00b\ud83dc".encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert mended == "a😀b\ufffdc"
    wire.encode_message(user(mended))


def test_half_of_a_surrogate_pair_in_an_edit_is_a_bad_edit():
    for edit in (
        Pin(Target(ONE), reason="\ud800"),
        Summarize(Span(ONE, TWO), "\ud800"),
        Replace(Target(ONE), (Text("\ud800"),)),
    ):
        with pytest.raises(BadEdit, match="surrogate"):
            wire.encode_record(Record(1, (edit,), 1, 1, ONE, 1))


# ------------------------------------------------------------------------------------------------ from a later version


def from_later(**parts: object) -> bytes:
    return json.dumps({"role": "assistant", "parts": [{"type": "text", "text": "hi"}, parts]}).encode()


def test_unknown_fields_are_ignored():
    later = {"role": "user", "mood": "calm", "parts": [{"type": "text", "text": "hi", "lang": "en"}]}
    assert wire.decode_message(json.dumps(later).encode()) == user("hi")
    record = json.loads(wire.encode_record(RECORD)) | {"cause": "why"}
    record["edits"][1]["weight"] = 3
    assert wire.decode_record(json.dumps(record).encode()) == RECORD
    packed = [*msgspec.msgpack.decode(wire.encode_stamp(STAMP)), None, None, "", None, "", None, "", "", {"more": 1}, 7]
    assert wire.decode_stamp(msgspec.msgpack.encode(packed)) == STAMP


def test_shorter_stamps_of_earlier_versions_are_read():
    assert wire.decode_stamp(msgspec.msgpack.encode([3, 5, 42, "user"])) == Stamp(3, 5, 42, "user")


def test_a_stamp_keeps_its_bytes_of_earlier_versions():
    leased = replace(STAMP, lease=Lease(2), metadata="{}")
    expanded = replace(STAMP, expanded=Expansion("lines", "m3", "0" * 40))
    stepped = replace(STAMP, step="run/3")
    stopped = replace(STAMP, stop=Stop("length", "max_tokens"))
    named = replace(STAMP, model="claude-opus-5-5")
    every = [STAMP, leased, expanded, stepped, stopped, named]
    packed = [wire.encode_stamp(stamp) for stamp in every]
    assert [len(msgspec.msgpack.decode(one)) for one in packed] == [7, 10, 11, 12, 13, 14]
    assert [wire.decode_stamp(one) for one in packed] == every
    # The form before stamps had stops: all twelve fields, in order.
    earlier = (3, 1_700_000_000_000, 42, "assistant", "run-1", (10, 20, None, 5, 2), 31, None, None, "", None, "run/3")
    assert packed[3] == msgspec.msgpack.encode(earlier)


def test_a_part_of_an_unknown_kind_becomes_opaque():
    body = from_later(type="hologram", content={"żółw": [1, 2.5, None]}, depth=3)
    message = wire.decode_message(body)
    assert message.parts[0] == Text("hi")
    assert message.parts[1] == Opaque(
        "foveate", "hologram", '{"type":"hologram","content":{"żółw":[1,2.5,null]},"depth":3}'
    )
    assert wire.decode_message(wire.encode_message(message)) == message


def test_an_unknown_kind_inside_a_result_becomes_opaque_there():
    body = json.dumps(
        {
            "role": "tool",
            "parts": [
                {"type": "tool_result", "call_id": "a", "content": [{"type": "text", "text": "x"}, {"type": "scent"}]}
            ],
        }
    ).encode()
    assert wire.decode_message(body) == Message(
        "tool", (ToolResult("a", (Text("x"), Opaque("foveate", "scent", '{"type":"scent"}'))),)
    )


def test_a_known_part_with_an_unknown_value_becomes_opaque():
    for part in (
        {"type": "media", "mime": "image/png", "source": "torrent", "data": "x"},
        {"type": "tool_result", "call_id": "a", "state": "postponed"},
        {"type": "text", "text": {"lines": []}},
        {"text": "no kind at all"},
    ):
        message = wire.decode_message(from_later(**part))
        assert message.parts[0] == Text("hi")
        assert message.parts[1] == Opaque("foveate", str(part.get("type")), json.dumps(part, separators=(",", ":")))


def test_an_invalid_message_raises():
    for body in (
        b"",
        b"{",
        b"7",
        b"[]",
        b'{"role":"wizard","parts":[]}',
        b'{"parts":[]}',
        b'{"role":"user","parts":7}',
    ):
        with pytest.raises(msgspec.DecodeError):
            wire.decode_message(body)
