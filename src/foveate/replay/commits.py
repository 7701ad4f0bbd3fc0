"""What the commits of a replay changed, told by the calls that saw it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.edits import Edit, Restore, Span, Summarize, Task
from ..core.receipts import Receipt
from .result import EditFigures

__all__ = ["edit_figures"]


def edit_figures(
    receipts: Iterable[Receipt], turns: Sequence[int], positions: Mapping[str, int]
) -> Iterator[EditFigures]:
    """The figures of every commit that changed what some call saw; what was planned after the last answer, none did.

    `turns`: what the conversation calls each of the calls, ascending. `positions`: of the messages, by id.
    """
    for receipt in receipts:
        call = bisect_left(turns, receipt.turn)
        changed = (receipt.tokens_before, receipt.bytes_before) != (receipt.tokens_after, receipt.bytes_after)
        if call < len(turns) and changed:
            touched = [positions[id] for edit in receipt.edits for id in _named(edit) if id in positions]
            yield EditFigures(
                turn=call + 1,
                edits=len(receipt.edits),
                tokens_before=receipt.tokens_before,
                tokens_after=receipt.tokens_after,
                first_position=min(touched, default=0),
                policies=", ".join(receipt.policies) or receipt.author,
            )


def _named(edit: Edit) -> list[str]:
    """Ids of the messages, or of the beginnings of spans, that an edit names."""
    match edit:
        case Restore(targets=places):
            pass
        case Summarize(span=span):
            places = (span,)
        case Task():
            places = ()
        case _:
            places = (edit.target,)
    return [place.first if isinstance(place, Span) else place.message for place in places]
