"""What a provider's wire format must do: read what came, write what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ..core.messages import Message
from ..core.profiles import Profile
from ..core.stamps import Stop, Usage
from ..core.view import Entry, View

__all__ = ["Format", "Rendered"]


class Format(Protocol):
    """A provider's wire shape, both ways. Pure: no SDK is imported; SDK objects are read through `model_dump`."""

    name: str

    def parse(self, message: object) -> tuple[Message, ...]:
        """The messages in one wire message (a dict, or the SDK's object). Raises BadMessage."""
        ...

    def parse_reply(self, reply: object) -> tuple[Message, Usage]:
        """The assistant message and the billed usage in a whole response of the API. Raises BadMessage."""
        ...

    def stop_of(self, reply: object) -> Stop | None:
        """Why a response that `parse_reply` has read ended; None where it does not say."""
        ...

    def render(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Wire messages that carry these messages: `parse` of each, joined, gives them back."""
        ...

    def prompt(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """The keyword arguments of the SDK call that shows this view: fresh containers, safe to change."""
        ...

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """The wire messages of a view as JSON bytes, without cache marks; unchanged entries keep their bytes."""
        ...

    def body(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> bytes:
        """The request body as JSON bytes: what `prompt` says, without cache marks."""
        ...


class Rendered(Struct, frozen=True):
    """One wire message of a rendered view, and the entries it shows."""

    body: bytes
    entries: tuple[Entry, ...]
