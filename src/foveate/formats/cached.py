"""Base of the formats: caches the newest view's wire messages, and joins them to a body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.messages import Message
from ..core.profiles import Profile
from ..core.view import View
from ..ports import Rendered
from .json import body_parts, join_body
from .memo import Cut, Memo, Write

__all__ = ["CachedFormat"]


class CachedFormat(ABC):
    """The format of one conversation. It caches the newest view, so use one object for each conversation."""

    def __init__(self, cut: Cut, write: Write) -> None:
        self._memo = Memo(cut, write)

    @property
    def memo(self) -> Memo:
        """Return the cache of the newest view's wire messages."""
        return self._memo

    def group(self, items: Sequence[object]) -> Sequence[object]:
        """Return the list itself: each wire message is read alone."""
        return items

    def learn(self, message: Message) -> None:
        """Do nothing: the items of a list show where messages begin."""
        return

    def rendered(self, view: View, *, profile: Profile) -> list[Rendered]:
        """Return the wire messages of a view as JSON bytes, without cache marks. Unchanged entries keep their bytes.

        Leading system messages come first, with the role system; `prompt` and `body` move them if the provider has
        another place for them. A wire message that the provider requires between two others has no entries. An entry
        without content that the provider knows has no wire message.
        """
        self._memo.update(view.entries, profile)
        return self._memo.rendered.copy()

    def body(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> bytes:
        """Return the request body as JSON bytes, with the messages last.

        Without an edit, each body begins like the one before.
        """
        return join_body(*self._body(view, profile, system, tools))

    def body_parts(
        self, view: View, *, profile: Profile, system: object = None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[bytes]:
        """Return the bytes of `body` in pieces. Messages of unchanged entries are the same objects as before."""
        return body_parts(*self._body(view, profile, system, tools))

    @abstractmethod
    def _body(
        self, view: View, profile: Profile, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[bytes, list[bytes]]:
        """Return the beginning of the body, and the messages."""
