"""Every shipped preset on recorded agents, in a large and a small window: legal, within it, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate import open_conversation
from foveate.open import grouped
from foveate.ops.archive import verify_all
from foveate.policies import PRESET_NAMES, load_summarizer_name
from foveate.replay.recordings import read_recording
from foveate.replay.run import replay
from foveate.stores.memory import MemoryStore
from foveate.testing.bodies import BodyChecker

PRESETS = [name for name in PRESET_NAMES if name not in ("off", "keep-last-N")]
WINDOWS = (200_000, 32_000)


def recordings(folder: Path) -> list[Path]:
    """A sample of recordings that are not too long."""
    files = sorted(path for path in (folder / "neutral").rglob("*.jsonl") if path.stat().st_size < 900_000)
    return files[:: max(1, len(files) // 6)][:6]


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_every_request_is_legal_and_fits(preset: str, transcripts: Path):
    checkers = {provider: BodyChecker(provider) for provider in ("anthropic", "openai")}
    for number, path in enumerate(recordings(transcripts)):
        provider, window = ("anthropic", "openai")[number % 2], WINDOWS[number // 2 % 2]
        row = replay(
            read_recording(path),
            policy=preset,
            window=window,
            provider=provider,
            check=lambda provider, body: checkers[provider].check(body),
        ).row
        assert (row.illegal_views, row.lost_messages, row.over_budget) == (0, 0, 0), (path.name, window)
        assert row.calls > 0


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_a_second_run_changes_nothing_after_reopening(preset: str, transcripts: Path):
    summarizer = load_summarizer_name(preset) or "first-characters"
    for path in recordings(transcripts)[:3]:
        store = MemoryStore()
        options = {"store": store, "format": "anthropic", "window": 32_000}
        chat = open_conversation("c", policy=preset, summarizer=summarizer, **grouped(options))
        messages = [item.message for item in read_recording(path).messages]
        for index, message in enumerate(messages):
            if message.role == "assistant" and len(chat):
                chat.prepare()
                if index % 5 == 0:
                    number, shown = chat._agent.head.number, chat.view.entries
                    assert (chat.prepare().entries, chat._agent.head.number) == (shown, number)
                chat.record(message)
            else:
                chat.append(message)
        view = chat.prepare()
        again = open_conversation("c", policy="off", **grouped(options))
        bodies = [chat.format.body(item, profile=chat._agent.profile) for item in (view, again.prepare())]
        assert bodies[0] == bodies[1]
        assert [row.message for row in chat.history()] == messages
        assert [item for item in verify_all(store) if item.findings] == []  # Also saved views.
