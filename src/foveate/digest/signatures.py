"""Signatures, titles of tests and imports: single declarations in one short line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.scripts import whole_end

__all__ = ["brief_of", "clip_text", "read_import", "read_signature", "test_title"]

_LONGEST_SIGNATURE = 100
_MOST_ROWS = 8
"""Rows that a signature may span."""
_MOST_IMPORT_ROWS = 80
_TITLE = re.compile(
    r"((?:describe|context|suite|it|test|specify|scenario|RSpec\.describe)(?:\.\w+)*)[ (]\s*([\"'`])(.*?)\2"
)
_NAME = re.compile(r"func\s+\([^)]*\)\s*\w+|[^({=]+")
_QUOTED = re.compile(r"[\"'`<]([^\"'`<>]+)[\"'`>]")
_FROM = re.compile(r"from\s+(\S+)\s+import\s+\(?(.*)")
_NAMED = re.compile(r"(?:import|export)\b.*?\bfrom\s*[\"']([^\"']+)[\"']")


def clip_text(text: str, most: int) -> str:
    """Return a text in one line of at most `most` characters that ends at a word, with `…` if it was cut."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    begin = text[: most - 2]
    return f"{begin[: max(begin.rfind(' '), whole_end(text, most // 2))].rstrip()} …"


def read_signature(rows: Sequence[str], index: int) -> tuple[int, str]:
    """Return the last row of the signature that begins in a row, and the signature in one line without its body."""
    text = rows[index].strip()
    last = index
    while text.count("(") > text.count(")") and last + 1 < min(len(rows), index + _MOST_ROWS):
        last += 1
        text = f"{text} {rows[last].strip()}"
    if text.count("(") > text.count(")"):
        text, last = rows[index].strip(), index
    if text.endswith("{"):
        text = text[:-1]
    # Every Go test has this parameter.
    text = text.rstrip(" :").replace("(t *testing.T)", "(t)")
    return last, clip_text(text, _LONGEST_SIGNATURE)


def brief_of(signature: str) -> str:
    """Return the keyword and the name of a declaration."""
    match = _NAME.match(signature)
    return match[0].strip() if match else ""


def test_title(text: str) -> str:
    """Return the kind and title of a test or a group of tests, as `it "sends no mail"`; "" if the line begins none."""
    match = _TITLE.match(text)
    return f'{match[1]} "{match[3]}"' if match else ""


def read_import(rows: Sequence[str], index: int, language: str) -> tuple[int, str]:
    """Return the last row of an import, and what it imports in short."""
    text = rows[index].strip()
    last = index
    opening, closing = ("(", ")") if "(" in text else ("{", "}")
    pieces = [text]
    while text.count(opening) > text.count(closing) and last + 1 < min(len(rows), index + _MOST_IMPORT_ROWS):
        last += 1
        pieces.append(rows[last].strip())
        text = f"{text} {pieces[-1]}"
    if language == "go":
        return last, ", ".join([path for piece in pieces for path in _QUOTED.findall(piece)])
    if language == "python":
        if match := _FROM.match(text):
            names = [name.strip() for name in match[2].partition("#")[0].strip(" )").split(",") if name.strip()]
            return last, f"{match[1]}: {' '.join(names)}" if names else match[1]
        return last, text.removeprefix("import ").partition("#")[0].strip()
    if match := _NAMED.match(text):
        return last, match[1]
    if match := _QUOTED.search(text):
        return last, match[1]
    words = text.rstrip(";").split()
    return last, words[-1] if words and words[0] not in ("package", "namespace") else ""
