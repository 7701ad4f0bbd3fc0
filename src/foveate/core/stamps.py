"""Facts about a message in one conversation that are not part of what was said.

A stamp is recorded when its message is appended and never changes. Two conversations that share a message share
what was said, not when or why.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = [
    "Expansion",
    "Lease",
    "Origin",
    "PartRetention",
    "Retention",
    "Stamp",
    "StampRow",
    "Stop",
    "StopKind",
    "Usage",
]

Origin = Literal["system", "user", "assistant", "tool", "plugin", "summary", "derived"]


class Usage(Struct, frozen=True, gc=False, array_like=True):
    """What one model call was billed for, in tokens, normalised across providers.

    Anthropic reports uncached input apart from cached input; OpenAI reports one sum that includes what was cached.
    Here `input` is always the *uncached, unwritten* rest, so that the size of the prompt is the sum of the three
    input figures. Unknown is None, never 0.
    """

    input: int | None = None
    """Input tokens neither read from nor written to the cache."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    """The share of `output` that was reasoning, where the provider tells."""

    @property
    def prompt_tokens(self) -> int | None:
        """The size of the whole prompt, or None if the provider did not say."""
        if self.input is None:
            return None
        return self.input + (self.cache_read or 0) + (self.cache_write or 0)


StopKind = Literal["end", "calls", "length", "paused", "refusal", "filtered", "other"]
"""Why a reply ended: it was said, it calls for something, it is as long as it may be, the provider wants to be asked to
go on, the model refuses, the provider's filter cut it, or a reason that came later.
"""


class Stop(Struct, frozen=True, gc=False, array_like=True):
    """Why a reply ended, normalised across providers."""

    kind: StopKind
    raw: str = ""
    """The provider's own word, such as `max_tokens`."""


class Lease(Struct, frozen=True, gc=False, array_like=True):
    """How long a result stays whole, and what becomes of it then. None: as configured at the level below.

    One shape for every level: what is said of one message when it is appended (and stamped), of a binding of a tool,
    and of a tool. The names are those under which applications configure it.
    """

    expiration_turns: int | None = None
    """Model calls after the one that asked for the result for which it stays; 0: until the next one."""
    expiration_mode: Literal["none", "remove", "compact"] | None = None
    compact_mode: Literal["first_chars", "summary"] | None = None
    compact_length: int | None = None
    """Characters that are kept, or that a summary is to have."""
    compact_prompt_id: str | None = None
    disable_expiration: bool = False
    """Never expires, whatever else is said."""
    preserve_original: bool | None = None
    """Whether the model may have the original back; the history keeps it in any case. Default: yes."""
    message_type: str = ""
    """What the message is to the application, for example `action-result`."""
    action_id: str = ""
    agent_action_id: str = ""


class PartRetention(Struct, frozen=True, gc=False, array_like=True):
    """How long one part of a message is shown."""

    shown: bool = True
    """Whether it is shown at the first call after it was appended."""
    calls: int | None = None
    """For how many later calls it stays, counted by later messages with retention; None: for good, 0: for none."""
    plugin: str = ""
    """Who added it; "" for what the message held of its own."""

    @property
    def is_permanent(self) -> bool:
        """Whether retention never touches it, as what the user said."""
        return self.shown and self.calls is None and not self.plugin


class Retention(Struct, frozen=True, gc=False, array_like=True):
    """How long the parts of one message are shown: of its content, or of the content of its tool result."""

    sequence: int
    """Number among the messages with retention of this conversation, from 1. It never changes, whatever is hidden."""
    parts: tuple[PartRetention, ...]


class Expansion(Struct, frozen=True, gc=False, array_like=True):
    """What the conversation itself said, because somebody asked for an original.

    No host has such a message in a list of its own: where lists are compared it is passed over.
    """

    form: Literal["whole", "lines", "items", "pattern", "search", "view", "refused"]
    """What of it stands here: all of it, a part, what a search found, or only a word that it is shown again in its
    place (`view`), or why it is not (`refused`).
    """
    handle: str = ""
    """What was asked for; "" for a search, and where it could not be read."""
    message: str = ""
    """Id of the message that was asked for; of the first one of a span."""

    @property
    def is_copy(self) -> bool:
        """Whether something that was said before stands here once more."""
        return self.form not in ("view", "refused")


class Stamp(Struct, frozen=True, gc=False, array_like=True):
    """What the conversation knows about one appended message. Fields are only ever added at the end."""

    turn: int
    """Model calls begun when this was appended: the clock by which things age. A reply carries the number of its
    own call.
    """
    time: int
    """Milliseconds since 1970, by the conversation's clock."""
    tokens: int
    """Estimate of the conversation's counter."""
    origin: Origin
    source: str = ""
    """Tool binding, plugin or run step it came from."""
    usage: Usage | None = None
    """On a reply: what its call was billed."""
    estimate: int = 0
    """On a reply with usage: what the counter had estimated for the same prompt, to calibrate later estimates."""
    lease: Lease | None = None
    """What the application said of its expiry when it was appended."""
    retention: Retention | None = None
    metadata: str = ""
    """The application's own facts, as the JSON text of an object; kept, and never read here."""
    expanded: Expansion | None = None
    """For what the conversation itself says: which original it shows, or why it does not."""
    step: str = ""
    """The step of an agent's run that it came from, as `core.runs.step_name` writes it."""
    stop: Stop | None = None
    """On a reply: why it ended; None where nobody said."""

    def is_added(self, path: tuple[int, ...]) -> bool:
        """Whether the part at this path was added to what the user said, and so is no part of their words."""
        parts = self.retention.parts if self.retention else ()
        return bool(path) and path[0] < len(parts) and not parts[path[0]].is_permanent


class StampRow(Struct, frozen=True, gc=False):
    """One message in its place, without what it says."""

    position: int
    id: str
    stamp: Stamp
    size: int
    """Bytes that the message takes as it is stored, packed; 0 where it was erased."""
