"""The configuration of an agent that calls tools, checked before anything is opened."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..conversation import validate
from ..conversation.plugins import checked_plugins, plugin_tools
from ..core.stamps import Lease
from ..errors import BadSetting
from ..expand.tool import TOOL
from ..open import KEYWORDS, check_price, cost_of, open_model
from ..policies.leases import check_lease
from ..ports import Clock, Cost, HasCatalog, Model, wall_clock
from .events import LifecycleListener
from .limits import Limits, check_lock_timeout
from .lock import LOCK_TIMEOUT
from .sub_agents import SubAgent, SubAgentConfig, by_name, delegating_tool, inherited_values, within
from .tool_calls import Approver, ToolSettings
from .tools import Tool, ToolSource, tools_of

__all__ = [
    "BUSY",
    "AgentConfig",
    "Resource",
    "ResultType",
    "WrongAnswer",
    "check_run",
    "checked_catalog",
    "checked_resources",
    "new_run_id",
    "options_of",
]

BUSY = (
    "This agent is busy: it does one thing at a time. Wait until it has finished, close the stream that you left "
    "early, or create a second agent."
)
"""The error of a second call at the same time."""

_LONGEST = 500
"""Characters of an error that a model receives."""


def _last_fenced(text: str) -> str | None:
    """Return the content of the last fenced block; None if there is none."""
    found: str | None = None
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None:
            block = [] if line.rstrip().endswith(("```", "```json")) else None
        elif line.lstrip().startswith("```"):
            found = "\n".join(block) if block else found
            block = None
        else:
            block.append(line)
    return found


class WrongAnswer(ValueError):
    """A final answer is not a value of the wanted type. The text says why, in words for the model."""


class ResultType:
    """The type of a final answer: a dataclass, a Struct, a TypedDict, or any other type that JSON can express."""

    def __init__(self, kind: Any) -> None:
        """Raises BadSetting for a type that JSON cannot express."""
        try:
            self._decoder = msgspec.json.Decoder(kind, strict=False)
            schema = msgspec.json.schema(kind)
        except Exception as error:
            raise BadSetting(
                "result_type= must be a type that JSON can express, such as a dataclass, a TypedDict or a Struct of "
                f"msgspec, not {kind!r:.80}: {str(error)[:_LONGEST]}."
            ) from error
        self.name = getattr(kind, "__name__", str(kind))
        self.instruction = (
            "When you are done, answer with one JSON value of this schema, and with nothing else:\n"
            + json.dumps(schema, ensure_ascii=False)
        )

    def read(self, text: str) -> object:
        """Return the value in an answer, which may stand in a fenced block. Raises WrongAnswer."""
        fenced = _last_fenced(text)
        try:
            return self._decoder.decode((text if fenced is None else fenced).strip() or "null")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise WrongAnswer(
                f"Your answer cannot be read: {str(error)[:_LONGEST]}. Answer again, with the JSON value alone."
            ) from error

    def instruct(self, system: object) -> object:
        """Return a system prompt, in any form that formats accept, followed by the instruction for this type."""
        match system:
            case None | "":
                return self.instruction
            case str():
                return f"{system}\n\n{self.instruction}"
            case list() | tuple():
                return [*system, {"type": "text", "text": self.instruction}]
            case _:
                return [system, {"type": "text", "text": self.instruction}]


class AgentConfig(Struct, frozen=True, kw_only=True):
    """The parts of an agent, apart from its open conversation."""

    name: str
    """The name under which its runs are stored."""
    model: Model | None
    """None: the model of the agent around it."""
    tools: ToolSettings
    system: object
    """The system prompt, with the instruction for `result_type`."""
    limits: Limits
    clock: Clock
    new_id: Callable[[], str]
    conversation: Any
    """The name of the conversation, or an open conversation."""
    conversation_options: Mapping[str, Any]
    """The keywords to open it with, if it is a name."""
    cost: Cost | None = None
    options: Mapping[str, Any] | None = None
    """Added to every request."""
    result_type: ResultType | None = None
    """The type of the final answer, if not text."""
    lock_timeout: float = LOCK_TIMEOUT
    """Seconds to wait for another agent in the same conversation."""
    catalog: HasCatalog | bool = True
    """True: the store of the conversation."""
    description: str = ""
    """For the model of an agent that has this one as a sub-agent."""
    sub_agents: Mapping[str, SubAgentConfig] = {}
    """Other agents, each behind a tool of its name."""
    result_lease: Lease | None = None
    """The lease of its result in the conversation of the agent around it."""
    override: Lease | None = None
    """Of a sub-agent: the lease for all results of the agent around it."""
    listeners: tuple[LifecycleListener, ...] = ()
    """Of a sub-agent: the listeners of the agents around it."""

    @property
    def approve(self) -> Approver | None:
        """Asked before a call of a tool that needs approval."""
        return self.tools.approve

    @property
    def max_parallel(self) -> int:
        """How many calls, or sub-agents, run at once."""
        return self.tools.max_parallel

    def check_calls(self, *, asynchronous: bool) -> None:
        """Raise BadSetting if something must be awaited and cannot be."""
        self.tools.check(asynchronous=asynchronous)
        for sub_agent in self.sub_agents.values():
            sub_agent.check_calls(asynchronous=asynchronous)

    def inheriting(self, outer: SubAgentConfig) -> AgentConfig:
        """Return the configuration with the values that it inherits from the agent around it.

        Raises BadSetting for an agent in an open conversation.
        """
        if not isinstance(self.conversation, str):
            raise BadSetting(
                f"Sub-agent {self.name} has an open conversation. Leave conversation= out: each task has its own."
            )
        tools = replace(self.tools, approve=self.approve or outer.approve)
        config = replace(self, **inherited_values(self, outer), tools=tools)
        inner = {name: sub_agent.inheriting(config) for name, sub_agent in self.sub_agents.items()}
        return replace(config, sub_agents=inner)

    @staticmethod
    def create(
        kind: Any,
        model: str | Model | None,
        *,
        asynchronous: bool,
        conversation: object,
        name: str,
        description: str,
        system: object,
        tools: Iterable[Tool | ToolSource],
        sub_agents: Iterable[SubAgent],
        result_lease: Lease | None,
        limits: Limits | None,
        approve: Approver | None,
        approve_all: bool,
        max_parallel: int,
        result_type: Any,
        options: Mapping[str, Any] | None,
        lock_timeout: float,
        catalog: HasCatalog | bool,
        cost: Cost | None,
        clock: Clock | None,
        new_id: Callable[[], str] | None,
        conversation_options: dict[str, Any],
    ) -> AgentConfig:
        """Check all values, and open the model. `kind`: the agent's class. Raises BadSetting."""
        validate.text("name=", name)
        validate.text("description=", description)
        name = name or kind.default_name
        _check_conversation(kind, conversation, conversation_options)
        tools = tools_of(tools)
        helpers = by_name(sub_agents)
        plugins = plugin_tools(checked_plugins(conversation_options.get("plugins", ())))
        all_tools = tools_of([*tools, *plugins, *map(delegating_tool, helpers.values())])
        tool_settings = ToolSettings({tool.wire_name: tool for tool in all_tools}, approve, approve_all, max_parallel)
        tool_settings.check(asynchronous=asynchronous)
        check_run(result_lease, limits, options, {"clock=": clock, "new_id=": new_id, "cost=": cost})
        answer_type = ResultType(result_type) if result_type is not None else None
        opened = None if model is None else _open(model, asynchronous=asynchronous)
        if opened is not None:
            cost = cost or cost_of(opened.name)
            if limits is not None and limits.money is not None:
                check_price("limits.money", opened.name, cost)
        system = kind.default_system if system is None else _checked_system(system)
        catalog = checked_catalog(catalog)
        if isinstance(conversation, str):
            conversation = conversation or name
            conversation_options = {
                "expand": True,  # Placeholders name handles, which only `expand` takes.
                **({} if isinstance(catalog, bool) else {"prompts": catalog.prompts}),
                **({} if opened is None else options_of(opened)),
                **conversation_options,
                **({"clock": clock} if clock else {}),
            }
            if conversation_options["expand"] is True and TOOL in tool_settings.tools:
                raise BadSetting(
                    f"A tool is named {TOOL}, as the one that expand=True adds. Rename it: tool(function, "
                    f'name="..."), or pass expand=False.'
                )
        config = AgentConfig(
            name=name,
            description=description,
            sub_agents=helpers,
            result_lease=result_lease,
            model=opened,
            tools=tool_settings,
            system=answer_type.instruct(system) if answer_type else system,
            limits=limits or Limits(),
            clock=clock or wall_clock,
            new_id=new_id or new_run_id,
            conversation=conversation,
            conversation_options=conversation_options,
            cost=cost,
            options=options,
            result_type=answer_type,
            lock_timeout=check_lock_timeout(lock_timeout),
            catalog=catalog,
        )
        own_tools = [tool.name for tool in all_tools if tool.name not in helpers]
        return replace(config, sub_agents=within(config, own_tools, asynchronous=asynchronous))


