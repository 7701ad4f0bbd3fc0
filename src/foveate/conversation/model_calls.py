"""The model of one request, and the model calls that one open conversation made."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..core.call_context import Prices
from ..core.profiles import Profile
from ..core.projection import Projection
from ..core.view import Entry, View
from ..ports import Head, TokenCounter

__all__ = ["ModelCalls", "ModelLookup", "RequestModel"]


class RequestModel(Struct, frozen=True):
    """A model as one request sees it."""

    name: str
    """The name that the program gave; "" if it gave none."""
    profile: Profile
    """The requirements of its API."""
    window: int | None
    """Its window in tokens; None if unknown."""
    prices: Prices
    """Its prices as multiples of its input price."""
    counter: TokenCounter
    """Counts its tokens."""


ModelLookup = Callable[[str, int | None], RequestModel]
"""Returns the model with a name and, if given, a window in tokens. Raises BadSetting if it cannot be used."""

_REQUESTS = 64
"""Calls whose model and estimate are kept for usage that is reported late."""


class ModelCalls:
    """The calls of this process, beyond what the journal says: the newest one, whether it was answered, and when each
    model was called.
    """

    def __init__(self) -> None:
        self.is_taken_over = False
        """Whether the history is a list that the caller already had, and no request was sent since."""
        self.prepared: tuple[Entry, ...] | None = None
        """Entries of the view that was prepared last; None before there was one."""
        self._turn = 0  # number of the call that was begun last
        self._pending: tuple[str, int] | None = None  # tip and newest edit that the last, unanswered call saw
        self._requests: dict[int, tuple[str, int]] = {}  # model and estimate of the newest calls, by number
        self._times: dict[str, int] = {}  # time of the last request of each model

    def begin(self, view: View, head: Head, model: str, estimate: int) -> None:
        """Note that a request with this view is about to be sent. `estimate`: of its tokens."""
        self._turn, self._pending = view.turn, (head.tip, head.number)
        self._times[model] = view.call.now
        self.is_taken_over = False
        self.prepared = view.entries
        self._requests[view.turn] = model, estimate
        self._requests.pop(view.turn - _REQUESTS, None)

    def begun(self, projection: Projection) -> int:
        """Return the number of calls begun so far."""
        return max(projection.facts.turn, self._turn, projection.interrupted)

    def next_turn(self, projection: Projection, head: Head) -> int:
        """Return the number of the call a view is for: the last one again if nothing changed since."""
        begun = self.begun(projection)
        return begun if self._pending == (head.tip, head.number) else begun + 1

    def is_pending(self, projection: Projection) -> bool:
        """Return whether a call was begun and not answered: in this process, or as the journal says."""
        return bool(self._pending) or projection.interrupted > projection.facts.turn

    def forget_pending(self) -> None:
        """Note that the last call waits for no reply."""
        self._pending = None

    def move_pending(self, before: Head, after: Head) -> None:
        """Note that a call which saw `before` sees nothing else in `after`, so it goes on waiting."""
        if self._pending == (before.tip, before.number):
            self._pending = after.tip, after.number

    def request_of(self, call: int) -> tuple[str, int]:
        """Return the model of a call and the estimate of its prompt, if this process made it lately; else ("", 0)."""
        return self._requests.get(call, ("", 0))

    def last_request(self, model: str, projection: Projection) -> int:
        """Return when a model was called last, in milliseconds since 1970; 0 if it was not, as far as is known."""
        facts = projection.facts
        # Each model has a cache of its own. None holds a request that begins with other tools, as the first one does.
        is_known = facts.model in ("", model) and not self.is_taken_over
        return self._times.get(model) or (facts.replied if is_known else 0)
