"""Summaries of clients: the text with which Claude Code goes on in a new conversation, in the user's name.

The requests in it are the user's, and the rest is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

__all__ = ["is_client_summary", "parts_of_client_summary"]

_BEGINS = re.compile(
    r"\s*(?:This session is being continued from"
    r"|Another language model started to solve this problem and produced a summary)"
)
"""The first words of Claude Code and of Codex."""
_TITLE = re.compile(r" {0,3}\d{1,2}\. +\**([A-Za-z][A-Za-z ]{3,40}?):?\** *:?\** *\Z")
_QUOTE = re.compile(r"^(\s*[-*\d.]*\s*)[\"“](.*)[\"”]\s*$", re.MULTILINE)
"""An item that is a quotation."""

Role = Literal["request", "user", "open", "assistant"]
"""The content of a part: the user's request, other words of the user, open tasks, or the model's work."""
_ROLES: dict[str, Role] = {
    "primary request and intent": "request",
    "all user messages": "user",
    "key technical concepts": "assistant",
    "files and code sections": "assistant",
    "errors and fixes": "assistant",
    "problem solving": "assistant",
    "current work": "assistant",
    "pending tasks": "open",
    "optional next step": "open",
}
"""The titles of Claude Code, in the order in which the parts are read: the user's words first."""


def is_client_summary(text: str) -> bool:
    """Return whether a client wrote this text as a summary, in the user's name."""
    return _BEGINS.match(text) is not None


def parts_of_client_summary(text: str) -> Iterator[tuple[Role, str]]:
    """Yield the parts of a summary and what each tells, the user's words first.

    The analysis above the first title is left out if there are titles: the parts repeat it.
    """
    parts = _parts_by_title(text)
    if not parts:
        yield "assistant", text
    for title, role in _ROLES.items():
        if words := parts.get(title):
            yield role, _QUOTE.sub(r"\1\2", words) if role in ("request", "user") else words


def _parts_by_title(text: str) -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        match = _TITLE.match(line)
        if match and (named := match[1].casefold()) in _ROLES:
            title = named
            parts[title] = []
        elif title:
            parts[title].append(line)
    return {title: "\n".join(lines) for title, lines in parts.items()}
