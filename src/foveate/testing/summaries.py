"""A summarizer that follows a script, to test what is asked of one and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.summaries import Summary, SummaryRequest

__all__ = ["ScriptedSummarizer"]

Answer = str | Summary | BaseException | Callable[[SummaryRequest], str | Summary]


class ScriptedSummarizer:
    """Gives one scripted answer after the other, the last one again and again, and keeps what it was asked.

    An answer is the text, or a Summary; an exception, which is raised; or a function of the request. As it is, it
    serves a `Conversation`; its method `later` serves an `AsyncConversation`.

    >>> summarizer = ScriptedSummarizer(["In short.", OSError("down")])
    >>> summarizer(SummaryRequest("compact", (), 100)), len(summarizer.requests)
    ('In short.', 1)
    """

    def __init__(self, answers: Iterable[Answer] = ("So far, so good.",)) -> None:
        self._answers = list(answers)
        self.requests: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> str | Summary:
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, str | Summary) else answer(request)

    async def later(self, request: SummaryRequest) -> str | Summary:
        """The same, to be awaited."""
        return self(request)
