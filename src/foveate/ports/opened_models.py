"""The models that `open_model` returns: one that is called, and one that is awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from .models import StreamingModel
from .reply_streams import AsyncReplyStream, ReplyStream

__all__ = ["AsyncModel", "SyncModel"]


class SyncModel(StreamingModel, Protocol):
    """A model whose calls return the answer: `open_model(name)`."""

    def complete(self, body: Mapping[str, Any]) -> Any:
        """Return the response: the SDK's object, or a dict of `demo`. See `Model.complete`."""
        ...

    def stream(self, body: Mapping[str, Any]) -> ReplyStream:
        """Return an iterator over the pieces of the answer, with the whole response at the end. Closing it ends the
        request. Raises BrokenStream if the answer ends before it is complete.
        """
        ...

    def close(self) -> None:
        """Close the connections that this model opened."""
        ...


class AsyncModel(StreamingModel, Protocol):
    """A model whose calls are awaited: `open_model(name, asynchronous=True)`."""

    def complete(self, body: Mapping[str, Any]) -> Awaitable[Any]:
        """Return the response: the SDK's object, or a dict of `demo`. See `Model.complete`."""
        ...

    def stream(self, body: Mapping[str, Any]) -> AsyncReplyStream:
        """Return an asynchronous iterator over the pieces of the answer, with the whole response at the end. Closing it
        ends the request. Raises BrokenStream if the answer ends before it is complete.
        """
        ...

    def close(self) -> Awaitable[None]:
        """Close the connections that this model opened."""
        ...
