"""Summaries in a replay: written at once, and billed as if a model had written them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..core.call_context import Prices
from ..core.sizes import estimate, tokens_of
from ..core.summaries import Summary, SummaryRequest
from ..ports import Summarizer

__all__ = ["BilledSummarizer", "ImmediateCall"]


class BilledSummarizer:
    """A summarizer that adds up what its calls would have cost.

    A replay calls no model for summaries: by default it takes the first characters of each message. So it shows the
    effect and the cost of a policy, not the quality of its summaries.
    """

    def __init__(self, summarizer: Summarizer, prices: Prices) -> None:
        self._summarizer = summarizer
        self._prices = prices
        self._pending: list[tuple[int, int]] = []  # tokens read and written, of each summary that is not billed yet
        self.name = getattr(summarizer, "name", "")
        self.needs_no_model = getattr(summarizer, "needs_no_model", False)
        self.calls = 0
        """The number of summaries requested."""
        self.requests: list[tuple[int, int]] = []
        """Tokens and cached tokens of the request for each summary that is billed."""
        self.written = 0
        """Tokens of the summaries that are billed."""

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        """Return the summary. Its input is billed as not cached, its output as output."""
        self.calls += 1
        read = sum(tokens_of(message) for message in request.messages) + estimate(request.previous)
        self._pending.append((read, 0))
        text = self._summarizer(request)
        written = text.text if isinstance(text, Summary) else text
        self._pending[-1] = read, estimate(written if isinstance(written, str) else "")
        return text

    def due(self) -> float:
        """Bill the summaries since the last call of this method. Returns their cost, in tokens of base input price."""
        pending, self._pending = self._pending, []
        self.requests += [(read, 0) for read, _ in pending]
        self.written += sum(written for _, written in pending)
        return sum([self._prices.write * read + self._prices.output * written for read, written in pending], 0.0)


class ImmediateCall:
    """Runs a background summary at once, so that a replay is reproducible."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._answer: object = None
        self._error: Exception | None = None
        try:
            self._answer = call()
        except Exception as error:
            self._error = error

    def done(self) -> bool:
        """Return True: the call is complete."""
        return True

    def result(self) -> object:
        """Return the result, or raise the error of the call."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Do nothing: the call is complete."""

    def cancel(self) -> None:
        """Do nothing: the call is complete."""
