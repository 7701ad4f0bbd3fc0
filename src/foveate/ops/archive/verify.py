"""Verify conversations and whole databases: chains, saved views, stored heads, and the database itself.

The whole database is read through the store's census, one conversation at a time, so it needs little memory.

A chain of hashes proves that nothing between its ends was changed, but not that the end is still the same. A head that
is out of reach of the database's owner reveals a history that was rewritten, cut or exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from ...conversation.loading import row_of
from ...core.edits import Edit, Hide, Replace, Summarize
from ...core.ids import erased_edit
from ...core.messages import Message
from ...core.plurals import plural
from ...core.saved_views import decode_view
from ...core.slots import Slot
from ...core.snapshots import Snapshot
from ...errors import BadSetting, Damaged, NoSuchConversation, StoreError
from ...ports import Database, Erasure, Finding, Head
from .export import records_of

__all__ = [
    "Proof",
    "SavedHead",
    "Verified",
    "hash_of_erasures",
    "head_text",
    "heads_in",
    "prove_head",
    "verified",
    "verify_all",
    "verify_head",
    "verify_view",
]

_VERSION = 1
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters of a name that end a line, steer a terminal or reverse the text after them. JSON can escape each."""


class SavedHead(Struct, frozen=True, tag="head", tag_field="is"):
    """The head of a conversation, for storage outside of its database. It contains no text of messages."""

    version: int
    """The version of the format of the line."""
    tenant: str
    """The owner of the conversation."""
    name: str
    """The conversation."""
    root: int
    """The number of its tree of forks in its store. It is not compared: an import has another one."""
    position: int
    """The number of the newest message."""
    tip: str
    """The id of the newest message."""
    seal: str
    """The hash over the stamps of all messages."""
    number: int
    """The number of the newest record of the journal."""
    record: str
    """The id of that record."""
    time: int
    """When it was taken, as its caller says; milliseconds since 1970."""
    erased: int = 0
    """The number of erasures in its tree."""
    erasures: str = ""
    """The hash of their records; "" if there are none."""


def head_text(head: Head, *, time: int = 0, erasures: Sequence[Erasure] = ()) -> str:
    """Return a head as one line of JSON, to be stored out of reach of everyone who may write to the database.

    `time`: when it was read, in milliseconds since 1970. `erasures`: the erasures in the conversation's tree
    (`Erases.erasures`), to prove them too.
    """
    ends = head.position, head.tip, head.seal, head.number, head.record
    proofs = len(erasures), hash_of_erasures(erasures)
    text = msgspec.json.encode(SavedHead(_VERSION, head.tenant, head.name, head.root, *ends, time, *proofs)).decode()
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def heads_in(text: str) -> list[SavedHead]:
    """Return the heads in a text, one per line. Raises BadSetting if a line is no head, or if there are none."""
    heads = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            head = msgspec.json.decode(line, type=SavedHead)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise BadSetting(f"Line {number} is no head: {error}. `foveate db head` prints heads.") from error
        if head.version != _VERSION:
            raise BadSetting(f"The head in line {number} has version {head.version}; known: {_VERSION}.")
        heads.append(head)
    if not heads:
        raise BadSetting("There is no head here. `foveate db head CONVERSATION` prints one.")
    return heads


def hash_of_erasures(erasures: Sequence[Erasure]) -> str:
    """Return the hash of these records with all their fields; "" if there are none."""
    if not erasures:
        return ""
    body = msgspec.json.encode([astuple(erasure) for erasure in erasures])
    return blake2b(body, digest_size=20, person=b"foveate erased 1").hexdigest()


_Sized = Replace | Hide | Summarize
"""Edits with token counts."""


class Verified(Struct, frozen=True):
    """The result for one conversation, or for something that belongs to no conversation."""

    tenant: str
    """The owner of the conversation."""
    name: str
    """The name of the conversation; "" for everything else."""
    messages: int = 0
    """How many messages were checked."""
    findings: tuple[Finding, ...] = ()
    """The faults."""
    notes: tuple[str, ...] = ()
    """Facts that are not faults: what was added since a head was taken, or a check that could not run."""


