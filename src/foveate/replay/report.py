"""Text of the replay report: a table of strings, and sentences.

The terminal and the HTML report both use it, so that they agree. It contains no colours, markup or files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.plurals import plural
from ..errors import BadSetting
from ..policies.presets import BARE, load_preset
from .numbers import UNKNOWN, count, dollars, percent
from .recordings.recording import KINDS
from .result import ReplayResult, Row, columns_for

__all__ = [
    "LEGEND",
    "client_sentence",
    "closing_sentence",
    "comparison_sentence",
    "group_by_transcript",
    "idle_sentence",
    "is_sound",
    "join_words",
    "loss_sentence",
    "month_sentence",
    "notes_of_rows",
    "notes_sentence",
    "outcome_sentence",
    "sentences_of",
    "table",
    "transcript_table",
    "window_sentence",
]


LEGEND = (
    "all-in: the cost if everything is fetched back that a call used and could no longer read. recall, quoted: of the "
    "identifiers and the whole lines that calls took from earlier tool results, the share that they could still read."
)
"""The figures of the table that need an explanation, for a line under it."""
_REFUSALS = 10
"""Refused plans that are listed, at most."""


def table(rows: Sequence[Row], *, wide: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the titles and lines of a table, one line a row: the policy's name, then its figures."""
    columns = columns_for(rows, wide=wide)
    titles = ("policy", *(column.title for column in columns))
    return titles, [(row.policy, *(column.cell(row) for column in columns)) for row in rows]


def sentences_of(replays: Sequence[ReplayResult], totals: Sequence[Row]) -> Iterator[str]:
    """Yield what the table does not say about replays, and about the totals of each policy; "" if it says nothing."""
    transcripts = group_by_transcript(replays)
    yield notes_of_rows(group[0].row for group in transcripts)
    refusals = [f"{run.row.transcript}, {run.row.policy}, {text}" for run in replays for text in run.refusals]
    yield from (f"Refused: {text}" for text in refusals[:_REFUSALS])
    yield window_sentence(replays)
    yield comparison_sentence(totals)
    for row in totals:
        rows = [run.row for run in replays if run.row.policy == row.policy]
        says_more = len(totals) == 1 or not is_sound([row]) or bool(row.over_budget)  # Else the table says it.
        yield from (idle_sentence(row), loss_sentence(row), closing_sentence(row) if says_more else "")
        yield from (outcome_sentence(rows), client_sentence(row), month_sentence(row))
    if len(totals) > 1 and is_sound(totals):
        yield "Every view is legal, and no message is lost."


def closing_sentence(row: Row) -> str:
    """Return the sentence that sums up a policy: its cost, and whether every view was legal."""
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


def comparison_sentence(rows: Sequence[Row]) -> str:
    """Return which of several policies costs least; "" for one policy, or without a model call."""
    if len(rows) < 2 or not any(row.cost_unmanaged for row in rows):
        return ""
    best = min(rows, key=lambda row: row.cost_all_in)
    if best.cost_all_in > 1 - 1e-9:
        return "No policy costs less than sending everything, counting what must be fetched back."
    money = f" ({dollars(best.money)} of {dollars(best.money_unmanaged)})" if best.money_unmanaged else ""
    return (
        f"`{best.policy}` costs least, counting what must be fetched back: {percent(best.cost_all_in)} of the cost of "
        f"sending everything, {percent(best.cost_ratio)} without it{money}."
    )


def window_sentence(replays: Iterable[ReplayResult]) -> str:
    """Return where sending everything outgrows the window, and what the cheapest policy sends there; "" if nowhere.

    For several recordings: how many of them outgrow it.
    """
    groups = list(group_by_transcript(replays))
    outgrown = [(group, call) for group in groups if (call := _first_too_large(group[0])) is not None]
    if not outgrown:
        return ""
    if len(groups) > 1:
        return f"{count(len(outgrown))} of {count(len(groups))} recordings outgrow the window if everything is sent."
    ((group, call),) = outgrown
    row = group[0].row
    wall = (
        f"Sending everything outgrows the window of {count(row.window)} tokens at call {count(call + 1)} of "
        f"{count(row.calls)}: the provider refuses that request, and an agent without management ends there."
    )
    best = min(group, key=lambda replay: replay.row.cost_all_in)
    if best.calls[call].tokens > row.window:
        return wall
    there = f"`{best.row.policy}` sends {count(best.calls[call].tokens)} tokens at that call"
    edit = next((edit for edit in reversed(best.edits) if edit.turn <= call + 1), None)
    if edit is None:
        return f"{wall} {there}."
    change = f"{count(edit.tokens_before)} to {count(edit.tokens_after)} tokens"
    return f"{wall} {there}: before call {count(edit.turn)}, {edit.policies} reduced the view from {change}."


def _first_too_large(replay: ReplayResult) -> int | None:
    """Return the index of the first call whose whole history is larger than the window."""
    window = replay.row.window
    return next((place for place, call in enumerate(replay.calls) if call.tokens_unmanaged > window), None)


def idle_sentence(row: Row) -> str:
    """Return a sentence about a policy that made no edit, with what its preset says about itself; "" if it made one."""
    if row.edits or row.policy in BARE or not row.calls:
        return ""
    try:
        about = f" About `{row.policy}`: {load_preset(row.policy).description}"
    except BadSetting:  # A policy of the program.
        about = ""
    largest = f"the largest request had {count(row.peak_tokens)} tokens"
    return f"`{row.policy}` made no edit: {largest}, and the window {count(row.window)}.{about}"


