"""The protocols of models and token counters, and the pieces of a streamed answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from ..core.stamps import Usage

__all__ = ["Cost", "CostOf", "Delta", "Gatherer", "Model", "StreamEnd", "StreamingModel", "TokenCounter"]


class Model(Protocol):
    """Sends a rendered request to a provider and waits for the response."""

    @property
    def name(self) -> str:
        """Its name in receipts, for example `anthropic:claude-haiku-4-5`."""
        ...

    @property
    def format(self) -> str:
        """The name of its wire format, such as `anthropic`."""
        ...

    def complete(self, body: Mapping[str, Any]) -> object | Awaitable[object]:
        """Return the response to a request, for `Format.parse_reply`. `body`: from `Format.prompt`, without the model's
        name; later requests share its messages, so do not change them. Raises the errors of the provider's SDK.
        """
        ...


class Delta(Struct, frozen=True):
    """A piece of a streamed answer."""

    kind: Literal["text", "reasoning", "call"]
    """The kind of content that the piece belongs to."""
    text: str
    """A piece of the text, of the reasoning, or of a call's arguments as JSON."""
    name: str = ""
    """The tool's name, in the first piece of a call."""


class Gatherer(Protocol):
    """Gathers one streamed answer into the response that a request without a stream gives."""

    def feed(self, piece: object) -> list[Delta]:
        """Take the next piece of the stream, and return the pieces of the answer that it completes.

        `piece`: one event (a dict or the SDK's object), or bytes or text of the server-sent events, cut at any place.
        Events of unknown kinds change nothing. Raises BrokenStream if the server reports an error in the stream, or if
        an event is malformed.
        """
        ...

    def whole(self) -> dict[str, Any] | None:
        """Return the whole response, for `Format.parse_reply`; None while it is incomplete."""
        ...

    def partial(self) -> dict[str, Any] | None:
        """Return the response as far as it has arrived, for `Conversation.record(..., interrupted=True)`.

        None if nothing has arrived. It may end in the middle of a text or of a call.
        """
        ...


class StreamEnd(Struct, frozen=True):
    """The end of a streamed answer."""

    response: object
    """The whole response, as `complete` would return it."""


class StreamingModel(Model, Protocol):
    """A model that can stream its answers."""

    def stream(self, body: Mapping[str, Any]) -> Iterator[Delta | StreamEnd] | AsyncIterator[Delta | StreamEnd]:
        """Yield the pieces of the answer, and the whole response at the end. Closing the iterator ends the request.

        If the iterator has a method `partial` (`Gatherer.partial`), agents record what that returns when the stream is
        stopped: exactly what the provider sent, with its usage. Otherwise they join the pieces.
        """
        ...


Cost = Callable[[Usage], float | None]
"""Returns the cost of a usage in US dollars; None if it is unknown."""

CostOf = Callable[[str], Cost | None]
"""Returns the cost of the model with this name; None if its price is unknown."""


class TokenCounter(Protocol):
    """Counts, or estimates, tokens of text: a function, or an object that is called like one."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens of a text."""
        ...
