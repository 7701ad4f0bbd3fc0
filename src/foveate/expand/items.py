"""The items of a text: elements of JSON, files or hunks of a diff, rows of a table, records between blank lines, lines.

Each item is a place in the text, so that an excerpt is a piece of the original, to the byte. A text that is no JSON, no
table and has no blank lines has its lines for items, or pieces of one length if the lines are too long. The time grows
linearly with the length of the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

from msgspec import Struct

__all__ = ["Items", "items_of"]

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\n]+")
_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d", re.MULTILINE)
_GAP = re.compile(r"\n[ \t\r]*\n\s*")
_QUOTED = re.compile(r'"[^"]*"')
_RECORD = re.compile(r'(?:[^"\n]++|"[^"]*+"?)++')
"""A row of a table with delimiters: a line, or several if a quoted field has line ends in it."""
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_LONG = 2_000
"""Average characters of a line from which on lines are too long to be items."""
_PIECE = 1_000
_CHUNK = 1_000_000
_SAMPLE = 40
"""Lines that are examined to decide whether a text is a table."""

Span = tuple[int, int]
_decoder = json.JSONDecoder()


class Items(Struct, frozen=True):
    """The items of a text."""

    what: str
    """Their name: `elements`, `entries`, `elements of results`, `files`, `hunks`, `rows`, `records` or `lines`."""
    spans: Callable[[], Iterator[Span]]
    """Yields start and end of each in the text, in order."""
    header: str = ""
    """The line with the names of the columns, if there is one; it is no item."""
    known: int | None = None

    def count(self) -> int:
        """Return the number of items."""
        return sum(1 for _ in self.spans()) if self.known is None else self.known


def items_of(text: str) -> Items:
    """Return the items of a text."""
    kinds = (_json_items, _json_lines, _pieces, _diff, _table, _records)
    return next((items for kind in kinds if (items := kind(text))), None) or _lines(text)


def _lines(text: str, what: str = "lines", start: int = 0) -> Items:
    return Items(what, lambda: (match.span() for match in _filled(text, start)), known=_count_filled(text, start))


def _count_filled(text: str, start: int) -> int:
    """Count the lines that are not blank, a megabyte at a time, which is fast and takes little memory."""
    total = 0
    while start < len(text):
        end = text.find("\n", start + _CHUNK) + 1 or len(text)
        total += len([line for line in text[start:end].split("\n") if line and not line.isspace()])
        start = end
    return total


def _filled(text: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Yield the lines that are not blank, without their ends."""
    return (match for match in _LINE.finditer(text, start) if not match[0].isspace())


def _pieces(text: str) -> Items | None:
    """Return the text between escaped line feeds, or pieces of one length, if the lines are too long to be items."""
    ends, escaped = text.count("\n"), text.count("\\n")
    if escaped > 3 * (ends + 1) and len(text) < _LONG * escaped:
        return Items("escaped lines", lambda: _between_escapes(text))
    if len(text) < _LONG * (ends + 1):
        return None
    cuts = range(0, len(text), _PIECE)
    return Items(f"pieces of {_PIECE:,} characters", lambda: ((at, min(at + _PIECE, len(text))) for at in cuts))


def _between_escapes(text: str) -> Iterator[Span]:
    start = 0
    for escape in _ESCAPE.finditer(text):
        if escape[0] == "\\n":
            if not text[start : escape.start()].isspace() and start < escape.start():
                yield start, escape.start()
            start = escape.end()
    if text[start:].strip():
        yield start, len(text)


def _diff(text: str) -> Items | None:
    """Return the files of a diff, or the hunks if it has one file."""
    for what, opening in (("files", _FILE), ("hunks", _HUNK)):
        starts = [match.start() for match in opening.finditer(text)]
        if len(starts) > 1:
            spans = (*pairwise(starts), (starts[-1], len(text)))
            return Items(what, spans.__iter__, known=len(spans))
    return None


