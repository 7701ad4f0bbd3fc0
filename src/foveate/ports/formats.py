"""The protocol of a provider's wire format: it reads responses and writes requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ..core.messages import Message
from ..core.profiles import Profile
from ..core.saved_bodies import SavedBodies
from ..core.stamps import Stop, Usage
from ..core.view import Entry, View

__all__ = ["Format", "Rendered", "RenderedCache"]


class Format(Protocol):
    """Converts between messages and a provider's wire format. Pure: SDK objects are read through `model_dump`."""

    @property
    def name(self) -> str:
        """The name, such as `anthropic`."""
        ...

    def group(self, items: Sequence[object]) -> Sequence[object]:
        """Return a caller's list, with the items that form one message together as one item that `parse` reads."""
        ...

    def learn(self, message: Message) -> None:
        """Note a message of the history, so that `group` finds where it begins in a list."""
        ...

    def parse(self, message: object) -> tuple[Message, ...]:
        """Return the messages in one wire message (a dict, or the SDK's object). Raises BadMessage."""
        ...

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """Return the assistant message and the billed usage of a response of the API. Raises BadMessage."""
        ...

    def stop_of(self, reply: object) -> Stop | None:
        """Return why a response ended; None if it does not say."""
        ...

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return wire messages with these messages; `parse` of all of them returns the same messages."""
        ...

    def prompt(
        self,
        view: View,
        *,
        profile: Profile,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        shared: bool = False,
    ) -> dict[str, Any]:
        """Return the keyword arguments of the SDK call for this view, in new containers that are safe to change.

        `shared`: messages are the same objects in every prompt, which the caller must not change.
        """
        ...

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """Return the wire messages of a view as JSON bytes, without cache marks; unchanged entries keep their bytes."""
        ...

    def body(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> bytes:
        """Return the request body as JSON bytes: that of `prompt`, without cache marks."""
        ...

    def body_parts(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[bytes]:
        """Return the bytes of `body` in pieces. Messages of unchanged entries are the same objects as before."""
        ...


class Rendered(Struct, frozen=True):
    """One wire message of a rendered view, and its entries."""

    body: bytes
    """The keyword arguments of the SDK call."""
    entries: tuple[Entry, ...]
    """The entries of the view that the body shows."""


class RenderedCache(Protocol):
    """The wire messages of the newest view, which a format may keep as its attribute `memo`."""

    def saved(self, entries: tuple[Entry, ...], profile: Profile) -> SavedBodies:
        """Return the wire messages at the beginning of a view that are known and cannot change, to be saved."""
        ...

    def restore(self, saved: SavedBodies, entries: tuple[Entry, ...], profile: Profile) -> None:
        """Continue with the wire messages that were saved. `entries`: a view that begins with their entries."""
        ...
