"""Templates of pages and files: one environment with the filters for figures."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..core.plurals import plural
from ..replay.numbers import brief, count, decimals, dollars, percent

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
    environment.filters.update(ago=ago, bytes=in_bytes, end_of=end_of, utc=utc)
    environment.filters.update(
        brief=brief, count=count, decimals=decimals, dollars=dollars, percent=_unbroken_percent, plural=plural
    )
    return environment


def _unbroken_percent(share: float | None) -> str:
    """Format a share as a percentage that no line break divides."""
    return percent(share).replace(" ", "\N{NO-BREAK SPACE}")


def utc(milliseconds: int) -> str:
    """Format a time as an ISO date and time in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def ago(milliseconds: int, now: float) -> str:
    """Format a time for people: `5 minutes ago`, else the date in UTC. Both in milliseconds since 1970."""
    seconds = (now - milliseconds) / 1000
    if seconds < 0 or seconds >= 7 * 86_400:
        return utc(milliseconds)[:10]
    for size, noun in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{plural(int(seconds // size), noun)} ago"
    return "just now"


def end_of(path: str, most: int = 32) -> str:
    """Return the last folders of a path, in about this many characters: `…/projects/shop`."""
    if len(path) <= most:
        return path
    shown = path[-most:]
    return f"…{shown[shown.find('/') if '/' in shown else 0 :]}"


def in_bytes(size: int | None) -> str:
    """Format a size: `820 B`, `12 kB`, `3.4 MB`."""
    if size is None:
        return "–"
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
