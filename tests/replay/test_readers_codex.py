"""Codex rollouts and lists of Responses items: responses, usage, and branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from recorded_samples import item, message, rollout, tokens, write_document, write_lines

from foveate.core.messages import Extra, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, system
from foveate.core.messages import tool_result as answer
from foveate.core.stamps import Usage
from foveate.errors import BadTranscript
from foveate.replay.recordings import read_recording, sniff
from foveate.replay.recordings.recording import RecordedMessage, Recording

FORMAT = "openai_responses"
META = ("session_meta", {"id": "s1", "base_instructions": {"text": "Be brief."}, "dynamic_tools": [{"name": "t"}]})


def read(path: Path, *payloads: tuple[str, dict[str, Any]], **options: Any) -> Recording:
    return read_recording(write_lines(path / "rollout.jsonl", *rollout(*payloads)), **options)


def function_call(call_id: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return item("function_call", call_id=call_id, name="exec", arguments='{"cmd": "ls"}', **fields)


def output(call_id: str, words: Any = "a.py") -> tuple[str, dict[str, Any]]:
    return item("function_call_output", call_id=call_id, output=words)


def of_item(*field: str) -> Extra:
    """Return what the first text of the model's message keeps of its item: another field, type and shape."""
    fields = {"type": "message", **dict([field] if field else []), "content": "list"}
    return Extra(FORMAT, json.dumps({"item": fields}, separators=(",", ":")))


def of_message(**fields: str) -> Extra:
    """Return what a message of another author keeps of its item."""
    return Extra(FORMAT, json.dumps({**fields, "content": "list", "type": "message"}, separators=(",", ":")))


def short_form(recording: Recording) -> list[str]:
    return [
        " ".join(
            [entry.message.role[0], *[f"{call.call_id}?" for call in entry.message.calls]]
            + ([f"{result.call_id}!"] if (result := entry.message.result) else [])
            + ([entry.message.text] if entry.message.text else [])
        )
        for entry in recording.messages
    ]


def test_a_rollout_is_read_with_its_prompt_usage_and_tools(tmp_path: Path) -> None:
    recording = read(
        tmp_path,
        META,
        message("developer", "No secrets."),
        message("user", "Why?"),
        ("turn_context", {"model": "gpt-x"}),
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="gAAA", id="rs1"),
        message("assistant", "Let me look.", phase="commentary"),
        function_call("c1"),
        function_call("c2", id="fc2"),
        output("c1"),
        output(
            "c2",
            [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,iV"}],
        ),
        tokens(50, input_tokens=40, cached_input_tokens=30, output_tokens=10, reasoning_output_tokens=4),
        message("assistant", "Because."),
    )
    at = 1767323040000
    thought = Reasoning("Hm.", "", "gAAA", FORMAT, Extra(FORMAT, '{"id":"rs1"}'))
    words = Text("Let me look.", of_item("phase", "commentary"))
    calls = (
        ToolCall("c1", "exec", '{"cmd": "ls"}'),
        ToolCall("c2", "exec", '{"cmd": "ls"}', Extra(FORMAT, '{"id":"fc2"}')),
    )
    assert recording == Recording(
        path=str(tmp_path / "rollout.jsonl"),
        format="codex",
        messages=(
            RecordedMessage(system("Be brief."), 1, at),
            RecordedMessage(
                Message("system", (Text("No secrets."),), extra=of_message(role="developer")), 2, at + 1000
            ),
            RecordedMessage(Message("user", (Text("Why?"),), extra=of_message()), 3, at + 2000),
            RecordedMessage(Message("assistant", (thought, words, *calls)), 5, at + 4000, Usage(10, 30, None, 10, 4)),
            RecordedMessage(answer("c1", "a.py"), 9, at + 8000),
            RecordedMessage(answer("c2", "see", Media("image/png", "base64", "iV")), 10, at + 9000),
            RecordedMessage(Message("assistant", (Text("Because.", of_item()),)), 12, at + 11000),
        ),
        model="gpt-x",
        tools=({"name": "t"},),
        name="s1",
        notes={"images": 1, "other lines": 2},
        provider=FORMAT,
    )


