"""Typed facts of the application: in with a message, out of history and view; and the lease that counts."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any, TypedDict

import msgspec
import pytest

from foveate import BadInput, View, open_conversation, user
from foveate.errors import BadSetting, UnknownHandle
from foveate.policies import expire_results
from foveate.testing import answer, call, say
from foveate.types import Lease

from .shells import opened


@dataclasses.dataclass
class Step:
    number: int
    day: datetime.date
    tags: list[str] = dataclasses.field(default_factory=list)


class Place(msgspec.Struct):
    town: str
    step: Step | None = None


class Ticket(TypedDict):
    ticket: str


STEP = Step(3, datetime.date(2026, 1, 2), ["a"])


def test_typed_metadata_goes_in_and_comes_out_as_it_was(tmp_path):
    """The MemberJunction document: `ChatMessage<AgentChatMessageMetadata>`."""
    url = f"sqlite:///{tmp_path}/c.db"
    values: list[tuple[Any, Any]] = [(STEP, Step), (Place("Oslo", STEP), Place), (Ticket(ticket="T-7"), Ticket)]
    with open_conversation("c", store=url, window=9_000) as chat:
        for value, _ in values:
            chat.append("Hi.", metadata=value)
        chat.append({"role": "user", "content": "Hi.", "metadata": STEP})
        chat.append("Hi.", metadata={"step": STEP})
        chat.append("Hi.")
    with open_conversation("c", store=url, window=9_000) as again:
        rows = again.history()
        assert [row.metadata_as(kind) for row, (_, kind) in zip(rows, values, strict=False)] == [
            value for value, _ in values
        ]
        assert rows[3].metadata == {"number": 3, "day": "2026-01-02", "tags": ["a"]}
        assert rows[4].metadata == {"step": rows[3].metadata}
        assert rows[5].metadata == {}
        assert [entry.metadata for entry in again.view] == [row.metadata for row in rows]
        assert again.journal.verify() == []


def test_a_model_of_pydantic_is_metadata():
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    note = pydantic.create_model("Note", text=(str, ...), day=(datetime.date, None))
    chat = opened()
    chat.append("Hi.", metadata=note(text="a", day="2026-01-02"))
    assert chat.history()[0].metadata == {"text": "a", "day": "2026-01-02"}
    assert chat.history()[0].metadata_as(note) == note(text="a", day="2026-01-02")
    chat.append("Hi.")
    with pytest.raises(BadInput, match="The metadata of this message is no Note"):
        chat.history()[1].metadata_as(note)


def test_metadata_of_another_type_is_an_error_that_shows_it():
    chat = opened()
    chat.append("Hi.", metadata={"town": 3})
    with pytest.raises(BadInput, match=r'no Place: Expected `str`, got `int` - at `\$.town`\. It is {"town":3}'):
        chat.history()[0].metadata_as(Place)
    for wrong in (Step, "text", ["a"], 3):
        with pytest.raises(BadSetting, match=r"metadata= must be a JSON object \(a dict, a dataclass"):
            chat.append("Hi.", metadata=wrong)
    assert len(chat) == 1


def test_a_policy_reads_metadata():
    read: list[Place] = []

    def policy(view: View) -> tuple[()]:
        read.extend(entry.metadata_as(Place) for entry in view if entry.metadata)
        return ()

    chat = open_conversation("c", policy=[policy], window=9_000)
    chat.append("Hi.", metadata=Place("Oslo"))
    chat.prompt()
    assert Place("Oslo") in read


def test_erased_metadata_is_empty():
    chat = opened()
    chat.append("Hi.", metadata=Place("Oslo"))
    chat.record(say("Hello."))
    chat.privacy.erase("m1")
    row = chat.history()[0]
    assert row.metadata == {}
    with pytest.raises(BadInput, match="The metadata of this message was erased"):
        row.metadata_as(Place)


def test_the_lease_that_counts_can_be_read():
    """The MemberJunction document: the terms of each message can be read."""
    by_tool = Lease(3, "compact", "first_chars", 300)
    policy = expire_results(tools={"search": by_tool}, default=Lease(9, "remove"))
    chat = open_conversation("c", policy=[policy], window=9_000)
    chat.append("Hi.")
    chat.record(call("c1", "search"))
    chat.append(answer("c1", "found"))
    chat.record(call("c2", "read"))
    chat.append(answer("c2", "text"), lease=Lease(1))
    assert chat.history()[2].stamp.lease is None
    lease = chat.lease("m3")
    assert (lease.expiration_turns, lease.expiration_mode, lease.compact_length) == (3, "compact", 300)
    assert (chat.lease("m5").expiration_turns, chat.lease("m5").expiration_mode) == (1, "remove")
    assert chat.lease("m1") == chat.lease(2) == Lease(expiration_mode="none")
    with pytest.raises(UnknownHandle):
        chat.lease("m9")


def test_the_lease_of_an_action_can_be_read():
    by_name = Lease(1, "remove")
    policy = expire_results(tools={"search": by_name}, actions={"read": by_name})
    chat = open_conversation("c", policy=[policy], window=9_000)
    chat.append("Hi.")
    for action in ("search", "read", "write"):
        chat.append(user("found"), lease=Lease(message_type="action-result", action_id=action))
    assert [chat.lease(handle).expiration_mode for handle in ("m2", "m3", "m4")] == ["remove", "remove", "none"]


def test_no_lease_counts_while_the_policy_is_off():
    off = open_conversation("c", policy="off", window=9_000)
    off.append(user("found"), lease=Lease(1, "remove", action_id="search"))
    assert off.lease("m1") == Lease(expiration_mode="none", action_id="search")


def test_the_lease_of_a_preset_and_of_a_message_without_one():
    preset = open_conversation("c", policy="expire", window=9_000)
    bare = opened()
    for chat in (preset, bare):
        chat.append("Hi.")
        chat.record(call("c1", "search"))
        chat.append(answer("c1", "found"), lease=Lease(7))
    assert (preset.lease("m3").expiration_turns, preset.lease("m3").expiration_mode) == (7, "compact")
    assert bare.lease("m3").expiration_mode == "none"