def verify_all(store: Database, *, tenant: str | None = None, heads: Sequence[SavedHead] = ()) -> Iterator[Verified]:
    """Verify every conversation of a store, or of one tenant, and find the rows that belong to none.

    All hashes are computed again, as `Store.verify` does, and every saved view is compared with its journal. Rows and
    names that lead nowhere, branches without a name, incomplete trees, and unreadable runs and catalogs are found too.
    `heads`: heads that were stored elsewhere; each conversation must still run through its heads. If no tenant is
    named, the database also checks its own files (`Audits.check_database`). Nothing is changed. Others may write
    meanwhile.
    """
    expected: dict[tuple[str, str], list[SavedHead]] = {}
    for head in heads:
        expected.setdefault((head.tenant, head.name), []).append(head)
    try:
        for entry in store.census(tenant):
            if isinstance(entry, Head):
                yield verified(store, entry, expected.pop((entry.tenant, entry.name), ()))
            else:
                yield Verified(entry.tenant, "", findings=(Finding(entry.where, entry.problem),))
    except Damaged as error:
        yield Verified(tenant or "", "", findings=(Finding("database", str(error)),))
    for some in expected.values():  # Their conversations are gone, or belong to another tenant.
        yield verified(store, None, some)
    if tenant is None:
        yield from _database(store)


def verified(store: Database, head: Head | None, heads: Sequence[SavedHead] = ()) -> Verified:
    """Verify one conversation, its saved view, and that it runs through `heads`. None: only through `heads`."""
    findings: list[Finding] = []
    notes: list[str] = []
    opened: Head | None = None
    for kept in heads:
        proof = prove_head(store, kept)
        findings += proof.findings
        notes += [proof.note] if proof.note else []
        opened = proof.head or opened
    if head is not None and (opened is None or (opened.root, opened.branch) != (head.root, head.branch)):
        try:
            findings += [*store.verify(head), *verify_view(store, head)]
        except (Damaged, NoSuchConversation) as error:
            findings.append(Finding("head", str(error)))
    of = head or opened or heads[0]
    return Verified(of.tenant, of.name, of.position, tuple(dict.fromkeys(findings)), tuple(notes))


def _database(store: Database) -> Iterator[Verified]:
    """Yield the result of the database's check of its files."""
    try:
        findings, notes = store.check_database()
    except StoreError as error:
        findings, notes = [Finding("database", str(error))], []
    if findings or notes:
        yield Verified("", "", findings=tuple(findings), notes=tuple(notes))


class Proof(NamedTuple):
    """The comparison of a conversation with a head that was taken from it."""

    head: Head | None
    """The head of the conversation now; None if there is no such conversation, or it cannot be opened."""
    findings: list[Finding]
    """The faults; empty if the history runs through the head."""
    note: str = ""
    """A description of additions since the head was taken; "" if there are none, or if the head has faults."""


def verify_head(store: Database, head: Head | SavedHead) -> list[Finding]:
    """Return the faults of a conversation whose history must run through `head`; an empty list if there are none.

    All hashes of the conversation are computed again, as `Store.verify` does, and its saved view is compared with its
    journal. Messages and edits that were added since are no fault. If the conversation was set back by a fork, the
    store kept its former branch under another name; a head on that branch is valid too.
    """
    return prove_head(store, head).findings


def prove_head(store: Database, head: Head | SavedHead) -> Proof:
    """Compare a conversation with a head that was taken from it: see `verify_head`."""
    try:
        now = store.open(head.tenant, head.name, create=False)
        others = [branch.head for branch in store.branches(now) if branch.head.branch != now.branch]
    except NoSuchConversation:
        return Proof(None, [Finding("name", f"there is no conversation {head.name!r} any more")])
    except Damaged as error:
        return Proof(None, [Finding("head", str(error))])
    findings, branch = store.verify(_with_ends_of(now, head)), now
    if any(finding.where == "head" for finding in findings):
        for other in others:
            if _has_tip(store, other, head) and not store.verify(_with_ends_of(other, head)):
                findings, branch = store.verify(now), other
                break
    note = "" if any(finding.where == "head" for finding in findings) else _since(branch, now, head)
    if isinstance(head, SavedHead):
        findings += _erasures(store, now, head)
    return Proof(now, [*findings, *verify_view(store, now)], note)


def _since(branch: Head, now: Head, head: Head | SavedHead) -> str:
    """Describe what a branch has that its head does not: for a person who wonders what is new."""
    counts = (
        (branch.position - head.position, "message"),
        (branch.number - head.number, "edit"),
        (now.erased - head.erased, "erasure"),
    )
    added = [plural(count, what) for count, what in counts if count > 0]
    listed = f"{', '.join(added[:-1])} and {added[-1]}" if len(added) > 1 else "".join(added)
    if branch.branch != now.branch:
        left = f"the conversation was set back since, and its former branch is called {branch.name!r}"
        return f"{left}; {listed} added there since" if added else left
    return f"{listed} added since the head was taken" if added else ""


