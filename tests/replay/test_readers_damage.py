"""Damaged files and other formats: an error names them, and a lenient reading skips and counts damaged lines."""

from __future__ import annotations

import codecs
import copy
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from recorded_samples import write_document, write_lines

from foveate.core.stamps import Stamp
from foveate.core.wire import decode_message, decode_stamp, encode_message, encode_stamp
from foveate.errors import BadSetting, BadTranscript, FoveateError, UnknownFormat
from foveate.replay.recordings import READERS, read_recording, sniff
from foveate.replay.recordings.recording import Reader, Recording
from foveate.replay.recordings.source import LINE_LIMIT, Source
from foveate.stores import zstd as stored_zstd

zstd = stored_zstd.find_module()
HI = {"role": "user", "content": "Hi."}
HELLO = {"role": "assistant", "content": "Hello."}
SKIPS = "--lenient skips such lines and counts them."
MEND = "A JSON document cannot be read in part: repair it."


@pytest.mark.parametrize(
    ("damaged", "problem"),
    [
        pytest.param(b"so it goes", "it is not JSON: expecting value at column 1.", id="not JSON"),
        pytest.param(b'{"role": "user", "content": }', "it is not JSON: expecting value at column 29.", id="half JSON"),
        pytest.param(b'{"role": "user"} {}', "it is not JSON: extra data at column 18.", id="two values"),
        pytest.param(
            b'{"role": "us', "it is not JSON: unterminated string starting at column 10.", id="cut off inside"
        ),
        pytest.param(
            b'{"role": "user", "content": "\\ud800"}',
            "a text holds \\ud800, half of a surrogate pair, which cannot be stored or sent.",
            id="lone surrogate",
        ),
        pytest.param(
            b'{"role": "user", "content": "\\\\ud800 \\ud83d\\ude00 \\ude00"}',
            "a text holds \\ude00, half of a surrogate pair, which cannot be stored or sent.",
            id="lone second half, after an escaped backslash and a whole pair",
        ),
        pytest.param(
            b'{"role": "user", "content": "a\0b"}',
            "it holds a NUL byte: part of it was never written, or it is not text.",
            id="NUL byte",
        ),
        pytest.param(b"\0" * 512, "it holds a NUL byte: part of it was never written, or it is not text.", id="NULs"),
        pytest.param(b'{"role": "user", "content": "caf\xe9"}', "byte 0xe9 at column 33 is not UTF-8.", id="Latin-1"),
        pytest.param(b'{"a":' * 100_000, "it is nested too deeply to be read.", id="nested deeply"),
        pytest.param(
            b'{"role": "king", "content": "Hi."}',
            "message.role is the string 'king'. It must be system, developer, user, assistant, tool or function.",
            id="unknown role",
        ),
        pytest.param(
            b'{"role": "user", "content": 3}',
            "message.content is a number or a boolean. It must be a string or a list of parts.",
            id="content of a wrong kind",
        ),
    ],
)
def test_a_damaged_line_is_named_or_skipped_and_counted(tmp_path: Path, damaged: bytes, problem: str) -> None:
    path = write_lines(tmp_path / "chat.jsonl", HI, damaged, HELLO)
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert str(stopped.value) == f"{path}, line 2: {problem} {SKIPS}"
    assert (stopped.value.path, stopped.value.line) == (str(path), 2)
    skipped = read_recording(path, lenient=True)
    assert [(entry.message.text, entry.line) for entry in skipped.messages] == [("Hi.", 1), ("Hello.", 3)]
    assert skipped.notes == {"damaged lines": 1}
    assert skipped.notes_text() == "1 damaged line"


