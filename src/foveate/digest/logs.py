"""Output of programs: failed tests, errors, totals and states first; similar lines once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .pair_lines import is_pair
from .source import Source
from .values import Line, Reading, has_one

__all__ = ["count_states", "failure_signs", "read_output", "reports_failure", "sums_up"]

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
_VOLATILE = re.compile(
    r"(?<![\w.:/-])(?:\d[\d.,:T/-]*\d|\d)(?:Z|[munµ]?s|%|[KMGT]i?B)?(?![\w-])"
    r"|(?<![0-9A-Za-z])(?=[a-f-]*\d)[0-9a-f]{4,}(?:-[0-9a-f]{4,})*(?![0-9A-Za-z.])"
)
"""Times, durations, sizes and ids: reports of one error differ in these. Numbers of lines and in names stay."""
_FRAME = re.compile(r"at \S+.*[:(]\S*\d|\S*\.(?:py|go|rs|js|ts):\d+")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:: |:?\Z)")
_RULES = ("===", "___", "---", "***")
"""Beginnings of titles."""
_LONGEST_FAILED = 145
_LONGEST_PAIR = 100
_FIRST_ERRORS = 3
_ALIKE = 0.7
_AGAIN_FAILED = 0.55
_PAIR_WORTH = 0.25


def failure_signs(text: str) -> tuple[str, ...]:
    """Return the words in a text of which a line that reports a failure has at least one."""
    return _present(_BAD_SIGNS, _lowered(text))


def reports_failure(line: str, signs: Sequence[str]) -> bool:
    """Return whether a line reports a failure. `signs`: the `failure_signs` of its text."""
    return (line[:1] in "Ee" or has_one(_lowered(line), signs)) and _BAD.search(line) is not None


def sums_up(line: str) -> bool:
    """Return whether a line sums up: it has a count of tests or errors, or begins with a word such as Total."""
    return _TOTAL.match(line) is not None or _COUNT.search(line) is not None


def count_states(text: str) -> str:
    """Return how many lines begin with a state or a level, the most frequent first: `ok 12, FAIL 2`."""
    levels = _present(_LEVEL_SIGNS, text)
    return _listed(Counter([state for line in text.split("\n") if (state := _state_of(line, levels))]))


def _state_of(line: str, levels: Sequence[str]) -> str:
    match = _STATE.match(line) or (_LEVEL.match(line) if has_one(line, levels) else None)
    return match[1] if match else ""


def _listed(states: Counter[str]) -> str:
    return ", ".join([f"{state} {count}" for state, count in states.most_common(4)])


def _lowered(text: str) -> str:
    """Return a text in small letters, with `s` and `i` for all letters that a pattern without case takes for these."""
    lowered = text.lower()
    return lowered if text.isascii() else lowered.replace("\u017f", "s").replace("\u0131", "i").replace("\u0307", "")


def _present(signs: Sequence[str], text: str) -> tuple[str, ...]:
    return tuple([sign for sign in signs if sign in text])


def read_output(source: Source) -> Reading:
    """Return the lines of a program's output, after a list of the tests that failed.

    Errors, totals and the first lines weigh more; a line that differs from an earlier one only in numbers weighs less.
    An error that is reported again, at another time or with another id, is shown once with the number of its lines.
    """
    output = _Output("\n".join([row for _, row in source.rows]))
    for number, row in source.rows:
        if text := row.strip():
            output.add(number, text, is_indented=row[0] in " \t")
    return output.reading()


class _Output:
    """The lines of a program's output so far."""

    def __init__(self, body: str) -> None:
        self.lines: list[Line] = []
        self.failed: dict[str, None] = {}
        """The names of failed tests."""
        self._first: dict[str, Line] = {}
        """The first line of each form."""
        self._counts: Counter[int] = Counter()
        """How many more lines are like a line, by its identity."""
        self._states: Counter[str] = Counter()
        self._failing: set[str] = set()
        """The forms of lines that report a failure."""
        self._errors: dict[str, Line] = {}
        """The first line of each error."""
        self._frames: dict[str, int] = {}
        self._frame = -1
        """Index of the newest frame of the traceback that is being read; -1 for none."""
        self._is_tracing = False
        self._bad = failure_signs(body)
        self._levels, self._failures = _present(_LEVEL_SIGNS, body), _present(_FAILED_SIGNS, body)

    def add(self, number: int, text: str, *, is_indented: bool) -> None:
        """Add a line. A line that is equal to an earlier one is only counted."""
        if state := _state_of(text, self._levels):
            self._states[state] += 1
        if named := _FAILED.match(text) if has_one(text, self._failures) else None:
            self.failed[" ".join([group for group in named.groups() if group])] = None
        line = Line(number, text)
        template = _NUMBERS.sub("0", text)[:120]
        seen = self._first.setdefault(template, line)
        if seen is line or self._is_tracing or text[0] == "T":
            is_error = self._is_error(line, template, is_new=seen is line, is_indented=is_indented)
        else:
            is_error = template in self._failing
        if is_error:
            # The numbers of an assertion are what failed.
            form = text if text.startswith("E ") or "assert" in text else _VOLATILE.sub("0", text)
            seen = self._errors.setdefault(form, line)
            if seen is line and named is None:
                line.weight, line.must = 1.3, 1
        elif seen is line and 6 < len(text) < 400 and sums_up(text):
            line.weight, line.must = 1.3, 4 if _COUNTED.search(text) else 2
        elif seen is line and _FRAME.match(text) and self.lines and self.lines[-1].must == 1:
            line.must = 1
        if seen is not line:
            line.weight = _AGAIN_FAILED if is_error else _ALIKE
            self._counts[id(seen)] += 1
            if seen.text == text:
                self._frame = self._frames.get(text, self._frame)
                return  # The count next to the first one is enough.
        elif not line.must and len(text) <= _LONGEST_PAIR and (": " in text or "=" in text) and is_pair(text):
            line.worth = _PAIR_WORTH
        if self._is_tracing and text.startswith("File "):
            self._frame = self._frames[text] = len(self.lines)
        self.lines.append(line)

    def _is_error(self, line: Line, template: str, *, is_new: bool, is_indented: bool) -> bool:
        """Return whether a line reports a failure. The exception after a traceback gets the newest frame above it."""
        text = line.text
        if text.startswith("Traceback (most recent"):
            self._is_tracing, self._frame = True, -1
            return False
        if self._is_tracing and not is_indented:
            self._is_tracing = False
            if self._frame >= 0 and _RAISED.match(text):
                line.above = self._frame
                self._failing.add(template)
                return True
        if self._is_tracing:
            return False  # A line of source: it did not fail itself.
        if not is_new:
            return template in self._failing
        if not 6 < len(text) < 400 or sums_up(text) or text.startswith(_RULES):
            return False
        if not reports_failure(text, self._bad) or _FINE.search(text):
            return False
        self._failing.add(template)
        return True

    def reading(self) -> Reading:
        """Return the lines with their counts and ranks."""
        lines = self.lines
        errors = [line for line in self._errors.values() if line.must]
        frequent = max(errors, key=lambda line: self._counts[id(line)], default=None)
        for index, line in enumerate(errors):
            if index < _FIRST_ERRORS or line is errors[-1] or line is frequent:
                line.must = 3
            elif _PLACE.search(line.text) or line.above >= 0:
                line.must = 2
        if lines:
            lines[0].must = max(lines[0].must, 2)
            lines[-1].must = max(lines[-1].must, 1)
        failing = set(map(id, errors))
        for line in lines:
            count = self._counts[id(line)] + 1
            if count > 2 or (count > 1 and id(line) in failing):
                line.text = f"{line.text} (×{count})"
        if self.failed:
            lines.insert(0, _failed_line(_without_sections(list(self.failed))))
            for line in lines:
                line.above += line.above >= 0
        return Reading(lines, _listed(self._states))


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
