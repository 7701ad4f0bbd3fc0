"""Dialogues: whole conversations of people with an agent, written by an author who knew no digest.

A file in `dialogues/` has the messages of one conversation and its facts. People write there as they do in a hurry: in
fragments, several things at once, with typing errors and digressions, and they change their minds without saying so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

import foveate
from foveate import Message
from retention.conversations import Sample
from retention.shapes import Fact, Kind

__all__ = ["dialogues"]

_FOLDER = Path(__file__).resolve().parent / "dialogues"


class _Turn(msgspec.Struct):
    """A message as written; `tool` is the result of a call without arguments."""

    role: str
    text: str


class _Stated(msgspec.Struct):
    """A fact, and the text that states it last."""

    kind: Kind
    says: str
    keep: tuple[str, ...]
    old: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    hedge: str = ""


class _Dialogue(msgspec.Struct):
    messages: list[_Turn]
    facts: list[_Stated]


def dialogues() -> Iterator[Sample]:
    """Yield all dialogues, in the order of their names."""
    for path in sorted(_FOLDER.glob("*.json")):
        read = msgspec.json.decode(path.read_bytes(), type=_Dialogue)
        groups = tuple(_group(number, turn) for number, turn in enumerate(read.messages))
        facts = tuple(
            Fact(path.stem, one.kind, "end", (one.says,), one.keep, one.old, one.other, one.hedge) for one in read.facts
        )
        yield Sample(groups, facts)


def _group(number: int, turn: _Turn) -> tuple[Message, ...]:
    if turn.role != "tool":
        return (foveate.user(turn.text) if turn.role == "user" else foveate.assistant(turn.text),)
    call = foveate.ToolCall(f"call_{number}", "run", "{}")
    return foveate.assistant("", call), foveate.tool_result(call.call_id, turn.text)
