"""What all integrations share, without a framework: its items are pairs of a role and a text."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sweeps import Interrupted

from foveate import Message, Text, Usage
from foveate.conversation.caller_list import CallerList
from foveate.errors import BadSetting
from foveate.hosts.host import (
    Host,
    ModelCall,
    find_mark,
    json_text,
    logged,
    tool_definition,
    usage_of_totals,
    wire_format,
)
from foveate.stores.memory import MemoryStore

Item = tuple[Any, str]

LONG = "All is well. " * 2_000


def read(item: Item, format: str) -> Message:
    role, text = item
    return Message(role, (Text(text),))


def begin(host: Host, items: list[Item], *path: str, **options: Any) -> ModelCall | None:
    keywords: dict[str, Any] = {"format": "anthropic", "model": "claude-haiku-4-5", "read": read, **options}
    return host.begin(path or ("t1",), items, **keywords)


def test_unchanged_items_are_shown_as_they_are():
    items: list[Item] = [("user", "Hello."), ("assistant", "Hi."), ("user", "Bye.")]
    call = begin(Host(window=16_000), items)
    assert call is not None
    assert [piece.item for piece in call.shown() if piece.entry is None] == items


def test_a_shortened_item_comes_with_its_message():
    items: list[Item] = [*[("user", "Read."), ("assistant", LONG)] * 20, ("user", "Bye.")]
    call = begin(Host(window=16_000), items)
    assert call is not None
    pieces = list(call.shown())
    short = [piece for piece in pieces if piece.entry is not None]
    assert short
    assert pieces[-1].item is items[-1]
    assert all(piece.entry is not None and len(piece.entry.message.text) < len(LONG) for piece in short)


@pytest.mark.parametrize(
    ("format", "model"),
    [("openai", "Qwen/Qwen3.6-27B"), ("openai", "mistral-small"), ("anthropic", "claude-haiku-4-5")],
)
def test_later_system_messages_are_notes_of_the_user(format: str, model: str):
    """They were system messages in the frameworks' own form, which these models refuse."""
    items: list[Item] = [("system", "Be brief."), ("user", "Hello."), ("assistant", "Hi."), ("system", "In French.")]
    call = begin(Host(window=16_000), [*items, ("user", "Bye.")], format=format, model=model)
    assert call is not None
    roles = [piece.item[0] if piece.entry is None else piece.entry.message.role for piece in call.shown()]
    assert roles == ["system", "user", "assistant", "user", *["assistant"] * (model == "mistral-small"), "user"]


def test_a_reply_is_recorded_once_although_the_list_brings_it():
    host, items = Host(window=16_000), list[Item]([("user", "Hello.")])
    for number in range(3):
        call = begin(host, items)
        assert call is not None
        reply = ("assistant", f"Answer {number}.")
        call.record(reply, Usage(10, 0, 0, 2))
        items += [reply, ("user", "And now?")]
    chat = host.conversation(("t1",))
    assert [row.message.text for row in chat.history()] == [text for _, text in items[:-1]]
    assert chat.totals().calls == 3


def test_a_reply_that_cannot_be_recorded_is_logged(caplog: pytest.LogCaptureFixture):
    call = begin(Host(window=16_000), [("user", "Hello.")])
    assert call is not None
    with caplog.at_level(logging.WARNING, "foveate"):
        call.record(("assistant", "One answer."))
        call.record(("assistant", "Another answer."))
    assert [record.message.partition(".")[0] for record in caplog.records] == ["A reply was not recorded"]


def test_a_fault_is_logged_once_and_no_call_begins(caplog: pytest.LogCaptureFixture):
    def faulty(item: Item, format: str) -> Message:
        raise KeyError("content")

    host = Host(window=16_000)
    with caplog.at_level(logging.WARNING, "foveate"), pytest.warns(RuntimeWarning, match="KeyError") as shown:
        assert [begin(host, [("user", "Hello.")], read=faulty) for _ in range(3)] == [None] * 3
    assert len(shown) == 1
    (record,) = caplog.records
    assert record.message == "The messages are sent as they are. KeyError: 'content'"
    assert record.exc_info is not None


def test_a_window_that_is_not_known_is_assumed_with_a_warning(caplog: pytest.LogCaptureFixture):
    host, items = Host(), list[Item]([("user", "Hello.")])
    with caplog.at_level(logging.WARNING, "foveate"), pytest.warns(RuntimeWarning, match="window=200_000") as shown:
        for model in ("nobody-knows-me", "nobody-knows-me", ""):
            call = begin(host, items, model=model, format="openai")
            assert call is not None
            assert call.view.budget.window == 128_000
    assert [str(warning.message)[:38] for warning in shown] == [
        "Window of model 'nobody-knows-me' is n",
        "Window is not known. Pass window=200_0",
    ]
    assert [record.exc_info for record in caplog.records] == [None, None]


