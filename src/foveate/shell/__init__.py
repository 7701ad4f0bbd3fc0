"""What both shells share: reading what users hand in, writing what they get back. Never waits.

`Conversation` and `AsyncConversation` perform the steps in here, and those of the engine, each in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.events import Event
from ..engine import Engine
from ..expansion.answering import Expander, Expanding
from ..plugins import Plugin
from .answers import Fix, HistoryEntry, RepairReport
from .claiming import Claiming
from .editing import Editing
from .turning import Turning

__all__ = ["NOT_EXPANDING", "Fix", "HistoryEntry", "RepairReport", "Shell"]

NOT_EXPANDING = Expanding()
"""Models are not told of the tool; programs expand what they like, but for patterns."""


class Shell(Turning, Editing, Claiming):
    """A conversation without the waiting."""

    def __init__(
        self,
        engine: Engine,
        on_event: Callable[[Event], object] | None = None,
        plugins: Sequence[Plugin] = (),
        expanding: Expanding = NOT_EXPANDING,
    ) -> None:
        super().__init__(engine, on_event, plugins)
        self._expander = Expander(engine, expanding, self._say, self._expand)