@pytest.mark.parametrize("damaged", [b"so it goes", b'{"role": "us', b"\xff\xff", b'{"a":' * 100_000])
@pytest.mark.parametrize("how_many", [1, 5])
def test_damage_at_the_beginning_does_not_hide_the_rest(tmp_path: Path, damaged: bytes, how_many: int) -> None:
    path = write_lines(tmp_path / "chat.jsonl", *[damaged] * how_many, HI, HELLO)
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert stopped.value.line == 1
    skipped = read_recording(path, lenient=True)
    assert ([entry.message.text for entry in skipped.messages], skipped.notes) == (
        ["Hi.", "Hello."],
        {"damaged lines": how_many},
    )


@pytest.mark.parametrize("cut", [10, 30, 37])
def test_a_torn_last_line_is_named_as_such(tmp_path: Path, cut: int) -> None:
    path = write_lines(tmp_path / "chat.jsonl", HI)
    last = '{"role": "assistant", "content": "Grüezi"}'.encode()
    assert last[:37].endswith(b"\xc3")  # The middle of a letter.
    path.write_bytes(path.read_bytes() + last[:cut])
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    problem = "the last line is cut off in the middle: its writer was stopped, or is still writing."
    assert str(stopped.value) == f"{path}, line 2: {problem} {SKIPS}"
    assert read_recording(path, lenient=True).notes == {"damaged lines": 1}


def test_a_torn_line_may_end_with_a_bracket(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "chat.jsonl", HI)
    path.write_bytes(path.read_bytes() + b'{"role": "assistant", "meta": {}')
    with pytest.raises(BadTranscript, match="the last line is cut off in the middle"):
        read_recording(path)


def test_a_line_above_the_limit_is_named_or_skipped(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "chat.jsonl", HI, {"role": "user", "content": "x" * 2_000_000}, HELLO)
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path, line_limit=100_000)
    assert str(stopped.value) == (
        f"{path}, line 2: the line is longer than the limit of 100,000 bytes (line_limit of read_recording). {SKIPS}"
    )
    passed = read_recording(path, line_limit=100_000, lenient=True)
    assert ([entry.line for entry in passed.messages], passed.notes) == ([1, 3], {"damaged lines": 1})
    assert len(read_recording(path).messages) == 3


@pytest.mark.parametrize("lenient", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_line_of_200_megabytes_uses_at_most_twice_the_limit(tmp_path: Path, lenient: bool) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(b'{"role": "user", "content": "')
        file.truncate(200 * 10**6)
    tracemalloc.start()
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path, lenient=lenient)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "67,108,864 bytes" in str(stopped.value) or lenient
    assert peak < 2.1 * LINE_LIMIT


def test_a_few_megabytes_are_enough_to_recognise_a_format(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "chat.jsonl", *[{"role": "user", "content": "x" * 10**6}] * 40)
    tracemalloc.start()
    assert sniff(path) == "chat"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15 * 10**6
    path = write_lines(path, {"x": "x" * 5 * 10**6}, {"y": 2})
    with pytest.raises(UnknownFormat, match=r"JSON Lines whose first object is an object with the keys x\."):
        sniff(path)