def loss_sentence(row: Row) -> str:
    """Return why a policy with edits saved nothing; "" if it saved something or made no edit."""
    if not row.edits or not row.cost_unmanaged or row.cost_ratio < 1:
        return ""
    return (
        f"`{row.policy}` saved nothing: its {plural(row.edits, 'edit')} rewrote part of the cache, and the session "
        f"ended before smaller requests paid that back. The largest request had {count(row.peak_tokens)} tokens."
    )


def client_sentence(row: Row) -> str:
    """Return how the policy compares with what the recorded client did itself; "" if it never compacted."""
    if row.cost_recorded is None or not row.cost_unmanaged:
        return ""
    own = f"The recorded client compacted {_times(row.compactions)} itself, which cost about "
    share = row.cost / row.cost_recorded if row.cost_recorded else None
    return (
        f"{own}{percent(row.cost_recorded / row.cost_unmanaged)} of sending everything. "
        f"`{row.policy}` costs {percent(share)} of what the client did."
    )


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{count(number)} times")


_DAY = 86_400_000
"""Milliseconds."""


def month_sentence(row: Row) -> str:
    """Return what 30 days like the recordings cost, with the policy and if everything is sent.

    Recordings of less than a day count as one day. Returns "" without prices or times, and if both cost the same.
    """
    if row.money is None or row.money_unmanaged is None or row.began is None or row.ended is None:
        return ""
    if row.money == row.money_unmanaged:
        return ""
    days = max(1.0, (row.ended - row.began) / _DAY)
    with_policy, without = (dollars(amount * 30 / days) for amount in (row.money, row.money_unmanaged))
    own = "" if row.money_recorded is None else f", {dollars(row.money_recorded * 30 / days)} as the client did it"
    span = "a day like this one" if days == 1 else f"these {days:.1f} days"
    return (
        f"Thirty days at the rate of {span}, without the model's answers: {with_policy} with `{row.policy}`, "
        f"{without} if everything is sent{own}."
    )


def outcome_sentence(rows: Sequence[Row]) -> str:
    """Return how many of several recordings a policy made cheaper; "" for one recording. The rows have one policy."""
    if len(rows) < 2:
        return ""
    cheaper = sum(row.cost < 0.995 * row.cost_unmanaged for row in rows)
    dearer = sum(row.cost > 1.005 * row.cost_unmanaged for row in rows)
    idle = sum(not row.calls for row in rows)
    same = len(rows) - cheaper - dearer - idle
    no_call = f"; {count(idle)} had no model call" if idle else ""
    return (
        f"`{rows[0].policy}`: of {count(len(rows))} recordings {count(cheaper)} cost less than sending everything, "
        f"{count(same)} the same, {count(dearer)} more{no_call}."
    )


def transcript_table(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return titles and lines with one line a recording: its calls, and cost and all-in under each policy."""
    policies = list(dict.fromkeys(row.policy for row in rows))
    found: dict[tuple[str, int], dict[str, Row]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        place = seen[row.transcript, row.policy]
        seen[row.transcript, row.policy] += 1
        found.setdefault((row.transcript, place), {})[row.policy] = row
    titles = ("recording", "calls", "largest", *(f"{policy} (all-in)" for policy in policies))
    lines = []
    for (transcript, _), by_policy in found.items():
        first = next(iter(by_policy.values()))
        cells = [_cost_of(by_policy.get(policy)) for policy in policies]
        lines.append(
            (transcript, count(first.calls), count(max(row.peak_tokens for row in by_policy.values())), *cells)
        )
    return titles, lines


def _cost_of(row: Row | None) -> str:
    if row is None or not row.cost_unmanaged:
        return UNKNOWN
    return f"{percent(row.cost_ratio)} ({percent(row.cost_all_in)})"


def notes_of_rows(rows: Iterable[Row]) -> str:
    """Return a sentence about everything in the recordings but plain messages; empty if there is nothing.

    `rows` must belong to one policy, so that each recording counts once.
    """
    kinds: Counter[str] = Counter()
    recordings = 0
    for row in rows:
        recordings += 1
        kinds.update(row.kept_apart)
    return notes_sentence(kinds, recordings)


def notes_sentence(notes: Mapping[str, int], recordings: int = 1) -> str:
    """Return a sentence with the notes of one or more recordings; empty if there are none."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    kinds = sorted(filter(notes.get, notes), key=lambda kind: order.get(kind, len(order)))
    if not kinds:
        return ""
    counts = [f"{count(notes[kind])} {KINDS.get(kind, kind) if notes[kind] == 1 else kind}" for kind in kinds]
    subject = "The recording also holds" if recordings == 1 else "The recordings also hold"
    return f"{subject} {join_words(counts)}."


def is_sound(rows: Iterable[Row]) -> bool:
    """Return whether every view was legal and no message was lost."""
    return not any(row.illegal_views or row.lost_messages for row in rows)


def group_by_transcript(replays: Iterable[ReplayResult]) -> Iterator[tuple[ReplayResult, ...]]:
    """Yield the replays of each transcript, in order.

    A repeated policy begins another transcript, so that two files with the same name stay separate.
    """
    group: list[ReplayResult] = []
    for replay in replays:
        row = replay.row
        if group and (row.transcript != group[0].row.transcript or row.policy in [other.row.policy for other in group]):
            yield tuple(group)
            group = []
        group.append(replay)
    if group:
        yield tuple(group)


def join_words(words: Sequence[str]) -> str:
    """Join words as in a sentence: `a, b and c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
