"""Conversion between rows of the SQL tables and values, checked when they are read.

A message is read together with the link before it. So every read proves that body, stamp, id and seal belong together,
and damage is reported at its position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ...core import ids, wire
from ...core.edits import Record
from ...core.ids import redacted_record, redacted_stamp
from ...core.runs import LockHolder
from ...core.stamps import Stamp
from ...errors import Damaged, NoSuchConversation
from ...ports import Head, StoredMessage
from ..checks import check_not_behind, lock_lost, rolled_back
from ..codec import DamagedBody, is_outline, unpack
from ..lineage import Lineage, decode, position_ranges, record_ranges
from . import statements as sql
from .driver import Row, Session

__all__ = [
    "UNREADABLE",
    "are_bytes",
    "ask_as_owner",
    "body_of",
    "body_or_empty",
    "branch_in",
    "change_as_owner",
    "changes_query",
    "check_changes",
    "current",
    "damaged_row",
    "key",
    "link_at",
    "message_values",
    "messages_after",
    "read_branch",
    "read_messages",
    "read_records",
    "record_at",
    "records_after",
    "stamp_in",
    "with_body",
]

UNREADABLE = (msgspec.DecodeError, UnicodeError)
"""Errors of decoding damaged bytes, or text made of them."""

_INLINE_MAX = 4096
"""Packed bytes up to which a body is stored in its message's row; a larger one is stored once per tree, by its hash."""


def key(head: Head, branch: int | None = None) -> tuple[str, int, int]:
    """Return the key of every row of a branch: of the head's branch, or of another one of its tree."""
    return head.tenant, head.root, head.branch if branch is None else branch


def with_body(head: Head, branch: int | None = None) -> tuple[str, int, str, int, int]:
    """Return the values of a statement that looks up large bodies: the tree of the bodies, and `key`."""
    return head.tenant, head.root, *key(head, branch)


def ask_as_owner(
    session: Session, head: Head, owner: str, place: str, *queries: tuple[str, Sequence[Any]]
) -> list[list[Row]]:
    """Run these queries, together with a heartbeat of `owner` unless it is ""; return the rows of each.

    The heartbeat locks the row, so no other owner takes over until the transaction ends. Raises ConversationBusy if
    `owner` does not hold the lock on the branch.
    """
    if not owner:
        return session.ask(*queries)
    beat, *rows = session.ask((sql.HEARTBEAT, (*key(head), owner)), *queries)
    _require_lock(session, head, beat, place)
    return rows


def change_as_owner(session: Session, head: Head, owner: str, place: str, query: tuple[str, Sequence[Any]]) -> int:
    """Run this query as `ask_as_owner` does; return how many rows it changed."""
    if not owner:
        return session.change(query)[0]
    changed, (beat,) = session.change((sql.HEARTBEAT, (*key(head), owner)), query)
    _require_lock(session, head, beat, place)
    return changed


def _require_lock(session: Session, head: Head, beat: Sequence[Row], place: str) -> None:
    """Raise ConversationBusy if a heartbeat found no lock of its owner."""
    if not beat:
        check_not_behind(head, read_branch(session, head, place)[0])
        holder = session.rows(sql.LOCK_HOLDER, key(head))
        raise lock_lost(head, LockHolder(*holder[0]) if holder else None)


def read_branch(session: Session, head: Head, place: str) -> tuple[Head, Lineage]:
    """Return the branch of a head as it is now. Raises NoSuchConversation, Damaged."""
    return branch_in(head, session.rows(sql.BRANCH, key(head)), place)


def current(session: Session, head: Head, place: str) -> tuple[Head, Lineage]:
    """Return the branch of a head as it is now. Raises StoreRolledBack too, if the branch ends before the head."""
    now, family = read_branch(session, head, place)
    check_not_behind(head, now)
    return now, family


def branch_in(head: Head, rows: Sequence[Row], place: str) -> tuple[Head, Lineage]:
    """Return the branch in these rows of `sql.BRANCH`. Raises NoSuchConversation, Damaged."""
    if not rows:
        raise NoSuchConversation(head.name, place, head.tenant)
    name, lineage, position, tip, seal, number, record, erased = rows[0]
    are_whole = all(type(value) is int for value in (position, number, erased))
    if not (are_bytes(tip, seal, record) and are_whole and _is_text(name)):
        raise Damaged(f"The branch of {head.label} cannot be read. Run `verify`.")
    now = Head(head.tenant, name, head.root, head.branch, position, tip.hex(), seal.hex(), number, record.hex(), erased)
    try:
        return now, decode(lineage)
    except UNREADABLE as error:
        raise Damaged(f"The ancestors of the branch of {name!r} cannot be read ({error}). Run `verify`.") from error


