"""Descriptions: the kind of a text, its size, its items and its topic, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from ..core.json_escapes import decode_escapes
from ..core.scripts import MARKS, beginning_of
from .json_text import skeleton
from .kinds import detect_kind
from .listings import MATCHED, UNNUMBERED
from .logs import count_states, failure_signs, reports_failure, sums_up
from .source import plain_line, read_source
from .values import Description
from .wrappings import unwrap

__all__ = ["AS_WRITTEN", "LOOKED_AT", "describe_text", "tells_edit"]

LOOKED_AT = 3_000
"""Characters of the beginning that decide the kind and the topic."""
AS_WRITTEN = frozenset(("code", "diff", "edit"))
"""Kinds in which an escape such as `\\u4f9b` is part of the source. In others it is the letter."""
_COUNTED = 200_000
_GIST = 80
_SUMMED = 1_500
"""Characters at the end of an output that are searched for a line that sums it up."""
_FIRST_LINES = 6

_DEFINITIONS = re.compile(
    r"\n[ \d→\t|:]*+(?:(?:export|default|async|pub|public|private|protected|static|abstract|final)[ ]+){0,4}"
    r"(?:func|function|def|class|interface|struct|enum|impl|fn|type|trait)[ ]+[\w(*]"
)
"""It begins with a line break, so that the search skips all other characters."""
_HEADINGS = re.compile(r"^#{1,6} (?![\w.-]+/\S+$)", re.MULTILINE)
"""`# github.com/a/b` is the name of a package, above what its compiler says."""
_DECLARES = re.compile(
    r"\s*+(?:(?:export|default|async|pub(?:\(\w+\))?|public|private|protected|internal|static|abstract|final|override"
    r"|unsafe|extern)\s+)*"
    r"(func|function|def|class|interface|struct|enum|impl|fn|type|const|let|var|trait|module|namespace|package)"
    r"\b[ *]+(?:\([^)\n]{0,80}\) ?)?((?!\d)[\w$]" + rf"[\w{MARKS}$]*)"
)
_TITLE = re.compile(r"<title>([^<]{1,200})", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_WORD = re.compile(r"[^\W\d_]{2}")
_DIGITS = re.compile(r"\d+")
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit|Timeout|Warning)\b.*", re.MULTILINE)
"""The exception at the end of a traceback."""
_EDITED = re.compile(
    r"The file \S{1,300} has been (?:updated|edited|created)|(?:File|Successfully) (?:updated|replaced|wrote|created)\b"
    r"|Success\. Updated the following files"
)
"""The beginning of a result that says that a file was changed."""
_REFUSED_EDIT = "Your proposed edit "
"""The beginning of SWE-agent's answer to an edit that it did not make."""


def tells_edit(text: str) -> bool:
    """Return whether a result says that a file was changed. The rest of it is in the call, or in the file."""
    return _EDITED.match(text) is not None


def describe_text(text: str, looked_at: int = LOOKED_AT) -> Description:
    """Return the description of a text. Its wrapping counts for the size only."""
    own = unwrap(text).text
    begins = own[:looked_at]
    rows = read_source(begins).rows
    binary = len(_CONTROL.findall(begins)) > len(begins) // 20
    kind = "edit" if tells_edit(begins) or begins.startswith(_REFUSED_EDIT) else detect_kind(rows, begins, binary)
    items, item = _items(kind, own)
    lines = [line.strip() for _, line in rows if line.strip()]
    if kind not in AS_WRITTEN:
        own, lines = decode_escapes(own), list(map(decode_escapes, lines))
    gist = " ".join(_gist(kind, own, lines).split())
    return Description(kind, len(text), _lines_of(text), items, item if items else "", _short(gist, _GIST))


def _lines_of(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def _items(kind: str, text: str) -> tuple[int, str]:
    lines = _lines_of(text)
    counted = text if len(text) <= _COUNTED else ""
    match kind:
        case "code":
            return len(_DEFINITIONS.findall(f"\n{counted}")), "definition"
        case "diff":
            return counted.count("\ndiff --git ") + counted.startswith("diff --git "), "file"
        case "matches":
            return lines, "match"
        case "listing":
            return lines, "entry"
        case "table":
            return max(0, lines - 1), "row"
        case "prose":
            return len(_HEADINGS.findall(counted)) if "#" in counted else 0, "heading"
        case _:
            return 0, ""


def _gist(kind: str, text: str, some: Sequence[str]) -> str:
    first = _first_words(some)
    match kind:
        case "code" | "edit":
            return _declared(some) or _declared(_defining_lines(text)) or first
        case "json":
            return (skeleton(text) if len(text) < 20_000 else "") or " ".join(some)
        case "matches":
            found = (MATCHED.match(line) or UNNUMBERED.match(line) for line in some)
            return f"in {', '.join(list(dict.fromkeys([_tail(match[1]) for match in found if match]))[:3])}"
        case "listing":
            return f"{some[0]} … {text[-200:].rstrip().rpartition(chr(10))[2].strip()}"
        case "diff":
            return ", ".join([line.rpartition("/")[2] for line in some if line.startswith("diff --git ")]) or first
        case "page":
            title = _TITLE.search(text, 0, 5_000)
            return title[1] if title else first
        case "prose":
            return next((line.lstrip("# ") for line in some if line.startswith("#")), first)
        case "binary":
            return "not text"
        case "log" if states := count_states(text[:_COUNTED]):
            more = _failure(some, text) or (first if states.startswith(("INFO", "DEBUG")) else "")
            return f"{states}; {more}" if more else states
        case _:
            for line in map(plain_line, reversed(text[-_SUMMED:].split("\n"))):
                if sums_up(line):
                    return first if some and line == some[0] else line
            return _failure(some, text) or first


def _failure(some: Sequence[str], text: str) -> str:
    """Return the exception of a traceback, or the first line that reports a failure at the beginning or the end."""
    if some and some[0].startswith("Traceback") and (raised := _RAISED.findall(text[-_SUMMED:])):
        return str(raised[-1])
    lines = [*some, *map(plain_line, text[-_SUMMED:].split("\n")[1:])]
    signs = failure_signs("\n".join(lines))
    return next((line.strip() for line in lines if " " in line and reports_failure(line, signs)), "")


def _first_words(some: Sequence[str]) -> str:
    """Return the first line with a word, and the lines behind it that differ in words, as far as a gist has room."""
    start = next((index for index, line in enumerate(some) if _WORD.search(line)), 0)
    words = ""
    forms: set[str] = set()
    for line in some[start : start + _FIRST_LINES]:
        form = _DIGITS.sub("0", line)
        if words and (form in forms or len(words) + len(line) > _GIST):
            break
        words += f" {line}"
        forms.add(form)
    return words.strip()


def _declared(some: Sequence[str]) -> str:
    names = [f"{match[1]} {match[2]}" for match in map(_DECLARES.match, some) if match]
    outer = [name for name in names if not name.startswith(("const ", "let ", "var ", "package "))]
    return ", ".join((outer or names)[:4])


def _defining_lines(text: str) -> list[str]:
    """Return the first lines with definitions, without the numbers of a file viewer."""
    places = (match.start() + 1 for match in islice(_DEFINITIONS.finditer(text, 0, _COUNTED), 4))
    return [text[place : place + 200].partition("\n")[0].lstrip(" \t|:→0123456789") for place in places]


def _tail(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else beginning_of(text, most - 1) + "…"
