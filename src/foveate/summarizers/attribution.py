"""Attribution: drops sentences of a summary that ascribe to the user something the user did not say.

A summary is derived: it authorises nothing. Four kinds of sentences are dropped unless the history supports them: a
quotation that is in no message of the user, a permission that no user gave, a wish in the words of a tool's result, and
an order to the reader. Descriptions of events in the summary's own words are not judged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from ..core.messages import Message
from ..core.readable import readable_messages
from ..core.summaries import SummaryRequest
from ..digest.history.speakers import is_from_user, truncate_messages

__all__ = ["Statements", "drop_inventions"]

_WHO = (
    r"(?:users?|customers?|humans?|requesters?|operators?|benutzer\w*|nutzer\w*|usuari\w+|utilisat\w+|utente|gebruikers?"
    r"|пользовател\w*)"
)
_USER = re.compile(rf"(?<![\w/.\-])(?:{_WHO})(?![\w/\-]|['’]s)|用户|用戶|使用者|ユーザ|사용자", re.IGNORECASE)
"""The user; not a folder of that name, and not a possession of the user."""
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
"""Characters of other speakers that are searched: if there are more, the ends of each message."""
_RUN = 6
"""Consecutive words that make a sentence a tool's, if they are in a tool's result and in no user's message."""
_STEM = 5
"""Letters of the stem of a word."""
_NAMED = re.compile(r"https?://[^\s\"'<>)\]]+|[\w.+-]+@[\w-]+\.[\w.-]+\w")


class Statements:
    """The statements before a summary, by speaker. Computed once for a request."""

    def __init__(self, request: SummaryRequest) -> None:
        self._request = request

    @cached_property
    def _messages(self) -> list[tuple[Message, bool]]:
        """Each message, and whether a user wrote it."""
        pairs = pairwise((None, *readable_messages(self._request.everything)))
        return [(message, is_from_user(message, before)) for before, message in pairs if message is not None]

    @cached_property
    def users(self) -> str:
        """All text of users, and text that an earlier summary or the request carries on as theirs."""
        request = self._request.facts.get("request")
        texts = [message.text for message, is_users in self._messages if is_users]
        return plain("\n".join([*texts, self._request.previous, request if isinstance(request, str) else ""]))

    @cached_property
    def others(self) -> str:
        """Results of tools, and messages of role user that no user wrote."""
        others = [message for message, is_users in self._messages if not is_users]
        return plain("\n".join(message.text for message in truncate_messages(others, _READ)))

    @cached_property
    def permitted(self) -> str | None:
        """Messages in which users agreed, each with the proposal before it; None if no user agreed to anything."""
        agreed: list[str] = []
        before: Message | None = None
        for message, is_users in self._messages:
            if is_users and _ASSENT.search(message.text):
                agreed += [message.text, before.text if before and before.role == "assistant" else ""]
            before = message
        if _ASSENT.search(self._request.previous):
            agreed.append(self._request.previous)
        return plain("\n".join(agreed)) if agreed else None

    @cached_property
    def runs(self) -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]:
        """Sequences of words of users, and of all others."""
        return frozenset(_runs(self.users)), frozenset(_runs(self.others))

    def is_quoted(self, quote: str) -> bool:
        """Return whether a user said this; an ellipsis marks an omission."""
        pieces = [piece for piece in map(plain, _ELLIPSIS.split(quote)) if piece.strip(".,;:!? ")]
        return all(self._holds(piece.strip(".,;:!? ")) for piece in pieces)

    def _holds(self, piece: str) -> bool:
        start = r"\b" if piece[:1].isalnum() and piece[:1].isascii() else ""
        end = r"\b" if piece[-1:].isalnum() and piece[-1:].isascii() else ""
        return re.search(start + re.escape(piece) + end, self.users) is not None


def drop_inventions(text: str, statements: Statements) -> tuple[str, tuple[str, ...]]:
    """Return the text without invented statements of the user, and a reason for each dropped sentence."""
    lines: list[str] = []
    reasons: list[str] = []
    is_users = False  # Whether the lines below the current heading are the user's.
    for line in text.split("\n"):
        head = line.strip()
        if head.startswith("#") or (head.endswith((":", "：")) and len(head) < 60):
            is_users = bool(_USER.search(head) or _HEADED.search(head))
        kept, why = _checked(line, statements, is_users)
        reasons += why
        if not why or kept.strip(" \t-*•>0123456789.)\"'"):
            lines.append(kept)
    return "\n".join(lines).strip(), tuple(reasons)


