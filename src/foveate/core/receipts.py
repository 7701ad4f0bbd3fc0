"""Receipts: the effect of a commit, read from the journal."""

from __future__ import annotations

from msgspec import Struct

from .edits import Edit, Record, Replace, Summarize
from .plurals import plural

__all__ = ["Receipt", "receipt_of"]


class Receipt(Struct, frozen=True):
    """One commit to the journal: the changes, the savings, and how to undo it (`undo(receipt)`)."""

    first: int
    """Number of its first edit."""
    last: int
    """Number of its last edit."""
    turn: int
    """The first model call that saw the change."""
    time: int
    """Milliseconds since 1970."""
    author: str
    """`plan`, or the call that made it: `compact`, `expand`, `undo`, `pin`, `unpin`, `edit`."""
    policies: tuple[str, ...]
    """The policies that made its edits."""
    edits: tuple[Edit, ...]
    """The edits, in order."""
    tokens_before: int
    """Tokens of the view before the commit."""
    tokens_after: int
    """Tokens of the view after the commit."""
    bytes_before: int
    """Bytes of the view before the commit."""
    bytes_after: int
    """Bytes of the view after the commit."""
    by: tuple[str, ...] = ()
    """The authors of its summaries, if reported: `digest`, `anthropic:claude-haiku-4-5`."""
    refused: tuple[str, ...] = ()
    """Why earlier summarizers failed and what was removed from their texts, each as `name: reason`."""

    @property
    def tokens_saved(self) -> int:
        """Return the tokens that the commit saves."""
        return self.tokens_before - self.tokens_after

    def __str__(self) -> str:
        who = ", ".join(self.policies) or self.author
        return (
            f"turn {self.turn}: {who} made {plural(len(self.edits), 'edit')}, "
            f"{self.tokens_before:,} -> {self.tokens_after:,} tokens{self._written()} "
            f"(undo: edits {self.first}-{self.last})"
        )

    def __repr__(self) -> str:
        return f"<Receipt of {self}>"

    def _written(self) -> str:
        text = f", written by {', '.join(self.by)}" if self.by else ""
        return text + (f", since {'; '.join(self.refused)}" if self.refused else "")


def receipt_of(record: Record) -> Receipt:
    """Return the receipt of one journal record."""
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
