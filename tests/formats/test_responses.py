from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from format_views import IMAGE, PIXEL, entries, view
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import open_conversation
from foveate.core.edits import Hide, Replace, Target
from foveate.core.legalize import NO_ANSWER
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
from foveate.core.profiles import PROFILES
from foveate.core.stamps import Stop, Usage
from foveate.core.view import Entry
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.formats.json import encode
from foveate.formats.responses import Responses
from foveate.formats.responses.write import BLANK, SHOWN
from foveate.formats.tools import for_anthropic, for_openai, for_responses
from foveate.stores.memory import MemoryStore
from foveate.testing.bodies import check_body

NAME = "openai_responses"
PROFILE = PROFILES[NAME]

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"at": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "a door"}
ANSWER = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "A door.", "annotations": [], "logprobs": []}],
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}


def whole(*items: Any) -> list[Message]:
    """Return the messages in these items, after checking that they are written back unchanged."""
    messages = list(Responses().parse(list(items)))
    assert Responses().render(messages) == list(items)
    return messages


def one(*items: Any) -> Message:
    (message,) = whole(*items)
    return message


def shown(*messages: Message | Entry, **keywords: Any) -> list[dict[str, Any]]:
    """Return the items of a prompt, after a check with and without storage."""
    format = Responses()
    prompt = format.prompt(view(*messages), profile=PROFILE, **keywords)
    assert json.loads(format.body(view(*messages), profile=PROFILE, **keywords)) == prompt
    for store in (True, False):
        assert check_body(NAME, {**prompt, "store": store}) == []
    items: list[dict[str, Any]] = prompt["input"]
    return items


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
    }
    return {
        "object": "response",
        "id": "resp_1",
        "status": "completed",
        "output": list(output),
        "usage": usage,
        **fields,
    }


# ------------------------------------------------------------------------------------------------------------- messages


def test_every_role_is_read():
    assert Responses().parse("hi") == (user("hi"),)
    assert one({"role": "user", "content": "hi"}) == user("hi")
    assert one({"role": "system", "content": "rules"}) == system("rules")
    developer = Message("system", (Text("rules"),), extra=Extra(NAME, '{"role":"developer"}'))
    assert one({"role": "developer", "content": "rules"}) == developer
    assert one({"role": "assistant", "content": "yes"}) == assistant("yes")
    assert one(OUTPUT) == tool_result("call_1", "a door")


def test_unknown_fields_of_messages_stay_with_them():
    passthrough = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}
    text = {"type": "input_text", "text": "hi"}
    item = {"type": "message", "id": "msg_9", "role": "user", "content": [text], **passthrough}
    assert one(item).text == "hi"
    assert shown(*whole(item)) == [item]


@pytest.mark.parametrize("message", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}])
def test_keys_that_the_api_refuses_stay_in_the_history(message: dict[str, Any]):
    """Hosts keep ids, times and metadata in their messages."""
    foreign = {**message, "id": "42", "timestamp": 7, "messageType": "action-result"}
    assert shown(*whole(foreign))[-1] == message
    assert [refusal.where for refusal in check_body(NAME, {"input": [{**message, "timestamp": 7}]})] == [
        "input[0].timestamp"
    ]
    profile = replace(PROFILE, unknown_keys=True)
    assert Responses().prompt(view(*whole(foreign)), profile=profile)["input"][-1] == foreign


def test_the_items_of_one_response_are_one_message():
    message = one(REASONING, ANSWER | {"phase": "commentary"}, SEARCH, CALL)
    assert [type(part) for part in message.parts] == [Reasoning, Text, Opaque, ToolCall]
    assert message.calls[0].arguments == '{"at": 1}'


def test_messages_of_one_response_stay_apart():
    one(ANSWER | {"phase": None}, ANSWER | {"id": "msg_2"})
    plain = {"role": "assistant", "content": "a"}
    message = one(plain, plain)
    assert [part.text for part in message.parts if isinstance(part, Text)] == ["a", "a"]
    parts = [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}]
    one({"role": "assistant", "content": parts}, {"role": "assistant", "content": [parts[0]]})


