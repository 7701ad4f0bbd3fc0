"""What a placeholder tells of what it stands for: its kind, its size, how many things it holds, one line of it.

Worked out once for each message, since placeholders are written at every call while edits wait. The line is made
harmless: it cannot end the placeholder, name a handle or break the line.
"""

from __future__ import annotations

from ..core.caches import cached
from ..core.edits import Path
from ..core.messages import Media, Message, Part, Text, ToolResult
from ..digest import describe

__all__ = ["FIELDS", "about"]

FIELDS = ("{about}", "{kind}", "{size}", "{items}", "{gist}")
"""Names that may stand in the template of a placeholder, beside `{handle}`."""

_GIST = 80
"""Characters of the line, at most."""
_LEAST = 800
"""Of what has fewer characters, `{about}` tells nothing: the placeholder would be a good part of it."""
_OUTER = str.maketrans('"[]{}', "'()()")


@cached(4_096)
def about(message: Message, path: Path = ()) -> dict[str, str]:
    """The texts for `FIELDS`, of a message or of one of its parts. The same object each time: only to be read."""
    parts = _parts(message, path)
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    media = [part for part in parts if isinstance(part, Media)]
    if not text.strip() and media:
        size = f"{sum(len(one.data) for one in media):,} characters" if media[0].source == "base64" else media[0].source
        fields = (media[0].mime or "media", size, _counted(len(media), "files"), _plain(media[0].name))
        return _filled(*fields, is_long=sum(len(one.data) for one in media) >= _LEAST)
    told = describe(text)
    items = _counted(told.items, told.item) if told.items else _counted(told.lines, "lines")
    return _filled(
        told.kind, _counted(told.characters, "characters"), items, _plain(told.gist), is_long=len(text) >= _LEAST
    )


def _filled(kind: str, size: str, items: str, gist: str, *, is_long: bool) -> dict[str, str]:
    whole = f"{kind}, {size}, {items}" + (f': "{gist}"; ' if gist else "; ")
    return dict(zip(FIELDS, (whole if is_long else "", kind, size, items, gist), strict=True))


def _parts(message: Message, path: Path) -> tuple[Part, ...]:
    """What stands at a path, the content of a result in its place."""
    found: tuple[Part, ...] = message.parts
    for index in path:
        found = found[index : index + 1]
        if found and isinstance(found[0], ToolResult):
            found = found[0].content
    return tuple(nested for part in found for nested in (part.content if isinstance(part, ToolResult) else (part,)))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun[:-1] if number == 1 and noun.endswith('s') else noun}"


def _plain(line: str) -> str:
    """A line that can stand in quotes inside a placeholder."""
    shown = "".join([character if character.isprintable() else " " for character in line[: 4 * _GIST]])
    flat = " ".join(shown.translate(_OUTER).split())
    return flat if len(flat) <= _GIST else f"{flat[: _GIST - 1].rstrip()}…"
