"""What was said: messages and their parts, as frozen values.

No id, time or count is in here: whoever stores or counts adds that (see `stamps.py` and `ids.py`). A part that came
from a provider keeps the fields this model does not know in `extra`, as the JSON text they arrived in; only the
format they came from writes them out again.

One convention makes everything else simple: *a message holds at most one tool result*, and then nothing else.
Formats whose wire shape packs several results (and text) into one message unpack them when they parse and pack them
again when they render.

Values hold only values and can never be part of a cycle, so the collector need not look at them (`gc=False` here and
in the files beside): on a long view that would take as much time as all else in a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

__all__ = [
    "Content",
    "Extra",
    "Media",
    "Message",
    "Opaque",
    "Part",
    "Reasoning",
    "Role",
    "State",
    "Text",
    "ToolCall",
    "ToolResult",
    "assistant",
    "system",
    "tool_result",
    "user",
]

Role = Literal["system", "user", "assistant", "tool"]
State = Literal["ok", "error", "interrupted"]


class Extra(Struct, frozen=True, gc=False, array_like=True):
    """Fields of a provider's message or block that this model does not know."""

    format: str
    """The format they came from, and the only one they return to."""
    fields: str
    """A JSON object, as text, exactly as it arrived (compact if it arrived as Python values)."""


class Text(Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """Plain text, from anybody."""

    text: str
    extra: Extra | None = None


class Media(Struct, frozen=True, gc=False, tag="media", omit_defaults=True):
    """An image, a document or a sound."""

    mime: str
    """For example `image/png`. Empty where the provider was not told."""
    source: Literal["base64", "url", "file"]
    data: str
    """The base64 text, the URL or the provider's file id, as `source` says."""
    name: str = ""
    extra: Extra | None = None

    @property
    def is_image(self) -> bool:
        return self.mime.startswith("image/") or not self.mime


class Reasoning(Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """What the model thought. Bound to the call it led to, and often signed by the provider."""

    text: str = ""
    signature: str = ""
    """The provider's signature over `text`; without it most providers refuse to take the block back."""
    encrypted: str = ""
    """An opaque payload in place of readable text (redacted thinking, encrypted reasoning)."""
    format: str = ""
    """The format it came from: another provider's reasoning is kept in the history and dropped on rendering."""
    extra: Extra | None = None


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", omit_defaults=True):
    """A request of the model to run a tool."""

    call_id: str
    name: str
    arguments: str = "{}"
    """JSON text, byte for byte as the provider sent it where it sends text."""
    extra: Extra | None = None


class Opaque(Struct, frozen=True, gc=False, tag="opaque", omit_defaults=True):
    """A block of a kind this model does not know. It returns, byte-equal, to the format it came from and to no
    other.
    """

    format: str
    kind: str
    body: str
    """The whole block as JSON text."""


Content = Text | Media | Opaque


class ToolResult(Struct, frozen=True, gc=False, tag="tool_result", omit_defaults=True):
    """What a tool answered. `call_id` names the ToolCall it answers."""

    call_id: str
    content: tuple[Content, ...] = ()
    state: State = "ok"
    name: str = ""
    """The tool, where the format repeats it."""
    extra: Extra | None = None

    @property
    def text(self) -> str:
        """The readable text of the result, its parts joined by newlines."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part = Text | Media | Reasoning | ToolCall | ToolResult | Opaque


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing somebody said: a role and an ordered tuple of parts."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    """The speaker's name, where a format carries one."""
    extra: Extra | None = None

    @property
    def text(self) -> str:
        """The readable text of the message and of its tool result, parts joined by newlines; no reasoning, no calls."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text | ToolResult))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def result(self) -> ToolResult | None:
        """The tool result this message carries, if it carries one."""
        if self.role == "tool" and self.parts and isinstance(self.parts[0], ToolResult):
            return self.parts[0]
        return None

    @property
    def has_content(self) -> bool:
        """Whether there is a text that is not blank, or media, for anybody to read."""
        return any(
            isinstance(part, Media) or (isinstance(part, Text) and bool(part.text.strip())) for part in self.parts
        )

    def media(self) -> Iterator[Media]:
        """Every image, document and sound, those inside a tool result too."""
        for part in self.parts:
            if isinstance(part, Media):
                yield part
            elif isinstance(part, ToolResult):
                yield from (nested for nested in part.content if isinstance(nested, Media))


def system(text: str) -> Message:
    """A system prompt."""
    return Message("system", (Text(text),))


def user(text: str, *media: Media) -> Message:
    """Something the user said, with what was attached."""
    return Message("user", (Text(text), *media))


def assistant(text: str = "", *calls: ToolCall, reasoning: Reasoning | None = None) -> Message:
    """An answer of the model: reasoning, text and calls, each where given, in this order."""
    said: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", ((reasoning,) if reasoning else ()) + said + calls)


def tool_result(call_id: str, text: str, *media: Media, state: State = "ok", name: str = "") -> Message:
    """The answer to one call."""
    return Message("tool", (ToolResult(call_id, (Text(text), *media), state, name),))
