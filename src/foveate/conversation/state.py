"""The state of one open conversation: its place in the store, its view, and the next model call.

Opening, reading what other writers did, and committing edits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from ..core import ids
from ..core.caches import clear_caches
from ..core.call_context import CallContext
from ..core.checker import Checker, Violation
from ..core.edits import Edit, Record, Restore, Summarize, Task
from ..core.growing import Marks, SavedFact
from ..core.ids import redacted_record
from ..core.messages import Message
from ..core.plain_handles import PlainEntries, plain_edits
from ..core.profiles import Profile
from ..core.projection import Projection
from ..core.snapshots import Row
from ..core.view import Entry, ListPlace, View
from ..errors import NoSuchConversation, StoreError, StoreRolledBack
from ..ports import Changes, Clock, Database, Format, Head, StoredMessage, TokenCounter
from .calls import Caller
from .limits import Limits
from .loading import Loader, OriginalReader, in_order, rolled_back, row_of
from .model_calls import ModelCalls, ModelLookup, RequestModel
from .prefetch import SummaryPrefetch
from .releases import released_edits
from .snapshots import INTERVAL, SnapshotKeeper

__all__ = ["ATTEMPTS", "PLANS", "State"]

_log = logging.getLogger("foveate")

ATTEMPTS = 5
"""Attempts of an append that other writers keep overtaking."""
PLANS = 100
"""Attempts of a plan or an edit that other writers keep overtaking. One of the writers succeeds each time, so one
writer does not lose so often by chance.
"""
_LONG_GAP = 4_096
"""Messages since a snapshot above which they are read in pieces."""


class State:
    """The place of one conversation in its store, and the projection of what it shows."""

    def __init__(
        self,
        store: Database,
        format: Format,
        model: RequestModel,
        clock: Clock,
        *,
        reserve: int | None = None,
        lookup: ModelLookup | None = None,
        caller: Caller | None = None,
        prefetch: SummaryPrefetch | None = None,
    ) -> None:
        """`lookup`: finds the models that requests name; None: every request uses `model`. `reserve`: tokens for the
        answer.
        """
        self.format, self.clock = format, clock
        self.model = self._opened = model
        """The model of the newest request; before it, the one that the conversation was opened for."""
        self._lookup, self._reserve = lookup, reserve
        self._named: tuple[str | None, int | None] = (None, None)  # model and window of the newest request
        self._limits: dict[str, Limits] = {}
        self.head: Head
        self.originals = OriginalReader(store)
        """Reads messages of which only the outline is held."""
        self.projection = Projection(model.profile, model.counter, self.originals)
        self.may_offer_expand = True
        """Whether requests may offer the tool `expand`, as the conversation was opened."""
        self.own_offer: bool | None = None
        """Whether the newest request of this object offers the tool `expand`; None before the first request."""
        self.list_places: Mapping[int, ListPlace] = {}
        """Places of messages in the list that the caller passed last, by position."""
        self.last_view: View | None = None
        """The view that was made last."""
        self.marks = Marks()
        """The facts about its views that are kept while they grow."""
        self.checker = Checker(model.profile)
        """The checker of the provider's rules."""
        self.calls = ModelCalls()
        """The model calls of this process."""
        self.news = 0
        """How often something was read that another writer did."""
        self.added: tuple[Sequence[StoredMessage], Sequence[Message]] = (), ()
        """The rows that this object added last, and their messages."""
        self._plain = PlainEntries()
        self._store = store
        self._caller = caller
        self._prefetch = prefetch
        self._branch: int | None = None  # branch that the projection shows
        self._erased = 0  # newest erasure that the projection reflects
        self._snapshots = SnapshotKeeper()
        self._seen: Head  # ends of the chains that the projection shows

    # ----------------------------------------------------------------------------------------------------- the model

    @property
    def profile(self) -> Profile:
        """The requirements of the model's API."""
        return self.model.profile

    @property
    def counter(self) -> TokenCounter:
        """The counter of the model's tokens."""
        return self.model.counter

    @property
    def limits(self) -> Limits:
        """The limits of the model's requests."""
        name = self.model.name
        if name not in self._limits:
            doubt = getattr(self.counter, "doubt", 0.0)
            self._limits[name] = Limits(self.model.window, self._reserve, self.model.profile, doubt)
        return self._limits[name]

    def use_model(self, name: str | None = None, window: int | None = None) -> None:
        """Use another model or window until the next call of this method; without both, those of the opening.

        Raises BadSetting if the conversation cannot use the model.
        """
        if (name, window) == self._named:
            return
        model = self._opened
        if (name is not None or window is not None) and self._lookup is not None:
            model = self._lookup(model.name if name is None else name, window)
        self._named = name, window
        if model == self.model:
            return
        self.model = model
        self.projection.use(model.profile, model.counter)
        self.limits.set_window(model.window)
        self._calibrate(self.projection)

    @property
    def opened_model(self) -> RequestModel:
        """The model of requests that name none."""
        return self._opened

    @property
    def store(self) -> Database:
        """The store. A cancelled operation ends here, between two calls of the store."""
        if self._caller is not None:
            self._caller.check_cancelled()
        return self._store

    @property
    def database(self) -> Database:
        """The store, for reads in another thread, which no operation of the conversation can cancel."""
        return self._store

    @property
    def loader(self) -> Loader:
        """Reads the messages and edits up to the head."""
        return Loader(self.head, lambda: self.store, self.empty)

    def empty(self) -> Projection:
        """Return an empty projection for the model."""
        return Projection(self.profile, self.counter, self.originals)

    # ---------------------------------------------------------------------------------------------------- opening

    def open(self, tenant: str, name: str, *, create: bool = True) -> None:
        """Resume from the newest snapshot, or from the beginning. Raises Damaged if rows are missing."""
        self.head = self.store.open(tenant, name, create=create)
        self._load()

    def _load(self) -> None:
        self._erased = self.head.erased
        self.originals = OriginalReader(self._store)  # Entries of earlier views read the branch of these views.
        self.originals.head = self.head
        resumed = self._snapshots.resume(self)
        projection = self.empty() if resumed is None else resumed
        is_far = self.head.position - projection.position > _LONG_GAP
        if is_far:
            self.loader.fold_up_to(projection, self.head.position, self.head.number)
        self.projection = self._caught_up(projection)
        if resumed is None:
            self.loader.void_erased(self.projection)
        if is_far:
            self._snapshots.save_quietly(self, self.projection)
        self._seen = _ends(self.head)
        self.measure()

    def violations(self, view: View) -> list[Violation]:
        """Return the violations of the provider's rules in a view, at the cost of its new entries."""
        if self.checker.profile is not self.profile:
            self.checker = Checker(self.profile)
        return self.checker.check(view.entries, view.newest_input)

    def measure(self) -> None:
        """Correct the estimates by the newest measured prompt, and forget the pending model call."""
        self._calibrate(self.projection)
        self._branch = self.head.branch
        self.calls.forget_pending()

    def _caught_up(self, projection: Projection, seen: Head | None = None) -> Projection:
        """Return the projection with what the store has beyond it, see `Loader.catch_up`."""
        rows = self.loader.catch_up(projection, seen)
        self._note_replies(rows, projection)
        self._release(projection)
        return projection

    def _release(self, projection: Projection) -> None:
        """Release the originals that a projection at the head does not show."""
        self.originals.head = self.head
        projection.release_originals()

    def _note_replies(self, rows: Sequence[StoredMessage], projection: Projection) -> None:
        """Forget the pending model call if one of these rows answers it. `projection`: shows them."""
        is_answered = any(row.stamp.origin == "assistant" for row in rows)
        if is_answered:
            self.calls.forget_pending()
        if is_answered or self._has_new_bill(projection):
            self._calibrate(projection)

    def _has_new_bill(self, projection: Projection) -> bool:
        """Return whether usage that was reported late changed what is known about measured prompts."""
        return projection.facts.calibrations != self.projection.facts.calibrations

    def _calibrate(self, projection: Projection) -> None:
        """Correct the estimates by the newest measured prompt that a projection knows."""
        self.limits.measured(*projection.facts.calibration(self.model.name))

    # -------------------------------------------------------------------------------------------- following others

    def refresh(self) -> None:
        """Read what other writers did."""
        if self._shows_head():
            try:
                tail = self.store.changes(self.head)
            except StoreRolledBack:
                pass  # Or it is damaged: the reads below distinguish the two.
            else:
                self.move_on(tail)
                return
        self.news += 1
        self.head = self.store.open(self.head.tenant, self.head.name, create=False)
        self.follow_head()

    def move_on(self, tail: Changes, own: Sequence[Message] = ()) -> None:
        """Move on to the end of a tail that begins at the head. `own`: its last messages, if they are known."""
        is_in_step = self._shows_head()
        known, self.head = self.head, tail.head
        is_same = (known.root, known.branch, known.erased) == (tail.head.root, tail.head.branch, tail.head.erased)
        if not (is_in_step and is_same):
            self.news += 1
            self.follow_head()
            return
        rows, records = tail.rows(), [record for _, record in tail.records()]
        self.news += len(rows) > len(own) or bool(records)
        projection = self.projection.copy() if records else self.projection  # Folding a record may need the store.
        first = tail.head.position - len(own)
        for item in in_order(rows, records):
            if isinstance(item, Record):
                self.loader.fold(projection, item)
            else:
                message = own[item.position - first - 1] if item.position > first else None
                row = Row(item.position, item.id, message, item.stamp, len(item.body)) if message else row_of(item)
                projection.append(row)
        self._note_replies(rows, projection)
        self._release(projection)
        self.projection, self._seen = projection, _ends(self.head)

    def _shows_head(self) -> bool:
        """Return whether the projection shows everything up to the head."""
        is_current = (self._branch, self._erased) == (self.head.branch, self.head.erased)
        return is_current and self._seen == _ends(self.head)

    def follow_head(self) -> None:
        """Bring the projection to the head: after another writer, or after an earlier failure.

        Raises StoreRolledBack if the store has lost what is shown.
        """
        if self._erased != self.head.erased:  # The projection may hold erased content.
            self._load_afresh()
        elif self._branch != self.head.branch:  # The conversation departed from the past that is shown.
            self._check_seen()
            self._load()
        elif self._seen != _ends(self.head):
            self.projection = self._caught_up(self.projection.copy(), self._seen)
            self._seen = _ends(self.head)

    def read_again(self) -> None:
        """Read the conversation as it is stored, and keep nothing of what is in memory."""
        self.head = self.store.open(self.head.tenant, self.head.name, create=False)
        self._load_afresh()

    def _load_afresh(self) -> None:
        self._check_seen()
        self.calls.prepared = self.last_view = None
        self.added = (), ()
        self.marks, self._plain, self.checker = Marks(), PlainEntries(), Checker(self.profile)
        self._load()
        clear_caches()

    def followed(self) -> Projection:
        """Return the projection at the head."""
        self.follow_head()
        return self.projection

    def _check_seen(self) -> None:
        """Raise StoreRolledBack if the store lacks what was seen: reading everything again would hide that."""
        try:
            rows = self.store.get_many(self._seen, [self._seen.position])
        except NoSuchConversation as error:
            raise rolled_back(self._seen, self.head) from error
        is_erasure_lost = self.head.root == self._seen.root and self.head.erased < self._erased
        if is_erasure_lost or [row.id for row in rows] != [self._seen.tip][: self._seen.position]:
            raise rolled_back(self._seen, self.head)

    # ---------------------------------------------------------------------------------------------------- looking

    @property
    def offers_expand(self) -> bool:
        """Return whether the coming request offers the tool `expand`. Otherwise no text names it.

        It does if the newest request of this object does; before its first request, if the newest one in the journal
        does.
        """
        if self.own_offer is not None:
            return self.own_offer
        return self.may_offer_expand and self.projection.offers_expand

    def begun(self) -> int:
        """Return the number of model calls begun so far."""
        return self.calls.begun(self.projection)

    def is_call_pending(self) -> bool:
        """Return whether a model call was begun and not answered: in this process, or as the journal says."""
        return self.calls.is_pending(self.projection)

    def next_turn(self) -> int:
        """Return the number of the model call a view is for: the last one again if nothing changed since."""
        return self.calls.next_turn(self.projection, self.head)

    def begin_call(self, view: View) -> None:
        """Note that a request with this view is about to be sent."""
        self.calls.begin(view, self.head, self.model.name, self.limits.estimated(view))

    @property
    def prepared(self) -> tuple[Entry, ...]:
        """Entries of the view that was prepared last; before there was one, all visible entries."""
        prepared = self.calls.prepared
        return self._shown(self.projection.entries()) if prepared is None else prepared

    def frame(self, entries: tuple[Entry, ...]) -> View:
        """Return entries as a view with the facts of this moment."""
        return self.framed(entries, tuple(self.projection.tasks.values()))

    def trial(self, entries: tuple[Entry, ...]) -> View:
        """Return the same for a plan that is not applied."""
        return structs.replace(self.frame(entries), is_trial=True)

    def framed(self, entries: tuple[Entry, ...], tasks: tuple[Task, ...]) -> View:
        """Return entries as a view with these tasks."""
        now, turn, facts = self.clock(), self.next_turn(), self.projection.facts
        model, profile = self.model, self.model.profile
        last = self.calls.last_request(model.name, self.projection)
        # If the clock was set back, the elapsed time is unknown, and 0 is assumed.
        idle = max(now - last, 0) / 1000 if last else None
        call = CallContext(now, idle, model.prices, model.name, profile.binds_reasoning)
        preparing = self._prefetch.policies if self._prefetch else ()
        return View(
            self._shown(entries),
            turn,
            self.limits.budget(entries),
            call,
            tasks,
            facts.retained(turn),
            preparing,
            newest_input=facts.last_input,
            list_places=self.list_places,
            marks=self.marks,
        )

    def _shown(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Return entries as the coming request shows them: without the tool `expand`, with plain handles."""
        return entries if self.offers_expand else self._plain.of(entries, self.counter)

    def is_known_plain(self, entries: tuple[Entry, ...]) -> bool:
        """Return whether a request without the tool `expand` showed these entries as they are."""
        return self._plain.are_same(entries, self.counter)

    def restore_facts(self, entries: tuple[Entry, ...], facts: Mapping[str, SavedFact], *, is_plain: bool) -> None:
        """Continue with what was saved about a view with these entries.

        `is_plain`: a request without the tool `expand` shows them as they are.
        """
        self.marks.restore(facts, entries)
        if is_plain:
            self._plain.restore(entries, self.counter)

    def shows_plain_handles(self) -> bool:
        """Return whether the coming request shows other texts because it does not offer `expand`."""
        entries = self.projection.entries()
        return self._shown(entries) != entries  # Entries compare by identity.

    def view(self) -> View:
        """Return what the model would see without any new edit."""
        self.last_view = view = self.frame(self.projection.entries())
        return view

    # ------------------------------------------------------------------------------------------------- committing

    def commit(
        self, edits: Sequence[Edit], author: str, before: View, after: View, draft: Projection | None = None
    ) -> Record:
        """Write edits as one record, and show the result.

        `draft`: the projection with the edits as `marked` returns them, if folding them needed the store. Otherwise the
        record itself is folded, as a process that opens the conversation again does, and not what a plan tried out: a
        plan's edits are measured and come in parts while it is made.
        """
        committed, outlines = released_edits(self.store, self.head, self.marked(edits))
        record = Record(
            self.head.number + 1,
            committed,
            before.turn if author in ("plan", "prompt") else self.begun() + 1,
            before.call.now,
            self.head.tip,
            self.head.position,
            before.tokens,
            after.tokens,
            before.bytes,
            after.bytes,
            author,
        )
        if draft is None or outlines:
            is_tried, draft = draft is not None, self.projection.copy()
            self.loader.fold(draft, record) if is_tried else draft.apply(record)
        record_id = ids.record_id(self.head.record, redacted_record(record))
        if outlines:
            self.head = self.store.release(self.head, record, record_id, outlines)
            self.originals.cache_clear()
        else:
            self.head = self.store.commit(self.head, record, record_id)
        self._release(draft)
        if self._has_new_bill(draft):
            self._calibrate(draft)
        self.projection = draft
        self._seen = structs.replace(self._seen, number=record.last, record=record_id)
        # Restored messages took reading; a snapshot saves that for the next process that opens this.
        has_restored = any(isinstance(edit, Restore) for edit in edits) and record.last > INTERVAL
        self.follow_up(self.follow_head, is_saved=has_restored)
        return record

    def note(self, edit: Edit, author: str) -> None:
        """Commit an edit that changes nothing in the view. A call that waits for its reply goes on waiting."""
        before, view = self.head, self.view()
        self.commit([edit], author, view, view)
        self.calls.move_pending(before, self.head)

    def marked(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Return the edits as they are committed.

        After an erasure, summaries are marked as written without its content. If the tool `expand` is not offered,
        texts of policies do not name it: they stay so when the tool is offered later.
        """
        edits = tuple(edits) if self.offers_expand else plain_edits(edits)
        if not self.head.erased:
            return tuple(edits)
        return tuple(structs.replace(edit, outlives=True) if isinstance(edit, Summarize) else edit for edit in edits)

    def follow_up(self, follow: Callable[[], None] | None = None, *, is_saved: bool = False) -> None:
        """Do what follows a write: read what is new, and save a snapshot if one is due.

        The write is stored in any case, so a StoreError is logged; the next call repeats the work.
        """
        self._snapshots.has_written = True
        try:
            if follow is not None:
                follow()
            if is_saved or self._snapshots.is_due(self.projection):
                self.save_snapshot()
        except StoreError as error:
            _log.warning("%s: stored, but the work after it is left to the next call: %s", self.head.log_name, error)

    def save_at_close(self) -> None:
        """Save a snapshot if this conversation wrote much since the last one, so that the next opening is fast."""
        self._snapshots.save_at_close(self)

    def save_snapshot(self, *, has_view: bool = True) -> None:
        """Save the projection, so that the next process that opens this reads only what is visible.

        `has_view`: whether what it shows is saved too, so that the process reads no messages.
        """
        self._snapshots.save(self, has_view=has_view)

    def appended(self, last: StoredMessage) -> None:
        """Note that the head and the projection now end with this row."""
        self._seen = structs.replace(self._seen, position=last.position, tip=last.id, seal=last.seal)


def _ends(head: Head) -> Head:
    """Return the ends of the chains: the head without the number of its erasure."""
    return structs.replace(head, erased=0) if head.erased else head
