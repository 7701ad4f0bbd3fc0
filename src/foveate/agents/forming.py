"""What a loop agent is made of, looked at before anything is opened.

A value that is not allowed is refused here, by its name. Sub-agents take what they do not say themselves from the agent
around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from .. import given
from ..core.stamps import Lease
from ..errors import BadSetting
from ..open import KEYWORDS
from ..plugins import brought, listed
from ..policies.leases import check_lease
from ..policies.presets.sources import suggest
from ..ports import Clock, Cost, HasCatalog, Model
from .calling import Approve, Calling
from .limits import Limits, seconds
from .making import wall_clock
from .opening import Looping
from .prompting import Helper, system_prompt
from .tools import Tool, tools_of

__all__ = ["formed"]

_OF_MODEL = ("window", "reserve", "model", "format", "prices", "profile", "counter")
"""Keywords that follow from a model: an agent with one of its own does not take them from the agent around it."""
_OWN = ("store", "tenant", "on_event", "plugins", "background")
"""Keywords that an agent does not take from the agent around it: some are not its affair, and one store is for all."""


def formed(
    who: str,
    model: Model | str | None,
    *,
    asynchronous: bool,
    name: str,
    description: str,
    instructions: str,
    actions: Iterable[Tool | Callable[..., object]],
    sub_agents: Sequence[Looping],
    limits: Limits | None,
    override: Lease | None,
    result_lease: Lease | None,
    catalog: HasCatalog | bool,
    approve: Approve | None,
    at_most: int,
    template: str | Path | None,
    tells_expansions: bool,
    one_message: bool,
    tries: int,
    expansions: int,
    verbose: bool,
    waits: float,
    cost: Cost | None,
    options: Mapping[str, Any] | None,
    clock: Clock | None,
    keywords: dict[str, Any],
) -> Looping:
    """The parts of an agent, together. `who`: its class. Raises BadSetting, and TypeError for unknown keywords."""
    _check_known(who, keywords)
    for what, text in (("name=", name), ("description=", description), ("instructions=", instructions)):
        given.text(what, text)
    if not name.strip():
        raise BadSetting("name= is blank; an agent is known by its name in records and in the catalog.")
    if model is not None and not isinstance(model, str):
        given.like("model=", model, ("complete",), "a name such as anthropic:claude-haiku-4-5, or a Model")
    if isinstance(actions, str | Mapping) or not isinstance(actions, Iterable):
        raise BadSetting(f"actions= is a list of functions and Tools, not {actions!r:.60}.")
    tools = tools_of([*actions, *brought(listed(keywords.get("plugins", ())))])
    by_name = {tool.name: tool for tool in tools}
    Calling(by_name, approve, at_most=at_most).check(asynchronous=asynchronous)
    _check_names(sub_agents, set(by_name), asynchronous)
    for what, lease in (("message_expiration_override", override), ("result_lease", result_lease)):
        if lease is not None:
            check_lease(what, lease)
    for what, called in (("cost=", cost), ("clock=", clock)):
        if called is not None:
            given.callable_(what, called)
    if options is not None and not isinstance(options, Mapping):
        raise BadSetting(f"options= is a dict of what is said with every request, not {options!r:.60}.")
    if not isinstance(catalog, bool):
        given.like("catalog=", catalog, ("bindings", "actions", "prompts"), "a Catalog, True for the store, or False")
    helpers = [Helper(one.name, one.description) for one in sub_agents]
    looping = Looping(
        name=name,
        description=description,
        model=model,
        system=system_prompt(name, instructions, tools, helpers, template),
        actions=by_name,
        sub_agents={},
        limits=given.instance("limits=", limits or Limits(), Limits, "a Limits, such as Limits(turns=20)"),
        cost=cost,
        options=dict(options or {}),
        approve=approve,
        at_most=at_most,
        override=override,
        result_lease=result_lease,
        catalog=catalog,
        tries=given.whole("tries=", tries),
        expansions=given.whole("expansions=", expansions),
        tells_expansions=given.instance("tells_expansions=", tells_expansions, bool, "True or False"),
        one_message=given.instance("one_message=", one_message, bool, "True or False"),
        verbose=given.instance("verbose=", verbose, bool, "True or False"),
        waits=seconds("waits=", waits),
        clock=clock or wall_clock,
        keywords=keywords if clock is None else {**keywords, "clock": clock},
    )
    return _around(looping, sub_agents)


def _check_known(who: str, keywords: Mapping[str, Any]) -> None:
    """Raises TypeError, as Python does, for a keyword that `open_conversation` does not have."""
    if unknown := [name for name in keywords if name not in KEYWORDS]:
        raise TypeError(f"{who}() got an unexpected keyword argument {unknown[0]!r}.{suggest(unknown[0], KEYWORDS)}")


def _check_names(sub_agents: Sequence[Looping], taken: set[str], asynchronous: bool) -> None:
    """Raises BadSetting for a name that is taken, and for a sub-agent that must be awaited where nothing can be."""
    for one in sub_agents:
        if one.name in taken:
            raise BadSetting(f"Two helpers are called {one.name!r}; the model could not tell them apart. Say name=.")
        taken.add(one.name)
        Calling(one.actions, one.approve).check(asynchronous=asynchronous)
        _check_names(list(one.sub_agents.values()), set(one.actions), asynchronous)


def _around(looping: Looping, sub_agents: Iterable[Looping]) -> Looping:
    """The agent with its sub-agents, which take from it what they do not say themselves."""
    inner: dict[str, Looping] = {}
    for sub in sub_agents:
        left_out = _OWN if sub.model is None else (*_OWN, *_OF_MODEL)
        taken = {name: value for name, value in looping.keywords.items() if name not in left_out}
        own = {name: value for name, value in sub.keywords.items() if name not in ("store", "tenant")}
        shared = {name: looping.keywords[name] for name in ("store", "tenant") if name in looping.keywords}
        merged = replace(
            sub,
            keywords={**taken, **own, **shared},
            override=sub.override or looping.override,
            verbose=sub.verbose or looping.verbose,
            waits=looping.waits,
            approve=sub.approve or looping.approve,
            cost=sub.cost or (looping.cost if sub.model is None else None),
            catalog=looping.catalog,
            clock=looping.clock,
        )
        inner[sub.name] = _around(merged, sub.sub_agents.values())
    return replace(looping, sub_agents=inner)
