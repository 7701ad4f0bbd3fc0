"""Loops of programs that run every call by themselves: the results that foveate made for `expand` stay."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from foveate import Conversation
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, calls, say, user

from .expand_requests import LOG, SHORT, TOOLS, asked, client_for, result_of
from .shells import opened

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])
SCRIPT = [
    call("a", "look"),
    call("b", "look"),
    calls(call("x", "expand", handle="m3", lines="97"), call("c", "look")),
    call("d", "look"),
    call("y", "expand", handle="m99"),
    say("It was full."),
]


def wire_of(reply: Any, provider: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the message that a host appends to its list, and the ids and names of its calls."""
    plain = reply.model_dump(exclude_none=True)
    if provider == "anthropic":
        uses = [block for block in plain["content"] if block["type"] == "tool_use"]
        return {"role": "assistant", "content": plain["content"]}, [(use["id"], use["name"]) for use in uses]
    message = plain["choices"][0]["message"]
    return message, [(one["id"], one["function"]["name"]) for one in message.get("tool_calls", ())]


def run_tool(provider: str, id: str, name: str) -> Any:
    """Return the host's own result, for any call."""
    text = "There is no tool `expand`." if name == "expand" else LOG if id == "a" else SHORT
    return result_of(provider, id, text)


def check_history(chat: Conversation) -> None:
    results = [row.message.result for row in chat.history() if row.message.result]
    assert [result.call_id for result in results] == ["a", "b", "x", "c", "d", "y"]
    by_id = {result.call_id: result for result in results}
    assert by_id["x"].text == "[m3: lines 97 of 300]\n097 ERROR disk full\n"
    assert (by_id["y"].state, by_id["y"].text[:23]) == ("error", "Nothing here is called ")
    assert [entry.kind for entry in chat.view if entry.kind not in ("message", "summary")] == []
    assert chat.fixes() == []
    assert chat.open_calls() == ()
    assert chat.journal.verify() == []


@BOTH
def test_loop_that_appends_a_result_for_every_call(provider: str):
    chat = opened(provider=provider, policy="keep-last-1")
    client = client_for(provider, list(SCRIPT))
    chat.append("Was the disk full?")
    for _ in SCRIPT:
        reply = asked(client, chat.prompt(tools=TOOLS))
        chat.record(reply)
        _, wanted = wire_of(reply, provider)
        ids = [chat.append(run_tool(provider, id, name))[0] for id, name in wanted]
        assert [row.message.result.call_id for row in chat.history() if row.id in ids] == [id for id, _ in wanted]
    check_history(chat)


@BOTH
@pytest.mark.parametrize("reopens", [False, True])
def test_loop_with_its_own_list_of_messages(provider: str, reopens: bool):
    store = MemoryStore()
    chat = opened(provider=provider, policy="keep-last-1", store=store)
    client = client_for(provider, list(SCRIPT))
    messages: list[Any] = [{"role": "user", "content": "Was the disk full?"}]
    for _ in SCRIPT:
        reply = asked(client, chat.prompt(tools=TOOLS, messages=messages))
        chat.record(reply)
        message, wanted = wire_of(reply, provider)
        messages.append(message)
        results = [run_tool(provider, id, name) for id, name in wanted]
        if provider == "anthropic" and results:
            messages.append({"role": "user", "content": [block for blocks in results for block in blocks]})
        else:
            messages += results
        if reopens:
            chat = opened(provider=provider, policy="keep-last-1", store=store)
    messages.append({"role": "user", "content": "Thank you."})
    chat.prompt(tools=TOOLS, messages=messages)
    assert store.names("") == ["c"]  # It never departed from its past.
    check_history(chat)


def test_other_calls_with_the_id_of_an_expansion_keep_their_results():
    """Some servers number the calls of each reply anew."""
    chat = opened(policy="keep-last-1")
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    script = [call("0", "look"), call("0", "look"), call("0", "expand", handle="m3", lines="1"), call("0", "look")]
    client = client_for("openai", [*script, say("Done.")])
    for number, _ in enumerate([*script, None]):
        reply = asked(client, chat.prompt(tools=TOOLS, messages=messages))
        chat.record(reply)
        message, wanted = wire_of(reply, "openai")
        messages.append(message)
        messages += [result_of("openai", id, f"result {number} " + LOG) for id, _ in wanted]
    chat.prompt(tools=TOOLS, messages=[*messages, {"role": "user", "content": "Thanks."}])
    results = [row.message.text[:8] for row in chat.history() if row.message.result]
    assert results == ["result 0", "result 1", "[m3: lin", "result 3"]
    assert chat._agent.store.names("") == ["c"]