def _erasures(store: Database, now: Head, head: SavedHead) -> Iterator[Finding]:
    """Compare the erasures that the head knows with the stored ones."""
    if not head.erased:
        return
    erasures = store.erasures(now)
    if len(erasures) < head.erased:
        problem = f"the head given knows records of {head.erased} erasures; there are {len(erasures)}"
        yield Finding("erasures", problem)
    elif hash_of_erasures(erasures[: head.erased]) != head.erasures:
        yield Finding("erasures", f"the first {head.erased} records are not those that the head given knows")


def _with_ends_of(now: Head, head: Head | SavedHead) -> Head:
    return replace(now, position=head.position, tip=head.tip, seal=head.seal, number=head.number, record=head.record)


def _has_tip(store: Database, branch: Head, head: Head | SavedHead) -> bool:
    """Return whether a branch has the tip of the head, without a check of its chains."""
    if branch.position < head.position or branch.number < head.number:
        return False
    try:
        rows = store.get_many(branch, [head.position]) if head.position else []
    except Damaged:
        return False
    return [row.id for row in rows] == ([head.tip] if head.position else [])


_ROWS = 1_000
"""Messages read at a time."""


def verify_view(store: Database, head: Head) -> list[Finding]:
    """Compare the snapshot of a conversation with its journal, and its saved view with its messages. Return a fault.

    Hashes detect damage, but someone who falsifies a view can compute another hash. Whether the view shows the right
    messages is not checked: that would need the whole history. Neither are rendered messages and other facts that were
    worked out. A snapshot of another version of foveate is ignored, because it is never used.
    """
    try:
        saved = store.snapshot(head)
        snapshot = Snapshot.decode(saved[2]) if saved else None
        if snapshot is None:
            return []
        edits = _edits_of(snapshot)
        for _, record in records_of(store, head, 0) if edits else ():
            for number, edit in record.numbered():
                if number in edits and not _is_same(edits.pop(number), edit):
                    return [Finding("snapshot", f"its edit {number} differs from the journal")]
    except Damaged as error:
        return [Finding("snapshot", f"it cannot be compared with the journal: {error}")]
    if edits:
        return [Finding("snapshot", f"it has an edit {min(edits)} that the journal does not have")]
    with suppress(Damaged):  # The messages themselves are damaged, which is found without the view.
        return list(islice(_messages_of_view(store, head, snapshot), 1))
    return []


def _messages_of_view(store: Database, head: Head, snapshot: Snapshot) -> Iterator[Finding]:
    """Compare the messages of a saved view with the stored ones, as they are or as outlines."""
    view = decode_view(store.saved_view(head, snapshot.position, snapshot.number), "")
    positions = snapshot.positions()
    if view is None or len(view.messages) != len(positions):  # It is never used.
        return
    edits = {slot.position: slot.edits for slot in snapshot.kept}
    saved = dict(zip(positions, view.messages, strict=True))
    for start in range(0, len(positions), _ROWS):
        for row in store.get_many(head, positions[start : start + _ROWS]):
            message = saved[row.position]
            if (message.id, message.stamp) != (row.id, row.stamp):
                yield Finding("saved view", f"its message {row.position} is not the stored one")
            elif message.packed is not None and not row.is_released:
                slot = Slot(row.position, row.id, row_of(row).message, row.stamp, len(row.body))
                slot.edits = tuple(edits.get(row.position, ()))
                outline = slot.released(_unread) if message.is_outline else None
                if view.packed(message.packed, message.piece).message() != (outline or slot).message:
                    yield Finding("saved view", f"its message {row.position} differs from the stored one")


def _unread(position: int, id: str, /) -> Message:
    raise StoreError("An outline was read.")


def _is_same(saved: Edit, edit: Edit) -> bool:
    """Return whether an edit of a saved view equals that of the journal. Old versions saved no counts of tokens."""
    bare, proven = erased_edit(saved), erased_edit(edit)
    if isinstance(bare, _Sized) and isinstance(proven, _Sized) and not (bare.tokens_before or bare.tokens_after):
        proven = replace(proven, tokens_before=0, tokens_after=0)
    return bare == proven


def _edits_of(snapshot: Snapshot) -> dict[int, Edit]:
    """Return the effective edits of a saved view, by number."""
    edits: dict[int, Edit] = {number: edit for slot in snapshot.kept for number, edit in slot.edits}
    return edits | {cover.number: cover.edit for cover in snapshot.covers}
