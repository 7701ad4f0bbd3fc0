"""The state of one open conversation: where it stands in its store, what it shows, which call is the next.

Opening, following other writers, and committing to the journal; what `Engine` builds on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import structs

from ..core import ids
from ..core.caches import clear_caches
from ..core.edits import Edit, Record, Restore, Summarize, Task
from ..core.messages import Message
from ..core.planner import Policy, Stage
from ..core.profiles import Profile
from ..core.projection import Projection
from ..core.redacted_form import redacted_record
from ..core.rules import Checker
from ..core.snapshots import Row, Snapshot
from ..core.view import CallContext, Entry, Prices, View
from ..errors import Damaged, NoSuchConversation, StoreError, StoreRolledBack
from ..limits import Limits
from ..ports import (
    Background,
    Changes,
    Clock,
    Database,
    Elsewhere,
    Format,
    Head,
    StoredMessage,
    Summarizer,
    TokenCounter,
)
from .ahead import Ahead
from .folding import Folding, in_order, row_of
from .going_back import follows
from .steps import Step

__all__ = ["State", "in_order", "row_of"]

_log = logging.getLogger("foveate")

_SNAPSHOT_EVERY = 256
"""Messages and edits after which a snapshot is due, at least."""
_FAR = 4_096
"""Messages above which those that came since a snapshot are read in pieces."""


class State(Folding):
    """What an engine knows, and how it keeps up with its store."""

    def __init__(
        self,
        store: Database,
        format: Format,
        profile: Profile,
        counter: TokenCounter,
        clock: Clock,
        *,
        policies: Sequence[Policy],
        floor: Sequence[Stage],
        limits: Limits,
        prices: Prices,
        summarizer: Summarizer | None = None,
        spare: Summarizer | None = None,
        background: Background | Elsewhere | None = None,
    ) -> None:
        self.store, self.format, self.profile, self.counter, self.clock = store, format, profile, counter, clock
        self.policies, self.floor, self.prices = tuple(policies), tuple(floor), prices
        self.summarizer = summarizer
        self.spare = spare  # writes without a model, where a policy asks for that
        self.ahead = Ahead(background if summarizer else None)
        self.limits = limits
        self.head: Head
        self.projection = Projection(profile, counter)
        self._checker = Checker(profile)
        self._turn = 0  # number of the model call that was begun last
        self._asked: tuple[str, int] | None = None  # tip and newest edit that the last, still unanswered call saw
        self._requested: int | None = None  # when the last request was made
        self._shown: tuple[Entry, ...] | None = None  # the view that was settled last
        self._branch: int | None = None  # that the projection shows
        self._erased = 0  # the newest erasure that the projection was read after
        self._saved = 0  # position + number at the last snapshot
        self._seen: Head  # the ends of the chains that the projection shows

    # ---------------------------------------------------------------------------------------------------- opening

    def open(self, tenant: str, name: str, *, create: bool = True) -> Step[None]:
        """Resume from the newest snapshot, or from the beginning."""
        self.head = yield partial(self.store.open, tenant, name, create=create)
        yield from self._load()

    def _load(self) -> Step[None]:
        self._erased, self._saved = self.head.erased, 0
        found = yield partial(self.store.snapshot, self.head)
        projection = Projection(self.profile, self.counter)
        snapshot = Snapshot.decode(found[2]) if found else None
        if snapshot:
            visible = snapshot.positions()
            is_at_tip = 0 < snapshot.position == self.head.position and visible[-1:] != [snapshot.position]
            positions = [*visible, snapshot.position] if is_at_tip else visible
            rows = yield partial(self.store.get_many, self.head, positions)
            self._check_whole(rows, positions)
            shown = rows[:-1] if is_at_tip else rows
            projection = Projection.resume(snapshot, map(row_of, shown), self.profile, self.counter)
            self._saved = snapshot.position + snapshot.number
        is_far = self.head.position - projection.position > _FAR
        if is_far:
            yield from self._fold_up_to(projection, self.head.position, self.head.number)
        self.projection = yield from self._caught_up(projection)
        if not snapshot:
            yield from self._void_erased(self.projection)
        if is_far:
            yield from self._keep(self.projection)
        self._seen = structs.replace(self.head, erased=0)
        self._measure()

    def _measure(self) -> None:
        """Let the newest measured prompt correct the estimates."""
        self.limits.measured(self.projection.facts.measured, self.projection.facts.estimated)
        self._branch, self._asked = self.head.branch, None

    def _caught_up(self, projection: Projection, seen: Head | None = None) -> Step[Projection]:
        """The same projection with what the store has beyond it. Raises StoreRolledBack where that does not follow
        `seen`.
        """
        rows = yield partial(self.store.messages, self.head, projection.position + 1, self.head.position)
        records = yield partial(self.store.records, self.head, projection.number)
        is_at = seen and (projection.position, projection.number) == (seen.position, seen.number)
        if seen and is_at and not follows(seen, self.head, rows, records):
            raise self._went_back()
        self._check_whole(rows, range(projection.position + 1, self.head.position + 1))
        newest = records[-1][1].last if records else projection.number
        if newest != self.head.number or (records and records[-1][0] != self.head.record):
            raise self._is_cut(f"edit {self.head.number}")
        for one in in_order(rows, [record for _, record in records]):
            if isinstance(one, Record):
                yield from self._fold(projection, one)
            else:
                projection.append(row_of(one))
        self._answered_by(rows, projection)
        return projection

    def _answered_by(self, rows: Sequence[StoredMessage], projection: Projection) -> None:
        """Note what it means where somebody, maybe another writer, has answered with one of these."""
        if any(row.stamp.origin == "assistant" for row in rows):
            self._asked = None
            self.limits.measured(projection.facts.measured, projection.facts.estimated)

    def refresh(self) -> Step[None]:
        """Take in what other writers did."""
        if self._shows_head():
            try:
                tail = yield partial(self.store.changes, self.head)
            except StoreRolledBack:
                pass  # Or it is damaged: reading finds out which.
            else:
                return (yield from self._move_on(tail))
        self.head = yield partial(self.store.open, self.head.tenant, self.head.name, create=False)
        yield from self._follow_head()

    def _move_on(self, tail: Changes, own: Sequence[Message] = ()) -> Step[None]:
        """Move on to where a tail ends that begins at the head. `own`: its last messages, where they are known."""
        is_in_step = self._shows_head()
        known, self.head = self.head, tail.head
        is_same = (known.root, known.branch, known.erased) == (tail.head.root, tail.head.branch, tail.head.erased)
        if not (is_in_step and is_same):
            return (yield from self._follow_head())
        rows, records = tail.rows(), [record for _, record in tail.records()]
        projection = self.projection.copy() if records else self.projection  # What is folded in may need the store.
        first = tail.head.position - len(own)
        for one in in_order(rows, records):
            if isinstance(one, Record):
                yield from self._fold(projection, one)
            else:
                message = own[one.position - first - 1] if one.position > first else None
                row = Row(one.position, one.id, message, one.stamp, len(one.body)) if message else row_of(one)
                projection.append(row)
        self._answered_by(rows, projection)
        self.projection, self._seen = projection, structs.replace(self.head, erased=0)

    def _shows_head(self) -> bool:
        """Whether the projection shows all there was when the head was read."""
        is_current = (self._branch, self._erased) == (self.head.branch, self.head.erased)
        return is_current and self._seen == structs.replace(self.head, erased=0)

    def _follow_head(self) -> Step[None]:
        """Bring the projection to where the head is: after another writer, or after a failure in between.

        Raises StoreRolledBack where the store does not hold any more what is shown.
        """
        if self._erased != self.head.erased:  # What is shown may tell what is gone.
            yield from self._check_seen()
            self._shown = None
            yield from self._load()
            clear_caches()
        elif self._branch != self.head.branch:  # The conversation departed from the past that is shown.
            yield from self._check_seen()
            yield from self._load()
        elif self._seen != structs.replace(self.head, erased=0):
            self.projection = yield from self._caught_up(self.projection.copy(), self._seen)
            self._seen = structs.replace(self.head, erased=0)

    def _check_seen(self) -> Step[None]:
        """Raise StoreRolledBack where the store lacks what was seen: all of it is read anew, and would not tell."""
        try:
            rows = yield partial(self.store.get_many, self._seen, [self._seen.position])
        except NoSuchConversation as error:
            raise self._went_back() from error
        is_erasure_lost = self.head.root == self._seen.root and self.head.erased < self._erased
        if is_erasure_lost or [row.id for row in rows] != [self._seen.tip][: self._seen.position]:
            raise self._went_back()

    def _check_whole(self, rows: Sequence[StoredMessage], positions: Sequence[int]) -> None:
        """Raise Damaged unless these are the rows at these positions: the head names more than the store has."""
        missing = sorted(set(positions) - {row.position for row in rows}) if len(rows) != len(positions) else []
        if not missing and rows and rows[-1].position == self.head.position and rows[-1].id != self.head.tip:
            missing = [self.head.position]
        if not missing:
            return
        raise self._is_cut(f"messages {missing[0]} to {missing[-1]}" if len(missing) > 1 else f"message {missing[0]}")

    def _is_cut(self, missing: str) -> Damaged:
        return Damaged(
            f"The conversation {self.head.name!r} has {self.head.position} messages and {self.head.number} edits, but "
            f"{missing} cannot be found in its store. Run `foveate db verify` to see what is wrong, then restore a "
            f"backup."
        )

    def _went_back(self) -> StoreRolledBack:
        known, now = (self._seen.position, self._seen.number), (self.head.position, self.head.number)
        return StoreRolledBack(self.head.name, known, now)

    # ---------------------------------------------------------------------------------------------------- looking

    def _begun(self) -> int:
        """Model calls begun so far."""
        return max(self.projection.facts.turn, self._turn, self.projection.interrupted)

    def _is_begun(self) -> bool:
        """Whether a model call was begun that nobody has answered: by this conversation, or as the journal says."""
        return bool(self._asked) or self.projection.interrupted > self.projection.facts.turn

    def next_turn(self) -> int:
        """Number of the model call a view is for: the last one's again only if nothing changed since it was made."""
        return self._begun() if self._asked == (self.head.tip, self.head.number) else self._begun() + 1

    def frame(self, entries: tuple[Entry, ...]) -> View:
        """Entries as a view with the facts of this moment."""
        return self._framed(entries, tuple(self.projection.tasks.values()))

    def trial(self, entries: tuple[Entry, ...]) -> View:
        """The same for a plan that is only looked at."""
        return structs.replace(self.frame(entries), is_trial=True)

    def _framed(self, entries: tuple[Entry, ...], tasks: tuple[Task, ...]) -> View:
        now, turn, facts = self.clock(), self.next_turn(), self.projection.facts
        last = self._requested or facts.replied
        # A clock that was set back tells nothing of how long it was: no time has gone by, as far as one can know.
        moment = CallContext(now, max(now - last, 0) / 1000 if last else None, self.prices)
        return View(
            entries,
            turn,
            self.limits.budget(),
            moment,
            tasks,
            facts.retained(turn),
            self.ahead.policies,
            newest_input=facts.last_input,
        )

    def view(self) -> View:
        """What the model would see without any new edit."""
        return self.frame(self.projection.entries())

    # ------------------------------------------------------------------------------------------------- committing

    def _commit(
        self, edits: Sequence[Edit], author: str, before: View, after: View, draft: Projection | None = None
    ) -> Step[Record]:
        """Write edits down as one record, and show what comes of it. `draft`: the projection with them, where folding
        them in took the store.

        Otherwise what is folded in is the record itself, as whoever opens the conversation anew would do, not what a
        plan tried out: edits are measured, and a plan's come in parts, only while it is made.
        """
        if self.head.erased and author in ("plan", "compact"):
            # Made by a policy, without what was erased before: else the store refuses the commit.
            edits = [structs.replace(edit, outlives=True) if isinstance(edit, Summarize) else edit for edit in edits]
        record = Record(
            self.head.number + 1,
            tuple(edits),
            before.turn if author in ("plan", "prompt") else self._begun() + 1,
            before.call.now,
            self.head.tip,
            self.head.position,
            before.tokens,
            after.tokens,
            before.bytes,
            after.bytes,
            author,
        )
        if draft is None:
            draft = self.projection.copy()
            draft.apply(record)
        record_id = ids.record_id(self.head.record, redacted_record(record))
        self.head = yield partial(self.store.commit, self.head, record, record_id)
        self.projection = draft
        self._seen = structs.replace(self._seen, number=record.last, record=record_id)
        # What came back took reading; the next who opens this need not repeat it.
        has_restored = any(isinstance(edit, Restore) for edit in edits) and record.last > _SNAPSHOT_EVERY
        yield from self._follow_up(self._follow_head, is_saved=has_restored)
        return record

    def _follow_up(self, follow: Callable[[], Step[None]] | None = None, *, is_saved: bool = False) -> Step[None]:
        """Do what follows a write: read what is new, and save a snapshot if one is due.

        The write is stored whatever happens here, so a StoreError is logged; the next call does it again.
        """
        try:
            if follow is not None:
                yield from follow()
            if is_saved or self._is_snapshot_due():
                yield from self.save_snapshot()
        except StoreError as error:
            _log.warning("%s: stored, but what follows is put off until the next call: %s", self.head.name, error)

    def _is_snapshot_due(self) -> bool:
        seen = self.projection.position + self.projection.number
        return seen - self._saved >= max(_SNAPSHOT_EVERY, len(self.projection))

    def _keep(self, projection: Projection) -> Step[None]:
        """Save what took long to read, so that the next who opens this need not do so. It may fail: who reads may be
        one who is not allowed to write.
        """
        twin = projection.copy()
        twin.forget()
        shot = twin.snapshot()
        try:
            yield partial(self.store.save_snapshot, self.head, shot.position, shot.number, shot.encode())
        except StoreError:
            return
        self._saved = shot.position + shot.number

    def save_snapshot(self) -> Step[None]:
        """Keep the projection, so that the next resume reads only what is visible."""
        self.projection.forget()
        snapshot = self.projection.snapshot()
        yield partial(self.store.save_snapshot, self.head, snapshot.position, snapshot.number, snapshot.encode())
        self._saved = snapshot.position + snapshot.number
