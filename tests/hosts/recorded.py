"""Messages of recorded agents, for tests that convert them to the classes of a framework and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from foveate import Message
from foveate.formats import get_format

__all__ = ["recorded_lists"]

_STEP = 9
"""One of so many recordings is enough for each framework: they hold about 4,000 messages together."""


def recorded_lists(transcripts: Path) -> Iterator[list[Message]]:
    """Yield the messages of some recordings, one list for each."""
    format = get_format("openai")
    for path in sorted((transcripts / "neutral").glob("*/*.jsonl"))[::_STEP]:
        lines = path.read_text("utf-8").splitlines()
        yield [message for line in lines for message in format.parse(json.loads(line))]
