"""Facts about a message in one conversation.

A stamp is recorded when its message is appended and never changes. Two conversations can share a message, but each has
its own stamp of it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = [
    "CompactMode",
    "Expansion",
    "ExpirationMode",
    "Lease",
    "Origin",
    "PartRetention",
    "Retention",
    "Stamp",
    "StampRow",
    "Stop",
    "StopKind",
    "Usage",
    "is_interrupted",
]

Origin = Literal["system", "user", "assistant", "tool", "plugin", "summary", "derived"]
"""Where a message comes from. The first four are roles. `plugin`: a plugin added it. `summary`: the program brought a
summary. `derived`: the conversation itself added it, such as an original that it shows again.
"""


class Usage(Struct, frozen=True, gc=False, array_like=True):
    """The tokens that one model call was billed for, normalized across providers.

    Anthropic reports uncached and cached input separately; OpenAI reports one sum. Here `input` is always the
    *uncached, unwritten* rest, so the size of the prompt is the sum of the three input figures. Unknown is None, never
    0.
    """

    input: int | None = None
    """Input tokens neither read from nor written to the cache."""
    cache_read: int | None = None
    """Input tokens read from the cache."""
    cache_write: int | None = None
    """Input tokens written to the cache."""
    output: int | None = None
    """Output tokens, including reasoning."""
    reasoning: int | None = None
    """Reasoning tokens within `output`, if the provider reports them."""
    sent: int | None = None
    """Tokens of the prompt as it was sent, if the provider edited it before the model read it, or if the model read it
    several times, as between the uses of server tools. 0: the provider did not report them.
    """

    @property
    def sent_tokens(self) -> int | None:
        """Return the size of the prompt as it was sent, which estimates are compared with; None if it is unknown.

        Some servers report 0 because they do not count.
        """
        return (self.prompt_tokens if self.sent is None else self.sent) or None

    @property
    def prompt_tokens(self) -> int | None:
        """Return the size of the whole prompt, or None if the provider did not report it."""
        if self.input is None:
            return None
        return self.input + (self.cache_read or 0) + (self.cache_write or 0)


StopKind = Literal["end", "calls", "length", "paused", "refusal", "filtered", "interrupted", "other"]
"""Why a reply ended. `end`: complete; `calls`: the model calls tools; `length`: the output limit; `paused`: the
provider expects a continuation; `refusal`: the model refused; `filtered`: the provider's filter cut the reply;
`interrupted`: the caller stopped it, so its usage is an estimate; `other`: a reason that this version does not know.
"""


class Stop(Struct, frozen=True, gc=False, array_like=True):
    """Why a reply ended, normalized across providers."""

    kind: StopKind
    """The normalized reason."""
    raw: str = ""
    """The provider's own word, such as `max_tokens`; "" if it gave none."""


def is_interrupted(stop: Stop | None) -> bool:
    """Return whether the caller stopped the reply that has this stop."""
    return stop is not None and stop.kind == "interrupted"


ExpirationMode = Literal["none", "remove", "compact"]
"""The end of a lease. `remove` hides the result, `compact` shortens it, `none` keeps it."""

CompactMode = Literal["first_chars", "summary"]
"""How `compact` shortens a result: to its first characters, or to a summary."""


class Lease(Struct, frozen=True, gc=False, array_like=True):
    """How long a tool result stays whole, and what happens then. None means: as configured one level below.

    One shape serves every level: a message (stamped when it is appended), a binding of a tool, and a tool. Applications
    configure the fields under these names.
    """

    expiration_turns: int | None = None
    """Model calls that see the result after the call that requested it; 0: only until the next one."""
    expiration_mode: ExpirationMode | None = None
    """The end of the lease: `remove` hides the result, `compact` shortens it, `none` keeps it."""
    compact_mode: CompactMode | None = None
    """How `compact` shortens: the first characters, or a summary."""
    compact_length: int | None = None
    """Characters to keep, or the target length of the summary."""
    compact_prompt_id: str | None = None
    """The prompt of the summary."""
    disable_expiration: bool = False
    """Never expire, regardless of the other fields."""
    preserve_original: bool | None = None
    """Whether the original is kept and the model may expand it. If not, it leaves the store when the message expires,
    unless a fork shares it. Default: yes.
    """
    message_type: str = ""
    """The application's type of the message, for example `action-result`."""
    action_id: str = ""
    """The application's id of the action."""
    agent_action_id: str = ""
    """The application's id of the binding."""


