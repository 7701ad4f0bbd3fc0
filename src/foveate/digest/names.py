"""Identifiers in a text, and how likely later work refers to each.

An identifier is a run of letters, digits and `_./-#@`, 6 to 120 long without `./-_#@` at its ends, that is more than a
word: it has a digit, `_`, `/`, `.` or mixed case inside. Letters are those of any script. Between a script without
spaces and another one, only `_./-#@` continue a run: `请改config.yaml` has the name `config.yaml`.

The weights were measured on recorded agents: paths with an ending, constants and declared names are used more often
than others; line numbers that a search appends to paths, long dotted chains and times are hardly ever used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ..core.caches import cached
from ..core.json_escapes import decode_escapes
from ..core.scripts import MARKS, UNSPACED

__all__ = ["called_runs", "distinct_names", "is_name", "names_in", "rate", "worth_of"]

_CALLED_RUN = re.compile(r"([A-Za-z0-9_./\-#@]{6,120})(\(?)")
_RUN_CHARACTER = re.compile(r"[A-Za-z0-9_./\-#@]")
_LETTER = re.compile(r"[^\W\x00-\x7f]")
_SPACES = bytes(code if _RUN_CHARACTER.match(chr(code)) else 32 for code in range(256))
"""The characters of runs, and spaces in place of all others: a text in ASCII letters is split at these."""

_EDGES = "./-_#@"
_LEAST = 6
_LONGEST = 120
_TELLING = re.compile(r"[0-9_/.]")
_GLUED_NUMBER = re.compile(r".*/.*[-:]\d+\Z")
_CLOCK = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T_]?\d|\d\d?\.\d+s?\Z|\d+(?:\.\d+)?(?:ms|s|KB|MB|GB|%)?\Z")
_LONG_HASH = re.compile(r"[0-9a-fA-F]{24,}\Z|[A-Za-z0-9_/\-]{60,}\Z")
_FILE = re.compile(rf"[\w{MARKS}\-@./]*\.[A-Za-z][A-Za-z0-9]{{0,4}}\Z")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w+\.[a-z_]\w*\Z")
_EVERYWHERE = re.compile(
    r"(?:t|require|assert|fmt|strings|strconv|os|io|errors|filepath|context|err|console|Math|JSON|Object|Array|Promise"
    r"|process|self|np|pd|re|sys|json|time|sync|bytes|testing|expect|vi|jest|log)\.[A-Za-z]+\Z"
)


def names_in(text: str) -> Iterator[str]:
    """Return the identifiers in a text in their order, with repetitions; a run of more than 120 characters is none."""
    return filter(None, map(_name_in, _runs(text)))


def distinct_names(text: str) -> tuple[str, ...]:
    """Return the identifiers in a text, each once, in their order."""
    runs = [run for run in dict.fromkeys(_runs(text)) if not (run.isalpha() and run.islower())]  # Most are words.
    return tuple(dict.fromkeys(filter(None, map(_name_in, runs))))


def _runs(text: str) -> list[str]:
    text = decode_escapes(text)
    if not text.isascii() and _LETTER.search(text):
        return [run for run, _ in _wide_run().findall(text) if len(run) >= _LEAST]
    pieces = text.encode("ascii", "replace").translate(_SPACES).decode().split()
    return [piece for piece in pieces if len(piece) >= _LEAST]


def called_runs(text: str) -> list[tuple[str, str]]:
    """Return the runs of a text that may contain identifiers, each with the parenthesis after it, if there is one."""
    if text.isascii() or not _LETTER.search(text):
        return _CALLED_RUN.findall(text)
    return [found for found in _wide_run().findall(text) if _LEAST <= len(found[0]) <= _LONGEST]


@cache  # Ranges of so many characters are slow to compile, and most texts have none of them.
def _wide_run() -> re.Pattern[str]:
    unspaced = f"{UNSPACED}\u1100-\u11ff\uff66-\uff9f"  # Hangul that is decomposed, and narrow kana.
    word = rf"(?:[{unspaced}][{unspaced}{MARKS}]*+|(?![{unspaced}_])\w(?:(?![{unspaced}_])[\w{MARKS}])*+)"
    return re.compile(rf"([_./\-#@]*+{word}(?:[_./\-#@]++{word})*+[_./\-#@]*+)(\(?)")


@cached(16_384)
def _name_in(run: str) -> str:
    """Return the identifier in a whole run; "" if there is none."""
    name = run.strip(_EDGES)
    return name if len(run) <= _LONGEST and is_name(name) else ""


def is_name(name: str) -> bool:
    """Return whether this is an identifier rather than a word, without `./-_#@` at its ends."""
    if len(name) < _LEAST or _TELLING.search(name):
        return len(name) >= _LEAST
    # Scripts without capital letters have no mixed case.
    return not (name.islower() or name.isupper() or name.istitle()) and name.lower() != name.upper()


@cached(16_384)
def rate(run: str) -> tuple[str, int, float]:
    """Return the identifier in a run, its position in the run, and its worth (about 1; 0 if there is none)."""
    name = run.strip(_EDGES)
    if not is_name(name):
        return "", 0, 0.0
    return name, run.index(name), worth_of(name)


def worth_of(name: str) -> float:
    """Return the worth of an identifier."""
    if len(name) > 40 and _LONG_HASH.match(name) and "." not in name:
        return 0.4
    if "/" in name:
        slashes = name.count("/")
        if _GLUED_NUMBER.match(name):
            return 0.05
        value = 1.5 if _FILE.match(name) else 1.0
        return value * (1.2 if 1 <= slashes <= 3 else 0.8)
    if _CLOCK.match(name):
        return 0.4
    dots = name.count(".")
    if dots >= 3:
        return 0.5
    if dots and _EVERYWHERE.match(name):
        return 0.85
    if dots == 1:
        return 1.3 if name[1] == "." else 0.65 if _ATTRIBUTE.match(name) else 1.0
    return 0.85 if name.isalpha() and name[0].isupper() else 1.0
