"""The scorer: which facts a text still shows, judged by words alone.

A text consists of lines, and a line of sentences. A **statement** is one sentence, or two neighbouring sentences of one
line. The rules are strict, and the same for every way that is measured:

- A fact is **kept** if one statement holds all its tokens. Tokens are compared as whole words, without regard to case.
  The negation of a prohibition and the hedge of a claim are tokens like the others. A list of names keeps no fact.
- A change is **resolved** if the newer statement is kept and the older one is not stale.
- A replaced statement is **stale** if a sentence still holds all its tokens as if they were current. It is not stale if
  the sentence stands under a heading or after a label that says "replaced", if a word such as "not", "no longer" or
  "instead of" stands right before the old value, if "is replaced" or "no longer" follows it, or if the sentence says
  "from the old value to the new one", or if the line goes on with "(later: " or "(replaced by: " and the tokens of the
  newer statement. The words of the correction itself are never stale.
- Two facts that look alike are **merged** if exactly one of them is kept: a reader would take it for both.
- A claim is **bare** if a statement holds it, and no statement holds it together with its hedge or negation.
- A line is **cut** if it stands in the source word for word, but begins or ends inside a sentence, and not at a comma.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from retention.shapes import Fact

__all__ = ["Score", "Verdict", "count_cut_lines", "judge", "sentences_of", "statements_of"]


class Verdict(NamedTuple):
    """The result for one fact."""

    fact: Fact
    kept: bool
    """Whether the fact is kept; of a pair, the first."""
    other_kept: bool
    """Whether the second of a pair is kept."""
    stale: bool
    """Whether the replaced statement looks current."""
    bare: bool
    """Whether the claim lost its hedge or negation."""

    @property
    def is_resolved(self) -> bool:
        return self.kept and not self.stale

    @property
    def is_merged(self) -> bool:
        return bool(self.fact.other) and self.kept != self.other_kept


class Score(NamedTuple):
    """Shares over many verdicts, from 0 to 1; None where no fact is of that kind."""

    facts: int
    kept: float | None
    rules_kept: float | None
    """Rules, buried constraints and system instructions that are kept."""
    resolved: float | None
    stale: float | None
    merged: float | None
    bare: float | None

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Score:
        verdicts = list(verdicts)
        kept = [state for v in verdicts for state in ((v.kept, v.other_kept) if v.fact.other else (v.kept,))]
        changes = [v for v in verdicts if v.fact.old]
        return cls(
            len(kept),
            _share(kept),
            _share([v.kept for v in verdicts if v.fact.kind in ("rule", "buried", "system")]),
            _share([v.is_resolved for v in changes]),
            _share([v.stale for v in changes]),
            _share([v.is_merged for v in verdicts if v.fact.other]),
            _share([v.bare for v in verdicts if v.fact.hedge]),
        )


def _share(states: Sequence[bool]) -> float | None:
    return sum(states) / len(states) if states else None


def judge(facts: Iterable[Fact], text: str, later: str = "") -> list[Verdict]:
    """Return a verdict for each fact. `text`: a summary. `later`: messages that a reader sees word for word after it.

    A fact may be kept in either. A replaced statement is stale only in the summary, and only if the newer statement is
    not among the later messages, because their order shows which of both is current.
    """
    summarized, verbatim = statements_of(text), statements_of(later)
    verdicts = []
    for fact in facts:
        kept_later = _is_kept(fact.keep, verbatim)
        kept = kept_later or _is_kept(fact.keep, summarized)
        other = bool(fact.other) and (_is_kept(fact.other, verbatim) or _is_kept(fact.other, summarized))
        claim = tuple(token for token in fact.keep if token != fact.hedge)
        bare = bool(fact.hedge) and not kept and (_is_kept(claim, summarized) or _is_kept(claim, verbatim))
        stale = bool(fact.old) and not kept_later and _is_stale(fact, text)
        verdicts.append(Verdict(fact, kept, other, stale, bare))
    return verdicts


# --------------------------------------------------------------------------------------------------------- statements

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？；])|;\s+|\s+[…|•·]\s+")
_BULLET = re.compile(r"^\s*(?:[-*•>]|\d+[.)])\s+")
_NAMES = re.compile(r"^\s*[^\s,]+(?:, [^\s,]+){2,}[,.…]?\s*$")
"""A list of three or more names. It says nothing about any of them."""
_HEADING = re.compile(r"^\s*(?:#+\s*|\*\*)(.*?)(?:\*\*)?:?\s*$")


def sentences_of(line: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE.split(line) if sentence and sentence.strip()]


def statements_of(text: str) -> list[str]:
    """Return the sentences of each line, and each two neighbours of one line together, in lower case."""
    found = []
    for line in text.casefold().splitlines():
        if _NAMES.match(line):
            continue
        sentences = sentences_of(line)
        found += sentences
        found += [f"{first} {second}" for first, second in pairwise(sentences)]
    return found


@lru_cache(10_000)
def _pattern(token: str) -> re.Pattern[str]:
    """Return the pattern of a token: `a|b` for either, `stem*` for a beginning; whole words, but for CJK."""
    return re.compile("|".join(map(_word, token.casefold().split("|"))))


def _word(word: str) -> str:
    stem = word.removesuffix("*")
    before = r"(?<!\w)" if _is_spaced(stem[0]) else ""
    after = r"(?!\w)" if stem == word and _is_spaced(stem[-1]) else ""
    return before + re.escape(stem) + after


def _is_spaced(character: str) -> bool:
    """Return whether words of this script stand between spaces."""
    return character.isalnum() and ord(character) < 0x2E80


def _has_all(tokens: Sequence[str], statement: str) -> bool:
    return all(_pattern(token).search(statement) for token in tokens)


def _is_kept(tokens: Sequence[str], statements: Sequence[str]) -> bool:
    return any(_has_all(tokens, statement) for statement in statements)


# ---------------------------------------------------------------------------------------------------------- replaced

_REPLACED = re.compile(
    r"replaced|superseded|outdated|obsolete|retracted|withdrawn|no longer valid|former|previous values"
)
"""Words of a heading, or of a label before a colon, that mark everything below or behind as replaced."""
_BEFORE = re.compile(
    r"(?:\bnot|n't|\bno longer|\binstead of|\brather than|\breplac(?:es|ing|ed)|\bsupersed(?:es|ing)|\bformerly|"
    r"\bpreviously|\(was|\bwas:|\bscratch|\bforget|\bdrop(?:ped)?|\bold(?: value)?:?|\bnicht(?: mehr)?|\bstatt|\bya no|"
    r"\ben lugar de|不再用?|不是|而不是|~~)[\s\"'`(:]*(?:(?:is|es|use|uses|in|to|by|at|on|the|am|as|of)[\s\"'`]+){0,2}$"
)
"""Words right before a value that say it does not count any more."""
_AFTER = re.compile(
    r"^[\w\s\"'`)\],.%]{0,40}?(?:\bno longer|\b(?:is|was|are|were|has been) (?:replaced|superseded|outdated|dropped|"
    r"retracted|wrong|out\b)|\breplaced by|\bsuperseded by|\bany ?more|→|->|=>|~~|\(replaced|\(old|\(outdated|"
    r"\(superseded|[(,;] ?now\b)"
)
"""Words behind a value that say the same."""
_LATER = re.compile(r" \((?:later|replaced by): ")
"""Stands between an older statement and a newer one."""
_TO = re.compile(r"^[\w\s%\"'`]{0,30}?\bto\b")
"""The rest of a sentence that names the new value after `from` and the old one."""


def _is_stale(fact: Fact, text: str) -> bool:
    """Return whether any sentence shows the replaced statement as current."""
    newest = " ".join(fact.says[-1].casefold().split())
    under_replaced = False
    for line in text.casefold().splitlines():
        if heading := _HEADING.match(line):
            under_replaced = bool(_REPLACED.search(heading[1]))
            continue
        label, colon, _ = _BULLET.sub("", line).partition(":")
        if under_replaced or (colon and len(label) < 40 and _REPLACED.search(label)):
            continue
        for sentence in sentences_of(line):
            sentence = " ".join(_BULLET.sub("", sentence).split())
            if not _has_all(fact.old, sentence) or sentence in newest or _is_marked(fact, sentence):
                continue
            if not _is_followed(fact, line):
                return True
    return False


def _is_marked(fact: Fact, sentence: str) -> bool:
    """Return whether a sentence with the old tokens says that they are replaced, or is the newer statement itself."""
    keeps = [token for token in fact.keep if token not in fact.old]
    if keeps and _has_all(keeps, sentence) and _same_place(fact):
        return True
    for token in fact.old:
        for match in _pattern(token).finditer(sentence):
            before, after = sentence[: match.start()], sentence[match.end() :]
            if _BEFORE.search(before) or _AFTER.search(after) or (before.endswith("from ") and _TO.match(after)):
                return True
    return False


def _is_followed(fact: Fact, line: str) -> bool:
    """Return whether a line shows the older statement, and behind it, marked as later, the newer one."""
    _, _, later = _LATER.sub("\n", line, count=1).partition("\n")
    later = later.removesuffix(")")
    return _is_kept(fact.keep, statements_of(later)) and not any(
        _has_all(fact.old, sentence) and sentence not in " ".join(fact.says[-1].casefold().split())
        for sentence in sentences_of(later)
    )


def _same_place(fact: Fact) -> bool:
    """Return whether old and new differ in the verb and not in a value: then the newer wording decides."""
    return any(token in fact.keep for token in fact.old)


# --------------------------------------------------------------------------------------------------------------- cuts

_ENDS = frozenset(".!?:;,。！？；，、…)\"'`>")


def count_cut_lines(text: str, source: str) -> tuple[int, int]:
    """Return how many lines of `text` are cut inside a sentence, and how many stand in `source` word for word.

    `source`: the prose of the conversation, a message a line, each with single spaces. Only lines with at least four
    words count; headings and lists of names do not.
    """
    cut = found = 0
    for line in text.splitlines():
        line = _BULLET.sub("", " ".join(line.split()))
        if _HEADING.match(line) or line.count(" ") < 3:
            continue
        bare = line.strip("… ")
        place = source.find(bare)
        if place < 0:
            continue
        found += 1
        before, after = source[:place].rstrip(" "), source[place + len(bare) :]
        begins = not before or before[-1] in "\n.!?:;,。！？；，、-*>" or before[-1].isdigit()
        ends = not after or after[0] == "\n" or bare[-1] in _ENDS or after[0] in _ENDS
        cut += not (begins and ends)
    return cut, found