def _check_conversation(kind: Any, conversation: object, options: Mapping[str, Any]) -> None:
    """Raise an error unless this is a name with options of `open_conversation`, or an open conversation without."""
    for keyword in options:
        if keyword not in KEYWORDS:
            raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {keyword!r}")
    if isinstance(conversation, str):
        return
    validate.has_methods(
        "conversation=", conversation, ("append", "prompt", "record"), "a name or an open conversation"
    )
    if options:
        names = ", ".join(options)
        raise BadSetting(f"{names}: an open conversation keeps its options. Pass them when you open it.")


def check_run(lease: Lease | None, limits: object, options: object, functions: Mapping[str, object]) -> None:
    """Raise BadSetting for values that a run cannot use. `functions`: by keyword; None for those of the library."""
    if lease is not None:
        check_lease("result_lease", lease)
    if limits is not None:
        validate.instance("limits=", limits, Limits, "a Limits, such as Limits(turns=20)")
    if options is not None and not isinstance(options, Mapping):
        raise BadSetting(f"options= must be a dict that is added to every request, not {options!r:.60}.")
    for keyword, value in functions.items():
        if value is not None:
            validate.function(keyword, value)


def checked_catalog(catalog: object) -> HasCatalog | bool:
    """Return a catalog that an agent can read. Raises BadSetting for any other value."""
    if isinstance(catalog, bool):
        return catalog
    allowed = "a Catalog, True for the store, or False"
    validate.has_methods("catalog=", catalog, ("bindings", "actions", "prompts"), allowed)
    return cast("HasCatalog", catalog)


