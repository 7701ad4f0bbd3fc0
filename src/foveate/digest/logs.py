"""Output of programs: failed tests, errors, totals and states first; similar lines once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .source import Source
from .values import Line, Reading, has_one

__all__ = ["failure_signs", "read_output", "reports_failure", "sums_up"]

_BAD = re.compile(
    r"\b(?:errors?|[A-Za-z]*(?:Error|Exception)|exception|traceback|fatal|panic|fail(?:ed|ure|ures)?|denied|cannot"
    r"|not found|refused|timed? ?out|undefined)\b|^E\s|\bFAIL\b|✗|✘|✕|\*\*\* \[",
    re.IGNORECASE,
)
_BAD_SIGNS = (
    "error", "exception", "traceback", "fatal", "panic", "fail", "denied", "cannot", "not found", "refused", "timeout",
    "time out", "timed out", "timedout", "undefined", "✗", "✘", "✕", "*** [",
)  # fmt: skip
"""A line that `_BAD` finds has one of these in small letters, or begins with E."""
_COUNT = re.compile(
    r"\d(?<![\w:.]\d)\d* "
    r"(?:passed|failed|errors?|warnings?|tests?|skipped|files? changed|insertions?|deletions?)\b",
    re.IGNORECASE,
)
"""It begins with a digit, not with a look behind, so that the search skips all other characters."""
_TOTAL = re.compile(r"(?:Total|Tests|Ran|Found|FAILED|PASSED|Summary|Successfully|BUILD|test result)\b", re.IGNORECASE)
_COUNTED = re.compile(
    r"\b\d+ (?:passed|failed|errors?|files? changed)\b|^Ran \d|^Tests run: \d+.*(?<![\d.] s)\Z|^Tests: |^BUILD ",
    re.IGNORECASE,
)
_STATE = re.compile(r"(?:---? |\[)?(ok|FAIL|PASS(?:ED)?|FAILED|SKIP|ERROR|WARN(?:ING)?|INFO|DEBUG)\b")
_LEVEL = re.compile(r".{1,60}?\s\[?(ERROR|WARN(?:ING)?|INFO|DEBUG)\b")
_LEVEL_SIGNS = ("ERROR", "WARN", "INFO", "DEBUG")
"""A line that `_LEVEL` matches has one of these."""
_FAILED = re.compile(
    r"FAILED (?P<pytest>\S+::\S+)|ERROR (?P<collected>\S+\.py\S*)(?: - |\Z)|_{3,} (?P<section>[\w.\[\]-]+) _{3,}\Z"
    r"|(?:FAIL|ERROR): (?P<unittest>\w+ \([\w.]+\))|--- FAIL: (?P<go>\S+)|test (?P<cargo>\S+) \.\.\. FAILED"
    r"|[✕×✗✘] (?P<jest>\S.{2,80}?)(?: \(\d+ ?m?s\))?\Z|not ok \d+ -? ?(?P<tap>.{3,80})"
    r"|\[ERROR\] +(?P<maven>[\w.]+(?:Test|IT|Tests)\.\w+):\d+|(?P<gradle>[\w.]+ > [\w (),]+) FAILED\Z"
    r"|make(?:\[\d+\])?: \*\*\* (?P<make>\[.*?\] Error \d+)"
)
_FAILED_SIGNS = ("FAIL", "ERROR", "___", "✕", "×", "✗", "✘", "not ok ", "*** [")
"""A line that `_FAILED` matches has one of these."""
_FINE = re.compile(r"\b(?:0|no) (?:errors?|fail\w*)|\bPASS|nolint|errors?\.(?:go|ts|py)|\bsuccess", re.IGNORECASE)
_PLACE = re.compile(r"[\w/.\\-]+\.\w+(?::\d+|\(\d+|\", line \d+)")
_NUMBERS = re.compile(r"\d\d*(?:\.\d+)?")
_LONGEST_FAILED = 145


def failure_signs(text: str) -> tuple[str, ...]:
    """Return the words in a text of which a line that reports a failure has at least one."""
    return _present(_BAD_SIGNS, _lowered(text))


def reports_failure(line: str, signs: Sequence[str]) -> bool:
    """Whether a line reports a failure. `signs`: the `failure_signs` of its text."""
    return (line[:1] in "Ee" or has_one(_lowered(line), signs)) and _BAD.search(line) is not None


def sums_up(line: str) -> bool:
    """Whether a line sums up: it has a count of tests or errors, or begins with a word such as Total."""
    return _TOTAL.match(line) is not None or _COUNT.search(line) is not None


def _lowered(text: str) -> str:
    """Return a text in small letters, with `s` and `i` for all letters that a pattern without case takes for these."""
    lowered = text.lower()
    return lowered if text.isascii() else lowered.replace("\u017f", "s").replace("\u0131", "i").replace("\u0307", "")


def _present(signs: Sequence[str], text: str) -> tuple[str, ...]:
    return tuple([sign for sign in signs if sign in text])


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
    body = "\n".join([row for _, row in source.rows])
    bad, levels, failures = failure_signs(body), _present(_LEVEL_SIGNS, body), _present(_FAILED_SIGNS, body)
    for number, row in source.rows:
        text = row.strip()
        if not text:
            continue
        if match := _STATE.match(text) or (_LEVEL.match(text) if has_one(text, levels) else None):
            states[match[1]] += 1
        if match := _FAILED.match(text) if has_one(text, failures) else None:
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
            if sums_up(text):
                line.weight, line.must = 1.3, 4 if _COUNTED.search(text) else 2
            elif reports_failure(text, bad) and not _FINE.search(text):
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