def _records(text: str) -> Items | None:
    """Return the records between blank lines, if there are at least three and none is most of the text."""

    def spans() -> Iterator[Span]:
        start = _space(text, 0)
        for gap in _GAP.finditer(text, start):
            yield start, gap.start()
            start = gap.end()
        if start < len(text):
            yield start, len(text.rstrip())

    sizes = [end - start for start, end in spans()]
    are_many = len(sizes) > 2 and max(sizes) <= len(text) // 2
    return Items("records", spans, known=len(sizes)) if are_many else None


# ---------------------------------------------------------------------------------------------------------------- JSON


def _json_items(text: str) -> Items | None:
    start = _space(text, 0)
    if text[start : start + 1] not in ("[", "{"):
        return None
    try:
        whole, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if _space(text, end) != len(text):
        return None
    if isinstance(whole, list):
        return Items("elements", lambda: _elements(text, start), known=len(whole))
    # Results are often wrapped: count the elements of the one long list, not the fields around it.
    lists = {key: value for key, value in whole.items() if isinstance(value, list) and len(value) > 1}
    key = max(lists, key=lambda name: len(lists[name]), default="")
    if key and len(lists[key]) >= len(whole):
        places = [value for name, value, _, _ in _entries(text, start) if name == key]
        return Items(f"elements of {key[:60]}", lambda: _elements(text, places[-1]), known=len(lists[key]))
    return Items("entries", lambda: ((begin, end) for _, _, begin, end in _entries(text, start)))


def _elements(text: str, start: int) -> Iterator[Span]:
    """Yield the elements of the list that begins at `start`."""
    at = _space(text, start + 1)
    while text[at] != "]":
        _, end = _decoder.raw_decode(text, at)
        yield at, end
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)


def _entries(text: str, start: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield the entries of the object that begins at `start`: name, start of the value, start and end of the entry."""
    at = _space(text, start + 1)
    while text[at] != "}":
        name, colon = _decoder.raw_decode(text, at)
        value = _space(text, _space(text, colon) + 1)
        _, end = _decoder.raw_decode(text, value)
        yield name, value, at, end
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)


def _json_lines(text: str) -> Items | None:
    """Return lines that are a JSON value each, if there are two at least and the first ones all are."""
    first = [match[0].strip() for match in islice(_filled(text), _SAMPLE)]
    if len(first) < 2 or any(line[:1] not in ("{", "[") for line in first):
        return None
    for line in first:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return None
    return _lines(text, "records")


def _space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


# --------------------------------------------------------------------------------------------------------------- tables


def _table(text: str) -> Items | None:
    first = list(islice(_filled(text), _SAMPLE))
    if len(first) < 3:
        return None
    if all(match[0].lstrip().startswith("|") for match in first) and set(first[1][0].strip()) <= set("|-: +"):
        return Items("rows", _lines(text, start=first[1].end()).spans, first[0][0].strip())
    rows = [_QUOTED.sub("", match[0].strip()) for match in islice(_rows(text), _SAMPLE)]
    if len(rows) < 3:
        return None
    for delimiter in ("\t", ",", ";"):
        widths = Counter(row.count(delimiter) for row in rows)
        width, often = widths.most_common(1)[0]
        # Line numbers and file names before each line are no columns, and neither is indentation.
        is_filled = all(row.count(delimiter * 2) == 0 for row in rows) or delimiter != "\t"
        if width >= 2 and often >= 0.9 * len(rows) and rows[0].count(delimiter) == width and is_filled:
            return _delimited(text, delimiter, first[0][0])
    return None


def _delimited(text: str, delimiter: str, top: str) -> Items:
    """Return a table. Its first line is the header if nothing in it is a number or blank."""
    names = [field.strip().strip('"') for field in top.split(delimiter)]
    has_header = len(set(names)) == len(names) and not any(not name or _is_number(name) for name in names)

    def spans() -> Iterator[Span]:
        yield from (match.span() for match in islice(_rows(text), int(has_header), None))

    return Items("rows", spans, top.strip() if has_header else "")


def _rows(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _RECORD.finditer(text) if match[0].strip())


def _is_number(field: str) -> bool:
    return field[:1].isdigit() or field[1:2].isdigit()
