"""From rows of figures to what people read: the table as strings, the sentences.

The terminal and the HTML report both show what is said here, so that they cannot disagree. It knows nothing of either:
no colours, no markup, no files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .numbers import count, percent, plural
from .recordings.recording import KINDS
from .result import Replayed, Row, columns_for

__all__ = ["closing", "groups", "kept_apart", "listed", "notes_told", "sound", "table"]


def table(rows: Sequence[Row], *, wide: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The titles and the lines of a table: the policy's name first, then its figures; one line a row."""
    columns = columns_for(rows, wide=wide)
    titles = ("policy", *(column.title for column in columns))
    return titles, [(row.policy, *(column.cell(row) for column in columns)) for row in rows]


def closing(row: Row) -> str:
    """The one sentence to repeat: what this policy costs, and whether every view was legal."""
    ends = [plural(row.illegal_views, "illegal view")]
    if row.lost_messages:
        ends.append(plural(row.lost_messages, "lost message"))
    if row.over_budget:
        ends.append(plural(row.over_budget, "call") + " over the budget")
    if not row.calls or not row.cost_unmanaged:
        return f"`{row.policy}`: no model call to compare; {', '.join(ends)}."
    return (
        f"`{row.policy}`: {percent(row.cost_ratio)} of the cost of sending everything, "
        f"{percent(row.cost_all_in)} counting what must be fetched back; {', '.join(ends)}."
    )


def kept_apart(rows: Iterable[Row]) -> str:
    """What the recordings hold beside plain messages, in one sentence; empty if there is nothing.

    `rows` are of one policy, so that nothing is counted twice.
    """
    kinds: Counter[str] = Counter()
    recordings = 0
    for row in rows:
        recordings += 1
        kinds.update(row.kept_apart)
    return notes_told(kinds, recordings)


def notes_told(notes: Mapping[str, int], recordings: int = 1) -> str:
    """The notes of one or more recordings (see `recordings/recording.py`) in one sentence; empty if there are none."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    kinds = sorted(filter(notes.get, notes), key=lambda kind: order.get(kind, len(order)))
    if not kinds:
        return ""
    found = [f"{count(notes[kind])} {KINDS.get(kind, kind) if notes[kind] == 1 else kind}" for kind in kinds]
    whose = "the recording holds" if recordings == 1 else "the recordings hold"
    return f"Beside plain messages {whose} {listed(found)}."


def sound(rows: Iterable[Row]) -> bool:
    """Whether every view was legal and no message was lost."""
    return not any(row.illegal_views or row.lost_messages for row in rows)


def groups(replays: Iterable[Replayed]) -> Iterator[tuple[Replayed, ...]]:
    """The replays of each transcript, in the order given.

    A policy that comes again begins another transcript, so that two files of one name are told apart.
    """
    group: list[Replayed] = []
    for replay in replays:
        row = replay.row
        if group and (row.transcript != group[0].row.transcript or row.policy in [other.row.policy for other in group]):
            yield tuple(group)
            group = []
        group.append(replay)
    if group:
        yield tuple(group)


def listed(things: Sequence[str]) -> str:
    """Several things as people say them: `a, b and c`."""
    return things[0] if len(things) == 1 else ", ".join(things[:-1]) + " and " + things[-1]