def test_a_model_that_is_not_known_takes_the_window_of_the_named_one():
    call = begin(Host(model="gpt-4o"), [("user", "Hello.")], model="function:fake:", format="openai")
    assert call is not None
    assert call.view.budget.window == 128_000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"context_size": 16_000}, "There is no option context_size=. Options: model, window, policy, summarizer,"),
        ({"windows": 16_000}, "There is no option windows=. Did you mean window?"),
        ({"model": "gtp-5-mini"}, "Window of model 'gtp-5-mini' is not known."),
        ({"summarizer": "gpt-5-mini"}, "There is no summarizer 'gpt-5-mini'. Did you mean openai:gpt-5-mini?"),
    ],
)
def test_a_wrong_option_is_refused_when_the_host_is_made(options: dict[str, Any], text: str):
    with pytest.raises(BadSetting, match=re.escape(text)):
        Host(**options)


def test_a_warning_that_a_filter_makes_an_error_does_not_stop_the_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert begin(Host(), [("user", "Hello.")], model="nobody-knows-me", format="openai") is not None


def test_the_providers_error_is_raised_if_no_smaller_view_fits(caplog: pytest.LogCaptureFixture):
    call = begin(Host(window=16_000), [("user", "All is well. " * 400)])
    assert call is not None
    with pytest.raises(RuntimeError, match="too long"), caplog.at_level(logging.WARNING, "foveate"):
        call.make_smaller(RuntimeError("prompt is too long: 2000 tokens > 500 maximum"))
    (record,) = caplog.records
    assert record.message.startswith("A refused prompt was not made smaller. The system prompt, the pending request")


def lists_with_one_beginning() -> tuple[list[Item], list[Item]]:
    hello: Item = ("user", "Hello.")
    return [hello, ("assistant", "Hi."), ("user", "I am Ann.")], [hello, ("user", "I am Bob.")]


def shown(call: ModelCall) -> list[Item]:
    return [piece.item for piece in call.shown()]


def test_a_run_that_begins_meanwhile_changes_no_view(monkeypatch: pytest.MonkeyPatch):
    """Otherwise a model gets the messages of another list, or a result without its call."""
    host, (ann, bob) = Host(window=16_000), lists_with_one_beginning()
    depart, other = CallerList.depart, threading.Thread(target=lambda: begin(host, bob))

    def late(list_: CallerList) -> None:
        if other.ident is None:
            other.start()
            other.join(0.5)
        depart(list_)

    monkeypatch.setattr(CallerList, "depart", late)
    call = begin(host, ann)
    other.join()
    assert call is not None
    assert shown(call) == ann


def test_a_run_of_another_process_changes_no_view():
    ann, bob = lists_with_one_beginning()
    ann += [("assistant", LONG), ("user", "Go on.")] * 20  # To shorten.
    for n in range(1, 200):
        store: Any = Interrupted(MemoryStore())
        store.interrupt(n, partial(begin, Host(store.plain, window=16_000), bob))
        call = begin(Host(store, window=16_000), ann)
        assert call is not None
        assert ("user", "I am Ann.") in shown(call)
        assert ("user", "I am Bob.") not in shown(call)
        if store.has_waited():
            break
    else:
        pytest.fail("There is no end of operations.")
    assert n > 2


def test_a_smaller_view_is_one_of_the_own_list():
    host, (ann, bob) = Host(window=16_000), lists_with_one_beginning()
    call = begin(host, ann)
    assert begin(host, bob) is not None
    assert call is not None
    call.make_smaller(RuntimeError("prompt is too long: 20000 tokens > 16000 maximum"))
    assert shown(call) == ann


def test_a_reply_that_another_run_overtook_comes_with_the_next_list():
    host, (ann, bob) = Host(window=16_000), lists_with_one_beginning()
    first, second = begin(host, ann), begin(host, bob)
    assert first is not None
    assert second is not None
    first.record(("assistant", "Hi, Ann."), Usage(10, 0, 0, 2))
    second.record(("assistant", "Hi, Bob."), Usage(20, 0, 0, 2))
    chat = host.conversation(("t1",))
    assert [entry.message.text for entry in chat.view] == ["Hello.", "I am Bob.", "Hi, Bob."]
    assert chat.totals().usage.input == 30


def test_an_error_with_another_cause_is_raised_again():
    call = begin(Host(window=16_000), [("user", "Hello.")])
    assert call is not None
    with pytest.raises(ConnectionError, match="reset"):
        call.make_smaller(ConnectionError("reset"))


