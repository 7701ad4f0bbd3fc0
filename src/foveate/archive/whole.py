"""Verify a whole database: every conversation, the rows between them, and the database itself.

It reads the store's census, one conversation at a time, so it needs little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..errors import Damaged, NoSuchConversation, StoreError
from ..ports import Database, Finding, Head
from .heads import KeptHead, prove_head
from .views import verify_view

__all__ = ["Verified", "verified", "verify_all"]


class Verified(Struct, frozen=True):
    """The result for one conversation, or for something that belongs to no conversation."""

    tenant: str
    name: str
    """The name of the conversation; "" for everything else."""
    messages: int = 0
    findings: tuple[Finding, ...] = ()
    """The faults."""
    notes: tuple[str, ...] = ()
    """Facts that are not faults: what was added since a head was taken, or a check that could not run."""


def verify_all(store: Database, *, tenant: str | None = None, heads: Sequence[KeptHead] = ()) -> Iterator[Verified]:
    """Verify every conversation of a store, or of one tenant, and find the rows that belong to none.

    All hashes are computed again, as `Store.verify` does, and every saved view is compared with its journal. Rows and
    names that lead nowhere, branches without a name, incomplete trees, and unreadable runs and catalogs are found too.
    `heads`: heads that were stored elsewhere; each conversation must still run through its heads. If no tenant is
    named, the database also checks its own files (`Store.check_database`). Nothing is changed. Others may write
    meanwhile.
    """
    expected: dict[tuple[str, str], list[KeptHead]] = {}
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


def verified(store: Database, head: Head | None, heads: Sequence[KeptHead] = ()) -> Verified:
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
    """The check that the database makes of its own files."""
    try:
        findings, notes = store.check_database()
    except StoreError as error:
        findings, notes = [Finding("database", str(error))], []
    if findings or notes:
        yield Verified("", "", findings=tuple(findings), notes=tuple(notes))