def test_a_reader_that_exhausts_the_stack_reports_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(source: Source) -> Recording:
        raise RecursionError

    monkeypatch.setattr("foveate.replay.recordings.READERS", (Reader("deep", lambda sample: True, exhausted),))
    path = write_lines(tmp_path / "chat.jsonl", HI)
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert stopped.value.problem == "it is nested too deeply to be read."


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"", "the file is empty. Name a file that holds a recording.", id="empty"),
        pytest.param(b" \n\t\r\n ", "it holds only white space. Name a file that holds a recording.", id="white space"),
        pytest.param(
            codecs.BOM_UTF8 + b"\n", "it holds only white space. Name a file that holds a recording.", id="a mark only"
        ),
        pytest.param(
            json.dumps(HI).encode("utf-16"),
            "it is UTF-16, not UTF-8. Convert it first (iconv -f UTF-16 -t UTF-8).",
            id="UTF-16",
        ),
        pytest.param(
            codecs.BOM_UTF16_BE + json.dumps(HI).encode("utf-16-be"),
            "it is UTF-16, not UTF-8. Convert it first (iconv -f UTF-16 -t UTF-8).",
            id="UTF-16, the other way round",
        ),
        pytest.param(
            json.dumps(HI).encode("utf-16-le"),
            "it is UTF-16 without a byte order mark, not UTF-8. Convert it first (iconv).",
            id="UTF-16 without a mark",
        ),
        pytest.param(
            json.dumps(HI).encode("utf-32"),
            "it is UTF-32, not UTF-8. Convert it first (iconv -f UTF-32 -t UTF-8).",
            id="UTF-32",
        ),
        pytest.param(
            gzip.compress(b"[]")[:-6], "its gzip data is damaged or cut off. Copy or export it again.", id="cut gzip"
        ),
        pytest.param(
            b"\x1f\x8b\x08nothing", "its gzip data is damaged or cut off. Copy or export it again.", id="bad gzip"
        ),
        pytest.param(
            zstd.compress(b"[]")[:-2], "its zstd data is damaged or cut off. Copy or export it again.", id="cut zstd"
        ),
        pytest.param(
            b"\x28\xb5\x2f\xfdnothing", "its zstd data is damaged or cut off. Copy or export it again.", id="bad zstd"
        ),
        pytest.param(b"PK\x03\x04....", "it is a ZIP archive. Unpack it first (unzip).", id="ZIP"),
        pytest.param(
            b"SQLite format 3\0....",
            "it is a SQLite database. foveate show reads it.",
            id="SQLite",
        ),
        pytest.param(
            b"\x7fELF\x02\0\0\0", "it is a binary file. A recording is a JSON or JSON Lines file.", id="binary"
        ),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_the_error_for_a_binary_file_names_its_kind(tmp_path: Path, body: bytes, problem: str, lenient: bool) -> None:
    path = tmp_path / "recording"
    path.write_bytes(body)
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path, lenient=lenient)
    assert str(stopped.value) == f"{path}: {problem}"
    assert stopped.value.line == 0


def test_a_missing_file_a_folder_and_a_pipe_have_their_own_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refusals = {}
    for name in ("missing.jsonl", "", "pipe", "a\0b", "a\ud800b"):
        with pytest.raises(BadTranscript) as stopped:
            read_recording(str(tmp_path / name))
        refusals[name] = stopped.value.problem
    assert refusals == {
        "missing.jsonl": "there is no such file.",
        "": "it is a folder, not a file.",
        "pipe": "it is not a regular file.",
        "a\0b": "no file can have this name.",
        "a\ud800b": "no file can have this name.",
    }


def test_a_utf8_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + json.dumps(HI).encode() + b"\r\n\r\n" + json.dumps(HELLO).encode() + b"\r\n")
    recording = read_recording(path)
    assert [(entry.message.text, entry.line) for entry in recording.messages] == [("Hi.", 1), ("Hello.", 3)]


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
@pytest.mark.parametrize("whole", [False, True])
def test_a_compressed_file_is_read_as_its_content(
    tmp_path: Path, whole: bool, compress: Callable[[bytes], bytes]
) -> None:
    plain, packed = tmp_path / "chat.jsonl", tmp_path / "chat.packed"
    write_document(plain, [HI, HELLO]) if whole else write_lines(plain, HI, b"so it goes", HELLO)
    packed.write_bytes(compress(plain.read_bytes()))
    unpacked = read_recording(plain, lenient=True)
    assert read_recording(packed, lenient=True) == structs.replace(unpacked, path=str(packed))
    if not whole:
        with pytest.raises(BadTranscript, match=r"packed, line 2: it is not JSON"):
            read_recording(packed)


def test_without_a_zstd_module_the_error_names_the_compression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chat.jsonl.zst"
    path.write_bytes(zstd.compress(json.dumps(HI).encode()))
    monkeypatch.setattr(stored_zstd, "find_module", lambda: None)
    with pytest.raises(BadTranscript, match=r"compressed with Zstandard. Unpack it first \(unzstd\)"):
        read_recording(path)


