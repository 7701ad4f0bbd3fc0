"""What the records of a run tell of a step that the model chose and that was begun before the run broke off."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..core.runs import AgentRunStep, step_name

__all__ = ["Past"]


class Past(Struct, frozen=True):
    """What is known of it; nothing, if it was not begun before."""

    reply: str = ""
    """Id of the reply that it is in."""
    messages: frozenset[str] = frozenset()
    """Steps that messages after the reply name."""
    steps: Mapping[str, AgentRunStep] = {}
    """Those after the reply, by the calls that they answer."""

    def has_told(self, run: str, number: int) -> bool:
        """Whether a message after the reply names this step."""
        return step_name(run, number) in self.messages
