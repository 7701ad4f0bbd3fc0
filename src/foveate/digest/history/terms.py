"""Terms: the words of a statement that carry its meaning, and which of them are values.

Numbers, dates, identifiers, quoted texts and capitalized words inside of a sentence are values. Other words count by
their stems; words without meaning of their own do not count. Chinese and Japanese texts count by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from msgspec import Struct

from ...core.caches import cached
from ...core.scripts import SPACED_MARKS
from .lexicon import one_of, words

__all__ = ["Terms", "kind_of_value", "shape_of_value", "terms_of"]

_WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_WORD = rf"(?:(?!{_WIDE})[\w{SPACED_MARKS}])"
_INNER = rf"(?:(?!{_WIDE})[\w{SPACED_MARKS}./:@#&+%'’,-])"
_TERM = re.compile(rf"(?P<wide>{_WIDE}+)|(?P<word>[$€£¥]?{_WORD}(?:{_INNER}*(?:{_WORD}|[%€$£¥+#]))?)|(?P<link>[=→])")
_NARROW_TERM = re.compile(
    rf"(?P<word>[$€£¥]?[\w{SPACED_MARKS}](?:[\w{SPACED_MARKS}./:@#&+%'’,-]*[\w{SPACED_MARKS}%€$£¥+#])?)|(?P<link>[=→])"
)
"""A term of a text without Chinese, Japanese and Korean letters: no character is looked at twice."""
_HAS_WIDE = re.compile(_WIDE)
_STOP = words("""
    a an the this that these those it its it's is are was were be been being am to of in on at by for from with
    as and or but so if then than too very just also we you i he she they our your my his her their us me him
    them will would shall can could should may do does did done have has had having there here what which who
    everyone everybody anyone anybody someone everything anything something
    when where how why all any each some such own same other into onto over under about up down out off please
    let's let lets we'll i'll you'll they'll we're i'm you're they're i've we've you've they've i'd we'd you'd he's
    she's that's there's here's what's who's again still already yet only always must
    need needs want ok okay yes well pls plz thing things der die das den dem des ein eine einen einem einer
    und oder aber ist sind war wir ihr sie er es ich du zu von im auf für mit bei als auch noch bitte soll sollen
    muss müssen
    immer nur wird werden le la les l un une de et ou est sont nous vous je tu il elle pour avec dans sur par au
    aux que qui ce cette el los las una unos y o son en por para con del al se lo su sus debe os um uma e é são
    em no na nos nas da dos com ao à deve gli uno è sono di della dei per alla che si и в на с по для это мы вы
    он она они что как за из к у от до должен должны
""")
_LIGHT = words("""
    wurde wurden worden verschoben written built based thinks wants hosted go goes going went gone come
    comes came get gets got takes took taken gives gave belongs belong lives live keeps kept becomes became
    stays said says needs needed happens use uses using used take keep pick choose have put do make set say
    call called name named want like think guess believe know see tell really nehmen nimm verwende verwenden
    nutze benutze mach machen denke glaube heißt heisst utilise utiliser prends prendre mets usa usar
    utiliza toma pon usem usi usare prendi используй используйте возьми
""")
"""Verbs and names of acts without a topic of their own."""
_PREPOSITIONS = words("""
    for of in on at from with by under inside per within für von im am auf bei mit pour de du dans sur avec para
    en con del do da no na com di nel su для в на из от
""")
_TOWARDS = words("until till um bis gegen to zu zum zur à aux al ao alla")
_SAME = {
    **dict.fromkeys(("del", "du", "des", "do", "da", "dos", "das", "della", "di"), "de"),
    **dict.fromkeys(("au", "aux", "al", "ao", "alla"), "à"),
    **dict.fromkeys(("zum", "zur"), "zu"),
    **{"im": "in", "am": "an", "na": "em", "no": "em"},
}
"""Prepositions with an article, and those without."""
_ARTICLES = words("""
    the a an our my your this that der die das den dem des ein eine einem le la les un une el los las o os um
    uma il lo
""")
_CHANGES = words("""
    back something different else meant mean reset oops pardon nope nah again better thought thinking second
    today here upgrade upgraded swap move increase decrease lieber doch since after mistake now actually
    instead scratch correction corrected forget ignore disregard update updated change changed changes new
    longer anymore final finally answer wait rename renamed raise raised lower lowered cut bump bumped
    extended increased decreased reduced postponed moving replace replaced entirely completely rather wrong
    sorry mind never-mind nevermind latest revised currently switch switched moved make set note reminder
    decision jetzt nun korrektur stattdessen statt geändert neu neue neuer neues vergiss nicht mehr
    maintenant désormais plutôt changé nouveau nouvelle oublie ahora corrección nuevo nueva cambiado olvida
    agora correção novo nova mudou esqueça ora adesso correzione nuovo nuova cambiato теперь исправление
    новый
