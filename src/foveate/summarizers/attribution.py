"""What a summary ascribes to the user, held against what the user said.

A summary is derived: it authorises nothing. What it puts into the user's mouth is dropped, sentence by sentence, unless
the history bears it out: a quotation that no user's message holds, a permission of which no user spoke, a wish in the
words of a tool's result, an order to whoever reads it. What it says in its own words of what happened is not judged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from ..core.summaries import SummaryRequest
from .transcript import bounded, is_users

__all__ = ["Heard", "without_inventions"]

_WHO = (
    r"(?:users?|customers?|humans?|requesters?|operators?|benutzer\w*|nutzer\w*|usuari\w+|utilisat\w+|utente|gebruikers?"
    r"|пользовател\w*)"
)
_USER = re.compile(rf"(?<![\w/.\-])(?:{_WHO})(?![\w/\-]|['’]s)|用户|用戶|使用者|ユーザ|사용자", re.IGNORECASE)
"""The user; not a folder of that name, and not what the user owns."""
_SAYS = re.compile(
    r"\b(?:sa(?:id|ys|ying)|w(?:rote|rites)|repl\w+|answer\w*|confirm\w*|approv\w*|agree\w*|t(?:old|ells)|stat(?:ed|es)|"
    r"ask\w*|request\w*|insist\w*|order\w*|instruct\w*|want\w*|demand\w*|sagt\w*|schrieb|dijo|dice|a dit|сказал\w*)\b|"
    r"说|表示|言|:\s*$|：\s*$",
    re.IGNORECASE,
)
_HEADED = re.compile(r"\b(?:requests?|constraints?|asked|instructions?|rules|goal)\b", re.IGNORECASE)
_WISH = r"(?:want|ask|request|instruct|order|tell|told|requir|need|demand|wish|expect|insist|direct|would like)\w*"
_WISHES = re.compile(
    rf"(?<![\w/.\-]){_WHO}(?:\W+\w+){{0,3}}\W+{_WISH}\b|\b{_WISH}\W+(?:by|from)\W+(?:the\W+)?{_WHO}\b", re.IGNORECASE
)
_PERMITS = re.compile(
    r"\b(?:approv\w+|authori[sz]\w+|consent\w*|permitted|permission|allow(?:ed|s)|granted|green.?lit|signed off|"
    r"gave (?:the |their )?(?:ok|okay|go.?ahead))\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|no|without|n[o']t|un\w+ed|refus\w+|forb\w+|den\w+|until|unless|if|needs?|wait\w*)\b"
)
_ASSENT = re.compile(
    r"\b(?:yes|yep|yeah|ok(?:ay)?|approv\w*|agree\w*|authori[sz]\w*|allow\w*|permission|permit\w*|consent\w*|go ahead|"
    r"go for it|do it|sure|lgtm|confirm\w*|proceed|fine|sounds good|sí|oui|ja|да|sim)\b|是|好|可以|はい|네",
    re.IGNORECASE,
)
_OVERRIDES = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|every|the|your|my|of)\s+){0,4}"
    r"(?:(?:previous|prior|above|earlier|preceding|existing|other|system)\s+(?:\w+\s+){0,2})?"
    r"(?:instructions?|messages|rules|prompts?|directions?|constraints?)\b"
    r"|\byou (?:are now an?|must (?:now|henceforth|from now on)|will henceforth)\b|\bnew (?:system )?instructions?\s*:"
    r"|^\W*(?:system|developer)\s*(?:prompt|message)?\s*:|</?(?:system|instructions?|user|assistant)>|<\|im_(?:start|end)\|>",
    re.IGNORECASE,
)
_ROLE = re.compile(r"^\W*(?:user|human|customer)\s*[:：]\s*(.+)$", re.IGNORECASE)
_QUOTED = re.compile(
    r"\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|「([^」\n]+)」|『([^』\n]+)』"
    r"|(?<![\w'])'([^'\n]*(?:'\w[^'\n]*)*)'(?!\w)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_ELLIPSIS = re.compile(r"\s*(?:…|\.\.\.|\[\.\.\.\]|\[…\])\s*")
_WORD = re.compile(r"\w+")
_READ = 2_000_000
"""Characters of others that are looked through, of each the beginning and the end where there are more."""
_RUN = 6
"""Words in a row that a sentence shares with a tool's result and no user's message: then they are the tool's."""
_STEM = 5
"""Letters by which a word is known in its other forms."""
_NAMED = re.compile(r"https?://[^\s\"'<>)\]]+|[\w.+-]+@[\w-]+\.[\w.-]+\w")


