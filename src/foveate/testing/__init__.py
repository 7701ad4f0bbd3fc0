"""For those who test with foveate, or test foveate: conversations, checkers of requests, a model that follows a script.

What needs a package of its own is imported by its own name: `foveate.testing.strategies` needs Hypothesis.
"""

from __future__ import annotations

from .bodies import BodyChecker, Refusal, check_body
from .builders import agent_run, answer, call, calls, chat, say, system, text_of, thought, user
from .model import ScriptedModel
from .script import Cut, Fails, IllegalRequest, ProviderError, Slow, Stops
from .stubs import StubAnthropic, StubOpenAI

__all__ = [
    "BodyChecker",
    "Cut",
    "Fails",
    "IllegalRequest",
    "ProviderError",
    "Refusal",
    "ScriptedModel",
    "Slow",
    "Stops",
    "StubAnthropic",
    "StubOpenAI",
    "agent_run",
    "answer",
    "call",
    "calls",
    "chat",
    "check_body",
    "say",
    "system",
    "text_of",
    "thought",
    "user",
]
