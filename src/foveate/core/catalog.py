"""What an application sets up for its agents, as its database keeps it: actions, which agent has which, and prompts.

Plain values; the databases check the same constraints again. How a result expires follows from a binding by way of
`lease_of`, as from everything else that says so.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .stamps import Lease

__all__ = ["Action", "Binding", "CompactMode", "ExpirationMode", "Prompt", "lease_of"]

ExpirationMode = Literal["none", "remove", "compact"]
CompactMode = Literal["first_chars", "summary"]


class Action(Struct, frozen=True):
    """Something that agents can have done."""

    name: str
    """What models call it by. Unique for a tenant."""
    description: str = ""
    parameters: str = ""
    """JSON Schema of its parameters, as JSON text; "" where none is said."""
    default_compact_prompt: str = ""
    """Name of the prompt that sums up its results where a binding names none."""


class Binding(Struct, frozen=True):
    """That an agent has an action, and what becomes of its results."""

    agent: str
    action: str
    result_expiration_turns: int | None = None
    """None: never; 0: after the next call."""
    result_expiration_mode: ExpirationMode = "none"
    compact_mode: CompactMode | None = None
    compact_length: int | None = None
    """Characters."""
    compact_prompt: str = ""
    """Name of a prompt; "" for the action's own."""

    @property
    def id(self) -> str:
        """What a lease calls it (`Lease.agent_action_id`)."""
        return f"{self.agent}/{self.action}"


class Prompt(Struct, frozen=True):
    """A prompt for summaries, by its name."""

    name: str
    text: str
    description: str = ""


def lease_of(binding: Binding, action: Action | None = None) -> Lease:
    """What a binding says of the results of its action, and the action of the prompt where the binding names none."""
    is_summed_up = binding.compact_mode == "summary"
    prompt = binding.compact_prompt or (action.default_compact_prompt if action else "")
    return Lease(
        binding.result_expiration_turns,
        binding.result_expiration_mode,
        binding.compact_mode,
        binding.compact_length,
        (prompt or None) if is_summed_up else None,
        message_type="action-result",
        action_id=binding.action,
        agent_action_id=binding.id,
    )
