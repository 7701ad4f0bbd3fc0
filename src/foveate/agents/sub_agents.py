"""Sub-agents of an agent: which agents can be one, what they inherit, and the tools that hand tasks to them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..core.stamps import Lease
from ..errors import BadSetting
from ..ports import Clock, Cost, HasCatalog, Model
from .tools import Tool

if TYPE_CHECKING:
    from .events import LifecycleListener
    from .tool_calls import Approver

__all__ = ["SubAgent", "SubAgentConfig", "by_name", "delegating_tool", "inherited_values", "within"]

_MODEL_OPTIONS = ("window", "reserve", "model", "format", "prices", "profile", "counter")
"""Options that follow from a model: a sub-agent with its own model does not inherit them."""
_OWN_OPTIONS = ("store", "tenant", "on_event", "plugins", "background")
"""Options that a sub-agent does not inherit. Store and tenant are the same for all agents."""
_KIND_OPTIONS = ("expand", "expand_where")
"""Options that a sub-agent of another kind does not inherit."""
_ADVICE = "It works on its own and does not see this conversation: tell it everything that it needs."


class SubAgentConfig(Protocol):
    """The configuration of an agent that can be a sub-agent: `LoopConfig` or `AgentConfig`."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def model(self) -> Model | str | None: ...
    @property
    def conversation_options(self) -> Mapping[str, Any]: ...
    @property
    def sub_agents(self) -> Mapping[str, SubAgentConfig]: ...
    @property
    def result_lease(self) -> Lease | None: ...
    @property
    def override(self) -> Lease | None: ...
    @property
    def listeners(self) -> tuple[LifecycleListener, ...]: ...
    @property
    def approve(self) -> Approver | None: ...
    @property
    def max_parallel(self) -> int: ...
    @property
    def lock_timeout(self) -> float: ...
    @property
    def cost(self) -> Cost | None: ...
    @property
    def catalog(self) -> HasCatalog | bool: ...
    @property
    def clock(self) -> Clock: ...

    def check_calls(self, *, asynchronous: bool) -> None:
        """Raise BadSetting if something must be awaited and cannot be."""

    def inheriting(self, outer: SubAgentConfig) -> SubAgentConfig:
        """Return the configuration with the values that it inherits from the agent around it."""


class SubAgent(Protocol):
    """An agent that can be a sub-agent."""

    _config: Any


def by_name(sub_agents: Iterable[SubAgent]) -> dict[str, SubAgentConfig]:
    """Return the configurations of agents by name. Raises BadSetting for values that are no agents, and if two have the
    same name.
    """
    is_list = isinstance(sub_agents, list | tuple)
    configs = [getattr(agent, "_config", None) for agent in sub_agents] if is_list else [None]
    if not all(hasattr(config, "inheriting") for config in configs):
        raise BadSetting(f"sub_agents= must be a list of agents, not {sub_agents!r:.80}.")
    named: dict[str, SubAgentConfig] = {}
    for config in cast("list[SubAgentConfig]", configs):
        _check_name(config.name, named)
        named[config.name] = config
    return named


def within(outer: SubAgentConfig, tools: Iterable[str], *, asynchronous: bool) -> dict[str, SubAgentConfig]:
    """Return the sub-agents of an agent, with the values that they inherit. `tools`: names of the agent's tools.

    Raises BadSetting for a name that is taken, and for a sub-agent that must be awaited and cannot be.
    """
    taken, inner = set(tools), dict[str, SubAgentConfig]()
    for name, sub_agent in outer.sub_agents.items():
        _check_name(name, taken)
        sub_agent.check_calls(asynchronous=asynchronous)
        inner[name] = sub_agent.inheriting(outer)
    return inner


def _check_name(name: str, taken: Container[str]) -> None:
    if name in taken:
        raise BadSetting(f"Two helpers have the name {name!r}, and the model could not tell them apart. Pass name=.")


def inherited_values(sub_agent: SubAgentConfig, outer: SubAgentConfig) -> dict[str, Any]:
    """Return the fields of a sub-agent that depend on the agent around it."""
    left_out = {*_OWN_OPTIONS, *(_MODEL_OPTIONS if sub_agent.model is not None else ())}
    left_out |= {*_KIND_OPTIONS} if type(sub_agent) is not type(outer) else set()
    outer_options = outer.conversation_options
    inherited = {name: value for name, value in outer_options.items() if name not in left_out}
    own = {name: value for name, value in sub_agent.conversation_options.items() if name not in ("store", "tenant")}
    shared = {name: outer_options[name] for name in ("store", "tenant") if name in outer_options}
    return {
        "conversation_options": {**inherited, **own, **shared},
        "override": sub_agent.override or outer.override,
        "listeners": tuple(dict.fromkeys((*sub_agent.listeners, *outer.listeners))),
        "lock_timeout": outer.lock_timeout,
        "cost": sub_agent.cost or (outer.cost if sub_agent.model is None else None),
        "catalog": outer.catalog,
        "clock": outer.clock,
    }


def delegating_tool(sub_agent: SubAgentConfig) -> Tool:
    """Return the tool whose calls give tasks to a sub-agent."""

    def call(task: str) -> str:
        raise AssertionError("The agent gives the task to its sub-agent instead.")

    return Tool(
        name=sub_agent.name,
        description=f"{sub_agent.description.strip()}\n\n{_ADVICE}".strip(),
        parameters={
            "type": "object",
            "properties": {"task": {"type": "string", "description": "The task."}},
            "required": ["task"],
            "additionalProperties": False,
        },
        call=call,
        is_repeatable=True,  # The sub-agent goes on in its own conversation.
        lease=sub_agent.result_lease,
    )
