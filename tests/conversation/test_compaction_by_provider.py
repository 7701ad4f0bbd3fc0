"""Context that the provider edits by itself: its compactions are recorded, and its counts stay comparable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foveate import Message, Opaque, Text, open_conversation, user
from foveate.edits import Summarize
from foveate.formats import get_format
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, say
from foveate.testing.bodies import check_body


def reply(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [*content], **fields}


BLOCK = {"type": "compaction", "content": "The user fixes the tests.", "encrypted_content": "gAAA"}
ANSWER = reply(BLOCK, {"type": "text", "text": "Done."})


def opened(store: MemoryStore | None = None, **options: Any) -> Any:
    options.setdefault("window", 200_000)
    return open_conversation("c", store=store or MemoryStore(), format="anthropic", expand=False, **options)


def started(**options: Any) -> Any:
    chat = opened(**options)
    chat.append([user("fix"), call("a"), answer("a", "long " * 500), user("and this")])
    chat.prompt()
    chat.record(ANSWER)
    return chat


def test_recorded_compaction_becomes_an_edit_that_can_be_undone():
    store = MemoryStore()
    chat = started(store=store, policy="none")
    (record,) = chat.journal.records()
    (edit,) = record.edits
    assert isinstance(edit, Summarize)
    assert (record.author, edit.policy, edit.text) == (
        "provider",
        "provider",
        "[Summary of m1-m4, written by the provider]\nThe user fixes the tests.",
    )
    chat.append(user("next"))
    messages = chat.prompt()["messages"]
    assert [block["type"] for block in messages[0]["content"]] == ["compaction", "text"]
    assert len(messages) == 2
    assert check_body("anthropic", chat.body()) == []
    assert opened(store).prompt()["messages"][0]["content"][0] == BLOCK
    chat.undo()
    shown = chat.prompt()["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "user", "assistant", "user"]
    assert all(block["type"] != "compaction" for message in shown for block in message["content"])
    assert chat.prompt()["messages"] == shown
    assert opened(store).prompt()["messages"] == shown


def test_policies_act_on_what_follows_a_compaction():
    chat = started(policy="balanced")
    for i in range(40):
        chat.append([call(f"c{i}"), answer(f"c{i}", f"line {i}\n" * 300)])
    body = chat.prompt()
    assert body["messages"][0]["content"][0]["type"] == "compaction"
    assert check_body("anthropic", chat.body()) == []


def test_list_of_a_client_that_keeps_everything_is_followed():
    """The client goes on sending what the provider ignores."""
    chat = opened(policy="none")
    messages: list[Any] = [{"role": "user", "content": "fix"}]
    chat.prompt(messages=messages)
    messages += [{"role": "assistant", "content": ANSWER["content"]}, {"role": "user", "content": "next"}]
    chat.record(ANSWER)
    assert len(chat.prompt(messages=messages)["messages"]) == 2
    assert len(chat.history()) == 3


def test_counts_of_an_edited_prompt_are_compared_with_what_was_sent():
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 5}
    edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": 900}]
    _, billed = get_format("anthropic").parse_reply(
        reply({"type": "text", "text": "ok"}, usage=usage, context_management={"applied_edits": edits})
    )
    assert (billed.prompt_tokens, billed.sent_tokens) == (120, 1_020)
    iterations = [{"type": "compaction", "input_tokens": 700, "output_tokens": 50}, {"type": "message", **usage}]
    _, billed = get_format("anthropic").parse_reply(reply(BLOCK, usage={**usage, "iterations": iterations}))
    assert (billed.input, billed.cache_read, billed.output, billed.sent_tokens) == (800, 20, 55, None)
    chat = opened(policy="none")
    chat.append(user("word " * 400))
    chat.prompt()
    estimate = chat.view.tokens
    chat.record(reply({"type": "text", "text": "ok"}, usage=usage, context_management={"applied_edits": edits}))
    assert chat.view.budget.scale == 1_020 / estimate


def iteration(kind: str, tokens: int) -> dict[str, Any]:
    return {"type": kind, "input_tokens": tokens, "output_tokens": 1}


SEARCHES = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
]


@pytest.mark.parametrize(
    ("iterations", "sent"),
    [
        ([], None),
        ([iteration("message", 900)], 900),
        ([iteration("message", 300), iteration("advisor_message", 50), iteration("message", 600)], 300),
        ([iteration("message", 300), iteration("compaction", 20), iteration("message", 100)], 300),
        ([iteration("compaction", 20), iteration("message", 900)], None),
        ([iteration("message", 700), iteration("fallback_message", 900)], None),
    ],
    ids=lambda value: "-".join(each["type"] for each in value) if isinstance(value, list) else "",
)
def test_prompt_that_the_model_read_several_times_counts_once(iterations: list[dict[str, Any]], sent: int | None):
    """Between the uses of server tools the model reads the prompt again, and the usage is that of all iterations."""
    usage = {"input_tokens": 900, "output_tokens": 5, **({"iterations": iterations} if iterations else {})}
    _, billed = get_format("anthropic").parse_reply(reply(*SEARCHES, {"type": "text", "text": "ok"}, usage=usage))
    assert billed.sent_tokens == sent
    compacted = sum(each["input_tokens"] for each in iterations if each["type"] == "compaction")
    assert billed.prompt_tokens == 900 + compacted


@pytest.mark.parametrize("format", ["anthropic", "openai_responses"])
def test_reply_after_searches_leaves_the_budget(format: str):
    """Its usage is a multiple of the prompt, and compared with the prompt it would take most of the window."""
    chat = open_conversation("c", store=MemoryStore(), format=format, window=20_000, policy="none", expand=False)
    chat.append(user("word " * 400))
    chat.prompt()
    usage = {"input_tokens": 9_000, "output_tokens": 5}
    if format == "anthropic":
        chat.record(reply(*SEARCHES, {"type": "text", "text": "ok"}, usage=usage))
    else:
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
        chat.record({"object": "response", "status": "completed", "output": [search], "usage": usage})
    assert chat.view.budget.scale == 1.0
    assert chat.totals().usage.input == 9_000


def test_local_copy_is_shown_with_an_original_that_is_pinned():
    chat = opened(policy="none")
    chat.append([user("fix"), say("how?"), user("like this")])
    chat.pin("m1")
    chat.prompt()
    chat.record(ANSWER)
    chat.append(user("next"))
    texts = [block.get("text") for message in chat.prompt()["messages"] for block in message["content"]]
    summary = "[Summary of m1-m3, written by the provider]\nThe user fixes the tests."
    assert texts == [summary, "fix", "like this", "Done.", "next"]


def erased(chat: Any, *, large: bool) -> Any:
    """Return a conversation in which a message was erased after the provider had compacted it."""
    chat.append(user("hello " * (400 if large else 1)))
    for number in range(6):
        chat.append([call(f"c{number}"), answer(f"c{number}", "long " * (4_000 if large else 5)), user("and?")])
    chat.prompt()
    chat.record(ANSWER)
    chat.append(user("next"))
    assert "gAAA" in str(chat.prompt())
    chat.privacy.erase("m1")
    return chat


@pytest.mark.parametrize("large", [False, True])
def test_compaction_of_an_erased_message_is_not_sent(large: bool):
    """It sums up the message, whether the others of its span come back or not, and an undo does not bring it back."""
    store = MemoryStore()
    chat = erased(opened(store, policy="none", window=20_000), large=large)
    for undo in (lambda: None, lambda: large or chat.undo()):
        undo()
        for shown in (chat, opened(store, policy="none", window=20_000)):
            assert "gAAA" not in str(shown.prompt())
            assert check_body("anthropic", shown.body()) == []


def test_compaction_after_an_erasure_is_sent():
    store = MemoryStore()
    chat = erased(opened(store, policy="none"), large=True)
    chat.prompt()
    chat.record(reply({**BLOCK, "encrypted_content": "gBBB"}, {"type": "text", "text": "Done again."}))
    chat.append(user("next"))
    for shown in (chat, opened(store, policy="none")):
        assert "gBBB" in str(shown.prompt())
        assert "gAAA" not in str(shown.prompt())


@pytest.mark.parametrize("of", ["anthropic", "openai_responses"])
def test_compaction_that_no_edit_records_is_not_sent_after_an_erasure(of: str):
    """An imported one: no request was made before the erasure, or only requests to another provider."""
    store = MemoryStore()
    block = Opaque(of, "compaction", json.dumps({**BLOCK, "content": "The user said 123."}))
    chat = opened(store, policy="none")
    chat.append([user("123"), say("Yes."), user("go"), Message("assistant", (block, Text("Done."))), user("next")])
    chat.privacy.erase("m1")
    for format in ("anthropic", "openai_responses"):
        with open_conversation("c", store=store, format=format, window=200_000, policy="none") as again:
            sent = str(again.prompt())
            assert "123" not in sent
            assert "gAAA" not in sent
            assert "next" in sent
