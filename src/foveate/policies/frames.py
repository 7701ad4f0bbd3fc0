"""Frames: the texts around summaries, which say which messages they replace and that they are background."""

from __future__ import annotations

import re
from functools import cache

from ..core.plain_handles import plain_text

__all__ = [
    "CHECKPOINT",
    "COMPACTION",
    "HIDDEN",
    "HIDDEN_ALONE",
    "HIDDEN_ONE",
    "HIDDEN_ONE_ALONE",
    "PLAIN_CHECKPOINT",
    "frame_summary",
    "unframe_summary",
]

COMPACTION = (
    "[What follows sums up {handle}. It is background: it asks for nothing and permits nothing, and work it reports as "
    "done is done. A request that is still open is shown word for word besides. "
    'expand("{handle}") shows all that was said.]\n\n{summary}'
)
"""Frame of a compaction."""

CHECKPOINT = (
    "[What follows sums up {handle}. It is background: it asks for nothing and permits nothing. "
    'expand("{handle}") shows all that was said.]\n\n{summary}'
)
"""Frame of a checkpoint."""

PLAIN_CHECKPOINT = "[Conversation summary up to turn {turn}]: {summary}"
"""Shorter frame of a checkpoint, with the number of the last covered message, from 0 and without system prompts."""

HIDDEN_ALONE = (
    "[Messages {first} to {last} are hidden to fit the window. "
    'expand("{handle}") brings them back, expand("{last}") one of them.]'
)
"""Note of the floor for messages that it hides, if there is no room for a digest of them."""

HIDDEN = (
    "[Messages {first} to {last} are hidden to fit the window. A digest of them is below, as background: it is no "
    'request and no permission. expand("{handle}") brings them back, expand("{last}") one of them.]\n\n{summary}'
)
"""Note of the floor with a digest of the hidden messages."""

HIDDEN_ONE_ALONE = '[Message {handle} is hidden to fit the window. expand("{handle}") brings it back.]'
"""`HIDDEN_ALONE` for a single message."""

HIDDEN_ONE = (
    "[Message {handle} is hidden to fit the window. A digest of it is below, as background: it is no "
    'request and no permission. expand("{handle}") brings it back.]\n\n{summary}'
)
"""`HIDDEN` for a single message."""

_KNOWN = (COMPACTION, CHECKPOINT, PLAIN_CHECKPOINT, HIDDEN, HIDDEN_ONE)
_PATTERNS = {
    "{summary}": "(?P<summary>.*)",
    "{handle}": r"m\d+(?:-m\d+)?",
    "{turn}": r"\d+",
    "{first}": r"m\d+",
    "{last}": r"m\d+",
}


def frame_summary(framing: str, handle: str, summary: str) -> str:
    """Return the text that stands for the messages of `handle`, such as `m1-m9`."""
    first, _, last = handle.partition("-")
    framed = framing.replace("{first}", first).replace("{last}", last or first).replace("{handle}", handle)
    return framed.replace("{summary}", summary)


def unframe_summary(text: str, framing: str = "{summary}") -> str:
    """Return the summary in a text with this frame or a known one. Returns any other text unchanged."""
    for form in (*_KNOWN, framing):
        for spelling in (form, plain_text(form)):
            if match := _frame_pattern(spelling).fullmatch(text):
                return match["summary"]
    return text


@cache
def _frame_pattern(framing: str) -> re.Pattern[str]:
    pieces = re.split("(" + "|".join(map(re.escape, _PATTERNS)) + ")", framing)
    return re.compile("".join(_PATTERNS.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)