def test_list_that_departs_after_an_expansion_keeps_its_result():
    chat = opened(policy="keep-last-1")
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    client = client_for("openai", [call("a", "look"), call("b", "look"), call("x", "expand", handle="m3"), say("One.")])
    for _ in range(4):
        reply = asked(client, chat.prompt(tools=TOOLS, messages=messages))
        chat.record(reply)
        message, wanted = wire_of(reply, "openai")
        messages.append(message)
        messages += [result_of("openai", id, SHORT * 9) for id, _ in wanted]
    changed = [*messages[:-1], {"role": "user", "content": "Stop, do this instead."}]
    prompt = chat.prompt(tools=TOOLS, messages=changed)
    assert chat.fixes() == []
    shown = [row.message.result.call_id for row in chat.history() if row.message.result]
    assert shown == ["a", "b", "x"]
    assert json.dumps(prompt["messages"][-1]["content"]) == '"Stop, do this instead."'


def test_answer_to_an_answered_call_is_the_same_result():
    chat = opened(policy="keep-last-1")
    client = client_for("openai", [call("a", "look"), call("b", "look"), call("x", "expand", handle="m3", lines="1")])
    chat.append("Go.")
    for id in "abx":
        chat.record(asked(client, chat.prompt(tools=TOOLS)))
        if id != "x":
            chat.append(result_of("openai", id, LOG))
    before = len(chat)
    assert chat.answer("x").text == "[m3: lines 1 of 300]\n001 ok, all is well\n"
    assert len(chat) == before


def test_pinned_reply_keeps_its_answers_when_all_later_ones_are_summarized():
    """Its calls were run and answered once. No program runs them again, and no prompt adds another answer."""
    chat = opened(policy="none", window=3_000, expand=True)
    chat.append("Look around.")
    chat.prompt()
    chat.record(calls("a", call("x", "expand", handle="m99")))
    chat.append(answer("a", "Nothing."))
    chat.pin("m2")
    for n in range(6):
        chat.prompt()
        chat.record(say(f"Part {n}. " * 80))
        chat.append(f"And part {n}? " * 20)
    chat.append("All of it, please. " * 420)
    chat.prompt()
    assert [entry.handle for entry in chat.view if entry.kind != "stand-in"] == ["m1", "m2", "m17"]
    assert chat.open_calls() == ()
    before = chat.prompt()
    assert (chat.prompt(), len(chat)) == (before, 17)


def test_results_of_other_tools_are_appended_at_the_same_speed():
    """An append looks only at what came since the newest reply."""
    chat = opened(policy="none", window=10_000_000)
    chat.append("Go.")
    for number in range(300):
        chat.append([call(f"c{number}", "look")])
        chat.append(result_of("openai", f"c{number}", "ok"))
    assert chat._session.state.projection._slots.is_current is False  # No append made the entries of the view.


@pytest.mark.parametrize("has_regex", [True, False])
def test_tool_offers_only_what_is_installed(has_regex: bool, monkeypatch: pytest.MonkeyPatch):
    from foveate.expand import expand_tool, tool

    monkeypatch.setattr(tool, "_has_patterns", lambda: has_regex)
    offered = expand_tool("anthropic")
    assert ("pattern" in offered["input_schema"]["properties"]) == has_regex
    assert ("pattern" in json.dumps(offered)) == has_regex
    chat = opened(provider="anthropic", policy="keep-last-1")
    chat.append("Go.")
    assert chat.prompt(tools=TOOLS)["tools"][-1]["input_schema"] == offered["input_schema"]
    assert tool.offers_expand([expand_tool("openai")])


def test_pattern_without_its_package_gets_advice_for_the_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    chat = opened(policy="keep-last-1")
    chat.append([user("Go."), call("a", "look"), answer("a", LOG), call("b", "look"), answer("b", SHORT)])
    chat.prompt(tools=TOOLS)
    chat.record(call("x", "expand", handle="m3", pattern="ERROR"))
    told = chat.history()[-1].message.result
    assert told is not None
    assert told.text == "Patterns cannot be used here. Ask for lines or items, or search for words."
