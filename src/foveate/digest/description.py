"""Descriptions: the kind of a text, its size, its items and its topic, in one line.

The first few hundred lines decide the kind; the rest of the text is only counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

from .json_text import skeleton
from .listings import MATCHED, UNNUMBERED
from .logs import count_states, failure_signs, reports_failure, sums_up
from .pair_lines import split_pair
from .source import read_source
from .values import Description
from .wrappings import unwrap

__all__ = ["describe_text", "detect_kind", "tells_edit"]

_JSON_BEGIN = re.compile(r"\s*[\[{]")
_MATCH = re.compile(r"(?=[^:]{0,200}[A-Za-z])(?:[A-Za-z]:)?[\w@+~.()\[\]\\/-]*[\w)\]][:\-]\d+[:\-]")
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w@+~.()\[\]\\/-]*[\w)\]/][*@/:]?\Z")
_LS = re.compile(r"[dl\-cbps][rwxsStT-]{9}")
_TREE = re.compile(r"[│├└]|[|`]-- ")
_LOG = re.compile(
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]?\d\d?:\d\d|\[?\d\d:\d\d:\d\d|(?:\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b)"
    r"|(?:=== RUN|--- PASS|--- FAIL|PASS\b|FAIL\b|ok  \t|\?   \t)|npm (?:ERR|WARN)|(?:info|warning|error):"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d"
)
_CODE = re.compile(
    r"\s*+(?:(?:(?:export|async|pub|public|private|protected|static|abstract|final|default)\s+)*"
    r"(?:func|def|class|interface|struct|enum|impl|fn|import|from|package|return|if|for|else|elif|while|switch|case|const|let|var"
    r"|type|use|mod|#include|namespace|try|except|with|assert|raise|throw|await|match)\b|//|/\*|\*|[@}\])])"
)
_BEGINS_CODE = re.compile(
    r"package [\w.]+;?\Z|import (?:\(|\{|[\w.]+\Z|.*\bfrom\b)|from [\w.]+ import |#include\s*[<\"]|//go:build |#!\S*/"
    r"|(?:pub )?(?:use|mod) [\w:{}, ]+;\Z|using [\w.]+;\Z|<\?php"
)
"""The first line of a file of code."""
_ASSIGNS = re.compile(r"[\w\])]\s*(?::=|=|==|=>|->)\s")
_ENDS_CODE = ("{", "}", ";", ")")
_PROSE = re.compile(r"[^{}=<>|]{0,60}?(?<![A-Za-z'])" + r"[A-Za-z']++[,;:]?\s" * 4)
"""Four words. A word is tried from its first letter only: where that fails, the others fail too."""
_DIFF = re.compile(r"diff --git |@@ -\d+(?:,\d+)? \+\d+|--- [^\s-]")
_FAILS = re.compile(
    r"(?:ERROR|[Ee]rror): |Traceback \(most recent call last\)|[\w -]{2,40} (?:failed|error\b[\w -]{0,12}): "
)
"""The beginning of an output that reports a failure: lines of code below it are what failed."""
_PAGE = re.compile(r"\s*+(?:<!doctype html|<html|<body|<head\b)", re.IGNORECASE)
_SNAPSHOT = re.compile(r"\s*-? ?(?:\w+ )?.{0,200}\[ref=\w+\]|\s*(?:uid=|\[\d+\])\w*")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9()%/_ -]*(?:\s{2,}[A-Z%][A-Z0-9()%/_ -]*){2,}\Z")
_TITLE_CELL = re.compile(r"[A-Za-z%#_][A-Za-z%#_/() -]*\Z")
"""The name of a column."""
_GAP = re.compile(r"\S {2,}\S")
_DECLARES = re.compile(
    r"\s*+(?:(?:export|default|async|pub(?:\(\w+\))?|public|private|protected|internal|static|abstract|final|override"
    r"|unsafe|extern)\s+)*"
    r"(func|function|def|class|interface|struct|enum|impl|fn|type|const|let|var|trait|module|namespace|package)"
    r"\b[ *]+(?:\([^)\n]{0,80}\) ?)?([A-Za-z_$][\w$]*)"
)


def detect_kind(rows: Sequence[tuple[int, str]], begins: str, unseen: bool = False) -> str:
    """Return the kind of a text with these lines. `begins`: its first characters, unchanged."""
    if unseen:
        return "binary"
    some = [line for _, line in rows[:200] if line.strip()]
    if not some:
        return "empty"
    if _PAGE.match(begins) or _PAGE.match(some[0]):
        return "page"
    if _JSON_BEGIN.match(some[0]) and _looks_json(some):
        return "json"
    if _FAILS.match(some[0]):
        return "output"
    sample = some if len(some) <= 48 else some[:24] + some[24 :: len(some) // 24]
    count = len(sample)
    if any(line.startswith(("diff --git ", "@@ -", "*** Begin Patch")) for line in some[:40]):
        marks = sum(1 for line in sample if line[:1] in "+-@ ")
        if marks > 0.5 * count:
            return "diff"
    if "ref=" in "".join(sample) and sum(1 for line in sample if _SNAPSHOT.match(line)) > 0.4 * count:
        return "page"
    if _are_most(_is_match, sample, 0.6):
        return "matches"
    if _are_most(_is_entry, sample, 0.75):
        return "listing"
    logged = sum(1 for line in sample if _LOG.match(line.lstrip()))
    if logged > 0.5 * count:
        return "log"
    if _table(sample):
        return "table"
    if logged > 0.3 * count:
        return "log"
    if _BEGINS_CODE.match(some[0]):
        return "code"  # Many imports look like no code.
    if _are_values(sample):
        return "values"
    code = sum([1 for line in sample if _is_code(line[:200])])
    if code > 0.5 * count and not _are_most(_is_prose, sample, (code - 0.5) / count):
        return "code"
    return "prose" if _are_most(_is_prose, sample, 0.35) else "output"


def _are_most(is_one: Callable[[str], object], sample: Sequence[str], share: float) -> bool:
    """Return whether more than this share of the lines are of a form, once no further line can change the answer."""
    wanted = share * len(sample)
    found, left = 0, len(sample)
    for line in sample:
        left -= 1
        if is_one(line):
            found += 1
            if found > wanted:
                return True
        elif found + left <= wanted:
            return False
    return False


_KEYWORD = re.compile(
    r"\s*+(?:(?:export|async|pub|public|private|protected|static|abstract|final|default) )*(?:func|function|def|class"
    r"|interface|struct|enum|impl|fn|import|package|return|const|let|var|type|use|#include|namespace|assert) "
)
_VALUES = 0.7
"""The share of lines with a key and its value in a text of this kind."""


def _is_setting(row: str) -> bool:
    """Whether a line is a pair whose key is one word: `step 3: loaded` is output."""
    pair = split_pair(row)
    return pair is not None and (" " not in pair[0] or pair[0].endswith("}"))


def _are_values(sample: Sequence[str]) -> bool:
    """Return whether most lines are a key with its value: settings, headers, metrics. Comments do not count."""
    rows = [line[:400] for line in sample if line.lstrip()[:1] not in ("#", ";", "[", "-", "/")]
    if len(rows) < 3 or any(map(_KEYWORD.match, rows)) or not _are_most(_is_setting, rows, _VALUES):
        return False
    return len({pair[0] for pair in map(split_pair, rows) if pair}) > 2


def _is_match(line: str) -> bool:
    """Whether a search found the line: it begins with a path, and with `:` or `-`."""
    return (":" in line or "-" in line) and bool(_MATCH.match(line) or UNNUMBERED.match(line))


def _is_entry(line: str) -> bool:
    return bool(_PATH.match(line.strip()) or _LS.match(line) or _TREE.match(line.lstrip()))


def _is_code(line: str) -> bool:
    end = line.rstrip()
    if end.endswith(_ENDS_CODE) or line.endswith(","):
        return True
    if end.endswith(":") and end[:-1].rstrip().endswith(")"):
        return True
    if _CODE.match(line):
        return True
    return ("=" in line or "->" in line) and _ASSIGNS.search(line) is not None


def _is_prose(line: str) -> bool:
    return _PROSE.match(line.strip()[:200]) is not None


def _looks_json(some: Sequence[str]) -> bool:
    first = some[0].strip()
    if first in ("{", "["):
        second = some[1].strip() if len(some) > 1 else ""
        return second[:1] in '"{[}]' or second[:1].isdigit()
    return bool(re.match(r'\{\s*"[^"]{0,200}"\s*:|\[\s*(?:[\[{"\d\]-]|true|false|null)|\{\s*\}', first))


def _table(sample: Sequence[str]) -> bool:
    if len(sample) < 3:
        return False
    if _CAPITALS.match(sample[0].strip()) and sum([1 for line in sample if len(line.split()) > 2]) > 0.85 * len(sample):
        return True
    first = sample[0].strip()
    titles = re.split(r" {2,}", first[:400])
    if len(titles) > 2 and first[0].isupper() and all(map(_TITLE_CELL.match, titles)):
        # Columns that spaces align.
        return all(map(_GAP.search, map(str.strip, sample)))
    for mark in ("\t", "|", ",", ";"):
        if (columns := first.count(mark)) >= 2:
            rows = sum([1 for line in sample if line.strip().count(mark) == columns])
            if rows > 0.85 * len(sample):
                return True
    return False


LOOKED_AT = 3_000
"""Characters of the beginning that decide the kind and the topic."""
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
_FILES_CHANGED = re.compile(r"^(?:diff --git |\+\+\+ (?=b/|[^b]))", re.MULTILINE)
_HEADINGS = re.compile(r"^#{1,6} (?![\w.-]+/\S+$)", re.MULTILINE)
"""`# github.com/a/b` is the name of a package, above what its compiler says."""
_TITLE = re.compile(r"<title>([^<]{1,200})", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_WORD = re.compile(r"[^\W\d_]{2}")
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
    """Return whether a result says that a file was changed. What it says besides is in the call, or in the file."""
    return _EDITED.match(text) is not None


def describe_text(text: str, looked_at: int = LOOKED_AT) -> Description:
    """Return the description of a text. Its wrapping counts for the size only."""
    own = unwrap(text).text
    begins = own[:looked_at]
    rows = read_source(begins).rows
    binary = len(_CONTROL.findall(begins)) > len(begins) // 20
    kind = "edit" if tells_edit(begins) or begins.startswith(_REFUSED_EDIT) else detect_kind(rows, begins, binary)
    items, item = _items(kind, own)
    gist = " ".join(_gist(kind, own, [line.strip() for _, line in rows if line.strip()]).split())
    return Description(kind, len(text), _lines_of(text), items, item if items else "", _short(gist, _GIST))


def _lines_of(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def _items(kind: str, text: str) -> tuple[int, str]:
    lines = _lines_of(text)
    counted = text if len(text) <= _COUNTED else ""
    match kind:
        case "code":
            return len(_DEFINITIONS.findall(f"\n{counted}")), "definitions"
        case "diff":
            return counted.count("\ndiff --git ") + counted.startswith("diff --git "), "files"
        case "matches":
            return lines, "matches"
        case "listing":
            return lines, "entries"
        case "table":
            return max(0, lines - 1), "rows"
        case "prose":
            return len(_HEADINGS.findall(counted)) if "#" in counted else 0, "headings"
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
            failure = _failure(some, text)
            return f"{states}; {failure}" if failure else states
        case _:
            for line in reversed(text[-_SUMMED:].split("\n")):
                if sums_up(line):
                    return first if some and line.strip() == some[0] else line.strip()
            return _failure(some, text) or first


def _failure(some: Sequence[str], text: str) -> str:
    """Return the exception of a traceback, or the first line that reports a failure at the beginning or the end."""
    if some and some[0].startswith("Traceback") and (raised := _RAISED.findall(text[-_SUMMED:])):
        return str(raised[-1])
    lines = [*some, *text[-_SUMMED:].split("\n")[1:]]
    signs = failure_signs("\n".join(lines))
    return next((line.strip() for line in lines if " " in line and reports_failure(line, signs)), "")


def _first_words(some: Sequence[str]) -> str:
    """Return the first line with a word, and the lines behind it as far as a gist has room."""
    start = next((index for index, line in enumerate(some) if _WORD.search(line)), 0)
    words = ""
    for line in some[start : start + _FIRST_LINES]:
        if len(words) + len(line) > _GIST and words:
            break
        words += f" {line}"
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
    return text if len(text) <= most else text[: most - 1] + "…"
