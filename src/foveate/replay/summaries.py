"""Summaries in a replay: written without a model, and billed as if a model had written them.

What a real model would say is not known, so a replay shows what a policy does and costs, not how good its summaries
are: the stand-in keeps the first characters of each message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..core.sizes import estimate, tokens_of
from ..core.summaries import Summary, SummaryRequest
from ..core.view import Prices
from ..ports import Summarizer

__all__ = ["Billed", "Written"]


class Billed:
    """A summarizer that keeps account of what its calls would have cost."""

    def __init__(self, summarizer: Summarizer, prices: Prices) -> None:
        self._summarizer = summarizer
        self._prices = prices
        self._due = 0.0
        self.name = getattr(summarizer, "name", "")
        self.needs_no_model = getattr(summarizer, "needs_no_model", False)
        self.calls = 0
        """How many summaries were asked for."""

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        """The summary. Its input is billed like any other that is not cached yet, its output as output."""
        self.calls += 1
        read = sum(tokens_of(message) for message in request.messages) + estimate(request.previous)
        self._due += self._prices.write * read
        text = self._summarizer(request)
        written = text.text if isinstance(text, Summary) else text
        self._due += self._prices.output * estimate(written if isinstance(written, str) else "")
        return text

    def due(self) -> float:
        """The cost of what was asked since this was called last, in tokens of base input price."""
        due, self._due = self._due, 0.0
        return due


class Written:
    """What is asked for ahead of time in a replay: it is written at once, so that a replay is the same again."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._answer: object = None
        self._error: Exception | None = None
        try:
            self._answer = call()
        except Exception as error:
            self._error = error

    def done(self) -> bool:
        """It is."""
        return True

    def result(self) -> object:
        """What was written, or what was raised instead."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Nothing is left to wait for."""

    def cancel(self) -> None:
        """It is there already."""
