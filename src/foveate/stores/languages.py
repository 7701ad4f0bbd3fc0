"""Stop words and stems of eight languages: which words of a language carry little meaning, and which are one word.

A stem is what is left without an inflection: `connections` and `connection` have one stem. The rules are light: they
remove plurals, cases and common endings of verbs, and never change the meaning of a word. They need no dictionary and
no package, so a stem never depends on what is installed. Words arrive without case and without accents.

    English           the default, also for code and for texts of unknown language
    German, French, Spanish, Italian, Portuguese, Dutch      if a text contains enough of their stop words
    Russian           each word in Cyrillic letters
    other languages   words as they are
"""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["ENGLISH", "LANGUAGES", "language_of", "stem", "stop_words"]

ENGLISH = "en"
"""The language of a text that shows no other."""

_EVIDENCE_MIN = 3
"""Different stop words of a language, at least, by which a text shows it."""

_STOP_WORDS = {
    ENGLISH: "a about after all also am an and any are as at be because been before being between both but by can "
    "could did do does doing done for from get got had has have having he her here him his how i if in into "
    "is it its just me more most my no not now of off on only or other our out over please she should so some "
    "such than that the their them then there these they this those through to too under up us very was we "
    "were what when where which while who whom why will with would you your",
    "de": "aber alle als am an auch auf aus bei bin bis da damit dann das dass dem den der des die dies diese "
    "dieser doch du durch ein eine einem einen einer eines er es fur haben hat hatte ich ihm ihr im in ist ja "
    "kann kein keine man mein mich mir mit muss nach nicht noch nur ob oder schon sehr sein sich sie sind so "
    "uber um und uns unter vom von vor war warum was wenn werden wie wieder wir wird wo wurde zu zum zur",
    "fr": "a au aux avec c ce ces cette comme d dans de des du elle elles en est et etre eu il ils j je l la le les "
    "leur lui m ma mais me mes moi mon n ne nos notre nous on ont ou par pas peut plus pour pourquoi qu quand "
    "que quel quelle qui s sa sans se ses si son sont sur t ta te tes toi ton tu un une votre vous y",
    "es": "a al algo como con cual cuando de del desde donde e el ella ellas ellos en entre era es esta estan este "
    "esto fue ha han hasta hay la las le les lo los mas me mi muy no nos o para pero por porque que quien se "
    "ser si sin sobre son su sus tambien te tiene todo un una uno y ya yo",
    "it": "a ad al alla alle anche c che chi ci come con cosa cui d da dal dalla degli dei del della delle di dove "
    "e ed era gli ha hai hanno ho i il in io l la le lei lo loro lui ma me mi ne nei nel nella noi non o per "
    "perche piu quando quale quello questa questo se sei si sia siamo sono su sul sulla te ti tra tu un una "
    "uno vi voi",
    "pt": "a ao aos as ate com como da das de depois do dos e ela elas ele eles em entre era essa esse esta este eu "
    "foi ha isso ja lhe mais mas me mesmo meu minha muito na nao nas nem no nos o os ou para pela pelo por "
    "porque qual quando que quem se sem ser seu so sua tambem te tem um uma voce",
    "nl": "aan al als bij dan dat de der deze die dit doen door dus een en er ge geen had heb hebben heeft het hier "
    "hij hoe ik in is ja je kan maar me meer met mij mijn moet na naar niet nog nu of om omdat onder ons ook "
    "op over te toch tot u uit van veel voor waar waarom was wat we werd wie wij wordt worden ze zich zij "
    "zijn zo zonder",
    "ru": "а без более бы был была были было быть в вам вас весь во вот все всего вы где да даже для до его ее если "
    "есть еще же за и из или им их к как ко когда кто ли мне можно мы на надо нас не него нет но ну о об он "
    "она они оно от по под почему при с со так также там то того тоже только том ты у уже что чтобы эта эти "
    "это этот я",
}
"""Function words by language, without accents."""

LANGUAGES = tuple(_STOP_WORDS)
"""The languages, by the code of ISO 639-1."""

_STOPS = {language: frozenset(words.replace("й", "и").split()) for language, words in _STOP_WORDS.items()}
_TECHNICAL = frozenset(
    [
        "at",
        "com",
        "dem",
        "den",
        "del",
        "die",
        "do",
        "io",
        "man",
        "me",
        "no",
        "of",
        "os",
        "over",
        "per",
        "as",
        "se",
        "set",
        "total",
        "war",
    ]
)
"""Stop words that are also words of code, of addresses and of file names."""


def _clues(language: str) -> frozenset[str]:
    """Return the stop words that show a language, also at the beginning of a sentence.

    Not those of English too, and not single letters, which code is full of.
    """
    words = [word for word in _STOPS[language] - _STOPS[ENGLISH] - _TECHNICAL if len(word) > 1]
    return frozenset([*words, *map(str.capitalize, words)])


_CLUES = {language: _clues(language) for language in LANGUAGES if language not in (ENGLISH, "ru")}
_ALL_CLUES = frozenset().union(*_CLUES.values())
_ENGLISH_CLUES = _STOPS[ENGLISH] | frozenset(map(str.capitalize, _STOPS[ENGLISH]))

