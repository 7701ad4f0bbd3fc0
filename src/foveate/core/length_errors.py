"""Recognition of providers' errors for requests that are too long."""

from __future__ import annotations

import re

__all__ = ["is_too_long"]

_TOO_LONG = re.compile(
    r"too (?:long|large)|too many (?:\w+ )?tokens|(?:context|prompt).{0,10}(?:length|window|size|limit)"
    r"|maximum.{0,20}tokens|(?:input|prompt) tokens exceed|tokens.{0,30}must be <="
    r"|token count.{0,30}only supports|payload size exceeds",
    re.IGNORECASE,
)
_NOT_THE_PROMPT = re.compile(r"(?:string|array|name|image|max\w*tokens\W*(?:is)?) too (?:long|large)", re.IGNORECASE)
"""A field of the request is too large here; a shorter conversation would not help."""
_QUOTED = re.compile(r"""["']input\\?["']:.*|\binput_value=.*""", re.DOTALL)
"""The part of the request that a check of its fields quotes (FastAPI, pydantic). Its words are those of the messages.
"""
_RATE_LIMIT = re.compile(r"rate.?limit|per min|wait before trying", re.IGNORECASE)
"""Bedrock: "Too many tokens, please wait before trying again."
"""


def is_too_long(text: str, status: object) -> bool:
    """Return whether an error with this text and HTTP status refuses a prompt as too long."""
    if status == 413:
        return True
    text = _QUOTED.sub("", text)
    if status == 429 or _RATE_LIMIT.search(text):  # Only a single request above the limit passes when it is smaller.
        return "request too large" in text.lower()
    return bool(_TOO_LONG.search(_NOT_THE_PROMPT.sub("", text)))