def test_a_sub_agent_is_a_child_of_the_thread(tmp_path: Path):
    host = Host(f"sqlite:///{tmp_path}/chats.db", window=16_000)
    for path in (("t1",), ("t1", "helper"), ("t1", "helper", "tools/7")):
        assert begin(host, [("user", "Hello.")], *path) is not None
    names = [host.conversation(path).name for path in (("t1",), ("t1", "helper"))]
    assert names == ["t1", "t1/helper"]
    assert host.conversation(("t1", "helper", "tools/7")).name.startswith("t1/helper/tools-7-")
    host.close()


def test_the_conversation_is_that_of_the_newest_model_call():
    host, items = Host(window=16_000), list[Item]([("user", "Hello.")])
    for format in ("anthropic", "openai", "gemini"):
        call = begin(host, items, format=format, model="")
        assert call is not None
        assert host.conversation(("t1",)) is call.chat


def test_options_are_checked_when_the_host_is_made():
    with pytest.raises(BadSetting):
        Host(window=-1)


def test_logged_passes_interruptions_on():
    with pytest.raises(KeyboardInterrupt), logged("A reply was not recorded"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("kind", "format"),
    [
        ("anthropic-chat", "anthropic"),
        ("chat-google-generative-ai", "gemini"),
        ("openai OpenAIResponsesModel", "openai_responses"),
        ("OpenAIModel Model object", "openai"),
        ("ollama", "openai"),
    ],
)
def test_the_wire_format_of_a_model_follows_from_its_kind(kind: str, format: str):
    assert wire_format(kind) == format


def test_the_tokens_of_the_cache_are_part_of_the_prompt():
    assert usage_of_totals(100, 60, 10, 5, 2) == Usage(30, 60, 10, 5, 2)
    assert usage_of_totals(100, None, None, 5) == Usage(100, None, None, 5)


def test_the_definition_of_expand_is_always_the_same():
    assert tool_definition("expand", "Changed.", {"title": "expand"}) == tool_definition("expand", None, {})
    assert tool_definition("read", None, {"type": "object"})["function"]["parameters"] == {"type": "object"}


def test_json_keeps_its_letters_and_escapes_what_cannot_be_stored():
    assert json_text({"text": "größe 長い"}) == '{"text": "größe 長い"}'
    assert json_text({"text": "half of \ud83d"}) == '{"text": "half of \\ud83d"}'


def test_key_of_the_cache_is_read_without_the_lock_of_the_conversation():
    """An event loop reads it, while a thread may hold the lock and wait for a summary that this loop writes."""
    call = begin(Host(model="gpt-5.6"), [("user", "Hello.")], model="gpt-5.6", format="openai")
    assert call is not None
    keys: list[str] = []
    reader = threading.Thread(target=lambda: keys.append(call.cache_key), daemon=True)
    with call.chat._agent.lock:
        reader.start()
        reader.join(10)
        assert len(keys) == 1
    assert keys[0].startswith("foveate-")


TOOLS = [tool_definition("read_log", "Return a log.", {"type": "object", "properties": {}})]
FIRST: list[Item] = [("user", "Hello.")]
LATER: list[Item] = [*FIRST, ("assistant", "Hi."), ("user", "Bye.")]


@pytest.mark.parametrize(
    ("items", "tools", "format", "model", "wanted"),
    [
        (LATER, TOOLS, "anthropic", "claude-haiku-4-5", True),
        (LATER, TOOLS, "anthropic", "kimi-k3", False),
        (LATER, TOOLS, "openai", "anthropic/claude-haiku-4-5", True),
        (LATER, TOOLS, "openai", "gpt-5.6", False),
        (FIRST, TOOLS, "anthropic", "claude-haiku-4-5", False),
        (LATER, [], "anthropic", "claude-haiku-4-5", False),
    ],
    ids=["claude", "another model", "behind openai's form", "gpt", "first request", "no tools"],
)
def test_marks_pay_for_a_claude_behind_a_reply_if_it_has_tools(
    items: list[Item], tools: list[Any], format: str, model: str, wanted: bool
):
    call = begin(Host(window=16_000), items, format=format, model=model, tools=tools)
    assert call is not None
    assert call.wants_marks == wanted


@pytest.mark.parametrize(("model", "has_key"), [("openai/gpt-5.6", True), ("openai/gpt-5.5", False)])
def test_a_gpt_behind_geminis_form_has_a_key_for_its_cache(model: str, has_key: bool):
    call = begin(Host(window=16_000), FIRST, format="gemini", model=model)
    assert call is not None
    assert call.cache_key.startswith("foveate-") == has_key


def test_a_mark_is_found_at_any_depth():
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert find_mark([{"content": "x"}, {"content": [{"type": "text", "text": "x", "cache_control": mark}]}]) == mark
    assert find_mark({"system": [{"text": "x"}, {"cachePoint": {"type": "default"}}]}) == {"type": "default"}
    assert find_mark([{"cache_control": None, "text": "cachePoint"}, "cache_control", None]) is None
