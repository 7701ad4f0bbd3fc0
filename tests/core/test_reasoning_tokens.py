"""Reasoning counts if it is sent again, and does not count if the format drops it."""

from __future__ import annotations

import pytest

from foveate import Conversation, Reasoning, ToolCall, open_conversation
from foveate.core.messages import assistant
from foveate.core.profiles import PROFILES, Profile
from foveate.core.rendering import legalized
from foveate.core.sizes import MESSAGE_TOKENS, tokens_of
from foveate.testing import answer, user

THOUGHT = "I should look at the parser first. " * 40
REST = MESSAGE_TOKENS + 1 + 1  # "ok", and a call "t {}"

CASES = {
    "its own, in the open": ("openai", Reasoning(THOUGHT, format="openai"), True),
    "its own, as a cipher that its messages have no place for": ("openai", Reasoning("", "", THOUGHT, "openai"), False),
    "another provider's": ("openai", Reasoning(THOUGHT, "signed", format="anthropic"), False),
    "signed": ("anthropic", Reasoning(THOUGHT, "signed", format="anthropic"), True),
    "redacted": ("anthropic", Reasoning("", "", THOUGHT, "anthropic"), True),
    "signed, the text withheld": ("anthropic", Reasoning("", THOUGHT, format="anthropic"), True),
    "not signed": ("anthropic", Reasoning(THOUGHT, format="anthropic"), False),
    "of another, for Anthropic": ("anthropic", Reasoning(THOUGHT, format="openai"), False),
}


def asked(format: str, reasoning: Reasoning) -> Conversation:
    chat = open_conversation("c", format=format, window=100_000, policy="none")
    chat.append([user("go"), assistant("ok", ToolCall("a", "t"), reasoning=reasoning), answer("a", "x")])
    return chat


@pytest.mark.parametrize("case", CASES)
def test_old_reasoning_counts_only_if_it_is_sent(case: str):
    format, reasoning, is_sent = CASES[case]
    chat = asked(format, reasoning)
    view = chat.prepare()
    body = chat.format.body(view, profile=chat._agent.profile).decode()
    assert (THOUGHT in body) == is_sent
    assert view.entries[1].tokens == REST + (len(THOUGHT) // 4 if is_sent else 0)
    assert view.tokens == sum(entry.tokens for entry in view)


def test_a_strict_server_gets_no_reasoning_and_counts_none():
    strict = Profile("openai", strict=True)
    shown, why = legalized(assistant("ok", reasoning=Reasoning(THOUGHT, format="openai")), strict, stale=False)
    assert shown is not None
    assert (tokens_of(shown), why) == (5, "reasoning that the format cannot carry is refused")
    plain, why = legalized(
        assistant("ok", reasoning=Reasoning(THOUGHT, format="openai")), PROFILES["openai"], stale=False
    )
    assert plain is not None
    assert (tokens_of(plain), why) == (5 + len(THOUGHT) // 4, "")


def test_the_history_counts_all_reasoning():
    chat = asked("openai", Reasoning(THOUGHT, "signed", format="anthropic"))
    assert chat.history()[1].stamp.tokens == REST + len(THOUGHT) // 4
