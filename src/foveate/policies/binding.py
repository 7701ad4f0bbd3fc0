"""Binding statements: what the user forbade, required or limited, for a summary that has to keep it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.messages import Message

__all__ = ["statements_to_keep"]

_COUNT_MAX = 20
_SHARE = 4
"""The statements take at most one part in so many of the length of a summary."""
_LENGTH_MAX = 300
"""Characters. A longer statement is not one rule."""
_AUTHORS = frozenset(("user", "system"))
_OTHERS = frozenset(("system", "assistant", "tool", "plugin", "summary", "derived"))
"""Names of messages of role user that no user wrote."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_BINDS = re.compile(
    r"\b(?:never|must(?: not|n[’']t)?|always|do not|don[’']t|may not|not allowed|forbidden|off.?limits|at most|"
    r"no more than|only (?:use|in|on|after|with|if|when)|niemals|nie|darf|dürfen|muss|müssen|immer|höchstens|"
    r"jamais|toujours|interdit|nunca|siempre|prohibido|sempre|proibido|vietato|нельзя|никогда|всегда|запрещено)\b"
    r"|不要|不得|禁止|必须|必ず|しないで",
    re.IGNORECASE,
)
_MARK = re.compile(r"\s*(?:[-*•>]|\d+[.)])\s+")


def statements_to_keep(messages: Sequence[Message], previous: str, target: int) -> tuple[str, ...]:
    """Return the binding statements of users and of system messages, and of an earlier summary, oldest first.

    `target`: length of the summary in characters. If there are too many, the oldest are left out.
    """
    texts = [previous]
    texts += [message.text for message in messages if message.role in _AUTHORS and message.name not in _OTHERS]
    statements: dict[str, None] = {}
    for text in texts:
        if _BINDS.search(text):
            for sentence in _SENTENCE_END.split(text):
                plain = " ".join(_MARK.sub("", sentence, count=1).split())
                if len(plain) <= _LENGTH_MAX and _BINDS.search(plain) and not plain.endswith(("?", "？")):
                    statements.setdefault(plain)
    kept: list[str] = []
    left = target // _SHARE
    for statement in reversed(list(statements)[-_COUNT_MAX:]):
        left -= len(statement) + 1
        if left < 0:
            break
        kept.append(statement)
    return tuple(reversed(kept))
