"""What an applied plan did, read from the journal: nothing about an edit is kept twice."""

from __future__ import annotations

from msgspec import Struct

from .edits import Edit, Record, Replace, Summarize

__all__ = ["Receipt", "receipt_of"]


class Receipt(Struct, frozen=True):
    """One commit to the journal: what changed, what it saved, and how to take it back (`undo(receipt)`)."""

    first: int
    """Number of its first edit."""
    last: int
    turn: int
    """The first model call that saw the change."""
    time: int
    """Milliseconds since 1970."""
    author: str
    """`plan`, or the call that made it: `compact`, `expand`, `undo`, `pin`, `unpin`, `edit`."""
    policies: tuple[str, ...]
    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    bytes_before: int
    bytes_after: int
    by: tuple[str, ...] = ()
    """Who wrote its summaries, where they said so: `digest`, `anthropic:claude-haiku-4-5`."""
    refused: tuple[str, ...] = ()
    """Why others that were asked for them did not do, and what was dropped of what was written, as `who: why`."""

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after

    def __str__(self) -> str:
        who = ", ".join(self.policies) or self.author
        return (
            f"turn {self.turn}: {who} made {len(self.edits)} edit{'s' * (len(self.edits) != 1)}, "
            f"{self.tokens_before:,} -> {self.tokens_after:,} tokens{self._written()} "
            f"(undo: edits {self.first}-{self.last})"
        )

    def _written(self) -> str:
        told = f", written by {', '.join(self.by)}" if self.by else ""
        return told + (f", since {'; '.join(self.refused)}" if self.refused else "")


def receipt_of(record: Record) -> Receipt:
    """The receipt of one journal record."""
    policies = tuple(dict.fromkeys(edit.policy for edit in record.edits if edit.policy))
    written = [edit for edit in record.edits if isinstance(edit, Replace | Summarize)]
    return Receipt(
        first=record.first,
        last=record.last,
        turn=record.turn,
        time=record.time,
        author=record.author,
        policies=policies,
        edits=record.edits,
        tokens_before=record.tokens_before,
        tokens_after=record.tokens_after,
        bytes_before=record.bytes_before,
        bytes_after=record.bytes_after,
        by=tuple(dict.fromkeys(edit.by for edit in written if edit.by)),
        refused=tuple(dict.fromkeys(why for edit in written for why in edit.refused)),
    )
