"""Facts about a message in one conversation that are not part of what was said.

A stamp is recorded when its message is appended and never changes. Two conversations that share a message share
what was said, not when or why.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["Origin", "Stamp", "Usage"]

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
