"""Readers: the lines of each kind of text, with their weights and the lines that must stay.

A reader knows the form of its kind. It does not know how much room there is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from .source import Source
from .values import Line, Reading

__all__ = ["BAD", "DECLARES", "MATCHED", "TOTAL", "parsed", "read_lines", "read_output", "skeleton"]

_MOST_PARSED = 2_000_000
_KEYS = 12
_ROOM = 118


def parsed(text: str) -> Any:
    """Return the value of a JSON text; None if it is no JSON, too long or nested too deeply."""
    if len(text) > _MOST_PARSED:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def skeleton(text: str) -> str:
    """Return keys and counts of the upper levels, as `{name: {first}, orders: [12 of {id, total}]}`; "" for no JSON."""
    value = parsed(text)
    if value is None and text[:1] == "{":
        # JSON Lines: the first object stands for all.
        first, _, more = text.partition("\n")
        value = parsed(first)
        if isinstance(value, dict) and more:
            return f"{more.count(chr(10)) + 1} lines as {_within(value)}"
    return _within(value) if isinstance(value, dict | list) else ""


def _within(value: Any) -> str:
    for depth in (3, 2, 1):
        shape = _shape(value, depth)
        if len(shape) <= _ROOM:
            return shape
    return shape[: _ROOM - 1] + "…"


def _shape(value: Any, depth: int) -> str:
    """Return the shape of a value, down to `depth` levels."""
    match value:
        case dict() if not depth:
            return f"{{{len(value)} keys}}"
        case dict():
            fields = []
            for key in list(value)[:_KEYS]:
                inner = value[key]
                nested = f": {_shape(inner, depth - 1)}" if isinstance(inner, dict | list) and inner else ""
                fields.append(key[:40] + nested)
            more = f", … {len(value)} keys" if len(value) > _KEYS else ""
            return f"{{{', '.join(fields)}{more}}}"
        case list():
            first = value[0] if value else None
            inner = f" of {_shape(first, depth - 1)}" if depth and isinstance(first, dict | list) and first else ""
            return f"[{len(value)}{inner}]"
        case _:
            return ""


BAD = re.compile(
    r"\b(?:errors?|[A-Za-z]*(?:Error|Exception)|exception|traceback|fatal|panic|fail(?:ed|ure|ures)?|denied|cannot"
    r"|not found|refused|timed? ?out|undefined)\b|^E\s|\bFAIL\b|✗|✘",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"(?<![:\d.])\b\d+ (?:passed|failed|errors?|warnings?|tests?|skipped|files? changed|insertions?|deletions?)\b"
    r"|^(?:Total|Tests|Ran|Found|FAILED|PASSED|Summary|Successfully|BUILD)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\b\d+ (?:passed|failed|errors?|files? changed)\b|^Ran \d", re.IGNORECASE)
_STATE = re.compile(
    r"(?:---? |\[)?(ok|FAIL|PASS(?:ED)?|FAILED|SKIP|ERROR|WARN(?:ING)?|INFO|DEBUG)\b"
    r"|.{1,60}?\s\[?(ERROR|WARN(?:ING)?|INFO|DEBUG)\b"
)
_FINE = re.compile(r"\b(?:0|no) (?:errors?|fail\w*)|\bPASS|nolint|errors?\.(?:go|ts|py)|\bsuccess", re.IGNORECASE)
_PLACE = re.compile(r"[\w/.\\-]+\.\w+(?::\d+|\(\d+|\", line \d+)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")


def read_output(source: Source) -> Reading:
    """Return the lines of a program's output with their weights.

    Errors, totals and the first lines weigh more; a line that differs from an earlier one only in numbers weighs less.
    """
    lines: list[Line] = []
    first: dict[str, Line] = {}
    counts: dict[int, int] = {}
    states: Counter[str] = Counter()
    worst = 0
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        if match := _STATE.match(text):
            states[match[1] or match[2]] += 1
        template = _NUMBERS.sub("0", text)[:120]
        line = Line(number, text)
        seen = first.setdefault(template, line)
        if seen is not line:
            line.weight = 0.7
            counts[id(seen)] = counts.get(id(seen), 1) + 1
            if seen.text == text:
                continue  # The count next to the first one is enough.
        elif 6 < len(text) < 400:
            if TOTAL.search(text):
                line.weight, line.must = 1.3, 4 if _COUNTED.search(text) else 2
            elif BAD.search(text) and not _FINE.search(text):
                worst += 1
                line.weight = 1.3
                line.must = 3 if worst <= 3 else 2 if _PLACE.search(text) else 1
        lines.append(line)
    if lines:
        lines[0].must = max(lines[0].must, 2)
        lines[-1].must = max(lines[-1].must, 1)
    for line in lines:
        more = counts.get(id(line), 0)
        if more > 2:
            line.text = f"{line.text} (×{more})"
    return Reading(lines, ", ".join([f"{state} {count}" for state, count in states.most_common(4)]))


DECLARES = re.compile(
    r"\s*(?:(?:export|default|async|pub(?:\(\w+\))?|public|private|protected|internal|static|abstract|final|override"
    r"|unsafe|extern)\s+)*"
    r"(func|function|def|class|interface|struct|enum|impl|fn|type|const|let|var|trait|module|namespace|package)"
    r"\b[ *]+(?:\([^)\n]{0,80}\) ?)?([A-Za-z_$][\w$]*)"
)
MATCHED = re.compile(r"(?=[^:]{0,200}[A-Za-z])((?:[A-Za-z]:)?[\w@+~.()\[\]\\/-]*[\w)\]])([:\-])(\d+)\2")

_LOCAL = ("const", "let", "var", "package")
_LS = re.compile(r"[dl\-cbps][rwxsStT-]{9}[@+.]?\s+\d+\s+\S+\s+\S+\s+([\d.,]+[KMG]?)\s+\S+\s+\S+\s+\S+\s+(.*)")
_HUNK = re.compile(r"@@+ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@+ ?(.*)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"(\[])")
_TAG = re.compile(r"<(?:script|style)\b[^>]{0,300}>|</?\w[^<>]{0,600}>?")
_ATTRIBUTE = re.compile(
    r"\b(?:href|src|action|id|name|value|title|alt|placeholder|aria-label)=(\"[^\"]{1,200}\"|'[^']{1,200}')"
)
_ACTS = re.compile(r"\b(?:button|link|textbox|input|checkbox|radio|combobox|menuitem|option|tab|searchbox|heading)\b")


def read_lines(kind: str, source: Source, text: str) -> Reading:
    """Return the lines of a text of this kind with their weights. `text`: the text, for kinds that are read whole."""
    if kind == "json":
        return _json(source, text)
    return _READERS.get(kind, read_output)(source)


def _plain(source: Source) -> list[Line]:
    return [Line(number, line.strip()) for number, line in source.rows if line]


def _code(source: Source) -> Reading:
    lines = _plain(source)
    for line in lines:
        match = DECLARES.match(line.text)
        if match:
            line.weight = 1.2 if match[1] in _LOCAL else 1.4
    return Reading(lines)


def _json(source: Source, text: str) -> Reading:
    lines = _plain(source)
    shape = skeleton(text) or skeleton("\n".join([row for _, row in source.rows]))
    if shape:
        lines.insert(0, Line(0, shape, must=3))
    return Reading(lines)


def _matches(source: Source) -> Reading:
    """Group matches by file: the path once, below it the numbers and texts of its lines."""
    groups: dict[str, list[Line]] = {}
    others: list[Line] = []
    for number, row in source.rows:
        match = MATCHED.match(row)
        if match:
            weight = 1.0 if match[2] == ":" else 0.8
            groups.setdefault(match[1], []).append(Line(0, row[match.end() :].strip(), weight, mark=f"{match[3]} "))
        elif row and row != "--":
            others.append(Line(number, row.strip()))
    lines = others
    for path, rows in groups.items():
        above = len(lines)
        lines.append(Line(0, path + ":", must=1))
        for line in rows:
            line.above = above
        lines.extend(rows)
    return Reading(lines, f"{len(groups)} files" if len(groups) > 1 else "")


def _listing(source: Source) -> Reading:
    """Put names under their folder, if the folder is not part of the name."""
    lines: list[Line] = []
    folders: dict[str, int] = {}
    above = -1
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        listed = _LS.match(text)
        if listed:
            lines.append(Line(number, f"{listed[2]} {listed[1]}", above=above))
        elif text.endswith(":") and len(text) > 1:
            above = len(lines)
            lines.append(Line(number, text))
        elif "\\" in text and " " not in text:
            folder, _, name = text.rpartition("\\")
            if folder not in folders:
                folders[folder] = len(lines)
                lines.append(Line(0, folder + "\\:"))
            lines.append(Line(number, name, above=folders[folder]))
        else:
            lines.append(Line(number, text, above=above))
    return Reading(_grouped(lines))


def _grouped(lines: list[Line]) -> list[Line]:
    """Return the lines with all lines below one line together, in the order in which those first occur."""
    order = sorted(
        range(len(lines)), key=lambda index: (lines[index].above if lines[index].above >= 0 else index, index)
    )
    where = {old: new for new, old in enumerate(order)}
    moved = [lines[old] for old in order]
    for line in moved:
        if line.above >= 0:
            line.above = where[line.above]
    return moved


def _diff(source: Source) -> Reading:
    """Put changed lines under the path of their file."""
    lines: list[Line] = []
    above = -1
    added = removed = 0
    for number, row in source.rows:
        if row.startswith("diff --git "):
            above = len(lines)
            lines.append(Line(number, row.rpartition(" b/")[2] + ":", must=1))
        elif row.startswith("+++ "):
            path = row[4:].removeprefix("b/").partition("\t")[0]
            if above < 0 or not lines[above].text.startswith(path):
                above = len(lines)
                lines.append(Line(number, path + ":", must=1))
        elif row.startswith(("index ", "--- ", "old mode", "new mode", "similarity ", "\\ No newline")):
            continue
        elif row.startswith("@@"):
            hunk = _HUNK.match(row)
            if hunk and hunk[2]:
                lines.append(Line(number, f"@@ {hunk[1]} {hunk[2]}", 0.8, above=above))
        elif row:
            added += row[0] == "+"
            removed += row[0] == "-"
            changed = row[0] in "+-"
            text = row[1:].strip() if changed else row.strip()
            if text:
                mark = row[0] if changed else ""
                lines.append(Line(number, text, 1.0 if changed else 0.6, mark=mark, above=above))
    return Reading(lines, f"+{added} -{removed}")


def _table(source: Source) -> Reading:
    """Keep the first row, which names the columns, and the next and the last row as samples."""
    lines = _plain(source)
    if lines:
        lines[0].must = 3
        lines[-1].must = 1
        lines[min(2 if len(lines) > 1 and set(lines[1].text) <= set("|-: +") else 1, len(lines) - 1)].must = 2
    return Reading(lines)


def _prose(source: Source) -> Reading:
    """Split prose into sentences. Headings and the beginnings of paragraphs weigh more."""
    lines: list[Line] = []
    fresh = True
    rows = source.rows
    if not source.escaped:
        # A long line is stored in pieces of one number, and a sentence may span them.
        rows = [(number, "".join([row for _, row in pieces])) for number, pieces in groupby(rows, itemgetter(0))]
    for number, row in rows:
        text = row.strip()
        if not text:
            fresh = True
            continue
        if text.startswith("#"):
            lines.append(Line(number, text, 1.2, must=1 if text[1:2] in " #" else 0))
            fresh = True
            continue
        for sentence in _SENTENCE.split(text) if len(text) > 160 else (text,):
            lines.append(Line(number, sentence, 1.1 if fresh else 1.0))
            fresh = False
    lines = _once(lines)
    if lines:
        lines[0].must = 3
    return Reading(lines)


def _once(lines: list[Line]) -> list[Line]:
    """Return identical lines once, with their number."""
    counts = Counter([line.text for line in lines])
    first: dict[str, Line] = {}
    for line in lines:
        first.setdefault(line.text, line)
    for text, line in first.items():
        if counts[text] > 2:
            line.text = f"{text} (×{counts[text]})"
    return list(first.values())


def _page(source: Source) -> Reading:
    """Return words without tags, addresses and names of elements. Buttons, links and fields weigh more."""
    lines: list[Line] = []
    for number, row in source.rows:
        text = row.strip()
        if "<" in text:
            named = " ".join([found[1].strip("\"'") for found in _ATTRIBUTE.finditer(text)])
            text = f"{' '.join(_TAG.sub(' ', text).split())} {named}".strip()
        if text:
            lines.append(Line(number, text, 1.2 if _ACTS.search(text[:80]) else 1.0))
    if lines:
        lines[0].must = 3
    return Reading(lines)


_READERS: dict[str, Callable[[Source], Reading]] = {
    "code": _code,
    "edit": _code,
    "matches": _matches,
    "listing": _listing,
    "diff": _diff,
    "table": _table,
    "prose": _prose,
    "page": _page,
}
