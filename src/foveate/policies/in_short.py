"""What the model wrote, in short: the lines that tell a name which was not told before, as they stand.

For code, patches and scripts in the arguments of a call, and for long answers. White space at the beginning of a line
stays: what is quoted from here later is quoted as it was written. Knows nothing of views and of when something shrinks.
"""

from __future__ import annotations

from ..digest import names_in

__all__ = ["in_short", "names_of"]

_WIDE = 160
"""Characters up to which a line is kept as it is; of a longer one, the names are."""
_NAMES = 400
"""Characters of the names of one such line."""
_LONGEST = 200_000
"""Characters of a text that are looked at: what comes behind is in no short form of it anyway."""


def in_short(text: str, room: int, name: str, *, begins: int = 0) -> str:
    """At most about `room` characters: a note that names the handle, then lines with new names, in their order.

    `begins`: characters that are told of how the text begins, before the note; what is only code needs none.
    """
    begin = " ".join(text[:begins].split()).rsplit(" ", 1)[0] + " …" if begins else ""
    kept = [f'{begin} [{len(text):,} characters; expand("{name}") shows all]'.lstrip()]
    room -= len(kept[0])
    told = set(names_of(begin))
    for line in text[:_LONGEST].split("\n"):
        new = [found for found in names_of(line) if found not in told]
        if not new:
            continue
        shown = line.rstrip()
        if len(shown) > _WIDE:
            shown = " ".join(new)[:_NAMES]
        if len(shown) < room:
            kept.append(shown)
            told.update(new)
            room -= len(shown) + 1
    return "\n".join(kept)


def names_of(text: str) -> list[str]:
    """Paths, ids, identifiers: what somebody could refer to, each once, in order."""
    return list(dict.fromkeys(names_in(text)))
