"""Sections of the digest of a history: titles, kinds of statements, and the lines of a text by title."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .weights import Kind

__all__ = [
    "BETWEEN",
    "BULLET",
    "COPIED",
    "DONE",
    "ERRORS",
    "FOUND",
    "KIND_OF",
    "LAST",
    "NAMES",
    "OF_MODEL",
    "ORDER",
    "REFERRED",
    "RULES",
    "STILL_BINDING",
    "STILL_VALID",
    "TITLE_OF",
    "VALUES",
    "read_sections",
    "without_title",
]

GOAL, RULES, DECISIONS, VALUES, OPEN = "Goal", "Rules", "Decisions", "Values", "Open"
ASKED, DONE, ERRORS, FOUND = "Asked by the user", "Done", "Errors", "Files and identifiers"
SAID, LAST, NAMES = "Said", "Last said", "Names"
ORDER = (GOAL, RULES, DECISIONS, VALUES, OPEN, ASKED, DONE, ERRORS, FOUND, SAID, LAST)
TITLE_OF: dict[Kind, str] = {
    "goal": GOAL,
    "rule": RULES,
    "decision": DECISIONS,
    "value": VALUES,
    "open": OPEN,
    "asked": ASKED,
    "said": SAID,
}
STILL_BINDING, STILL_VALID = "Still binding:", "Still valid:"
"""Lines above the statements that were added to the summary of a model. They are titles, too."""
OF_MODEL = frozenset(("said", "last said", "before"))
"""Titles of what the model said."""
KIND_OF: dict[str, Kind] = {
    **{title.casefold(): kind for kind, title in TITLE_OF.items() if kind != "said"},
    "constraints": "rule",
    "instructions": "rule",
    "preferences": "rule",
    "still binding": "rule",
    "still valid": "value",
    "pending request": "open",
    "next steps": "open",
}
"""Titles of digests and of summaries by models, and the kinds of their statements."""
COPIED = {
    "done": DONE,
    "errors": ERRORS,
    "errors and fixes": ERRORS,
    "files and identifiers": FOUND,
    "data sources": FOUND,
    "identifiers": FOUND,
    "files": FOUND,
}
"""Titles whose lines are carried on as they are."""
REFERRED = "Still referred to: "
BULLET = "- "
BETWEEN = " · "
"""Stands between older statements that one later statement may replace."""
_TITLE = re.compile(r"(?:(?:##+|#\s)\s*)+")
"""The marks of a title. One mark needs a space: `#include` is code."""


def read_sections(text: str) -> Mapping[str, list[str]]:
    """Return the lines of a text by the titles above them; "" for those above the first title."""
    sections: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if (plain := without_title(line)) != line:
            title = plain.strip().rstrip(":")
        elif line.strip():
            sections.setdefault(title, []).append(line.rstrip())
    return sections


def without_title(line: str) -> str:
    """Return a line of a section without the marks of a title: else it would begin another section."""
    marks = _TITLE.match(line)
    plain = line[marks.end() :] if marks else line
    return plain.rstrip(": ") if plain.rstrip() in (STILL_BINDING, STILL_VALID) else plain
