"""Digests: what a long text says in a fraction of its size, made without a model, equal for equal texts.

`describe` describes a text in one line; `digest` keeps the parts that later work is likely to refer to. Both take any
text in bounded time.
"""

from __future__ import annotations

from ..core.caches import cached_by_text
from ..core.json_escapes import decode_escapes
from .description import AS_WRITTEN, LOOKED_AT, describe_text
from .readers import read_lines
from .selection import floor_for, room_for, room_for_musts, room_for_pairs, room_for_texts, select_lines
from .source import Source, read_source
from .values import Description, Digest
from .wrappings import path_of_whole_output

__all__ = ["Description", "Digest", "describe", "digest", "room_for"]

_LEAST_FILLED = 60
_FILLED = 0.005
_LARGE = 8_000


@cached_by_text(128)
def describe(text: str, looked_at: int = LOOKED_AT) -> Description:
    """Return the kind, size and topic of a text. Its first `looked_at` characters decide the kind."""
    return describe_text(text, looked_at)


@cached_by_text(128)
def digest(text: str, room: int | None = None, handle: str = "") -> Digest:
    """Return the digest of a text in at most `room` characters (default: `room_for` its length).

    It is shorter if the rest of the text is hardly ever used later; the smaller the room, the more of it is filled.
    `handle`: the handle of the whole text; the first line of the digest names it, as `expand("m12")`.
    """
    most = room_for(len(text))
    about = describe(text)
    if len(text) <= (most if room is None else room):
        return Digest(text, about, True)
    room = most if room is None else max(0, room)
    source = read_source(text if about.kind in AS_WRITTEN else decode_escapes(text))
    reading = read_lines(about.kind, source)
    path = path_of_whole_output(text)
    header = _header(about, source, reading.note, path if len(path) < room // 2 else "", handle)
    left = room - len(header) - 1
    tight = min(1.0, room / max(1, most)) ** 2
    body = ""
    if left > 0:
        body = select_lines(
            reading.lines,
            left,
            floor=floor_for(about.kind, len(text), room),
            musts=room_for_musts(about.kind, left, tight),
            texts=room_for_texts(about.kind, left, tight),
            pairs=room_for_pairs(about.kind, left),
            fill=left if about.kind == "listing" else min(left // 2, max(_LEAST_FILLED, int(_FILLED * len(text)))),
        )
    return Digest(f"{header}\n{body}"[:room], about)


def _header(about: Description, source: Source, note: str, path: str, handle: str) -> str:
    """Return the first line: kind, size, and how to get the whole text. `path`: of the file with the whole output."""
    facts = [about.kind, f"{about.lines:,} lines" if about.lines > 1 else f"{about.characters:,} characters"]
    if about.characters > _LARGE and about.lines > 1:
        facts[1] += f" of {about.characters:,} characters"
    facts += [fact for fact in (note, source.note, f"file lines {source.viewed}" if source.viewed else "") if fact]
    if source.sampled:
        facts.append("read in part")
    if path:
        facts.append(f"whole output in {path}")
    hint = f'; expand("{handle}")' if handle else ""
    return f"[{', '.join(facts)}{hint}]"
