"""Retention: whether a summary keeps the statements that bind the model.

A statement is judged by its key words, since a summary may say it in other words: its identifiers and numbers, half of
its other names, and a denial. They must be near each other. A statement without any of them is kept if a summary has
one of its longer words. The same statement and text give the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..core.scripts import MARKS, UNSPACED
from ..digest.names import names_in

__all__ = ["find_lost"]

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SEPARATED = re.compile(r"(?<=\d)[,.\u202f\u00a0' ](?=\d{3}(?!\d))")
"""A separator of thousands."""
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z\u00c0-\u00de\u0410-\u042f][\w-]{2,}")
"""A capitalised word inside a sentence."""
_WORD = re.compile(r"[^\W\d_]{4,}|[\u3040-\u30ff\u4e00-\u9fff]{2}")
_UNSURE = re.compile(rf"\A[{UNSPACED}{MARKS}]+[_./\-#@]*|[_./\-#@]*[{UNSPACED}{MARKS}]+\Z")
"""Ends of a name without a space before or behind it: they may hold other words of the sentence."""
_STEM = 5
"""Letters of the stem of a word."""
_DENIAL = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|without|cannot|neither|nor|avoid\w*|forbid\w*|forbidden|prohibit\w*|banned?|"
    r"refus\w*|exclud\w*|except|only|unless|until|stay away|off.?limits|must|requir\w*|"
    r"nicht|nie|niemals|kein\w*|ohne|nur|verboten|bis|jamais|pas|sans|aucun\w*|interdit\w*|seulement|"
    r"nunca|jam[aá]s|sin|s[oó]lo|prohib\w*|nem|n[aã]o|sem|proibid\w*|apenas|mai|non|senza|vietat\w*|soltanto|"
    r"не|нет|нельзя|никогда|без|только|запрещ\w*)\b|n[’']t\b|不|别|別|勿|无|無|没|未|禁|只|ない|ません|だけ|のみ|않|금지|마세요|없"
    r"|(?<!\w)(?:لا|لم|لن|ليس|بدون|دون|فقط|לא|אל|אין|בלי|ללא|רק)(?!\w)|ممنوع|يُ?منع|محظور|يجب|אסור|חובה|בלבד"
    r"|नहीं|(?<!\S)मत(?!\S)|बिना|केवल|सिर्फ|मना\s|ไม่|ห้าม|อย่า|เท่านั้น|(?<!ถูก)ต้อง(?!การ)",
    re.IGNORECASE,
)
"""Words that deny, forbid or limit."""
_NEAR = 2
"""Lines next to each other that may hold one statement."""


class _Keys(Struct, frozen=True):
    """The key words of a statement."""

    exact: frozenset[str]
    names: frozenset[str]
    stems: frozenset[str]
    denies: bool


def find_lost(statements: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the statements whose sense a text does not keep, in their order."""
    if not statements:
        return ()
    passages = [(_plain(passage), bool(_DENIAL.search(passage))) for passage in _passages(text)]
    whole = _plain(text)
    return tuple(statement for statement in statements if not _is_kept(_keys_of(statement), passages, whole))


def _keys_of(statement: str) -> _Keys:
    plain = _plain(statement)
    exact = {_UNSURE.sub("", _plain(name)) for name in names_in(statement)} - {""} | set(_NUMBER.findall(plain))
    names = {_plain(name) for name in _NAME.findall(statement)} - exact
    stems = {word[:_STEM] for word in _WORD.findall(plain)}
    return _Keys(frozenset(exact), frozenset(names), frozenset(stems), bool(_DENIAL.search(statement)))


def _is_kept(keys: _Keys, passages: Sequence[tuple[str, bool]], whole: str) -> bool:
    if not keys.exact and not keys.names:
        return not keys.stems or any(stem in whole for stem in keys.stems)
    for passage, denies in passages:
        if keys.denies and not denies:
            continue
        shown = sum(name in passage for name in keys.names)
        if 2 * shown >= len(keys.names) and all(word in passage for word in keys.exact):
            return True
    return False


def _passages(text: str) -> Iterator[str]:
    """Yield each line of a text with the next one."""
    lines = [line for line in text.splitlines() if line.strip()]
    for i in range(len(lines)):
        yield "\n".join(lines[i : i + _NEAR])


def _plain(text: str) -> str:
    return _SEPARATED.sub("", text).casefold()