def test_numbers_outside_the_json_standard_are_not_damage(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "chat.jsonl", b'{"role": "user", "content": "Hi.", "time": NaN}', HELLO)
    assert [entry.time for entry in read_recording(path).messages] == [None, None]


@pytest.mark.parametrize(
    ("spoil", "line", "problem"),
    [
        pytest.param(
            lambda body: body[: len(body) // 2], None, "the document ends too early: it was cut off.", id="cut"
        ),
        pytest.param(lambda body: body.replace(b'"Hello."', b"Hello."), 8, "it is not JSON: ", id="not JSON"),
        pytest.param(lambda body: body.replace(b"Hello.", b"\xff"), 8, "byte 0xff at column 15 is not", id="not UTF-8"),
        pytest.param(lambda body: body.replace(b"Hello.", b"\0"), 8, "it holds a NUL byte", id="NUL"),
        pytest.param(lambda body: body.replace(b'"Hello."', b"[" * 100_000), 0, "it is nested too deeply", id="nested"),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_damaged_document_is_named_by_its_line_lenient_or_not(
    tmp_path: Path, spoil: Callable[[bytes], bytes], line: int | None, problem: str, lenient: bool
) -> None:
    path = write_document(tmp_path / "chat.json", [HI, HELLO])
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path, lenient=lenient)
    assert stopped.value.problem.startswith(problem)
    assert str(stopped.value).endswith(MEND)
    assert line is None or stopped.value.line == line


def test_half_a_surrogate_pair_in_every_line_is_named_with_its_line(tmp_path: Path) -> None:
    """The whole file was taken for a document, and its second line for what is too much of it."""
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": "\\ud83d"}\n{"role": "assistant", "content": "\\ud83d"}\n')
    with pytest.raises(BadTranscript) as refused:
        read_recording(path)
    assert str(refused.value) == (
        f"{path}, line 1: a text holds \\ud83d, half of a surrogate pair, which cannot be stored or sent. "
        "--lenient skips such lines and counts them."
    )


def test_half_a_surrogate_pair_in_a_document_is_named_or_replaced(tmp_path: Path) -> None:
    path = write_document(tmp_path / "chat.json", [HI, {**HELLO, "content": "one \ud83d, whole \U0001f600"}])
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert (stopped.value.line, str(stopped.value)[-23:]) == (8, " --lenient replaces it.")
    mended = read_recording(path, lenient=True)
    assert ([entry.message.text for entry in mended.messages], mended.notes) == (
        ["Hi.", "one �, whole \U0001f600"],
        {"damaged lines": 1},
    )


def test_a_malformed_message_of_a_document_is_named_by_its_number(tmp_path: Path) -> None:
    path = write_document(tmp_path / "chat.json", [HI, {"role": "user", "content": 3}, HELLO])
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert stopped.value.problem.startswith("message 2: message.content is a number")
    assert read_recording(path, lenient=True).notes == {"damaged lines": 1}


@pytest.mark.parametrize(
    ("body", "saw"),
    [
        pytest.param(
            '{"x": 1, "y": 2}\n{"x": 3}', "JSON Lines whose first object is an object with the keys x, y", id="lines"
        ),
        pytest.param(
            '{"role": "wizard", "content": "x"}',
            "a JSON document: an object with the keys role, content. Its role is 'wizard'",
            id="role",
        ),
        pytest.param('{"x": 1}', "a JSON document: an object with the keys x", id="object"),
        pytest.param("{}", "a JSON document: an empty object", id="empty object"),
        pytest.param("[]", "a JSON document: an empty list", id="empty list"),
        pytest.param("[\n3,\n4]", "a JSON document: a list of 2; the first is a number", id="numbers"),
        pytest.param('["a"]', "a JSON document: a list of 1; the first is a text", id="texts"),
        pytest.param("true", "a JSON document: true, false or null", id="true"),
        pytest.param(
            json.dumps({str(n): n for n in range(20)}),
            "a JSON document: an object with the keys 0, 1, 2, 3, 4, 5, 6, 7 and 12 more",
            id="many keys",
        ),
        pytest.param("# Notes\n\nNothing.", "text that is not JSON; it begins with '# Notes'", id="text"),
        pytest.param("[" * 300 + "]" * 300, "a JSON document: a list of 1; the first is a list", id="nested lists"),
    ],
)
def test_the_error_for_an_unknown_format_describes_the_file(tmp_path: Path, body: str, saw: str) -> None:
    path = tmp_path / "recording"
    path.write_text(body)
    for ask in (read_recording, sniff):
        with pytest.raises(UnknownFormat) as refused:
            ask(path)
        assert refused.value.saw == saw


def test_format_selects_a_reader_and_must_exist(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "chat.jsonl", HI, HELLO)
    assert read_recording(path, format="chat") == read_recording(path)
    with pytest.raises(BadSetting, match=r"Format 'word' is unknown. Use one of: claude_code, codex, "):
        read_recording(path, format="word")
    for reader in READERS:
        if reader.name not in ("chat", "openai_responses"):  # A chat without calls is a list of items too.
            with pytest.raises(FoveateError):
                read_recording(path, format=reader.name)


def test_a_recording_without_a_message_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "empty.jsonl", {"type": "file-history-snapshot", "messageId": "m"})
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert stopped.value.problem == "it holds no message of a conversation (read as claude_code)."


NESTED: Any = "the end"
for _ in range(400):
    NESTED = {"a": NESTED}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "claude_code",
            [
                {"type": "assistant", "uuid": "u1", "sessionId": "s", "message": {"content": "Hi.", "id": "m1"}},
                {
                    "type": "assistant",
                    "uuid": "u2",
                    "parentUuid": "u1",
                    "message": {"id": "m2", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": NESTED}]},
                },
            ],
        ),
        (
            "codex",
            [
                {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Hi."}},
                {"type": "response_item", "payload": {"type": "local_shell_call", "call_id": "c", "action": NESTED}},
            ],
        ),
        (
            "pi",
            [
                {"type": "message", "message": {"role": "user", "content": "Hi."}},
                {
                    "type": "message",
                    "message": {
                        "role": "assistant",
                        "content": [{"type": "toolCall", "id": "c", "name": "f", "arguments": NESTED}],
                    },
                },
            ],
        ),
    ],
)
def test_deep_nesting_that_json_can_read_is_damage_in_every_reader(
    tmp_path: Path, name: str, lines: list[dict[str, Any]]
) -> None:
    path = write_lines(tmp_path / "deep.jsonl", *lines)
    assert sniff(path) == name
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert (stopped.value.line, "nested" in stopped.value.problem) == (2, True)
    skipped = read_recording(path, lenient=True)
    assert ([entry.message.text for entry in skipped.messages], skipped.notes["damaged lines"]) == (["Hi."], 1)


