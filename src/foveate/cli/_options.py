"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from typing import Literal

from ..core.view import Prices
from ..errors import BadSetting
from ..policies import named

__all__ = ["Provider", "policies_of", "prices_of"]

Provider = Literal["anthropic", "openai"]


def policies_of(policy: str | None, compare: str | None) -> list[str]:
    """The policies asked for, each once, `prune` where none is. Raises BadSetting for one that there is not."""
    asked = [] if policy is None else [policy]
    asked += [] if compare is None else [name.strip() for name in compare.split(",")]
    names = list(dict.fromkeys(asked)) or ["prune"]
    for name in names:
        named(name)
    return names


def prices_of(text: str) -> Prices:
    """`0.1,1.25` as prices. Raises BadSetting for anything but two numbers of 0 or more."""
    try:
        read, write = (float(number) for number in text.split(","))
    except ValueError:
        read = write = -1.0
    if not (0 <= read < float("inf") and 0 <= write < float("inf")):
        raise BadSetting(f"--prices takes two numbers, for reading and for writing, such as 0.1,1.25; not {text!r}.")
    return Prices(read=read, write=write)
