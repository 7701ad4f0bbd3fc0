"""The summary of first characters: its content, its length, and how it is carried on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.messages import Message
from foveate.errors import BadSetting
from foveate.summarizers import SummaryRequest, first_characters
from foveate.testing import agent_run, answer, calls, chat, say, user
from foveate.testing.strategies import histories
from foveate.testing.stubs import ScriptedSummarizer


def request(*messages: Message, target: int = 1_000, previous: str = "") -> SummaryRequest:
    return SummaryRequest("compact", messages, target, previous)


def test_each_message_shows_its_role_and_first_characters():
    said = chat(user("Mend\nthe login, please."), calls("a", "b", text="I look."), answer("a", "ok"), say(""))
    assert first_characters(12)(request(*said)) == "user: Mend the lo…\nassistant: I look. (used tool ×2)\ntool: ok"


def test_each_message_gets_less_if_there_is_less_room():
    said = [user("a" * 300), say("b" * 300)]
    lines = first_characters()(request(*said, target=120)).splitlines()
    assert [line[:7] for line in lines] == ["user: a", "assista"]
    assert sum(map(len, lines)) <= 120


def test_inputs_of_users_are_left_out_last():
    said = [user("Mend the login."), *agent_run(60)[1:]]
    text = first_characters()(request(*said, target=700))
    assert text.startswith("[earlier messages left out]\nuser: Mend the login.\n")
    assert len(text) <= 700


def test_the_previous_summary_is_carried_on_with_its_omissions():
    summarize = first_characters()
    first = summarize(request(*agent_run(60), target=700))
    second = summarize(request(user("And the logout?"), target=900, previous=first))
    assert second.splitlines() == [*first.splitlines(), "user: And the logout?"]


@given(history=histories(), target=st.integers(1, 400), previous=st.text(max_size=200))
def test_the_text_fits_and_is_the_same_each_time(history, target, previous):
    asked = request(*history, target=target, previous=previous)
    text = first_characters()(asked)
    assert len(text) <= target
    assert first_characters()(asked) == text


def test_a_blank_line_is_no_omission_and_the_note_fits():
    summarize = first_characters()
    assert summarize(request(user("Hi."), target=10, previous="\r")) == "user: Hi."
    assert summarize(request(user("Hi."), target=10, previous="[earlier messages left out]")) == "user: Hi."


def test_a_count_below_one_is_refused():
    with pytest.raises(BadSetting):
        first_characters(0)


def test_a_scripted_summarizer_answers_in_turn_and_keeps_requests():
    summarizer = ScriptedSummarizer(["One.", OSError("down"), lambda asked: f"{asked.target} characters"])
    asked = request(user("Hi."))
    assert summarizer(asked) == "One."
    with pytest.raises(OSError, match="down"):
        summarizer(asked)
    assert [summarizer(asked), summarizer(asked)] == ["1000 characters"] * 2
    assert summarizer.requests == [asked] * 4
