"""Fallback: asks several summarizers in order, until one writes a summary that is accepted.

The same code serves summarizers that return and those that are awaited.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from functools import partial
from typing import NamedTuple

from ..core.summaries import Summary, SummaryRequest, not_text, read_answer
from ..errors import BadSetting, NoSummary
from ..ports import Summarizer
from .timeout import await_with_timeout, call_with_timeout, check_timeout, close_with

__all__ = ["checked", "fallback", "name_of"]


def fallback(*summarizers: Summarizer, timeout: float | None = None) -> Summarizer:
    """Return a summarizer that asks these in order, and returns the first accepted summary.

    Each is a function of a SummaryRequest, sync or async. If it raises, or `accept` refuses its text, the next one is
    asked; the returned `Summary` names its writer (`by`) and the failures before it (`refused`). `timeout`: seconds for
    each, or None; one that never returns is abandoned in its own thread. Summarizers without a model
    (`first_characters`, `digest_history`) always return, and are not judged. Raises NoSummary if all fail, and
    BadSetting without any summarizer.
    """
    if not summarizers or not all(map(callable, summarizers)):
        raise BadSetting("fallback needs at least one summarizer. Pass functions of a SummaryRequest.")
    check_timeout(timeout)
    return _Chain(summarizers, timeout)


def checked(summarizer: Summarizer) -> Summarizer:
    """Return the same summarizer with a check of each text, except of its length, which policies check.

    Raises NoSummary for a refused text, and the summarizer's own errors. A fallback, and a summarizer without a model,
    is returned unchanged.
    """
    if getattr(summarizer, "is_checked", False) is True or _needs_no_model(summarizer):
        return summarizer
    return _Checked(summarizer)


def name_of(summarizer: object) -> str:
    """Return the name of a summarizer in receipts: its attribute `name`, or the name of the function."""
    name = getattr(summarizer, "name", None) or getattr(summarizer, "__name__", None)
    return name if isinstance(name, str) and name != "<lambda>" else "summarizer"


class _Chain:
    """A summarizer that asks others in order."""

    is_checked = True
    """Read by `checked`: each text was judged already."""

    def __init__(self, summarizers: tuple[Summarizer, ...], timeout: float | None) -> None:
        self.summarizers = summarizers
        self.needs_no_model = all(map(_needs_no_model, summarizers))
        self.name = " -> ".join(map(name_of, summarizers))
        self._timeout = timeout

    def __call__(self, request: SummaryRequest) -> Summary | Awaitable[Summary]:
        return self._from(0, request, [])

    def _from(self, first: int, request: SummaryRequest, refused: list[str]) -> Summary | Awaitable[Summary]:
        for number in range(first, len(self.summarizers)):
            summarizer = self.summarizers[number]
            try:
                answer = call_with_timeout(
                    partial(summarizer, request), None if _needs_no_model(summarizer) else self._timeout
                )
            except Exception as error:  # The next one is asked after any failure.
                refused.append(_failure(summarizer, error))
                continue
            if inspect.isawaitable(answer):
                return close_with(self._later(number, answer, request, refused), answer)
            if (judged := self._judged(summarizer, answer, request)).summary is not None:
                return _signed(judged.summary, refused)
            refused += judged.why
        raise NoSummary(refused)

    async def _later(
        self, number: int, answer: Awaitable[str | Summary], request: SummaryRequest, refused: list[str]
    ) -> Summary:
        summarizer = self.summarizers[number]
        try:
            text = await await_with_timeout(answer, self._timeout)
        except Exception as error:
            refused.append(_failure(summarizer, error))
        else:
            if (judged := self._judged(summarizer, text, request)).summary is not None:
                return _signed(judged.summary, refused)
            refused += judged.why
        rest = self._from(number + 1, request, refused)
        return await rest if inspect.isawaitable(rest) else rest

    def _judged(self, summarizer: Summarizer, answer: object, request: SummaryRequest) -> _Judged:
        return _judged(summarizer, answer, request, measures=True)


class _Checked:
    """A summarizer whose texts are checked."""

    def __init__(self, summarizer: Summarizer) -> None:
        self._summarizer = summarizer
        self.name = name_of(summarizer)

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        answer = self._summarizer(request)
        if inspect.isawaitable(answer):
            return close_with(self._later(answer, request), answer)
        return self._check(answer, request)

    async def _later(self, answer: Awaitable[str | Summary], request: SummaryRequest) -> str | Summary:
        return self._check(await answer, request)

    def _check(self, answer: str | Summary, request: SummaryRequest) -> str | Summary:
        if not isinstance(answer, str | Summary) or not read_answer(_text(answer)):
            return answer  # The conversation itself reports a value that is no text, and an empty one.
        judged = _judged(self._summarizer, answer, request, measures=False)
        if judged.summary is None:
            raise NoSummary(judged.why)
        is_changed = judged.summary.refused or isinstance(answer, Summary)
        return judged.summary if is_changed else judged.summary.text


class _Judged(NamedTuple):
    summary: Summary | None
    """The summary to use; None if it is refused."""
    why: tuple[str, ...]


def _judged(summarizer: Summarizer, answer: object, request: SummaryRequest, *, measures: bool) -> _Judged:
    name = name_of(summarizer)
    if not isinstance(answer, str | Summary):
        return _Judged(None, (f"{name}: it {not_text(answer)}",))
    before = answer.refused if isinstance(answer, Summary) else ()
    by = (answer.by if isinstance(answer, Summary) else "") or name
    text = read_answer(_text(answer))
    if _needs_no_model(summarizer) and text:
        return _Judged(Summary(text, by, before), ())
    from .acceptance import accept  # Slow to load, and only texts of models are judged.

    verdict = accept(request, text, measures=measures)
    if verdict.why:
        return _Judged(None, (*before, f"{by}: {verdict.why}"))
    dropped = dict.fromkeys(f"{by}: dropped {why}" for why in verdict.dropped)
    return _Judged(Summary(verdict.text, by, (*before, *dropped)), ())


def _signed(summary: Summary, refused: list[str]) -> Summary:
    return Summary(summary.text, summary.by, (*refused, *summary.refused))


def _failure(summarizer: Summarizer, error: Exception) -> str:
    if isinstance(error, NoSummary):
        return "; ".join(error.refused)
    message = " ".join(str(error).split())
    return f"{name_of(summarizer)}: {type(error).__name__}{f': {message:.200}' if message else ''}"


def _needs_no_model(summarizer: object) -> bool:
    """Return whether a summarizer declares that it uses no model: it answers at once, and invents nothing."""
    return getattr(summarizer, "needs_no_model", False) is True


def _text(answer: str | Summary) -> str:
    return answer.text if isinstance(answer, Summary) else answer
