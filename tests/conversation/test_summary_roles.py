"""The role of a summary: what each provider is sent, and that it is legal there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation, Message, open_conversation
from foveate.core import wire
from foveate.core.edits import Record, Span, Summarize, SummaryRole
from foveate.errors import BadEdit
from foveate.policies import checkpoint, compact_on_overflow
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, call, check_body, say, system, text_of, thought, user
from foveate.testing.strategies import histories, runs

FORMATS = ("anthropic", "openai", "openai_responses", "gemini")
ROLES: tuple[SummaryRole, ...] = ("user", "assistant", "system")
STORY = [
    system("Be brief."),
    user("Compare the printers."),
    say("The first is cheaper."),
    user("And the ink?"),
    call("c1", "look", name="ink"),
    answer("c1", "12 euros"),
    say("Twelve euros."),
    user("Which one then?"),
]


def opened(format: str, **options: Any) -> Conversation:
    return open_conversation("c", format=format, **{"window": 100_000, "policy": "none", **options})


def summarized(format: str, role: SummaryRole, messages: list[Message], first: int, last: int) -> Conversation:
    chat = opened(format)
    chat.append(messages)
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[first], ids[last]), "They compared printers.", role=role))
    return chat


def body_of(chat: Conversation) -> bytes:
    return chat.format.body(chat.prepare(), profile=chat._agent.profile)


@pytest.mark.parametrize(
    ("format", "role", "roles"),
    [
        ("openai", "user", ["system", "user", "user"]),
        ("openai", "assistant", ["system", "assistant", "user"]),
        ("openai", "system", ["system", "system", "user"]),
        ("anthropic", "user", ["user", "user"]),
        ("anthropic", "assistant", ["user", "assistant", "user"]),
        ("anthropic", "system", ["user", "user"]),
        ("gemini", "assistant", ["user", "model", "user"]),
        ("gemini", "system", ["user", "user"]),
        ("openai_responses", "system", ["system", "system", "user"]),
    ],
)
def test_each_provider_gets_the_summary_in_a_role_it_takes(format: str, role: SummaryRole, roles: list[str]):
    """Anthropic and Gemini would move a system message behind the request, or make it a part of the system prompt."""
    chat = summarized(format, role, STORY, 1, 6)
    request = json.loads(body_of(chat))
    sent = request.get("messages") or request.get("input") or request["contents"]
    assert [message["role"] for message in sent] == roles
    assert "They compared printers." in json.dumps(sent[-2:])
    assert check_body(format, body_of(chat)) == []


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_requests_are_legal_with_a_summary_in_any_role(format: str, role: SummaryRole, data: st.DataObject):
    messages = data.draw(runs() | histories())
    chat = opened(format)
    chat.append(messages)
    ids = [row.id for row in chat.history()]
    for _ in range(data.draw(st.integers(1, 3)) if ids else 0):
        first, last = sorted((data.draw(st.integers(0, len(ids) - 1)), data.draw(st.integers(0, len(ids) - 1))))
        chat.edit(Summarize(Span(ids[first], ids[last]), "So far.", role=role))
    chat.append("And now?")
    assert check_body(format, body_of(chat)) == []
    chat.record(say("Now this."))
    chat.append("Go on.")
    assert check_body(format, body_of(chat)) == []


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_a_note_parts_a_summary_of_the_assistant_from_its_reply(format: str):
    """The provider reads consecutive messages of one role as one, in which reasoning must come first."""
    story = [
        user("Look it up."),
        *(say(f"I look {n}.") for n in range(3)),
        thought("Aha.", say("It is here.")),
        user("Go on."),
    ]
    chat = summarized(format, "assistant", story, 0, 2)
    shown = [(entry.kind, entry.message.role) for entry in chat.prepare()]
    assert shown[:4] == [("stand-in", "user"), ("summary", "assistant"), ("stand-in", "user"), ("message", "assistant")]
    assert check_body(format, body_of(chat)) == []


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("make", [checkpoint, compact_on_overflow])
def test_the_next_summary_carries_a_summary_in_any_role_on(make: Any, role: SummaryRole):
    requests = []

    def summarize(request: Any) -> str:
        requests.append(request)
        return f"Summary {len(requests)}."

    own = {"trigger_at": 12, "keep_recent": 6} if make is checkpoint else {"keep_recent": 300}
    chat = opened("openai", window=2_000, policy=make(role=role, **own), summarizer=summarize)
    chat.append(system("Be brief."))
    for number in range(60):
        chat.append([user(f"Question {number}?"), say(text_of(100, number))])
        chat.append("And then?")
        summaries = [entry for entry in chat.prepare() if entry.kind == "summary"]
        assert [entry.message.role for entry in summaries] == [role] * min(1, len(requests))
    assert len(requests) > 2
    assert "Summary 1." in requests[1].previous


def test_a_summary_keeps_its_role_in_the_store(tmp_path: Any):
    store = SqliteStore(tmp_path / "chat.db")
    with opened("openai", store=store) as chat:
        chat.append(STORY)
        ids = [row.id for row in chat.history()]
        chat.edit(Summarize(Span(ids[1], ids[6]), "They compared printers.", role="system"))
        before = body_of(chat)
    with opened("openai", store=store) as chat:
        assert body_of(chat) == before
    store.close()


def test_records_without_a_role_have_the_bytes_of_before():
    """Their hashes link the journals of stores that were written when summaries had no role."""
    plain = wire.encode_record(Record(1, (Summarize(Span("a", "b"), "So far."),), 1, 2, "", 2))
    assert b"role" not in plain
    assert b'"role":"system"' in wire.encode_record(
        Record(1, (Summarize(Span("a", "b"), "So far.", role="system"),), 1, 2, "", 2)
    )


def test_an_unknown_role_is_refused():
    with pytest.raises(BadEdit, match="developer"):
        summarized("openai", "developer", STORY, 1, 6)  # type: ignore[arg-type]
