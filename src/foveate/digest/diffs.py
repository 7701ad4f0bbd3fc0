"""Diffs: changed files with the number of changes, hunks, and the changed lines below them."""

from __future__ import annotations

import re

from .source import Source
from .values import Line, Reading

__all__ = ["read_diff"]

_HUNK = re.compile(r"@@+ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@+ ?(.*)")
_PATCHED = re.compile(r"\*\*\* (?:Update|Add|Delete) File: (.*)")
_SKIPPED = ("index ", "--- ", "old mode", "new mode", "similarity ", "\\ No newline", "*** Begin", "*** End")


def read_diff(source: Source) -> Reading:
    """Return the path of each file with its changes, and below it the hunks and the changed lines."""
    lines: list[Line] = []
    changes: dict[int, list[int]] = {}
    above = -1
    for number, row in source.rows:
        path = _path_in(row)
        if path:
            if above < 0 or lines[above].text != path:
                above = len(lines)
                changes[above] = [0, 0, 0]
                lines.append(Line(0, path, must=4))
        elif row.startswith(_SKIPPED):
            continue
        elif row.startswith("@@"):
            hunk = _HUNK.match(row)
            if above >= 0:
                changes[above][2] += 1
            place = f"@@ {hunk[1]} {hunk[2]}".rstrip() if hunk else row
            lines.append(Line(0, place, 0.8, must=1 if hunk else 0, depth=int(above >= 0), above=above))
        elif row:
            changed = row[0] in "+-" and above >= 0
            if changed:
                changes[above][row[0] == "-"] += 1
            text = row[1:].strip() if row[0] in "+- " else row.strip()
            if text:
                line = Line(0 if above >= 0 else number, text, 1.0 if changed else 0.6, above=above)
                line.mark, line.depth = row[0] if changed else "", int(above >= 0)
                lines.append(line)
    for index, (added, removed, hunks) in changes.items():
        lines[index].text += f" (+{added} -{removed}{f', {hunks} hunks' if hunks > 1 else ''})"
    added, removed = (sum([each[side] for each in changes.values()]) for side in (0, 1))
    files = f"{len(changes)} files, " if len(changes) > 1 else ""
    return Reading(lines, f"{files}+{added} -{removed}" if changes else "")


def _path_in(row: str) -> str:
    if row.startswith("diff --git "):
        return row.rpartition(" b/")[2]
    if row.startswith("+++ "):
        path = row[4:].removeprefix("b/").partition("\t")[0]
        return "" if path == "/dev/null" else path
    patched = _PATCHED.match(row) if row.startswith("*** ") else None
    return patched[1] if patched else ""
