"""What a long text still says in a fraction of its size: made without a model, the same for the same text.

`describe` tells what a text is, in a line; `digest` keeps of it what later work will refer to. Both take any text, and
their time is bounded. They know nothing of conversations, policies or why something is shrunk.
"""

from __future__ import annotations

from functools import lru_cache

from .kinds import kind_of
from .readers import read
from .room import room_for
from .shapes import Description, Digest
from .source import Source, source_of
from .squeeze import squeeze

__all__ = ["Description", "Digest", "describe", "digest", "room_for"]


@lru_cache(maxsize=512)
def describe(text: str) -> Description:
    """What this text is."""
    source = source_of(text)
    kind = kind_of(source.rows, text[:200], _is_binary(text))
    reading = read(kind, source)
    first = next((line.text for line in reading.lines), "")
    return Description(kind, len(text), source.lines, reading.items, reading.item if reading.items else "", first[:80])


@lru_cache(maxsize=512)
def digest(text: str, room: int | None = None, handle: str = "") -> Digest:
    """The digest of a text in at most `room` characters (default: `room_for` its length).

    `handle`: what brings the whole of it back; the digest's first line names it.
    """
    room = room_for(len(text)) if room is None else room
    about = describe(text)
    if len(text) <= room:
        return Digest(text, about, True)
    source = source_of(text)
    reading = read(about.kind, source)
    header = _header(about, source, reading.note, handle)
    body = squeeze(reading.lines, room - len(header) - 1, fill=0.3)
    return Digest(f"{header}\n{body}"[:room], about)


def _header(about: Description, source: Source, note: str, handle: str) -> str:
    facts = [f"{about.kind}", f"{about.lines:,} lines", f"{about.characters:,} chars"]
    if note:
        facts.append(note)
    if source.note:
        facts.append(source.note)
    if source.viewed:
        facts.append(f"file lines {source.viewed}")
    name = f'; expand("{handle}")' if handle else ""
    return f"[{', '.join(facts)}{name}]"


def _is_binary(text: str) -> bool:
    some = text[:2000]
    return sum(1 for c in some if (c < " " and c not in "\n\r\t\x1b") or c == "\ufffd") > len(some) // 20
