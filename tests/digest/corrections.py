"""Cases of corrections.txt: what people say, what a digest no longer shows, and what one line of it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from foveate import assistant, tool_result, user
from foveate.core.messages import Message, ToolCall
from foveate.digest.history import digest_messages

__all__ = ["Case", "digest_of", "faults_of", "read_cases"]


class Case(NamedTuple):
    """A short history with what its digest shows."""

    says: tuple[tuple[str, str], ...]
    """The speaker and the text of each message."""
    gone: tuple[str, ...]
    """Texts that no line shows as current."""
    kept: tuple[tuple[str, ...], ...]
    """Texts that stand together in a line."""

    @property
    def messages(self) -> list[Message]:
        found: list[Message] = []
        for number, (speaker, text) in enumerate(self.says):
            if speaker == "t":
                command, _, lines = text.partition(" | ")
                call = ToolCall(f"c{number}", "shell", f'{{"command": "{command}"}}')
                found += [assistant("", call), tool_result(call.call_id, lines.replace("/", "\n"))]
            else:
                found.append(user(text) if speaker == "u" else assistant(text))
        return found


def read_cases() -> list[Case]:
    text = Path(__file__).with_name("corrections.txt").read_text(encoding="utf-8")
    cases: list[Case] = []
    for block in re.split(r"\n{2,}", text.strip())[1:]:
        lines = [(line[0], line[2:]) for line in block.splitlines()]
        cases.append(
            Case(
                tuple(line for line in lines if line[0] in "uat"),
                tuple(line for mark, line in lines if mark == "-"),
                tuple(tuple(line.split(" ~ ")) for mark, line in lines if mark == "+"),
            )
        )
    return cases


OPENING = [user("Good morning! I have a couple of notes for you."), assistant("Good morning. Go ahead.")]


def digest_of(case: Case, room: int = 2_000) -> str:
    return digest_messages([*OPENING, *case.messages], room)


def faults_of(case: Case, text: str = "") -> list[str]:
    """Return the texts that a digest shows although they are replaced, and those that it lost."""
    lines = [line for line in (text or digest_of(case)).splitlines() if not line.startswith("#")]
    newest = case.says[-1][1]
    faults = []
    for old in case.gone:
        shown = [line for line in lines if old in line and newest not in line and "no longer" not in line]
        shown += [line for line in lines if old in line and newest in line and "replaced" not in line and old not in newest]
        faults += [f"still: {line}" for line in shown]
    for parts in case.kept:
        if not any(all(part in line for part in parts) for line in lines):
            faults.append(f"lost: {' ~ '.join(parts)}")
    return faults
