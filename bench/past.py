"""A past of any length before the same live window, built in several databases.

The past is real text, shortened, and was managed as it grew: every 200 messages a journal record shrinks results and
moves a summary, so that a million messages have 5,000 records with 100,000 edits, and 1,000 messages are shown. The
builder leaves the same state as a program: its last snapshot, and a settled database.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from foveate.ports import append

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import cut, messages

from foveate import Text, open_conversation
from foveate.conversation.state import row_of
from foveate.core.edits import Record
from foveate.core.ids import record_id, redacted_record
from foveate.core.profiles import profile_for
from foveate.core.projection import Projection
from foveate.counters import counter_named
from foveate.edits import Edit, Replace, Span, Summarize, Target
from foveate.formats import get_format
from foveate.ports import Database, Head, StoredMessage
from foveate.testing.rows import chain

HUGE = 10**9
"""A window that no view fills."""
LIVE = 1_000
"""Messages that are shown, at any length of the history."""
_RECORD = 200
"""Messages between two records of the journal."""
_EDITS = 20
"""Edits in each record."""
_TEXT = 240
"""Characters of each text in the past."""


def build(stores: Sequence[Database], name: str, size: int) -> None:
    """Build the same conversation of `size` messages in each store, with the snapshot of a program."""
    heads = [store.open("", name) for store in stores]
    format = get_format("openai")
    shown = Projection(profile_for(format.name, ""), counter_named("characters"))
    first = ""
    recent: list[StoredMessage] = []
    # The shown messages are the same at each size; only the past before them differs.
    past, live = messages(), messages()
    while heads[0].position < size:
        count = min(_RECORD, size - heads[0].position)
        is_past = heads[0].position < size - LIVE
        new_messages = (
            [cut(message, _TEXT) for message in islice(past, count)] if is_past else list(islice(live, count))
        )
        rows = chain(new_messages, heads[0])
        heads = [append(store, head, rows) for store, head in zip(stores, heads, strict=True)]
        for row in rows:
            shown.append(row_of(row))
        first = first or rows[0].id
        recent = [*recent, *rows][-(LIVE + _RECORD) :]
        if heads[0].position > LIVE:
            record = _record(heads[0], first, recent)
            shown.apply(record, {first: 1})
            # As a program does before it saves a snapshot; otherwise the snapshot would hold all hidden messages.
            shown.forget()
            id = record_id(heads[0].record, redacted_record(record))
            heads = [store.commit(head, record, id) for store, head in zip(stores, heads, strict=True)]
    shot = shown.snapshot()
    for store, head in zip(stores, heads, strict=True):
        store.save_snapshot(head, shot.position, shot.number, shot.encode())
        with open_conversation(name, store=store, format="openai", policy="none", window=HUGE) as chat:
            chat.body()
            chat._agent.save_snapshot()  # With what its view shows, as every program saves it.


def _record(head: Head, first: str, recent: Sequence[StoredMessage]) -> Record:
    """Return one record: older results are shortened, and the messages before the live window are summarized."""
    hidden = recent[len(recent) - LIVE - 1]
    results = [row for row in recent[-LIVE:] if row.stamp.origin == "tool"][: _EDITS - 1]
    gone = (Text("[cleared]"),)
    edits: list[Edit] = [Replace(Target(row.id, (0,)), gone, "bench", "older than others") for row in results]
    summary = f"What was said and done up to message {hidden.position}. " * 8
    edits.append(Summarize(Span(first, hidden.id), summary, policy="bench", reason="the window moves on"))
    stamp = recent[-1].stamp
    return Record(head.number + 1, tuple(edits), stamp.turn, stamp.time, head.tip, head.position, author="plan")


def settle(url: str) -> None:
    """Run the database's deferred work now, so that it does not run during a measurement."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0])) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return
    import psycopg

    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
