"""The prose of `src`, `docs` and the README avoids a list of words that are hard to read (CONTRIBUTING.md, Writing).

Only the list below is enforced. Everything else about style is a matter for readers.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

BANNED = re.compile(
    r"\b(anew|whoever|whatever|whichever|nobody|somebody|beside|dear|dearer|dearest|"
    r"taken? back|takes back|took back|held against|hold against|(?:can|could|may|to) be had|"
    r"(?:is|are|was|were|be) told|tells of|told of|at last|(?:is|are|was|were|be) at work|"
    r"of its own accord|thereof|whose turn|is come|makes up for|what comes of)\b",
    re.IGNORECASE,
)
RIDDLE = re.compile(r"(?:^|(?<=[.!:] )|(?<=\n))(?:What|Who|Those who|That which)\b[^.!?]*(?:[.!]|$)")
"""A sentence that begins with a noun clause. Questions are allowed."""

FOR_MODELS = ('are told as "40-80"', "It is told in ")
"""Texts that a model reads. They stay as they are, because recorded figures depend on them."""

Place = tuple[int, str]


def prose_of_code(source: str) -> Iterator[Place]:
    """Yield the comments, docstrings and texts of several words of a Python file, with their lines.

    Lists of words, such as `words("not never")`, are no texts.
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    lists: set[ast.expr] = set()
    for node in ast.walk(ast.parse(source)):  # A call comes before its arguments.
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "words":
            lists.update(node.args)
            continue
        match node:
            case ast.Constant(value=str(text)) if text.count(" ") >= 2 and node not in lists:
                if not any(words in text for words in FOR_MODELS):
                    yield node.lineno, text


def prose_of_page(text: str) -> Iterator[Place]:
    """Yield the paragraphs of a Markdown page outside code blocks, with the line on which each begins."""
    is_code, start, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_text = not is_code and line.strip() != "" and not line.lstrip().startswith(("```", "#"))
        if lines and (not is_text or re.match(r"\s*([-*|#>]|\d+\.) ?", line)):
            yield start, " ".join(lines)
            lines = []
        if is_text:
            start = start if lines else number
            lines.append(re.sub(r"`[^`]*`", "``", line.strip().lstrip("-*|#> ")))


def findings(places: Iterator[Place]) -> list[str]:
    """Return what is wrong in these texts: the line, and the words."""
    wrong = []
    for line, text in places:
        wrong += [f"{line}: {match[0]}" for match in BANNED.finditer(text)]
        wrong += [f"{line}: {match[0][:60]}" for match in RIDDLE.finditer(text)]
    return wrong


def pages() -> list[Path]:
    return sorted(
        [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "SECURITY.md", "CODE_OF_CONDUCT.md"))]
    )


def modules() -> list[Path]:
    return sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_uses_plain_words(path: Path):
    assert findings(prose_of_page(path.read_text(encoding="utf-8"))) == []


def test_code_uses_plain_words():
    wrong = {
        path.relative_to(ROOT).as_posix(): found
        for path in modules()
        if (found := findings(prose_of_code(path.read_text(encoding="utf-8"))))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Whoever reads this starts anew.", 2),
        ("What is old is replaced.", 1),
        ("The planner replaces the result.", 0),
        ("What is it for?", 0),
        ("It stands beside the history, and is told of it.", 2),
    ],
)
def test_findings_names_planted_words(text: str, count: int):
    assert len(findings(iter([(1, text)]))) == count