class PartRetention(Struct, frozen=True, gc=False, array_like=True):
    """How long one part of a message is shown."""

    shown: bool = True
    """Whether the first call after the append shows it."""
    calls: int | None = None
    """Number of later calls that show it, counted in later messages with retention; None: forever, 0: none."""
    plugin: str = ""
    """The plugin that added it; "" for a part of the original message."""

    @property
    def is_permanent(self) -> bool:
        """Return whether retention never changes this part, as for the user's own words."""
        return self.shown and self.calls is None and not self.plugin


class Retention(Struct, frozen=True, gc=False, array_like=True):
    """How long each part of one message, or of its tool result, is shown."""

    sequence: int
    """Number among this conversation's messages with retention, from 1. It never changes."""
    parts: tuple[PartRetention, ...]
    """One value for each part."""


class Expansion(Struct, frozen=True, gc=False, array_like=True):
    """The form of a message that shows an original again on request."""

    form: Literal["whole", "lines", "items", "pattern", "search", "view", "refused"]
    """The content of the message: the whole original, a part of it, the results of a search, a note that the original
    is visible in its own place again (`view`), or a reason for a refusal (`refused`).
    """
    handle: str = ""
    """The requested handle; "" for a search and for an unreadable handle."""
    message: str = ""
    """Id of the requested message, or of the first message of a span."""
    is_listed: bool = False
    """Whether the program answered the call, so that its own list has the message. Comparisons of lists skip others."""

    @property
    def shows_original(self) -> bool:
        """Return whether the message shows the original again, whole or in part."""
        return self.form in ("whole", "lines", "items", "pattern")

    @property
    def is_copy(self) -> bool:
        """Return whether the message repeats content of the history."""
        return self.form not in ("view", "refused")


class Stamp(Struct, frozen=True, gc=False, array_like=True):
    """The conversation's facts about one appended message. New fields are only added at the end."""

    turn: int
    """Number of model calls begun when the message was appended. Messages age by turns. A reply carries the number of
    its own call.
    """
    time: int
    """Milliseconds since 1970, by the conversation's clock."""
    tokens: int
    """Size of the message, estimated by the conversation's counter."""
    origin: Origin
    """The origin of the message: user input, tool result, plugin, ..."""
    source: str = ""
    """The tool binding, plugin or run step that produced it."""
    usage: Usage | None = None
    """For a reply: the billed tokens of its call. Of an interrupted reply they are an estimate."""
    estimate: int = 0
    """For a reply with measured usage: the counter's estimate of the same prompt. It calibrates later estimates."""
    lease: Lease | None = None
    """The application's lease for this message."""
    retention: Retention | None = None
    """How long the parts of the message are shown."""
    metadata: str = ""
    """The application's own facts as the JSON text of an object. The library keeps but never reads them."""
    expanded: Expansion | None = None
    """For a message of the conversation itself: the original that it shows, or why it does not."""
    step: str = ""
    """The step of an agent's run that produced it (`core.runs.step_name`)."""
    stop: Stop | None = None
    """For a reply: why it ended; None if unknown."""
    model: str = ""
    """For a reply: the model that wrote it, if the program named it. It tells apart calibration, prices and usage."""
    key: str = ""
    """The id of the message in the caller's own list; "" if it has none."""

    @property
    def tool(self) -> str:
        """Return the name of the tool or the action that produced a result; "" if it is unknown."""
        return self.source or (self.lease.action_id if self.lease and self.origin == "tool" else "")

    def is_added(self, path: tuple[int, ...]) -> bool:
        """Return whether a plugin added the part at this path to the user's message."""
        parts = self.retention.parts if self.retention else ()
        return bool(path) and path[0] < len(parts) and not parts[path[0]].is_permanent


class StampRow(Struct, frozen=True, gc=False):
    """The stamp of one message with its position and id, without the body."""

    position: int
    """Position in the history, from 1."""
    id: str
    """Id of the message."""
    stamp: Stamp
    """The stamp."""
    size: int
    """Bytes of the stored, compressed body; 0 if it is erased."""
