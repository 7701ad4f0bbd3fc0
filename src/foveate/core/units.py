"""Units of a view: calls and their results, which are kept or cut together, and the places between units."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .growing import Growing
from .server_tools import ServerBlock, follow_uses
from .view import Entry, View

__all__ = ["Units", "cut_points"]


def cut_points(view: View | Sequence[Entry]) -> list[int]:
    """Return the indices of entries before which a view may be cut: never inside a unit or directly after its call.

    Messages between a server tool's use and its result belong to one unit, and so do a step of actions and its results.
    Both ends (0 and the number of entries) are included.
    """
    if isinstance(view, View):
        return [*_UNITS.of(view).cuts, len(view.entries)]
    units = Units()
    for entry in view:
        units.add(entry)
    return [*units.cuts, len(view)]


class Units(Struct):
    """The units among entries that are added in order."""

    cuts: list[int] = []
    """The indices at which units begin."""
    size: int = 0
    """Number of entries."""
    _waiting: set[str] = set()
    _uses: dict[str, ServerBlock] = {}
    _is_step: bool = False

    def copy(self) -> Units:
        """Return an independent copy."""
        return Units(self.cuts.copy(), self.size, self._waiting.copy(), self._uses.copy(), self._is_step)

    def add(self, entry: Entry) -> bool:
        """Add an entry; return whether a unit begins with it."""
        index, message = self.size, entry.message
        self.size += 1
        result = message.result
        if result is not None:
            self._waiting.discard(result.call_id)
            return False
        if self._is_step and (entry.is_result or entry.is_between):  # A stand-in may come before a result.
            return False
        calls = message.calls
        self._is_step = message.role == "assistant" and not calls
        is_cut = not self._waiting and not self._uses and entry.kind != "continuation"
        if is_cut:
            self.cuts.append(index)
        self._waiting = {call.call_id for call in calls}
        if message.role == "assistant":
            follow_uses(message, str(index), self._uses)
        else:
            self._uses.clear()
        return is_cut


_UNITS = Growing[Units](Units, Units.add, Units.copy, name="units", kind=Units)
