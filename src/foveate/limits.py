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

_TOO_LONG = re.compile(r"too (?:long|large|many)|context.{0,10}(?:length|window)|maximum.{0,20}tokens", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d,_]{2,}")
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
        try:
            body = msgspec.json.encode([system, list(tools)], enc_hook=_plain)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(f"The system prompt or the tools cannot be written as JSON: {error}.") from error
        self._overhead = (count(body.decode()), len(body))

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
        if not (_TOO_LONG.search(text) or status == 413):
            raise error
        if self._refusals:
            raise Refused(f"The provider refused the prompt again after it was made smaller: {error}") from error
        self._refusals += 1
        if status == 413 or "bytes" in text or "request_too_large" in text:
            self._bytes = min(self._bytes, int((view.bytes + self._overhead[1]) * _SHARE))
            return
        found = sorted({int(re.sub(r"[,_]", "", number)) for number in _NUMBER.findall(text)})
        told = [number for number in found if number >= _LEAST]
        estimate = max(1, self._estimate or self.estimated(view))
        if len(told) >= 2:
            self.measured(told[-1], estimate)
            self._narrow(told[-2])
        else:
            reserve = self._reserve if self._reserve is not None else default_reserve(self.window or estimate)
            self._narrow(int(estimate * self.budget().scale * _SHARE) + reserve)
            if told:
                self._narrow(told[0])

    def _narrow(self, window: int) -> None:
        self.window = window if self.window is None else min(self.window, window)


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is neither JSON nor an SDK object")
    return dump()
