"""What kind of text something is, from how its lines look.

The first few hundred lines decide. It knows the kinds' looks, not how they are shortened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["kind_of"]

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
    r"\s*(?:(?:export|async|pub|public|private|protected|static|abstract|final|default)\s+)*"
    r"(?:func|def|class|interface|struct|enum|impl|fn|import|from|package|return|if|for|else|elif|while|switch|case|const|let|var"
    r"|type|use|mod|#include|namespace|try|except|with|assert|raise|throw|await|match)\b"
    r"|.*[{};]\s*\Z|.*\)\s*:?\s*\Z|\s*(?://|/\*|\*)|.*[\w\])]\s*(?::=|=|==|=>|->)\s.*|.*,\Z|\s*[@}\])]"
)
_PROSE = re.compile(r"[^{}=<>|]{0,60}?(?:[A-Za-z']+[,;:]?\s){4}")
_DIFF = re.compile(r"diff --git |@@ -\d+(?:,\d+)? \+\d+|--- [^\s-]")
_PAGE = re.compile(r"\s*(?:<!doctype html|<html|<body|<head\b)", re.IGNORECASE)
_SNAPSHOT = re.compile(r"\s*-? ?(?:\w+ )?.{0,200}\[ref=\w+\]|\s*(?:uid=|\[\d+\])\w*")
_PYTHON_TRACE = re.compile(r"Traceback \(most recent call last\)")


def kind_of(rows: Sequence[tuple[int, str]], begins: str, unseen: bool = False) -> str:
    """The kind of a text with these lines; `begins` are its first characters as they are."""
    if unseen:
        return "binary"
    some = [line for _, line in rows[:200] if line.strip()]
    if not some:
        return "empty"
    if _PAGE.match(begins) or _PAGE.match(some[0]):
        return "page"
    if _JSON_BEGIN.match(some[0]) and _looks_json(some):
        return "json"
    sample = some if len(some) <= 48 else some[:24] + some[24 :: len(some) // 24]
    count = len(sample)
    if any(line.startswith(("diff --git ", "@@ -", "*** Begin Patch")) for line in some[:40]):
        marks = sum(1 for line in sample if line[:1] in "+-@ ")
        if marks > 0.5 * count:
            return "diff"
    if sum(1 for line in sample if _SNAPSHOT.match(line)) > 0.4 * count and "ref=" in "".join(sample):
        return "page"
    if sum(1 for line in sample if _MATCH.match(line)) > 0.6 * count:
        return "matches"
    if (
        sum(1 for line in sample if _PATH.match(line.strip()) or _LS.match(line) or _TREE.match(line.lstrip()))
        > 0.75 * count
    ):
        return "listing"
    logged = sum(1 for line in sample if _LOG.match(line.lstrip()))
    if logged > 0.5 * count:
        return "log"
    if _table(sample):
        return "table"
    if logged > 0.3 * count:
        return "log"
    code = sum(1 for line in sample if _CODE.match(line[:200]))
    prose = sum(1 for line in sample if _PROSE.match(line.strip()[:200]))
    if code > 0.5 * count and code > prose:
        return "code"
    if prose > 0.35 * count:
        return "prose"
    return "output"


def _looks_json(some: Sequence[str]) -> bool:
    first = some[0].strip()
    if first in ("{", "["):
        second = some[1].strip() if len(some) > 1 else ""
        return second[:1] in '"{[}]' or second[:1].isdigit()
    return bool(re.match(r'\{\s*"[^"]{0,200}"\s*:|\[\s*(?:[\[{"\d\]-]|true|false|null)|\{\s*\}', first))


def _table(sample: Sequence[str]) -> bool:
    if len(sample) < 3:
        return False
    for mark in ("\t", "|", ",", ";"):
        counts = [line.count(mark) for line in sample]
        usual = max(set(counts), key=counts.count)
        if usual >= 2 and counts.count(usual) > 0.85 * len(counts) and counts[0] == usual:
            return True
    return False