""")
"""Words that announce a change: they are no part of the topic."""
_QUALIFIERS = words("""
    new lower second back latest final different other updated revised neu neue neuer neues nouveau nouvelle nuevo
    nueva novo nova nuovo nuova новый
""")
"""Words of a change that may also say which of several things is meant: `the lower shelf`."""
_LINKS = words("""
    says shows reads
    is are was were be = → : equals becomes remains stays being called named heißt llama appelle chama ist sind
    war wird bleibt est sont sera es son será é são è sono fica являются равен будет составляет
""")
_NUMBER_LINKS = _LINKS | words("""
    at to of by on for within than least most until after before from costs takes has have um auf am bis von
    nach vor à de le pour avant après a en hasta antes até às em alle entro в на до к по
""")
_VERBS = _LINKS | words("has have had costs takes hat haben kostet a ont coûte tiene cuesta tem custa ha costa")
"""Words between what a sentence is about and what it says of it."""
_NUMBERS = words("""
    once twice one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty
    ninety hundred thousand million half zwei drei vier fünf sechs sieben acht neun zehn zwölf deux trois quatre
    cinq sept huit neuf dix dos tres cuatro cinco seis siete ocho nueve diez dois três quatro oito dez tre
    quattro sei sette dieci два три четыре пять шесть семь восемь девять десять
""")
_DAYS = words("""
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december today tomorrow tonight morgen montag dienstag mittwoch donnerstag
    freitag samstag sonntag januar februar märz mai juni juli oktober dezember lundi mardi mercredi jeudi
    vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo segunda terça quarta quinta
    sexta lunedì martedì mercoledì giovedì venerdì sabato domenica понедельник вторник среда четверг пятница
    суббота воскресенье
""")
_SHORT_DAYS = {
    "jan": "january",
    "feb": "february",
    "aug": "august",
    "sep": "september",
    "sept": "september",
    "oct": "october",
    "nov": "november",
    "tue": "tuesday",
    "tues": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "thur": "thursday",
    "thurs": "thursday",
    "fri": "friday",
}
"""Days and months by their abbreviations, without those that are words in some language."""
_LABELLED = 4
"""Words after a colon, at most, that are the value of a label and no sentence."""
_QUOTED = frozenset(('""', "``", "“”", "„“", "«»", "「」", "‘’"))
"""The characters around a quoted word."""
_QUOTE = re.compile('["`“„«「‘]')
_MARKS = frozenset(".!?:=,;")
"""The characters behind a word that count."""
_BEHIND_MARK = frozenset(("", " ", '"', "'"))
"""The characters between a mark and the beginning of a sentence."""
_AMOUNT_BEGINS = frozenset("0123456789$€£¥")
_AMOUNT = re.compile(r"[$€£¥]?(\d{1,3}(?:,\d{3})+|\d+)(k)?[$€£¥]?")
"""A whole number, with thousands as `,` or `k`: the same number is written in many ways."""
_SHAPED = re.compile(r"[^\W\d_]{3,}-[^\W\d_]{4,}\Z|[^\W_]+[_./:@#\\]+[\w]|[a-zа-я][A-ZА-Я]|[A-Z]{2,}")
_WIDE_STOP = re.compile(
    one_of("""
        现在|如今|目前|改为|改成|换成|更正|应该|是|为|了|的|把|将|到|在|请|我们|今後は?|今は|新しい|訂正|変更|です
        ます|ください|してください|は|が|を|に|で|の|も
    """)
)
"""Chinese and Japanese words that carry no topic."""
_WIDE_LINK = re.compile("(?:是|为|到|成|于|は|が|を|に)$")
_WIDE_DAY = re.compile("((?:星期|礼拜|周)[一二三四五六日天]|[月火水木金土日]曜日?)")
_ORDINALS = words("""
    first third fourth fifth sixth seventh last erste ersten dritte dritten letzte letzten premier première troisième
    dernier dernière primero primera tercero tercera último última primeiro primeira terceiro terceira primo prima terzo
    terza ultimo ultima первый первая третий последний
""")
_STATES = words("""
    on off true false enabled disabled active inactive open closed up down an aus aktiv inaktiv offen geschlossen
