"""First characters: a summary without a model, from the role and the beginning of each message.

It is the last resort, which answers every request. The same request gives the same text, in the words of the speakers.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from msgspec import Struct

from ..core.messages import Message
from ..core.scripts import beginning_of
from ..core.summaries import SummaryRequest
from ..errors import BadSetting
from ..ports import Summarizer

__all__ = ["first_characters"]

_LEAST = 24
"""Least characters of a message: below them nothing can be understood, so older messages are left out instead."""
_LEFT_OUT = "[earlier messages left out]"


def first_characters(count: int = 200) -> Summarizer:
    """Return a summarizer that shows the role and the first `count` characters of each message.

    If there is less room, each message gets less; then the oldest are left out, messages of users last. The previous
    summary is carried on line by line, as the oldest messages. Raises BadSetting for a `count` below 1.
    """
    if count < 1:
        raise BadSetting(f"Count of first_characters must be at least 1, not {count}.")
    return _FirstCharacters(count)


class _FirstCharacters(Struct, frozen=True):
    """A summarizer that copies the beginning of each message."""

    count: int
    name: ClassVar[str] = "first-characters"
    needs_no_model: ClassVar[bool] = True
    """Fallbacks read it: the answer comes at once and needs no judgement."""

    def __call__(self, request: SummaryRequest) -> str:
        before = [line for line in request.previous.splitlines() if line.strip()]
        is_short = _LEFT_OUT in before
        before = [line for line in before if line != _LEFT_OUT]
        keep = self.count
        while True:
            lines = [_shortened(line, keep) for line in before]
            lines += [line for message in request.everything if (line := _line(message, keep))]
            if _length(lines) <= request.target or keep <= _LEAST:
                break
            keep = max(_LEAST, keep * 2 // 3)
        left = _left_in(lines, request.target)
        noted = [_LEFT_OUT, *left]
        says_so = left and (is_short or len(left) < len(lines)) and _length(noted) <= request.target + 1
        return "\n".join(noted if says_so else left)


def _left_in(lines: list[str], room: int) -> list[str]:
    """Return the lines that fit next to a note, in their order: those of users first, then the newest."""
    if _length(lines) <= room:
        return lines
    free = room - len(_LEFT_OUT)
    kept: set[int] = set()
    for is_users in (True, False):
        for i in reversed(range(len(lines))):
            if lines[i].startswith("user: ") == is_users and len(lines[i]) < free:
                kept.add(i)
                free -= len(lines[i]) + 1
    return [lines[i] for i in sorted(kept)]


def _length(lines: list[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _line(message: Message, keep: int) -> str:
    text = _shortened(" ".join(message.text.split()), keep)
    called = Counter(call.name for call in message.calls)
    used = ", ".join(name if times == 1 else f"{name} ×{times}" for name, times in called.items())
    shown = " ".join(word for word in (text, f"(used {used})" if used else "") if word)
    return f"{message.role}: {shown}" if shown else ""


def _shortened(text: str, keep: int) -> str:
    return text if len(text) <= keep else beginning_of(text, keep - 1) + "…"
