"""Values of a wrong kind: the error names the argument, and nothing is stored or changed."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import (
    BadInput,
    FoveateError,
    Media,
    Message,
    Options,
    StoreError,
    Text,
    ToolCall,
    assistant,
    open_conversation,
    tool_result,
    user,
)
from foveate.edits import Pin, Replace, Span, Summarize, Target
from foveate.errors import BadEdit, BadMessage, BadSetting
from foveate.open import grouped
from foveate.stores.memory import MemoryStore

from .shells import opened

ODD: list[Any] = [None, True, -1, 1.5, float("nan"), "", "x", b"x", [], {}, object(), int, lambda: None, 10**30]


@pytest.mark.parametrize(
    "setting",
    ["store", "format", "model", "window", "reserve", "policy", "profile", "prices", "counter", "tenant", "on_event"],
)
def test_setting_of_the_wrong_type_is_named(setting):
    said = []
    for value in ODD:
        if (setting in ("policy", "counter", "on_event") and callable(value)) or (setting, value) == ("policy", []):
            continue  # What such a callable does is its own affair.
        try:
            open_conversation("c", **grouped({"window": 1_000, setting: value}))
        except FoveateError as error:
            said.append(str(error))
    assert len(said) >= 9
    assert max(map(len, said)) < 300


@pytest.mark.parametrize("name", [None, 5, b"x", [], object()])
def test_name_must_be_a_string(name):
    with pytest.raises(BadSetting, match="name of a conversation must be a string"):
        open_conversation(name, window=1_000)
    with pytest.raises(BadSetting, match="name of a fork must be a string"):
        opened().fork(name)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("time", 1.5), ("time", "now"), ("time", -1), ("time", 2**70), ("time", True), ("origin", "me"), ("after", b"x")],
)
def test_unreadable_message_is_not_appended(tmp_path, argument, value):
    store = f"sqlite:///{tmp_path / 'c.db'}"
    with opened(store=store) as chat:
        chat.append("hi")
        with pytest.raises(BadSetting, match=f"{argument}="):
            chat.append("and", **{argument: value})
    with opened(store=store) as again:
        assert [row.message.text for row in again.history()] == ["hi"]


@pytest.mark.parametrize("said", [Message("user", "hi"), Message("user", (Text(5),)), Message("king", (Text("hi"),))])
def test_message_with_wrong_fields_is_refused(said):
    chat = opened()
    with pytest.raises(BadMessage, match="wrong kind"):
        chat.append(said)
    assert len(chat) == 0


@pytest.mark.parametrize("clock", [lambda: 1.5, lambda: None, lambda: "now"])
def test_clock_and_counter_must_return_whole_numbers(clock):
    chat = open_conversation("c", window=1_000, options=Options(clock=clock))
    with pytest.raises(BadSetting, match="clock="):
        chat.append("hi")
    with pytest.raises(BadSetting, match="counter="):
        open_conversation("c", window=1_000, options=Options(counter=lambda text: len(text) / 4))


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (user(b"It failed."), "Text.text"),
        (tool_result("a", bytearray(b"ok")), "Text.text"),
        (assistant("Look.", ToolCall("a", "ls", b"{}")), "ToolCall.arguments"),
        (
            Message("user", (Text("Look."), Media("image/png", "url", "https://x.example/a.png", name=b"a"))),
            "Media.name",
        ),
    ],
)
def test_bytes_are_no_text(said, name):
    """An encoder writes bytes as base64: the model would read `SXQgZmFpbGVkLg==`."""
    with open_conversation("c", window=10_000) as chat:
        with pytest.raises(BadMessage, match=f"^{name} of a Message is bytes, not a text. Decode it"):
            chat.append(said)
        assert len(chat) == 0


def test_media_take_bytes_as_base64():
    with open_conversation("c", window=10_000) as chat:
        chat.append(Message("user", (Media("image/png", "base64", b"abc"),)))
        assert chat.history()[0].message.parts[0].data == "YWJj"


def test_edit_with_bytes_is_refused():
    with open_conversation("c", window=10_000) as chat:
        id = chat.append("Hello")[0]
        for edit in (
            Replace(Target(id, (0,)), (Text(b"x"),)),
            Summarize(Span(id, id), b"x"),
            Pin(Target(id), reason=b"x"),
        ):
            with pytest.raises(BadEdit, match="is bytes, not a text"):
                chat.edit(edit)
        assert chat.journal.records() == []


def test_edit_with_wrong_fields_is_refused():
    chat = opened()
    ids = chat.append([user("a"), assistant("b"), user("c")])
    for wrong in (None, "m1", Replace(Target(ids[1]), "short"), Replace(ids[1], (Text("short"),)), Target(ids[1])):
        with pytest.raises(BadEdit):
            chat.edit(wrong)
    assert chat.journal.receipts() == []


@pytest.mark.parametrize("value", [None, "x", 1.5, b"x", [], object()])
def test_numbers_must_be_whole(value):
    chat = opened()
    chat.append([user("a"), assistant("b"), user("c")])
    for wrong in (
        lambda: chat.as_of(value),
        lambda: chat.history(value),
        lambda: chat.journal.events(value),
        lambda: chat.retry_smaller(value),
        lambda: chat.record(assistant("x"), usage=value or 5),
        lambda: chat.history(1, value or ""),
    ):
        with pytest.raises(BadSetting):
            wrong()
    if value is not None:
        with pytest.raises(BadInput):
            chat.undo(value)
        with pytest.raises(BadInput):
            chat.fork("f", at=value)
    assert len(chat) == 3


def test_no_tools_may_be_given_as_none():
    chat = opened()
    chat.append("hi")
    assert chat.prompt(system="s", tools=None) == chat.prompt(system="s")
    assert chat.body(system="s", tools=None) == chat.body(system="s")
    assert not chat.plan(system="s", tools=None)


def test_text_of_a_reply_is_refused_with_advice():
    """A beginner records the text of the answer. The error named no remedy."""
    chat = opened()
    with pytest.raises(BadMessage, match=r"not the text 'Paris\.'\. Pass the response, or foveate\.assistant\(text\)"):
        chat.record("Paris.")
    assert len(chat) == 0


def test_nested_lists_are_not_messages():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    chat = opened()
    with pytest.raises(BadMessage, match="lists in lists"):
        chat.append(deep)
    chat.append([[{"role": "user", "content": "a list each"}]])
    assert len(chat) == 1


@pytest.mark.parametrize("path", ["a\0b.db", "x" * 5_000 + ".db", "~nobody-of-that-name/x.db"])
def test_impossible_path_raises_store_error(path):
    with pytest.raises(StoreError, match="No file can be called"):
        open_conversation("c", store=f"sqlite:///{path}", window=1_000)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("levels", [600, 100_000])
def test_deeply_nested_tools_are_refused(provider, levels):
    deep: dict[str, Any] = {}
    for _ in range(levels):
        deep = {"properties": [deep]}
    chat = opened(provider=provider)
    chat.append("hi")
    for ask in (chat.prompt, chat.body):
        with pytest.raises(BadInput, match="The system prompt or the tools"):
            ask(tools=[{"name": "grep", "input_schema": deep}])
    assert chat.prompt(tools=[])["messages"]


def test_departure_from_the_longest_name_uses_a_shorter_one():
    store = MemoryStore()
    chat = opened("n" * 500, store=store)
    for text in "ab":
        chat.prompt(messages=[{"role": "user", "content": text}])
    assert [len(name) for name in store.names("")] == [500, 482]
    assert len(chat) == 1


def test_fork_at_a_message_of_another_process_is_made():
    """A server forks in the process that got the request, and another one may have appended the message."""
    store = MemoryStore()
    chat, other = opened(store=store), opened(store=store)
    chat.append("one")
    with pytest.raises(BadSetting, match=r"^This conversation has 1 message; it cannot be forked at 2\.$"):
        other.fork("b", at=2)
    chat.append(["two", "three"])
    assert [len(other.fork("b", at="m3")), len(other.fork("d", at=chat.tip))] == [3, 3]
