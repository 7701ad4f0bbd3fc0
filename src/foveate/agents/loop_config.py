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
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..conversation import validate
from ..conversation.plugins import checked_plugins, plugin_tools
from ..core.stamps import Lease
from ..errors import BadSetting, MissingExtra
from ..open import KEYWORDS
from ..policies.leases import check_lease
from ..policies.presets.sources import suggest
from ..ports import Clock, Cost, HasCatalog, Model, wall_clock
from .config import checked_catalog
from .events import LifecycleListener
from .limits import Limits, check_seconds
from .tool_calls import Approve, ToolSettings
from .tools import Tool, tools_of

__all__ = ["SHIPPED_TEMPLATE", "Helper", "LoopConfig", "system_prompt"]

SHIPPED_TEMPLATE = "loop.md"
"""In the folder `prompts`."""
_MODEL_OPTIONS = ("window", "reserve", "model", "format", "prices", "profile", "counter")
"""Options that follow from a model: a sub-agent with its own model does not inherit them."""
_OWN_OPTIONS = ("store", "tenant", "on_event", "plugins", "background")
"""Options that a sub-agent does not inherit. Store and tenant are the same for all agents."""


class LoopConfig(Struct, frozen=True, kw_only=True):
    """The parts of a loop agent, apart from its conversation."""

    name: str
    description: str
    """For the model of an agent that has this one as a sub-agent."""
    model: Model | str | None
    """None: the model of the agent around it."""
    system: str
    """The system prompt, with the descriptions that actions have in code."""
    instructions: str
    template: str | Path | None
    """Of the system prompt; None: the shipped one."""
    actions: Mapping[str, Tool]
    sub_agents: Mapping[str, LoopConfig]
    limits: Limits
    cost: Cost | None
    options: Mapping[str, Any]
    """Added to every request."""
    approve: Approve | None
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

    @staticmethod
    def create(
        class_name: str,
        model: Model | str | None,
        *,
        asynchronous: bool,
        name: str,
        description: str,
        instructions: str,
        actions: Iterable[Tool | Callable[..., object]],
        sub_agents: Sequence[LoopConfig],
        limits: Limits | None,
        override: Lease | None,
        result_lease: Lease | None,
        catalog: HasCatalog | bool,
        approve: Approve | None,
        max_parallel: int,
        template: str | Path | None,
        announce_expansions: bool,
        merge_results: bool,
        max_invalid_steps: int,
        max_expansions: int,
        verbose: bool,
        listener: LifecycleListener | None,
        lock_timeout: float,
        cost: Cost | None,
        options: Mapping[str, Any] | None,
        clock: Clock | None,
        conversation_options: dict[str, Any],
    ) -> LoopConfig:
        """Check all values. Raises BadSetting, and TypeError for unknown keywords."""
        _check_keywords(class_name, conversation_options)
        for keyword, text in (("name=", name), ("description=", description), ("instructions=", instructions)):
            validate.text(keyword, text)
        if not name.strip():
            raise BadSetting("name= must not be blank. Records and the catalog know the agent by its name.")
        if model is not None and not isinstance(model, str):
            validate.has_methods(
                "model=", model, ("complete",), "a name such as anthropic:claude-haiku-4-5, or a Model"
            )
        if isinstance(actions, str | Mapping) or not isinstance(actions, Iterable):
            raise BadSetting(f"actions= must be a list of functions and Tools, not {actions!r:.60}.")
        tools = tools_of([*actions, *plugin_tools(checked_plugins(conversation_options.get("plugins", ())))])
        by_name = {tool.name: tool for tool in tools}
        ToolSettings(by_name, approve, max_parallel=max_parallel).check(asynchronous=asynchronous)
        _check_names(sub_agents, set(by_name), asynchronous)
        for keyword, lease in (("message_expiration_override", override), ("result_lease", result_lease)):
            if lease is not None:
                check_lease(keyword, lease)
        for keyword, function in (("cost=", cost), ("clock=", clock), ("on_message_lifecycle=", listener)):
            if function is not None:
                validate.function(keyword, function)
        if options is not None and not isinstance(options, Mapping):
            raise BadSetting(f"options= must be a dict that is added to every request, not {options!r:.60}.")
        helpers = [Helper(sub_agent.name, sub_agent.description) for sub_agent in sub_agents]
        config = LoopConfig(
            name=name,
            description=description,
            model=model,
            system=system_prompt(name, instructions, tools, helpers, template),
            instructions=instructions,
            template=template,
            actions=by_name,
            sub_agents={},
            limits=validate.instance("limits=", limits or Limits(), Limits, "a Limits, such as Limits(turns=20)"),
            cost=cost,
            options=dict(options or {}),
            approve=approve,
            max_parallel=max_parallel,
            override=override,
            result_lease=result_lease,
            catalog=checked_catalog(catalog),
            max_invalid_steps=validate.integer("max_invalid_steps=", max_invalid_steps),
            max_expansions=validate.integer("max_expansions=", max_expansions),
            announce_expansions=validate.instance("announce_expansions=", announce_expansions, bool, "True or False"),
            merge_results=validate.instance("merge_results=", merge_results, bool, "True or False"),
            verbose=validate.instance("verbose=", verbose, bool, "True or False"),
            listeners=() if listener is None else (listener,),
            lock_timeout=check_seconds("lock_timeout=", lock_timeout),
            clock=clock or wall_clock,
            conversation_options=conversation_options if clock is None else {**conversation_options, "clock": clock},
        )
        return _with_sub_agents(config, sub_agents)

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


def _check_names(sub_agents: Sequence[LoopConfig], taken: set[str], asynchronous: bool) -> None:
    """Raise BadSetting for a name that is taken, and for a sub-agent that must be awaited and cannot be."""
    for sub_agent in sub_agents:
        if sub_agent.name in taken:
            raise BadSetting(
                f"Two helpers have the name {sub_agent.name!r}, and the model could not tell them apart. Pass name=."
            )
        taken.add(sub_agent.name)
        ToolSettings(sub_agent.actions, sub_agent.approve).check(asynchronous=asynchronous)
        _check_names(list(sub_agent.sub_agents.values()), set(sub_agent.actions), asynchronous)


def _with_sub_agents(config: LoopConfig, sub_agents: Iterable[LoopConfig]) -> LoopConfig:
    """Return the agent with its sub-agents, which inherit the values that they do not have."""
    inner: dict[str, LoopConfig] = {}
    outer_options = config.conversation_options
    for sub in sub_agents:
        left_out = _OWN_OPTIONS if sub.model is None else (*_OWN_OPTIONS, *_MODEL_OPTIONS)
        inherited = {name: value for name, value in outer_options.items() if name not in left_out}
        own = {name: value for name, value in sub.conversation_options.items() if name not in ("store", "tenant")}
        shared = {name: outer_options[name] for name in ("store", "tenant") if name in outer_options}
        merged = replace(
            sub,
            conversation_options={**inherited, **own, **shared},
            override=sub.override or config.override,
            verbose=sub.verbose or config.verbose,
            listeners=(*sub.listeners, *config.listeners),
            lock_timeout=config.lock_timeout,
            approve=sub.approve or config.approve,
            cost=sub.cost or (config.cost if sub.model is None else None),
            catalog=config.catalog,
            clock=config.clock,
        )
        inner[sub.name] = _with_sub_agents(merged, sub.sub_agents.values())
    return replace(config, sub_agents=inner)


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
