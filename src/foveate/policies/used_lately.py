"""Which results the model still works with: those whose names it used in its newest turns.

Lexical: a name (path, id, identifier) of a result counts if a text or a call of the model repeats it and no other
result of the view holds it too, since what stands everywhere tells nothing.
"""

from __future__ import annotations

from ..core.caches import cached
from ..core.view import Entry, View
from .in_short import names_of

__all__ = ["UsedLately"]


class UsedLately:
    """The names that the model used in the newest `turns` turns of a view; worked out when somebody asks."""

    def __init__(self, view: View, turns: int) -> None:
        self._view, self._turns = view, turns
        self._results: frozenset[str] | None = None

    def __contains__(self, entry: object) -> bool:
        """Whether the result that this entry shows was used lately."""
        if not self._turns or not isinstance(entry, Entry):
            return False
        if self._results is None:
            self._results = self._found()
        return entry.id in self._results

    def _found(self) -> frozenset[str]:
        view, names, holders = self._view, set[str](), dict[str, str]()
        for entry in reversed(view.entries):
            if entry.message.role == "assistant" and entry.source is not None:
                if entry.stamp.turn < view.turn - self._turns:
                    break
                names.update(*(_names(call.arguments) for call in entry.source.calls), _names(entry.source.text))
        for entry in view.entries:
            if entry.is_result and entry.source is not None:
                for name in _names(entry.source.text) & names:
                    holders[name] = "" if name in holders else entry.id
        return frozenset(id for id in holders.values() if id)


@cached(2_048)
def _names(text: str) -> frozenset[str]:
    return frozenset(names_of(text))
