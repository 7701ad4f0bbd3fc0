"""Plans of the inspector: under which policy, model and window, and the conversation opened with them.

A store does not record the policy of a program. A person chooses it, and the page says where each value comes from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ...conversation import Conversation
from ...core.context import Rates, rates_of
from ...core.profiles import window_of
from ...core.receipts import Receipt
from ...core.stamps import Stamp
from ...core.view import Entry
from ...errors import BadInput, BadSetting, ConflictError
from ...models.known import format_of_model
from ...open import Options, cost_of, open_conversation
from ...policies import PRESET_NAMES
from ...policies.presets.mechanisms import registered
from ...settings import Settings, load
from ..views.places import Place
from .dry_run import DryRun, measure_plan

__all__ = ["Choice", "PlanSettings", "apply_plan", "compact", "dry_run", "read_settings"]

_ASSUMED_WINDOW: Final = 200_000
"""Tokens, where neither the settings nor the model tell the window."""
_WITHOUT_MODEL: Final = ("digest", "first-characters")
"""Summarizers that need no model and cost nothing."""


class Choice(Struct, frozen=True):
    """The settings of a plan."""

    policy: str
    """A preset's name, or the policy of the settings."""
    model: str = ""
    """The model whose prices and rules count; "" for an unknown one."""
    window: int = _ASSUMED_WINDOW
    """The model's window in tokens."""
    summarizer: str = "digest"
    """The summarizer's name."""


class PlanSettings(Struct, frozen=True):
    """The suggested settings of a plan, where they come from, and what else can be chosen."""

    choice: Choice
    """The suggested settings."""
    sources: dict[str, str]
    """The source of each of them, in a few words; "" for a model that is not known."""
    policies: tuple[str, ...]
    """All policies that can be chosen."""
    summarizers: tuple[str, ...]
    """All summarizers that can be chosen."""

    def chosen(self, policy: str, model: str, window: str, summarizer: str) -> Choice:
        """Return the suggested settings with these values in their place; "" keeps a suggestion.

        Raises BadSetting for a policy or summarizer that cannot be chosen, and for a window that is no number.
        """
        for kind, value, known in (
            ("policy", policy, self.policies),
            ("summarizer", summarizer, self.summarizers),
        ):
            if value and value not in known:
                raise BadSetting(f"There is no {kind} {value[:80]!r} here. Choose one of {', '.join(known)}.")
        tokens = window.replace(",", "").replace(" ", "").replace("_", "")
        if tokens and not (tokens.isascii() and tokens.isdigit() and 1_000 <= int(tokens[:12]) <= 10**8):
            raise BadSetting(f"The window must be a number of tokens from 1,000 to 100,000,000, not {window[:40]!r}.")
        model = model.strip()[:200] or self.choice.model
        known_window = window_of(model) if model != self.choice.model else None
        return Choice(
            policy or self.choice.policy,
            model,
            int(tokens) if tokens else known_window or self.choice.window,
            summarizer or self.choice.summarizer,
        )


def read_settings(chat: Conversation) -> PlanSettings:
    """Return the suggested settings for a conversation.

    They come from `foveate.toml` and the environment of this process, and from the newest request.
    """
    settings = load(policy=None, environ=os.environ, folder=Path())
    newest = _newest_stamp(chat)
    policy, policy_source = _set(settings, "policy")
    is_named = isinstance(policy, str)
    model, model_source = (newest.model, "the newest reply") if newest and newest.model else _set(settings, "model")
    window, window_source = _set(settings, "window")
    if window is None:
        window, window_source = window_of(str(model)), f"the model {model}"
    if window is None:
        window, window_source = _ASSUMED_WINDOW, "an assumption: neither the settings nor the model names one"
    summarizer, summarizer_source = _set(settings, "summarizer")
    if not isinstance(summarizer, str) or not summarizer:
        summarizer, summarizer_source = "digest", "an assumption: it needs no model and costs nothing"
    named = [name.replace("-N", "-5") for name in PRESET_NAMES if name != "off"]
    return PlanSettings(
        Choice(policy if is_named else "balanced", str(model or ""), int(window), summarizer),
        {
            "policy": policy_source,
            "model": model_source if model else "",
            "window": window_source,
            "summarizer": summarizer_source,
        },
        tuple(dict.fromkeys([policy, *named, *registered()] if is_named else [*named, *registered()])),
        tuple(dict.fromkeys([summarizer, *_WITHOUT_MODEL])),
    )