def plain(text: str) -> str:
    """Return the same words in one spelling: case, spaces, quotation marks and dashes do not count."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.translate(_SPELLINGS)
    return " ".join(text.split())


_SPELLINGS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "*": None, "`": None})


def _checked(line: str, statements: Statements, is_users: bool) -> tuple[str, list[str]]:
    role = _ROLE.match(line)
    if role and not statements.is_quoted(role[1]) and not _QUOTED.search(role[1]):
        return "", ["a line that the user never said"]
    kept, reasons = [], []
    for sentence in _sentences(line):
        why = _find_invention(sentence, statements, is_users)
        if why:
            reasons.append(why)
        else:
            kept.append(sentence)
    return ("".join(kept) if reasons else line), reasons


def _find_invention(sentence: str, statements: Statements, is_users: bool) -> str:
    if _OVERRIDES.search(sentence) and not statements.is_quoted(sentence.strip(" \t-*•")):
        return "an order to the reader"
    names_user = _USER.search(sentence) is not None
    quotes = list(_quotes(sentence)) if is_users or names_user else []
    for before, quote in quotes:
        is_statement = _SAYS.search(before) is not None or is_users
        if (
            (is_statement or len(_WORD.findall(quote)) >= 3)
            and not _is_name(quote, is_statement)
            and not statements.is_quoted(quote)
        ):
            return "a quotation that the user never said"
    if is_users and _is_the_tools(sentence, statements):
        return "words of a tool as if they were the user's"
    if not names_user:
        return ""
    if (
        _PERMITS.search(sentence)
        and not _DENIED.search(sentence)
        and not quotes
        and not _is_permitted(sentence, statements)
    ):
        return "a permission that the user never gave"
    if _WISHES.search(sentence) and _is_the_tools(sentence, statements):
        return "a wish in the words of a tool"
    return ""


def _is_name(quote: str, is_statement: bool) -> bool:
    """Return whether the quotation marks only set off a name, such as a file name."""
    words = quote.split()
    return len(words) == 1 and (not is_statement or any(not letter.isalpha() for letter in quote.strip(".,!?")))


def _is_permitted(sentence: str, statements: Statements) -> bool:
    """Return whether a user agreed, in a message that holds most words of the sentence."""
    if statements.permitted is None:
        return False
    about = _PERMITS.sub(" ", _USER.sub(" ", sentence))
    stems = {word[:_STEM] for word in _WORD.findall(plain(about)) if len(word) >= _STEM}
    known = {word[:_STEM] for word in _WORD.findall(statements.permitted)}
    return len(stems & known) * 2 > len(stems) or not stems


def _is_the_tools(sentence: str, statements: Statements) -> bool:
    for name in _NAMED.findall(sentence):
        if (text := plain(name.rstrip(".,;"))) in statements.others and text not in statements.users:
            return True
    users, others = statements.runs
    return any(run in others and run not in users for run in _runs(plain(sentence)))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text)
    return zip(*(words[i:] for i in range(_RUN)), strict=False)


def _quotes(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield each quotation with the text before it."""
    end = 0
    for match in _QUOTED.finditer(sentence):
        yield sentence[end : match.start()], next(text for text in match.groups() if text is not None)
        end = match.end()


def _sentences(line: str) -> list[str]:
    """Return the sentences of a line with the spaces after them; a quotation ends a sentence only at its own end."""
    masked = _QUOTED.sub(_masked, line)
    ends = [match.end() for match in _SENTENCE_END.finditer(masked)]
    return [line[start:end] for start, end in zip([0, *ends], [*ends, len(line)], strict=True) if line[start:end]]


def _masked(quotation: re.Match[str]) -> str:
    is_end = quotation[0][-2:-1] in tuple(".!?。！？")
    return "x" * (len(quotation[0]) - 1) + ("." if is_end else "x")