def test_a_response_ends_with_the_phase_final_answer():
    assert len(whole(REASONING, ANSWER, {**ANSWER, "id": "msg_2"})) == 2


def test_recorded_responses_in_a_row_stay_apart_in_a_list():
    format = Responses()
    first, second = {**ANSWER, "phase": None}, {**ANSWER, "phase": None, "id": "msg_2"}
    for reply in (response(first), response(second)):
        format.parse_reply(reply)
    assert len(format.group([first, second])) == 2
    assert len(Responses().group([first, second])) == 1  # Nothing shows the boundary.


def test_an_incomplete_item_ends_its_response():
    """An answer that reached the limit of its length is continued by another response."""
    cut = {**ANSWER, "phase": None, "status": "incomplete"}
    assert len(Responses().group([cut, {**ANSWER, "id": "msg_2"}])) == 2


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("is_resumed", [True, False])
def test_responses_in_a_row_stay_apart_in_the_list_of_a_resumed_conversation(has_ids, is_resumed):
    """The boundaries came from the memory of one process, and were lost with it."""
    store = MemoryStore()
    chat = open_conversation("c", store=store, format=NAME, window=100_000, policy="none")
    plain = {key: value for key, value in ANSWER.items() if key != "phase"}
    first = [REASONING, plain]
    second = [{**REASONING, "id": "rs_2", "encrypted_content": "b3RoZXI="}, {**plain, "id": "msg_2"}]
    items: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    chat.prompt(messages=items)
    for output in (first, second):
        chat.record(response(*output))
    items += [*first, *second, {"role": "user", "content": "Go on."}]
    if not has_ids:
        items = [{key: value for key, value in item.items() if key != "id"} for item in items]
    if is_resumed:
        chat = open_conversation("c", store=store, format=NAME, window=100_000, policy="none")
    chat.prompt(messages=items)
    assert [row.message.role for row in chat.history()] == ["user", "assistant", "assistant", "user"]
    assert not chat.journal.records()


@pytest.mark.parametrize(
    "items",
    [
        [
            {
                "type": "shell_call",
                "id": "sh_1",
                "call_id": "c",
                "environment": {"type": "container_auto"},
                "action": {},
            },
            {"type": "shell_call_output", "id": "sho_1", "call_id": "c", "output": []},
        ],
        [CALL, {**OUTPUT, "id": "fco_1"}],
        [
            {"type": "program", "id": "prog_1", "call_id": "call_p", "code": "1", "fingerprint": "f"},
            {"type": "program_output", "id": "prog_out_1", "call_id": "call_p", "result": "1", "status": "completed"},
        ],
        [
            {"type": "multi_agent_call", "call_id": "call_m", "action": "wait_agent", "arguments": "{}", "id": "mac_1"},
            {"type": "multi_agent_call_output", "call_id": "call_m", "action": "wait_agent", "output": []},
            {"type": "agent_message", "author": "/root/a", "recipient": "/root", "content": []},
        ],
        [
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "look"},
            {"type": "mcp_approval_response", "id": "mcprs_1", "approval_request_id": "mcpr_1", "approve": True},
        ],
        [SEARCH, {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": []}],
    ],
    ids=lambda items: str(items[1]["type"]),
)
@pytest.mark.parametrize("is_resumed", [False, True])
def test_recorded_response_with_outputs_is_one_message_in_a_list(items: list[dict[str, Any]], is_resumed: bool):
    store = MemoryStore()
    chat = open_conversation("c", store=store, format=NAME, window=100_000, policy="none")
    sent: list[Any] = [{"role": "user", "content": "go"}]
    chat.prompt(messages=sent)
    chat.record(response(*items, ANSWER))
    sent += [*items, ANSWER, {"role": "user", "content": "Go on."}]
    if is_resumed:
        chat = open_conversation("c", store=store, format=NAME, window=100_000, policy="none")
    assert chat.prompt(messages=sent)["input"] == sent
    assert [row.message.role for row in chat.history()] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "c", "name": "patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
        ),
        (
            {
                "type": "local_shell_call",
                "id": "ls_1",
                "call_id": "c",
                "status": "completed",
                "action": {"type": "exec"},
            },
            {"type": "local_shell_call_output", "id": "c", "output": '{"code":0}'},
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"},
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 1}}],
                "max_output_length": 4096,
            },
        ),
        (
            {
                "type": "apply_patch_call",
                "call_id": "c",
                "status": "completed",
                "operation": {"type": "delete_file", "path": "a"},
            },
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"},
        ),
        (
            {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "wait"}, "status": "completed"},
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"},
                "acknowledged_safety_checks": [],
            },
        ),
        (
            {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "x"}},
            {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [], "status": "completed"},
        ),
        (
            {"type": "mcp_approval_request", "id": "c", "server_label": "s", "name": "look", "arguments": '{"a":1}'},
            {"type": "mcp_approval_response", "approval_request_id": "c", "approve": True, "id": "mcprs_1"},
        ),
    ],
    ids=lambda item: str(item["type"]),
)
def test_every_kind_of_call_pairs_with_its_output(call: dict[str, Any], output: dict[str, Any]):
    question = {"role": "user", "content": "go"}
    messages = whole(question, call, output)
    assert messages[1].calls[0].call_id == "c" == (messages[2].result or tool_result("", "")).call_id  # type: ignore[union-attr]
    assert shown(*messages) == [question, call, output]
    # A text in place of the output, as an edit leaves it, or as the rules add it for a missing answer.
    answered = shown(messages[0], messages[1], tool_result("c", "[cleared]"))
    assert answered[2]["type"] == output["type"]
    assert "[cleared]" in json.dumps(answered)