# Small recordings of every format, each with something of every kind.
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SOUND: dict[str, list[Any] | dict[str, Any]] = {
    "claude_code": [
        {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"content": "Go."}},
        {
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "timestamp": "2026-01-02T03:04:05Z",
            "message": {
                "id": "m",
                "model": "x",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}],
                "usage": {"input_tokens": 1, "output_tokens": 2},
            },
        },
        {
            "type": "user",
            "uuid": "u3",
            "parentUuid": "u2",
            "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
            "toolUseResult": {"interrupted": True},
        },
        {"type": "progress", "uuid": "u4", "parentUuid": "u2", "data": {"agentId": "a", "message": {"type": "user"}}},
        {
            "type": "attachment",
            "uuid": "u5",
            "parentUuid": "u3",
            "attachment": {"type": "queued_command", "prompt": "x"},
        },
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "x"}, "dynamic_tools": [{}]}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "x"}},
        {"type": "response_item", "payload": {"type": "reasoning", "summary": [{"text": "x"}], "content": None}},
        {"type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}},
        {
            "type": "response_item",
            "payload": {"type": "function_call_output", "call_id": "c", "output": {"content": "x"}},
        },
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 3}}}},
        {"type": "compacted", "payload": {"message": "x", "replacement_history": [{}]}},
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    ],
    "opencode": {
        "info": {"id": "s", "revert": {"messageID": "m3"}},
        "messages": [
            {"info": {"role": "user", "id": "m1"}, "parts": [{"type": "text", "text": "Go."}]},
            {
                "info": {"role": "assistant", "id": "m2", "time": {"created": 5}, "tokens": {"cache": {"read": 1}}},
                "parts": [
                    {"type": "reasoning", "text": "x", "metadata": {}},
                    {
                        "type": "tool",
                        "callID": "c",
                        "state": {"status": "completed", "output": "x", "time": {"end": 1}},
                    },
                ],
            },
        ],
    },
    "atif": {
        "schema_version": "ATIF-v1.8",
        "agent": {"model_name": "x", "tool_definitions": [{}]},
        "steps": [
            {
                "source": "agent",
                "message": [{"type": "image", "source": {"path": "a"}}],
                "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}],
                "observation": {"results": [{"content": "x"}]},
                "metrics": {"prompt_tokens": 4},
            }
        ],
        "subagent_trajectories": [{"steps": [{"source": "user", "message": "x"}]}],
    },
    "pi": [
        {"type": "session", "id": "s", "cwd": "/"},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "Go."}},
        {
            "type": "message",
            "id": "b",
            "parentId": "a",
            "message": {
                "role": "assistant",
                "content": [{"type": "toolCall", "id": "c", "name": "f", "arguments": {}}],
                "usage": {"input": 1},
            },
        },
        {"type": "compaction", "id": "d", "parentId": "b", "summary": "x"},
    ],
    "swe_agent": {
        "history": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "x", "tool_calls": [CALL]}],
        "trajectory": [{"action": "a", "observation": "o", "thought": "t", "response": "r"}],
        "info": {"model": "x"},
    },
    "openhands": [
        {"source": "user", "action": "message", "args": {"content": "Go.", "image_urls": ["x"]}},
        {
            "source": "agent",
            "action": "run",
            "tool_call_metadata": {
                "tool_call_id": "c",
                "model_response": {"id": "r", "choices": [{"message": {"content": "x", "tool_calls": [CALL]}}]},
            },
        },
        {"source": "agent", "action": "read", "id": 3, "args": {"thought": "t"}},
        {"source": "agent", "observation": "read", "cause": 3, "content": "x", "extras": {}},
    ],
    "openai_responses": {
        "model": "x",
        "instructions": "x",
        "input": [{"role": "user", "content": "Go."}, {"type": "local_shell_call", "call_id": "c", "action": {}}],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]},
        ],
        "systemInstruction": {"parts": [{"text": "x"}]},
    },
    "gemini_cli": [
        {"sessionId": "s", "projectHash": "p"},
        {"id": "m1", "type": "user", "content": [{"text": "Go."}], "timestamp": "2026-01-02T03:04:05Z"},
        {
            "id": "m2",
            "type": "gemini",
            "content": "x",
            "thoughts": [{"subject": "x", "description": "y"}],
            "tokens": {"input": 9, "cached": 4, "output": 2, "thoughts": 1},
            "toolCalls": [
                {
                    "id": "c",
                    "name": "f",
                    "args": {},
                    "result": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}}],
                }
            ],
        },
        {"id": "m3", "type": "gemini", "content": "y"},
        {"$rewindTo": "m3"},
        {"$set": {"messages": [{"id": "m4", "type": "user", "content": "x"}]}},
    ],
    "copilot": [
        {"type": "session.start", "data": {"sessionId": "s"}, "id": "e1", "parentId": None},
        {"type": "user.message", "data": {"content": "Go.", "attachments": [{"type": "blob", "data": "eA=="}]}},
        {
            "type": "assistant.message",
            "data": {
                "messageId": "m",
                "apiCallId": "a",
                "content": "x",
                "reasoningText": "y",
                "outputTokens": 3,
                "toolRequests": [{"toolCallId": "c", "name": "f", "arguments": {"a": 1}}],
            },
        },
        {
            "type": "tool.execution_complete",
            "agentId": "b",
            "data": {"toolCallId": "c", "success": False, "error": {"message": "x", "code": "rejected"}},
        },
        {"type": "session.compaction_complete", "data": {"success": True, "summaryContent": "x"}},
    ],
    "chatgpt": {
        "id": "s",
        "current_node": "n3",
        "mapping": {
            "n0": {"id": "n0", "message": None, "parent": None, "children": ["n1"]},
            "n1": {
                "parent": "n0",
                "message": {
                    "id": "n1",
                    "author": {"role": "user"},
                    "content": {"content_type": "multimodal_text", "parts": ["Go.", {"asset_pointer": "x"}, {"a": 1}]},
                },
            },
            "n2": {
                "parent": "n1",
                "message": {
                    "id": "n2",
                    "author": {"role": "assistant"},
                    "recipient": "python",
                    "content": {"content_type": "code", "text": "1"},
                    "metadata": {"model_slug": "x"},
                },
            },
            "n3": {
                "parent": "n2",
                "message": {
                    "id": "n3",
                    "author": {"role": "tool", "name": "python"},
                    "content": {"content_type": "execution_output", "text": "1"},
                },
            },
            "n4": {
                "parent": "n1",
                "message": {"id": "n4", "author": {"role": "assistant"}, "content": {"content_type": "thoughts"}},
            },
        },
    },
    "chat": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ]
    },
}
ODD = [None, True, -1, 0.5, 10**30, float("nan"), "", "x", "\ud800", [], [None], [[]], ["x"], {}, {"type": 3}, NESTED]


