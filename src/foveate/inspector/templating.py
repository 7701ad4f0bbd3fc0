"""Templates of pages and files: one environment with the filters for figures."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..replay.numbers import brief, count, decimals, dollars, percent, plural

__all__ = ["environment"]


@lru_cache(1)
def environment() -> Environment:
    """Return the environment of all templates. It escapes every text."""
    environment = Environment(
        loader=PackageLoader("foveate.inspector"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        brief=brief, count=count, decimals=decimals, dollars=dollars, percent=_unbroken_percent, plural=plural
    )
    return environment


def _unbroken_percent(share: float | None) -> str:
    """Format a share as a percentage that no line break divides."""
    return percent(share).replace(" ", "\N{NO-BREAK SPACE}")
