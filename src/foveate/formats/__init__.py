"""Wire formats of the providers.

A format object belongs to one conversation, because it caches the messages of the newest view. Formats import no SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UnknownFormat

if TYPE_CHECKING:
    from ..ports import Format

__all__ = ["get_format"]


def get_format(name: str) -> Format:
    """Return a new format: `openai` (or `openai_chat`) or `anthropic`. Raises UnknownFormat for any other name."""
    # Imported late, so that a program loads only the format it uses.
    match name:
        case "openai" | "openai_chat":
            from .openai import OpenAIChat

            return OpenAIChat()
        case "anthropic":
            from .anthropic import Anthropic

            return Anthropic()
        case _:
            raise UnknownFormat("format", f"the name {name!r}", ("openai", "anthropic"))
