"""Weights: the kind of a statement, and how much it is worth to keep it.

The words that bind the next reader are worth most, then the goal, choices with their reasons, values, open questions
and failures. Requests that were answered and small talk are worth least. A statement of a user or of a system message
is worth more than one of the model.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import Literal

from msgspec import Struct

from ...core.caches import cached
from .signs import Sign, possible_signs, signs_of
from .statements import split_sentences

__all__ = [
    "LATER",
    "NOT_BY_USER",
    "Kind",
    "Speaker",
    "Statement",
    "announces_step",
    "is_worth",
    "may_any_be_worth",
    "most_worth",
    "weigh",
    "weigh_written",
]

LATER = " (later: "
"""Stands between statements and a later one that may replace them."""
NOT_BY_USER = " [not by the user]"
"""Stands behind the words of a model or a tool that a line shows behind a rule or a goal."""
Kind = Literal["goal", "rule", "decision", "value", "open", "asked", "said"]
"""The section of a statement."""
Speaker = Literal["user", "system", "assistant", "summary", "tool"]


class Statement(Struct, gc=False):
    """A statement with its place in the history."""

    text: str
    """Its words, in one line."""
    kind: Kind
    """Its section."""
    speaker: Speaker
    """Its source. `summary`: an earlier summary. `tool`: a list of values that a call reported."""
    position: int
    """Its rank by age: larger is later."""
    weight: float
    """Its worth."""
    signs: int
    """The signs in its words."""
    turn: int = 0
    """The number of its message, from 1; 0 for an earlier summary."""
    confirms: int = 0
    """The number of the user's message whose decision a model repeats in it; 0 for none."""
    own_words: str = ""
    """The words of the user of which a model's statement took the place."""
    earlier: str = ""
    """Older statements that this one may replace: a line shows them before it."""

    @property
    def shown(self) -> str:
        """Return its words as a line shows them, behind those of the older statements that it may replace."""
        return f"{self.earlier}{LATER}{self.text})" if self.earlier else self.text

    @property
    def is_authoritative(self) -> bool:
        """Return whether a user, a system message or an earlier summary said it."""
        return self.speaker != "assistant"

    @property
    def is_from_others(self) -> bool:
        """Return whether a model or a tool said it, even if it confirms what a user said: it may say more."""
        return self.speaker in ("assistant", "tool") or bool(self.confirms)

    def may_correct(self, earlier: Statement) -> bool:
        """Return whether it may correct an earlier statement: a model or a tool corrects no rule and no goal."""
        return not (self.is_from_others and earlier.is_authoritative and earlier.kind in ("rule", "goal"))