""")
"""Values after `is`, `=` and the like."""
_CLOSED = _NUMBERS | _DAYS | _ORDINALS | _STATES
"""Words whose kind is known: they keep their ends."""
_DETERMINERS = words("that this the which another each every any no some last next right safe only")
"""Words before `one`, which is no number then."""
_CLOSES = re.compile(r"[\"')]*(?:[.,;:!?)]|\s*\Z|\s+(?:now|again|since|until|by|for|and|but|in|at)\b)")
"""The text behind a state: `on` is none in `is on Monday`."""
_ENDS = re.compile(
    r"(?:(?<=\w{3})(?:ments?|ings?|ed)|(?<=\w{4})(?:es|en|er|e|n)|(?<=[cs]h)es|(?<=ss)es|(?<=x)es|(?<=\w{3})(?<![sui])s)\Z"
)
"""The ends of words that are left out: `code` and `codes` are one term."""


class Terms(Struct, gc=False):
    """The terms of a statement."""

    places: Mapping[str, int]
    """Each term with the position of its first word."""
    values: frozenset[str]
    """The terms that are numbers, dates, names or identifiers."""
    linked: frozenset[str]
    """The values that follow a word such as `is` or, for numbers and dates, `at`."""
    assigned: frozenset[str]
    """The terms that follow `is`, `=` or the like, values or not."""
    qualifying: frozenset[str]
    """The terms that follow `for`, `of`, `in` or the like: they narrow the topic."""
    links: Mapping[str, tuple[str, str]]
    """For each term the one before it in the same clause, and what stands between: a preposition, `=` or nothing."""
    shown: Mapping[str, str]
    """The values as they are written."""

    all: frozenset[str]
    """All terms."""
    chosen: frozenset[str] = frozenset()
    """The terms right behind a word such as `new` or `lower`, which may say which of several things is meant."""
    subject: frozenset[str] = frozenset()
    """The terms before the first word such as `is` or `has`."""
    opening: str = ""
    """The first term, if it has a capital letter: it may be a name."""

    @property
    def topic(self) -> frozenset[str]:
        """Return the terms that are no values."""
        return self.all - self.values


def kind_of_value(value: str) -> str:
    """Return the kind of a value: `number`, `day`, or `name`."""
    if value[0].isdigit() or value[0] in "$€£¥" or value in _NUMBERS:
        return "number"
    if value in _DAYS or _WIDE_DAY.fullmatch(value):
        return "day"
    if value in _ORDINALS or value == "second":
        return "ordinal"
    return "state" if value in _STATES else "name"


_SHAPES = (
    ("address", re.compile(r"\w+://|www\.")),
    ("mailbox", re.compile(r"[^\s/]+@")),
    ("path", re.compile(r"\S*[/\\]\S")),
    ("time", re.compile(r"\d{1,2}:\d\d")),
    ("ordinal", re.compile(r"\d+(?:st|nd|rd|th)\Z")),
    ("number", re.compile(r"[$€£¥]?\d[\d.,]*[%€$£¥]?\Z")),
    ("identifier", re.compile(r"(?=.*\d)\w+[-_.]\S|\w+\d|\d+\w|\w*[^\W_]_[^\W_]")),
)


@cached(4_096)
def shape_of_value(value: str) -> str:
    """Return the shape of a value: its kind, and for names and numbers a finer one such as `path` or `time`."""
    kind = kind_of_value(value)
    if kind in ("name", "number") and value not in _NUMBERS:
        return next((shape for shape, pattern in _SHAPES if pattern.match(value)), kind)
    return kind


@cached(8_192)
def terms_of(statement: str) -> Terms:
    """Return the terms of a statement."""
    places: dict[str, int] = {}
    values: set[str] = set()
    linked: set[str] = set()
    assigned: set[str] = set()
    qualifying: set[str] = set()
    chosen: set[str] = set()
    links: dict[str, tuple[str, str]] = {}
    shown: dict[str, str] = {}
    before = last = between = opening = ""
    subject: frozenset[str] | None = None
    at = 0
    begins = True
    is_quoting = _QUOTE.search(statement) is not None
    is_narrow = statement.isascii() or not _HAS_WIDE.search(statement)
    for match in (_NARROW_TERM if is_narrow else _TERM).finditer(statement):
        at += 1
        kind, text = match.lastgroup, match[0]
        if kind == "wide":
            for piece in _WIDE_STOP.split(text):
                for part in _WIDE_DAY.split(piece):
                    if _WIDE_DAY.fullmatch(part):
                        values.add(part)
                        linked.add(part)
                        shown[part] = part
                        places.setdefault(part, at)
                    else:
                        for pair in _pairs(part) if part else ():
                            places.setdefault(pair, at)
            before = between = "=" if _WIDE_LINK.search(text) else text[-1]
            begins = False
            continue
        end = match.end()
        word = _read_word(text)
        plain = word.plain
        if kind == "word":
            is_value = word.is_value and not (begins and word.is_capital)
            if not is_value and is_quoting:
                is_value = statement[max(0, match.start() - 1) : match.start()] + statement[end : end + 1] in _QUOTED
            if word.depends:
                is_value = _is_value_here(statement, match, plain, before, is_value)
            if is_value or word.is_topic:
                if is_value or not word.is_change:
                    term = word.term
                    if term not in places:
                        if not places and text[0].isupper():
                            opening = term
                        places[term] = at
                        links[term] = last, between
                    if is_value:
                        values.add(term)
                        shown.setdefault(term, text)
                        if before in (_NUMBER_LINKS if kind_of_value(term) != "name" else _LINKS):
                            linked.add(term)
                    if before in _LINKS:
                        assigned.add(term)
                    if before in _PREPOSITIONS:
                        qualifying.add(term)
                    if before in _QUALIFIERS:
                        chosen.add(term)
                    last, between = term, ""
            elif word.is_link:
                between = "="
            if subject is None and word.is_verb:
                subject = frozenset(places)
            elif word.relation:
                between = word.relation
        # "is now 8", "for the tests"
        if not (before and (word.is_article or (word.is_change and before in _LINKS))):
            before = plain
        begins = False
        after = statement[end : end + 1]
        if after in _MARKS:
            begins = after in ".!?:" and statement[end + 1 : end + 2] in _BEHIND_MARK
            if after == "=" or (after == ":" and statement.count(" ", end) <= _LABELLED):
                before = between = "="
            elif after in ",;":
                last = between = ""
    return Terms(
        places,
        frozenset(values),
        frozenset(linked),
        frozenset(assigned),
        frozenset(qualifying),
        links,
        shown,
        frozenset(places),
        frozenset(chosen),
        subject or frozenset(),
        opening,
    )


class _Word(Struct, frozen=True, gc=False):
    """A word of a statement, as it is in every sentence."""

    plain: str
    """The word in small letters, or the number that it writes."""
    term: str
    """The word as a term: without its end."""
    is_value: bool
    """Whether it is a value inside of a sentence."""
    is_capital: bool
    """Whether it is one only for its capital letter, so that it is none at the beginning."""
    depends: bool
    """Whether only the words around it show whether it is a value."""
    is_topic: bool
    """Whether it has a meaning of its own."""
    is_change: bool
    is_article: bool
    is_link: bool
    is_verb: bool
    relation: str
    """The preposition that it is; "" if it is none."""


@cached(8_192)  # Most words of a history are few different ones.
def _read_word(text: str) -> _Word:
    """Return the word that a text is."""
    plain = unicodedata.normalize("NFC", text.casefold()).replace("’", "'").removesuffix("'s")
    if plain[0] in _AMOUNT_BEGINS and (number := _AMOUNT.fullmatch(plain)):
        plain = number[1].replace(",", "") + ("000" if number[2] else "")
    plain = _SHORT_DAYS.get(plain, plain)
    if plain[-1] == "s" and plain[:-1] in _DAYS:  # "mondays", "montags"
        plain = plain[:-1]
    is_value = _is_value(text, plain, begins=False)
    return _Word(
        plain,
        _stem(plain) if plain.isalpha() and plain not in _CLOSED else plain,
        is_value,
        is_value and not _is_value(text, plain, begins=True),
        plain in _STATES or plain in ("one", "second"),
        plain not in _STOP and plain not in _LIGHT and plain not in _TOWARDS,
        plain in _CHANGES,
        plain in _ARTICLES,
        plain in _LINKS,
        plain in _VERBS,
        _SAME.get(plain, plain) if plain in _PREPOSITIONS or plain in _TOWARDS else "",
    )


def _is_value_here(statement: str, match: re.Match[str], plain: str, before: str, is_value: bool) -> bool:
    """Return whether a word that `depends` is a value behind the word `before`."""
    if plain == "one":
        return is_value and before not in _DETERMINERS
    if plain == "second":
        return statement[: match.start()].endswith(("the ", "The "))
    return before in _LINKS and _CLOSES.match(statement, match.end()) is not None


def _is_value(text: str, plain: str, begins: bool) -> bool:
    if text.isalpha() and text.islower():
        return plain in _NUMBERS or plain in _DAYS or plain in _ORDINALS
    if any(map(str.isdigit, text)) or plain in _NUMBERS or plain in _DAYS or plain in _ORDINALS:
        return True
    if not begins and len(text) == 1 and "A" <= text <= "Z" and text != "I":
        return True  # "vendor B"
    if _SHAPED.search(text):
        return True
    return not begins and text[0].isupper() and len(text) > 1 and plain not in _STOP


def _stem(word: str) -> str:
    return _ENDS.sub("", word, count=1) if len(word) > 3 else word


def _pairs(text: str) -> list[str]:
    return [text[i : i + 2] for i in range(len(text) - 1)] or [text]
