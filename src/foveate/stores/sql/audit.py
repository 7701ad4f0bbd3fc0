"""Verify one conversation of the SQL store: read every row without trusting any, and report the faults.

It reads some hundreds of rows at a time, so it needs little memory for a conversation of any length.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from ...core import ids, wire
from ...core.edits import Record
from ...core.ids import redacted_record, redacted_stamp
from ...errors import Damaged, NoSuchConversation
from ...ports import Finding, Head
from ..audit import JournalLink, MessageLink, audit_head, audit_journal, audit_messages, released_outlines
from ..codec import DamagedBody, is_outline, unpack
from ..lineage import Lineage, position_ranges, record_ranges, root_of
from . import statements as sql
from .driver import Row, Session
from .erasure_tree import SqlTree
from .rows import UNREADABLE, are_bytes, body_of, key, link_at, read_branch, record_at, with_body

__all__ = ["audit"]

_ROWS = 500
"""Rows read at a time."""
_NOT_INDEXED = "it is not found by its id: the index `message_by_id` is damaged (REINDEX)"


def audit(session: Session, head: Head, place: str) -> Iterator[Finding]:
    """Yield the faults of the conversation of this head."""
    try:
        now, lineage = read_branch(session, head, place)
    except (Damaged, NoSuchConversation) as error:
        yield Finding("head", str(error))
        return
    yield from _name(session, now)
    yield from audit_messages(_messages(session, now, lineage), now, lambda: _released(session, now))
    yield from audit_journal(_journal(session, now, lineage), now)
    yield from _erasures(session, now)
    yield from _orphans(session, now, lineage)
    yield from _earlier_head(session, head, now, lineage)
    yield from _snapshot(session, now)


def _name(session: Session, now: Head) -> Iterator[Finding]:
    rows = session.rows(sql.FIND, (now.tenant, root_of(now.tenant, now.name), now.name))
    if not rows:
        yield Finding("name", f"no row leads from the name {now.name!r} to this conversation")
    elif rows[0] != (now.root, now.branch):
        yield Finding("name", f"the name {now.name!r} leads to branch {rows[0][1]} and not to this one, {now.branch}")


def _messages(session: Session, now: Head, lineage: Lineage) -> Iterator[MessageLink]:
    for part in position_ranges(lineage, now.branch, 1, now.position):
        for first in range(part.first, part.last + 1, _ROWS):
            last = min(first + _ROWS - 1, part.last)
            rows = session.rows(sql.MESSAGES, (*with_body(now, part.branch), first, last))
            missing = _not_indexed(session, now, part.branch, rows)
            for row in _ascending(rows, first, last):
                link = _message_link(row)
                yield structs.replace(link, problems=(*link.problems, _NOT_INDEXED)) if row[0] in missing else link


def _ascending(rows: list[Row], first: int, last: int) -> Iterator[Row]:
    """Yield the rows whose first column is a number from `first` to `last` and above the one before.

    A damaged index returns others. They are reported as missing at the position where they belong.
    """
    for row in rows:
        if type(row[0]) is int and first <= row[0] <= last:
            yield row
            first = row[0] + 1


def _not_indexed(session: Session, now: Head, branch: int, rows: list[Row]) -> set[int]:
    """Return the positions of the messages that are not found by their ids."""
    known = {(id, position) for position, id, *_ in rows if are_bytes(id)}
    prefixes = sorted({id[:8] for id, _ in known})
    located = session.rows(sql.locate(len(prefixes)), (now.tenant, now.root, *prefixes)) if prefixes else []
    indexed = {(id, position) for id, other, position in located if other == branch}
    return {position for _, position in known - indexed}


def _message_link(row: Row) -> MessageLink:
    position, id, seal, stamp, digest, stored = row
    if not are_bytes(id, seal, stamp):
        return MessageLink(position, "", "", (), "", ("its row cannot be read",))
    problems, recorded, outline = [], digest.hex() if are_bytes(digest) else "", ""
    try:
        body, hash = body_of(digest, stored)
        outline = ids.body_hash(body) if is_outline(stored) else ""
        if recorded and recorded != hash:
            problems.append("its body does not match its hash")
            hash = recorded
    except DamagedBody as error:
        problems.append(str(error))
        hash = recorded
    stamps: tuple[bytes, ...] = (stamp,)
    try:
        redacted = redacted_stamp(wire.decode_stamp(stamp))
        stamps = (redacted,) if redacted == stamp else (redacted, stamp)
    except UNREADABLE as error:
        problems.append(f"its stamp cannot be read ({error})")
    return MessageLink(position, id.hex(), seal.hex(), stamps, hash, tuple(problems), outline)


def _released(session: Session, now: Head) -> dict[str, str]:
    """Return the hashes of outlines that the journals of the tree name, by message, as far as they can be read."""
    tree = SqlTree(session, now)

    def readable(branch: int) -> Iterator[Record]:
        try:
            yield from tree.records(branch)
        except Damaged:
            return  # The walk along the journal reports it.

    return released_outlines(map(readable, tree.branches()))


def _journal(session: Session, now: Head, lineage: Lineage) -> Iterator[JournalLink]:
    for part in record_ranges(lineage, now.branch, 1, now.number):
        rows = session.rows(sql.RECORDS, (*key(now, part.branch), part.first, part.last))
        for first, id, stored in _ascending(rows, part.first, part.last):
            if not are_bytes(id, stored):
                yield JournalLink(first, 0, "", b"", b"", ("its row cannot be read",))
                continue
            try:
                body = unpack(stored)
                record = wire.decode_record(body)
            except (DamagedBody, *UNREADABLE) as error:
                yield JournalLink(first, 0, id.hex(), b"", b"", (str(error),))
                continue
            problems = () if record.first == first else (f"it says its first edit is numbered {record.first}",)
            yield JournalLink(first, record.last, id.hex(), body, redacted_record(record), problems)


def _erasures(session: Session, now: Head) -> Iterator[Finding]:
    ((last,),) = session.rows(sql.LAST_ERASURE, (now.tenant, now.root))
    if now.erased != last:
        yield Finding("head", f"it says that {now.erased} is the last erasure of its tree, which is {last}")


def _orphans(session: Session, now: Head, lineage: Lineage) -> Iterator[Finding]:
    """Yield the rows of this branch that are after its head, or at positions that it shares with its parent."""
    shared = lineage[-1] if lineage else None
    begin = shared.position + 1 if shared else 1
    for (position,) in session.rows(sql.ORPHAN_MESSAGES, (*key(now), begin, now.position)):
        yield Finding(
            f"message {position}", f"it lies outside its branch, which holds messages {begin} to {now.position}"
        )
    begin = shared.number + 1 if shared else 1
    for (first,) in session.rows(sql.ORPHAN_RECORDS, (*key(now), begin, now.number)):
        yield Finding(f"record {first}", f"it lies outside its branch, which holds edits {begin} to {now.number}")


def _earlier_head(session: Session, head: Head, now: Head, lineage: Lineage) -> Iterator[Finding]:
    """Compare the conversation with an earlier head of it."""
    if _ends(head) == _ends(now):
        return
    if head.position > now.position or head.number > now.number:
        yield Finding(
            "head",
            f"the head given knows {head.position} messages and {head.number} edits; there are {now.position} and "
            f"{now.number}",
        )
        return
    try:
        tip, seal = link_at(session, head, lineage, head.position)
        record, last = record_at(session, head, lineage, head.number)
    except Damaged:
        return  # The walk along the whole chain has reported it.
    yield from audit_head(head, tip, seal, record if last == head.number else head.record)


def _ends(head: Head) -> tuple[int, str, str, int, str]:
    return head.position, head.tip, head.seal, head.number, head.record


def _snapshot(session: Session, now: Head) -> Iterator[Finding]:
    for position, number, digest, stored in session.rows(sql.SNAPSHOT, key(now)):
        try:
            intact = are_bytes(digest, stored) and ids.body_hash(unpack(stored)) == digest.hex()
        except DamagedBody:
            intact = False
        if not intact:
            yield Finding(
                "snapshot", "it does not match its hash; it will be left unused, and the next one replaces it"
            )
        for shown_digest, shown in session.rows(sql.SAVED_VIEW, (*key(now), position, number)):
            is_intact = are_bytes(shown_digest, shown) and ids.body_hash(shown) == shown_digest.hex()
            if shown is not None and not is_intact:
                yield Finding(
                    "saved view", "it does not match its hash; it will be left unused, and the next one replaces it"
                )
