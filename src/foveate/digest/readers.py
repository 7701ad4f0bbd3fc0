"""How each kind of text is read: which of its lines say what it is, and what its lines are weighed at."""

from __future__ import annotations

import re
from collections.abc import Callable

from .shapes import Line, Reading
from .source import Source

__all__ = ["read"]

_DECLARES = re.compile(
    r"\s*(?:(?:export|default|async|pub(?:\(\w+\))?|public|private|protected|internal|static|abstract|final|override|unsafe|extern)\s+)*"
    r"(func|function|def|class|interface|struct|enum|impl|fn|type|const|let|var|trait|module|namespace|package)\s*\*?\s+?\W?\w"
)
_MATCHED = re.compile(r"((?:[A-Za-z]:)?[\w@+~.()\[\]\\/ -]*?[\w)\]])([:\-])(\d+)\2")
_BAD = re.compile(
    r"\b(?:error|errors|exception|traceback|fatal|panic|fail(?:ed|ure|ures)?|denied|undefined|cannot|not found|refused"
    r"|timed? ?out)\b"
    r"|^E\s|\bFAIL\b|✗|✘",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b\d+ (?:passed|failed|errors?|warnings?|tests?|skipped|files? changed|insertions?|deletions?"
    r"|matches|results?|rows?|total)\b"
    r"|^(?:Total|Tests?|Ran|Found|FAILED|PASSED|ok|Summary)\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+(?:\.\d+)?|0x[0-9a-f]+")


def read(kind: str, source: Source) -> Reading:
    """The lines of a text of this kind, weighed."""
    return _READERS.get(kind, _output)(source)


def _plain(source: Source) -> list[Line]:
    return [Line(number, line.strip()) for number, line in source.rows if line]


def _code(source: Source) -> Reading:
    lines = _plain(source)
    declared = 0
    for line in lines:
        match = _DECLARES.match(line.text)
        if match:
            line.weight = 1.4
            declared += match[1] not in ("const", "let", "var", "package")
    return Reading(lines, declared, "definitions")


def _matches(source: Source) -> Reading:
    lines: list[Line] = []
    files: dict[str, int] = {}
    count = 0
    for number, row in source.rows:
        match = _MATCHED.match(row)
        if not match:
            if row and row != "--":
                lines.append(Line(number, row.strip()))
            continue
        path = match[1]
        count += match[2] == ":"
        if path not in files:
            files[path] = len(lines)
            lines.append(Line(number, path + ":"))
        lines.append(
            Line(0, f"{match[3]} {row[match.end() :].strip()}", 0.9 if match[2] == ":" else 0.7, above=files[path])
        )
    lines, items = _grouped(lines), count
    return Reading(lines, items, "matches", f"{len(files)} files" if len(files) > 1 else "")


def _grouped(lines: list[Line]) -> list[Line]:
    """The lines with those of one file together, in the order in which the files come first."""
    order = sorted(
        range(len(lines)), key=lambda index: (lines[index].above if lines[index].above >= 0 else index, index)
    )
    where = {old: new for new, old in enumerate(order)}
    moved = [lines[old] for old in order]
    for line in moved:
        if line.above >= 0:
            line.above = where[line.above]
    return moved


def _output(source: Source) -> Reading:
    lines: list[Line] = []
    seen: dict[str, int] = {}
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        template = _DIGITS.sub("0", text)
        if template in seen:
            lines.append(Line(number, text, 0.8))
            continue
        seen[template] = len(lines)
        line = Line(number, text)
        if len(text) < 400 and (_TOTAL.search(text) or _BAD.search(text)):
            line.weight, line.must = 1.3, True
        lines.append(line)
    return Reading(lines)


def _prose(source: Source) -> Reading:
    lines: list[Line] = []
    headings = 0
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        if text.startswith("#"):
            headings += 1
            lines.append(Line(number, text, 1.2))
            continue
        lines.append(Line(number, text))
    return Reading(lines, headings, "headings")


_READERS: dict[str, Callable[[Source], Reading]] = {
    "code": _code,
    "matches": _matches,
    "prose": _prose,
}