def _open(model: str | Model, *, asynchronous: bool) -> Model:
    if isinstance(model, str):
        return open_model(model, asynchronous=asynchronous)
    validate.has_methods("model=", model, ("complete",), "a name such as anthropic:claude-haiku-4-5, or a Model")
    for field in ("name", "format"):
        validate.instance(f"model.{field}", getattr(model, field, None), str, "a string")
    return model


def _checked_system(system: object) -> object:
    """Return a system prompt in a form that every format accepts: text, a block, a message, or a list of these.

    Raises BadSetting for any other value, which would fail only at the first request.
    """
    for part in system if isinstance(system, list | tuple) else [system]:
        if not (part is None or isinstance(part, str | Mapping) or hasattr(part, "model_dump")):
            raise BadSetting(f"system= must be a text, or a list of texts and blocks, not {part!r:.60}.")
    return system


def options_of(model: Model) -> dict[str, Any]:
    """Return the conversation options that follow from the model."""
    options: dict[str, Any] = {"format": model.format, "model": model.name}
    window = getattr(model, "window", None)
    return options | ({"window": window} if isinstance(window, int) else {})


class Resource(Protocol):
    """A resource that an agent closes with itself."""

    def close(self) -> object:
        """Close it. An async agent awaits what this returns, if it can be awaited."""


def checked_resources(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Return resources that a program passed in. Raises BadSetting for values without `close`."""
    validate.has_methods("resources=", resources, ("__iter__",), "a list of objects with a method `close`")
    closable = tuple(resources)
    for resource in closable:
        validate.has_methods("An element of resources=", resource, ("close",), "an object with a method `close`")
    return closable


def new_run_id() -> str:
    """Return a unique id for a run."""
    return uuid.uuid4().hex
