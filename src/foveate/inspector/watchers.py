"""Watchers: what this and other processes add to a conversation, as updates for the pages that show it.

One watcher follows a conversation for all pages. It reads the head of the conversation in the store again and again,
which takes one small query, and never waits for an operation of the conversation. Updates say what happened and which
rows of a page changed; the page then fetches these rows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from ..core.edits import (
    MARKS,
    Bill,
    Edit,
    Hide,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Task,
    named_messages,
)
from ..core.plurals import plural
from ..core.stamps import Stamp
from ..errors import FoveateError, NoSuchConversation
from ..ports import Database
from .views.places import Place

__all__ = ["Update", "Watcher", "Watchers", "read_updates"]

PAUSE: Final = 0.5
"""Seconds between two looks at a conversation."""
HEARTBEAT: Final = 30
"""Looks without news after which a comment is sent, so that proxies keep the connection open."""
_MAX_BEHIND: Final = 500
"""Messages and edits that are sent one by one. A page that is further behind loads again."""
_MAX_ROWS: Final = 50
"""Rows that a receipt names. If it changes more, a page loads all of its rows again."""

Kind = Literal["message", "expanded", "receipt", "summary", "store", "reload", "gone"]
"""`message`: it was appended; `expanded`: the model was shown an original again; `receipt`: edits changed the view;
`summary`: the state of a compaction; `store`: it cannot be read, or can be again; `reload`: the past changed, by a
fork, an erasure or a long absence; `gone`: the conversation exists no more.
"""


class Update(Struct, frozen=True, omit_defaults=True):
    """One event for a page."""

    kind: Kind
    """The kind of the event."""
    text: str = ""
    """The same in a few words, for people."""
    position: int = 0
    """Position of the appended message."""
    turn: int = 0
    """The model call that it belongs to, or that first sees the change."""
    role: str = ""
    """Where the appended message comes from: user, assistant, tool, ..."""
    first: int = 0
    """Number of the first edit of a receipt, or of the record of a summary's state."""
    last: int = 0
    """Number of the last one."""
    rows: tuple[int, ...] = ()
    """Positions of the messages whose rows look different. Of a receipt: empty if these are many, or not known."""
    state: str = ""
    """The state of a summary: pending, done, failed or skipped. Of the store: failed or done."""


News = tuple[Place, tuple[Update, ...]]
"""Events, and the place after them."""


# ------------------------------------------------------------------------------------------------------- reading


def read_updates(store: Database, tenant: str, name: str, seen: Place) -> News:
    """Return what happened in a conversation since `seen`, and the place after it. Blocks."""
    try:
        head = store.open(tenant, name, create=False)
    except NoSuchConversation:
        return seen, (Update("gone", f"The conversation {name!r} exists no more."),)
    place = Place.of(head)
    if place == seen:
        return seen, ()
    behind = place.position - seen.position + place.number - seen.number
    if (
        not place.has_past_of(seen)
        or place.position < seen.position
        or place.number < seen.number
        or behind > _MAX_BEHIND
    ):
        return place, (Update("reload", _reason_to_reload(seen, place)),)
    rows = store.messages(head, seen.position + 1, place.position)
    records = [record for _, record in store.records(head, seen.number)]
    ids = named_messages(edit for record in records for edit in record.edits)
    positions = store.locate(head, ids) if ids else {}
    updates = [update for row in rows for update in _of_message(row.position, row.stamp)]
    updates += [update for record in records for update in _of_record(record, positions)]
    return place, tuple(updates)


def _reason_to_reload(seen: Place, now: Place) -> str:
    if seen.branch != now.branch:
        return "The conversation took another course."
    if seen.erased != now.erased:
        return "Messages were erased."
    return "Much happened since this page was loaded."


def _of_message(position: int, stamp: Stamp) -> Iterator[Update]:
    who = stamp.tool or stamp.source or stamp.origin
    yield Update("message", f"m{position}: {who}", position, stamp.turn, stamp.origin, rows=(position,))
    shown = stamp.expanded
    if shown is not None and shown.shows_original:
        yield Update("expanded", f"The model expanded {shown.handle} in m{position}", position, stamp.turn)


def _of_record(record: Record, positions: Mapping[str, int]) -> Iterator[Update]:
    tasks = [edit for edit in record.edits if isinstance(edit, Task) and edit.policy not in MARKS]
    for task in tasks:
        yield Update("summary", _words_of(task), turn=task.turn, first=record.first, state=task.state)
    changing = [edit for edit in record.edits if not isinstance(edit, Task | Bill)]
    if not changing:
        return
    who = ", ".join(dict.fromkeys(edit.policy for edit in changing if edit.policy)) or record.author
    was, now = record.tokens_before, record.tokens_after
    text = f"{who}: {plural(len(changing), 'edit')}, {was:,} → {now:,} tokens"
    rows = tuple(sorted(set(_rows_of(changing, positions))))
    rows = rows if len(rows) <= _MAX_ROWS else ()
    yield Update("receipt", text, turn=record.turn, first=record.first, last=record.last, rows=rows)
    if record.author == "expand":
        text = f"m{rows[0]} is shown whole again" if rows else "An original is shown whole again"
        yield Update("expanded", text, turn=record.turn, first=record.first)


