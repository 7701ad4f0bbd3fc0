"""The system prompt and the tools of requests, and the tool `expand` among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..expand.tool import NAMES, TOOL, offers_expand, own_names, with_instruction, with_tool
from . import validate
from .state import State

__all__ = ["Offer"]

_Tools = Sequence[Mapping[str, object]]


class Offer:
    """The system prompt and the tools that requests of one conversation offer the model."""

    def __init__(self, state: State, wanted: bool | None) -> None:
        """`wanted`: whether requests offer the tool `expand`; None: those with tools, unless one has its name."""
        self._state, self._wanted = state, wanted
        self.may_expand = True
        """Whether the newest request may offer the tool `expand`."""
        self.system: object = None
        """The caller's system prompt in the newest request."""
        self.tools: _Tools = ()
        """The caller's tools in the newest request."""
        self.taken = frozenset[str]()
        """The names of the tool `expand` that tools of the caller have."""
        self._is_first = True

    def take(self, system: object, tools: _Tools) -> None:
        """Take over the caller's system prompt and tools for the newest request."""
        self.system, self.tools, self.taken, self._is_first = system, tools, own_names(tools), False

    def weigh(self, system: object, tools: _Tools) -> None:
        """Note the size of system prompt and tools, and whether they offer `expand`."""
        system, tools = self._completed(validate.system_prompt(system), validate.tools(tools))
        self._state.own_offer = offers_expand(tools)
        self._state.limits.weigh(system, tools, self._state.counter)

    def complete(self) -> tuple[object, _Tools]:
        """Return system prompt and tools of the newest request, with the tool `expand` if the request offers it."""
        return self._completed(self.system, self.tools)

    def _completed(self, system: object, tools: _Tools) -> tuple[object, _Tools]:
        wanted = self._wanted
        if wanted is None:
            wanted = bool(tools) and TOOL not in own_names(tools)
        if not (wanted and self.may_expand):
            return system, tools
        return with_instruction(system), with_tool(tools, self._state.format.name)

    def tool_tokens(self) -> int:
        """Return the tokens of the tools in the newest request."""
        limits = self._state.limits
        tools = self.complete()[1] if limits.budget().overhead else ()
        return limits.tool_tokens(tools, self._state.counter)

    @property
    def answers_expand(self) -> bool:
        """Whether the conversation answers the calls of `expand` in the reply to the newest request.

        Before the first request: whether it may have been offered.
        """
        if not self.may_expand:
            return False
        if self._wanted is None:
            return self._is_first or (bool(self.tools) and TOOL not in self.taken)
        return self._wanted

    def answers(self, tool: str) -> bool:
        """Return whether the conversation answers the calls of a tool in the reply to the newest request."""
        return tool in NAMES and self.answers_expand and tool not in self.taken
