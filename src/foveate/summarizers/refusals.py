"""Texts that are no summary: what providers, proxies and models say when they could not write one.

Looks at one text alone. What it says of the user, and how long it is, is judged in `acceptance.py`.
"""

from __future__ import annotations

import json
import re

__all__ = ["why_no_summary"]

_SHORT = 600
"""Characters above which a text is not taken for an apology: those are short, and a summary may tell of errors."""

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


def why_no_summary(text: str) -> str:
    """Why this text is no summary, in a few words; "" where nothing speaks against it."""
    plain = text.strip()
    if not plain:
        return "it is empty"
    if _EMPTY_WORDS.fullmatch(plain):
        return "it says nothing"
    if _PAGE.match(plain):
        return "it is a web page"
    if _TRACE.match(plain):
        return "it is the trace of an error"
    if plain[0] in "{[" and (why := _why_json(plain)):
        return why
    if len(plain) <= _SHORT:
        if _STATUS.match(plain) or _FAILURE.match(plain):
            return "it is an error text"
        if _APOLOGY.match(plain):
            return "it declines"
    return ""


def _why_json(text: str) -> str:
    """Why JSON, whole or broken off, is not taken; what holds a summary was read out before."""
    try:
        said = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return "its JSON is broken off" if re.match(r"\{\s*\"summary\"\s*:", text) else ""
    if isinstance(said, dict) and _ERROR_KEYS & {str(key).lower() for key in said}:
        return "it is an error text"
    return "it is JSON without a summary"
