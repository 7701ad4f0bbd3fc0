"""Wire formats of the providers.

A format object belongs to one conversation, because it caches the messages of the newest view. A gatherer belongs to
one answer. Both import no SDK.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..errors import UnknownFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ports import Format, Gatherer

__all__ = ["gather", "get_format"]

_NAMES = ("openai", "openai_responses", "anthropic", "gemini")


def get_format(name: str) -> Format:
    """Return a new format: `openai` (or `openai_chat`), `openai_responses`, `anthropic` or `gemini`.

    Raises UnknownFormat for any other name.
    """
    # Imported late, so that a program loads only the format it uses.
    match name:
        case "openai" | "openai_chat":
            from .openai import OpenAIChat

            return OpenAIChat()
        case "openai_responses":
            from .responses import Responses

            return Responses()
        case "anthropic":
            from .anthropic import Anthropic

            return Anthropic()
        case "gemini":
            from .gemini import Gemini

            return Gemini()
        case _:
            raise _unknown(name)


def gather(format: str) -> Gatherer:
    """Return a new gatherer for one streamed answer in this format (the names of `get_format`). Raises UnknownFormat.

    Pass its `feed` the stream, as events (dicts, SDK objects) or as bytes of the server-sent events, and then pass
    `whole()` to `Conversation.record`.
    """
    return _gatherers_of(format)()


@cache  # Each import statement takes a microsecond, also of a module that is loaded.
def _gatherers_of(format: str) -> Callable[[], Gatherer]:
    from .streams import StreamGatherer

    match format:
        case "openai" | "openai_chat":
            from .openai.gather import OpenAIGatherer

            return lambda: StreamGatherer(OpenAIGatherer())
        case "openai_responses":
            from .responses.gather import ResponsesGatherer

            return lambda: StreamGatherer(ResponsesGatherer())
        case "anthropic":
            from .anthropic.gather import AnthropicGatherer

            return lambda: StreamGatherer(AnthropicGatherer())
        case "gemini":
            from .gemini.gather import GeminiGatherer, PieceReader

            return lambda: StreamGatherer(GeminiGatherer(), PieceReader())
        case _:
            raise _unknown(format)


def _unknown(name: object) -> UnknownFormat:
    return UnknownFormat("format", f"the name {name!r}", _NAMES, f"There is no format {name!r}.")