def test_approval_of_an_mcp_call_has_its_request_in_every_view():
    """The API refuses an approval without its request, and a request that is followed by something else."""
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "look", "arguments": "{}"}
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "No."}
    chat = open_conversation("c", store=MemoryStore(), format=NAME, window=100_000, policy="none", expand=False)
    chat.append("go")
    chat.prompt()
    chat.record(response(request))
    assert [call.name for call in chat.open_calls()] == ["mcp_approval_request"]
    stored = '{"server_label":"s","name":"look","arguments":"{}"}'  # The same bytes in every process.
    assert [call.arguments for call in chat.open_calls()] == [stored]
    chat.append([approval, {"role": "user", "content": "on"}])
    assert chat.prompt()["input"][1:3] == [request, approval]
    first, second = (Hide(Target(entry.id)) for entry in chat.history()[1:3])
    chat.edit(second)
    stand_in = {**approval, "reason": NO_ANSWER}
    assert chat.prompt()["input"][1:3] == [request, stand_in]
    answered = shown(*whole({"role": "user", "content": "go"}, request), tool_result("mcpr_1", "ok"))
    assert answered[-1] == {**approval, "reason": "ok"}  # An answer of another kind approves nothing.
    chat.undo()
    chat.edit(first)
    note = "[Result for call mcpr_1 of mcp_approval_request, which is not shown]"
    assert [item["content"] for item in chat.prompt()["input"][1:]] == [
        [{"type": "input_text", "text": note}, {"type": "input_text", "text": "No."}],
        "on",
    ]


def test_a_hidden_screenshot_is_blank_and_the_text_follows_the_results():
    first = {"type": "computer_call", "call_id": "a", "action": {"type": "wait"}, "pending_safety_checks": []}
    messages = [user("go"), *whole(first, {**first, "call_id": "b"})]
    items = shown(*messages, tool_result("a", "[cleared]"), tool_result("b", "[gone]"))
    assert [item.get("type") for item in items[3:5]] == ["computer_call_output"] * 2
    assert items[3]["output"] == {"type": "computer_screenshot", "image_url": BLANK}
    assert [item["content"] for item in items[5:]] == [f"{SHOWN}[cleared]", f"{SHOWN}[gone]"]


