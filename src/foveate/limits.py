"""How large a request may be, as far as it is known: by the user, the profile, or the provider's refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from .core.budget import default_reserve
from .core.profiles import Profile
from .core.view import Budget, View
from .errors import BadInput, BadSetting, Refused
from .ports import TokenCounter

__all__ = ["Limits"]

_TOO_LONG = re.compile(
    r"too (?:long|large)|too many (?:\w+ )?tokens|(?:context|prompt).{0,10}(?:length|window|size|limit)"
    r"|maximum.{0,20}tokens|(?:input|prompt) tokens exceed",
    re.IGNORECASE,
)
_NOT_THE_PROMPT = re.compile(r"(?:string|array|name|image|max\w*tokens\W*(?:is)?) too (?:long|large)", re.IGNORECASE)
"""What is too large here is a field of the request, and a shorter conversation would not mend it."""
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,_]{2,}(?!\w)")
"""A number that stands alone: those in the names of models and requests say nothing."""
_COMPARED = re.compile(r"(\d[\d,]*)(?: \+ (\d[\d,]*))?(?: tokens?)? > (\d[\d,]*)")
"""The prompt, the answer asked for, and the limit, as Anthropic says it."""
_CONTEXT_IS = re.compile(r"context length (?:is|of) (\d[\d,]*)")
_ANSWER_IS = re.compile(r"(\d[\d,]*) in the completion")
_LEAST = 1_000
"""Smaller numbers in a refusal are status codes and the like."""
_SHARE = 0.8
"""Of what was refused, where the provider does not say how much it would take."""
_UNKNOWN = Budget(10**12, 0, 10**15, 10**9)


class Limits:
    """The window and the other limits of one conversation, and what travels beside its view."""

    def __init__(self, window: int | None, reserve: int | None, profile: Profile) -> None:
        self.window, self._reserve = window, reserve
        self._bytes, self._images = profile.max_bytes, profile.max_images
        self._overhead = (0, 0)  # tokens and bytes of system prompt and tools of the last prompt
        self._estimate = 0  # of the last prompt, by the counter
        self._measured = (0, 0)  # tokens of a prompt by the provider, and by the counter
        self._refusals = 0

    def require_window(self) -> None:
        """Raise BadSetting where neither model nor window was given."""
        if self.window is None:
            raise BadSetting(
                "How large may a prompt be? Pass window=200_000 (tokens), or model= with the name of a model whose "
                "window is known."
            )

    def budget(self) -> Budget:
        """The budget as far as it is known; without a window nothing is ever over it."""
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
        )

    def weigh(self, system: object, tools: Sequence[Mapping[str, Any]], count: TokenCounter) -> None:
        """Note the size of what travels beside the view. Raises BadInput where it cannot be written as JSON."""
        if system is None and not tools:
            self._overhead = (0, 0)
            return
        body = _encoded([system, list(tools)])
        self._overhead = (count(body.decode()), len(body))

    def weight(self, tools: Sequence[Mapping[str, Any]], count: TokenCounter) -> int:
        """Tokens of the tools' definitions alone. Raises BadInput as `weigh` does."""
        return count(_encoded(list(tools)).decode()) if tools else 0

    def estimated(self, view: View) -> int:
        """The counter's estimate for a prompt that shows this view; remembered until it is measured or refused."""
        self._estimate = view.tokens + self._overhead[0]
        return self._estimate

    @property
    def estimate(self) -> int:
        """The counter's estimate for the last prompt."""
        return self._estimate

    def measured(self, provider: int, counter: int) -> None:
        """A prompt was measured: later estimates are corrected by it."""
        if provider and counter:
            self._measured = (provider, counter)

    def answered(self) -> None:
        """A reply came: refusals are counted anew."""
        self._refusals = 0

    def refused(self, error: BaseException, view: View) -> None:
        """Learn from the refusal of a prompt. Raises Refused at the second in a row, and `error` if it is none."""
        text = f"{error} {getattr(error, 'body', '')}"
        status = getattr(error, "status_code", None)
        if not _is_too_long(text, status):
            raise error
        if self._refusals:
            raise Refused(f"The provider refused the prompt again after it was made smaller: {error}") from error
        self._refusals += 1
        if status == 413 or "bytes" in text or "request_too_large" in text:
            self._bytes = min(self._bytes, int((view.bytes + self._overhead[1]) * _SHARE))
            return
        estimate = max(1, self._estimate or self.estimated(view))
        prompt, limit, answer = _told(text)
        if prompt and limit:
            self.measured(prompt, estimate)
            self._narrow(limit)
            if answer:  # The provider counts the answer too, at the length that was asked for.
                self._reserve = max(answer, self._reserve or default_reserve(limit))
        else:
            reserve = self._reserve if self._reserve is not None else default_reserve(self.window or estimate)
            self._narrow(int(estimate * self.budget().scale * _SHARE) + reserve)
            if limit:
                self._narrow(limit)

    def _narrow(self, window: int) -> None:
        self.window = window if self.window is None else min(self.window, window)


def _is_too_long(text: str, status: object) -> bool:
    if status == 413:
        return True
    if status == 429:  # A rate: only a single request that is above it gets through by being smaller.
        return "request too large" in text.lower()
    return bool(_TOO_LONG.search(text)) and not _NOT_THE_PROMPT.search(text)


def _told(text: str) -> tuple[int, int, int]:
    """The tokens of the prompt, the limit and the answer asked for, as far as a refusal tells; 0 where it does not."""
    if compared := _COMPARED.search(text):
        prompt, answer, limit = (_number(number or "0") for number in compared.groups())
        return prompt, limit, answer
    found = sorted({_number(number) for number in _NUMBER.findall(text)})
    told = [number for number in found if number >= _LEAST]
    context, completion = _CONTEXT_IS.search(text), _ANSWER_IS.search(text)
    if context and completion and told:
        answer = _number(completion[1])
        return told[-1] - answer, _number(context[1]), answer
    if len(told) >= 2:
        return told[-1], told[-2], 0
    return 0, (told[0] if told else 0), 0


def _number(text: str) -> int:
    return int(re.sub(r"[,_]", "", text))


def _encoded(beside: list[Any]) -> bytes:
    try:
        return msgspec.json.encode(beside, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"The system prompt or the tools cannot be written as JSON: {error}.") from error


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is neither JSON nor an SDK object")
    return dump()