_ENDINGS = {
    "de": (4, "ungen:ung innen:in ern: ers: em: en: er: es: e: s:"),
    "fr": (
        4,
        "issements:iss issement:iss ations:ation eaux:eau aux:al aient: antes: ants: ante: ant: ions:ion ees: ee: ent: "
        "ons: ers: ait: ez: er: es: e: s: x:",
    ),
    "es": (
        4,
        "aciones:acion iones:ion iendo: ando: ados: adas: idos: idas: ado: ada: ido: ida: aron: ieron: aban: aba: "
        "ar: er: ir: es: os: as: an: en: o: a: e: s:",
    ),
    "it": (
        4,
        "azioni:azion azione:azion zioni:zion zione:zion ando: endo: ati: ate: ato: ata: iti: ite: ito: ita: uti: ute: "
        "uto: uta: are: ere: ire: ano: ono: chi:c che:c ghi:g ghe:g hi: he: i: e: o: a:",
    ),
    "pt": (
        4,
        "acoes:aca acao:aca oes:a aes:a ao:a ando: endo: indo: ados: adas: idos: idas: ado: ada: ido: ida: aram: eram: "
        "ar: er: ir: es: os: as: am: em: o: a: e: s:",
    ),
    "nl": (4, "heden:heid ingen:ing en: es: e: s:"),
    "ru": (
        3,
        "иями: ями: ами: иями: ого: его: ому: ему: ыми: ими: ться: тся: ешь: ишь: ете: ите: ает: яет: ают: яют: ать: "
        "ять: ить: еть: ала: али: ало: ила: или: ило: ая: яя: ое: ее: ые: ие: ыи: ии: ои: ую: юю: ых: их: ым: им: ом: "
        "ем: ам: ям: ах: ях: ов: ев: еи: ию: ия: ет: ит: ут: ют: ат: ят: ал: ил: а: я: о: е: у: ю: ы: и: ь:",
    ),
}
"""By language: the letters that stay at least, then endings with what takes their place, the longest first."""


class _Endings:
    """Removes the first ending that a word has."""

    def __init__(self, keep: int, endings: str) -> None:
        self._ends = dict(pair.split(":") for pair in endings.split())
        pattern = "|".join(sorted(self._ends, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<=\w{{{keep}}})(?:{pattern})$")

    def stem(self, word: str) -> str:
        return self._pattern.sub(lambda found: self._ends[found.group()], word)


_RULES = {language: _Endings(*rule) for language, rule in _ENDINGS.items()}
_CYRILLIC = re.compile("[\u0400-\u04ff]+")
_LETTERS = re.compile("[a-z]+")
_VOWEL = re.compile("[aeiouy]")
_SHORT = re.compile("[^aeiou]*[aeiouy][^aeiouywx]")
"""A stem such as `hop` or `not`: its verb ends in `e` (`hoping`), because a doubled letter is kept otherwise."""
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")


def language_of(words: Collection[str]) -> str:
    """Return the language of a text with these words: the one with most of its stop words, ENGLISH in doubt."""
    clues = _ALL_CLUES.intersection(words)
    if len(clues) < _EVIDENCE_MIN:
        return ENGLISH
    counts = {language: len(clues & known) for language, known in _CLUES.items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] >= max(_EVIDENCE_MIN, len(_ENGLISH_CLUES.intersection(words))) else ENGLISH


def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, which say little about a text."""
    return _STOPS[language]


def stem(word: str, language: str) -> str:
    """Return the stem of a word of a text in this language."""
    if len(word) < 4:
        return word
    if word.isascii():
        if not _LETTERS.fullmatch(word):
            return word
        return _english(word) if language == ENGLISH else _RULES[language].stem(word)
    if _CYRILLIC.fullmatch(word):
        return _RULES["ru"].stem(word)
    return word if language == ENGLISH or not word.isalpha() else _RULES[language].stem(word)


def _english(word: str) -> str:
    """Remove a plural, then an ending of a verb, then a final `e`."""
    if word.endswith("s"):
        word = _singular(word)
    for ending in ("ied", "ed", "ing"):
        if word.endswith(ending) and not word.endswith("eed"):
            rest = word[: -len(ending)]
            if ending == "ied":
                return f"{rest}y" if len(rest) > 1 else f"{rest}ie"
            if len(rest) < 2 or not _VOWEL.search(rest):
                return word
            if len(rest) == 2:  # `used`, `using`: as `use`. But `being` and `going` end in a vowel.
                return f"{rest}e" if _SHORT.fullmatch(rest) else word
            if _DOUBLED.search(rest) and len(rest) > 3:
                return rest[:-1]
            word = f"{rest}e" if _SHORT.fullmatch(rest) else rest
            break
    if word.endswith("ie") and len(word) > 4:  # `cookie` as `cookies`, which looks like the plural of `query`.
        return f"{word[:-2]}y"
    # `plane` is not `plan`, but `parse` is what `parsing` leaves.
    return word[:-1] if word.endswith("e") and len(word) > 3 and not _SHORT.fullmatch(word[:-1]) else word


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]
