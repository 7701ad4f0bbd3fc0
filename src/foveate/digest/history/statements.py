"""Statements: a text cut into whole sentences and lines, with what qualifies them.

A statement is what a digest keeps or leaves out as a whole. A sentence that only makes sense after the one before it
("Except on Fridays.", "Because the disk is full.") belongs to that one, an item of a list to the line that introduces
the list, and a short opening ("Scratch that.") to the sentence that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.scripts import whole_end
from .lexicon import one_of

__all__ = ["ANSWERED", "cut_at_clause", "split_sentences", "split_statements"]

ANSWERED = " → "
"""Stands between a question and its answer."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+•‣·]|\(?\d{1,3}[.)]|[a-z]\))\s+")
_TITLE_ITEM = re.compile(r"\**[A-Z][\w /-]{2,40}:?\**:\**")
"""An item that is a title alone: `Key Technical Concepts:`."""
_TITLE = re.compile(r"\s*(?:#{1,6}\s|[=\-_*]{3,}\s*\Z)")
_BOLD_TITLE = re.compile(r"\*\*[^*]{1,80}(?::\*\*|\*\*:)")
"""A title in bold print, which says nothing alone."""
_END = re.compile(
    r"[.!?…。！？؟۔।॥።။។](?:(?<=[.!?…])(?:\s+|[.!?…]*[\"'”’»)\]]*\s+)|(?<=[。！？…؟۔।॥።။។])[。！？…؟۔।॥።။។]*[」』”’）)»]*\s*)"
)
"""The end of a sentence: a mark before a space, or a mark of another script which stands nowhere else.

`re` is fast if one set comes first.
"""
_OPENS = re.compile(r"[^\W_]|[\"'“‘«(\[¿¡「『`$€£#@/~<*_-]")
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*[_/.\-]\w|[a-z]+[A-Z0-9]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|nr|mr|mrs|ms|dr|prof|st|inc|ltd|co|corp|dept|fig|sec|ca|bzw|z\.\s?b|d\.\s?h"
    r"|u\.\s?a|usw|ggf|inkl|evtl|sr|sra|p\.\s?ej|ej|pag|pág|art|n\.\s?b|\w)\.\Z|\*\d{1,2}\.\Z",
    re.IGNORECASE,
)
"""The end of a piece that only looks like the end of a sentence: an abbreviation or an initial."""
_LEANS = re.compile(
    "(?:"
    + one_of("""
        but|except|unless|otherwise|because|since then|though|although|however|it|its|it's|that|that's|this|these|their
        those|they|them|not even|even if|only if|only when|also not|nor|neither|likewise|same for|same goes|the same
        the reason|reason:|so that|and|or|then|until|in that case|if not|if so|which|he|she|either|aber|außer|ausser
        sonst|weil|denn|allerdings|es|das|dies|diese|sie|auch nicht|und|oder|jedoch|nur wenn|grund|mais|sauf|sinon
        parce que|car|toutefois|cela|ça|ce|il|elle|ils|et|ou|pero|salvo|excepto|porque|sin embargo|eso|esto|y|o|mas
        exceto|isso|isto|e|ou|porém|ma|tranne|perché|però|questo|quello|но|кроме|иначе|потому|однако|это|и|или
    """)
    + r")\b|但|不过|除非|否则|因为|而且|并且|它|这|ただし|しかし|でも|なぜなら|それ|これ|また",
    re.IGNORECASE,
)
"""The beginning of a sentence that qualifies the one before it."""
_REFERS = re.compile(r"(?:\S+ ){1,3}(?:it|them|that|this|him|her|es|das|ihn|sie|lo|la|ça|isso|eso)[.!]?\Z")
"""A short sentence about what the one before it names: `Saskia does it.`"""
_WAITS = re.compile(r"[^.!?]{0,40}[:：—-]\s*\Z|\W*+(?:[^\W_]++\W++){0,3}[^\W_]++\W*+\Z")
"""An opening of at most four words, or one that ends with a colon."""
_TURNS = re.compile(
    r"\b(?:"
    + one_of("""
        scratch|correction|corrected|actually|wait|sorry|forget|never ?mind|ignore|disregard|oops|update|change
        changed|new|plan|no|stop|hold|decision|note|important|reminder|rule|korrektur|vergiss|moment|nein|änderung
        entscheidung|wichtig|correction|oublie|oubliez|non|attends|changement|décision|corrección|olvida|olvídalo
        espera|cambio|correção|esqueça|espere|mudança|correzione|dimentica|aspetta|cambio|исправление|забудь|стоп
        нет|решение
    """)
    + r")\b|更正|等等|取消|注意|訂正|待って",
    re.IGNORECASE,
)
"""Words of an opening that changes the meaning of the next sentence."""
_LONGEST_GROUP = 320
"""Characters of sentences that stay together; a longer qualification becomes a statement of its own."""
_LONGEST_CHAT = 160
"""The same for sentences without a capital letter, which people write in a hurry."""
_SAYS = 4
"""Words of a line that says something without what stands below it."""
_LONG_HEADING = 60
"""Characters of a line above a list that each of its items repeats."""
_CLOSES = ".!?:;。！？؟۔।॥።။។"
_UNMARKED = re.compile(r"[\u0e00-\u0eff]")
"""Letters of Thai and Lao, whose sentences have no mark at their end: each line may be one."""
_WRAPPED = 48
"""Least length of a line that may end in the middle of a sentence."""