def test_result_of_a_programs_call_names_the_program():
    """The API gives the result to the program by this field, which results of agents and stand-ins do not have."""
    caller = {"type": "program", "caller_id": "call_p"}
    program = {"type": "program", "id": "prog_1", "call_id": "call_p", "code": "1", "fingerprint": "f"}
    asked = one(program, {**CALL, "caller": caller})
    assert shown(user("go"), asked, tool_result("call_1", "a door"))[-1] == {**OUTPUT, "caller": caller}
    direct = one({**CALL, "caller": {"type": "direct"}})
    assert shown(user("go"), direct, tool_result("call_1", "a door"))[-1] == OUTPUT


def test_message_of_an_agent_keeps_its_name():
    """With several agents in one response, the API tells them apart by this field."""
    message = {**ANSWER, "agent": {"agent_name": "/root/a"}}
    assert shown(user("go"), one(message))[-1] == message


def test_errors_of_a_shell_are_text_for_every_provider():
    """They stood in a field that no other provider got, no summary read and no search found."""
    call = {"type": "shell_call", "call_id": "c", "action": {"commands": ["a", "b", "c"]}, "status": "completed"}
    done = {"type": "exit", "exit_code": 0}
    outputs = [
        {"stdout": "one", "stderr": "no such file", "outcome": {"type": "exit", "exit_code": 1}},
        {"stdout": "two", "stderr": "", "outcome": done},
        {"stdout": "", "stderr": "killed", "outcome": {"type": "timeout"}},
    ]
    item = {"type": "shell_call_output", "call_id": "c", "output": outputs}
    messages = whole({"role": "user", "content": "go"}, call, item)
    assert shown(*messages)[2] == item
    result = messages[2].result
    assert result is not None
    assert result.text.split("\n") == ["one", "no such file", "two", "", "killed"]


def test_calls_that_the_provider_runs_are_kept_whole():
    container = {"type": "shell_call", "call_id": "c", "environment": {"type": "container_reference"}, "action": {}}
    ran = {"type": "shell_call_output", "call_id": "c", "output": [], "status": "completed"}
    search = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}
    found = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    program = {"type": "program", "id": "p", "call_id": "p1", "code": "1", "fingerprint": "f"}
    generated = {"type": "image_generation_call", "id": "ig_1", "result": "aGk=", "status": "completed"}
    items = [container, ran, search, found, program, generated, {"type": "mcp_call", "id": "mcp_1"}, ANSWER]
    message = one(*items)
    assert message.calls == ()
    assert shown(user("go"), message)[1:] == items
    # In a response itself, an output shows that the provider ran the call.
    plain = {key: value for key, value in container.items() if key != "environment"}
    assert Responses().parse_reply(response(plain, ran))[0].calls == ()


def test_items_of_other_kinds_keep_their_place():
    tools = {"type": "additional_tools", "role": "developer", "tools": []}
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    future = {"type": "hologram", "depth": [1, 2.5]}
    reference = {"type": "item_reference", "id": "msg_1"}
    messages = whole(tools, {"role": "user", "content": "x"}, compaction, future, reference, {"id": "msg_2"})
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert messages[2].parts == (Opaque(NAME, "compaction", json.dumps(compaction, separators=(",", ":"))),)
    assert len(shown(*messages)) == 6


def test_items_with_a_role_that_are_no_messages_stay_whole():
    """Codex sends its tools and its settings as items of the developer."""
    tools = {
        "type": "additional_tools",
        "id": "at_1",
        "role": "developer",
        "tools": [{"type": "custom", "name": "exec"}],
    }
    update = {"type": "configuration_update", "role": "developer", "reasoning": {"effort": "low"}}
    chat = open_conversation("c", format=NAME, window=8_000)
    items = [tools, {"role": "user", "content": "x"}, update]
    assert chat.prompt(messages=items)["input"] == items


