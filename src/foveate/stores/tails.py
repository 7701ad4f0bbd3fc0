"""What a conversation has beyond a head, for every store: values that are made when somebody looks at them.

Whoever waits in turn to append needs no more than the newest stamp, mostly; reading messages and checking their hashes
is done when nobody waits for it any more. Knows no store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.edits import Record
from ..core.stamps import Stamp
from ..ports import Appended, Head

__all__ = ["Beyond"]


def _none() -> list[tuple[str, Record]]:
    return []


class Beyond:
    """The Tail of every store. `rows` and `records` are called at most once, `newest` at each look."""

    __slots__ = ("_make_records", "_make_rows", "_newest", "_records", "_rows", "head")

    def __init__(
        self,
        head: Head,
        rows: Callable[[], list[Appended]] = list,
        records: Callable[[], list[tuple[str, Record]]] = _none,
        newest: Callable[[], Stamp | None] | None = None,
    ) -> None:
        self.head = head
        self._make_rows, self._make_records, self._newest = rows, records, newest
        self._rows: list[Appended] | None = None
        self._records: list[tuple[str, Record]] | None = None

    def newest(self) -> Stamp | None:
        if self._rows is None and self._newest is not None:
            return self._newest()
        rows = self.rows()
        return rows[-1].stamp if rows else None

    def rows(self) -> list[Appended]:
        if self._rows is None:
            self._rows = self._make_rows()
        return self._rows

    def records(self) -> list[tuple[str, Record]]:
        if self._records is None:
            self._records = self._make_records()
        return self._records

    def with_rows(self, head: Head, rows: Sequence[Appended]) -> Beyond:
        """The same once these were appended, which `head` ends with."""
        return Beyond(
            head, lambda: [*self.rows(), *rows], self.records, lambda: rows[-1].stamp if rows else self.newest()
        )
