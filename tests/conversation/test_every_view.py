"""Every view of any history, with any edits of anyone, is legal and stable, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation, Message, Options, open_conversation
from foveate.core.checker import check
from foveate.core.edits import Edit
from foveate.errors import BadEdit, BadInput, BadMessage, DoesNotFit
from foveate.policies import filter_tool_results, prune_tool_outputs, recap_batches
from foveate.stores.memory import MemoryStore
from foveate.testing.bodies import check_body
from foveate.testing.strategies import edits, histories

PROVIDERS = ("openai", "anthropic")
POLICIES = {
    "none": "none",
    "off": "off",
    "keep-last-1": "keep-last-1",
    "keep-last-2, by threes": (filter_tool_results(keep=2, batch=3),),
    "prune": (prune_tool_outputs(protect=40, minimum=20),),
    "recap": (recap_batches(recap_prefix="src"),),
    "recap, each turn": (recap_batches(min_preserved_assistant_messages=1, batch_size=1, recap_prefix="src"),),
    "recap, turns with calls": (recap_batches(min_preserved_assistant_messages=0, batch_size=2, recap_prefix="Toge"),),
    "both": (prune_tool_outputs(protect=40, minimum=20), filter_tool_results(keep=2)),
}
MANY = settings(max_examples=settings.default.max_examples * 3 // 2)


def opened(provider: str, policy: object, *, window: int = 100_000, store: object = "memory:") -> Conversation:
    ticks = iter(range(1, 10**9))
    return open_conversation(
        "c", store=store, format=provider, window=window, policy=policy, options=Options(clock=lambda: next(ticks))
    )


def settled(chat: Conversation) -> list[bytes]:
    """Return the rendered messages of the next call, after both checkers; an empty list if there is nothing to send."""
    try:
        view = chat.prepare()
    except BadInput:
        return []
    assert check(view, chat._agent.profile) == []
    rendered = [message.body for message in chat.format.rendered(view, profile=chat._agent.profile)]
    assert check_body(chat.format.name, chat.format.body(view, profile=chat._agent.profile)) == []
    return rendered


def shown_messages(chat: Conversation, history: list[Message]) -> Iterator[Message]:
    """Yield each message, and append it after the body of the caller's loop. Invalid messages must be refused."""
    for message in history:
        if message.role == "tool" and message.result is None:
            with pytest.raises(BadMessage):
                chat.append(message)
        else:
            yield message
            chat.append(message)


def kept_messages(history: list[Message]) -> list[Message]:
    return [message for message in history if message.role != "tool" or message.result is not None]


def hand_edit(chat: Conversation, wanted: Sequence[Edit]) -> None:
    for edit in wanted:
        with suppress(BadEdit):
            chat.edit(edit)


@pytest.mark.parametrize("provider", PROVIDERS)
@MANY
@given(history=histories(), policy=st.sampled_from(sorted(POLICIES)), data=st.data())
def test_every_view_of_any_history_with_any_edits_is_legal(
    provider: str, history: list[Message], policy: str, data: st.DataObject
) -> None:
    chat = opened(provider, POLICIES[policy])
    for _ in shown_messages(chat, history):
        if data.draw(st.integers(0, 3)) == 0:
            settled(chat)
        if data.draw(st.integers(0, 5)) == 0:
            hand_edit(chat, data.draw(edits([row.id for row in chat.history()], max_size=3)))
    settled(chat)
    assert [row.message for row in chat.history()] == kept_messages(history)
    assert chat.journal.verify() == []


@pytest.mark.parametrize("provider", PROVIDERS)
@MANY
@given(history=histories(), policy=st.sampled_from(sorted(POLICIES)), data=st.data())
def test_view_without_a_new_edit_extends_the_last_byte_for_byte(
    provider: str, history: list[Message], policy: str, data: st.DataObject
) -> None:
    """F27: only a recorded edit may change what the provider has cached."""
    chat = opened(provider, POLICIES[policy])
    last: list[bytes] = []
    number = 0
    for message in shown_messages(chat, history):
        if message.role == "assistant" or data.draw(st.booleans()):
            now = settled(chat)
            if chat._agent.head.number == number:
                assert now[: len(last)] == last
            last, number = now, chat._agent.head.number


@pytest.mark.parametrize("provider", PROVIDERS)
@MANY
@given(history=histories(), policy=st.sampled_from(sorted(POLICIES)), data=st.data())
def test_view_is_equal_when_reopened_refolded_or_repeated(
    provider: str, history: list[Message], policy: str, data: st.DataObject
) -> None:
    store = MemoryStore()
    chat = opened(provider, POLICIES[policy], store=store)
    for message in shown_messages(chat, history):
        if message.role == "assistant":
            settled(chat)
        if data.draw(st.integers(0, 5)) == 0:
            hand_edit(chat, data.draw(edits([row.id for row in chat.history()], max_size=3)))
        if data.draw(st.integers(0, 7)) == 0:
            chat._agent.save_snapshot()
    now = settled(chat)
    assert settled(chat) == now
    again = opened(provider, "off", store=store)
    assert settled(again) == now
    if now:
        fresh = chat.as_of(chat.view.turn)
        assert [message.body for message in chat.format.rendered(fresh, profile=chat._agent.profile)] == now


@pytest.mark.parametrize("provider", PROVIDERS)
@MANY
@given(history=histories(), window=st.integers(1_000, 4_000))
def test_floor_keeps_any_view_within_budget_or_raises(provider: str, history: list[Message], window: int) -> None:
    chat = opened(provider, "none", window=window)
    for message in kept_messages(history):
        chat.append(message)
        try:
            view = chat.prepare()
        except (BadInput, DoesNotFit):
            continue
        assert view.tokens <= view.budget.usable
        assert check_body(provider, chat.format.body(view, profile=chat._agent.profile)) == []
    assert [row.message for row in chat.history()] == kept_messages(history)
