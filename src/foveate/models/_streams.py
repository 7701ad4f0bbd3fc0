"""Streams of events gathered into a whole response: what the gatherers of both APIs share."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

from ..errors import BrokenStream
from ..ports import Delta

__all__ = ["Gatherer", "broken", "fields"]


class Gatherer(Protocol):
    """Takes one event of a stream after another."""

    def add(self, event: object) -> list[Delta]:
        """The pieces that this event brings."""
        ...

    def whole(self) -> dict[str, Any] | None:
        """The response that a request without a stream would have had; None while it is not whole."""
        ...


def fields(event: Any) -> dict[str, Any]:
    """What an event says, without the fields that were never set."""
    if isinstance(event, Mapping):
        return copy.deepcopy(dict(event))
    # No warnings: a block newer than the SDK dumps well, but pydantic remarks on it.
    said: dict[str, Any] = event.model_dump(exclude_unset=True, mode="json", by_alias=True, warnings=False)
    return said


def broken(model: str, error: Exception | None = None) -> BrokenStream:
    """The error for a stream that ended too early, because of `error` if that is known."""
    cause = getattr(error, "__cause__", None) or error
    why = "the server closed it" if error is None else f"{type(cause).__name__}: {cause}"
    return BrokenStream(
        f"The answer of {model} broke off before it was whole ({why}): the fault of the server, or of the network in "
        "between. Nothing of it was recorded; ask again."
    )
