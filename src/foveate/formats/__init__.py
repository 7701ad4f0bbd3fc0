"""Wire shapes of providers, both ways, and readers for recorded conversations. Pure: no SDK is imported.

A format is one conversation's: it remembers how the newest view was written. `get_format` makes one by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UnknownFormat

if TYPE_CHECKING:
    from ..ports import Format

__all__ = ["get_format"]


def get_format(name: str) -> Format:
    """A new format of this name: `openai` (also `openai_chat`) or `anthropic`. Raises UnknownFormat."""
    # Imported only when asked for: whoever speaks to one provider does not pay for the others.
    match name:
        case "openai" | "openai_chat":
            from .openai import OpenAIChat

            return OpenAIChat()
        case "anthropic":
            from .anthropic import Anthropic

            return Anthropic()
        case _:
            raise UnknownFormat("format", f"the name {name!r}", ("openai", "anthropic"))
