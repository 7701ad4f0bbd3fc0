"""The checker of the Responses API: each rule refuses its planted violation and accepts the legal form."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from foveate.testing.bodies import RULES, check_body

Body = dict[str, Any]
NAME = "openai_responses"
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "a door"}


def legal() -> Body:
    """Return a legal request: reasoning, two calls, an image in an output, a patch, a search, an answer."""
    return {
        "model": "gpt-5.6",
        "store": False,
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "look", "parameters": {}}, {"type": "web_search"}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Why?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            CALL,
            {"type": "apply_patch_call", "call_id": "b", "status": "completed", "operation": {"type": "delete_file"}},
            {"type": "apply_patch_call_output", "call_id": "b", "status": "failed"},
            {**OUTPUT, "output": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "So."}],
            },
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"role": "user", "content": "Go on."},
        ],
    }


def put(*path: Any) -> Callable[[Body], None]:
    """Return a change that puts the last item of `path` at the place of the rest."""

    def change(body: Body) -> None:
        target: Any = body
        for step in path[:-2]:
            target = target[step]
        target[path[-2]] = path[-1]

    return change


def remove(place: int) -> Callable[[Body], None]:
    return lambda body: body["input"].pop(place)


def insert(place: int, item: Any) -> Callable[[Body], None]:
    return lambda body: body["input"].insert(place, item)


I = "input"  # noqa: E741
PROGRAM = {"type": "program", "id": "prog_1", "call_id": "call_p"}
SHOT = {"type": "computer_screenshot", "image_url": "x"}
PLANTED: list[tuple[str, str, Callable[[Body], None]]] = [
    ("messages", "input", put(I, [])),
    ("messages", "messages", put("messages", [])),
    ("shape", "input[0]", put(I, 0, "hello")),
    ("shape", "input[0].type", put(I, 0, {"text": "x"})),
    ("role", "input[0].role", put(I, 0, "role", "tool")),
    ("content", "input[8].content", put(I, 8, "content", None)),
    ("content", "input[5].output", put(I, 5, "output", {"a": 1})),
    ("content", "input[4].status", put(I, 4, "status", "ok")),
    ("empty", "input[0].content", put(I, 0, "content", [])),
    ("block", "input[0].content[0].type", put(I, 0, "content", 0, "type", "output_text")),
    ("block", "input[6].content[0].type", put(I, 6, "content", 0, "type", "input_text")),
    ("block", "input[0].content[0].type", put(I, 0, "content", 0, "type", "text")),
    ("block", "input[2].type", put(I, 2, "type", "tool_use")),
    ("pairing", "input[2]", remove(5)),
    ("pairing", "input[4]", remove(2)),
    ("pairing", "input[6]", insert(6, OUTPUT)),
    ("pairing", "input[5]", put(I, 5, "type", "custom_tool_call_output")),
    ("pairing", "input[1]", insert(1, {**PROGRAM, "type": "program_output"})),
    ("pairing", "input[7]", insert(7, PROGRAM)),
    ("call-id", "input[2].call_id", put(I, 2, "call_id", "")),
    ("call-id", "input[2].call_id", put(I, 2, "call_id", "a" * 65)),
    ("call-id", "input[6].call_id", insert(6, {**CALL, "id": "fc_2"})),
    ("call-id", "input[6].id", put(I, 6, "id", "rs_1")),
    ("call-id", "input[6].id", put(I, 6, "id", "m" * 65)),
    ("name", "input[2].name", put(I, 2, "name", "a tool")),
    ("name", "tools[0].name", put("tools", 0, "name", "a tool")),
    ("arguments", "input[2].arguments", put(I, 2, "arguments", '{"at')),
    ("arguments", "input[2].arguments", put(I, 2, "arguments", {"at": 1})),
    ("arguments", "input[3].operation", put(I, 3, "operation", None)),
    ("thinking", "input[1]", put(I, 1, "encrypted_content", None)),
    ("thinking", "input[1].summary", put(I, 1, "summary", None)),
    ("thinking", "input[1]", insert(2, {"role": "user", "content": "Wait."})),
    ("thinking", "input[9]", insert(9, {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "g"})),
    ("order", "input[0]", insert(0, {"type": "compaction_trigger"})),
    ("shape", "input[0].encrypted_content", insert(0, {"type": "compaction"})),
    ("media", "input[5].output[0].image_url", put(I, 5, "output", 0, "image_url", "data:image/tiff;base64,aGk=")),
    ("media", "input[5].output[0].image_url", put(I, 5, "output", 0, "image_url", "data:image/png;base64,?")),
    ("media", "input[5].output[0]", put(I, 5, "output", 0, "image_url", None)),
    ("media", "input[0].content[0]", put(I, 0, "content", 0, {"type": "input_file"})),
    (
        "media",
        "input[0].content[0]",
        put(I, 0, "content", 0, {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"}),
    ),
    ("utf8", "input[8].content", put(I, 8, "content", "half a pair: \ud83d")),
    ("system", "system", put("system", "Be brief.")),
    ("system", "instructions", put("instructions", ["Be brief."])),
    ("tools", "tools[0]", put("tools", 0, {"type": "function", "function": {"name": "look"}})),
    ("tools", "tools", put("tools", {})),
    ("size", "input[8].content", put(I, 8, "content", "x" * 10_485_761)),
]


@pytest.mark.parametrize(("rule", "where", "change"), PLANTED)
def test_planted_fault_is_refused_by_its_rule_and_at_its_place(rule: str, where: str, change: Any):
    body = copy.deepcopy(legal())
    change(body)
    found = [(refusal.rule, refusal.where) for refusal in check_body(NAME, body)]
    assert (rule, where) in found
    assert rule in RULES
    if rule not in ("utf8", "size"):
        assert [(one.rule, one.where) for one in check_body(NAME, json.dumps(body).encode())] == found


@pytest.mark.parametrize("strict", [False, True])
def test_good_request_is_accepted(strict: bool):
    assert check_body(NAME, legal(), strict=strict) == []
    assert check_body(NAME, {"input": "Why?"}) == []


def test_unknown_keys_of_messages_are_refused_and_of_others_by_strict_readers():
    body = legal()
    body["input"][2] = {**CALL, "x_internal": 1}
    assert check_body(NAME, body) == []
    assert [str(one.where) for one in check_body(NAME, body, strict=True)] == ["input[2].x_internal"]
    body["input"][0]["x_internal"] = 1
    assert [str(one.where) for one in check_body(NAME, body)] == ["input[0].x_internal"]


def test_outputs_may_answer_calls_that_the_provider_stores():
    assert [one.rule for one in check_body(NAME, {"input": [OUTPUT]})] == ["pairing"]
    assert check_body(NAME, {"input": [OUTPUT], "previous_response_id": "resp_1"}) == []


def test_reasoning_known_by_its_id_alone_needs_storage():
    body = legal()
    body["input"][1]["encrypted_content"] = None
    assert [one.rule for one in check_body(NAME, body)] == ["thinking"]
    assert check_body(NAME, {**body, "store": True}) == []
    assert check_body(NAME, {key: value for key, value in body.items() if key != "store"}) == []
