"""Listings and search results: files below their folders with counts, matches below their files."""

from __future__ import annotations

import re
from collections import Counter

from ..core.scripts import MARKS
from .source import Source
from .values import Line, Reading

__all__ = ["MATCHED", "UNNUMBERED", "read_listing", "read_matches", "unfold_paths"]

MATCHED = re.compile(
    rf"(?=[^:]{{0,200}}[^\W\d_])((?:[A-Za-z]:)?[\w{MARKS}@+~.()\[\]\\/-]*[\w{MARKS})\]])([:\-])(\d+)\2"
)
"""A line that a search found: its path, a mark and its number."""

UNNUMBERED = re.compile(
    rf"((?:[A-Za-z]:)?[\w{MARKS}@+~()\[\]./\\-]*[/\\][\w{MARKS}@+~()\[\].-]+\.\w{{1,6}}):(?!\d+[:\-])"
)
"""A line that a search found, without its number."""

_LS = re.compile(r"[dl\-cbps][rwxsStT-]{9}[@+.]?\s+\d+\s+\S+\s+\S+\s+([\d.,]+[KMGT]?)\s+\S+\s+\S+\s+\S+\s+(.*)")
_DU = re.compile(r"(\d[\d.,]*[KMGT]?)\s+(\S.*)")
_TREE = re.compile(r"((?:[│|] {1,3}|[│|]\xa0{2} | {4})*)(?:[├└]──|[|`]--) (.*)")
_TOTAL = re.compile(r"total \d|\d+ director(?:y|ies), \d+ files?|Found \d+ files?")
_NUMBERS = 8
"""Line numbers of matches that stand next to the path of their file."""
_UNITS = {"K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}


class _Entries:
    """The entries of a listing by folder."""

    def __init__(self) -> None:
        self.folders: dict[str, list[tuple[str, str]]] = {}
        """Names and sizes by folder; the folder ends with its separator."""
        self.others: list[Line] = []
        self.largest = (-1.0, "", "")

    def add(self, path: str, size: str = "") -> None:
        cut = max(path.rstrip("/\\").rfind("/"), path.rstrip("/\\").rfind("\\")) + 1
        self.folders.setdefault(path[:cut], []).append((path[cut:], size))
        if size and not path.endswith(("/", "\\")):
            unit = _UNITS.get(size[-1:], 1)
            number = float(size.rstrip("KMGT").replace(",", "") or 0) * unit
            self.largest = max(self.largest, (number, path, size))


def read_listing(source: Source) -> Reading:
    """Return folders with the number of their entries, and below each its entries."""
    entries = _read_entries(source)
    root = _root([folder for folder in entries.folders if folder])
    lines: list[Line] = list(entries.others)
    total = sum([len(names) for names in entries.folders.values()])
    above = -1
    inside = [len(names) for folder, names in entries.folders.items() if folder.startswith(root)]
    if root and len(inside) > 1:
        above = len(lines)
        lines.append(Line(0, f"{root} ({sum(inside)} entries)", must=3))
    for folder, names in entries.folders.items():
        is_inside = above >= 0 and folder.startswith(root)
        parent, depth = (above, 1) if is_inside else (-1, 0)
        inner = folder[len(root) :] if is_inside else folder
        if inner:
            lines.append(Line(0, f"{inner} ({len(names)})", must=2, depth=depth, above=parent))
            parent, depth = len(lines) - 1, depth + 1
        lines.extend(
            [Line(0, f"{name} {size}" if size else name, depth=depth, above=parent, item=True) for name, size in names]
        )
    return Reading(lines, _note(entries, total))


def _read_entries(source: Source) -> _Entries:
    entries = _Entries()
    folder = ""
    stack: list[str] = []
    for number, row in source.rows:
        text = row.strip()
        if not text or _TOTAL.match(text):
            continue
        if listed := _LS.match(text):
            name = listed[2] + ("/" if text[0] == "d" and not listed[2].endswith("/") else "")
            if listed[2] not in (".", ".."):
                entries.add(folder + name, "" if text[0] == "d" else listed[1])
        elif branch := _TREE.match(row):
            depth = len(branch[1]) // 4
            del stack[depth:]
            stack.append(branch[2].strip().rstrip("/"))
            entries.add(folder + "/".join(stack))
        elif text.endswith(":") and len(text) > 1:
            folder = text[:-1].rstrip("/") + "/"
        elif (sized := _DU.match(text)) and " " not in sized[2]:
            entries.add(folder + sized[2], sized[1])
        elif " " in text and "/" not in text and "\\" not in text:
            words = text.split()
            if len(text) > 120 or len(words) > 6:
                entries.others.append(Line(number, text))
            else:
                entries.add(folder + text)
        else:
            entries.add(folder + text)
    return entries


def _root(folders: list[str]) -> str:
    """Return the longest folder that all folders begin with; "" if there is none worth a line."""
    if not folders:
        return ""
    first, last = min(folders), max(folders)
    length = 0
    while length < len(first) and first[length : length + 1] == last[length : length + 1]:
        length += 1
    cut = max(first.rfind("/", 0, length), first.rfind("\\", 0, length)) + 1
    return first[:cut] if cut > 3 else ""


def _note(entries: _Entries, total: int) -> str:
    endings = Counter(
        [
            name.rpartition(".")[2]
            for names in entries.folders.values()
            for name, _ in names
            if "." in name[1:] and len(name.rpartition(".")[2]) <= 5
        ]
    )
    facts = [f"{count} .{ending}" for ending, count in endings.most_common(3) if count > 1]
    if len(entries.folders) > 1:
        facts.insert(0, f"{len(entries.folders)} folders")
    if entries.largest[0] >= 0 and total > 1:
        facts.append(f"largest {entries.largest[1]} {entries.largest[2]}")
    return ", ".join(facts)


_FOLDER = re.compile(r"( *)(.*[/\\]) \(\d+(?: entries)?\)(?::(.*))?\Z")


def unfold_paths(text: str) -> list[str]:
    """Return the paths that the entries of a listing's digest have together with the folders above them.

    The digest of another kind of text has none.
    """
    if not text.startswith("[listing, "):
        return []
    paths: list[str] = []
    above: list[tuple[int, str]] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        while above and above[-1][0] >= indent:
            above.pop()
        base = above[-1][1] if above else ""
        if match := _FOLDER.match(line):
            above.append((indent, base + match[2]))
            paths.append(base + match[2])
            paths.extend([base + match[2] + name for name in (match[3] or "").split()])
        elif above:
            paths.extend([base + name for name in line.split()])
    return paths


def read_matches(source: Source) -> Reading:
    """Return matches by file: the path with its number of matches, and below it the numbers and texts of its lines."""
    groups: dict[str, list[Line]] = {}
    others: list[Line] = []
    for number, row in source.rows:
        if match := MATCHED.match(row):
            line = Line(0, row[match.end() :].strip(), 1.0 if match[2] == ":" else 0.8, mark=f"{match[3]} ", depth=1)
            groups.setdefault(match[1], []).append(line)
        elif match := UNNUMBERED.match(row):
            groups.setdefault(match[1], []).append(Line(0, row[match.end() :].strip(), depth=1))
        elif row and row != "--":
            others.append(Line(number, row.strip()))
    lines = others
    for path, rows in groups.items():
        above = len(lines)
        numbers = [line.mark.strip() for line in rows if line.mark]
        places = (
            f": {' '.join(numbers[:_NUMBERS])}{' …' if len(numbers) > _NUMBERS else ''}" if len(numbers) > 1 else ""
        )
        lines.append(Line(0, f"{path} ({len(rows)}){places}", must=1, brief=f"{path} ({len(rows)})"))
        for line in rows:
            line.above = above
        lines.extend(rows)
    return Reading(lines, f"{len(groups)} files" if len(groups) > 1 else "")