class Heard:
    """What was said before a summary, by whom. Made of one request, and asked for as often as needed."""

    def __init__(self, request: SummaryRequest) -> None:
        self._request = request

    @cached_property
    def users(self) -> str:
        """All that users said, and what was carried on as theirs."""
        told = self._request.facts.get("request")
        texts = [message.text for message in self._request.messages if is_users(message)]
        return plain("\n".join([*texts, self._request.previous, told if isinstance(told, str) else ""]))

    @cached_property
    def others(self) -> str:
        """What tools answered, and what was told as if a user had said it."""
        others = [message for message in self._request.messages if not is_users(message)]
        return plain("\n".join(message.text for message in bounded(others, _READ)))

    @cached_property
    def permitted(self) -> str | None:
        """What users agreed to, each with what was proposed right before; None where no user agreed to anything."""
        told: list[str] = []
        for before, message in pairwise((None, *self._request.messages)):
            if message is not None and is_users(message) and _ASSENT.search(message.text):
                told += [message.text, before.text if before and before.role == "assistant" else ""]
        if _ASSENT.search(self._request.previous):
            told.append(self._request.previous)
        return plain("\n".join(told)) if told else None

    @cached_property
    def runs(self) -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]:
        """Runs of words of users, and of all others."""
        return frozenset(_runs(self.users)), frozenset(_runs(self.others))

    def is_quoted(self, quote: str) -> bool:
        """Whether a user said this; what is left out in between is marked by an ellipsis."""
        pieces = [piece for piece in map(plain, _ELLIPSIS.split(quote)) if piece.strip(".,;:!? ")]
        return all(self._holds(piece.strip(".,;:!? ")) for piece in pieces)

    def _holds(self, piece: str) -> bool:
        start = r"\b" if piece[:1].isalnum() and piece[:1].isascii() else ""
        end = r"\b" if piece[-1:].isalnum() and piece[-1:].isascii() else ""
        return re.search(start + re.escape(piece) + end, self.users) is not None


def without_inventions(text: str, heard: Heard) -> tuple[str, tuple[str, ...]]:
    """The text without what it makes the user say, and why each sentence that was dropped was."""
    lines: list[str] = []
    reasons: list[str] = []
    is_users = False  # Whether the heading above says that what follows is the user's.
    for line in text.split("\n"):
        head = line.strip()
        if head.startswith("#") or (head.endswith((":", "：")) and len(head) < 60):
            is_users = bool(_USER.search(head) or _HEADED.search(head))
        kept, why = _checked(line, heard, is_users)
        reasons += why
        if not why or kept.strip(" \t-*•>0123456789.)\"'"):
            lines.append(kept)
    return "\n".join(lines).strip(), tuple(reasons)


def plain(text: str) -> str:
    """The same words in one spelling: case, spaces, quotation marks and dashes do not count."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.translate(_SPELLINGS)
    return " ".join(text.split())


_SPELLINGS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "*": None, "`": None})


def _checked(line: str, heard: Heard, is_users: bool) -> tuple[str, list[str]]:
    role = _ROLE.match(line)
    if role and not heard.is_quoted(role[1]) and not _QUOTED.search(role[1]):
        return "", ["a line that the user never said"]
    kept, reasons = [], []
    for sentence in _sentences(line):
        why = _why_not(sentence, heard, is_users)
        if why:
            reasons.append(why)
        else:
            kept.append(sentence)
    return ("".join(kept) if reasons else line), reasons


def _why_not(sentence: str, heard: Heard, is_users: bool) -> str:
    if _OVERRIDES.search(sentence) and not heard.is_quoted(sentence.strip(" \t-*•")):
        return "an order to whoever reads it"
    names_user = _USER.search(sentence) is not None
    quotes = list(_quotes(sentence)) if is_users or names_user else []
    for before, quote in quotes:
        is_said = _SAYS.search(before) is not None or is_users
        if (is_said or len(_WORD.findall(quote)) >= 3) and not _is_name(quote, is_said) and not heard.is_quoted(quote):
            return "a quotation that the user never said"
    if is_users and _is_the_tools(sentence, heard):
        return "words of a tool as if they were the user's"
    if not names_user:
        return ""
    if _PERMITS.search(sentence) and not _DENIED.search(sentence) and not quotes and not _is_permitted(sentence, heard):
        return "a permission that the user never gave"
    if _WISHES.search(sentence) and _is_the_tools(sentence, heard):
        return "a wish in the words of a tool"
    return ""


def _is_name(quote: str, is_said: bool) -> bool:
    """Whether the marks only set off a name, such as that of a file."""
    words = quote.split()
    return len(words) == 1 and (not is_said or any(not letter.isalpha() for letter in quote.strip(".,!?")))


def _is_permitted(sentence: str, heard: Heard) -> bool:
    """Whether some user agreed, and most of what the sentence is about was spoken of there."""
    if heard.permitted is None:
        return False
    about = _PERMITS.sub(" ", _USER.sub(" ", sentence))
    stems = {word[:_STEM] for word in _WORD.findall(plain(about)) if len(word) >= _STEM}
    known = {word[:_STEM] for word in _WORD.findall(heard.permitted)}
    return len(stems & known) * 2 > len(stems) or not stems


def _is_the_tools(sentence: str, heard: Heard) -> bool:
    for name in _NAMED.findall(sentence):
        if (told := plain(name.rstrip(".,;"))) in heard.others and told not in heard.users:
            return True
    users, others = heard.runs
    return any(run in others and run not in users for run in _runs(plain(sentence)))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text)
    return zip(*(words[i:] for i in range(_RUN)), strict=False)


def _quotes(sentence: str) -> Iterator[tuple[str, str]]:
    """Each quotation, with what stands before it."""
    end = 0
    for found in _QUOTED.finditer(sentence):
        yield sentence[end : found.start()], next(text for text in found.groups() if text is not None)
        end = found.end()


def _sentences(line: str) -> list[str]:
    """The sentences of a line, with the spaces behind them; what is quoted ends one only with its own end."""
    masked = _QUOTED.sub(_masked, line)
    ends = [found.end() for found in _SENTENCE_END.finditer(masked)]
    return [line[start:end] for start, end in zip([0, *ends], [*ends, len(line)], strict=True) if line[start:end]]


def _masked(quotation: re.Match[str]) -> str:
    is_end = quotation[0][-2:-1] in tuple(".!?。！？")
    return "x" * (len(quotation[0]) - 1) + ("." if is_end else "x")
