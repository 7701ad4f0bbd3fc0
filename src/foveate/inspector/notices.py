"""Messages that a page shows once after an action: what happened, and how to undo it.

A form leads to another page by a redirect, whose address names the message. The text itself is never in the address, so
that no link of another site can put words into the page.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import Final

from msgspec import Struct

__all__ = ["Notice", "Notices"]

_MAX_KEPT: Final = 500
"""Messages in memory. Above it, the oldest ones are dropped."""


class Notice(Struct, frozen=True):
    """The result of an action, or the reason why it did nothing."""

    text: str
    """A sentence or two."""
    is_problem: bool = False
    """Whether the action was refused, so that nothing changed."""
    source: str = ""
    """The key of the source, if the action can be undone."""
    name: str = ""
    """The name of the conversation, if the action can be undone."""
    first: int = 0
    """Number of the first edit of its receipt; 0 if there is nothing to undo."""
    last: int = 0
    """Number of the last one."""


class Notices:
    """The messages of one inspector. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], Notice] = OrderedDict()

    def add(self, tenant: str, notice: Notice) -> str:
        """Keep a message for the pages of a tenant; return its name."""
        name = secrets.token_urlsafe(9)
        with self._lock:
            self._kept[tenant, name] = notice
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return name

    def get(self, tenant: str, name: str) -> Notice | None:
        """Return the message with this name, or None."""
        with self._lock:
            return self._kept.get((tenant, name))
