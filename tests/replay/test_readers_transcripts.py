"""Real recordings: a reader returns the same as the recording's neutral copy, except for documented differences."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foveate.core.messages import Message
from foveate.replay.recordings import read_recording, sniff
from foveate.replay.recordings.recording import Recording

FORMATS = {
    "atif": "atif",
    "claude_code": "claude_code",
    "codex_rollout": "codex",
    "openai_chat_one": "chat",
    "opencode": "opencode",
    "openhands_events": "openhands",
    "pi_session": "pi",
    "swe_agent_traj": "swe_agent",
}


def recordings(transcripts: Path) -> dict[Path, Recording]:
    readings = {path: read_recording(path) for path in sorted(transcripts.glob("raw/*/*"))}
    if not readings:
        pytest.skip(f"no raw recordings in {transcripts}")
    return readings


def neutral_copy(path: Path, transcripts: Path) -> list[dict[str, Any]] | None:
    """Return the neutral copy: `raw/FORMAT/SOURCE__NAME.x` belongs to `neutral/SOURCE/NAME.jsonl`."""
    source, _, name = path.stem.partition("__")
    plain = transcripts / "neutral" / source / f"{name}.jsonl"
    return [json.loads(line) for line in plain.read_text().splitlines()] if plain.exists() else None


def calls_of_copy(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    functions = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def answered(messages: list[Message]) -> list[tuple[str, Any]]:
    """Return the calls that have a result; the neutral copy omits the others."""
    results = Counter(message.result.call_id for message in messages if message.result)
    kept = []
    for call in (call for message in messages for call in message.calls):
        if results[call.call_id]:
            results[call.call_id] -= 1
            kept.append((call.name, json.loads(call.arguments)))
    return kept


def test_each_raw_recording_is_recognised(transcripts: Path) -> None:
    readings = {path.name: sniff(path) for path in transcripts.glob("raw/*/*")}
    assert readings == {path.name: FORMATS[path.parent.name] for path in transcripts.glob("raw/*/*")}


def test_calls_and_results_equal_those_of_the_neutral_copy(transcripts: Path) -> None:
    compared = 0
    for path, recording in recordings(transcripts).items():
        if (plain := neutral_copy(path, transcripts)) is None:
            continue
        messages = [entry.message for entry in recording.messages]
        results = [message.result.text for message in messages if message.result]
        assert results == [message["content"] for message in plain if message["role"] == "tool"], path.name
        assert answered(messages) == calls_of_copy(plain), path.name
        compared += 1
    assert compared > 0


def test_texts_equal_those_of_the_neutral_copy(transcripts: Path) -> None:
    """The neutral copy omits texts that the program added, summaries of native compactions, and replies that only made
    unanswered calls. It joins the texts of one response by an empty line, so the test compares words.
    """
    for path, recording in recordings(transcripts).items():
        if (plain := neutral_copy(path, transcripts)) is None:
            continue
        ours = [
            (entry.message.role, entry.message.text.split(), entry.origin)
            for entry in recording.messages
            if entry.message.role != "tool"
        ]
        theirs = [(message["role"], message["content"].split()) for message in plain if message["role"] != "tool"]
        place = 0
        for role, words, origin in ours:
            if place < len(theirs) and (role, words) == theirs[place]:
                place += 1
            else:
                dropped = origin in ("plugin", "summary") or (role == "assistant" and not words)
                assert dropped, (path.name, place, role, words[:12], theirs[place][1][:12])
        assert place == len(theirs), path.name


def test_content_outside_the_conversation_is_counted(transcripts: Path) -> None:
    counts: Counter[str] = Counter()
    for path, recording in recordings(transcripts).items():
        counts.update(recording.notes)
        assert (sum(len(chain.messages) for chain in recording.side_chains) > 0) == (
            "side-chain lines" in recording.notes
        ), path.name
        assert "damaged lines" not in recording.notes, path.name
    assert {"side-chain lines", "native compactions", "interrupted calls", "reused ids", "failed replies"} <= set(
        counts
    )


def test_neutral_copies_are_read_unchanged(transcripts: Path) -> None:
    for path in sorted(transcripts.glob("neutral/*/*.jsonl")):
        plain = [json.loads(line) for line in path.read_text().splitlines()]
        recording = read_recording(path)
        assert (recording.format, len(recording.messages)) == ("chat", len(plain)), path.name
        assert [entry.message.text for entry in recording.messages] == [message["content"] or "" for message in plain]
        assert [
            (call.name, json.loads(call.arguments)) for entry in recording.messages for call in entry.message.calls
        ] == (calls_of_copy(plain))


def test_all_raw_recordings_are_read_in_a_few_seconds(transcripts: Path) -> None:
    start = time.process_time()
    recordings(transcripts)
    assert time.process_time() - start < 15
