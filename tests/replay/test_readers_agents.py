"""Exports and trajectories of other agents: OpenCode, ATIF, pi, SWE-agent, OpenHands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_samples import write_document, write_lines

from foveate.core.messages import (
    Extra,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from foveate.core.stamps import Usage
from foveate.errors import BadTranscript
from foveate.replay.recordings import read_recording, sniff
from foveate.replay.recordings.recording import RecordedMessage, Recording, to_milliseconds

BROKEN = "this does not follow the format: "


def messages_of(recording: Recording) -> list[Message]:
    return [entry.message for entry in recording.messages]


def tool_part(call_id: str, status: str, **state: Any) -> dict[str, Any]:
    return {"type": "tool", "callID": call_id, "tool": "bash", "state": {"status": status, "input": {"a": 1}, **state}}


def export(*messages: tuple[str, list[dict[str, Any]], dict[str, Any]], **info: Any) -> dict[str, Any]:
    return {
        "info": {"id": "ses1", **info},
        "messages": [
            {"info": {"role": role, "id": f"m{place}", "time": {"created": 1000 + place}, **more}, "parts": parts}
            for place, (role, parts, more) in enumerate(messages, 1)
        ],
    }


BILL = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 100, "write": 0}}


def test_an_opencode_export_gives_a_message_for_each_model_call(tmp_path: Path) -> None:
    """An older message holds several model calls; the last call never ended."""
    pixel = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,iV"}
    document = export(
        ("user", [{"type": "text", "text": "Go."}, {**pixel, "filename": "a.png"}], {}),
        (
            "assistant",
            [
                {"type": "step-start"},
                {"type": "reasoning", "text": "Hm.", "metadata": {"openai": {"itemId": "rs1"}}},
                tool_part("c1", "completed", output="one", attachments=[pixel], time={"start": 1, "end": 2100}),
                tool_part("c2", "error", error="no such file"),
                {"type": "step-finish", "tokens": BILL},
                {"type": "step-start"},
                {"type": "text", "text": "And now."},
                tool_part("c3", "error", error="Tool execution aborted"),
                tool_part("c4", "running"),
                {"type": "patch", "files": 3},
                {"type": "retry", "text": 7},
            ],
            {"modelID": "gpt-x", "tokens": {"input": 999}},
        ),
    )
    path = write_document(tmp_path / "export.json", document)
    calls = [ToolCall(f"c{number}", "bash", '{"a":1}') for number in (1, 2, 3, 4)]
    thought = Reasoning("Hm.", format="opencode", extra=Extra("opencode", '{"metadata":{"openai":{"itemId":"rs1"}}}'))
    assert read_recording(path) == Recording(
        str(path),
        "opencode",
        (
            RecordedMessage(user("Go.", Media("image/png", "base64", "iV", "a.png")), 0, 1001000, None, "m1"),
            RecordedMessage(Message("assistant", (thought, *calls[:2])), 0, 1002000, Usage(10, 100, 0, 5, 2), "m2"),
            RecordedMessage(
                tool_result("c1", "one", Media("image/png", "base64", "iV"), name="bash"), 0, 2100000, None, "m2"
            ),
            RecordedMessage(tool_result("c2", "no such file", state="error", name="bash"), 0, None, None, "m2"),
            RecordedMessage(assistant("And now.", *calls[2:]), 0, 1002000, None, "m2"),
            RecordedMessage(
                tool_result("c3", "Tool execution aborted", state="interrupted", name="bash"), 0, None, None, "m2"
            ),
        ),
        "gpt-x",
        name="ses1",
        notes={"interrupted calls": 2, "images": 2, "other lines": 1},
    )
    assert sniff(path) == "opencode"


def test_an_opencode_revert_is_a_branch_and_a_summary_is_marked(tmp_path: Path) -> None:
    document = export(
        ("user", [{"type": "text", "text": "Go."}, {"type": "text", "text": "(hidden)", "ignored": True}], {}),
        ("assistant", [{"type": "text", "text": "What was done."}], {"summary": True}),
        ("user", [{"type": "text", "text": "Continue.", "synthetic": True}], {}),
        ("assistant", [tool_part("c1", "completed", output="x", time={"compacted": 5})], {"tokens": BILL}),
        ("assistant", [], {"error": {"name": "APIError"}}),
        ("user", [{"type": "text", "text": "Wrong turn."}], {}),
        ("assistant", [{"type": "text", "text": "Indeed."}], {}),
        revert={"messageID": "m6"},
    )
    recording = read_recording(write_document(tmp_path / "export.json", document))
    assert [(entry.message.text, entry.origin, entry.usage) for entry in recording.messages] == [
        ("Go.", None, None),
        ("What was done.", "summary", None),
        ("Continue.", "plugin", None),
        ("", None, Usage(10, 100, 0, 5, 2)),
        ("x", None, None),
    ]
    assert [messages_of(branch) for branch in recording.branches] == [[user("Wrong turn."), assistant("Indeed.")]]
    assert recording.notes == {
        "rewound lines": 2,
        "native compactions": 1,
        "natively cleared results": 1,
        "failed replies": 1,
    }


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": "s1",
        "agent": {"name": "a", "version": "1", "model_name": "gpt-x", "tool_definitions": [{"name": "f"}]},
        "steps": [{"step_id": place, **step} for place, step in enumerate(steps, 1)],
        **more,
    }


def atif_call(call_id: str) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": "f", "arguments": {"a": 1}}


def test_an_atif_trajectory_is_read_with_its_results_and_sub_agents(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
    document = trajectory(
        {"source": "system", "message": "Be brief."},
        {"source": "user", "message": [{"type": "text", "text": "Why?"}, image], "timestamp": "1970-01-01T00:00:01Z"},
        {
            "source": "agent",
            "message": "",
            "reasoning_content": "Hm.",
            "tool_calls": [atif_call("c1"), atif_call("c2")],
            "observation": {"results": [{"source_call_id": "c2", "content": "two"}, {"content": "Both ran."}]},
            "metrics": {"prompt_tokens": 110, "cached_tokens": 100, "completion_tokens": 5},
        },
        {
            "source": "agent",
            "message": "Once more.",
            "tool_calls": [atif_call("c3")],
            "observation": {"results": [{"content": [{"type": "text", "text": "three"}, {"type": "audio", "x": 1}]}]},
            "is_copied_context": True,
        },
        subagent_trajectories=[trajectory({"source": "user", "message": "Count."})],
    )
    path = write_document(tmp_path / "trajectory.json", document)
    recording = read_recording(path)
    calls = [ToolCall(f"c{number}", "f", '{"a":1}') for number in (1, 2, 3)]
    thought = Reasoning("Hm.", format="atif")
    assert recording.messages == (
        RecordedMessage(system("Be brief."), 0, id="1"),
        RecordedMessage(user("Why?", Media("image/png", "url", "a.png")), 0, 1000, id="2"),
        RecordedMessage(Message("assistant", (thought, *calls[:2])), 0, None, Usage(10, 100, None, 5), "3"),
        RecordedMessage(tool_result("c2", "two"), 0, id="3"),
        RecordedMessage(user("Both ran."), 0, id="3", origin="plugin"),
        RecordedMessage(assistant("Once more.", calls[2]), 0, id="4"),
        RecordedMessage(
            Message("tool", (ToolResult("c3", (Text("three"), Opaque("atif", "audio", '{"type":"audio","x":1}'))),)),
            0,
            id="4",
        ),
    )
    assert (recording.model, recording.tools, recording.name) == ("gpt-x", ({"name": "f"},), "s1")
    assert [messages_of(chain) for chain in recording.side_chains] == [[user("Count.")]]
    assert recording.notes == {"side-chain lines": 1, "interrupted calls": 1, "images": 1}


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"message": "Hi."}, f"step 2: {BROKEN}Object missing required field `source`."),
        ({"source": "cook"}, "step 2: The source is 'cook'. ATIF knows system, user and agent."),
    ],
)
def test_a_malformed_atif_step_is_named_or_skipped(tmp_path: Path, step: dict[str, Any], problem: str) -> None:
    path = write_document(
        tmp_path / "t.json",
        trajectory({"source": "user", "message": "Hi."}, step, {"source": "agent", "message": "Ho."}),
    )
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert stopped.value.problem == problem
    recording = read_recording(path, lenient=True)
    assert (messages_of(recording), recording.notes) == ([user("Hi."), assistant("Ho.")], {"damaged lines": 1})


def test_sub_agents_of_sub_agents_are_side_chains_of_side_chains(tmp_path: Path) -> None:
    document = trajectory({"source": "user", "message": "Bottom."})
    for _ in range(300):
        document = trajectory({"source": "user", "message": "Deeper."}, subagent_trajectories=[document])
    recording = read_recording(write_lines(tmp_path / "t.json", document))
    depth = 0
    while recording.side_chains:
        (recording,) = recording.side_chains
        depth += 1
    assert (depth, messages_of(recording)) == (300, [user("Bottom.")])


def entry(type: str, name: str = "", parent: str | None = None, **fields: Any) -> dict[str, Any]:
    tree = {"id": name, "parentId": parent} if name else {}
    return {"type": type, "timestamp": "1970-01-01T00:00:02Z", **tree, **fields}


def pi_message(role: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    return {"message": {"role": role, "content": content, **fields}}


def test_a_pi_session_is_read_as_a_list(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}
    thinking = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "sig"}
    bill = {"input": 3, "output": 5, "cacheRead": 100, "cacheWrite": 0}
    nothing = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    image = {"type": "image", "data": "iV", "mimeType": "image/png"}
    path = write_lines(
        tmp_path / "session.jsonl",
        {"type": "session", "id": "s1", "cwd": "/home"},
        entry("message", **pi_message("user", [{"type": "text", "text": "Go."}])),
        entry("message", **pi_message("assistant", [thinking, call], model="opus", usage=bill)),
        entry("message", **pi_message("toolResult", [{"type": "text", "text": "x"}, image], toolCallId="c1")),
        entry("thinking_level_change", thinkingLevel="high", summary=7),
        entry("message", **pi_message("assistant", [], model="opus", usage=nothing)),
        entry("message", **pi_message("bashExecution", command="ls", output="a.py")),
        entry("compaction", summary="What was done."),
        entry("message", **pi_message("assistant", [{**call, "id": "c2"}], usage=nothing)),
        entry("message", **pi_message("toolResult", "Operation aborted", toolCallId="c2", isError=True)),
    )
    calls = [ToolCall(name, "read", '{"path":"a"}') for name in ("c1", "c2")]
    assert read_recording(path) == Recording(
        str(path),
        "pi",
        (
            RecordedMessage(user("Go."), 2, 2000),
            RecordedMessage(
                assistant("", calls[0], reasoning=Reasoning("Hm.", "sig", format="pi")), 3, 2000, Usage(3, 100, 0, 5)
            ),
            RecordedMessage(tool_result("c1", "x", Media("image/png", "base64", "iV")), 4, 2000),
            RecordedMessage(user("Ran `ls`\n```\na.py\n```"), 7, 2000),
            RecordedMessage(user("What was done."), 8, 2000, origin="summary"),
            RecordedMessage(assistant("", calls[1]), 9, 2000),
            RecordedMessage(tool_result("c2", "Operation aborted", state="interrupted"), 10, 2000),
        ),
        "opus",
        name="s1",
        notes={
            "native compactions": 1,
            "interrupted calls": 1,
            "images": 1,
            "failed replies": 1,
            "other lines": 2,
        },
    )


def test_a_pi_session_is_read_as_a_tree(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "session.jsonl",
        {"type": "session", "id": "s1", "version": 3, "cwd": "/home"},
        entry("message", "a", None, **pi_message("user", "Go.")),
        entry("message", "b", "a", **pi_message("user", "This way.")),
        entry("branch_summary", "c", "a", summary="What that way led to."),
        entry("custom_message", "d", "c", content="By the way.", customType="x"),
        entry("message", "e", "lost", **pi_message("user", "That way.")),
    )
    recording = read_recording(path)
    assert [(each.message.text, each.origin, each.id) for each in recording.messages] == [
        ("Go.", None, "a"),
        ("What that way led to.", "summary", "c"),
        ("By the way.", "plugin", "d"),
        ("That way.", None, "e"),
    ]
    assert ([messages_of(branch) for branch in recording.branches], recording.notes) == (
        [[user("This way.")]],
        {"rewound lines": 1, "other lines": 1},
    )


def test_a_swe_agent_trajectory_with_function_calling_is_its_history(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    history = [
        {"role": "system", "content": "Be brief.", "agent": "main"},
        {"role": "assistant", "content": "Now.", "tool_calls": [call], "thought": "Now."},
        {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "tool_call_ids": ["c1"]},
    ]
    document = {"history": history, "trajectory": [{"action": "ls", "observation": "a.py"}], "info": {}}
    recording = read_recording(write_document(tmp_path / "run.traj", document))
    assert (recording.format, recording.notes) == ("swe_agent", {})
    assert messages_of(recording) == [
        system("Be brief."),
        assistant("Now.", ToolCall("c1", "ls", "{}")),
        tool_result("c1", "a.py"),
    ]


def test_a_swe_agent_trajectory_in_text_gets_made_up_call_ids(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "Look.\n```\nls\n```", "action": "ls\n", "thought": "Look."},
        {"role": "user", "content": "a.py\n(Open file: n/a)"},
    ]
    steps = [
        {"action": "ls\n", "observation": "a.py", "thought": "Look.\n", "response": "Look.\n```\nls\n```"},
        {"action": "", "observation": "No command found.", "thought": "", "response": "Done?"},
    ]
    document = {"history": history, "trajectory": steps, "info": {"model": "gpt-x"}}
    recording = read_recording(write_document(tmp_path / "run.traj", document))
    assert messages_of(recording) == [
        system("Be brief."),
        user("Fix it."),
        assistant("Look.", ToolCall("step-1", "shell", '{"command":"ls"}')),
        tool_result("step-1", "a.py", name="shell"),
        assistant("Done?"),
        user("No command found."),
    ]
    assert [each.origin for each in recording.messages] == [None, None, None, None, None, "plugin"]
    assert (recording.model, recording.notes) == ("gpt-x", {"made-up ids": 1})


def response(name: str, *call_ids: str) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "run", "arguments": "{}"}} for each in call_ids]
    usage = {"prompt_tokens": 110, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 100}}
    message = {"role": "assistant", "content": "Now.", "tool_calls": calls, "function_call": None}
    return {"id": name, "model": "gpt-x", "choices": [{"message": message}], "usage": usage}


EVENTS: list[dict[str, Any]] = [
    {"source": "agent", "action": "system", "args": {"content": "Be brief.", "tools": [{"name": "run"}]}},
    {"source": "user", "action": "message", "args": {"content": "Go.", "image_urls": ["data:image/png;base64,iV"]}},
    {"source": "user", "action": "recall", "args": {"query": "Go."}},
    {"source": "environment", "observation": "recall", "content": "Added."},
    *[
        {"source": "agent", kind: "run", "content": words, "message": "ran", "tool_call_metadata": metadata}
        for call_id, words in (("c1", "one"), ("c2", ""))
        for metadata in [
            {"tool_call_id": call_id, "function_name": "run", "model_response": response("r1", "c1", "c2")}
        ]
        for kind in ("action", "observation")
    ],
    {"source": "agent", "observation": "error", "content": "No such tool."},
    {"source": "agent", "action": "condensation", "args": {}},
    {"source": "agent", "action": "read", "args": {"path": "a", "thought": "Look."}},
    {"source": "agent", "observation": "read", "cause": 10, "content": "text of a"},
    {
        "timestamp": "1970-01-01T00:00:03",
        "source": "agent",
        "action": "message",
        "args": {"content": "Done."},
    },
]


@pytest.mark.parametrize("shape", ["record", "list", "lines"])
def test_openhands_events_give_a_message_for_each_response(tmp_path: Path, shape: str) -> None:
    events = [{"id": place, **event} for place, event in enumerate(EVENTS)]
    path = tmp_path / "output.jsonl"
    match shape:
        case "record":
            write_lines(path, {"instance_id": "i1", "history": events})
        case "list":
            write_document(path, events)
        case _:
            write_lines(path, *events)

    def line(place: int) -> int:
        return {"record": 1, "list": 0}.get(shape, place + 1)

    recording = read_recording(path)
    assert recording == Recording(
        str(path),
        "openhands",
        (
            RecordedMessage(system("Be brief."), line(0), id="0"),
            RecordedMessage(user("Go.", Media("image/png", "base64", "iV")), line(1), id="1"),
            RecordedMessage(
                assistant("Now.", ToolCall("c1", "run"), ToolCall("c2", "run")),
                line(4),
                None,
                Usage(10, 100, None, 5),
                "4",
            ),
            RecordedMessage(tool_result("c1", "one", name="run"), line(5), id="5"),
            RecordedMessage(tool_result("c2", "ran", name="run"), line(7), id="7"),
            RecordedMessage(user("No such tool."), line(8), id="8", origin="plugin"),
            RecordedMessage(assistant("Look.", ToolCall("event-10", "read", '{"path":"a"}')), line(10), id="10"),
            RecordedMessage(tool_result("event-10", "text of a"), line(11), id="11"),
            RecordedMessage(assistant("Done."), line(12), 3000, id="12"),
        ),
        "gpt-x",
        ({"name": "run"},),
        "i1" if shape == "record" else "",
        {"native compactions": 1, "images": 1, "made-up ids": 1, "other lines": 2},
    )


def test_several_openhands_records_in_one_file_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "output.jsonl", *[{"history": EVENTS}] * 3)
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert (stopped.value.line, stopped.value.problem) == (2, "it holds 3 recordings.")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("1970-01-01T00:00:01.234Z", 1234),
        ("1970-01-01T01:00:01+01:00", 1000),
        ("1970-01-01T00:00:01.123456", 1123),
        (1767323040, 1767323040000),
        (1767323040.5, 1767323040500),
        (1767323040500, 1767323040500),
        ("yesterday", None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        (None, None),
        ({}, None),
    ],
)
def test_times_are_read_as_milliseconds(moment: object, expected: int | None) -> None:
    assert to_milliseconds(moment) == expected
