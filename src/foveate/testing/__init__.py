"""Test helpers: builders of conversations, checkers of request bodies, a scripted model.

Helpers with their own dependencies are imported from their modules: `foveate.testing.strategies` needs Hypothesis.
"""

from __future__ import annotations

from .bodies import BodyChecker, Refusal, check_body
from .builders import agent_run, answer, call, calls, chat, say, system, text_of, thought, user
from .model import ScriptedModel
from .script import (
    CutReply,
    Failure,
    IllegalRequest,
    ProviderError,
    Script,
    ScriptedReply,
    ScriptItem,
    SlowReply,
    StoppedReply,
)
from .stubs import StubAnthropic, StubGemini, StubOpenAI
from .usage import BilledTokens

__all__ = [
    "BilledTokens",
    "BodyChecker",
    "CutReply",
    "Failure",
    "IllegalRequest",
    "ProviderError",
    "Refusal",
    "Script",
    "ScriptItem",
    "ScriptedModel",
    "ScriptedReply",
    "SlowReply",
    "StoppedReply",
    "StubAnthropic",
    "StubGemini",
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
