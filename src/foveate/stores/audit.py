"""Audit the chains of a conversation: find the links that do not follow from the link before them.

After a broken link the audit continues from every value that the link may have had. So one flipped byte is one finding,
at its position, and the messages after it are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from ..core import ids
from ..core.edits import Record
from ..ports import Finding, Head

__all__ = ["JournalLink", "MessageLink", "audit_head", "audit_journal", "audit_messages", "released_outlines"]


class MessageLink(Struct, frozen=True):
    """A message as it was read."""

    position: int
    id: str
    seal: str
    stamps: tuple[bytes, ...]
    """The bytes that the seal may be computed from: the redacted stamp, or, for an old store, the stamp itself."""
    body_hash: str
    """The recorded hash, or that of the body as it is now; "" if there is neither."""
    problems: tuple[str, ...] = ()
    """Faults found while it was read."""
    outline: str = ""
    """The hash of the outline that is stored in place of a released message."""


class JournalLink(Struct, frozen=True):
    """A journal record as it was read."""

    first: int
    last: int
    """0 if the record cannot be read."""
    id: str
    body: bytes
    redacted: bytes
    """The bytes that its id is computed from, unless it is older than redacted forms."""
    problems: tuple[str, ...] = ()


def released_outlines(journals: Iterable[Iterable[Record]]) -> dict[str, str]:
    """Return the hashes of the outlines of released messages, by id, from the records of all branches of a tree."""
    newest: dict[str, tuple[int, str]] = {}
    for records in journals:
        for record in records:
            for number, id, hash in record.releases():
                newest[id] = max(newest.get(id, (0, "")), (number, hash))
    return {id: hash for id, (_, hash) in newest.items()}


def audit_messages(
    links: Iterable[MessageLink], head: Head, outlines: Callable[[], Mapping[str, str]]
) -> Iterator[Finding]:
    """Yield the faults of messages 1..head.position; `links` are the ones that exist, in order.

    `outlines`: returns `released_outlines`. It is called only if a message is released.
    """
    recorded: Mapping[str, str] | None = None
    position, tips, seals = 0, {ids.NO_PARENT}, {ids.NO_PARENT}
    known = True  # Whether the link before can be read, even if it is damaged.
    for link in links:
        where = f"message {link.position}"
        if link.position != position + 1:
            yield _missing("message", position + 1, link.position - 1)
            known = False
        yield from (Finding(where, problem) for problem in link.problems)
        if link.outline:
            recorded = outlines() if recorded is None else recorded
            if recorded.get(link.id) != link.outline:
                yield Finding(where, "its original was released, and its outline is not the one that the journal names")

        expected = {ids.message_id(tip, link.body_hash) for tip in tips} if known and link.body_hash else set()
        if expected and link.id not in expected and not link.problems:
            yield Finding(where, "its id does not follow from its body and the message before it")
        sealed = {
            ids.seal(seal, tip, stamp)
            for seal in seals
            for tip in expected | {link.id}
            for stamp in link.stamps
            if known
        }
        if sealed and link.seal not in sealed and not link.problems:
            yield Finding(where, "its stamp does not match its seal")
        position, known = link.position, bool(link.id)
        tips = {link.id} if link.id in expected else expected | {link.id}
        seals = {link.seal} if link.seal in sealed else sealed | {link.seal}
    if position < head.position:
        yield _missing("message", position + 1, head.position)
    else:
        if head.tip not in tips:
            yield Finding("head", f"its tip is not the id of message {head.position}")
        if head.seal not in seals:
            yield Finding("head", f"its seal is not that of message {head.position}")


def audit_journal(links: Iterable[JournalLink], head: Head) -> Iterator[Finding]:
    """Yield the faults of the records with edits 1..head.number; `links` are the ones that exist, in order."""
    number: int | None = 0  # None after a record that cannot be read: its number of edits is unknown.
    tips, known = {ids.NO_PARENT}, True
    for link in links:
        where = f"record {link.first}"
        if number is not None and link.first != number + 1:
            yield _missing("edit", number + 1, link.first - 1)
            known = False
        yield from (Finding(where, problem) for problem in link.problems)
        expected = {ids.record_id(tip, link.redacted) for tip in tips} if known and link.body else set()
        if expected and link.id not in expected and link.id in {ids.legacy_record_id(tip, link.body) for tip in tips}:
            expected = {link.id}
        if expected and link.id not in expected and not link.problems:
            yield Finding(where, "its id does not follow from its content and the record before it")
        number, known = link.last or None, bool(link.id)
        tips = {link.id} if link.id in expected else expected | {link.id}
    if number is not None and number < head.number:
        yield _missing("edit", number + 1, head.number)
    elif head.record not in tips:
        yield Finding("head", f"its record is not the one with edit {head.number}")


def audit_head(head: Head, tip: str, seal: str, record: str) -> Iterator[Finding]:
    """Yield the faults of an earlier head; `tip`, `seal` and `record` are the stored links at its positions."""
    if (head.tip, head.seal) != (tip, seal):
        yield Finding(
            "head", f"the head given, with message {head.position} as its tip, is not on this conversation's chain"
        )
    if head.record != record:
        yield Finding(
            "head", f"the head given, with edit {head.number} as its newest, is not on this conversation's journal"
        )


def _missing(what: str, first: int, last: int) -> Finding:
    if first == last:
        return Finding(f"{what} {first}", "it is missing")
    return Finding(f"{what}s {first}-{last}", "they are missing")