def message_values(head: Head, row: StoredMessage, packed: bytes) -> tuple[Row, Row | None]:
    """Return the values for `message`, and those for `body` if the packed body is large."""
    link = bytes.fromhex(row.id), bytes.fromhex(row.seal), wire.encode_stamp(row.stamp)
    if not packed or row.is_released:
        return (*key(head), row.position, *link, bytes.fromhex(row.body_hash), packed), None
    if len(packed) <= _INLINE_MAX:
        return (*key(head), row.position, *link, None, packed), None
    digest = bytes.fromhex(row.body_hash)
    return (*key(head), row.position, *link, digest, None), (head.tenant, head.root, digest, packed)


def are_bytes(*values: object) -> bool:
    """Return whether all these columns contain bytes: in SQLite a flipped bit may change their type."""
    return all(type(value) is bytes for value in values)


def _is_text(value: object) -> bool:
    """Return whether this column contains valid text. Damaged text is read with surrogates in it."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeError:
        return False
    return True


def body_of(digest: Any, stored: Any) -> tuple[bytes, str]:
    """Return a body and the hash of the message from their two columns. Raises DamagedBody.

    An erased body is b"", and that of a released message is its outline.
    """
    if not are_bytes(stored):
        raise DamagedBody("its body is gone")
    body = unpack(stored)
    if body and not is_outline(stored):
        return body, ids.body_hash(body)
    if not are_bytes(digest):
        raise DamagedBody(f"its body was {'released' if body else 'erased'} and its hash is gone")
    return body, digest.hex()


def body_or_empty(digest: object, stored: object) -> bytes:
    """Return a body; b"" for a damaged one, whose words are not in the index."""
    try:
        return body_of(digest, stored)[0]
    except DamagedBody:
        return b""


def changes_query(head: Head, messages: int, records: int) -> tuple[tuple[str, Row], tuple[str, Row]]:
    """Return the queries for so many messages and records after a head. They are behind any fork, so on its branch."""
    return (
        (sql.NEXT_MESSAGES, (*with_body(head), head.position, messages)),
        (sql.NEXT_RECORDS, (*key(head), head.number, records)),
    )


def messages_after(head: Head, rows: Iterable[Row]) -> list[StoredMessage]:
    """Return the messages in rows that follow a head's tip. Raises Damaged at the first that does not follow."""
    messages: list[StoredMessage] = []
    expected, tip, seal = head.position + 1, head.tip, head.seal
    for row in rows:
        if row[0] != expected:
            raise _damaged(head, f"Message {expected}", "it is missing")
        message = _message(head, row, tip, seal)
        messages.append(message)
        expected, tip, seal = expected + 1, message.id, message.seal
    return messages


def check_changes(head: Head, now: Head, rows: Sequence[Row], records: Sequence[Row]) -> None:
    """Raise StoreRolledBack if the branch lost data: if the changes since a head do not follow from it.

    Only the first message and the first record are checked.
    """
    check_not_behind(head, now)
    try:
        messages_after(head, rows[:1])
        records_after(head, records[:1])
    except Damaged as error:
        raise rolled_back(head, now) from error
    if (not rows and now.tip != head.tip) or (not records and now.record != head.record):
        raise rolled_back(head, now)


def stamp_in(head: Head, row: Row) -> Stamp:
    """Return the stamp in a row, without any other check. Raises Damaged."""
    try:
        return wire.decode_stamp(row[3])
    except UNREADABLE as error:
        raise _damaged(head, f"Message {row[0]}", str(error)) from error


def records_after(head: Head, rows: Iterable[Row]) -> list[tuple[str, Record]]:
    """Return the records in rows that follow a head's journal. Raises Damaged at the first that does not follow."""
    records: list[tuple[str, Record]] = []
    tip, last = head.record, head.number
    for row in rows:
        id, record = _linked_record(head, row, tip, last)
        records.append((id, record))
        tip, last = id, record.last
    return records


def link_at(session: Session, head: Head, lineage: Lineage, position: int) -> tuple[str, str]:
    """Return the id and the seal of the message at a position; at 0, those of nothing. Raises Damaged."""
    for part in position_ranges(lineage, head.branch, position, position):
        for id, seal in session.rows(sql.LINK, (*key(head, part.branch), position, position)):
            if are_bytes(id, seal):
                return id.hex(), seal.hex()
    if position:
        raise _damaged(head, f"Message {position}", "it is missing, or its row cannot be read")
    return ids.NO_PARENT, ids.NO_PARENT


