"""Source code: an outline of its declarations, and the other lines below them.

The outline comes from a parser where there is one (`python_code`, `grammars`), else from the forms of single lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .languages import Language, detect_language
from .source import Source
from .values import Declaration, Line, Reading

__all__ = ["outline_by_forms", "read_code", "read_signature"]

_LONGEST_SIGNATURE = 100
_LONGEST_IMPORTS = 150
_LONGEST_BRIEF_IMPORTS = 60
_LONGEST_CONSTANT = 80
_MOST_ROWS = 8
"""Rows that a signature may span."""

_DECLARED = 1.4
_IMPORTED = 0.9
_TITLE = re.compile(r"([^\"'`]*([\"'`]).*?\2)")
_RECEIVER = re.compile(r"func\s+\([^)]*\)\s*\w+|[^(<\[]+")
_COMMENT = ("//", "#", "*", "/*", "--", "<!--", '"""', "'''")


def read_code(source: Source) -> Reading:
    """Return the declarations as lines that must stay, and the other lines below them."""
    rows = [row for _, row in source.rows]
    language = detect_language(rows)
    if language is None:
        return Reading([Line(number, row.strip()) for number, row in source.rows if row.strip()])
    outline = outline_by_forms(rows, language)
    by_row = {declaration.row: declaration for declaration in outline if declaration.rank > 1}
    lines: list[Line] = []
    imports = [declaration for declaration in outline if declaration.rank == 1]
    if imports:
        lines.append(_imports(imports, source.rows[imports[0].row][0]))
    imported = {row for each in imports for row in range(each.row, each.last + 1)}
    above, depth, skip = -1, 0, -1
    for index, (number, row) in enumerate(source.rows):
        if index <= skip:
            continue
        declaration = by_row.get(index)
        if declaration:
            skip = declaration.last
            line = Line(number, declaration.text, _DECLARED, declaration.rank, declaration.brief)
            line.depth = declaration.depth
            if declaration.rank > 2:
                above, depth = len(lines), declaration.depth + 1
            lines.append(line)
        elif text := row.strip():
            lines.append(
                Line(number, text, _IMPORTED if index in imported else 1.0, depth=depth, above=above)
            )
    return Reading(lines, language.name)


def _imports(imports: Sequence[Declaration], number: int) -> Line:
    names = list(dict.fromkeys([declaration.text for declaration in imports if declaration.text]))
    return Line(
        number,
        _joined("imports ", names, _LONGEST_IMPORTS),
        _IMPORTED,
        1,
        _joined("imports ", names, _LONGEST_BRIEF_IMPORTS),
    )


def _joined(begin: str, names: Sequence[str], most: int) -> str:
    """Return names with commas between them, and the number of those that find no room."""
    text = begin
    for count, name in enumerate(names):
        longer = f"{text}{', ' if count else ''}{name}"
        if len(longer) > most - 10 and count:
            return f"{text} … {len(names) - count} more"
        text = longer
    return text


