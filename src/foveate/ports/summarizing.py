"""Who writes a summary, and who has it written beside the conversation: in this process or in another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from ..core.summaries import Summary, SummaryRequest

__all__ = ["Background", "Elsewhere", "Handed", "Job", "Summarizer"]

Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Writes the summary it is asked for: plain text, or a JSON object with a string `summary`; a `Summary` also tells who
wrote it.

Called outside of any transaction. Whatever it raises counts as a failed attempt, and changes nothing. One that is
awaited can only be used by an async conversation.
"""


class Job(Protocol):
    """A call that is made beside the conversation. None of its methods raises, but for `result`."""

    def done(self) -> bool:
        """Whether the call has ended, well or badly."""
        ...

    def result(self) -> object:
        """What the call returned. Raises what it raised. Only asked once it is done."""
        ...

    def wait(self) -> object:
        """Returns when the call has ended, or when whoever runs it has lost patience; or an awaitable that does."""
        ...

    def cancel(self) -> object:
        """Nobody wants the result any more. Waits for nothing; a future that it returns is done when the call has
        ended.
        """
        ...


Background = Callable[[Callable[[], object]], Job]
"""Begins a call, and returns at once. The call asks a summarizer, so it may return an awaitable, and touches nothing of
the conversation. Called by the conversation's own thread, one call at a time. With an attribute `eager` that is true,
whatever the view fits without is begun there; else only what a policy asks for ahead.
"""


class Handed(Struct, frozen=True):
    """What a conversation wants to have summed up by somebody else. Names things, and holds nothing that was said."""

    tenant: str
    name: str
    number: int = 0
    """Of the newest edit, when it was wanted: a summary behind it may have done it already."""
    policies: tuple[str, ...] = ()
    """Names of the policies that ask."""
    window: int | None = None
    """The model's window in tokens, as far as it is known."""
    reserve: int | None = None
    format: str = ""


class Elsewhere(Protocol):
    """A background in another process, where a call cannot be sent: it opens the conversation and sums it up there.

    What it did comes back through the journal. With an attribute `eager` that is true it is handed whatever the view
    fits without; else only what a policy asks for ahead.
    """

    def hand_on(self, wanted: Handed) -> object:
        """Take note of it. May wait for a database, not for the summary; whatever it raises is logged."""
        ...
