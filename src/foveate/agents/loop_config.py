"""The configuration of a loop agent, with its system prompt, checked before anything is opened.

The system prompt is a Jinja2 template, the shipped one or your own. It is rendered once, so that every model call sends
the same text and the provider's cache keeps it. Templates run in a sandbox and can change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from ..conversation import validate
from ..conversation.plugins import checked_plugins, plugin_tools
from ..core.stamps import Lease
from ..errors import BadSetting, MissingExtra
from ..open import KEYWORDS
from ..policies.leases import check_lease
from ..policies.presets.sources import suggest
from ..ports import Clock, Cost, HasCatalog, Model
from .config import check_run, checked_catalog
from .events import LifecycleListener
from .limits import Limits, check_lock_timeout
from .sub_agents import SubAgentConfig, inherited_values, within
from .tool_calls import Approver, ToolSettings
from .tools import Tool, ToolSource, tools_of

__all__ = ["SHIPPED_TEMPLATE", "Helper", "LoopConfig", "actions_of", "system_prompt"]

SHIPPED_TEMPLATE = "loop.md"
"""In the folder `prompts`."""


class LoopConfig(Struct, frozen=True, kw_only=True):
    """The parts of a loop agent, apart from its conversation."""

    name: str
    description: str
    """For the model of an agent that has this one as a sub-agent."""
    model: Model | str | None
    """None: the model of the agent around it."""
    instructions: str
    template: str | Path | None
    """Of the system prompt; None: the shipped one."""
    actions: Mapping[str, Tool]
    sub_agents: Mapping[str, SubAgentConfig]
    limits: Limits
    cost: Cost | None
    options: Mapping[str, Any]
    """Added to every request."""
    approve: Approver | None
    max_parallel: int
    override: Lease | None
    """A lease for all results of a run."""
    result_lease: Lease | None
    """The lease of its result in the conversation of the agent around it."""
    catalog: HasCatalog | bool
    """True: the store itself."""
    max_invalid_steps: int
    max_expansions: int
    announce_expansions: bool
    merge_results: bool
    verbose: bool
    listeners: tuple[LifecycleListener, ...]
    """Called with each MessageLifecycleEvent: the agent's own listener, and those of the agents around it."""
    lock_timeout: float
    clock: Clock
    conversation_options: Mapping[str, Any]
    """Keywords of `open_conversation`."""
    system: str = ""
    """The system prompt, with the descriptions that actions have in code. `checked` renders it."""

    def checked(self, class_name: str, *, asynchronous: bool) -> LoopConfig:
        """Return the configuration with its system prompt, and with sub-agents that inherit from it.

        Raises BadSetting for values that are not allowed, and TypeError for unknown keywords.
        """
        _check_keywords(class_name, self.conversation_options)
        for name in ("name", "description", "instructions"):
            validate.text(f"{name}=", getattr(self, name))
        if not self.name.strip():
            raise BadSetting("name= must not be blank. Records and the catalog know the agent by its name.")
        if self.model is not None and not isinstance(self.model, str):
            allowed = "a name such as anthropic:claude-haiku-4-5, or a Model"
            validate.has_methods("model=", self.model, ("complete",), allowed)
        self.check_calls(asynchronous=asynchronous)
        if self.override is not None:
            check_lease("message_expiration_override", self.override)
        if self.listeners:
            validate.listener("on_message_lifecycle=", self.listeners[0])
        check_run(self.result_lease, self.limits, self.options, {"cost=": self.cost, "clock=": self.clock})
        checked_catalog(self.catalog)
        check_lock_timeout(self.lock_timeout)
        for name in ("max_invalid_steps", "max_expansions"):
            validate.integer(f"{name}=", getattr(self, name))
        for name in ("announce_expansions", "merge_results", "verbose"):
            validate.instance(f"{name}=", getattr(self, name), bool, "True or False")
        sub_agents = within(self, self.actions, asynchronous=asynchronous)
        config = replace(self, sub_agents=sub_agents)
        return replace(config, system=config.described_system(lambda tool: tool))

    def check_calls(self, *, asynchronous: bool) -> None:
        """Raise BadSetting if something must be awaited and cannot be."""
        ToolSettings(self.actions, self.approve, max_parallel=self.max_parallel).check(asynchronous=asynchronous)
        for sub_agent in self.sub_agents.values():
            sub_agent.check_calls(asynchronous=asynchronous)

    def inheriting(self, outer: SubAgentConfig) -> LoopConfig:
        """Return the configuration with the values that it inherits from the agent around it."""
        verbose = self.verbose or (isinstance(outer, LoopConfig) and outer.verbose)
        values = inherited_values(self, outer)
        config = replace(self, **values, verbose=verbose, approve=self.approve or outer.approve)
        inner = {name: sub_agent.inheriting(config) for name, sub_agent in self.sub_agents.items()}
        return replace(config, sub_agents=inner)

    def described_system(self, described: Callable[[Tool], Tool]) -> str:
        """Return the system prompt with the actions as `described` returns them."""
        tools = [described(tool) for tool in self.actions.values()]
        helpers = [Helper(sub_agent.name, sub_agent.description) for sub_agent in self.sub_agents.values()]
        return system_prompt(self.name, self.instructions, tools, helpers, self.template)