def time_at(session: Session, head: Head, lineage: Lineage, position: int) -> int:
    """Return the time of the message at a position; 0 if there is none, or its stamp cannot be read."""
    for part in position_ranges(lineage, head.branch, position, position):
        for (stamp,) in session.rows(sql.STAMP, (*key(head, part.branch), position, position)):
            try:
                return wire.decode_stamp(stamp).time
            except (AttributeError, TypeError, *UNREADABLE):
                return 0
    return 0


def read_messages(session: Session, head: Head, lineage: Lineage, first: int, last: int) -> Iterator[StoredMessage]:
    """Yield positions first..last, all of which must exist. Raises Damaged at the first that is not as appended."""
    tip, seal = link_at(session, head, lineage, first - 1)
    expected = first
    for part in position_ranges(lineage, head.branch, first, last):
        for row in session.rows(sql.MESSAGES, (*with_body(head, part.branch), part.first, part.last)):
            if row[0] != expected:
                break
            message = _message(head, row, tip, seal)
            yield message
            expected, tip, seal = expected + 1, message.id, message.seal
        if expected <= part.last:
            raise _damaged(head, f"Message {expected}", "it is missing")


def _message(head: Head, row: Row, parent: str, parent_seal: str) -> StoredMessage:
    position, raw_id, raw_seal, packed, digest, stored = row
    if not are_bytes(raw_id, raw_seal, packed):
        raise _damaged(head, f"Message {position}", "its row cannot be read")
    id, seal = raw_id.hex(), raw_seal.hex()
    try:
        body, hash = body_of(digest, stored)
        stamp = wire.decode_stamp(packed)
    except (DamagedBody, *UNREADABLE) as error:
        raise _damaged(head, f"Message {position}", str(error)) from error
    if ids.message_id(parent, hash) != id:
        raise _damaged(head, f"Message {position}", "its id does not follow from its body and the message before it")
    if ids.seal(parent_seal, id, packed) != seal and (
        not stamp.metadata or ids.seal(parent_seal, id, redacted_stamp(stamp)) != seal
    ):
        raise _damaged(head, f"Message {position}", "its stamp does not match its seal")
    return StoredMessage(position, id, seal, stamp, body, hash, is_outline(stored))


def record_at(session: Session, head: Head, lineage: Lineage, number: int) -> tuple[str, int]:
    """Return the id and the last edit of the record with edit `number`; at 0, of nothing. Raises Damaged."""
    for part in [*record_ranges(lineage, head.branch, 1, number)][-1:]:
        for first, id, stored in session.rows(sql.RECORD_AT, (*key(head, part.branch), part.first, part.last)):
            _, record = _record(head, first, id, stored)
            return id.hex(), record.last
    if number:
        raise _damaged(head, f"Edit {number}", "its record is missing")
    return ids.NO_PARENT, 0


def read_records(session: Session, head: Head, lineage: Lineage, after: int) -> Iterator[tuple[str, Record]]:
    """Yield the records whose first edit has a number above `after`, up to the head's. Raises Damaged."""
    tip, last = record_at(session, head, lineage, min(after, head.number))
    for part in record_ranges(lineage, head.branch, after + 1, head.number):
        for row in session.rows(sql.RECORDS, (*key(head, part.branch), part.first, part.last)):
            id, record = _linked_record(head, row, tip, last)
            yield id, record
            tip, last = id, record.last
    if last < head.number:
        raise _damaged(head, f"Edit {last + 1}", "its record is missing")


def damaged_row(head: Head, what: str) -> Damaged:
    """Return the error for a row of a tree that cannot be read."""
    return Damaged(f"{what.capitalize()} of {head.label}, or of a fork of it, is damaged. Run `verify`.")


def _linked_record(head: Head, row: Row, tip: str, last: int) -> tuple[str, Record]:
    """Return a record that follows the record with the id `tip`, whose last edit has the number `last`."""
    first, raw_id, stored = row
    body, record = _record(head, first, raw_id, stored)
    id: str = raw_id.hex()
    if first != last + 1:
        raise _damaged(head, f"Edit {last + 1}", "its record is missing")
    if id != ids.record_id(tip, redacted_record(record)) and id != ids.legacy_record_id(tip, body):
        raise _damaged(head, f"Record {first}", "its id does not follow from its content and the record before it")
    return id, record


def _record(head: Head, first: int, id: Any, stored: Any) -> tuple[bytes, Record]:
    if not are_bytes(id, stored):
        raise _damaged(head, f"Record {first}", "its row cannot be read")
    try:
        body = unpack(stored)
        return body, wire.decode_record(body)
    except (DamagedBody, *UNREADABLE) as error:
        raise _damaged(head, f"Record {first}", str(error)) from error


def _damaged(head: Head, what: str, problem: str) -> Damaged:
    return Damaged(f"{what} of {head.label} is damaged: {problem}. Run `verify` to see what else is.")
