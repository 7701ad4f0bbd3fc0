"""What a long text still says in a fraction of its size: made without a model, the same for the same text.

`describe` tells what a text is, in a line; `digest` keeps of it what later work will refer to. Both take any text, and
their time is bounded. They know nothing of conversations, policies or why something is shrunk.
"""

from __future__ import annotations

from ..core.caches import cached
from .description import describe_text
from .names import names_in
from .readers import read
from .selection import floor_for, room_for, room_for_musts, squeeze
from .source import Source, source_of
from .values import Description, Digest

__all__ = ["Description", "Digest", "describe", "digest", "names_in", "room_for"]

_LEAST_FILLED = 60
_FILLED = 0.005
_LARGE = 8_000


@cached(512)
def describe(text: str) -> Description:
    """What this text is."""
    return describe_text(text)[0]


@cached(512)
def digest(text: str, room: int | None = None, handle: str = "") -> Digest:
    """The digest of a text in at most `room` characters (default: `room_for` its length).

    It takes less where what else could be kept is hardly ever used; the smaller the room, the more of it is used up.
    `handle`: what brings the whole of it back; the digest's first line names it, as `expand("m12")`.
    """
    most = room_for(len(text))
    about = describe(text)
    if len(text) <= (most if room is None else room):
        return Digest(text, about, True)
    room = most if room is None else max(0, room)
    source = source_of(text)
    reading = read(about.kind, source, text)
    header = _header(about, source, reading.note, handle)
    left = room - len(header) - 1
    body = ""
    if left > 0:
        body = squeeze(
            reading.lines,
            left,
            floor=floor_for(about.kind, len(text), room),
            musts=room_for_musts(about.kind, left),
            fill=min(left // 2, max(_LEAST_FILLED, int(_FILLED * len(text)))),
        )
    return Digest(f"{header}\n{body}"[:room], about)


def _header(about: Description, source: Source, note: str, handle: str) -> str:
    """What it is, its size, and how to get the rest."""
    facts = [about.kind, f"{about.lines:,} lines" if about.lines > 1 else f"{about.characters:,} characters"]
    if about.characters > _LARGE and about.lines > 1:
        facts[1] += f" of {about.characters:,} characters"
    facts += [fact for fact in (note, source.note, f"file lines {source.viewed}" if source.viewed else "") if fact]
    if source.sampled:
        facts.append("read in part")
    how = ""
    if handle:
        how = f'; expand("{handle}")'
        if about.characters > _LARGE and about.lines > 1:
            how = f'; expand("{handle}") or ("{handle}", lines="1-40")'
    return f"[{', '.join(facts)}{how}]"