def _check_keywords(class_name: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, for a keyword that `open_conversation` does not have."""
    for name in options:
        if name not in KEYWORDS:
            raise TypeError(f"{class_name}() got an unexpected keyword argument {name!r}.{suggest(name, KEYWORDS)}")


def actions_of(actions: Iterable[Tool | ToolSource], plugins: object) -> dict[str, Tool]:
    """Return actions by name, with those of plugins. Raises BadSetting for values that are no actions."""
    if isinstance(actions, str | Mapping) or not isinstance(actions, Iterable):
        raise BadSetting(f"actions= must be a list of functions and Tools, not {actions!r:.60}.")
    return {tool.name: tool for tool in tools_of([*actions, *plugin_tools(checked_plugins(cast(Any, plugins)))])}


# ------------------------------------------------------------------------------------------------------ system prompt


class Helper(Struct, frozen=True):
    """An action or a sub-agent, as a template sees it."""

    name: str
    description: str
    parameters: str = ""
    """JSON Schema as one line of JSON; "" for a sub-agent."""


def system_prompt(
    name: str,
    instructions: str,
    actions: Sequence[Tool],
    sub_agents: Sequence[Helper],
    template: str | Path | None = None,
) -> str:
    """Return the system prompt. `template`: a text, or the Path of a file; None: the shipped one.

    A template sees `name`, `instructions`, `actions` and `sub_agents` (each with name, description, parameters), and
    `action_count` and `sub_agent_count`. Raises BadSetting for a faulty template, and MissingExtra without Jinja2.
    """
    helpers = [
        Helper(tool.name, tool.description, json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":")))
        for tool in actions
    ]
    values = {
        "name": name,
        "instructions": instructions.strip(),
        "actions": helpers,
        "action_count": len(helpers),
        "sub_agents": list(sub_agents),
        "sub_agent_count": len(sub_agents),
    }
    return _render(_template_text(template), values)


def _render(template: str, values: dict[str, object]) -> str:
    try:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingExtra("A loop agent, whose prompt is a template of Jinja2,", "agents") from None
    try:
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
        return environment.from_string(template).render(values).strip()
    except TemplateError as error:
        raise BadSetting(f"The template of the prompt has a fault: {type(error).__name__}: {error}.") from error
    except Exception as error:  # An expression in a template can raise anything.
        raise BadSetting(f"The template of the prompt cannot be rendered: {type(error).__name__}: {error}.") from error


def _template_text(template: str | Path | None) -> str:
    if template is None:
        return _shipped()
    if isinstance(template, Path):
        try:
            return template.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise BadSetting(f"The template {str(template)!r} cannot be read: {error}.") from error
    return validate.text("template=, if not a Path,", template)


@cache
def _shipped() -> str:
    return (files(__package__) / "prompts" / SHIPPED_TEMPLATE).read_text(encoding="utf-8")
