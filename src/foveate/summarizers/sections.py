"""A text in sections, each of lines that matter more or less, and the choice of those that fit.

Knows nothing of conversations. A section that a text of this kind was read from is merged with the one of its title, so
that one account can be carried on by the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Section", "fitted", "read_sections"]

_HEAD = "## "


@dataclass
class Section:
    """Lines under a title. `share`: of the room, what it may take before the others had theirs."""

    title: str
    share: float
    lines: dict[str, float] = field(default_factory=dict)
    """Each line once, in the order in which it is shown, with its weight: the heavier goes in first."""

    def add(self, line: str, weight: float) -> None:
        """Add a line, or make one that is there weigh at least so much."""
        if line.strip():
            self.lines[line] = max(weight, self.lines.get(line, weight))


def fitted(sections: Sequence[Section], room: int) -> str:
    """The sections with as many of their lines as fit into `room` characters."""
    left = room - sum(len(_HEAD) + len(section.title) + 3 for section in sections if section.lines)
    chosen: dict[str, set[str]] = {section.title: set() for section in sections}
    for share in (True, False):  # Each its share, then what is left to whoever comes first.
        for section in sections:
            most = min(left, int(room * section.share)) if share else left
            for line in sorted(section.lines, key=lambda line: -section.lines[line]):
                cost = len(line) + 1
                if line not in chosen[section.title] and cost <= most:
                    chosen[section.title].add(line)
                    most -= cost
                    left -= cost
    shown = []
    for section in sections:
        kept = [line for line in section.lines if line in chosen[section.title]]
        if kept:
            shown.append("\n".join([_HEAD + section.title, *kept]))
    return "\n\n".join(shown)


def read_sections(text: str) -> Mapping[str, list[str]]:
    """The lines of a text by the titles above them; "" for those above the first title."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in _lines(text):
        if line.startswith("#"):
            title = line.lstrip("#").strip().rstrip(":")
        else:
            found.setdefault(title, []).append(line)
    return found


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() for line in text.splitlines() if line.strip())
