"""The loops of an agent and its sub-agents, which share store, models and ids of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..conversation import validate
from ..ports import Model
from .config import AgentConfig, new_run_id
from .delegation import Delegation, SubLoop
from .loop_config import LoopConfig
from .resources import Resources, Session
from .run import Run
from .step_loop import StepLoop
from .sub_agents import SubAgentConfig
from .tool_loop import ToolLoop

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation

__all__ = ["LoopFactory"]


class LoopFactory:
    """Creates the loops of one agent and its sub-agents."""

    def __init__(self, resources: Resources, new_id: Callable[[], str] | None) -> None:
        """`new_id`: returns ids of runs."""
        self._resources = resources
        if new_id is not None:
            validate.function("new_id=", new_id)
        self._new_id = new_id or new_run_id

    def step_loop(self, config: LoopConfig, session: Session, outer: Run | None = None, parent: str = "") -> StepLoop:
        """Return the loop of an agent that answers with steps. `outer`, `parent`: see `StepLoop`."""
        delegation = self._delegation(config, session.conversation, session.model)
        return StepLoop(config, session, delegation, self._new_id, outer, parent)

    def tool_loop(
        self,
        config: AgentConfig,
        conversation: Conversation | AsyncConversation,
        outer: Run | None = None,
        parent: str = "",
    ) -> ToolLoop:
        """Return the loop of an agent that calls tools. `outer`, `parent`: see `ToolLoop`."""
        assert config.model is not None, "An agent without a model works with the model of the agent around it."
        delegation = self._delegation(config, conversation, config.model)
        return ToolLoop(config, conversation, delegation, outer, parent)

    def _delegation(
        self, config: SubAgentConfig, conversation: Conversation | AsyncConversation, model: Model
    ) -> Delegation:
        return Delegation(
            conversation,
            config.sub_agents,
            lambda sub_agent, name: self._resources.open(sub_agent, name, model),
            self._loop_of,
            max_parallel=config.max_parallel,
        )

    def _loop_of(self, sub_agent: SubAgentConfig, session: Session, outer: Run, parent: str) -> SubLoop:
        match sub_agent:
            case LoopConfig():
                return self.step_loop(sub_agent, session, outer, parent)
            case AgentConfig():
                config = replace(sub_agent, model=session.model, cost=session.cost, new_id=self._new_id)
                return self.tool_loop(config, session.conversation, outer, parent)
        raise AssertionError("`by_name` accepts no other agents.")
