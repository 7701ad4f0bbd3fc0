"""Helpers of the tests of conversations: open one, and read its views."""

from __future__ import annotations

from typing import Any

from foveate import Conversation, View, open_conversation
from foveate.open import grouped
from foveate.testing import BodyChecker


def opened(name: str = "c", *, provider: str = "openai", policy: Any = "none", **options: Any) -> Conversation:
    """Open a conversation whose clock ticks at each look; in memory unless `store` is set."""
    ticks = iter(range(1, 10**9))
    options.setdefault("window", 100_000)
    return open_conversation(name, format=provider, policy=policy, **grouped({"clock": lambda: next(ticks), **options}))


def shown(view: View) -> list[tuple[str, str, str]]:
    """Return each entry as (handle, role, text)."""
    return [(entry.handle, entry.message.role, entry.message.text) for entry in view]


def texts(view: View) -> list[str]:
    return [entry.message.text for entry in view]


def refusals(chat: Conversation, view: View | None = None) -> list[str]:
    """Return the refusals of the second checker for the body of this view."""
    body = chat.format.body(view or chat.prepare(), profile=chat._agent.profile)
    return [str(refusal) for refusal in BodyChecker(chat.format.name).check(body)]


def wire(chat: Conversation, view: View) -> list[bytes]:
    """Return the rendered messages of a view."""
    return [rendered.body for rendered in chat.format.rendered(view, profile=chat._agent.profile)]
