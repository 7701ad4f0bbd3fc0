"""Stores for conversations: one in memory, and one for SQL databases with a driver for SQLite and PostgreSQL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import BadSetting

__all__ = ["Place", "Synchronous", "place_of", "readable", "without_password"]

_ONE = r"(?:search|synchronous|wait|read_only)=[^&?]*"
_FILE = re.compile(rf"sqlite:///(?!\?{_ONE})(.+?)(?:\?({_ONE}(?:&{_ONE})*))?", re.DOTALL)
"""A path and options. Text that is no option belongs to the path, which may contain any characters."""
_OPTIONS_LIKE = re.compile(r"\?((?:\w+=[^&?]*&)*\w+=[^&?]*)$")
"""The end of a path that looks like options."""
_SECONDS = re.compile(r"\d{1,6}(?:\.\d+)?")
_ALLOWED = {
    "search": "on or off",
    "read_only": "on or off",
    "synchronous": "full or normal",
    "wait": "a number of seconds",
}
_POSTGRES = ("postgresql://", "postgres://")
_USER = re.compile(r"(?<=://)([^/?#]*):[^/?#]*@|(?<=://)([^/?#:@]*):.*@")
_ANY_USER = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?/*)([^/?#:@]*):.*@", re.DOTALL)
"""User and password of a URL whose scheme or slashes are wrong."""
_OPTION = re.compile(r"(?<=[?&])((?:ssl)?password=)[^&]*")
_KEYWORD = re.compile(r"(?is)((?:ssl)?password\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:\\.|\S)*)")
"""The password of a connection string such as `host=h password=p`."""


Synchronous = Literal["full", "normal"]
"""Whether a SQLite file is synced at each write. `normal`: a power cut may undo the last moments."""


class Place(NamedTuple):
    """The parts of a store's URL."""

    kind: Literal["memory", "sqlite", "postgres"]
    path: str
    """The path of the file; for PostgreSQL the whole URL, with the password."""
    search: bool = True
    """Whether there is a word index."""
    synchronous: Synchronous = "full"
    """SQLite: whether each write is synced before it is acknowledged."""
    wait: float = 10.0
    """SQLite: seconds to wait while another process writes."""
    is_read_only: bool = False
    """SQLite: whether the file stays unchanged."""


def place_of(url: str, *, synchronous: Synchronous = "full") -> Place:
    """Parse the URL of a store. `synchronous`: for a SQLite file whose URL does not say. Raises BadSetting.

    `memory:`; `sqlite:///PATH`, with options such as `?search=off&synchronous=normal&wait=30`; or `postgresql://...`,
    whose options are parsed when it is opened.
    """
    if url in ("memory:", "memory://"):
        return Place("memory", "")
    if url.startswith("sqlite:///") and (match := _FILE.fullmatch(url)):
        path, options = match.groups()
        return _sqlite(path, options or "", synchronous)
    if url.startswith(_POSTGRES):
        return Place("postgres", url, "search=off" not in url.partition("?")[2].split("&"))
    raise BadSetting(
        f"There is no store {without_password(url)!r}. Known: memory: and sqlite:///PATH, for example "
        f"sqlite:///chat.db; and postgresql://USER:PASSWORD@HOST/DATABASE."
    )


def _sqlite(path: str, options: str, synchronous: Synchronous) -> Place:
    if match := _OPTIONS_LIKE.search(path):
        names = [option.partition("=")[0] for option in match[1].split("&")]
        if unknown := next((name for name in names if name not in _ALLOWED), ""):
            raise BadSetting(
                f"{unknown}= in the URL of a SQLite file is no option; there are {', '.join(_ALLOWED)}. Correct it, or "
                "rename the file if its name has a question mark."
            )
    place = Place("sqlite", path, synchronous=synchronous)
    for option in options.split("&") if options else ():
        name, _, value = option.partition("=")
        match name, value:
            case "search", "on" | "off":
                place = place._replace(search=value == "on")
            case "read_only", "on" | "off":
                place = place._replace(is_read_only=value == "on")
            case "synchronous", "full" | "normal":
                place = place._replace(synchronous=value)
            case "wait", _ if _SECONDS.fullmatch(value):
                place = place._replace(wait=float(value))
            case _:
                raise BadSetting(f"{name}= in the URL of a store is {_ALLOWED[name]}, not {value!r}.")
    return place


def readable(url: str, *, always: bool = False) -> str:
    """Return the URL to read a store with: with `read_only=on` for a SQLite file that this process cannot write.

    `always`: for each existing SQLite file. Raises BadSetting as `place_of` does.
    """
    place = place_of(url)
    if place.kind != "sqlite" or place.is_read_only:
        return url
    file = Path(place.path).expanduser()
    if not file.is_file() or not (always or not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))):
        return url
    options = url.removeprefix(f"sqlite:///{place.path}")
    return f"{url}{'&' if options else '?'}read_only=on"


def without_password(url: str) -> str:
    """Return the URL of a store, or a text that was meant as one, with `***` for its password."""
    if url.startswith("sqlite:///"):  # A path, which may have any letters.
        return url
    if url.startswith(_POSTGRES):
        return _OPTION.sub(r"\1***", _USER.sub(r"\1\2:***@", url))
    return _KEYWORD.sub(r"\1***", _ANY_USER.sub(r"\1\2:***@", _OPTION.sub(r"\1***", url)))
