"""How the output of programs is read: logs, test runs, builds. What went wrong, totals, what is said first.

A line that differs from an earlier one only in its numbers says little more than that one: it is worth less.
"""

from __future__ import annotations

import re
from collections import Counter

from .shapes import Line, Reading
from .source import Source

__all__ = ["BAD", "TOTAL", "read_output"]

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
    """The lines of a program's output, weighed."""
    lines: list[Line] = []
    first: dict[str, Line] = {}
    counts: dict[int, int] = {}
    told: Counter[str] = Counter()
    worst = 0
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        if found := _STATE.match(text):
            told[found[1] or found[2]] += 1
        template = _NUMBERS.sub("0", text)[:120]
        line = Line(number, text)
        seen = first.setdefault(template, line)
        if seen is not line:
            line.weight = 0.7
            counts[id(seen)] = counts.get(id(seen), 1) + 1
            if seen.text == text:
                continue  # The same to the letter: the count beside the first one says it all.
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
    return Reading(lines, ", ".join([f"{state} {count}" for state, count in told.most_common(4)]))
