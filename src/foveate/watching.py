"""Tells a `Watch` what one conversation does. It knows what is worth telling, and nothing of traces or metrics.

Nothing is told where nobody watches, and nothing that a watch does can break or change a run: what it raises is logged
once, and it is left out from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .core.edits import Record, Replace, Summarize
from .core.stamps import Stamp, Usage
from .core.totals import Tally
from .core.view import View
from .expansion.originals import decoded
from .ports import Fact, StoredMessage, Watch

__all__ = ["Watching"]

_log = logging.getLogger("foveate")

Facts = dict[str, Fact]


class Watching:
    """What is told to the watch of one conversation, if it has one."""

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._tally = Tally()
        self._has_gap = False
        """Whether the tally was not told of some message before others."""
        self._name = ""

    def __bool__(self) -> bool:
        return self._watch is not None

    def begin(self, name: str, watch: Watch) -> None:
        """From now on tell this one. `name`: of the conversation, for the log."""
        self._name, self._watch, self._tally = name, watch, Tally()

    @contextmanager
    def planning(self) -> Iterator[Facts]:
        """The time in which a view is made ready. What is put into the dict is told at its end."""
        facts: Facts = {}
        begun = self._safely(lambda watch: watch.begin("plan"))
        try:
            yield facts
        except BaseException as error:
            caught = error  # The name of an exception ends with its block.
            self._safely(lambda watch: watch.end(begun, facts, caught))
            raise
        self._safely(lambda watch: watch.end(begun, facts, None))

    def is_behind(self, position: int) -> bool:
        """Whether there are messages that nothing was told of: from before, or from another writer."""
        return bool(self) and (self._has_gap or self._tally.position != position)

    def resumes(self, view: View, records: Iterable[Record], position: int) -> None:
        """Take in a past that nothing was told of: what is shown, and what commits took from it."""
        saved = sum(record.tokens_before - record.tokens_after for record in records)
        self._tally.resume_at(view.tokens + saved, position)
        self._has_gap = False

    def appended(self, rows: Iterable[StoredMessage]) -> None:
        """Messages were added."""

        def tell(watch: Watch) -> None:
            for row in rows:
                self._has_gap = self._has_gap or row.position != self._tally.position + 1
                self._tally.add_message(row.position, row.id, decoded(row), row.stamp)
                for doing, facts in _of_stamp(row.stamp):
                    watch.did(doing, facts)

        self._safely(tell)

    def recorded(self, records: Iterable[Record]) -> None:
        """Commits were made."""

        def tell(watch: Watch) -> None:
            for record in records:
                self._tally.add_record(record)
                for doing, facts in _of_record(record):
                    watch.did(doing, facts)

        self._safely(tell)

    def settled(self, view: View, records: Sequence[Record], facts: Facts) -> None:
        """A view is ready, made so by these commits. Puts what is to be told of that into `facts`."""

        def tell(watch: Watch) -> None:
            self._tally.add_call(view.entries)
            saved = sum(record.tokens_before - record.tokens_after for record in records)
            edits = [edit for record in records for edit in record.edits]
            facts.update(
                turn=view.turn,
                tokens_before=view.tokens + saved,
                tokens_after=view.tokens,
                edits=len(edits),
                policies=tuple(dict.fromkeys(edit.policy for edit in edits if edit.policy)),
                compacted=any(entry.kind == "summary" for entry in view.entries),
            )

        self._safely(tell)

    def count(self) -> None:
        """Tell the sums."""
        self._safely(lambda watch: watch.count(self._tally.totals()))

    def _safely(self, tell: Callable[[Watch], Any]) -> Any:
        if self._watch is None:
            return None
        try:
            return tell(self._watch)
        except Exception:
            self._watch = None
            _log.warning("%s: what watches it failed, and is told no more", self._name, exc_info=True)
            return None


def _of_stamp(stamp: Stamp) -> Iterator[tuple[str, Facts]]:
    shown = stamp.expanded
    if shown is not None and shown.form != "view":  # Else the commit that shows it in its place tells of it.
        yield "expand", {"form": shown.form, "handle": shown.handle, "tokens": stamp.tokens, "turn": stamp.turn}
    if stamp.usage is not None:
        used = {name: getattr(stamp.usage, name) for name in Usage.__struct_fields__}
        known: Facts = {name: tokens for name, tokens in used.items() if tokens is not None}
        if (prompt := stamp.usage.prompt_tokens) is not None:
            known["input"] = prompt  # By the conventions cached tokens are input too.
        yield "record", {**known, "turn": stamp.turn}


def _of_record(record: Record) -> Iterator[tuple[str, Facts]]:
    sizes: Facts = {
        "turn": record.turn,
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
        "edits": len(record.edits),
    }
    if record.author == "expand":
        yield "expand", {"form": "view", **sizes}
    written = [edit for edit in record.edits if isinstance(edit, Summarize) or (isinstance(edit, Replace) and edit.by)]
    if written:
        policies = tuple(dict.fromkeys(edit.policy for edit in written if edit.policy))
        by = tuple(dict.fromkeys(edit.by for edit in written if edit.by))
        yield "compact", {**sizes, "policies": policies, "by": by, "refused": sum(len(one.refused) for one in written)}
