"""Plain chats, at any place in a document and in the shapes of two providers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_samples import PIXEL, write_document, write_lines

from foveate.core.messages import Media, ToolCall, assistant, system, tool_result, user
from foveate.errors import BadTranscript, UnknownFormat
from foveate.replay.recordings import read_recording, read_recordings, sniff
from foveate.replay.recordings.recording import RecordedMessage, Recording

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "42."},
]
SAID = (
    system("Be brief."),
    user("Why?"),
    assistant("", ToolCall("c1", "f", '{"a": 1}')),
    tool_result("c1", "42"),
    assistant("42."),
)


def test_json_lines_give_a_message_for_each_line(tmp_path: Path) -> None:
    stamped = [{**message, "id": f"m{place}", "timestamp": 1767323040 + place} for place, message in enumerate(CHAT)]
    path = write_lines(tmp_path / "chat.jsonl", *stamped)
    assert read_recording(path) == Recording(
        str(path),
        "chat",
        tuple(
            RecordedMessage(message, place + 1, (1767323040 + place) * 1000, None, f"m{place}")
            for place, message in enumerate(SAID)
        ),
        provider="openai",
    )
    assert sniff(path) == "chat"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(CHAT, id="the list"),
        pytest.param({"messages": CHAT, "model": "m"}, id="a request"),
        pytest.param({"task": 9, "reward": 0.0, "traj": CHAT, "info": {"messages": []}}, id="a benchmark's record"),
        pytest.param({"id": 1, "what we said": CHAT, "shorter": CHAT[:2]}, id="a field of any name"),
        pytest.param({"other": CHAT[:2], "conversation": CHAT}, id="a known field first"),
        pytest.param([{"messages": CHAT}], id="a list of one record"),
        pytest.param([CHAT], id="a list of one list"),
        pytest.param({"run": {"history": CHAT}}, id="one level further down"),
    ],
)
@pytest.mark.parametrize("write", [write_document, write_lines])
def test_a_document_is_searched_for_its_messages(tmp_path: Path, document: Any, write: Any) -> None:
    recording = read_recording(write(tmp_path / "chat.json", document))
    assert tuple(entry.message for entry in recording.messages) == SAID
    assert (recording.format, recording.notes) == ("chat", {})


def test_a_request_has_its_model_and_tools(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    recording = read_recording(
        write_document(tmp_path / "chat.json", {"model": "m", "tools": [tool], "messages": CHAT})
    )
    assert (recording.model, recording.tools) == ("m", (tool,))


@pytest.mark.parametrize("lines", [False, True])
def test_messages_in_anthropics_shape_are_recognised_by_their_blocks(tmp_path: Path, lines: bool) -> None:
    chat = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}, PIXEL]},
                {"type": "text", "text": "And?"},
            ],
        },
    ]
    path = tmp_path / "chat.json"
    recording = read_recording(
        write_lines(path, *chat) if lines else write_document(path, {"system": "Be brief.", "messages": chat})
    )
    image = Media("image/png", "base64", "iVBORw0K")
    expected = (
        user("Why?"),
        assistant("", ToolCall("c1", "f", '{"a":1}')),
        tool_result("c1", "42", image),
        user("And?"),
    )
    assert tuple(entry.message for entry in recording.messages) == (expected if lines else (SAID[0], *expected))
    assert recording.notes == {"images": 1}


def test_results_without_a_call_and_reused_ids_are_kept_and_counted(tmp_path: Path) -> None:
    chat = [*CHAT[2:4], *CHAT[2:4], {"role": "tool", "tool_call_id": "c7", "content": "late"}, CHAT[2]]
    recording = read_recording(write_lines(tmp_path / "chat.jsonl", *chat))
    assert [entry.message for entry in recording.messages] == [
        *SAID[2:4],
        *SAID[2:4],
        tool_result("c7", "late"),
        SAID[2],
    ]
    assert recording.notes == {"interrupted calls": 1, "results without a call": 1, "reused ids": 2}


def test_objects_between_the_messages_are_counted(tmp_path: Path) -> None:
    recording = read_recording(write_lines(tmp_path / "chat.jsonl", {"run": 7}, *CHAT[:2], {"score": 1}))
    assert (len(recording.messages), recording.notes) == (2, {"other lines": 2})


@pytest.mark.parametrize("lines", [False, True])
def test_several_conversations_in_one_file_are_read_or_named(tmp_path: Path, lines: bool) -> None:
    records = [{"messages": CHAT}, {"messages": CHAT[:2], "id": "run-7"}, {"messages": CHAT}]
    path = tmp_path / "many.json"
    write_lines(path, *records) if lines else write_document(path, records)
    found = read_recordings(path)
    assert [(len(one.messages), one.path) for one in found] == [
        (len(CHAT), f"{path}#1"),
        (2, f"{path}#2"),
        (len(CHAT), f"{path}#3"),
    ]
    assert read_recording(f"{path}#2") == read_recording(f"{path}#run-7") == found[1]
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert str(stopped.value) == f"{path}: it holds 3 conversations. Name one of them, such as {path}#1"
    with pytest.raises(BadTranscript, match=r"json#4: there is no such conversation. Name one of 1 to 3, or its id."):
        read_recording(f"{path}#4")


@pytest.mark.parametrize(
    "document", [{"messages": []}, {"messages": ["Hi."]}, [{"content": "Hi."}], {"a": {"b": {"c": CHAT}}}]
)
def test_a_document_without_messages_near_its_top_is_unknown(tmp_path: Path, document: Any) -> None:
    with pytest.raises(UnknownFormat):
        read_recording(write_document(tmp_path / "chat.json", document))
