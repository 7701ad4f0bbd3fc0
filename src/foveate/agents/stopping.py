"""What an agent makes of why a reply ended: which replies are no answer, and which calls are not to be carried out.

A reply that was cut may end in the middle of a call whose arguments happen to be read, and mean something else. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.messages import Message, ToolCall
from ..core.stamps import Stop

__all__ = ["CUT", "GO_ON", "is_unfinished", "refusal", "unfit"]

CUT = "length"
"""What a run says of why it ended, where its last reply was cut."""
GO_ON = "Your answer was cut off, for it was as long as it may be. Go on exactly where it broke off."
"""What a model is told where a reply that was cut is gone on with."""

_REFUSALS = {"refusal": "refusal", "filtered": "filtered"}
_TOLD = {
    "length": (
        "{name} was not called: your answer was cut off here, for it was as long as it may be. Call it again, with "
        "less in it, or do it in several steps."
    ),
    "refusal": "{name} was not called, for the answer that called it was refused.",
    "filtered": "{name} was not called, for the answer that called it was cut off by a filter of the provider.",
}


def refusal(stop: Stop | None) -> str:
    """Why a run ends with this reply though nothing was done: `refusal`, or `filtered`; "" where it does not."""
    return _REFUSALS.get(stop.kind, "") if stop else ""


def is_unfinished(stop: Stop | None) -> bool:
    """Whether there is more to be said of a reply that calls nothing: the provider paused, or it was cut."""
    return stop is not None and stop.kind in ("paused", "length")


def unfit(reply: Message, stop: Stop | None, calls: Sequence[ToolCall]) -> dict[int, str]:
    """What the model is told of those calls of a reply that are not carried out because of how it ended, by their
    places. Of one that was cut it is the call that it ends with.
    """
    if stop is None or stop.kind not in _TOLD:
        return {}
    cut = reply.parts[-1:] if stop.kind == "length" else reply.parts
    told = _TOLD[stop.kind]
    return {place: told.format(name=call.name[:80]) for place, call in enumerate(calls) if call in cut}