def outline_by_forms(rows: Sequence[str], language: Language) -> list[Declaration]:
    """Return the declarations that the forms of single lines show."""
    found: list[Declaration] = []
    open_: list[tuple[int, bool]] = []
    """The indentation of the declarations around the row, and whether each holds declarations."""
    quoted = ""
    skip = -1
    types, functions = language.types.match, language.functions.match
    constants, imports = language.constants.match, language.imports.match
    for index, row in enumerate(rows):
        if index <= skip or not row:
            continue
        text = row.lstrip()
        if quoted:
            if quoted in text:
                quoted = ""
            continue
        if text.startswith(_COMMENT):
            if text.startswith("/*") and "*/" not in text:
                quoted = "*/"
            elif language.name == "python" and text[:3] in ('"""', "'''") and text.count(text[:3]) == 1:
                quoted = text[:3]
            if not (text.startswith("#") and (language.name in ("c", "css", "rust"))):
                continue
        indent = len(row) - len(text)
        if not indent and imports(row):
            last, modules = _read_import(rows, index, language.name)
            found.append(Declaration(index, last, 1, 0, modules))
            skip = last
            continue
        is_type = types(row)
        if is_type or functions(row):
            while open_ and open_[-1][0] >= indent:
                open_.pop()
            if open_ and not open_[-1][1] and not is_type and language.name not in ("python", "ruby"):
                continue
            last, signature = read_signature(rows, index)
            brief = (_RECEIVER.match(signature) or [""])[0].strip()
            if match := _TITLE.match(signature) if language.name in ("typescript", "ruby") and "(" in brief + "(" and _is_test(text) else None:
                signature = brief = match[1].replace("(", " ", 1) if match else signature
            rank = 4 if is_type or not open_ else 3
            found.append(Declaration(index, last, rank, len(open_), signature, brief))
            open_.append((indent, bool(is_type)))
            skip = last
        elif constants(row) and (not open_ or (open_[-1][1] and language.name in ("java", "csharp", "ruby", "php"))):
            found.append(Declaration(index, index, 2, min(len(open_), 1), _short(text, _LONGEST_CONSTANT)))
        elif not indent and open_ and text[0] in "})]":
            open_.clear()
    return found


_TESTS = re.compile(r"(?:describe|context|suite|it|test|specify|scenario|RSpec)\b")


def _is_test(text: str) -> bool:
    return bool(_TESTS.match(text))


def read_signature(rows: Sequence[str], index: int) -> tuple[int, str]:
    """Return the last row of the signature that begins in a row, and the signature in one line without its body."""
    text = rows[index].strip()
    last = index
    while text.count("(") > text.count(")") and last + 1 < min(len(rows), index + _MOST_ROWS):
        last += 1
        text = f"{text} {rows[last].strip()}"
    if text.count("(") > text.count(")"):
        text, last = rows[index].strip(), index
    body = text.find("{")
    if body > 0 and not text.rstrip().endswith(("}", ";", ",")):
        text = text.rstrip().removesuffix("{")
    return last, _short(text.rstrip(" :").replace("(t *testing.T)", "(t)"), _LONGEST_SIGNATURE)


def _short(text: str, most: int) -> str:
    """Return a text that ends at a word, with `…` if it was cut."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    begin = text[: most - 2]
    return f"{begin[: max(begin.rfind(' '), most // 2)].rstrip()} …"


_QUOTED = re.compile(r"[\"'`<]([^\"'`<>]+)[\"'`>]")
_FROM = re.compile(r"from\s+(\S+)\s+import\s+\(?(.*)")
_NAMED = re.compile(r"import\s+(?:type\s+)?(.*?)\s*from\s*[\"']([^\"']+)[\"']")


def _read_import(rows: Sequence[str], index: int, language: str) -> tuple[int, str]:
    """Return the last row of an import, and what it imports in short."""
    text = rows[index].strip()
    last = index
    opening = "(" if "(" in text else "{"
    closing = ")" if opening == "(" else "}"
    pieces = [text]
    while pieces and text.count(opening) > text.count(closing) and last + 1 < min(len(rows), index + 80):
        last += 1
        pieces.append(rows[last].strip())
        text = f"{text} {pieces[-1]}"
    if language == "go":
        paths = [match for piece in pieces for match in _QUOTED.findall(piece)]
        return last, ", ".join(paths)
    if language == "python":
        if match := _FROM.match(text):
            names = ", ".join([name.strip() for name in match[2].strip(" )").split(",") if name.strip()])
            return last, f"{match[1]}: {names};" if "," in names else f"{match[1]}.{names}"
        return last, text.removeprefix("import ").partition("#")[0].strip()
    if match := _NAMED.match(text):
        return last, match[2]
    if match := _QUOTED.search(text):
        return last, match[1]
    words = text.rstrip(";").split()
    return last, words[-1] if words and words[0] != "package" else ""
