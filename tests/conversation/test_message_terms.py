"""Leases and the retention of parts are followed under every policy, or a sentence says why not."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import open_conversation, user
from foveate.conversation import plan
from foveate.core.messages import Message, Text
from foveate.core.planner import make_plan
from foveate.core.stamps import Lease, PartRetention
from foveate.core.view import View
from foveate.open.options import Options
from foveate.policies import expire_results, retain_blocks, when_it_pays
from foveate.testing import ScriptedModel, call

LEASE = Lease(1, "compact", "first_chars", 40)
LONG = "A long result. " * 40
TWO_PARTS = Message("user", (Text("What is this?"), Text("page one " * 50)))


def own(view: View) -> tuple[()]:
    return ()


def opened(**options: Any):
    return open_conversation("c", window=100_000, **{"policy": "balanced", **options})


def shown(chat, calls: int) -> list[str]:
    """Return the text that the view shows of the first message at each of the next calls."""
    texts = []
    for _ in range(calls):
        texts.append(chat.prepare().entries[0].message.text)
        chat.record(Message("assistant", (Text("Yes."),)))
    return texts


@pytest.mark.parametrize("policy", ["balanced", "none", "keep-last-5", "recap", "coding", own, [own, "prune"]])
def test_lease_of_a_message_ends_under_every_policy(policy: Any):
    chat = opened(policy=policy)
    chat.append(user(LONG), lease=LEASE, origin="tool")
    assert [text == LONG for text in shown(chat, 3)] == [True, False, False]


@pytest.mark.parametrize("policy", ["balanced", "none", "keep-last-5", "recap", own, [own, "prune"]])
def test_retention_of_parts_is_followed_under_every_policy(policy: Any):
    chat = opened(policy=policy)
    chat.append(TWO_PARTS, kept=[PartRetention(), PartRetention(True, 0)])
    chat.append("And?")
    assert ["page one" in text for text in shown(chat, 3)] == [True, False, False]


def test_lease_of_a_stored_message_ends_after_opening_it_again(tmp_path):
    url = f"sqlite:///{tmp_path}/chat.db"
    with opened(store=url, policy="off") as chat:
        chat.append(user(LONG), lease=LEASE, origin="tool")
        shown(chat, 3)
    with opened(store=url, policy="none") as chat:
        assert shown(chat, 1) != [LONG]


@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize(
    ("terms", "plans"), [({}, 0), ({"lease": Lease(9, "remove")}, 3), ({"kept": [PartRetention(True, 9)]}, 3)]
)
def test_a_reply_is_planned_only_if_a_message_has_terms(
    terms: dict[str, Any], plans: int, is_reopened: bool, tmp_path, monkeypatch
):
    """Under `balanced`, only the terms of messages are followed after a reply."""
    url, planned = f"sqlite:///{tmp_path}/chat.db", list[int]()
    with opened(store=url) as chat:
        chat.append(user(LONG), origin="tool", **terms)
        if is_reopened:
            chat.prepare()
            chat.close()
            chat = opened(store=url)
        for _ in range(3):
            chat.prepare()
            with monkeypatch.context() as patch:
                patch.setattr(
                    plan, "make_plan", lambda *given, **named: planned.append(1) or make_plan(*given, **named)
                )
                chat.record(Message("assistant", (Text("Yes."),)))
        chat.close()
    assert len(planned) == plans


def test_lease_of_a_message_ends_once_with_a_table_of_leases():
    chat = opened(policy=[expire_results(default=Lease(5)), own])
    chat.append(user(LONG), lease=Lease(1, "remove"), origin="tool")
    shown(chat, 3)
    assert [edit.policy for edit in chat.journal.records()[0].edits] == ["expire"]
    assert len(chat.journal.receipts()) == 1


@pytest.mark.parametrize("options", [{"policy": "off"}, {"options": Options(settings={"expire": {"enabled": False}})}])
def test_lease_that_is_switched_off_is_reported_once(options: dict[str, Any], caplog):
    chat = opened(**options)
    for _ in range(3):
        chat.append(user(LONG), lease=LEASE, origin="tool")
    assert set(shown(chat, 4)) == {LONG}
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "c: A lease has no effect, since the policy is off, or expire.enabled is false. Choose another policy, or set "
        "expire.enabled to true."
    ]


@pytest.mark.parametrize(
    ("policy", "lease", "field"),
    [
        ("balanced", Lease(3), "expiration_mode"),
        ("none", Lease(expiration_mode="remove"), "expiration_turns"),
        ("balanced", Lease(3, "none"), ""),
        ("balanced", Lease(3, disable_expiration=True), ""),
        ("balanced", Lease(message_type="action-result"), ""),
        ([expire_results(default=Lease(expiration_mode="remove"))], Lease(3), ""),
    ],
)
def test_lease_that_can_never_end_is_reported(policy: Any, lease: Lease, field: str, caplog):
    opened(policy=policy).append(user(LONG), lease=lease, origin="tool")
    assert (f"A lease without {field} never ends" in caplog.text) if field else not caplog.text


@pytest.mark.parametrize("policy", ["balanced", "expire"])
def test_lease_of_no_turns_is_reported_once(policy: str, caplog: pytest.LogCaptureFixture):
    chat = opened(policy=policy)
    for mode in ("none", "remove", "compact"):
        chat.append(user(LONG), lease=Lease(0, mode), origin="tool")
    assert [record.getMessage() for record in caplog.records] == [
        "c: A lease of 0 turns ends before any model call sees its message. Set expiration_turns to 1."
    ]


def test_policies_that_follow_terms_run_once():
    deferred = when_it_pays([expire_results()])
    chat = opened(policy=[retain_blocks(), deferred])
    assert list(chat._session.planner.policies)[1:] == [deferred]


def test_tool_results_of_a_chat_agent_expire_by_the_lease_of_the_tool():
    from foveate import ChatAgent, tool

    @tool(lease=LEASE)
    def look() -> str:
        """Look."""
        return LONG

    model = ScriptedModel([call("c1", "look"), call("c2", "look"), call("c3", "look"), "Done."], "openai")
    with ChatAgent(model, tools=[look], window=100_000) as agent:
        agent.send("Look.")
    results = [message for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert [message["content"] == LONG for message in results] == [False, False, True]