def _rows_of(edits: Iterable[Edit], positions: Mapping[str, int]) -> Iterator[int]:
    """Yield the positions whose rows the edits change."""
    for edit in edits:
        named: tuple[Target | Span, ...]
        match edit:
            case Restore(targets=targets):
                named = targets
            case Summarize(span=span):
                named = (span,)
            case Replace(target=target) | Hide(target=target):
                named = (target,)
            case Task() | Bill():
                named = ()
            case _:
                named = (edit.target,)
        for target in named:
            if isinstance(target, Target):
                if target.message in positions:
                    yield positions[target.message]
            elif target.first in positions and target.last in positions:
                yield from range(
                    positions[target.first], min(positions[target.last], positions[target.first] + _MAX_ROWS) + 1
                )


def _words_of(task: Task) -> str:
    words = {
        "pending": "a summary is being written",
        "done": "the summary is written",
        "failed": f"the summary failed: {task.reason[:200]}",
        "skipped": f"no summary was needed{f': {task.reason[:200]}' if task.reason else ''}",
    }
    return f"{task.policy}: {words[task.state]}"


# ------------------------------------------------------------------------------------------------------- watching

Read = Callable[[Place], Awaitable[News]]
"""Returns what happened since a place."""
Wait = Callable[[float], Awaitable[object]]
"""Waits some seconds, such as `asyncio.sleep`."""


class Watcher:
    """Follows one conversation for all pages that show it. It runs while there is a page."""

    def __init__(self, read: Read, place: Place, wait: Wait) -> None:
        self.place = place
        """How far the conversation was read."""
        self.pages: set[asyncio.Queue[News | None]] = set()
        """The queues of the pages. None ends a stream; no updates mean that nothing happened for a while."""
        self._read, self._wait = read, wait
        self._task: asyncio.Task[None] | None = None

    def join(self) -> asyncio.Queue[News | None]:
        """Return the queue of a new page, which gets what happens after `place`."""
        queue: asyncio.Queue[News | None] = asyncio.Queue()
        self.pages.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._follow())
        return queue

    def leave(self, queue: asyncio.Queue[News | None]) -> None:
        """Forget a page. The last one ends the watcher."""
        self.pages.discard(queue)
        if not self.pages and self._task is not None:
            self._task.cancel()
            self._task = None

    def stop(self) -> None:
        """End all streams."""
        for queue in self.pages:
            queue.put_nowait(None)

    async def _follow(self) -> None:
        quiet, has_failed = 0, False
        while self.pages:
            try:
                news = await self._read(self.place)
                if has_failed:
                    news = (news[0], (Update("store", "The store can be read again.", state="done"), *news[1]))
                has_failed = False
            except FoveateError as error:  # The database is down for a moment, for example.
                again = has_failed
                news = (self.place, () if again else (Update("store", f"No news: {error}", state="failed"),))
                has_failed = True
            self.place, updates = news
            quiet = 0 if updates else quiet + 1
            if updates or quiet % HEARTBEAT == 0:
                for queue in self.pages:
                    queue.put_nowait(news)
            if any(update.kind == "gone" for update in updates):
                self.stop()
                return
            await self._wait(PAUSE)


class Watchers:
    """The watchers of one inspector, by conversation. Belongs to one event loop."""

    def __init__(self, wait: Wait = asyncio.sleep) -> None:
        self._wait = wait
        self._watchers: OrderedDict[tuple[str, ...], Watcher] = OrderedDict()
        self._is_stopped = False

    def __len__(self) -> int:
        """Number of conversations that are watched."""
        return len(self._watchers)

    async def watch(
        self,
        key: tuple[str, ...],
        read: Read,
        now: Place,
        seen: Place | None = None,
        gone: Callable[[], Awaitable[object]] | None = None,
    ) -> AsyncIterator[News]:
        """Yield what happens in the conversation with this key, until `stop`, or until it exists no more.

        `now`: the newest place. `seen`: what the page has seen; None for `now`. `gone`: returns when the page is gone.
        """
        if self._is_stopped:
            return
        watcher = self._watchers.get(key)
        if watcher is None:
            watcher = self._watchers[key] = Watcher(read, now, self._wait)
        queue = watcher.join()
        ending = asyncio.ensure_future(_end_after(gone, queue)) if gone is not None else None
        try:
            place = watcher.place if seen is None else seen
            missed: News = (place, ())
            if place != watcher.place:
                missed = await read(place)
            place = missed[0]
            yield missed
            while (news := await queue.get()) is not None:
                updates = tuple(update for update in news[1] if _is_new(update, place))
                if updates or not news[1]:
                    yield news[0], updates
                if place.has_past_of(news[0]):
                    place = max(place, news[0], key=lambda seen: (seen.position, seen.number))
                else:
                    place = news[0]
        finally:
            if ending is not None:
                ending.cancel()
            watcher.leave(queue)
            if not watcher.pages:
                self._watchers.pop(key, None)

    def stop(self) -> None:
        """End all streams, because the server stops. Later ones end at once."""
        self._is_stopped = True
        for watcher in self._watchers.values():
            watcher.stop()


async def _end_after(gone: Callable[[], Awaitable[object]], queue: asyncio.Queue[News | None]) -> None:
    await gone()
    queue.put_nowait(None)


def _is_new(update: Update, seen: Place) -> bool:
    """Return whether a page that has seen a place does not know this event."""
    if update.kind in ("store", "reload", "gone"):
        return True
    return update.position > seen.position if update.position else update.first > seen.number