def test_a_token_count_ends_a_response_and_its_repeats_are_ignored(tmp_path: Path) -> None:
    recording = read(
        tmp_path,
        message("user", "Go."),
        message("assistant", "One."),
        tokens(10, input_tokens=8, output_tokens=2),
        message("assistant", "Two."),
        tokens(30, input_tokens=16, output_tokens=4),
        tokens(35, input_tokens=5, output_tokens=0),  # A call that is not kept, like that of a compaction.
        message("user", "More."),
        message("assistant", "Three."),
        tokens(35, input_tokens=5, output_tokens=0),
        ("event_msg", {"type": "token_count", "info": None}),
    )
    assert [(entry.message.text, entry.usage) for entry in recording.messages] == [
        ("Go.", None),
        ("One.", Usage(8, None, None, 2)),
        ("Two.", Usage(16, None, None, 4)),
        ("More.", None),
        ("Three.", None),
    ]


def test_a_bill_after_an_output_goes_to_the_call_before_it_once(tmp_path: Path) -> None:
    recording = read(
        tmp_path,
        function_call("c1"),
        output("c1"),
        tokens(10, input_tokens=8, output_tokens=2),
        tokens(30, input_tokens=16, output_tokens=4),
    )
    assert [entry.usage for entry in recording.messages] == [Usage(8, None, None, 2), None]


@pytest.mark.parametrize(
    ("payload", "part"),
    [
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"},
            ToolCall("c", "apply_patch", '{"input":"*** Begin"}', Extra(FORMAT, '{"type":"custom_tool_call"}')),
        ),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
            ToolCall(
                "c", "local_shell", '{"type":"exec","command":["ls"]}', Extra(FORMAT, '{"type":"local_shell_call"}')
            ),
        ),
        (
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
            Opaque(
                FORMAT,
                "web_search_call",
                '{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}',
            ),
        ),
    ],
)
def test_every_kind_of_call_is_kept_in_its_response(tmp_path: Path, payload: dict[str, Any], part: Any) -> None:
    recording = read(tmp_path, message("assistant", "Now."), ("response_item", payload))
    assert [entry.message for entry in recording.messages] == [Message("assistant", (Text("Now.", of_item()), part))]


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ({"content": "failed", "success": False}, ToolResult("c", (Text("failed"),), "error")),
        ({"content": "fine", "success": True}, ToolResult("c", (Text("fine"),))),
        ("aborted by user after 3.2s", ToolResult("c", (Text("aborted by user after 3.2s"),), "interrupted")),
        (None, ToolResult("c")),
    ],
)
def test_outputs_are_read_with_their_state(tmp_path: Path, words: Any, result: ToolResult) -> None:
    recording = read(tmp_path, function_call("c"), item("custom_tool_call_output", call_id="c", output=words))
    kept = structs.replace(recording.messages[1].message.result or result, extra=None)
    assert kept == result
    assert recording.notes == ({"interrupted calls": 1} if result.state == "interrupted" else {})


def test_interrupted_calls_and_empty_outputs_are_kept_and_counted(tmp_path: Path) -> None:
    recording = read(tmp_path, message("user", "Go."), function_call("c1"), function_call("c1"), output("c9"))
    assert short_form(recording) == ["u Go.", "a c1? c1?", "t c9! a.py"]
    assert recording.notes == {"interrupted calls": 2, "results without a call": 1, "reused ids": 1}


def test_a_native_compaction_is_counted_and_its_summary_kept(tmp_path: Path) -> None:
    replaced = [{"type": "message", "role": "user", "content": []}] * 3
    recording = read(
        tmp_path,
        message("user", "Go."),
        function_call("c1"),
        ("compacted", {"message": "What was done.", "replacement_history": replaced}),
        output("c1"),
        ("compacted", {"message": "", "replacement_history": replaced}),
    )
    assert short_form(recording) == ["u Go.", "a c1?", "u What was done.", "t c1! a.py"]
    assert [entry.origin for entry in recording.messages] == [None, None, "summary", None]
    assert recording.notes == {"native compactions": 2, "replaced items": 6}
    assert recording.notes_text() == "2 native compactions, 6 replaced items"