def test_results_hold_texts_images_and_files():
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"}
    parts = [
        {"type": "input_text", "text": "see"},
        image,
        {"type": "input_image", "image_url": "https://x.test/a.png"},
        {"type": "input_image", "file_id": "file-1", "detail": "auto"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
        {"type": "input_file", "file_id": "file-2"},
        {"type": "input_file", "file_url": "https://x.test/a.pdf"},
        {"type": "input_hologram", "depth": 3},
    ]
    messages = whole({"role": "user", "content": parts}, CALL, {**OUTPUT, "output": parts})
    assert messages[0].parts[1] == Media("image/png", "base64", PIXEL, "", Extra(NAME, '{"detail":"low"}'))
    assert shown(*messages)[2]["output"] == parts
    whole({**OUTPUT, "output": []}, {**OUTPUT, "output": [parts[0]]}, {**OUTPUT, "output": ""})


def test_files_are_named_with_the_ending_of_their_type():
    """OpenAI tells the type of a file by it: `Expected context stuffing file type ... but got none`."""
    files = (
        Media("application/pdf", "base64", "JVBERi0=", "Report 3"),
        Media("text/csv", "base64", "YSxi"),
        Media("application/x-unknown", "base64", "AAAA", "a.xyz"),
        Media("video/mp4", "base64", "AAAA"),
    )
    (item,) = shown(user("u", *files))
    assert [part.get("filename", part.get("text")) for part in item["content"][1:]] == [
        "Report 3.pdf",
        "file.csv",
        "a.xyz",
        "[Video, not shown here: video/mp4]",
    ]


def test_sounds_are_sent_in_messages_only():
    sound = Media("audio/wav", "base64", "UklGRg==")
    call = assistant("", ToolCall("c", "f"))
    items = shown(user("hear", sound), call, Message("tool", (ToolResult("c", (sound,)),)))
    assert items[0]["content"][1] == {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    assert items[2]["output"] == "[Sound, not shown here: audio/wav]"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"role": "tool", "tool_call_id": "a", "content": "x"}, "function_call_output items"),
        ({"type": "tool_use", "id": "a"}, "belongs to another API"),
        ({"role": "user"}, r"content is missing or null"),
        ({"type": "function_call", "name": 3}, r"output\[0\].name is a number"),
        ({"type": 7}, "item.type is a number"),
        ({"role": "user", "content": [{"text": "x"}]}, r"content\[0\].type is missing"),
        ([], "list of items is empty"),
        (3, "must be an object"),
    ],
)
def test_malformed_items_are_refused(value: object, says: str):
    with pytest.raises(BadMessage, match=says):
        Responses().parse(value)


# -------------------------------------------------------------------------------------------------------------- replies


def test_a_reply_has_its_usage_and_the_reason_of_its_end():
    format = Responses()
    message, usage = format.parse_reply(response(REASONING, CALL))
    assert message == one(REASONING, CALL)
    assert usage == Usage(input=40, cache_read=60, output=20, reasoning=12)
    assert format.stop_of(response(REASONING, CALL)) == Stop("calls", "completed")
    assert format.stop_of(response(ANSWER)) == Stop("end", "completed")
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    assert format.stop_of(response(refusal)) == Stop("refusal", "completed")
    for reason, kind in (("max_output_tokens", "length"), ("content_filter", "filtered"), ("steered", "other")):
        cut = response(ANSWER, status="incomplete", incomplete_details={"reason": reason})
        assert format.stop_of(cut) == Stop(kind, reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "Down"}}, "failed: server_error: Down"),
        ({"status": "in_progress"}, "is in_progress"),
        ({"previous_response_id": "resp_0"}, r"previous_response_id='resp_0'.*append\(response.output\)"),
        ({"conversation": {"id": "conv_1"}}, "conversation='conv_1'"),
        ({"output": None}, "Pass the whole response"),
    ],
)
def test_a_reply_that_is_not_the_answer_to_a_prompt_is_refused(fields: dict[str, Any], says: str):
    with pytest.raises(BadMessage, match=says):
        Responses().parse_reply({**response(ANSWER), **fields})


