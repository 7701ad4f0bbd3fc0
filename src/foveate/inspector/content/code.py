"""Source code: highlighting by pygments, as spans with classes, for a bounded stretch of lines.

The classes are few, one for each shade of the style sheet. A stretch is read alone, so a string or comment that began
before it is not known. Lines that no person wrote (very long ones) are not highlighted: lexers can take quadratic time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from posixpath import basename
from typing import Any

from markupsafe import Markup

from ...digest.languages import detect_language
from .characters import visible

__all__ = ["highlight", "language_of_file", "language_of_lines"]

_LONGEST_LINE = 1_000
_MOST = 30_000
"""Characters that are highlighted at once."""

_ENDINGS = {
    "astro": "html", "bash": "bash", "c": "c", "cc": "cpp", "cfg": "ini", "cjs": "javascript", "clj": "clojure",
    "cmake": "cmake", "conf": "ini", "cpp": "cpp", "cs": "csharp", "css": "css", "dart": "dart", "diff": "diff",
    "ex": "elixir", "exs": "elixir", "go": "go", "gradle": "groovy", "graphql": "graphql", "h": "c", "hcl": "hcl",
    "hpp": "cpp", "hs": "haskell", "htm": "html", "html": "html", "ini": "ini", "java": "java", "jinja": "jinja",
    "js": "javascript", "json": "json", "json5": "json", "jsonc": "json", "jsonl": "json", "jsx": "jsx",
    "kt": "kotlin", "kts": "kotlin", "less": "css", "lock": "toml", "lua": "lua", "m": "objective-c",
    "markdown": "markdown", "md": "markdown", "mdx": "markdown", "mjs": "javascript", "mod": "go", "php": "php",
    "pl": "perl", "pony": "pony", "proto": "protobuf", "ps1": "powershell", "py": "python", "pyi": "python",
    "r": "r", "rb": "ruby", "rs": "rust", "rst": "rst", "sass": "sass", "scala": "scala", "scss": "scss",
    "sh": "bash", "sql": "postgresql", "svelte": "html", "svg": "xml", "swift": "swift", "tf": "terraform",
    "toml": "toml", "ts": "typescript", "tsx": "tsx", "vue": "html", "xml": "xml", "yaml": "yaml", "yml": "yaml",
    "zig": "zig", "zsh": "bash",
}  # fmt: skip
_FILES = {"dockerfile": "docker", "makefile": "make", "cmakelists.txt": "cmake", "gemfile": "ruby", "rakefile": "ruby"}
_DETECTED = {"shell": "bash", "sql": "postgresql", "c": "cpp"}
"""Names of pygments for those of `digest.languages` that differ."""

_CLASSES = (
    ("Comment.Preproc", "c-pre"), ("Comment", "c-com"), ("Keyword.Type", "c-typ"), ("Keyword.Constant", "c-con"),
    ("Keyword", "c-key"), ("Name.Function", "c-fun"), ("Name.Class", "c-typ"), ("Name.Decorator", "c-pre"),
    ("Name.Tag", "c-key"), ("Name.Attribute", "c-fun"), ("Name.Builtin", "c-con"), ("Name.Exception", "c-typ"),
    ("Name.Variable", "c-con"), ("Literal.String", "c-str"), ("Literal.Number", "c-num"), ("Literal", "c-str"),
    ("Operator.Word", "c-key"), ("Generic.Heading", "c-key"), ("Generic.Subheading", "c-key"),
    ("Generic.Strong", "c-bold"), ("Generic.Emph", "c-italic"),
)  # fmt: skip
"""The class of each type of token, the first that fits. Other types have none."""


def language_of_file(path: str) -> str:
    """Return the pygments name of the language of a file by its name; "" if it is unknown.

    >>> language_of_file("src/main.go"), language_of_file("notes")
    ('go', '')
    """
    name = basename(path.replace("\\", "/")).lower()
    return _FILES.get(name) or _ENDINGS.get(name.rpartition(".")[2] if "." in name else "", "")


def language_of_lines(lines: Sequence[str]) -> str:
    """Return the pygments name of the language that a stretch of code is written in; "" if it is unknown."""
    language = detect_language([line[:400] for line in lines])
    return _DETECTED.get(language.name, language.name) if language else ""


def highlight(lines: Sequence[str], language: str) -> list[Markup]:
    """Return the markup of each line. Unknown languages and overlong lines are only escaped."""
    lexer = _lexer(language)
    if lexer is None or any(len(line) > _LONGEST_LINE for line in lines) or sum(map(len, lines)) > _MOST:
        return [visible(line) for line in lines]
    done: list[Markup] = []
    pieces: list[str] = []
    for _, kind, value in lexer.get_tokens_unprocessed("\n".join(lines) + "\n"):
        begin, *more = value.split("\n")
        classes = _class_of(kind)
        pieces.append(_piece(begin, classes))
        for piece in more:
            done.append(Markup("".join(pieces)))
            pieces = [_piece(piece, classes)]
    return done[: len(lines)]


def _piece(text: str, classes: str) -> str:
    return f'<span class="{classes}">{visible(text)}</span>' if text and classes else str(visible(text))


@lru_cache(64)
def _lexer(language: str) -> Any:
    """Return the lexer of a language; None if there is none."""
    if not language:
        return None
    from pygments.lexers import get_lexer_by_name  # Takes 20 ms to import, so a page without code does not.
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@lru_cache(512)
def _class_of(kind: Any) -> str:
    name = str(kind).removeprefix("Token.")
    return next((classes for begin, classes in _CLASSES if name == begin or name.startswith(f"{begin}.")), "")