def test_a_rollback_leaves_a_branch(tmp_path: Path) -> None:
    recording = read(
        tmp_path,
        message("user", "<environment_context>linux</environment_context>"),
        message("user", "One."),
        message("assistant", "First."),
        message("user", "Two."),
        message("assistant", "Second."),
        message("user", "<turn_aborted>by the person</turn_aborted>"),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
        message("user", "Three."),
    )
    assert short_form(recording)[1:] == ["u One.", "a First.", "u Three."]
    assert [short_form(branch) for branch in recording.branches] == [
        ["u Two.", "a Second.", "u <turn_aborted>by the person</turn_aborted>"]
    ]
    assert recording.notes == {"rewound lines": 3}
    assert [entry.origin for entry in recording.messages] == ["plugin", None, None, None]


def test_empty_reasoning_and_unknown_lines_are_counted(tmp_path: Path) -> None:
    recording = read(
        tmp_path,
        META,
        META,
        item("reasoning", summary=[], content=None),
        item("ghost_snapshot", commit="abc"),
        ("event_msg", {"type": "agent_message", "message": "Hi."}),
        ("world_state", None),
        message("assistant", "Hi."),
    )
    assert (short_form(recording), recording.notes) == (["s Be brief.", "a Hi."], {"other lines": 5})


def test_blocks_of_other_kinds_stay_unchanged(tmp_path: Path) -> None:
    refusal = {"type": "refusal", "refusal": "No."}
    linked = {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}
    recording = read(
        tmp_path, item("message", role="user", content=[linked]), item("message", role="assistant", content=[refusal])
    )
    assert [entry.message.parts for entry in recording.messages] == [
        (Media("", "url", "https://example.com/a.png", extra=Extra(FORMAT, '{"detail":"low"}')),),
        (Text("No.", Extra(FORMAT, '{"item":{"type":"message"},"type":"refusal"}')),),
    ]


@pytest.mark.parametrize("payload", ["words", {"type": "message", "role": "king", "content": "Hi."}])
def test_an_item_that_cannot_be_read_is_damage(tmp_path: Path, payload: Any) -> None:
    lines = ("user", "Hi."), ("user", "Ho.")
    path = write_lines(
        tmp_path / "rollout.jsonl",
        *rollout(message(*lines[0]), ("response_item", payload), message(*lines[1])),
    )
    if isinstance(payload, str):  # A value that is not an object has no kind, and counts as unknown.
        assert read_recording(path).notes == {"other lines": 1}
        return
    with pytest.raises(BadTranscript) as stopped:
        read_recording(path)
    assert (stopped.value.line, stopped.value.problem) == (
        2,
        "item.role is the string 'king'. It must be user, assistant, system or developer.",
    )
    assert (short_form(read_recording(path, lenient=True))) == ["u Hi.", "u Ho."]


ITEMS = [
    {"role": "user", "content": "Why?"},
    {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "42"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "42."}]},
]


@pytest.mark.parametrize("shape", ["list", "body", "lines", "early rollout"])
def test_responses_items_are_read_from_every_wrapping(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "items"
    body = {"model": "gpt-x", "instructions": "Be brief.", "tools": [{"name": "f"}], "input": ITEMS}
    match shape:
        case "list":
            write_document(path, ITEMS)
        case "body":
            write_document(path, body)
        case "lines":
            write_lines(path, *ITEMS)
        case _:
            head = {"id": "s1", "timestamp": "2026-01-02T03:04:00Z", "instructions": "Be brief."}
            write_lines(path, head, {"record_type": "state"}, *ITEMS)
    recording = read_recording(path)
    assert (recording.format, sniff(path)) == (FORMAT, FORMAT)
    prompt = ["s Be brief."] if shape in ("body", "early rollout") else []
    assert short_form(recording) == [*prompt, "u Why?", "a c1?", "t c1! 42", "a 42."]
    assert recording.model == ("gpt-x" if shape == "body" else "")
    assert recording.tools == (({"name": "f"},) if shape == "body" else ())
    assert recording.notes == ({"other lines": 1} if shape == "early rollout" else {})
