"""Kinds of texts: code, logs, listings and so on, told by the first few hundred lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..core.scripts import MARKS, UNSPACED
from .listings import UNNUMBERED
from .pair_lines import split_pair

__all__ = ["detect_kind"]

_JSON_BEGIN = re.compile(r"\s*[\[{]")
_MATCH = re.compile(rf"(?=[^:]{{0,200}}[^\W\d_])(?:[A-Za-z]:)?[\w{MARKS}@+~.()\[\]\\/-]*[\w{MARKS})\]][:\-]\d+[:\-]")
_PATH = re.compile(rf"(?:[A-Za-z]:)?[\w{MARKS}@+~.()\[\]\\/-]*[\w{MARKS})\]/][*@/:]?\Z")
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
_PROSE = re.compile(
    rf"[^{{}}=<>|]{{0,60}}?(?<![^\W\d_{UNSPACED}{MARKS}'])"
    + rf"(?:[^\W\d_{UNSPACED}]|['’{MARKS}])++[,;:،؛]?\s" * 4
    + rf"|[^{{}}=<>|]{{0,60}}?(?:[{UNSPACED}]{{4}}[^{{}}=<>|]*?[、。，！？；]|[{UNSPACED}]{{20}})"
)
"""Four words, or in a script without spaces four characters before a sign of a sentence, or twenty.

A word is tried from its first letter only: where that fails, the others fail too.
"""
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
_FIELD = re.compile(r"\s*+\w++:\s+[A-Za-z_]\w*(?:\.\w|\().*,\Z")
"""A field of a literal in code: its value is an expression."""
_VALUES = 0.7
"""The share of lines with a key and its value in a text of this kind."""


def _is_setting(row: str) -> bool:
    """Return whether a line is a pair whose key is one word: `step 3: loaded` is output."""
    pair = split_pair(row)
    return pair is not None and (" " not in pair[0] or pair[0].endswith("}"))


def _are_values(sample: Sequence[str]) -> bool:
    """Return whether most lines are a key with its value: settings, headers, metrics. Comments do not count."""
    rows = [line[:400] for line in sample if line.lstrip()[:1] not in ("#", ";", "[", "-", "/")]
    if len(rows) < 3 or any(map(_KEYWORD.match, rows)) or not _are_most(_is_setting, rows, _VALUES):
        return False
    if any(row.strip() == "}," for row in rows) or _are_most(_FIELD.match, rows, 0.5):  # A literal in code.
        return False
    return len({pair[0] for pair in map(split_pair, rows) if pair}) > 2


def _is_match(line: str) -> bool:
    """Return whether a search found the line: it begins with a path, and with `:` or `-`."""
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
