"""Readers for Gemini CLI, Copilot CLI, exports of ChatGPT, and the data folder of OpenCode."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from recorded_samples import write_document, write_lines

from foveate.core.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult
from foveate.core.stamps import Usage
from foveate.errors import BadTranscript
from foveate.replay.recordings import read_recording, read_recordings, sniff

# ----------------------------------------------------------------------------------------------------------- Gemini CLI


def gemini_reply(name: str, text: str = "", *calls: str, **fields: Any) -> dict[str, Any]:
    """A reply with one call for each name in `calls`, all answered."""
    return {
        "id": name,
        "type": "gemini",
        "timestamp": "2026-01-02T03:04:05Z",
        "content": text,
        "model": "gemini-3-pro",
        "toolCalls": [
            {
                "id": call,
                "name": "read_file",
                "args": {"path": call},
                "status": "success",
                "result": [
                    {"functionResponse": {"id": call, "name": "read_file", "response": {"output": f"<{call}>"}}}
                ],
            }
            for call in calls
        ],
        **fields,
    }


ASK = {"id": "u1", "type": "user", "content": "Look.", "timestamp": "2026-01-02T03:04:00Z"}
HEAD = {"sessionId": "s1", "projectHash": "p", "startTime": "2026-01-02T03:04:00Z"}


@pytest.mark.parametrize("whole", [False, True])
def test_gemini_cli_replies_are_followed_by_the_results_of_their_calls(tmp_path: Path, whole: bool) -> None:
    tokens = {"input": 100, "cached": 60, "output": 7, "thoughts": 3, "total": 110}
    thoughts = [{"subject": "Plan", "description": "Read it."}]
    messages = [ASK, gemini_reply("g1", "I look.", "c1", tokens=tokens, thoughts=thoughts), gemini_reply("g2", "Done.")]
    messages.insert(1, {"id": "i", "type": "info", "content": "Update available."})
    path = tmp_path / "session-1.json"
    write_document(path, {**HEAD, "messages": messages}) if whole else write_lines(path, HEAD, *messages)
    recording = read_recording(path)
    roles = [entry.message.role for entry in recording.messages]
    assert (recording.format, recording.provider, recording.name, recording.model) == (
        "gemini_cli",
        "gemini",
        "s1",
        "gemini-3-pro",
    )
    assert roles == ["user", "assistant", "tool", "assistant"]
    reply = recording.messages[1]
    assert reply.message.parts == (
        Reasoning("Plan\nRead it.", format="gemini"),
        Text("I look."),
        ToolCall("c1", "read_file", '{"path":"c1"}'),
    )
    assert reply.usage == Usage(40, 60, None, 10, 3)
    assert recording.messages[2].message.result is not None
    assert recording.messages[2].message.result.text == "<c1>"
    assert recording.notes == {"other lines": 1 if whole else 2}


def test_gemini_cli_lines_update_rewind_and_compact(tmp_path: Path) -> None:
    summary = {"id": "s", "type": "user", "content": "Summary: looked."}
    path = write_lines(
        tmp_path / "session-1.jsonl",
        HEAD,
        ASK,
        gemini_reply("g1", "I look."),
        gemini_reply("g1", "I look.", "c1"),
        gemini_reply("g2", "Wrong."),
        {"$rewindTo": "g2"},
        gemini_reply("g3", "Right."),
        {"$set": {"messages": [summary, gemini_reply("g3", "Right.")]}},
    )
    recording = read_recording(path)
    assert [(entry.message.text, entry.origin) for entry in recording.messages] == [
        ("Look.", None),
        ("I look.", None),
        ("<c1>", None),
        ("Summary: looked.", "summary"),
        ("Right.", None),
    ]
    assert [entry.message.text for entry in recording.branches[0].messages] == ["Wrong."]
    assert recording.notes == {"rewound lines": 1, "native compactions": 1, "other lines": 2}


def test_gemini_cli_results_in_user_messages_are_not_read_twice(tmp_path: Path) -> None:
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "masked"}}}
    results = {"id": "u2", "type": "user", "content": [response]}
    recording = read_recording(write_lines(tmp_path / "s.jsonl", HEAD, ASK, gemini_reply("g1", "", "c1"), results))
    assert [entry.message.text for entry in recording.messages] == ["Look.", "", "masked"]


def test_gemini_cli_sub_agents_are_side_chains(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "session-1.jsonl", HEAD, ASK, gemini_reply("g1", "Done."))
    (tmp_path / "s1").mkdir()
    write_lines(tmp_path / "s1" / "a.jsonl", {**HEAD, "sessionId": "a", "kind": "subagent"}, ASK)
    recording = read_recording(path)
    assert [chain.name for chain in recording.side_chains] == ["a"]
    assert recording.notes["side-chain lines"] == 1


@pytest.mark.parametrize("name", [".", "..", "s/.."])
def test_gemini_cli_reads_no_other_session_as_a_sub_agent(tmp_path: Path, name: str) -> None:
    (tmp_path / "s").mkdir()
    for folder in (tmp_path, tmp_path / "s"):
        for file in ("session-1.jsonl", "session-2.jsonl"):
            write_lines(folder / file, {**HEAD, "sessionId": name}, ASK, gemini_reply("g1", "Done."))
    assert read_recording(tmp_path / "s" / "session-1.jsonl").side_chains == ()


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "../..", {"a": 1}])
def test_gemini_cli_ids_that_are_no_folder_names_are_accepted(tmp_path: Path, name: Any) -> None:
    path = write_lines(tmp_path / "session-1.jsonl", {**HEAD, "sessionId": name}, ASK, gemini_reply("g1", "Done."))
    recording = read_recording(path)
    assert ([entry.message.text for entry in recording.messages], recording.side_chains) == (["Look.", "Done."], ())


# ---------------------------------------------------------------------------------------------------------- Copilot CLI


def event(type: str, agent: str = "", **data: Any) -> dict[str, Any]:
    line = {"type": type, "data": data, "id": type, "timestamp": "2026-01-02T03:04:05Z", "parentId": None}
    return {**line, "agentId": agent} if agent else line


def test_copilot_events_become_messages_with_calls_and_results(tmp_path: Path) -> None:
    call = {"toolCallId": "c1", "name": "view", "arguments": {"path": "a.py"}}
    path = write_lines(
        tmp_path / "events.jsonl",
        event("session.start", sessionId="s1", copilotVersion="1.0"),
        event("system.message", role="system", content="Be brief."),
        event("user.message", content="Look.", transformedContent="<time/> Look."),
        event("user.message", content="(skill)", source="skill-pdf"),
        event("assistant.message", messageId="m1", apiCallId="x", model="gpt-5.2", reasoningText="Hm.", content=""),
        event(
            "assistant.message", messageId="m2", apiCallId="x", content="I look.", toolRequests=[call], outputTokens=5
        ),
        event("tool.execution_start", toolCallId="c1", toolName="view"),
        event(
            "tool.execution_complete",
            toolCallId="c1",
            success=True,
            result={"content": "x = 1", "detailedContent": "d"},
        ),
        event("assistant.message", messageId="m3", apiCallId="y", toolRequests=[{**call, "toolCallId": "c2"}]),
        event("tool.execution_complete", toolCallId="c2", success=False, error={"message": "no such file"}),
        event("session.compaction_complete", success=True, summaryContent="Looked at a.py."),
        event("system.message", role="system", content="Be brief."),
        event("assistant.message", agent="sub", messageId="m4", content="From the sub-agent."),
        event("assistant.message", messageId="m5", content="Done."),
    )
    recording = read_recording(path)
    assert (recording.format, recording.name, recording.model) == ("copilot", "s1", "gpt-5.2")
    assert [(entry.message.role, entry.message.text, entry.origin) for entry in recording.messages] == [
        ("system", "Be brief.", None),
        ("user", "<time/> Look.", None),
        ("user", "(skill)", "plugin"),
        ("assistant", "I look.", None),
        ("tool", "x = 1", None),
        ("assistant", "", None),
        ("tool", "no such file", None),
        ("user", "Looked at a.py.", "summary"),
        ("assistant", "Done.", None),
    ]
    assert recording.messages[3].message.parts[0] == Reasoning("Hm.", format="copilot")
    assert recording.messages[3].message.calls == (ToolCall("c1", "view", '{"path":"a.py"}'),)
    assert recording.messages[6].message.result == ToolResult("c2", (Text("no such file"),), "error")
    assert [entry.message.text for entry in recording.side_chains[0].messages] == ["From the sub-agent."]
    assert recording.notes == {
        "side-chain lines": 1,
        "native compactions": 1,
        "repeated lines": 1,
        "other lines": 2,
    }


# -------------------------------------------------------------------------------------------------------------- ChatGPT


def node(key: str, parent: str, role: str, content: dict[str, Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    author = {"role": role, "name": fields.pop("name", None), "metadata": {}}
    message = {"id": key, "author": author, "create_time": 1767322800.5, "content": content, **fields}
    return key, {"id": key, "parent": parent, "children": [], "message": message}


def text(*parts: Any) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


def chatgpt_chat(name: str = "chat-1") -> dict[str, Any]:
    """A conversation with a regenerated answer, custom instructions, a call of Python and an image."""
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    profile = {"content_type": "user_editable_context", "user_profile": "A smith.", "user_instructions": "Be brief."}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Sum", "content": "Add them."}]}
    slug = {"model_slug": "gpt-5-2-thinking"}
    nodes = [
        ("root", {"id": "root", "parent": None, "children": ["a"], "message": None}),
        node("a", "root", "system", text("")),
        node("b", "a", "user", profile),
        node("c", "b", "user", {"content_type": "multimodal_text", "parts": [image, "What is 2 + 2?"]}),
        node("z", "c", "assistant", text("Five."), metadata=slug),
        node("d", "c", "assistant", thoughts, metadata=slug),
        node("e", "d", "assistant", {"content_type": "code", "text": "2 + 2"}, recipient="python", metadata=slug),
        node("f", "e", "tool", {"content_type": "execution_output", "text": "4"}, name="python"),
        node("g", "f", "assistant", text("Four."), recipient="all", metadata=slug),
    ]
    return {"title": "Sums", "id": name, "conversation_id": name, "current_node": "g", "mapping": dict(nodes)}


def test_a_chatgpt_export_is_read_along_its_current_path(tmp_path: Path) -> None:
    recording = read_recording(write_document(tmp_path / "conversations.json", [chatgpt_chat()]))
    assert (recording.format, recording.name, recording.model) == ("chatgpt", "chat-1", "gpt-5-2-thinking")
    image = Media("image/png", "file", "file-service://file-1")
    assert [entry.message for entry in recording.messages] == [
        Message("user", (Text("A smith.\nBe brief."),)),
        Message("user", (image, Text("What is 2 + 2?"))),
        Message(
            "assistant", (Reasoning("Sum\nAdd them.", format="chatgpt"), ToolCall("e", "python", '{"text":"2 + 2"}'))
        ),
        Message("tool", (ToolResult("e", (Text("4"),), "ok", "python"),)),
        Message("assistant", (Text("Four."),)),
    ]
    assert [entry.origin for entry in recording.messages[:2]] == ["plugin", None]
    assert recording.messages[1].time == 1767322800500
    assert [entry.message.text for entry in recording.branches[0].messages] == ["Five."]
    assert recording.notes == {"rewound lines": 1, "images": 1, "other lines": 1}


def test_an_export_with_many_conversations_is_read_whole_or_in_part(tmp_path: Path) -> None:
    path = write_document(tmp_path / "conversations.json", [chatgpt_chat("one"), chatgpt_chat("two"), {"mapping": {}}])
    assert [(found.path, found.name) for found in read_recordings(path)] == [(f"{path}#1", "one"), (f"{path}#2", "two")]
    assert read_recording(f"{path}#two").name == "two"
    with pytest.raises(BadTranscript, match=r"it holds 2 conversations\. Name one of them, such as .*json#1"):
        read_recording(path)


def test_more_output_of_a_tool_joins_the_result_of_its_call(tmp_path: Path) -> None:
    chat = chatgpt_chat()
    mapping = chat["mapping"]
    mapping.update([node("f2", "f", "tool", text("more"), name="python")])
    mapping["g"]["parent"] = "f2"
    recording = read_recording(write_document(tmp_path / "chat.json", chat))
    assert recording.messages[3].message.result == ToolResult("e", (Text("4"), Text("more")), "ok", "python")


# ------------------------------------------------------------------------------------------------------------- OpenCode

PARTS = [
    {"type": "text", "text": "I look."},
    {"type": "tool", "callID": "c1", "tool": "read", "state": {"status": "completed", "input": {}, "output": "x = 1"}},
]


def test_a_session_in_the_data_folder_of_opencode_is_read(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    files = {
        "session/p/ses_1.json": {"id": "ses_1", "projectID": "p", "directory": "/work", "time": {"created": 1}},
        "message/ses_1/msg_1.json": {"id": "msg_1", "role": "user", "time": {"created": 1}},
        "message/ses_1/msg_2.json": {"id": "msg_2", "role": "assistant", "modelID": "m", "time": {"created": 2}},
        "part/msg_1/prt_1.json": {"type": "text", "text": "Look."},
        "part/msg_2/prt_2.json": PARTS[0],
        "part/msg_2/prt_3.json": PARTS[1],
    }
    for name, value in files.items():
        path = storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    (storage / "message/ses_1/msg_3.json").write_text("{")
    recording = read_recording(storage / "session/p/ses_1.json")
    assert (recording.format, recording.name, recording.model) == ("opencode", "ses_1", "m")
    assert [entry.message.text for entry in recording.messages] == ["Look.", "I look.", "x = 1"]


def opencode_database(path: Path) -> Path:
    """A database with two sessions, the session of a sub-agent, and one without messages."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE session (id, parent_id, directory, revert, time_updated)")
        database.execute("CREATE TABLE message (id, session_id, time_created, data)")
        database.execute("CREATE TABLE part (id, message_id, session_id, data)")
        sessions = [("ses_1", None, 10), ("ses_2", None, 20), ("ses_3", "ses_1", 30), ("ses_4", None, 40)]
        for name, parent, time in sessions:
            database.execute("INSERT INTO session VALUES (?, ?, '/work', NULL, ?)", (name, parent, time))
        for name, _, _ in sessions[:3]:
            for place, (role, parts) in enumerate([("user", [{"type": "text", "text": name}]), ("assistant", PARTS)]):
                key = f"{name}_{place}"
                database.execute(
                    "INSERT INTO message VALUES (?, ?, ?, ?)", (key, name, place, json.dumps({"role": role}))
                )
                for number, part in enumerate(parts):
                    cells = (f"{key}_{number}", key, name, json.dumps(part))
                    database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", cells)
    return path


def test_the_sessions_in_the_database_of_opencode_are_read(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    found = read_recordings(path)
    assert sniff(path) == "opencode"
    assert [(one.path, one.name) for one in found] == [(f"{path}#ses_2", "ses_2"), (f"{path}#ses_1", "ses_1")]
    assert [entry.message.text for entry in found[0].messages] == ["ses_2", "I look.", "x = 1"]
    assert read_recording(f"{path}#1") == read_recording(f"{path}#ses_2") == found[0]
    with pytest.raises(BadTranscript, match=r"opencode\.db#ses_9: there is no such session"):
        read_recording(f"{path}#ses_9")


def test_another_database_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE session (id)")
    with pytest.raises(BadTranscript, match="it is a SQLite database"):
        read_recording(path)
