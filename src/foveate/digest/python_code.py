"""Declarations of Python source, found by Python's own parser."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from .signatures import clip_text, read_import, read_signature
from .values import Declaration

__all__ = ["outline_python"]

_MOST_PARSED = 200_000
"""Characters. A longer text is outlined by the forms of its lines."""
_ESCAPE = re.compile(r"\\[^\n'\"]")
_LONGEST_CONSTANT = 80
_NAMED = re.compile(r"(?:class|def)\s+[^\s(\[:]+")


def outline_python(rows: Sequence[str]) -> list[Declaration] | None:
    """Return the declarations, or None if the text is no whole Python module: a stretch of a file, or with errors."""
    text = "\n".join(rows)
    if len(text) > _MOST_PARSED:
        return None
    try:
        # Escapes do not matter here, and the parser would warn of those that Python does not know.
        tree = ast.parse(_ESCAPE.sub("//", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: list[Declaration] = []
    _add_body(found, tree.body, rows, 0, False)
    return found


def _add_body(
    found: list[Declaration], body: Sequence[ast.stmt], rows: Sequence[str], depth: int, in_class: bool
) -> None:
    for node in body:
        row = node.lineno - 1
        match node:
            case ast.Import() | ast.ImportFrom() if not depth:
                last = (node.end_lineno or node.lineno) - 1
                found.append(Declaration(row, last, 1, 0, read_import(rows, row, "python")[1]))
            case ast.ClassDef():
                last, signature = read_signature(rows, row)
                found.append(Declaration(row, last, 4, depth, signature, _brief(signature)))
                _add_body(found, node.body, rows, depth + 1, True)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                last, signature = read_signature(rows, row)
                found.append(Declaration(row, last, 3 if depth else 4, depth, signature, _brief(signature)))
            case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()) if in_class or not depth:
                last = (node.end_lineno or node.lineno) - 1
                text = clip_text(" ".join(rows[row : min(last, row + 9) + 1]), _LONGEST_CONSTANT)
                found.append(Declaration(row, row, 2, depth, text))
            case ast.If() | ast.Try() if not depth:
                _add_body(found, node.body, rows, depth, False)
            case _:
                pass


def _brief(signature: str) -> str:
    """Return `class` or `def` with the name as it is written: the parser normalizes letters."""
    match = _NAMED.search(signature)
    return match[0] if match else ""
