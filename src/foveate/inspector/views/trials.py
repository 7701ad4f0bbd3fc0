"""Trials: the messages of a conversation replayed under another policy, call by call, without calling a model."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from msgspec import Struct

from ...conversation import Conversation
from ...core.call_context import Prices
from ...errors import BadSetting
from ...policies.presets import SHIPPED, load_preset
from ...replay.measure import DEFAULT_PRICES
from ...replay.recordings.recording import RecordedMessage, Recording
from ...replay.result import ReplayResult
from ...replay.run import replay
from ...replay.views import ViewLog
from ..jobs import Progress

__all__ = ["SUGGESTED", "Trial", "check_policy", "policy_choices", "recording_of", "try_policy"]

SUGGESTED = ("balanced", "coding", "frugal")
"""Presets to try if a person names none."""
_DEFAULT_WINDOW = 200_000
"""Tokens, for a conversation whose window is unknown."""


class Trial(Struct, frozen=True):
    """One replay: its figures, and the view of each call."""

    result: ReplayResult
    """The figures of `foveate replay`."""
    views: ViewLog
    """The views, by the number of the call in `result.calls`."""


@lru_cache(1)
def policy_choices() -> dict[str, str]:
    """Return the names of the policies to try, each with a description."""
    return {name: load_preset(name).description for name in SHIPPED}


def check_policy(name: str) -> str:
    """Return the name of a policy to try. Raises BadSetting for others: a page opens no policy file."""
    kept = name.removeprefix("keep-last-")
    if name in policy_choices() or (kept != name and kept.isascii() and kept.isdigit() and 0 < len(kept) < 5):
        return name
    choices = ", ".join(policy_choices())
    raise BadSetting(f"There is no preset {name[:60]!r}. Choose one of {choices} or keep-last-N.")


def recording_of(chat: Conversation) -> Recording:
    """Return the whole history of a conversation as a recording, with the times of its messages."""
    rows = chat.history()
    models = Counter(row.stamp.model for row in rows if row.stamp.model)
    messages = tuple(
        RecordedMessage(row.message, 0, row.stamp.time, row.stamp.usage, row.id, row.stamp.origin, row.stamp.stop)
        for row in rows
    )
    model = models.most_common(1)[0][0] if models else ""
    return Recording(chat.name, "", messages, model, name=chat.name)


def window_of(chat: Conversation) -> int:
    """Return the window of a conversation in tokens, or the usual one if it is unknown."""
    budget = chat.budget
    return budget.window if budget.has_window else _DEFAULT_WINDOW


def try_policy(
    recording: Recording,
    policy: str,
    *,
    window: int,
    provider: str,
    prices: Prices = DEFAULT_PRICES,
    progress: Progress | None = None,
) -> Trial:
    """Replay a recording under a policy, and keep the view of each call.

    Raises DoesNotFit if a system prompt and a pending request are larger than the window.
    """
    result = replay(
        recording,
        policy=check_policy(policy),
        window=window,
        provider=provider,
        prices=prices,
        transcript=recording.name,
        views=True,
        progress=progress,
    )
    assert result.views is not None
    return Trial(result, result.views)
