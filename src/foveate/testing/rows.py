"""Rows and records for tests of stores: numbered, chained and sealed.

They are derived from the arguments only, so the same call returns the same values every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from ..core import ids, wire
from ..core.edits import Edit, Hide, Record, Target
from ..core.ids import redacted_record, redacted_stamp
from ..core.messages import Message
from ..core.stamps import Origin, Stamp
from ..ports import Head, StoredMessage

__all__ = ["EMPTY", "after", "chain", "erased", "record_after"]

EMPTY = Head("", "", 0, 0)
"""The head of an empty conversation, for rows that need no store."""

_ORIGINS: dict[str, Origin] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def chain(messages: Iterable[Message], parent: Head = EMPTY, *, time: int = 1_790_000_000_000) -> list[StoredMessage]:
    """Return these messages as rows that follow `parent`.

    Every assistant message counts as one model call, and each message is one second later than the one before it, from
    `time` (milliseconds since 1970).
    """
    rows: list[StoredMessage] = []
    position, tip, seal, turn = parent.position, parent.tip, parent.seal, parent.position
    for message in messages:
        position += 1
        turn += message.role == "assistant"
        body = wire.encode_message(message)
        stamp = Stamp(turn, time + 1000 * position, -(-len(body) // 4), _ORIGINS[message.role])
        body_hash = ids.body_hash(body)
        tip = ids.message_id(tip, body_hash)
        seal = ids.seal(seal, tip, redacted_stamp(stamp))
        rows.append(StoredMessage(position, tip, seal, stamp, body, body_hash))
    return rows


def after(head: Head, rows: Sequence[StoredMessage]) -> Head:
    """Return the head after `rows` were appended to `head`."""
    if not rows:
        return head
    return structs.replace(head, position=rows[-1].position, tip=rows[-1].id, seal=rows[-1].seal)


def erased(row: StoredMessage) -> StoredMessage:
    """Return the row without its body, as an erasure leaves it."""
    return structs.replace(row, body=b"")


def record_after(head: Head, *edits: Edit) -> tuple[Record, str]:
    """Return a journal record with these edits that follows `head`, and its id.

    Without edits it hides the tip, or an unknown message if there is none.
    """
    said = edits or (Hide(Target(head.tip or "00" * 20), policy="test", reason="to have an edit"),)
    record = Record(
        head.number + 1, said, head.position, 1_790_000_000_000 + head.number, head.tip, head.position, author="edit"
    )
    return record, ids.record_id(head.record, redacted_record(record))
