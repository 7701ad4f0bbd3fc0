"""Heads outside of the store they are of: a line of text that proves, later on, that a history is still the one it was.

A chain of hashes proves that nothing between its ends was changed; not that the end is the one it was. Whoever keeps a
head where the database's owner cannot reach it can tell a history that was rewritten, cut or exchanged from one that
only went on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from ..errors import BadSetting, Damaged, NoSuchConversation
from ..ports import Database, Erasure, Finding, Head
from .views import verify_view

__all__ = ["KeptHead", "Proof", "head_text", "heads_in", "prove_head", "verify_head"]

_VERSION = 1
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters of a name that end a line, steer a terminal or reverse the text after them. JSON can escape each."""


class KeptHead(Struct, frozen=True, tag="head", tag_field="is"):
    """A conversation's head, as it is kept outside of its store. It tells nothing of what was said."""

    version: int
    tenant: str
    name: str
    root: int
    """Number of its tree of forks in the store it was taken in. Not compared: an import has another one."""
    position: int
    tip: str
    seal: str
    number: int
    record: str
    time: int
    """When it was taken, as whoever took it says; milliseconds since 1970."""
    erased: int = 0
    """How many records there were of what was erased in its tree."""
    erasures: str = ""
    """Hash of these records; "" of none."""


def head_text(head: Head, *, time: int = 0, erasures: Sequence[Erasure] = ()) -> str:
    """One line of JSON, to be kept where whoever may write to the store may not.

    `erasures`: the records of what was erased in the conversation's tree (`Store.erasures`), to be proven too.
    """
    ends = head.position, head.tip, head.seal, head.number, head.record
    kept = len(erasures), _hash_of(erasures)
    text = msgspec.json.encode(KeptHead(_VERSION, head.tenant, head.name, head.root, *ends, time, *kept)).decode()
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def heads_in(text: str) -> list[KeptHead]:
    """The heads in a text, one a line. Raises BadSetting where a line is none, or there is none."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            head = msgspec.json.decode(line, type=KeptHead)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise BadSetting(f"Line {number} is no head as `foveate db head` prints it: {error}.") from error
        if head.version != _VERSION:
            raise BadSetting(f"The head in line {number} has version {head.version}; known: {_VERSION}.")
        found.append(head)
    if not found:
        raise BadSetting("There is no head here. `foveate db head CONVERSATION` prints one.")
    return found


class Proof(NamedTuple):
    """The comparison of a conversation with a head that was taken from it."""

    head: Head | None
    """The head of the conversation now; None if there is no such conversation, or it cannot be opened."""
    findings: list[Finding]
    """The faults; empty if the history runs through the head."""
    note: str = ""
    """What was added since the head was taken; "" if nothing was, or if there are faults in the head."""


def verify_head(store: Database, head: Head | KeptHead) -> list[Finding]:
    """Return the faults of a conversation whose history must run through `head`; an empty list if there are none.

    All hashes of the conversation are computed again, as `Store.verify` does, and its saved view is compared with its
    journal. Messages and edits that were added since are no fault. If the conversation was set back by a fork, the
    store kept its former branch under another name; a head on that branch is valid too.
    """
    return prove_head(store, head).findings


def prove_head(store: Database, head: Head | KeptHead) -> Proof:
    """Compare a conversation with a head that was taken from it: see `verify_head`."""
    try:
        now = store.open(head.tenant, head.name, create=False)
        others = [branch.head for branch in store.branches(now) if branch.head.branch != now.branch]
    except NoSuchConversation:
        return Proof(None, [Finding("name", f"there is no conversation {head.name!r} any more")])
    except Damaged as error:
        return Proof(None, [Finding("head", str(error))])
    findings, branch = store.verify(_given(now, head)), now
    if any(finding.where == "head" for finding in findings):
        for other in others:
            if _has(store, other, head) and not store.verify(_given(other, head)):
                findings, branch = store.verify(now), other
                break
    note = "" if any(finding.where == "head" for finding in findings) else _since(branch, now, head)
    if isinstance(head, KeptHead):
        findings += _erasures(store, now, head)
    return Proof(now, [*findings, *verify_view(store, now)], note)


def _since(branch: Head, now: Head, head: Head | KeptHead) -> str:
    """Describe what a branch has that its head does not: for a person who wonders what is new."""
    counts = (
        (branch.position - head.position, "message"),
        (branch.number - head.number, "edit"),
        (now.erased - head.erased, "erasure"),
    )
    added = [f"{count:,} {what}{'s' * (count > 1)}" for count, what in counts if count > 0]
    listed = f"{', '.join(added[:-1])} and {added[-1]}" if len(added) > 1 else "".join(added)
    if branch.branch != now.branch:
        left = f"the conversation was set back since, and its former branch is called {branch.name!r}"
        return f"{left}; {listed} added there since" if added else left
    return f"{listed} added since the head was taken" if added else ""


def _erasures(store: Database, now: Head, head: KeptHead) -> Iterator[Finding]:
    """Whether the records of what had been erased by then are still the same."""
    if not head.erased:
        return
    kept = store.erasures(now)
    if len(kept) < head.erased:
        problem = f"the head given knows records of {head.erased} erasures; there are {len(kept)}"
        yield Finding("erasures", problem)
    elif _hash_of(kept[: head.erased]) != head.erasures:
        yield Finding("erasures", f"the first {head.erased} records are not those that the head given knows")


def _hash_of(erasures: Sequence[Erasure]) -> str:
    """Of every field that they have; "" of none."""
    if not erasures:
        return ""
    body = msgspec.json.encode([astuple(one) for one in erasures])
    return blake2b(body, digest_size=20, person=b"foveate erased 1").hexdigest()


def _given(now: Head, head: Head | KeptHead) -> Head:
    return replace(now, position=head.position, tip=head.tip, seal=head.seal, number=head.number, record=head.record)


def _has(store: Database, branch: Head, head: Head | KeptHead) -> bool:
    """Whether a branch may run through the head, at a glance."""
    if branch.position < head.position or branch.number < head.number:
        return False
    try:
        rows = store.get_many(branch, [head.position]) if head.position else []
    except Damaged:
        return False
    return [row.id for row in rows] == ([head.tip] if head.position else [])
