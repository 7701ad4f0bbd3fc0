"""Reasons why replies end, by each provider's word and as recorded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foveate.core.stamps import Stop
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.replay.recordings import read_recording


def completion(reason: Any, **message: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": reason, "message": {"role": "assistant", "content": "yes", **message}}]}


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "paused"),
        ("refusal", "refusal"),
        ("something_new", "other"),
    ],
)
def test_the_stop_reason_of_anthropic_is_read(reason: str, kind: Any):
    assert get_format("anthropic").stop_of({"role": "assistant", "content": [], "stop_reason": reason}) == Stop(
        kind, reason
    )


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("stop", "end"),
        ("tool_calls", "calls"),
        ("function_call", "calls"),
        ("length", "length"),
        ("content_filter", "filtered"),
        ("eos", "other"),
    ],
)
def test_the_finish_reason_of_openai_is_read(reason: str, kind: Any):
    assert get_format("openai").stop_of(completion(reason)) == Stop(kind, reason)


def test_a_refusal_of_openai_is_read_from_the_message():
    format = get_format("openai")
    assert format.stop_of(completion("stop", refusal="I cannot.")) == Stop("refusal", "stop")
    assert format.stop_of({"role": "assistant", "refusal": "I cannot."}) == Stop("refusal", "")
    assert format.stop_of(completion("stop", refusal="")) == Stop("end", "stop")


@pytest.mark.parametrize("reply", [{"role": "assistant", "content": "a"}, {"stop_reason": None}, {"stop_reason": 3}])
def test_a_reply_without_a_reason_has_no_stop(reply: dict[str, Any]):
    assert get_format("anthropic").stop_of(reply) is None
    assert get_format("openai").stop_of(reply) is None
    assert get_format("openai").stop_of(completion(None)) is None
    assert get_format("openai").stop_of({"choices": []}) is None


def test_a_value_that_is_not_a_reply_is_refused():
    for name in ("anthropic", "openai"):
        with pytest.raises(BadMessage):
            get_format(name).stop_of(None)


def test_recordings_keep_the_stop_reasons_of_replies(transcripts: Path):
    """In real sessions a reply with calls ends for its calls, if the program recorded the reason."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(transcripts.glob("raw/*/*")):
        for entry in (recording := read_recording(path)).messages:
            if entry.stop is not None:
                assert entry.message.role == "assistant"
                counts[recording.format, entry.stop.kind] += 1
                if entry.stop.kind == "calls":
                    assert entry.message.calls, (path, entry)
    if not counts:
        pytest.skip(f"no raw recordings in {transcripts}")
    assert {name for name, _ in counts} == {"claude_code", "pi", "opencode", "openhands"}
    assert min(counts[name, "calls"] for name in ("claude_code", "pi", "opencode")) > 0
