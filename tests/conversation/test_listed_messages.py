"""`listed()`: the messages of a caller's own list, for a program that makes its list anew."""

from __future__ import annotations

from foveate import open_conversation
from foveate.testing import call


def opened(store: str = "memory:", **options):
    return open_conversation("c", store=store, window=16_000, format="openai", **options)


def texts(conversation) -> list[str]:
    return [row.message.text for row in conversation.listed()]


def test_a_list_is_returned_as_it_was(tmp_path):
    store, mine = f"sqlite:///{tmp_path}/c.db", [{"role": "user", "content": text} for text in ("one", "two", "three")]
    with opened(store) as conversation:
        conversation.follow(mine)
    with opened(store) as conversation:
        assert texts(conversation) == ["one", "two", "three"]
        assert conversation.format.render([row.message for row in conversation.listed()]) == mine


def test_removed_messages_are_left_out_until_they_are_back():
    mine = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    conversation = opened()
    conversation.follow(mine)
    conversation.follow([mine[0], mine[2]])
    assert texts(conversation) == ["one", "three"]
    conversation.follow(mine)
    assert texts(conversation) == ["one", "two", "three"]


def test_additions_of_foveate_are_left_out():
    conversation = opened(policy="keep-last-1", expand=True)
    conversation.append("Read.")
    for number in range(2):
        conversation.record(call(f"c{number}", "read"))
        conversation.append({"role": "tool", "tool_call_id": f"c{number}", "content": "line\n" * 800})
        conversation.prompt()
    conversation.record(call("e0", "expand", handle="m3", lines="1-2"))
    conversation.prompt()
    assert [row.message.role for row in conversation.listed()] == ["user", *["assistant", "tool"] * 2, "assistant"]


def test_messages_that_a_policy_hides_stay_in_the_list():
    conversation = opened(policy="keep-last-1")
    conversation.append("Read.")
    for number in range(3):
        conversation.record(call(f"c{number}", "read"))
        conversation.append({"role": "tool", "tool_call_id": f"c{number}", "content": "line\n" * 800})
        conversation.prompt()
    assert len(conversation.listed()) == 7
    assert texts(conversation)[2] == "line\n" * 800
