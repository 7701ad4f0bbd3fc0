"""A chain of summarizers: each is asked only if the one before failed or wrote what cannot be taken.

Knows whom to ask and what becomes of an answer, not what a good summary is (`acceptance.py`). The same steps serve
those that are called and those that are awaited.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from functools import partial
from typing import NamedTuple

from ..core.summaries import Summary, SummaryRequest, read_answer
from ..errors import BadSetting, NoSummary
from ..ports import Summarizer
from .acceptance import accept
from .timeout import awaited, bounded, check_timeout, tied

__all__ = ["checked", "fallback", "name_of"]


def fallback(*rungs: Summarizer, timeout: float | None = None) -> Summarizer:
    """A summarizer that asks these, one after the other, and returns the first summary that is accepted.

    Each is a function of a SummaryRequest, called or awaited. What it raises, and what `accept` says against its text,
    is a reason to ask the next; the `Summary` returned tells who wrote it (`by`) and why those before did not do
    (`refused`). `timeout`: seconds that each may take, None for as long as it does; one that does not come back is left
    behind in a thread of its own. Those that need no model (`first_characters`, `digest_history`) always come back, and
    are taken at their word. Raises NoSummary where none did, and BadSetting for no rung at all.
    """
    if not rungs or not all(map(callable, rungs)):
        raise BadSetting("fallback takes one or more summarizers: functions of a SummaryRequest.")
    check_timeout(timeout)
    return _Chain(rungs, timeout, measures=True)


def checked(summarizer: Summarizer) -> Summarizer:
    """The same summarizer, whose text is judged before it is used, but for its length, which every policy measures.

    Raises what it raises, and NoSummary for a text that is not accepted. A chain, and what needs no model, is returned
    as it is.
    """
    if isinstance(summarizer, _Chain) or _needs_no_model(summarizer):
        return summarizer
    return _Checked(summarizer)


def name_of(summarizer: object) -> str:
    """What receipts call a summarizer: its `name`, or that of the function."""
    name = getattr(summarizer, "name", None) or getattr(summarizer, "__name__", None)
    return name if isinstance(name, str) and name != "<lambda>" else "summarizer"


class _Chain:
    """See `fallback`."""

    def __init__(self, rungs: tuple[Summarizer, ...], timeout: float | None, *, measures: bool) -> None:
        self.rungs = rungs
        self.name = " -> ".join(map(name_of, rungs))
        self._timeout, self._measures = timeout, measures

    def __call__(self, request: SummaryRequest) -> Summary | Awaitable[Summary]:
        return self._from(0, request, [])

    def _from(self, first: int, request: SummaryRequest, refused: list[str]) -> Summary | Awaitable[Summary]:
        for number in range(first, len(self.rungs)):
            rung = self.rungs[number]
            try:
                answer = bounded(partial(rung, request), None if _needs_no_model(rung) else self._timeout)
            except Exception as error:  # Whatever a rung does, the next is asked.
                refused.append(_failure(rung, error))
                continue
            if inspect.isawaitable(answer):
                return tied(self._later(number, answer, request, refused), answer)
            if (judged := self._judged(rung, answer, request)).summary is not None:
                return _signed(judged.summary, refused)
            refused += judged.why
        raise NoSummary(refused)

    async def _later(
        self, number: int, answer: Awaitable[str | Summary], request: SummaryRequest, refused: list[str]
    ) -> Summary:
        rung = self.rungs[number]
        try:
            said = await awaited(answer, self._timeout)
        except Exception as error:
            refused.append(_failure(rung, error))
        else:
            if (judged := self._judged(rung, said, request)).summary is not None:
                return _signed(judged.summary, refused)
            refused += judged.why
        rest = self._from(number + 1, request, refused)
        return await rest if inspect.isawaitable(rest) else rest

    def _judged(self, rung: Summarizer, answer: object, request: SummaryRequest) -> _Judged:
        return _judged(rung, answer, request, measures=self._measures)


class _Checked:
    """See `checked`."""

    def __init__(self, summarizer: Summarizer) -> None:
        self._summarizer = summarizer
        self.name = name_of(summarizer)

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        answer = self._summarizer(request)
        if inspect.isawaitable(answer):
            return tied(self._later(answer, request), answer)
        return self._told(answer, request)

    async def _later(self, answer: Awaitable[str | Summary], request: SummaryRequest) -> str | Summary:
        return self._told(await answer, request)

    def _told(self, answer: str | Summary, request: SummaryRequest) -> str | Summary:
        if not isinstance(answer, str | Summary) or not read_answer(_text(answer)):
            return answer  # The engine has its own words for what is no text, and for nothing.
        judged = _judged(self._summarizer, answer, request, measures=False)
        if judged.summary is None:
            raise NoSummary(judged.why)
        is_changed = judged.summary.refused or isinstance(answer, Summary)
        return judged.summary if is_changed else judged.summary.text


class _Judged(NamedTuple):
    summary: Summary | None
    """The summary to take; None if it is refused."""
    why: tuple[str, ...]


def _judged(rung: Summarizer, answer: object, request: SummaryRequest, *, measures: bool) -> _Judged:
    name = name_of(rung)
    if not isinstance(answer, str | Summary):
        return _Judged(None, (f"{name}: it returned {type(answer).__name__}, not text",))
    before = answer.refused if isinstance(answer, Summary) else ()
    by = (answer.by if isinstance(answer, Summary) else "") or name
    text = read_answer(_text(answer))
    if _needs_no_model(rung) and text:
        return _Judged(Summary(text, by, before), ())
    verdict = accept(request, text, measures=measures)
    if verdict.why:
        return _Judged(None, (*before, f"{by}: {verdict.why}"))
    dropped = dict.fromkeys(f"{by}: dropped {why}" for why in verdict.dropped)
    return _Judged(Summary(verdict.text, by, (*before, *dropped)), ())


def _signed(summary: Summary, refused: list[str]) -> Summary:
    return Summary(summary.text, summary.by, (*refused, *summary.refused))


def _failure(rung: Summarizer, error: Exception) -> str:
    if isinstance(error, NoSummary):
        return "; ".join(error.refused)
    told = " ".join(str(error).split())
    return f"{name_of(rung)}: {type(error).__name__}{f': {told:.200}' if told else ''}"


def _needs_no_model(rung: object) -> bool:
    """Whether a rung says of itself that it is made of code alone: it answers at once, and invents nothing."""
    return getattr(rung, "needs_no_model", False) is True


def _text(answer: str | Summary) -> str:
    return answer.text if isinstance(answer, Summary) else answer
