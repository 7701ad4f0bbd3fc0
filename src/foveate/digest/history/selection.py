"""Selection: which lines a room holds, by their worth for a character."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from .sections import without_title
from .terms import terms_of

__all__ = ["Line", "Selection", "take_fitting"]


class Line(Struct, gc=False):
    """A line that a digest may show."""

    title: str
    """The title of its section."""
    text: str
    """Its words."""
    weight: float
    """Its worth."""
    place: int
    """Its rank in the section: larger is later."""
    may_repeat: bool = True
    """Whether it is shown although other lines hold all its words."""

    @property
    def density(self) -> float:
        """Return its worth for a character. A line has fixed costs, so that short ones are not preferred for ever."""
        return self.weight / (40 + len(self.text))


_SHORTEST = 4
"""Characters that hold no name."""
_TITLE = 5
"""Characters that a section takes besides its title: the mark, the line end, and the empty line before it."""


class Selection:
    """The lines that are chosen for a room of `room` characters."""

    def __init__(self, room: int) -> None:
        self.left = room
        self.lines: dict[tuple[str, str], Line] = {}
        self._titles: set[str] = set()
        self._said: list[frozenset[str]] = []
        self._by_term: dict[str, list[int]] = {}

    def add(self, lines: Iterable[Line], room: int) -> None:
        """Choose lines by their worth for a character, in at most `room` characters and in the room that is left."""
        room = min(room, self.left)
        for line in sorted(lines, key=lambda line: (-line.density, line.place)):
            cost = len(line.text) + 1
            if line.title not in self._titles:
                cost += len(line.title) + _TITLE
            if cost > room or (line.title, line.text) in self.lines or (not line.may_repeat and self._repeats(line)):
                continue
            self.lines[line.title, line.text] = line
            self._titles.add(line.title)
            self._remember(line)
            room -= cost
            self.left -= cost

    def _repeats(self, line: Line) -> bool:
        """Return whether a chosen line holds every term of this one."""
        terms = terms_of(line.text).all
        if not terms:
            plain = line.text.removeprefix("- ")
            return any(plain in chosen.text for chosen in self.lines.values())
        rarest = min((self._by_term.get(term, []) for term in terms), key=len)
        return any(terms <= self._said[one] for one in rarest)

    def _remember(self, line: Line) -> None:
        terms = terms_of(line.text).all
        for term in terms:
            self._by_term.setdefault(term, []).append(len(self._said))
        self._said.append(terms)

    def text(self, titles: Sequence[str]) -> str:
        """Return the chosen lines under their titles, each section in the order of the history."""
        sections: dict[str, list[Line]] = {}
        for line in self.lines.values():
            sections.setdefault(line.title, []).append(line)
        shown = []
        for title in titles:
            if title in sections:
                lines = sorted(sections[title], key=lambda line: line.place)
                shown.append("\n".join([f"## {title}", *(without_title(line.text) for line in lines)]))
        return "\n\n".join(shown)


def take_fitting(names: Iterable[str], room: int) -> list[str]:
    """Return the first of these names that fit into `room` characters, separated by commas."""
    kept: list[str] = []
    for name in names:
        if room <= _SHORTEST:
            break
        if len(name) + 2 <= room:
            kept.append(name)
            room -= len(name) + 2
    return kept
