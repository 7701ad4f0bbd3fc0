"""The limits of one conversation's requests: from the user, the profile, or a provider's refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..core.budget import NEAR, default_reserve
from ..core.call_context import NO_WINDOW, Budget
from ..core.length_errors import is_too_long
from ..core.profiles import Profile
from ..core.scalars import plain_scalar
from ..core.view import Entry, View
from ..errors import BadInput, Refused, UnknownWindow
from ..ports import TokenCounter

__all__ = ["Limits"]

_NUMBER = re.compile(r"(?<![\w.-])(?<!by )\d[\d,_]{2,}(?!\w)")
"""A number on its own. Numbers in the names of models and requests do not count, nor by how much a prompt is too long.
"""
_COMPARED = re.compile(r"(?<![\d,])(\d[\d,]*)(?: \+ (\d[\d,]*))?(?: tokens?)? > (\d[\d,]*)(?![\d,]| - )")
"""The prompt, the requested answer, and the limit, as Anthropic writes it."""
_CONTEXT_IS = re.compile(r"(?:context length (?:is|of)|must be <=) (\d[\d,]*)")
_ANSWER_IS = re.compile(
    r"(?<![\d,])(\d[\d,]*)(?: tokens)? (?:(?:in|for) the (?:completion|output)|output tokens|`max_new_tokens`)"
    r"|max_completion_tokens' is too large: (\d[\d,]*)"
)
_PROMPT_IS = re.compile(
    r"(?<![\d,])(\d[\d,]*) (?:input tokens|`inputs` tokens|in the messages|of text input|tokens from the input)"
)
_BOUND = re.compile(r"at least (?:\d[\d,]*) input tokens")
"""The server stopped counting there: the prompt may be much longer (vLLM)."""
_LEAST = 1_000
"""Smaller numbers in a refusal are status codes and the like."""
_MOST = 100_000_000
"""Larger ones are times and ids."""
_SHARES = (0.8, 0.5, 0.5)
"""Shares of the refused size to try one after the other, if the provider does not name its limit."""
_GROWTH = 1.25
"""Factor by which a guessed window grows."""
_PATIENCE, _PATIENCE_MAX = 8, 64
"""Accepted requests near a guessed window before a larger one is tried. Each new guess doubles them, so that a server
whose limit stands refuses few requests.
"""
_NO_LIMIT = 10**12
_UNKNOWN = Budget(_NO_LIMIT, 0, 10**15, 10**9)


class Limits:
    """The window and the other limits of one conversation, and the size of system prompt and tools."""

    def __init__(self, window: int | None, reserve: int | None, profile: Profile, doubt: float = 0.0) -> None:
        """`doubt`: by which share of the true count the conversation's counter may be too low."""
        self._given, self._learned, self._reserve, self._doubt = window, _NO_LIMIT, reserve, doubt
        self._guess = _NO_LIMIT  # after refusals without a number
        self._accepted, self._patience = 0, _PATIENCE // 2  # requests near the guess, and how many let it grow
        self._bytes, self._images = profile.max_bytes, profile.max_images
        self._overhead = (0, 0)  # tokens and bytes of system prompt and tools of the last prompt
        self._weighed: tuple[int, int, TokenCounter] | None = None  # their hash and length, and the counter
        self._estimate = 0  # of the last prompt, by the counter
        self._measured = (0, 0)  # tokens of a prompt by the provider, and by the counter
        self._refusals = 0

    @property
    def window(self) -> int | None:
        """The window in tokens, or a smaller one by the provider's refusals; None if neither is known."""
        known = min(self._given or _NO_LIMIT, self._learned, self._guess)
        return None if known == _NO_LIMIT else known

    @property
    def is_guess(self) -> bool:
        """Return whether the window is a guess, after a refusal that named no limit."""
        return self._guess < min(self._given or _NO_LIMIT, self._learned)

    def set_window(self, window: int | None) -> None:
        """Use this window from now on, unless the provider reported a smaller one."""
        self._given = window

    def require_window(self, model: str) -> None:
        """Raise UnknownWindow, with the name of the model, if no window is known."""
        if self.window is None:
            raise UnknownWindow(model)

    def budget(self, entries: Sequence[Entry] = ()) -> Budget:
        """Return the budget of a view of these entries as far as it is known; without a window nothing exceeds it."""
        if self.window is None:
            return msgspec.structs.replace(_UNKNOWN, overhead=self._overhead[0], overhead_bytes=self._overhead[1])
        reserve = default_reserve(self.window) if self._reserve is None else self._reserve
        provider, counter = self._measured
        return Budget(
            self.window,
            min(reserve, self.window // 2),
            self._bytes,
            self._images,
            *self._overhead,
            max(0.25, min(4.0, provider / counter)) if provider and counter else 1.0,
            self._doubt,
            _unmeasured_tokens(entries) if provider else NO_WINDOW,
        )

    def weigh(self, system: object, tools: Sequence[Mapping[str, Any]], count: TokenCounter) -> None:
        """Note the size of system prompt and tools. Raises BadInput if they cannot be written as JSON."""
        if system is None and not tools:
            self._overhead, self._weighed = (0, 0), None
            return
        body = _encoded([system, list(tools)])
        weighed = hash(body), len(body), count
        if weighed != self._weighed:  # They are the same in most requests, and often as long as a file.
            self._overhead = (count(body.decode()) + _added_by(tools, count), len(body))
            self._weighed = weighed

    def tool_tokens(self, tools: Sequence[Mapping[str, Any]], count: TokenCounter) -> int:
        """Return the tokens of the tools, with those that the provider adds. Raises BadInput as `weigh` does."""
        return count(_encoded(list(tools)).decode()) + _added_by(tools, count) if tools else 0

    def estimated(self, view: View) -> int:
        """Return the counter's estimate for a prompt with this view, and keep it until a prompt is measured."""
        self._estimate = view.tokens + self._overhead[0]
        return self._estimate

    @property
    def estimate(self) -> int:
        """The counter's estimate for the last prompt."""
        return self._estimate

    def measured(self, provider: int, counter: int) -> None:
        """Correct later estimates by a measured prompt."""
        if provider and counter:
            self._measured = (provider, counter)

    def answered(self) -> None:
        """Note that a reply came: refusals are counted from zero, and a guessed window may grow.

        A guess may be too small: the server was busy with other requests, or counts other tokens.
        """
        self._refusals = 0
        if not self.is_guess:
            return
        budget = self.budget()
        size, room = int(self._estimate * budget.scale), budget.window - budget.reserve
        if size > room:
            self._guess = self._window_for(size)
        self._accepted += size >= NEAR * room
        if self._accepted >= self._patience:
            self._accepted, self._guess = 0, int(self._guess * _GROWTH)

    def learn_from(self, error: BaseException, view: View) -> None:
        """Learn the limit from a refused prompt.

        Raises `error` itself if it is no refusal of the size, or if the requested answer alone is too long. Raises
        Refused if several smaller prompts were refused in a row.
        """
        text = f"{error} {getattr(error, 'body', '')}"
        status = getattr(error, "status_code", None)
        prompt, limit, answer = _numbers_in(text)
        if not is_too_long(text, status) or 0 < limit <= answer:
            raise error
        if self._refusals == len(_SHARES):
            self._refusals = 0
            raise Refused(f"The provider refused the prompt again after it was made smaller: {error}") from error
        share = _SHARES[self._refusals]
        self._refusals += 1
        if (status == 413 and "tokens" not in text) or "bytes" in text or "request_too_large" in text:
            self._bytes = min(self._bytes, int((view.bytes + self._overhead[1]) * share))
            return
        estimate = max(1, self._estimate or self.estimated(view))
        if limit:
            self._narrow(limit)
        if answer:  # The provider counts the answer too, at the requested length.
            self._reserve = max(answer, self._reserve or default_reserve(limit))
            self._narrow(2 * (limit - answer))  # A budget reserves at most half of its window.
        if prompt and limit:
            self.measured(prompt, estimate)
            self._guess = _NO_LIMIT
            return
        if self._refusals == 1:
            self._patience = min(2 * self._patience, _PATIENCE_MAX)
        self._accepted, size = 0, int(estimate * self.budget().scale * share)
        self._guess = min(self._guess, self._window_for(size))

    def _window_for(self, size: int) -> int:
        """Return the window in which a request of this size leaves room for the answer."""
        return size + (min(size // 9, 20_000) if self._reserve is None else self._reserve)

    def _narrow(self, window: int) -> None:
        self._learned = min(self._learned, window)


def _added_by(tools: Sequence[Mapping[str, Any]], count: TokenCounter) -> int:
    """Return the tokens that the provider adds for tools, if the counter knows them (`foveate.counters`)."""
    added = getattr(count, "tools", None)
    return int(added(tools)) if added and tools else 0


def _unmeasured_tokens(entries: Sequence[Entry]) -> int:
    """Return the tokens of the entries after the newest prompt that a provider measured."""
    tokens = 0
    for entry in reversed(entries):
        tokens += entry.tokens
        usage = entry.stamp.usage
        if usage is not None and usage.sent_tokens and entry.stamp.estimate and entry.kind == "message":
            break  # Its prompt ended before it.
    return tokens


def _numbers_in(text: str) -> tuple[int, int, int]:
    """Return the tokens of the prompt, the limit and the requested answer in a refusal; 0 for those it lacks."""
    if compared := _COMPARED.search(text):
        prompt, answer, limit = (_number(number or "0") for number in compared.groups())
        return prompt, limit, answer
    numbers = sorted({_number(number) for number in _NUMBER.findall(text)})
    sizes = [number for number in numbers if _LEAST <= number <= _MOST]
    context, completion, named = (pattern.search(text) for pattern in (_CONTEXT_IS, _ANSWER_IS, _PROMPT_IS))
    if context and completion and sizes:
        answer = _number(completion[1] or completion[2])
        size = _number(named[1]) if named else sizes[-1] - answer
        return 0 if _BOUND.search(text) else size, _number(context[1]), answer
    if len(sizes) >= 2:
        return sizes[-1], sizes[-2], 0
    return 0, (sizes[0] if sizes else 0), 0


def _number(text: str) -> int:
    return int(re.sub(r"[,_]", "", text))


def _encoded(values: list[Any]) -> bytes:
    try:
        return msgspec.json.encode(values, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(
            f"The system prompt or the tools cannot be written as JSON: {error}. A tool is its definition for the "
            'provider: foveate.tool(function).wire("openai") makes one of a function.'
        ) from error


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return plain_scalar(value) if dump is None else dump()
