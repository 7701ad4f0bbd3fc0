"""The protocol of instrumentation: amounts and durations, never text of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..core.totals import Totals

__all__ = ["Fact", "Observer"]

Fact = str | int | bool | tuple[str, ...]
"""A fact about an operation, with a name such as `tokens_before`."""


class Observer(Protocol):
    """Receives the operations of a conversation for traces and metrics: amounts and durations, never text.

    The conversation calls it while it works, so it must not wait. After an exception, which is logged, it is not called
    any more.
    """

    def begin(self, operation: str) -> object:
        """Start an operation, such as `plan`. The result is passed to `end`, in the same thread or task."""
        ...

    def end(self, token: object, facts: Mapping[str, Fact], error: BaseException | None) -> None:
        """End an operation, which is done or failed."""
        ...

    def report(self, operation: str, facts: Mapping[str, Fact]) -> None:
        """Report an operation: `compact`, `expand`, or `record` with the billed usage of a call."""
        ...

    def count(self, totals: Totals) -> None:
        """Report the totals since the start of the instrumentation."""
        ...
