"""Replies that another model continued after the first one declined (`fallbacks` of Anthropic)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foveate import Conversation, open_conversation, user
from foveate.stores.memory import MemoryStore
from foveate.testing.bodies import check_body

PLACE = {"type": "fallback", "from": {"model": "claude-fable-5"}, "to": {"model": "claude-opus-4-8"}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
KEPT = [
    SEARCH,
    FOUND,
    {"type": "text", "text": "I look."},
    PLACE,
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
]
VOID = [
    {"type": "thinking", "thinking": "First.", "signature": "c2ln"},
    {"type": "connector_text", "connector_text": "I go on."},
    {"type": "tool_use", "id": "toolu_1", "name": "delete", "input": {"all": True}},
    {**SEARCH, "id": "srvtoolu_2"},
]
CONTENT = [*VOID[:2], *KEPT[:3], *VOID[2:], *KEPT[3:]]
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "text"}]}


def reply(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}


@pytest.fixture
def chat() -> Conversation:
    return open_conversation("c", store=MemoryStore(), format="anthropic", policy="none", window=200_000, expand=False)


def test_void_blocks_are_kept_in_the_history_and_left_out_of_requests(chat):
    chat.append(user("go"))
    chat.prompt()
    chat.record(reply(CONTENT))
    assert [call.call_id for call in chat.open_calls()] == ["toolu_2"]
    chat.append([RESULT])
    shown = json.loads(chat.body())["messages"]
    assert shown[1]["content"] == KEPT
    assert check_body("anthropic", chat.body()) == []
    assert chat.format.render([chat.history()[1].message])[0]["content"] == CONTENT


@pytest.mark.parametrize("content", [KEPT, CONTENT])
def test_list_with_or_without_the_void_blocks_has_the_recorded_reply(chat, content):
    messages: list[Any] = [{"role": "user", "content": "go"}]
    chat.prompt(messages=messages)
    chat.record(reply(CONTENT))
    messages += [{"role": "assistant", "content": content}, RESULT, {"role": "user", "content": "on"}]
    assert chat.prompt(messages=messages)["messages"][1]["content"] == KEPT
    assert len(chat.history()) == 4
