"""The circumstances of a model call: the limits of its request, its prices, and its time."""

from __future__ import annotations

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["NO_WINDOW", "Budget", "CallContext", "Prices"]

NO_WINDOW = 10**9
"""The window of a conversation without one is at least this."""


class Budget(Struct, frozen=True):
    """The limits of a request. Tokens are estimates of the conversation's counter, corrected by `scale`."""

    window: int
    """The model's window in tokens."""
    reserve: int
    """Tokens reserved for the answer."""
    max_bytes: int
    """Largest request body in bytes."""
    max_images: int
    """Largest number of images in a request."""
    overhead: int = 0
    """Tokens of the request outside the view: system prompt and tool definitions of the last prompt."""
    overhead_bytes: int = 0
    """Bytes of the request outside the view."""
    scale: float = 1.0
    """Ratio of provider-measured to estimated tokens in the last measured call."""
    doubt: float = 0.0
    """By which share of the true count the counter may be too low. 0 for an exact counter."""
    unmeasured: int = 0
    """Tokens of the view that no measured call contained, by the counter's estimate. `scale` says little about them."""

    @property
    def has_window(self) -> bool:
        """Return whether the window is known. A conversation without one has a budget of 10^9 tokens."""
        return self.window < NO_WINDOW

    @property
    def usable(self) -> int:
        """Return the tokens that a view may have by the counter's estimate.

        This is (window - reserve) / scale - overhead, with two limits that keep the true count within the window.
        A scale below 1 comes from other content, so it does not apply to unmeasured tokens. And even if the counter is
        too low for all of these by its doubt, the view fits into the window, at the expense of the reserve.
        """
        return min(self._estimated(room, scale) for room, scale in self._rooms()) - self.overhead

    def needed(self, tokens: int) -> tuple[int, int]:
        """Return the true tokens of a request with a view of this estimate, and the limit that they exceed.

        The limit is the whole window if the request exceeds none. See `usable`.
        """
        estimated = tokens + self.overhead
        unmeasured = min(self.unmeasured, estimated)
        needed = limit = 0
        for limit, scale in self._rooms():
            needed = ceil((estimated - unmeasured) * self.scale + unmeasured * scale)
            if needed > limit:
                break
        return needed, limit

    def _rooms(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """Return the true tokens that a request may have, with the scale of unmeasured tokens for which that holds."""
        scale = max(1.0, self.scale)
        return (self.window - self.reserve, scale), (self.window, scale / (1 - self.doubt))

    def _estimated(self, room: int, scale: float) -> int:
        """Return the estimate of a view that fills this room, if unmeasured tokens have another scale."""
        unmeasured = min(self.unmeasured, room / scale)
        return int((room - unmeasured * scale) / self.scale + unmeasured)

    def without_estimates(self, tokens: int) -> Budget:
        """Return a budget in which a view may have this many tokens by the counter's estimate."""
        return replace(self, window=tokens, reserve=0, overhead=0, scale=1.0, doubt=0.0, unmeasured=0)

    @property
    def usable_bytes(self) -> int:
        """Return the bytes that a view may have."""
        return self.max_bytes - self.overhead_bytes


class Prices(Struct, frozen=True):
    """Prices as multiples of the price of uncached input.

    Defaults: Anthropic's cache of five minutes (read 0.1, write 1.25).
    """

    read: float = 0.1
    """Price of a token read from the cache."""
    write: float = 1.25
    """Price of a token written to the cache."""
    output: float = 5.0
    """Price of an output token."""
    cache_seconds: int = 300
    """How long the provider keeps a cached prefix."""
    long_from: int = 0
    """Tokens of a prompt above which every token of the request costs more; 0: none."""
    long_factor: float = 2.0
    """How many times as much they cost then."""


class CallContext(Struct, frozen=True):
    """The circumstances of the coming call: clock, pause and prices."""

    now: int = 0
    """Milliseconds since 1970, by the conversation's clock."""
    idle: float | None = None
    """Seconds since the last request; None before the first one."""
    prices: Prices = Prices()
    """The prices of the model."""
    model: str = ""
    """The name of the model; "" if the program named none."""
    binds_reasoning: bool = False
    """Whether an edit invalidates all reasoning after it (`Profile.binds_reasoning`)."""