@pytest.mark.parametrize("name", SOUND)
def test_the_undamaged_samples_are_read(tmp_path: Path, name: str) -> None:
    assert read_recording(written(tmp_path, SOUND[name])).format == name


@pytest.mark.parametrize("name", SOUND)
@settings(max_examples=settings.default.max_examples // 2)
@given(st.data())
def test_odd_values_are_read_or_refused_with_their_place(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    value = copy.deepcopy(SOUND[name])
    for _ in range(data.draw(st.integers(1, 3))):
        spoil(value, data)
    path = written(tmp_path_factory.getbasetemp(), value)
    for lenient in (False, True):
        try:
            recording = read_recording(path, lenient=lenient, format=name)
        except FoveateError:
            continue
        for entry in recording.messages:
            assert decode_message(encode_message(entry.message)) == entry.message
            stamp = Stamp(1, entry.time or 0, 1, entry.origin or entry.message.role, usage=entry.usage)
            assert decode_stamp(encode_stamp(stamp)) == stamp


def written(folder: Path, value: Any) -> Path:
    """Write a list of records as JSON Lines, anything else as a document."""
    lines = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return write_lines(folder / "sample", *value) if lines else write_document(folder / "sample", value)


def spoil(value: Any, data: st.DataObject) -> None:
    """Replace a value somewhere in this one by an odd one, or remove it."""
    while isinstance(value, dict | list) and value:
        key = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        if isinstance(value[key], dict | list) and value[key] and data.draw(st.integers(0, 4)):
            value = value[key]
        elif data.draw(st.booleans()):
            value[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
            return
        else:
            del value[key]
            return