def dry_run(chat: Conversation, choice: Choice) -> tuple[DryRun, Place]:
    """Return the effect of the plan of the next request, and the place that it counts for.

    Changes nothing. Raises what `Conversation.plan` raises.
    """
    with _opened(chat, choice) as planned:
        sent, overhead = _newest_request(planned, chat)
        plan = planned.plan(window=_room(choice, overhead))
        head = planned._session.head
        run = measure_plan(plan, sent, first=head.number + 1, rates=_rates(choice.model), overhead=overhead)
        return run, Place.of(head)


def apply_plan(chat: Conversation, choice: Choice, place: Place | None) -> tuple[Receipt, ...]:
    """Commit the plan that `dry_run` showed at `place`.

    Raises ConflictError if the conversation changed since, and what `Conversation.apply_plan` raises.
    """
    with _opened(chat, choice) as planned:
        if Place.of(planned._session.head) != place:
            raise ConflictError("The conversation changed since this plan was shown. Read the new plan below.")
        return planned.apply_plan(window=_room(choice, _newest_request(planned, chat)[1]))


def compact(chat: Conversation, choice: Choice, focus: str) -> Receipt:
    """Show the oldest part as a summary that concentrates on `focus`. Raises what `Conversation.compact` raises."""
    with _opened(chat, choice) as planned:
        return planned.compact(focus)


@contextmanager
def _opened(chat: Conversation, choice: Choice) -> Iterator[Conversation]:
    """Open the conversation with these settings. It is closed afterwards, so that no call of it seems to be begun."""
    state = chat._session.state
    planned = open_conversation(
        chat.name,
        store=state.store,
        format=format_of_model(choice.model) or chat.format.name,
        model=choice.model,
        window=choice.window,
        policy=choice.policy,
        summarizer=choice.summarizer,
        expand=state.projection.offers_expand,
        options=Options(tenant=state.head.tenant, background=False),
    )
    try:
        yield planned
    finally:
        planned.close()


def _newest_request(chat: Conversation, known: Conversation) -> tuple[tuple[Entry, ...], int]:
    """Return the entries of the newest answered request, and its tokens outside of them: system prompt and tools.

    The tokens are known if the request was made for the same model; else 0. `known`: the same conversation, which
    stays open and remembers its past.
    """
    state, other = chat._session.state, known._session.state
    turn = state.projection.facts.turn
    if not turn:
        return (), 0
    is_same = (state.profile, state.model.name, state.counter) == (other.profile, other.model.name, other.counter)
    with known._session.lock:  # A long look at the past would hold this lock, and other pages wait for it.
        is_quick = is_same and known._session.past.is_near(turn)
    sent = (known if is_quick else chat).as_of(turn)
    stamp = _newest_stamp(chat)
    is_known = stamp is not None and stamp.turn == turn and stamp.estimate and stamp.model == state.model.name
    return sent.entries, max(0, stamp.estimate - sent.tokens) if is_known and stamp is not None else 0


def _room(choice: Choice, overhead: int) -> int:
    """Return the tokens of the window that the messages may have."""
    if choice.window <= overhead:
        raise BadInput(
            f"The system prompt and tools of the newest request take {overhead:,} tokens, and the window has "
            f"{choice.window:,}. Choose a larger window."
        )
    return choice.window - overhead


def _newest_stamp(chat: Conversation) -> Stamp | None:
    """Return the stamp of the newest reply that is shown."""
    replies = (entry for entry in reversed(chat.view.entries) if entry.stamp.origin == "assistant")
    return next((entry.stamp for entry in replies if entry.kind == "message"), None)


def _set(settings: Settings, name: str) -> tuple[Any, str]:
    """Return a setting and its source."""
    found = settings.values[name]
    return found.value, "the default" if found.source == "default" else found.source


def _rates(model: str) -> Rates | None:
    cost = cost_of(model) if model else None
    return rates_of(cost) if cost is not None else None
