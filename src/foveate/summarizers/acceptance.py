"""Acceptance: whether a text can be used as a summary.

A summary is not empty, no error text, shorter than its source and at most twice as long as requested. It ascribes to
the user only what the user said. It keeps the sense of the statements that bind, and it holds the values that count
and the names that are still referred to: those that are missing are added at the end, if there is room. A summary that
fails is not repaired further: the next summarizer writes one.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ..core.sizes import estimate, tokens_of
from ..core.summaries import SummaryRequest
from ..digest.history.sections import REFERRED, STILL_BINDING, STILL_VALID
from .attribution import Statements, drop_inventions
from .retention import find_lost

__all__ = ["LONGEST", "Verdict", "accept", "find_refusal", "length_of"]

_SHORT = 600
"""Characters of the longest text that may be an apology: a longer text may be a summary of errors."""

_PAGE = re.compile(r"\s*(?:<!doctype\b|<html\b|<\?xml\b|<head\b|<body\b)", re.IGNORECASE)
_TRACE = re.compile(r"\s*Traceback \(most recent call last\)")
_STATUS = re.compile(
    r"\W*(?:(?:http|error(?: code)?|status(?: code)?)\W{0,3})*(?:[45]\d\d)\b\W*(?:[a-z ]*?"
    r"(?:error|bad|unauthorized|forbidden|not found|too many|timeout|unavailable|overloaded|gateway|limit|quota|$))",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\W*(?:error\b\s*[:!(-]|(?:internal )?server error|service (?:is )?(?:temporarily )?unavailable|bad gateway|"
    r"gateway time-?out|too many requests|rate limit|overloaded|(?:request|connection|operation) timed? ?-?out|"
    r"connection (?:error|refused|reset)|an? (?:unexpected |internal |unknown )?error (?:has )?occurred|"
    r"something went wrong|insufficient (?:quota|credits?)|you exceeded your|invalid api key|model not found|"
    r"context length exceeded|(?:the )?prompt is too long)",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"\W*(?:(?:i[' ’]?a?m (?:very |so |really )?sorry|sorry|apologies|i apologi[sz]e|unfortunately|as an ai\b)"
    r"\W+.{0,80}?"
    r"(?:can(?:not|[' ’]?t)\b|unable|not able|won[' ’]?t\b|not allowed|couldn[' ’]?t)"
    r"|i (?:can(?:not|[' ’]?t)|am unable to|[' ’]?m unable to|won[' ’]?t|will not|must decline to|am not able to) "
    r"(?:help|assist|comply|do (?:that|this|it|so)|provide|summari[sz]e|process|fulfil|continue|create|generate|write|"
    r"complete|access|share|engage)"
    r"|i[' ’]m unable to|lo siento|je suis désolé|je ne peux pas|es tut mir leid|tut mir leid|mi dispiace|desculpe|"
    r"к сожалению|извините|抱歉|对不起|申し訳|すみません|죄송)",
    re.IGNORECASE,
)
_EMPTY_WORDS = re.compile(
    r"\W*(?:n/?a|none|null|undefined|nan|todo|no summary(?: available)?|nothing to summari[sz]e|\[?summary\]?|"
    r"summary goes here|your summary here|placeholder|ok(?:ay)?|done|sure|understood)\W*",
    re.IGNORECASE,
)
_ERROR_KEYS = frozenset(("error", "errors", "detail", "message", "status_code", "fault", "code", "request_id"))


def find_refusal(text: str) -> str:
    """Return the reason why this text is no summary, in a few words; "" if there is none."""
    plain = text.strip()
    if not plain:
        return "it is empty"
    if _EMPTY_WORDS.fullmatch(plain):
        return "it says nothing"
    if _PAGE.match(plain):
        return "it is a web page"
    if _TRACE.match(plain):
        return "it is the trace of an error"
    if plain[0] in "{[" and (why := _find_json_refusal(plain)):
        return why
    if len(plain) <= _SHORT:
        if _STATUS.match(plain) or _FAILURE.match(plain):
            return "it is an error text"
        if _APOLOGY.match(plain):
            return "it declines"
    return ""


def _find_json_refusal(text: str) -> str:
    """Return the reason to refuse JSON, complete or not; a summary inside JSON was extracted before."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return "its JSON is broken off" if re.match(r"\{\s*\"summary\"\s*:", text) else ""
    if isinstance(value, dict) and _ERROR_KEYS & {str(key).lower() for key in value}:
        return "it is an error text"
    return "it is JSON without a summary"


LONGEST = 2
"""The largest accepted length of a summary, as a multiple of the requested one."""

_READ = 100_000
"""Characters above which a text is too long for any request, and is not read sentence by sentence."""
_KEPT = 0.4
"""Share of a summary that must remain after sentences with inventions are dropped."""


class Verdict(NamedTuple):
    """The judgement of a summary."""

    text: str
    """The summary to use, without dropped sentences and with added names; "" if it is refused."""
    why: str = ""
    """The reason of the refusal; "" if it is accepted."""
    dropped: tuple[str, ...] = ()
    """One reason for each dropped sentence."""


def accept(request: SummaryRequest, text: str, *, measures: bool = True) -> Verdict:
    """Judge a text as the answer to a request.

    `measures=False`: no other summarizer follows, and the caller checks the length. Statements that the text leaves out
    are then added at its end, in place of a refusal.
    """
    text = text.strip()
    if why := find_refusal(text):
        return Verdict("", why)
    if len(text) > _READ:
        return Verdict("", _too_long(text, request)) if measures else Verdict(text)
    kept, dropped = drop_inventions(text, Statements(request))
    if len(kept) < _KEPT * len(text):
        return Verdict("", f"{dropped[0]}, and little else", dropped)
    source = length_of(request)
    if measures:
        if len(kept) >= source:
            return Verdict("", "it is not shorter than what it stands for", dropped)
        if len(kept) > LONGEST * request.target:
            return Verdict("", _too_long(kept, request), dropped)
    if lost := find_lost(request.binding, kept):
        if measures:
            return Verdict("", f"it leaves out {lost[0]!r:.120}, which binds", dropped)
        kept = "\n".join([f"{kept}\n\n{STILL_BINDING}", *(f"- {statement}" for statement in lost)])
    if measures and (lost := find_lost(request.values, kept)):
        whole = "\n".join([f"{kept}\n\n{STILL_VALID}", *(f"- {statement}" for statement in lost)])
        if len(whole) > LONGEST * request.target or len(whole) >= source:
            return Verdict("", f"it leaves out {lost[0]!r:.120}, which holds", dropped)
        kept = whole
    missing = [value for value in request.required if value not in kept]
    if missing:
        whole = f"{kept}\n\n{REFERRED}{', '.join(missing)}"
        if len(whole) > LONGEST * request.target or len(whole) >= source:
            return Verdict("", f"it leaves out {missing[0]!r}, which is still referred to", dropped)
        kept = whole
    return Verdict(kept, "", dropped)


def _too_long(text: str, request: SummaryRequest) -> str:
    return f"it has {len(text):,} characters, and {request.target:,} were asked for"


def length_of(request: SummaryRequest) -> int:
    """Return the characters of the messages that a summary replaces; images and calls count like text."""
    return 4 * (sum(map(tokens_of, request.everything)) + estimate(request.previous))