# ------------------------------------------------------------------------------------------------------------- requests


def test_a_string_as_system_prompt_becomes_instructions():
    format, shown_view = Responses(), view(user("hi"))
    prompt = format.prompt(shown_view, profile=PROFILE, system="Be brief.", tools=[{"name": "f", "input_schema": {}}])
    assert list(prompt) == ["instructions", "tools", "input"]
    assert prompt["instructions"] == "Be brief."
    parts = ["Be brief.", "", {"type": "text", "text": "Be kind."}, {"role": "developer", "content": "Be quick."}]
    items = format.prompt(shown_view, profile=PROFILE, system=parts)["input"]
    assert [item["content"] for item in items] == ["Be brief.", "Be kind.", "Be quick.", "hi"]


def test_reasoning_is_sent_only_with_its_encrypted_content():
    """A bare id fails if the provider does not store it; without it, no item may name the response it came from."""
    chat = open_conversation("c", format=NAME, window=100_000, policy="none")
    chat.append("go")
    chat.record(response({**REASONING, "encrypted_content": None}, CALL))
    chat.append(OUTPUT)
    items = chat.prompt()["input"]
    assert [item.get("type") for item in items] == [None, "function_call", "function_call_output"]
    assert "id" not in items[1]
    kept = open_conversation("k", format=NAME, window=100_000, policy="none")
    kept.append("go")
    kept.record(response(REASONING, CALL))
    kept.append(OUTPUT)
    assert kept.prompt()["input"][1:] == [REASONING, CALL, OUTPUT]


def test_items_lose_their_ids_if_an_edit_changes_their_response():
    chat = open_conversation("c", format=NAME, window=100_000, policy="none")
    chat.append("go")
    chat.record(response(REASONING, {**ANSWER, "phase": "commentary"}, SEARCH, CALL))
    chat.append(OUTPUT)
    message = chat.history()[1]
    chat.edit(Replace(Target(message.id, (1,)), (Text("[shortened]"),)))
    items = chat.prompt()["input"]
    assert [item.get("type") for item in items[1:]] == [
        *("reasoning", None, "web_search_call", "function_call", "function_call_output")
    ]
    assert [item.get("id") for item in items] == [None] * 6
    assert items[1]["encrypted_content"] == "gAAAA"


def test_reasoning_that_led_to_nothing_is_not_sent():
    messages = whole(REASONING, {**ANSWER, "phase": None}, {**REASONING, "id": "rs_2"})
    assert [item["type"] for item in shown(user("go"), *messages)[1:]] == ["reasoning", "message"]


def test_an_id_is_sent_once():
    items = shown(*entries(user("go"), *whole(ANSWER), user("again"), *whole(ANSWER)))
    assert [item.get("id") for item in items] == [None, "msg_1", None, None]


def test_trigger_of_a_compaction_is_sent_at_the_end_alone():
    """After a failed compaction the items before it are shown, and the trigger would start another one."""
    trigger = {"type": "compaction_trigger"}
    asked = whole({"role": "user", "content": "go"}, trigger)
    assert shown(*asked)[1:] == [trigger]
    format, entered = Responses(), view(*asked, user("on"))
    assert [item["content"] for item in format.prompt(entered, profile=PROFILE)["input"]] == ["go", "on"]
    assert json.loads(format.body(entered, profile=PROFILE)) == format.prompt(entered, profile=PROFILE)
    assert len(format.rendered(entered, profile=PROFILE)) == 2


def test_rendered_items_join_to_the_body():
    format = Responses()
    messages = [user("go", IMAGE), *whole(REASONING, CALL, OUTPUT, ANSWER), *whole(ANSWER)]
    rendered = format.rendered(view(*messages), profile=PROFILE)
    body = json.loads(format.body(view(*messages), profile=PROFILE))
    assert [json.loads(item.body) for item in rendered] == body["input"]
    assert [len(item.entries) for item in rendered] == [1] * 6


