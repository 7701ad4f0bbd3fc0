"""What a conversation holds, and whom it tells what it does.

Knows the engine, whoever listens or watches, and what the model is offered beside the view; nothing of what is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import given
from ..core.edits import Record
from ..core.events import Event, events_of_record
from ..core.profiles import Profile
from ..core.view import Budget, View
from ..engine import Engine, Step
from ..errors import StoreError
from ..expansion.answering import Expander
from ..expansion.tool import expand_tool, with_instruction, with_tool
from ..mirror import Mirror
from ..ports import Format, Head, Watch
from ..watching import Watching

__all__ = ["Held"]

_log = logging.getLogger("foveate")


class Held:
    """The parts of an open conversation. `_expander` is made by whoever can say and show something."""

    _expander: Expander

    def __init__(self, engine: Engine, on_event: Callable[[Event], object] | None) -> None:
        self._engine = engine
        self._on_event = on_event
        self._watching = Watching()
        self._mirror: Mirror | None = None
        self._asked_with: tuple[object, Sequence[Mapping[str, Any]]] = (None, ())

    @property
    def name(self) -> str:
        """The name this conversation was opened under."""
        return self._engine.head.name

    @property
    def head(self) -> Head:
        """Where the conversation stands: its tip and its newest edit."""
        return self._engine.head

    @property
    def tip(self) -> str:
        """Id of the newest message; "" while there is none."""
        return self._engine.head.tip

    @property
    def format(self) -> Format:
        """The wire format that messages are read from and prompts written in."""
        return self._engine.format

    @property
    def profile(self) -> Profile:
        """The demands of the provider."""
        return self._engine.profile

    @property
    def budget(self) -> Budget:
        """What a request may hold, as far as it is known by now."""
        return self._engine.limits.budget()

    @property
    def expands(self) -> bool:
        """Whether the model is offered the tool `expand`, and its calls are answered by the conversation itself."""
        return self._expander.how.is_on

    @property
    def view(self) -> View:
        """What the model would see now without any new edit."""
        return self._engine.view()

    def __len__(self) -> int:
        """Number of messages in the history."""
        return self._engine.head.position

    def __repr__(self) -> str:
        head = self._engine.head
        return f"<{type(self).__name__} {head.name!r}: {head.position} messages, {head.number} edits>"

    def watch(self, watch: Watch) -> None:
        """From now on let `watch` be told what this conversation does; only one is told, the newest."""
        given.like("watch()", watch, ("begin", "end", "did", "count"), "a Watch, such as `instrument` makes")
        self._watching.begin(self.name, watch)

    def expand_tool(self) -> dict[str, Any]:
        """The definition of the tool `expand` in this conversation's format, for hosts that offer it themselves."""
        return expand_tool("anthropic" if self.format.name == "anthropic" else "openai")

    def _offered(
        self, system: object, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[object, Sequence[Mapping[str, Any]]]:
        """What the model is told beside the view: as the host says, with the tool `expand` where it is on."""
        if not self._expander.how.is_on:
            return system, tools
        return with_instruction(system), with_tool(tools, self.format.name)

    def _places(self) -> dict[str, int]:
        """Where each message is in the view, by its id: for whoever listens."""
        return {entry.id: i for i, entry in enumerate(self.view.entries)} if self._on_event else {}

    def _tell_edits(self, before: int, places: Mapping[str, int]) -> Step[list[Record]]:
        """Tell of the commits since the edit numbered `before`, and return them; none where nobody listens."""
        if not (self._on_event or self._watching) or self._engine.head.number <= before:
            return []
        try:
            found = yield lambda: self._engine.store.records(self.head, before)
        except StoreError as error:  # The commits are stored all the same.
            _log.warning("%s: the newest edits are not reported: %s", self.name, error)
            return []
        records = [record for _, record in found]
        self._watching.recorded(records)
        for record in records:
            self._tell(events_of_record(record, places))
        return records

    def _tell(self, events: Iterable[Event]) -> None:
        if self._on_event is None:
            return
        for event in events:
            try:
                self._on_event(event)
            except Exception:  # Whoever listens can neither break a run nor change it.
                _log.exception("a listener failed on %s", event.kind)
