"""Messages and their parts, as frozen values.

A message holds no id, time or count: stamps (`stamps.py`) and ids (`ids.py`) add these. A part from a provider keeps
unknown fields in `extra`, as the JSON text in which they arrived. Only the format they came from writes them again.

One convention keeps the rest simple: *a message holds at most one tool result*, and then no other part. Some formats
pack several results and text into one message. These formats unpack when they parse and pack when they render.

These values can never be part of a reference cycle, so the garbage collector skips them (`gc=False`, also in other
modules of the core). On a long view, collecting them would take as much time as the rest of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

__all__ = [
    "Content",
    "Extra",
    "Media",
    "Message",
    "Opaque",
    "Part",
    "Reasoning",
    "ResultState",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
    "assistant",
    "is_author",
    "system",
    "tool_result",
    "user",
]

Role = Literal["system", "user", "assistant", "tool"]
"""The author of a message."""

ResultState = Literal["ok", "error", "interrupted"]
"""How a call of a tool ended. `interrupted`: it was stopped, or its end is unknown."""

_AUTHORS: Final = frozenset(
    {"human", "user", "ai", "assistant", "bot", "model", "system", "developer", "tool", "function", "chat"}
    | {"HumanMessage", "AIMessage", "AIMessageChunk", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage"}
)
"""The words for authors of messages that libraries write in place of a role."""


class Extra(Struct, frozen=True, gc=False, array_like=True):
    """Fields of a provider's message or block that this model does not know."""

    format: str
    """The format they came from. They return only to this format."""
    fields: str
    """A JSON object as text, exactly as it arrived (compact if it arrived as Python values)."""


class Text(Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """Plain text."""

    text: str
    """The text itself."""
    extra: Extra | None = None
    """Unknown fields of the provider's block."""


class Media(Struct, frozen=True, gc=False, tag="media", omit_defaults=True):
    """An image, a document or a sound."""

    mime: str
    """The media type, for example `image/png`. Empty if it is unknown."""
    source: Literal["base64", "url", "file"]
    """The meaning of `data`: base64 text, a URL, or a file id of the provider."""
    data: str
    """The base64 text, the URL or the file id."""
    name: str = ""
    """A file name, if known."""
    extra: Extra | None = None
    """Unknown fields of the provider's block."""

    @property
    def is_image(self) -> bool:
        """Return whether this is an image. Media of an unknown type count as images."""
        return self.mime.startswith("image/") or not self.mime


class Reasoning(Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """The model's reasoning. It is bound to the call it led to, and often signed by the provider."""

    text: str = ""
    """The readable text."""
    signature: str = ""
    """The provider's signature over `text`. Most providers refuse reasoning without it."""
    encrypted: str = ""
    """An opaque payload instead of readable text (redacted thinking, encrypted reasoning)."""
    format: str = ""
    """The format it came from. The history keeps reasoning of other providers, and rendering drops it."""
    extra: Extra | None = None
    """Unknown fields of the provider's block."""


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", omit_defaults=True):
    """A request of the model to run a tool."""

    call_id: str
    """The provider's id of the call. The result repeats it."""
    name: str
    """The tool."""
    arguments: str = "{}"
    """JSON text, byte for byte as the provider sent it if it sends text."""
    extra: Extra | None = None
    """Unknown fields of the provider's block."""


_COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Anthropic's block, and the items of OpenAI's Responses API and of Codex."""


class Opaque(Struct, frozen=True, gc=False, tag="opaque", omit_defaults=True):
    """A block of a kind that this model does not know. It returns, byte-equal, only to the format it came from."""

    format: str
    """The format it came from."""
    kind: str
    """The provider's name of the kind."""
    body: str
    """The whole block as JSON text."""

    @property
    def is_compaction(self) -> bool:
        """Return whether the provider reads this block in place of everything before it.

        A failed compaction of Anthropic has no content and replaces nothing.
        """
        if self.kind not in _COMPACTIONS:
            return False
        fields = msgspec.json.decode(self.body)
        return isinstance(fields, dict) and bool(fields.get("content") or fields.get("encrypted_content"))


Content = Text | Media | Opaque
"""A part of a tool result."""


class ToolResult(Struct, frozen=True, gc=False, tag="tool_result", omit_defaults=True):
    """The result of a tool. `call_id` names the ToolCall it answers."""

    call_id: str
    """Id of the call it answers."""
    content: tuple[Content, ...] = ()
    """The parts of the result, in order."""
    state: ResultState = "ok"
    """Whether the tool succeeded, failed or was interrupted."""
    name: str = ""
    """The tool, if the format repeats its name."""
    extra: Extra | None = None
    """Unknown fields of the provider's block."""

    @property
    def text(self) -> str:
        """Return the readable text of the result, its parts joined by newlines."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part = Text | Media | Reasoning | ToolCall | ToolResult | Opaque
"""One part of a message."""


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of a conversation: a role and an ordered tuple of parts."""

    role: Role
    """The author: `system`, `user`, `assistant` or `tool`."""
    parts: tuple[Part, ...] = ()
    """The content, in order."""
    name: str = ""
    """The author's name, if a format carries one."""
    extra: Extra | None = None
    """Unknown fields of the provider's message."""

    @property
    def text(self) -> str:
        """Return the readable text of the message and its tool result, parts joined by newlines, without reasoning and
        calls.
        """
        return "\n".join([part.text for part in self.parts if isinstance(part, (Text, ToolResult))])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls of the message."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    @property
    def result(self) -> ToolResult | None:
        """Return the tool result of this message, or None."""
        if self.role == "tool" and self.parts and isinstance(self.parts[0], ToolResult):
            return self.parts[0]
        return None

    @property
    def has_content(self) -> bool:
        """Return whether the message has media or a text that is not blank."""
        return any(
            isinstance(part, Media) or (isinstance(part, Text) and bool(part.text.strip())) for part in self.parts
        )

    def media(self) -> Iterator[Media]:
        """Yield every image, document and sound, including those in a tool result."""
        for part in self.parts:
            if isinstance(part, Media):
                yield part
            elif isinstance(part, ToolResult):
                yield from (nested for nested in part.content if isinstance(nested, Media))


def is_author(kind: object) -> bool:
    """Return whether a `type` names the author of a message. No provider has a part or an item of such a type."""
    return isinstance(kind, str) and kind in _AUTHORS


def system(text: str) -> Message:
    """Return a system prompt."""
    return Message("system", (Text(text),))


def user(text: str, *media: Media) -> Message:
    """Return a user message with attached media."""
    return Message("user", (Text(text), *media))


def assistant(text: str = "", *calls: ToolCall, reasoning: Reasoning | None = None) -> Message:
    """Return a message of the model: reasoning, text and calls, in this order."""
    texts: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", ((reasoning,) if reasoning else ()) + texts + calls)


def tool_result(call_id: str, text: str, *media: Media, state: ResultState = "ok", name: str = "") -> Message:
    """Return the result of the call with this id: a text, then media.

    `state`: how the call ended; `name`: the name of the tool.
    """
    return Message("tool", (ToolResult(call_id, (Text(text), *media), state, name),))
