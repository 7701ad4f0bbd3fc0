"""Cues: the words with which a statement corrects, withdraws or permits, and the clauses that it consists of."""

from __future__ import annotations

import re

from ...core.caches import cached
from .lexicon import ARROW, one_of
from .terms import terms_of

__all__ = [
    "clauses_of",
    "contradicts",
    "introduces",
    "is_addition",
    "is_bound",
    "is_exclusive",
    "is_negative",
    "is_new_goal",
    "is_short_correction",
    "is_withdrawal",
    "named_things",
    "speaks_of_all",
    "without_permission",
    "without_release",
]

_NAMED = re.compile(
    r"(?<!\w)(?:"
    + one_of(r"""
        instead of|rather than|in place of|no longer(?: (?:use|using|need|want))?|replac(?:e|es|ed|ing)
        leave out|remov(?:e|ed)|delete[ds]?|retired?|take out|omit|skip|no more
        drop(?:ped|ping)?|forget|scrap|abandon|cancel(?:led)?|not|from|ignore|disregard|any ?more|scratch|statt
        anstatt|nicht mehr|nicht|vergiss|au lieu (?:de |d')|plutôt que|oublie|ne \w+ plus|en vez de|en lugar de
        ya no|olvida|em vez de|já não|esqueça|invece (?:di|del)|non più|dimentica|вместо|больше не|забудь
    """)
    + r")\s+(?:(?:about|the|using|use|to|in|on|at|with|for|das|die|den|le|la|les|el|los|o|a|il) )*"
    r"(\S+(?:\s+\S+){0,3})",
    re.IGNORECASE,
)
"""The words, at most four, that a correction names as no longer valid."""
_NAMED_WIDE = re.compile(
    r"(?:不再(?:用|使用)?|而不是|取消|忘掉|作废|不用)([^，。；,.]{1,12})|([^、。,.はを]{1,12})(?:ではなく|の代わりに|をやめ)"
)
_AFTER_NAMED = re.compile(
    r"[,.;:!?](?=\s)|[，。；]"
    r"|\b(?:but|with|to|for|and|in|on|any ?more|entirely|sondern|durch|mais|par|sino|por|mas|ma)\b"
)
_WITHDRAWAL = re.compile(
    r"(?<!\w)(?:"
    + one_of(r"""
        scratch that|forget (?:that|it|this|what)|never ?mind|ignore that|disregard that|take that back|vergiss das
        oublie ça|oubliez ça|olvida eso|olvídalo|esqueça isso|dimenticalo|забудь это
    """)
    + ")",
    re.IGNORECASE,
)
# "Or something else" and "try something else" are about the way to the goal.
_NEW_GOAL = re.compile(
    r"(?<!\w)(?<!\bo )(?<!\b(?:or|ou|is|be) )(?<!\b(?:try|use|was) )(?<!\boder )(?:"
    + one_of(r"""
        change of plan|new (?:plan|goal|task|objective)|something (?:else|different)
        (?:goal|task|plan|objective|aim) (?:is|has changed|changed|changes)|switch entirely|das (?:neue )?ziel ist
        neues ziel|planänderung|changement de plan|cambio de plan|mudança de plan|cambio di|etwas anderes
        autre chose|otra cosa|outra coisa|qualcos'altro
    """)
    + ")",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:when|whenever|if|once|until|unless|where|wenn|falls|sobald|quand|si|cuando|quando|se|если|когда)\b",
    re.IGNORECASE,
)
_TARGET = re.compile(r"\W*(?:(?:is|ist|est|es|é|è)\s+)?[$€£¥]?\d")
"""The text behind a goal that is only a date or an amount: all else stays to be done."""
_INTERJECTION = re.compile(
    r"\A\W*(?:(?:hm+|oh|ah|well|ok(?:ay)?|ach|eh)\W+)*(?:no|nope|nah|nein|non|não|нет)\s*[,.!:—-]\s*"
    r"|\A\W*(?:不对|不是|いや|違う)[，,。、\s]*",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:not|never|no|none|cannot|without|forbidden|prohibited|nicht|kein\w*|nie|niemals|verboten|ne|pas|jamais"
    r"|interdit\w*|nunca|prohibid\w*|não|nem|proibid\w*|non|mai (?=\w+re\b)|vietat\w*|не|нельзя|никогда|off[- ]limits"
    r"|no(?:body| one)|niemand|personne|nadie|ninguém|nessuno|никто|against|ruled out|rejected|abandon\w*|cancel\w*"
    r"|scrapped|withdrawn|verworfen|abgelehnt|descartad\w*|annulé\w*)\b"
    r"|n['’](?:t|est|a|utilise\w*)\b|不|别|別|勿|禁止|ない|ません",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:more|less|fewer|longer|larger|higher|lower) than|\b(?:above|over|below|under|beyond|exceed\w*)\b"
    r"|\b(?:mehr als|weniger als|über|unter|plus de|moins de|más de|menos de|mais de|mais do que|più di|meno di"
    r"|более|больше|менее|меньше)\b|超过|以上",
    re.IGNORECASE,
)
"""Words before the number of a limit."""
_PERMISSION = re.compile(
    r"\b(?:(?:you|we|they|everyone|anyone|people) )?(?:may|can|could|(?:are|is|am) (?:now )?(?:allowed|permitted|free"
    r"|welcome)|allowed|(?:ok|okay|fine|safe|free) to|(?:is|are) (?:ok|okay|fine|allowed|possible)|feel free|fair game"
    r"|no longer (?:forbidden|off[- ]limits|prohibited|banned)"
    r"|go ahead|darfst|dürft|dürfen|darf|kannst|könnt|erlaubt|peux|pouvez|peut|permis|autorisé\w*|puedes|pueden|puede"
    r"|permitid\w*|pode|podem|puoi|potete|può|permess\w*|можно|можешь|можете|разрешено)\b|可以|允许|してもいい|てよい",
    re.IGNORECASE,
)
_RELEASE = re.compile(
    r"\b(?:no need|need not|needn['’]t|(?:don['’]t|doesn['’]t|do not|does not) (?:have|need) to"
    r"|no longer (?:have|need|has|needs)?(?: to)?|not (?:required|necessary|needed|mandatory)|is optional|stop|skip"
    r"|forget|any ?more|any longer|lifted|nicht mehr|brauchst|musst nicht|plus besoin|plus nécessaire"
    r"|no hace falta|ya no|não precisa\w*|já não|non serve più|non devi più|больше не|не нужно"
    r"|не надо)\b|不用|不必|不再|もう",
    re.IGNORECASE,
)
_ADDITION = re.compile(
    r"\b(?:too(?=\W*\Z|[,.;])|also|as well|additionally|in addition|besides|another|both|auch|ebenfalls|zusätzlich"
    r"|aussi|également|también|además|também|anche|inoltre|тоже|также)\b|也|还要|もう一つ",
    re.IGNORECASE,
)
_EXCLUSIVE = re.compile(
    r"\b(?:only|solely|just|no ?(?:body|one) else|nur|ausschließlich|seulement|uniquement|solo|sólo|só|apenas|somente"
    r"|soltanto|только)\b|只|だけ|のみ",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"\b(?:all|every|everything|everybody|everyone|entire|whole|any|full|alle[smnr]?|ganze[nrms]?|jede[smnr]?|tou[ts]|toutes?"
    r"|tod[oa]s?|tutt[oiae]|все|всё|весь|вся)\b|全部|所有|すべて|全て",
    re.IGNORECASE,
)
_CONTRADICTION = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|should|would|could|can)n['’]t\b|\bdid no ?(?:body|one)\b"
    r"|\b(?:ist|sind|war|waren|hat|hatte|sollte|wollte|muss|steht|soll)\b.{1,80}\bnicht\b|\bn['’]est-ce pas\b|¿no\b",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(
    r"\b(?:add|adds|include|use|take|put|bring|order|buy|invite|install|enable|needs?|wants?|like to|füge|nimm|nutze"
    r"|kaufe?|brauchen|ajoutez?|utilisez?|prends|añade|usa|compra|adiciona|usem?|aggiungi|prendi|добавь|используй|купи)\b"
    r"|加上|使用|用",
    re.IGNORECASE,
)
_SHORT = re.compile(
    r"\W*(?:(?:oh|ah|hm+|uh|um|well|ok(?:ay)?|and|but|please|ach|äh|bah|ay)\b\W*)*(?:"
    + one_of(r"""
        (?:no|nope|nah|wait|sorry|oops|actually|correction|rather|instead|pardon|nein|doch|moment|halt|quatsch|besser
        lieber|ähm|non|plutôt|en fait|mieux|perdón|mejor|espera|não|melhor|desculpa|anzi|meglio|scusa|нет|лучше|точнее
        извини|better|hang on|hold on|scratch that|my bad|my mistake|never ?mind|forget (?:that|it)|change of plan)\b
        (?:(?:let's )?make|call|set|put|change|move|push|bump|take|turn|rename) (?:it|this|that|them)\b
        (?:call|rename) the \w+ (?:to )?[`'"]?(?:--?)?\w+[-_/.]\w
        let's say (?:it|that|this|them)\b
        (?:use|take|go for|go with|pick|choose)\b(?! (?:up|over|out|care)\b)
        (?:i meant|i mean|i want|let's (?:use|take|do|say))\b
        (?:nimm|mach|prends|mets|toma|pon|usa|use|prendi|metti|возьми)\b
        (?:it|that|they|es|das|il|ça|eso|isso)\b(?!\s+(?:was|were|makes|means|leaves|gives)\b)
        \S+ (?:rather than|instead of|not|statt|au lieu de|en vez de|em vez de|invece di|вместо)\b
        不对|不是|改成|改为|等等|应该是|いや|違う|すみません|やっぱり
    """)
    + ")",
    re.IGNORECASE,
)
"""The beginning of a correction that may name no topic."""
_CLAUSE_END = re.compile(
    r"\s*(?:[,;—–(]|:(?!\s+[$€£]?\d|\s+\S+(?:\s\S+)?(?:[,;]|\Z)))\s+|[，；：]"
    r"|\s+(?:because|since|so that|so|weil|denn|car|parce que|puisque|porque|perché|потому что)\s+"
)
"""The end of a clause. A label and its value (`boxes: 40 ordered`) are one."""
_CLAUSES = 5


@cached(256)  # A sentence is compared with many older ones.
def named_things(text: str) -> tuple[frozenset[str], ...]:
    """Return the terms of each thing that a correction names as no longer valid."""
    found = [match[1] for match in _NAMED.finditer(text)]
    found += [match[1] or match[2] for match in _NAMED_WIDE.finditer(text)]
    found += ARROW.findall(text)
    return tuple([terms for words in found if (terms := terms_of(_AFTER_NAMED.split(f"{words} ")[0]).all)])


def clauses_of(sentence: str) -> list[str]:
    """Return the clauses of a sentence, at most five; [] if it has only one."""
    pieces = [piece for piece in _CLAUSE_END.split(sentence, _CLAUSES - 1) if piece and piece.strip()]
    return pieces if len(pieces) > 1 else []


def is_withdrawal(text: str) -> bool:
    """Return whether a statement withdraws what was said just before."""
    return bool(_WITHDRAWAL.search(text))


def is_new_goal(text: str) -> bool:
    """Return whether a statement announces another goal: neither a condition nor only another date."""
    match = _NEW_GOAL.search(text)
    return match is not None and not (_CONDITION.search(text, 0, match.start()) or _TARGET.match(text, match.end()))


def is_addition(text: str) -> bool:
    """Return whether a statement adds something to what was said before."""
    return bool(_ADDITION.search(text))


def is_exclusive(text: str) -> bool:
    """Return whether a statement says `only`: an addition changes it."""
    return bool(_EXCLUSIVE.search(text))


def speaks_of_all(text: str) -> bool:
    """Return whether a statement is about all of something: one about a part of it changes it, and the reverse."""
    return bool(_WHOLE.search(text))


def contradicts(question: str) -> bool:
    """Return whether a question says that something is otherwise: `isn't the port 9000?`"""
    return bool(_CONTRADICTION.search(question))


def is_short_correction(text: str) -> bool:
    """Return whether a statement begins like a correction that names no topic: `no, 40`, `make it 40`."""
    return bool(_SHORT.match(text))


def introduces(text: str) -> bool:
    """Return whether a statement asks to add or use something."""
    return bool(_INTRODUCTION.search(text))


def is_negative(text: str) -> bool:
    """Return whether a statement forbids or denies. A `no` before the first comma is an answer."""
    return bool(_NEGATIVE.search(_INTERJECTION.sub("", text, count=1)))


def is_bound(text: str) -> bool:
    """Return whether a denial only bounds a number, such as `never more than 3`."""
    return any(text[found.end() :].lstrip()[:1].isdigit() for found in _BOUND.finditer(text))


def without_permission(text: str) -> str | None:
    """Return a statement without the words that permit; None if it permits nothing."""
    plain, count = _PERMISSION.subn(" ", text)
    return plain if count else None


def without_release(text: str) -> str | None:
    """Return a statement without the words that say that something is not required; None if it has none."""
    plain, count = _RELEASE.subn(" ", text)
    return plain if count else None
