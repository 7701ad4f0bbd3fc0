"""Places to keep conversations: `memory` (the oracle), and one SQL store with a thin driver for each database."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ..errors import BadSetting

__all__ = ["Place", "place_of", "without_password"]

_POSTGRES = ("postgresql://", "postgres://")
_USER = re.compile(r"(?<=://)([^/?#]*):[^/?#]*@|(?<=://)([^/?#:@]*):.*@")
_OPTION = re.compile(r"(?<=[?&])((?:ssl)?password=)[^&]*")


class Place(NamedTuple):
    """What the URL of a store says."""

    kind: Literal["memory", "sqlite", "postgres"]
    path: str
    """Of the file; of a PostgreSQL database its whole URL, with the password."""
    search: bool = True
    """Whether an index of words is kept."""


def place_of(url: str) -> Place:
    """What a URL names: `memory:`, `sqlite:///PATH`, which may end in `?search=off`, or `postgresql://...`, which is
    read closely when it is opened. Else BadSetting.
    """
    if url in ("memory:", "memory://"):
        return Place("memory", "")
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        path, mark, setting = url.removeprefix("sqlite:///").rpartition("?search=")
        if mark and setting not in ("on", "off"):
            raise BadSetting(f"search= in the URL of a store is on or off, not {setting!r}.")
        if path:
            return Place("sqlite", path, setting == "on")
        if not mark:
            return Place("sqlite", setting)
    if url.startswith(_POSTGRES):
        return Place("postgres", url, "search=off" not in url.partition("?")[2].split("&"))
    raise BadSetting(
        f"There is no store {without_password(url)!r}. Known: memory: and sqlite:///PATH, for example "
        f"sqlite:///chat.db; and postgresql://USER:PASSWORD@HOST/DATABASE."
    )


def without_password(url: str) -> str:
    """The URL of a store as it may be shown."""
    return _OPTION.sub(r"\1***", _USER.sub(r"\1\2:***@", url))
