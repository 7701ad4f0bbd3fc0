"""A search through what is not shown: the store finds words, and what the view shows whole is passed over.

What the conversation said itself, and what a policy keeps from the model, is never found.
"""

from __future__ import annotations

from functools import partial

from ..engine import Engine, Step
from ..ports import SearchHit, StoredMessage
from .hits import Hit, hit_in, words_of
from .originals import decoded, who_said

__all__ = ["searched"]

MOST = 2_000
"""Messages that are taken from the store, at most, to find some that are not shown."""


def searched(engine: Engine, words: str, limit: int) -> Step[list[Hit]]:
    """The best `limit` messages that hold these words and are not shown whole; the best first."""
    wanted = words_of(words)
    entries = (yield from engine.followed()).entries()
    shown = {entry.position: entry for entry in entries if entry.source is not None}
    hits: list[Hit] = []
    seen, asked = 0, max(4 * limit, 50)
    while wanted and len(hits) < limit:
        found: list[SearchHit] = yield partial(engine.store.search, engine.head, words, asked)
        scores = {one.position: one.score for one in found[seen:]}
        due = [at for at in scores if at not in shown or (shown[at].shrunk and shown[at].expandable)]
        rows: list[StoredMessage] = (yield partial(engine.store.get_many, engine.head, due)) if due else []
        withheld: set[str] = (yield from engine.withheld(rows[0].position)) if rows else set()
        for row in sorted(rows, key=lambda row: due.index(row.position)):
            if row.id in withheld or row.stamp.expanded or not row.body:
                continue
            hit = hit_in(
                f"m{row.position}",
                decoded(row),
                wanted,
                turn=row.stamp.turn,
                who=who_said(row),
                is_hidden=row.position not in shown,
                score=scores[row.position],
            )
            hits += [hit] if hit else []
        if len(found) < asked or asked >= MOST:
            break
        seen, asked = len(found), asked * 4
    return hits[:limit]