def test_a_strict_server_gets_only_the_common_fields():
    strict = msgspec.structs.replace(PROFILE, strict=True)
    message = Message("user", (Text("hi"),), extra=Extra(NAME, '{"x":1}'))
    shown_view = view(message, *whole(REASONING, SEARCH, CALL, OUTPUT))
    body = Responses().prompt(shown_view, profile=strict)
    assert check_body(NAME, body, strict=True) == []
    assert sorted(body["input"][0]) == ["content", "role"]


def test_each_body_begins_like_the_one_before():
    chat = open_conversation("c", format=NAME, window=100_000, policy="none")
    chat.append("go")
    before = chat.body()
    for turn in range(4):
        call = {**CALL, "call_id": f"c{turn}", "id": f"fc_{turn}"}
        chat.record(response({**REASONING, "id": f"rs_{turn}"}, call))
        chat.append({**OUTPUT, "call_id": f"c{turn}"})
        body = chat.body()
        assert body.startswith(before[:-2])
        before = body


def test_a_callers_list_of_items_is_followed_without_forks():
    chat = open_conversation("c", format=NAME, window=100_000, policy="none")
    items: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(3):
        assert chat.prompt(messages=items)["input"] == items
        output = [
            {**REASONING, "id": f"rs_{turn}"},
            {**CALL, "id": f"fc_{turn}", "call_id": f"c{turn}"},
            {**CALL, "id": f"fd_{turn}", "call_id": f"d{turn}"},
        ]
        chat.record(response(*output))
        items += [*output, {**OUTPUT, "call_id": f"c{turn}"}, {**OUTPUT, "call_id": f"d{turn}"}]
    assert chat.prompt(messages=items)["input"] == items
    assert len(chat.history()) == 10


def test_tools_are_written_flat():
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    flat = {"type": "function", "name": "f", "description": "d", "parameters": schema, "strict": False}
    nested = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    named = {"name": "f", "description": "d", "input_schema": schema}
    hosted, custom = {"type": "web_search"}, {"type": "custom", "name": "p", "description": "d"}
    assert for_responses([nested, named, flat, hosted]) == [flat, flat, flat, hosted]
    assert for_responses(for_openai([custom])) == [custom]
    assert for_openai([flat]) == [{"type": "function", "function": {**nested["function"], "strict": False}}]  # type: ignore[dict-item]
    [as_object] = for_anthropic([custom])
    assert as_object["input_schema"]["required"] == ["input"]


# ----------------------------------------------------------------------------------------------------------- recordings


