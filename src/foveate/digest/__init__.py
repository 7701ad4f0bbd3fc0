"""What a long text still says in a fraction of its size: made without a model, the same for the same text.

`describe` tells what a text is, in a line; `digest` keeps of it what later work will refer to. Both take any text, and
their time is bounded. They know nothing of conversations, policies or why something is shrunk.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

__all__ = ["Description", "Digest", "describe", "digest", "room_for"]

_NAME = re.compile(r"[A-Za-z0-9_./\-#@]{6,120}")


class Description(Struct, frozen=True):
    """What a text is."""

    kind: str
    """For example `json`, `listing`, `log`, `diff`, `code`, `table`, `matches`, `page`, `prose`, `binary`."""
    characters: int
    lines: int
    items: int = 0
    """How many things of its kind it holds; 0 where it holds none."""
    item: str = ""
    """What they are, in the plural: `rows`, `files`, `matches`."""
    gist: str = ""
    """One line, at most 80 characters."""

    def __str__(self) -> str:
        size = f"{self.items:,} {self.item}" if self.items else f"{self.lines:,} lines"
        return f"{self.kind}, {self.characters:,} characters, {size}" + (f": {self.gist}" if self.gist else "")


class Digest(Struct, frozen=True):
    """A text in short."""

    text: str
    description: Description
    is_whole: bool = False
    """Whether nothing was left out, because the text is not longer than its digest would be."""


def room_for(characters: int) -> int:
    """Characters that a digest of a text of this length may have."""
    return max(200, min(characters * 13 // 100, 16_000))


@lru_cache(maxsize=512)
def describe(text: str) -> Description:
    """What this text is."""
    lines = text.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    return Description("text", len(text), len(lines), gist=first[:80])


@lru_cache(maxsize=512)
def digest(text: str, room: int | None = None, handle: str = "") -> Digest:
    """The digest of a text in at most `room` characters (default: `room_for` its length).

    `handle`: what brings the whole of it back; the digest's first line names it.
    """
    room = room_for(len(text)) if room is None else room
    about = describe(text)
    if len(text) <= room:
        return Digest(text, about, True)
    name = f'; expand("{handle}") shows all' if handle else ""
    kept = [f"[digest: {about.kind}, {about.characters:,} characters, {about.lines:,} lines{name}]"]
    room -= len(kept[0])
    seen: set[str] = set()
    for line in text.splitlines():
        new = set(_NAME.findall(line)) - seen
        shown = line.strip()[:100]
        if new and len(shown) < room:
            kept.append(shown)
            seen |= new
            room -= len(shown) + 1
    return Digest("\n".join(kept)[: room_for(len(text))], about)
