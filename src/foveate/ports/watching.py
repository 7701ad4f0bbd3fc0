"""What may watch a conversation: how much it does and for how long, never what was said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..core.totals import Totals

__all__ = ["Fact", "Watch"]

Fact = str | int | bool | tuple[str, ...]
"""What is told of something that was done, under a plain name such as `tokens_before`."""


class Watch(Protocol):
    """Is told what a conversation does, for traces and metrics: how much and how long, never what was said.

    Called by the conversation while it works, so it must not wait. One that raises is logged and left out from then on.
    """

    def begin(self, doing: str) -> object:
        """Something begins: `plan`. What is returned is handed to `end`, in the same thread or task."""
        ...

    def end(self, begun: object, facts: Mapping[str, Fact], error: BaseException | None) -> None:
        """What `begin` was told of is done, or failed."""
        ...

    def did(self, doing: str, facts: Mapping[str, Fact]) -> None:
        """Something was done: `compact` or `expand`; or what a call was billed is known: `record`."""
        ...

    def count(self, totals: Totals) -> None:
        """The sums of all that was done since the conversation is watched."""
        ...
