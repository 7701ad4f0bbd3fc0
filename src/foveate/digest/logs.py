"""Output of programs: failed tests, errors, totals and states first; similar lines once."""

from __future__ import annotations

import re
from collections import Counter

from .source import Source
from .values import Line, Reading

__all__ = ["BAD", "TOTAL", "read_output"]

BAD = re.compile(
    r"\b(?:errors?|[A-Za-z]*(?:Error|Exception)|exception|traceback|fatal|panic|fail(?:ed|ure|ures)?|denied|cannot"
    r"|not found|refused|timed? ?out|undefined)\b|^E\s|\bFAIL\b|✗|✘|✕|\*\*\* \[",
    re.IGNORECASE,
)
"""A line that reports a failure."""
TOTAL = re.compile(
    r"(?<![:\d.])\b\d+ (?:passed|failed|errors?|warnings?|tests?|skipped|files? changed|insertions?|deletions?)\b"
    r"|^(?:Total|Tests|Ran|Found|FAILED|PASSED|Summary|Successfully|BUILD|test result)\b",
    re.IGNORECASE,
)
"""A line that sums up."""
_COUNTED = re.compile(
    r"\b\d+ (?:passed|failed|errors?|files? changed)\b|^Ran \d|^Tests run: \d+.*(?<![\d.] s)\Z|^Tests: |^BUILD ",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"(?:---? |\[)?(ok|FAIL|PASS(?:ED)?|FAILED|SKIP|ERROR|WARN(?:ING)?|INFO|DEBUG)\b"
    r"|.{1,60}?\s\[?(ERROR|WARN(?:ING)?|INFO|DEBUG)\b"
)
_FAILED = re.compile(
    r"FAILED (?P<pytest>\S+::\S+)|ERROR (?P<collected>\S+\.py\S*)(?: - |\Z)|_{3,} (?P<section>[\w.\[\]-]+) _{3,}\Z"
    r"|(?:FAIL|ERROR): (?P<unittest>\w+ \([\w.]+\))|--- FAIL: (?P<go>\S+)|test (?P<cargo>\S+) \.\.\. FAILED"
    r"|[✕×✗✘] (?P<jest>\S.{2,80}?)(?: \(\d+ ?m?s\))?\Z|not ok \d+ -? ?(?P<tap>.{3,80})"
    r"|\[ERROR\] +(?P<maven>[\w.]+(?:Test|IT|Tests)\.\w+):\d+|(?P<gradle>[\w.]+ > [\w (),]+) FAILED\Z"
    r"|make(?:\[\d+\])?: \*\*\* (?P<make>\[.*?\] Error \d+)"
)
_FINE = re.compile(r"\b(?:0|no) (?:errors?|fail\w*)|\bPASS|nolint|errors?\.(?:go|ts|py)|\bsuccess", re.IGNORECASE)
_PLACE = re.compile(r"[\w/.\\-]+\.\w+(?::\d+|\(\d+|\", line \d+)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_LONGEST_FAILED = 145


def read_output(source: Source) -> Reading:
    """Return the lines of a program's output, after a list of the tests that failed.

    Errors, totals and the first lines weigh more; a line that differs from an earlier one only in numbers weighs less.
    """
    lines: list[Line] = []
    first: dict[str, Line] = {}
    counts: dict[int, int] = {}
    states: Counter[str] = Counter()
    failed: dict[str, None] = {}
    worst = 0
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        if match := _STATE.match(text):
            states[match[1] or match[2]] += 1
        if match := _FAILED.match(text):
            failed[" ".join([group for group in match.groups() if group])] = None
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
    if failed:
        lines.insert(0, _failed_line(_without_sections(list(failed))))
    return Reading(lines, ", ".join([f"{state} {count}" for state, count in states.most_common(4)]))


def _without_sections(names: list[str]) -> list[str]:
    """Return the names of failed tests; pytest names each twice, as the title of its section and with its file."""
    return [
        name
        for name in names
        if not any(other != name and other.endswith(f"::{name.replace('.', '::')}") for other in names)
    ]


def _failed_line(names: list[str]) -> Line:
    """Return a line with the number and the names of failed tests."""
    text = f"failed ({len(names)}): "
    for count, name in enumerate(names):
        if len(text) + len(name) > _LONGEST_FAILED and count:
            return Line(0, f"{text[:-2]} … {len(names) - count} more", 1.3, 5)
        text += f"{name}, "
    return Line(0, text[:-2], 1.3, 5)
