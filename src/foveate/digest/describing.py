"""What a text is, in a line: its kind, its size, how many of what it holds, and what it is about.

Cheap: it looks at the beginning, counts with single searches, and reads nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .data import skeleton
from .kinds import kind_of
from .outputs import BAD, TOTAL
from .reading import DECLARES, MATCHED
from .shapes import Description
from .source import Source, source_of

__all__ = ["describe_text"]

_LOOKED_AT = 3_000
_COUNTED = 200_000
_GIST = 80

_DEFINITIONS = re.compile(
    r"^[ \d→\t|:]*(?:(?:export|default|async|pub|public|private|protected|static|abstract|final)[ ]+){0,4}"
    r"(?:func|function|def|class|interface|struct|enum|impl|fn|type|trait)[ ]+[\w(*]",
    re.MULTILINE,
)
_FILES_CHANGED = re.compile(r"^(?:diff --git |\+\+\+ (?=b/|[^b]))", re.MULTILINE)
_HEADINGS = re.compile(r"^#{1,6} ", re.MULTILINE)
_TITLE = re.compile(r"<title>([^<]{1,200})", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_EDITED = re.compile(
    r"The file \S{1,300} has been (?:updated|edited|created)|(?:File|Successfully) (?:updated|replaced|wrote|created)\b"
    r"|Your proposed edit "
)


def describe_text(text: str) -> tuple[Description, Source]:
    """The description of a text, and its beginning as lines."""
    source = source_of(text[:_LOOKED_AT])
    begins = text[:_LOOKED_AT]
    lines = text.count("\n") + (not text.endswith("\n") if text else 0)
    binary = len(_CONTROL.findall(begins)) > len(begins) // 20
    kind = "edit" if _EDITED.match(begins) else kind_of(source.rows, begins, binary)
    items, item = _items(kind, text, lines)
    gist = " ".join(_gist(kind, text, [line.strip() for _, line in source.rows if line.strip()]).split())
    return Description(kind, len(text), lines, items, item if items else "", _short(gist, _GIST)), source


def _items(kind: str, text: str, lines: int) -> tuple[int, str]:
    counted = text if len(text) <= _COUNTED else ""
    match kind:
        case "code":
            return len(_DEFINITIONS.findall(counted)), "definitions"
        case "diff":
            return counted.count("\ndiff --git ") + counted.startswith("diff --git "), "files"
        case "matches":
            return lines, "matches"
        case "listing":
            return lines, "entries"
        case "table":
            return max(0, lines - 1), "rows"
        case "prose":
            return len(_HEADINGS.findall(counted)), "headings"
        case _:
            return 0, ""


def _gist(kind: str, text: str, some: Sequence[str]) -> str:
    first = some[0] if some else ""
    match kind:
        case "code" | "edit":
            return _declared(some) or first
        case "json":
            return (skeleton(text) if len(text) < 20_000 else "") or first
        case "matches":
            files = dict.fromkeys([found[1] for found in map(MATCHED.match, some) if found])
            return f"in {', '.join([_tail(path) for path in list(files)[:3]])}"
        case "listing":
            return f"{first} … {text[-200:].rstrip().rpartition(chr(10))[2].strip()}"
        case "diff":
            return ", ".join([line.rpartition("/")[2] for line in some if line.startswith("diff --git ")]) or first
        case "page":
            title = _TITLE.search(text, 0, 5_000)
            return title[1] if title else first
        case "prose":
            return next((line.lstrip("# ") for line in some if line.startswith("#")), first)
        case "binary":
            return "not text"
        case _:
            end = text[-1_500:].split("\n")
            told = [line.strip() for line in reversed(end) if TOTAL.search(line)]
            told += [line for line in some if BAD.search(line)][:1] if not told else []
            return told[0] if told else first


def _declared(some: Sequence[str]) -> str:
    names = [f"{found[1]} {found[2]}" for found in map(DECLARES.match, some) if found]
    outer = [name for name in names if not name.startswith(("const ", "let ", "var ", "package "))]
    return ", ".join((outer or names)[:4])


def _tail(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