def split_statements(text: str) -> list[str]:
    """Return the statements of a text in their order, each in one line. Code between fences is left out."""
    statements: list[str] = []
    heading = ""
    is_new = False
    """Whether nothing stands below the heading yet."""
    for block, is_item in _blocks(text):
        if not block or (block.startswith("**") and _BOLD_TITLE.fullmatch(block)):
            statements += _alone(heading, is_new)
            heading = ""
            continue
        if is_item and block[-1] in "*:" and _TITLE_ITEM.fullmatch(block):
            continue
        if is_item:
            statements += _of_item(heading, block)
            is_new = False
            if len(heading) > _LONG_HEADING:  # One item says it whole.
                heading = f"{cut_at_clause(heading[:-1], _LONG_HEADING // 2)}:"
            continue
        above = heading if is_new else ""
        heading = block if block[-1] in ":：" and len(block) <= _LONGEST_GROUP // 2 else ""
        is_new = bool(heading)
        if heading and (end := _last_end(heading)):
            statements += _sentences(heading[:end])
            heading = heading[end:]
        elif not heading:
            statements += _sentences(f"{above} {block}".lstrip())
    return statements + _alone(heading, is_new)


def _alone(heading: str, is_new: bool) -> list[str]:
    """Return a line above a list or code that is not shown, if it says something: `Please explain this error:`."""
    return [heading] if is_new and len(heading.split(maxsplit=_SAYS)) >= _SAYS else []


def split_sentences(statement: str) -> list[str]:
    """Return the sentences of a statement."""
    return _cut(statement) if _END.search(statement) else [statement]


def _last_end(text: str) -> int:
    """Return the position after the last sentence that ends inside of a text."""
    ends = [match.end() for match in _END.finditer(text)]
    return ends[-1] if ends else 0


def _of_item(heading: str, item: str) -> list[str]:
    sentences = _sentences(item)
    return [f"{heading} {sentence}" for sentence in sentences] if heading else sentences


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs and the items of lists, each in one line, and whether it is an item; "" for code."""
    parts: list[str] = []
    is_item = in_fence = False
    for line in text.splitlines():
        begins_plainly = line[:1].isalpha() and line[1:2] != ")"  # As most lines, which are no fence, item or title.
        if not begins_plainly and _FENCE.match(line):
            if parts:
                yield " ".join(parts), is_item
                parts = []
            yield "", False
            in_fence = not in_fence
            continue
        elif in_fence:
            continue
        plain = " ".join(line.split())
        match = _ITEM.match(line) if plain and not begins_plainly else None
        is_open = (
            bool(parts)
            and len(parts[-1]) >= _WRAPPED
            and parts[-1][-1] not in _CLOSES
            and not _UNMARKED.match(parts[-1][-1])
        )
        goes_on = is_open and bool(plain) and match is None
        if not goes_on and parts:
            yield " ".join(parts), is_item
            parts = []
        if not plain or (not begins_plainly and _TITLE.match(line)):
            continue
        if match is not None:
            plain, is_item = " ".join(line[match.end() :].split()), True
        elif not goes_on:
            is_item = is_item and line[:1].isspace()
        if plain:
            parts.append(plain)
    if parts:
        yield " ".join(parts), is_item


def _sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, those that qualify each other as one."""
    pieces = _cut(text) if _END.search(text) else [text]
    if len(pieces) < 2:
        return [one for one in pieces if one]
    groups: list[str] = []
    waiting = ""
    for sentence in pieces:
        if waiting:
            sentence, waiting = f"{waiting} {sentence}", ""
        elif groups and len(groups[-1]) + len(sentence) < (
            _LONGEST_GROUP
            if _LEANS.match(sentence) or _REFERS.match(sentence)
            else _LONGEST_CHAT
            if sentence[:1].islower()
            else 0
        ):
            groups[-1] += f" {sentence}"
            continue
        if len(sentence) <= 60 and _WAITS.match(sentence) and _TURNS.search(sentence):
            waiting = sentence
        else:
            groups.append(sentence)
    if waiting:
        groups.append(waiting)
    return groups


def _cut(text: str) -> list[str]:
    pieces: list[str] = []
    begin = 0
    is_chat = text[:1].islower()  # Its writer begins no sentence with a capital letter.
    for match in _END.finditer(text):
        start, stop = match.span()
        mark = text[start]
        if mark in ".…":
            after = text[stop : stop + 1]
            if after and not "A" <= after <= "Z":
                is_inside = (after.islower() and not is_chat) or not _OPENS.match(after)
                if is_inside and not _IDENTIFIER.match(text, stop):
                    continue  # A dot before a small letter ends no sentence.
        end = start + 1
        is_word = end - begin > 6 and text[max(begin, end - 6) : start].isalpha()
        if mark == "." and not is_word and _ABBREVIATION.search(text[max(begin, end - 12) : end]):
            continue
        if piece := text[begin:stop].strip():
            pieces.append(piece)
        begin = stop
    if rest := text[begin:].strip():
        pieces.append(rest)
    return pieces


_CLAUSE = re.compile(r"[;,:，；、：–—]\s*|\s+(?=\()")


def cut_at_clause(text: str, room: int) -> str:
    """Return a text of at most `room` characters: whole, or its beginning up to a clause or a word, with `…`."""
    if len(text) <= room:
        return text
    if room < 2:
        return text[: max(0, room)]
    begin = text[: room - 2]
    ends = [match.start() for match in _CLAUSE.finditer(begin) if match.start() >= len(begin) // 2]
    end = ends[-1] if ends else max(begin.rfind(" "), whole_end(text, len(begin) // 2))
    return f"{begin[:end].rstrip()} …"[:room]
