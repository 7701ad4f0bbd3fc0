"""Source code: an outline of its declarations, and the other lines below them.

The outline comes from a parser where there is one (`python_code`, `grammars`), else from the forms of single lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from .grammars import outline_by_grammar
from .languages import Language, detect_language
from .python_code import outline_python
from .signatures import brief_of, clip_text, read_import, read_signature, test_title
from .source import Source
from .values import Declaration, Line, Reading

__all__ = ["outline_by_forms", "read_code"]

_LONGEST_IMPORTS = 150
_LONGEST_BRIEF_IMPORTS = 60
_LONGEST_CONSTANT = 80

_DECLARED = 1.4
_IMPORTED = 0.9
_NO_DECLARATION = frozenset("})]>|&+-=?:\"'`,;")
_COMMENT = ("//", "#", "*", "/*", "--", "<!--", '"""', "'''")


def read_code(source: Source) -> Reading:
    """Return the declarations as lines that must stay, and the other lines below them."""
    rows = [row for _, row in source.rows]
    language = detect_language(rows)
    if language is None:
        return Reading([Line(number, row.strip()) for number, row in source.rows if row.strip()])
    outline = None
    if not source.viewed:
        # A stretch of a file does not parse.
        outline = outline_python(rows) if language.name == "python" else outline_by_grammar(rows, language.name)
    if outline is None:
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
            lines.append(Line(number, text, _IMPORTED if index in imported else 1.0, depth=depth, above=above))
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
        if index <= skip or not row or row.isspace():
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
        if text[0] in _NO_DECLARATION:
            if not indent and open_:
                open_.clear()
            continue
        if not indent and imports(row):
            last, modules = read_import(rows, index, language.name)
            if modules:
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
            brief = brief_of(signature)
            if title := test_title(text) if language.name in ("typescript", "ruby") else "":
                signature, brief, last = title, title, index
            rank = 4 if is_type or not open_ else 3
            found.append(Declaration(index, last, rank, len(open_), signature, brief))
            open_.append((indent, bool(is_type)))
            skip = last
        elif constants(row) and (not open_ or (open_[-1][1] and language.name in ("java", "csharp", "ruby", "php"))):
            found.append(Declaration(index, index, 2, min(len(open_), 1), clip_text(text, _LONGEST_CONSTANT)))
    return found
