"""Opens what a loop agent lives on: the store with its catalog, the conversation, the model.

`House` belongs to one agent and the agents inside of it; they share its store. Nothing is opened before it is needed.
Knows nothing of runs.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..core.catalog import prompt_texts
from ..core.events import Event
from ..errors import BadSetting
from ..open import cost_of, grouped, open_async_conversation, open_conversation, open_model, open_store, open_summarizer
from ..ports import Clock, Cost, HasCatalog, Model
from ..settings import Settings, load
from .actions import Leases, leases_of
from .lifecycle import Lifecycle
from .limits import Limits
from .tools import Tool

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation
    from ..core.stamps import Lease
    from .calling import Approve

__all__ = ["OWN", "House", "Looping", "Opened"]

OWN = "loop"
"""The name under which a loop agent makes edits of its own."""
_UNTOUCHED = ("off", "none")
"""Presets that want next to nothing to be done; what expires is none of it then."""
_SAID = ("store", "format", "model", "window", "reserve", "tenant", "summarizer", "expand", "expand_where")


class Looping(Struct, frozen=True, kw_only=True):
    """What a loop agent is made of, beside its conversation."""

    name: str
    description: str
    model: Model | str | None
    """None: that of the agent around it."""
    system: str
    actions: Mapping[str, Tool]
    sub_agents: Mapping[str, Looping]
    limits: Limits
    cost: Cost | None
    options: Mapping[str, Any]
    approve: Approve | None
    at_most: int
    override: Lease | None
    result_lease: Lease | None
    catalog: HasCatalog | bool
    """True: the store itself."""
    tries: int
    expansions: int
    tells_expansions: bool
    one_message: bool
    verbose: bool
    waits: float
    clock: Clock
    keywords: Mapping[str, Any]
    """Of `open_conversation`, as far as they were said."""


class Opened(Struct, frozen=True):
    """What an agent runs on."""

    conversation: Conversation | AsyncConversation
    leases: Leases
    model: Model
    cost: Cost | None


class House:
    """Opens things for one agent, and closes what it opened."""

    def __init__(self, *, asynchronous: bool) -> None:
        self._asynchronous = asynchronous
        self._store: Any = None
        self._owns_store = False
        self._models: dict[str, Model] = {}

    def open(self, looping: Looping, name: str, model: Model | None, lifecycle: Lifecycle | None = None) -> Any:
        """The conversation `name` for an agent, to be awaited if the house is asynchronous: an Opened.

        `model`: of the agent around it. Raises BadSetting where there is none at all.
        """
        said = dict(looping.keywords)
        its_model = self._model(looping.model) if looping.model is not None else model
        if its_model is None:
            raise BadSetting(f"The agent {looping.name} has no model. Say model=, such as anthropic:claude-haiku-4-5.")
        said.setdefault("format", its_model.format)
        said.setdefault("model", its_model.name)
        if isinstance(window := getattr(its_model, "window", None), int):
            said.setdefault("window", window)
        merged = _merged(said)
        if self._store is None:
            place = merged["store"]
            self._store = open_store(place) if isinstance(place, str) else place
            self._owns_store = isinstance(place, str)
        said["store"] = self._store
        tenant, summarizer = merged["tenant"], merged["summarizer"]
        catalog = self._store if looping.catalog is True else (looping.catalog or None)
        if catalog is not None and isinstance(summarizer, str) and ":" in summarizer:
            said["summarizer"] = open_summarizer(summarizer, prompts=prompt_texts(catalog.prompts(tenant)))
        if isinstance(merged["policy"], str) and merged["policy"] not in _UNTOUCHED:
            said["settings"] = {"expire": {}, **(said.get("settings") or {})}
        if lifecycle is not None:
            said["on_event"] = _both(lifecycle, said.get("on_event"))
        leases = leases_of(looping.name, catalog, tenant, looping.override)
        cost = looping.cost or cost_of(its_model.name)
        opened = open_async_conversation if self._asynchronous else open_conversation
        return _made(opened(name, **grouped(said)), lambda chat: Opened(chat, leases, its_model, cost))

    def adopt(self, model: Model) -> None:
        """Close this model too."""
        self._models[f"handed in as {model.name}"] = model

    def close(self) -> list[object]:
        """Let go of the store and of the models, if they were opened here. To be awaited: what can be."""
        if self._owns_store:
            self._store.close()
        closes = [getattr(model, "close", None) for model in self._models.values()]
        return [close() for close in closes if callable(close)]

    def _model(self, model: Model | str) -> Model:
        if not isinstance(model, str):
            return model
        if model not in self._models:
            self._models[model] = open_model(model, asynchronous=self._asynchronous)
        return self._models[model]


def _made(opened: Any, then: Callable[[Any], Opened]) -> Any:
    if not inspect.isawaitable(opened):
        return then(opened)

    async def later() -> Opened:
        return then(await opened)

    return later()


def _merged(said: Mapping[str, Any]) -> Settings:
    """What keywords, the environment and `foveate.toml` come to together, before anything is opened."""
    return load(
        policy=said.get("policy"),
        environ=os.environ,
        folder=Path(),
        settings=said.get("settings"),
        has_plugins=bool(said.get("plugins")),
        **{name: said.get(name) for name in _SAID},
    )


def _both(one: Callable[[Event], object], other: Callable[[Event], object] | None) -> Callable[[Event], object]:
    def on_event(event: Event) -> None:
        one(event)
        if other is not None:
            other(event)

    return on_event
