"""What `verify` looks for: links that do not follow from the link before them.

Walks a conversation's messages and records in order and tells apart what is damaged from what merely comes after
damage: behind a broken link it goes on from every value that link may have had, so one flipped byte is one finding,
at its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..core import ids
from ..ports import Finding, Head

__all__ = ["JournalLink", "MessageLink", "audit_given", "audit_journal", "audit_messages"]


class MessageLink(Struct, frozen=True):
    """A message as it was read back."""

    position: int
    id: str
    seal: str
    stamps: tuple[bytes, ...]
    """What the seal may be made of: the stamp's outline, or, where it is older than outlines, its bytes."""
    body_hash: str
    """The recorded hash, or that of the body as it is now; "" where neither can be had."""
    problems: tuple[str, ...] = ()
    """What was already wrong when it was read."""


class JournalLink(Struct, frozen=True):
    """A journal record as it was read back."""

    first: int
    last: int
    """0 where the record cannot be read."""
    id: str
    body: bytes
    outline: bytes
    """What its id is made of, if it is not older than outlines."""
    problems: tuple[str, ...] = ()


def audit_messages(links: Iterable[MessageLink], head: Head) -> Iterator[Finding]:
    """What is wrong with messages 1..head.position, given those that are there, in order."""
    position, tips, seals = 0, {ids.NO_PARENT}, {ids.NO_PARENT}
    known = True  # Whether the link before can be read, damaged or not.
    for link in links:
        where = f"message {link.position}"
        if link.position != position + 1:
            yield _missing("message", position + 1, link.position - 1)
            known = False
        yield from (Finding(where, problem) for problem in link.problems)

        made = {ids.message_id(tip, link.body_hash) for tip in tips} if known and link.body_hash else set()
        if made and link.id not in made and not link.problems:
            yield Finding(where, "its id does not follow from its body and the message before it")
        sealed = {
            ids.seal(seal, tip, stamp) for seal in seals for tip in made | {link.id} for stamp in link.stamps if known
        }
        if sealed and link.seal not in sealed and not link.problems:
            yield Finding(where, "its stamp does not match its seal")
        position, known = link.position, bool(link.id)
        tips = {link.id} if link.id in made else made | {link.id}
        seals = {link.seal} if link.seal in sealed else sealed | {link.seal}
    if position < head.position:
        yield _missing("message", position + 1, head.position)
    else:
        if head.tip not in tips:
            yield Finding("head", f"its tip is not the id of message {head.position}")
        if head.seal not in seals:
            yield Finding("head", f"its seal is not that of message {head.position}")


def audit_journal(links: Iterable[JournalLink], head: Head) -> Iterator[Finding]:
    """What is wrong with the records that hold edits 1..head.number, given those that are there, in order."""
    number: int | None = 0  # None behind a record that cannot be read: it does not tell how many edits it held.
    tips, known = {ids.NO_PARENT}, True
    for link in links:
        where = f"record {link.first}"
        if number is not None and link.first != number + 1:
            yield _missing("edit", number + 1, link.first - 1)
            known = False
        yield from (Finding(where, problem) for problem in link.problems)
        made = {ids.record_id(tip, link.outline) for tip in tips} if known and link.body else set()
        if made and link.id not in made and link.id in {ids.legacy_record_id(tip, link.body) for tip in tips}:
            made = {link.id}
        if made and link.id not in made and not link.problems:
            yield Finding(where, "its id does not follow from its content and the record before it")
        number, known = link.last or None, bool(link.id)
        tips = {link.id} if link.id in made else made | {link.id}
    if number is not None and number < head.number:
        yield _missing("edit", number + 1, head.number)
    elif head.record not in tips:
        yield Finding("head", f"its record is not the one with edit {head.number}")


def audit_given(given: Head, tip: str, seal: str, record: str) -> Iterator[Finding]:
    """What is wrong with a head somebody holds, given the links that are stored where it says the chains end."""
    if (given.tip, given.seal) != (tip, seal):
        yield Finding(
            "head", f"the head given, with message {given.position} as its tip, is not on this conversation's chain"
        )
    if given.record != record:
        yield Finding(
            "head", f"the head given, with edit {given.number} as its newest, is not on this conversation's journal"
        )


def _missing(what: str, first: int, last: int) -> Finding:
    if first == last:
        return Finding(f"{what} {first}", "it is missing")
    return Finding(f"{what}s {first}-{last}", "they are missing")
