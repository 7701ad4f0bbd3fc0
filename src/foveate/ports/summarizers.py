"""The protocols of summarizers, and of background work in this process or in another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from ..core.catalog import Prompt
from ..core.summaries import Summary, SummaryRequest

__all__ = ["Background", "CompactionRequest", "Job", "Prompts", "RemoteBackground", "Summarizer"]

Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Returns the requested summary: plain text, or a JSON object with a string `summary`; a `Summary` also names its
writer.

It is called outside of any transaction. An exception counts as a failed attempt, and changes nothing. An awaitable
summarizer needs an async conversation.
"""

Prompts = Mapping[str, str] | Callable[[str], Iterable[Prompt]]
"""Texts by the names of prompts, or a function that returns the prompts of a tenant, such as `store.prompts`."""


class Job(Protocol):
    """A call that runs in the background. Of its methods only `result` raises."""

    def done(self) -> bool:
        """Return whether the call has ended, with a result or an exception."""
        ...

    def result(self) -> object:
        """Return the result of the call, or raise its exception. Called only when it is done."""
        ...

    def wait(self) -> object:
        """Return when the call has ended or timed out; or return an awaitable that does so."""
        ...

    def cancel(self) -> object:
        """Cancel the call without waiting. A future that it returns is done when the call has ended."""
        ...


Background = Callable[[Callable[[], object]], Job]
"""Starts a call and returns at once. The call asks a summarizer, so it may return an awaitable; it does not use the
conversation. The conversation's thread starts one call at a time. With a true attribute `eager`, every summary that the
view can wait for is started here; else only those that a policy requests ahead.
"""


class CompactionRequest(Struct, frozen=True):
    """A request to compact a conversation in another process. It contains no text of messages."""

    tenant: str
    """The owner of the conversation."""
    name: str
    """The conversation."""
    number: int = 0
    """The newest edit at the time of the request: a later summary may have served it already."""
    policies: tuple[str, ...] = ()
    """The names of the requesting policies."""
    window: int | None = None
    """The model's window in tokens; None if it is unknown."""
    reserve: int | None = None
    """Tokens kept free for the answer."""
    format: str = ""
    """The wire format of the conversation."""


class RemoteBackground(Protocol):
    """A background in another process, which opens the conversation and compacts it there.

    The result comes back through the journal. With a true attribute `eager` it gets every request that the view can
    wait for; else only those that a policy makes ahead.
    """

    def request_compaction(self, wanted: CompactionRequest) -> object:
        """Accept a request. It may wait for a database, but not for the summary; exceptions are logged."""
        ...
