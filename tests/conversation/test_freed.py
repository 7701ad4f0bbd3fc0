"""A conversation that is dropped leaves the memory at once, without Python's collector of cycles."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import pytest

from foveate import Conversation, open_conversation
from foveate.core.messages import assistant
from foveate.core.view import View
from foveate.plugins import plugin

TOOL = {"name": "read_log", "input_schema": {"type": "object"}}


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def ask(chat: Conversation) -> None:
    for number in range(20):
        chat.append(f"Question {number}. " + "A word of the question. " * 100)
        chat.prompt(tools=[TOOL])
        chat.record(assistant("A word of the answer. " * 50))


def follow(chat: Conversation) -> None:
    messages: list[dict[str, Any]] = []
    for number in range(20):
        messages.append({"role": "user", "content": f"Question {number}. " + "A word of the question. " * 100})
        chat.prompt(messages=messages, tools=[TOOL])
        messages.append({"role": "assistant", "content": "A word of the answer. " * 50})
        chat.record(messages[-1])
    chat.prompt(messages=messages[4:], tools=[TOOL])


def read(chat: Conversation) -> None:
    ask(chat)
    chat.expand("m1")
    chat.as_of(3)
    chat.totals()
    chat.search("question")
    chat.explain("m2")
    chat.context()


@pytest.mark.parametrize("use", [ask, follow, read])
def test_a_dropped_conversation_is_freed_at_once(use: Callable[[Conversation], None]):
    chat = open_conversation("t", format="anthropic", model="claude-haiku-4-5", window=8_000, expand=True)
    use(chat)
    assert chat.journal.receipts()
    state = ref(chat._session.state)
    del chat
    assert state() is None


def test_no_view_of_a_dropped_conversation_stays():
    """Views hold the messages that they show, such as documents of many megabytes."""
    before = {id(each) for each in gc.get_objects() if isinstance(each, View)}
    chat = open_conversation("t", format="anthropic", model="claude-haiku-4-5", window=8_000)
    ask(chat)
    del chat
    assert [each for each in gc.get_objects() if isinstance(each, View) and id(each) not in before] == []


def test_a_conversation_with_plugins_is_freed_at_once():
    @plugin
    def noon(content: object) -> str:
        return "The time is noon."

    chat = open_conversation("t", format="anthropic", window=8_000, plugins=[noon])
    ask(chat)
    state = ref(chat._session.state)
    del chat
    assert state() is None
