"""The model of one request, and the facts that follow from it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..core.profiles import Profile
from ..core.view import Prices
from ..ports import TokenCounter

__all__ = ["ModelLookup", "RequestModel"]


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
