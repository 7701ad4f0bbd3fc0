"""What a docstring says of a function and of its parameters, in the three styles that Python knows.

Google's (`Args:` and an indented list), NumPy's (`Parameters` underlined) and reST's (`:param name: ...`). Whatever
else stands under a heading of its own, such as what is returned or raised, is for programmers and left out. Knows
nothing of tools.
"""

from __future__ import annotations

import inspect
import re

__all__ = ["described"]

_GOOGLE = re.compile(
    r"(args|arguments|params|parameters|keyword args|keyword arguments|other parameters|returns?|yields?|raises|"
    r"examples?|notes?|attributes|see also|references|warnings?|todo):\s*",
    re.IGNORECASE,
)
_PARAMETERS = {"args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters"}
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_REST_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_REST_FIELD = re.compile(r":\w+[^:]*:(\s|$)")


def described(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description, all that stands before any heading or field, and what is said of each parameter, by its name.

    Line breaks within a parameter's description become spaces.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    prose: list[str] = []
    told: dict[str, list[str]] = {}
    place = 0
    while place < len(lines):
        line = lines[place]
        if heading := _heading(lines, place):
            name, first = heading
            place = _end(lines, first)
            if name in _PARAMETERS:
                _entries(lines[first:place], told)
        elif _REST_FIELD.match(line):
            end = _deeper(lines, place + 1)
            if parameter := _REST_PARAMETER.match(line):
                told.setdefault(parameter[1], []).extend([parameter[2], *lines[place + 1 : end]])
            place = end
        else:
            if not told:  # What follows the parameters is about something else.
                prose.append(line)
            place += 1
    return "\n".join(prose).strip(), {name: " ".join(" ".join(said).split()) for name, said in told.items()}


def _heading(lines: list[str], place: int) -> tuple[str, int] | None:
    """The heading at this line, in lower case, and the first line below it."""
    line, below = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
    if line and not line[0].isspace():
        if re.fullmatch(r"-{3,}\s*", below):
            return line.strip().lower(), place + 2
        if (named := _GOOGLE.fullmatch(line)) and (not below.strip() or below[0].isspace()):
            return named[1].lower(), place + 1
    return None


def _end(lines: list[str], place: int) -> int:
    """The line behind a section: the next heading, or under Google's the next line that is not indented."""
    is_numpy = set(lines[place - 1].strip()) == {"-"}
    while place < len(lines):
        line = lines[place]
        if _heading(lines, place) or (not is_numpy and line.strip() and not line[0].isspace()):
            return place
        place += 1
    return place


def _deeper(lines: list[str], place: int) -> int:
    """The first line from here on that is not indented, or is blank."""
    while place < len(lines) and lines[place].strip() and lines[place][0].isspace():
        place += 1
    return place


def _entries(lines: list[str], told: dict[str, list[str]]) -> None:
    """The parameters of one section: those at its least indentation, each with what stands below it, deeper."""
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    current: list[list[str]] = []
    for line in lines:
        is_entry = line.strip() and len(line) - len(line.lstrip()) == depth
        if not is_entry:
            for said in current:
                said.append(line)
        elif depth and (one := _GOOGLE_ENTRY.match(line.strip())):
            current = [told.setdefault(one[1], [])]
            current[0].append(one[2])
        elif not depth and (several := _NUMPY_ENTRY.fullmatch(line.strip())):
            current = [told.setdefault(name.strip(), []) for name in several[1].split(",")]