_WORTH: dict[Kind, float] = {
    "goal": 30.0,
    "rule": 24.0,
    "decision": 14.0,
    "value": 12.0,
    "open": 9.0,
    "asked": 6.0,
    "said": 1.0,
}
_OF_ASSISTANT: dict[Kind, float] = {
    "goal": 1.0,
    "rule": 1.0,
    "decision": 0.45,
    "value": 0.4,
    "open": 0.4,
    "asked": 1.0,
    "said": 1.0,
}
"""The part that a statement of the model is worth."""
_SPECIFIC = re.compile(
    r"\d[\w.:,/%-]*|[A-Z](?<![.!?] .)\w+|(?:(?<!\w)|(?<=\A.))\w+[_./@-]\w+|[\"“«「`][^\"”»」`]{1,60}[\"”»」`]"
)
"""A number, a name, an identifier or a quotation."""
_JOINED = re.compile(r"[_./@-]\w")
"""A part of each identifier of `_SPECIFIC`."""
_SPECIFIC_UNJOINED = re.compile(
    r"[\dA-Z\"“«「`](?:(?<=\d)[\w.:,/%-]*|(?<=[A-Z])(?<![.!?] .)\w+|(?<=[\"“«「`])[^\"”»」`]{1,60}[\"”»」`])"
)
"""`_SPECIFIC` without identifiers. `re` is fast if one set comes first."""
_SHAPED = re.compile(r"[\d_/@A-Z](?:(?<=\d)|(?<=\w[_/@])\w|(?<=[a-z][A-Z]))")
"""A number or an identifier."""
_DIGIT = re.compile(r"\d")
_IS_GOAL = re.compile(
    r"(?:\W*\w+\W+){0,4}?(?:goal|aim|objective|ziel|objectif|objetivo|obiettivo|цель)\s*"
    r"(?::|=|\w{0,8} ?(?:is|ist|est|es|é|è)\b|[—-])|目标是|目标：|目標は",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"\W*(?:(?:now|ok(?:ay)?|first|next|then|great|good|perfect|so),?\W+)*(?:let me|let's|i'll|i will|i need to"
    r"|i should|now i|i'm going to|i am going to|i can now|we need to|ich werde|lass mich|je vais|voy a|vou|сейчас)\b",
    re.IGNORECASE,
)
"""The beginning of a step that a model announces: it is done soon."""
_TASTE = re.compile(
    r"\W*(?:i|my \w+) (?:always |never |only |really )?(?:likes?|loves?|hates?|enjoys?|forgets?|wonders?)\b",
    re.IGNORECASE,
)
"""A sentence about the user's own taste is no rule."""
_INQUIRES = re.compile(
    r"\W*(?:(?:now|and|but|so|also|ok(?:ay)?|please|first|then|dann|und|aber|bitte|et|y|e)\b\W*)*(?:"
    r"(?:(?:can|could|would|will) (?:you|y?u|we) )?(?:please |also |now )*"
    r"(?:explain|clarify|elaborate|tell me (?:what|why|how|where|when|if|whether|about))"
    r"|(?:can|could) (?:you|we) (?:please |also |now )*"
    r"(?:check|see|verify|confirm|find out|look) (?:if|whether|what|why|how|where|into|at)\b"
    r"|(?:kannst|könntest) du\b.{0,60}?\b(?:erklären|erläutern)\b|erklär\w* (?:mir|bitte|uns)"
    r"|(?:(?:peux|pouvez|pourrais|pourriez)-(?:tu|vous) )?(?:m['’]|nous )?expli(?:que|quer|quez)\b"
    r"|(?:(?:puedes|podrías|podes|pode|poderia|puoi|potresti) )?(?:me )?(?:expl[ií]ca\w*|spieg\w+)\b"
    r"|объясни\w*)",
    re.IGNORECASE,
)
"""The beginning of a request to explain or to find out something: what it quotes does not bind."""
_PATH_ALONE = re.compile(r"([\"'`])(?:~|\.{1,2}|[A-Z]:)?[/\\][^\"'`\n]+\1\W*|@?(?:~|\.{1,2}|[A-Z]:)?[/\\]\S+")
"""The path of a file that the user shows. It gives no value, and the names have it."""
_LOOSE = re.compile(
    r"""\b(?:
        i[ ](?:(?:also|really|just|still|only|then|now|would|will)[ ])?(?:(?:have|need|had|got)[ ]to  # the user's duty
        |(?:always|never|don['’]?t|can['’]?t|cannot)(?![ ](?:want|need|accept|allow|approve|like)))
      | (?:i|we|you|they)(?:[ ]\w+)?[ ]should(?:['’]ve|[ ]have)[ ](?:\w+ly[ ])?(?:\w+ed|been|taken|given|written|seen
        |chosen|known|told|said|had|made|thought|caught|read|put|kept|left|sent)  # regret
      | (?:i|we|you|they|it|that|this)(?:[ ]\w+)?[ ]should[ ](?:now[ ])?be[ ](?:good|fine|ok(?:ay)?|all[ ]set|enough)
      | there(?:['’]s|[ ](?:is|are|was|were))(?:[ ]\w+)?[ ](?:only|no[ ]more) | ha(?:s|ve)[ ]to[ ](?:much|many)
      | (?:what|where|how|why|whether)(?:[ ][^\s,;:.]+){1,4}?[ ](?:should|needs?[ ]to|ha(?:s|ve)[ ]to)  # still open
      | if[ ](?:you|we|i|they)[ ](?:ever[ ]|really[ ])?(?:have|need)[ ]to
      | (?<!\w[ ])(?:and[ ])?before[ ](?:we|you)[ ](?:continue|go[ ]on|proceed|move[ ]on|\w+[ ](?:this|that|it))
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words that only look as if they bound the reader, such as what the user must do, or how many there are."""
_WEAK = re.compile(
    r"\b(?:only|until|unless|without|except|can(?:no|['’])t|limit(?:s|ed)?|require[sd]?|important|critical|minimum|min"
    r"|max(?:imum)?|policy|constraint|rule|should(?:n['’]t)?|allowed|permitted|(?:needs?|ha(?:s|ve)) to)\b",
    re.IGNORECASE,
)
"""Words that often describe. Reports and sentences about a line of code are full of them."""
_CITES_LINE = re.compile(r"\w\.[a-z]{1,5}:\d|\blines? \d", re.IGNORECASE)
"""A line of a file, such as `cart.py:17`."""
_BINDS_ASKED = re.compile(
    r"\b(?:never|always|make sure|ensure|avoid|not to|please not"
    r"|what|which|when|where|who|how (?:many|much|long|often))\b",
    re.IGNORECASE,
)
"""Words of a question that binds, too: it asks politely, or the next sentence gives the value that it asks for.

`Could you please never push to main? It breaks the build.` `keep them until when? i'd say end of june`
"""
_ANSWERS = re.compile(r"\W*(?:yes|yeah|yep|no|nope|nah|ja|nein|oui|non|sí|sim|não|да|нет)\b", re.IGNORECASE)
"""The beginning of an answer to the question before: `should the dog stay? nah.`"""
_SPECIFICS = 4
"""Numbers, names and quotations of a statement that count."""
_UNSPECIFIC, _SPECIFIC_EACH = 0.7, 0.15
"""Part that a statement without any of them is worth, and what each adds."""
_MOST_SPECIFIC = _UNSPECIFIC + _SPECIFIC_EACH * _SPECIFICS
_CHANGE, _DOUBT, _BINDING_OF_ASSISTANT = 1.2, 1.3, 1.5
"""Factors of a change, of a denial, doubt or failure, and of a statement in which a model binds itself."""
_OLDEST, _NEWEST = 0.6, 1.4
"""Factors of a decision or a value in the oldest and in the newest message."""
_SMALL_TALK = 0.05
_LONGEST = 600
"""Characters above which a statement is more likely data than a sentence."""


def weigh(text: str, speaker: Speaker, position: int, age: float, kind: Kind | None = None) -> Statement:
    """Return a statement with its kind and worth.

    `age`: from 0 for the oldest to 1 for the newest message. `kind`: its kind, if it is known.
    """
    signs, share = _signs_and_share(text)
    kind = kind or _kind(text, signs, speaker)
    worth = _WORTH[kind] * share
    if speaker == "assistant":
        worth *= _OF_ASSISTANT[kind]
    if signs & Sign.BINDING and speaker == "assistant":
        worth *= _BINDING_OF_ASSISTANT
    if signs & Sign.CHANGE and kind not in ("said", "asked"):
        worth *= _CHANGE
    if signs & (Sign.FAILURE | Sign.NEGATION | Sign.HEDGE) and kind in ("said", "asked", "value"):
        worth *= _DOUBT
    if kind == "said" or (kind == "asked" and signs & Sign.QUESTION):
        worth *= 0.5 + age
    elif kind in ("decision", "value"):  # Later ones hold more often.
        worth *= _OLDEST + (_NEWEST - _OLDEST) * age
    if signs & Sign.QUESTION and kind == "asked":
        worth *= 0.2
    if kind in ("asked", "said", "value", "decision") and signs & Sign.SMALL_TALK:
        worth, kind = _SMALL_TALK, "said" if speaker == "assistant" else "asked"
    if len(text) > _LONGEST:
        worth *= _LONGEST / len(text)
    return Statement(text, kind, speaker, position, worth, signs)


def may_any_be_worth(speaker: Speaker, least: float) -> bool:
    """Return whether any statement of a speaker may be worth more than this, by all that `is_worth` knows."""
    return most_worth(Sign.NONE, speaker) * _UNSPECIFIC > least * _MOST_SPECIFIC


def is_worth(text: str, speaker: Speaker, least: float) -> bool:
    """Return whether a statement may be worth more than this at any age. Takes a fraction of the time of `weigh`."""
    if may_any_be_worth(speaker, least):
        return True
    most = most_worth(possible_signs(text), speaker)
    return most > least and most * _share_of_specifics(text) > least * _MOST_SPECIFIC


@cached(16_384)
def _signs_and_share(text: str) -> tuple[int, float]:
    """Return the signs of a statement, and the part of its worth that it has with its numbers and names.

    A digest reads statements of the digest before, and many statements occur again and again.
    """
    signs = signs_of(text)
    return signs, _share_of_specifics(text) if signs & Sign.SPECIFIC else _UNSPECIFIC


@cached(256)
def _share_of_specifics(text: str) -> float:
    """Return the part of its worth that a statement has with its numbers, names and quotations."""
    pattern = _SPECIFIC if _JOINED.search(text, 1, _LONGEST) else _SPECIFIC_UNJOINED
    return _UNSPECIFIC + _SPECIFIC_EACH * sum(1 for _ in islice(pattern.finditer(text, 1, _LONGEST), _SPECIFICS))


@cache
def most_worth(signs: int, speaker: Speaker) -> float:
    """Return the largest worth of a statement that has some of these signs, at any age.

    `signs`: those of `possible_signs`. Any statement may give a value and be specific.
    """
    is_change = bool(signs & Sign.CHANGE)
    doubt = _DOUBT if signs & (Sign.FAILURE | Sign.NEGATION | Sign.HEDGE) else 1.0
    worths: dict[Kind, float] = {"value": _NEWEST * max(doubt, _CHANGE if is_change else 1.0)}
    if is_change or signs & Sign.DECISION:
        worths["decision"] = _NEWEST * (_CHANGE if is_change else 1.0)
    if speaker == "system" or (signs & Sign.BINDING and speaker != "assistant"):
        worths["rule"] = _CHANGE if is_change else 1.0
    if signs & Sign.GOAL and speaker != "assistant":
        worths["goal"] = _CHANGE if is_change else 1.0
    of_model = _BINDING_OF_ASSISTANT if signs & Sign.BINDING else 1.0
    return _MOST_SPECIFIC * max(
        worth * _WORTH[kind] * (_OF_ASSISTANT[kind] * of_model if speaker == "assistant" else 1.0)
        for kind, worth in worths.items()
    )


def _binds_loosely(text: str) -> bool:
    """Return whether the words that bind are in questions, or only look so: `i have to leave at 4`."""
    others, count = _LOOSE.subn(" ", text)
    if _CITES_LINE.search(text):
        others, weak = _WEAK.subn(" ", others)
        count += weak
    if "?" in others:
        sentences = split_sentences(others)
        asserted = [
            one
            for one, following in zip(sentences, (*sentences[1:], ""), strict=True)
            if not one.endswith("?") or _BINDS_ASKED.search(one) or _ANSWERS.match(following)
        ]
        count += len(sentences) - len(asserted)
        others = " ".join(asserted)
    return bool(count) and not signs_of(others) & Sign.BINDING


def weigh_written(statement: Statement, age: float, share: float) -> None:
    """Weigh a statement of a long text that a user hands over. `share`: the part of its worth that it keeps.

    Only words that command or forbid bind there, and what binds keeps its worth.
    """
    if statement.kind == "rule" and signs_of(_WEAK.sub(" ", statement.text)) & Sign.BINDING:
        return
    kind = _kind(statement.text, statement.signs & ~Sign.BINDING, "user")
    plain = weigh(statement.text, statement.speaker, statement.position, age, kind)
    statement.kind, statement.weight = plain.kind, share * plain.weight


def announces_step(text: str) -> bool:
    """Return whether a text of a model begins like a step that it takes next."""
    return _ANNOUNCES.match(text) is not None


def _kind(text: str, signs: int, speaker: Speaker) -> Kind:
    if speaker != "assistant" and signs & Sign.GOAL and _IS_GOAL.match(text):
        return "goal"
    if speaker == "assistant" and announces_step(text):
        return "said"
    if speaker == "user" and (_TASTE.match(text) or _INQUIRES.match(text) or _PATH_ALONE.fullmatch(text)):
        return "asked"
    is_question = bool(signs & Sign.QUESTION)
    if is_question:
        return "open" if signs & Sign.OPEN else "said" if speaker == "assistant" else "asked"
    if speaker == "system" or (signs & Sign.BINDING and speaker != "assistant" and not _binds_loosely(text)):
        return "rule"
    if signs & Sign.DECISION:
        return "decision"
    if signs & Sign.OPEN:
        return "open"
    if signs & Sign.CHANGE:
        return "decision"
    if signs & Sign.VALUE:
        return "value"
    if signs & Sign.FAILURE:
        return "open"
    if signs & (Sign.NEGATION | Sign.HEDGE) and _SPECIFIC.search(text, 1):
        return "value"
    has_shape = (signs & Sign.SPECIFIC or text[:1].isdigit()) and _SHAPED.search(text)
    if speaker == "assistant":
        return "value" if has_shape and _DIGIT.search(text) else "said"
    return "value" if has_shape else "asked"