def requests(folder: Path) -> list[dict[str, Any]]:
    """Return the bodies that real clients sent to the Responses API."""
    lines = [line for name in ("codex", "ws", "oc") for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    bodies = [record.get("frame") or record.get("body") for record in map(json.loads, lines)]
    return [body for body in bodies if isinstance(body, dict) and "input" in body]


def test_recorded_requests_are_legal_and_come_back_equal(wire_recordings: Path):
    bodies = requests(wire_recordings)
    assert len(bodies) >= 9
    for body in bodies:
        assert check_body(NAME, body) == []
        assert check_body(NAME, encode(body)) == []
        whole(*body["input"])


def test_recorded_requests_are_sent_as_they_came(wire_recordings: Path):
    for body in requests(wire_recordings):
        if "previous_response_id" in body or body.get("generate") is False:
            continue  # Its calls are at the provider, or it asks for no answer.
        chat = open_conversation("c", format=NAME, window=200_000, policy="none", expand=False)
        prompt = chat.prompt(messages=body["input"], system=body.get("instructions"), tools=body["tools"])
        assert prompt["input"] == body["input"]
        assert prompt["tools"] == body["tools"]


def test_items_of_recorded_rollouts_come_back_equal(transcripts: Path):
    files = sorted((transcripts / "raw" / "codex_rollout").glob("*.jsonl"))
    assert files
    for file in files:
        lines = map(json.loads, file.read_text().splitlines())
        items = [line["payload"] for line in lines if line["type"] == "response_item"]
        assert check_body(NAME, {"input": items}) == []
        whole(*items)


# ----------------------------------------------------------------------------------------------------------- properties

words = st.text(max_size=8)
ids = st.text("abc123_", min_size=1, max_size=6)
known = st.fixed_dictionaries({}, optional={"id": ids, "status": st.just("completed"), "x-new": st.integers()})


@st.composite
def item_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Generate lists of items of the kinds that clients send, in any order."""
    texts = st.fixed_dictionaries(
        {"type": st.just("output_text"), "text": words}, optional={"annotations": st.just([])}
    )
    inputs = st.fixed_dictionaries({"type": st.just("input_text"), "text": words}, optional={"x-new": words})
    messages = st.one_of(
        st.tuples(st.sampled_from(["user", "system", "developer"]), words | st.lists(inputs, max_size=3)),
        st.tuples(st.just("assistant"), words | st.lists(texts, max_size=3)),
    ).map(lambda pair: {"role": pair[0], "content": pair[1]})
    typed = messages.map(lambda item: {"type": "message", **item})
    summaries = st.lists(words.map(lambda text: {"type": "summary_text", "text": text}), max_size=2)
    thoughts = st.fixed_dictionaries(
        {"type": st.just("reasoning"), "summary": summaries},
        optional={"encrypted_content": st.none() | words, "content": st.none()},
    )
    called = {"call_id": ids, "name": ids}
    function = {"type": st.just("function_call"), **called, "arguments": words}
    calls = st.fixed_dictionaries(function, optional={"namespace": words})
    free = st.fixed_dictionaries({"type": st.just("custom_tool_call"), **called, "input": words})
    outputs = st.fixed_dictionaries(
        {
            "type": st.sampled_from(["function_call_output", "custom_tool_call_output", "magic_call_output"]),
            "call_id": ids,
            "output": words | st.lists(inputs, max_size=2),
        }
    )
    others = st.sampled_from([SEARCH, {"type": "compaction", "encrypted_content": "g"}, {"type": "item_reference"}])
    kinds = st.one_of(messages, typed, thoughts, calls, free, outputs, others)
    return [{**item, **draw(known)} for item in draw(st.lists(kinds, min_size=1, max_size=8))]


def answers_fit(items: list[dict[str, Any]]) -> bool:
    """Return whether each answer has the kind of the calls with its id; a writer corrects other ones."""
    kinds = [(item.get("type", ""), item.get("call_id")) for item in items]
    calls = {(f"{kind}_output", call) for kind, call in kinds if kind.endswith("_call")}
    answered = {call for _, call in calls}
    answers = {(kind, call) for kind, call in kinds if kind.endswith("_output") and call in answered}
    return len(calls) == len(answered) and answers <= calls


@given(item_lists().filter(answers_fit))
def test_any_list_of_items_comes_back_equal(items: list[dict[str, Any]]):
    messages = get_format(NAME).parse(items)
    assert get_format(NAME).render(messages) == items


@given(item_lists(), st.booleans())
def test_any_list_of_items_becomes_a_legal_request(items: list[dict[str, Any]], store: bool):
    chat = open_conversation("c", format=NAME, window=100_000, policy="none")
    chat.append(items)
    chat.append("go")
    assert check_body(NAME, {**chat.prompt(), "store": store}) == []


@pytest.mark.parametrize("key", ["id", "call_id"])
@pytest.mark.parametrize("kind", ["function_call", "function_call_output", "shell_call", "reasoning"])
def test_id_that_is_no_string_is_refused_or_kept(kind: str, key: str):
    """A list as id once raised a TypeError, which names neither the item nor the cure."""
    item = {"type": kind, "call_id": "c", "name": "f", "arguments": "{}", "output": "a", "summary": [], key: ["x"]}
    with suppress(BadMessage):
        messages = get_format(NAME).parse([item, item])
        assert get_format(NAME).render(messages) == [item, item]
