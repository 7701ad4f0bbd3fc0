"""Contents of Google ADK: those that a view shows, and the tool `expand`."""

from __future__ import annotations

import asyncio
import itertools
from base64 import b64decode
from typing import Any, Final

from google.adk.tools.base_tool import BaseTool
from google.genai import types
from msgspec.structs import replace

from ..conversation import Conversation
from ..core.messages import Media, Message
from ..core.view import Entry
from ..expand.tool import expand_tool
from .host import EXPAND, ModelCall

__all__ = ["ExpandTool", "shown_contents"]

_DECLARATION: Final = expand_tool("gemini")["functionDeclarations"][0]


def shown_contents(call: ModelCall) -> list[types.Content]:
    """Return the view: the session's own contents where they are shown unchanged, and new ones for the rest."""
    shown: list[types.Content] = []
    for is_own, pieces in itertools.groupby(call.shown(), key=lambda piece: piece.entry is None):
        if is_own:
            shown += [piece.item for piece in pieces]
        else:  # Results in one content must stay together.
            messages = [_named(piece.entry) for piece in pieces if piece.entry is not None]
            shown += [types.Content.model_validate(content) for content in call.chat.format.render(messages)]
    return shown


class ExpandTool(BaseTool):
    """Shows the model what was shortened."""

    def __init__(self, chat: Conversation) -> None:
        super().__init__(name=EXPAND["name"], description=EXPAND["description"])
        self._chat = chat

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration.model_validate(_DECLARATION)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        result = await asyncio.to_thread(self._chat.expansion, args)
        media = [_part(part) for part in result.content if isinstance(part, Media)]
        key = "error" if result.state == "error" else "output"
        return {key: result.text, "media": media} if media else {key: result.text}


def _named(entry: Entry) -> Message:
    """Return the message of an entry. Gemini needs the name of the tool with each result."""
    result = entry.message.result
    if result is None or result.name:
        return entry.message
    return Message("tool", (replace(result, name=entry.tool),))


def _part(media: Media) -> types.Part:
    if media.source == "base64":
        return types.Part.from_bytes(data=b64decode(media.data), mime_type=media.mime)
    return types.Part.from_uri(file_uri=media.data, mime_type=media.mime or None)
