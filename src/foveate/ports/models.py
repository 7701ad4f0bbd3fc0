"""Who answers a request, whole or piece by piece; what an answer costs; and who counts what a request holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from ..core.stamps import Usage

__all__ = ["Cost", "Delta", "Model", "StreamingModel", "TokenCounter", "Whole"]


class Model(Protocol):
    """Sends one rendered request to a provider, and waits for the answer."""

    name: str
    """What receipts call it, for example `anthropic:claude-haiku-4-5`."""
    format: str
    """Name of the format that its requests and responses are written in, such as `anthropic`."""

    def complete(self, body: Mapping[str, Any]) -> object | Awaitable[object]:
        """The response to a request, as `Format.parse_reply` reads it. `body`: as `Format.prompt` writes it, without
        the model's name. Raises whatever the provider's SDK raises.
        """
        ...


class Delta(Struct, frozen=True):
    """A piece of an answer, as it comes."""

    kind: Literal["text", "reasoning", "call"]
    text: str
    """Of the text, of the thoughts, or of a call's arguments as JSON."""
    name: str = ""
    """With the first piece of a call: the tool's name."""


class Whole(Struct, frozen=True):
    """The end of a streamed answer."""

    response: object
    """All of it, as `Format.parse_reply` reads it: what `complete` would have returned."""


class StreamingModel(Model, Protocol):
    """A model whose answers can be followed as they come."""

    def stream(self, body: Mapping[str, Any]) -> Iterator[Delta | Whole] | AsyncIterator[Delta | Whole]:
        """The answer's pieces, and last, once, the whole of it. Closing the iterator early ends the request."""
        ...


Cost = Callable[[Usage], float | None]
"""US dollars that so many tokens cost; None where that is not known."""


class TokenCounter(Protocol):
    """Counts, or estimates, tokens of text."""

    name: str

    def __call__(self, text: str) -> int:
        """Tokens of one piece of text."""
        ...
