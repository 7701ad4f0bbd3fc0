"""Terminal output: colours of ANSI escape sequences as classes, all other sequences made visible.

Colours of the palette of 256 and of 24 bits become the nearest of the 16 basic ones, whose shades the style sheet
chooses for light and dark. Links (OSC 8) show their address as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup

from .characters import visible

__all__ = ["has_escapes", "render_terminal"]

_SEQUENCE = re.compile(
    r"\x1b\[(?P<style>[0-9;:]{0,60})m"
    r"|\x1b\]8;[^;\x07\x1b\n]{0,200};(?P<link>[^\x07\x1b\n]{0,2000})(?:\x07|\x1b\\)"
    r"|(?P<other>\x1b"
    r"(?:\[[0-9;:?<=>]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)|[ -/]{0,3}[0-Z\\^-~])?)"
)
"""A sequence of styles, a link, or any other sequence. Each is bounded, so the search is linear."""

_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}
_BASIC = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
    (255, 255, 255),
)  # fmt: skip
"""The 16 colours of xterm."""
_STEPS = (0, 95, 135, 175, 215, 255)
"""The steps of red, green and blue in colours 16 to 231 of the palette of 256."""


def has_escapes(text: str) -> bool:
    """Return whether a text has an escape sequence."""
    return "\x1b[" in text or "\x1b]" in text


def render_terminal(lines: Iterable[str]) -> list[Markup]:
    """Return the markup of each line. A style lasts until a sequence ends it, also over the end of a line."""
    style = _Style()
    return [_render_line(line, style) for line in lines]


def _render_line(line: str, style: _Style) -> Markup:
    pieces: list[str] = []
    at = 0
    for match in _SEQUENCE.finditer(line):
        pieces.append(style.wrap(line[at : match.start()]))
        at = match.end()
        if match["style"] is not None:
            style.apply(match["style"])
        elif match["link"] is not None:
            if match["link"]:
                pieces.append(f'<span class="c-address">{visible(match["link"])}</span> ')
        else:
            pieces.append(f'<span class="c-sequence">{visible(match["other"])}</span>')
    pieces.append(style.wrap(line[at:]))
    return Markup("".join(pieces))


class _Style:
    """The style at a place in the output."""

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.front = -1
        """The number of the basic colour of the text; -1 for none."""
        self.back = -1
        """The number of the basic colour behind the text; -1 for none."""

    def wrap(self, text: str) -> str:
        """Return a text in this style as markup."""
        classes = [f"c-{flag}" for flag in sorted(self.flags)]
        classes += [f"c-fg{self.front}"] if self.front >= 0 else []
        classes += [f"c-bg{self.back}"] if self.back >= 0 else []
        return f'<span class="{" ".join(classes)}">{visible(text)}</span>' if text and classes else str(visible(text))

    def apply(self, codes: str) -> None:
        """Change the style by the numbers of one sequence (ECMA-48, SGR)."""
        numbers = [int(code) if code and len(code) < 6 else 0 for code in re.split("[;:]", codes)]
        at = 0
        while at < len(numbers):
            code = numbers[at]
            at += 1
            if code == 0:
                self.flags.clear()
                self.front = self.back = -1
            elif code in _FLAGS:
                self.flags.add(_FLAGS[code])
            elif code in _ENDS:
                self.flags.difference_update(_ENDS[code])
            elif code in (38, 48):
                at, colour = _extended(numbers, at)
                self.front, self.back = (colour, self.back) if code == 38 else (self.front, colour)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.front = code - 30 if code < 90 else code - 82
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.back = code - 40 if code < 100 else code - 92
            elif code in (39, 49):
                self.front, self.back = (-1, self.back) if code == 39 else (self.front, -1)


def _extended(numbers: list[int], at: int) -> tuple[int, int]:
    """Return the index after a colour of the palette of 256 or of 24 bits, and the nearest basic colour."""
    kind = numbers[at] if at < len(numbers) else 0
    if kind == 5 and at + 1 < len(numbers):
        return at + 2, _from_palette(min(255, numbers[at + 1]))
    if kind == 2 and at + 3 < len(numbers):
        return at + 4, _nearest(*numbers[at + 1 : at + 4])
    return len(numbers), -1


def _from_palette(number: int) -> int:
    if number < 16:
        return number
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return _nearest(grey, grey, grey)
    red, rest = divmod(number - 16, 36)
    green, blue = divmod(rest, 6)
    return _nearest(_STEPS[red], _STEPS[green], _STEPS[blue])


def _nearest(red: int, green: int, blue: int) -> int:
    distances = [(red - r) ** 2 + (green - g) ** 2 + (blue - b) ** 2 for r, g, b in _BASIC]
    return distances.index(min(distances))
