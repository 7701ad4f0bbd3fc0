"""The resources of a loop agent: the store with its catalog, the conversation, the model.

One `Resources` belongs to an agent and its sub-agents, which share its store. Nothing is opened before it is needed.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..core.events import Event
from ..errors import BadSetting
from ..open import cost_of, grouped, open_async_conversation, open_conversation, open_model, open_store
from ..ports import Cost, Model
from ..settings import Settings, load
from .agent_catalog import AgentCatalog
from .config import options_of
from .events import Lifecycle
from .sub_agents import SubAgentConfig

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation

__all__ = ["OWN_POLICY", "Resources", "Session"]

OWN_POLICY = "loop"
"""The policy name of a loop agent's own edits."""
_SETTINGS = ("store", "format", "model", "window", "reserve", "tenant", "summarizer", "expand", "expand_where")


class Session(Struct, frozen=True):
    """An open conversation of a loop agent, with what belongs to it."""

    conversation: Conversation | AsyncConversation
    catalog: AgentCatalog
    model: Model
    cost: Cost | None


class Resources:
    """Opens resources for one agent and its sub-agents, and closes the ones it opened."""

    def __init__(self, *, asynchronous: bool) -> None:
        self._asynchronous = asynchronous
        self._store: Any = None
        self._owns_store = False
        self._tenant: str | None = None
        self._window: int | None = None
        self._models: dict[str, Model] = {}

    def open(self, config: SubAgentConfig, name: str, model: Model | None) -> Any:
        """Open the conversation `name` for an agent. Returns a Session, or an awaitable of one if asynchronous.

        `model`: the model of the agent around it. Raises BadSetting if there is no model at all.
        """
        own_model = self._open_model(config.model) if config.model is not None else model
        if own_model is None:
            raise BadSetting(f"Agent {config.name} has no model. Pass model=, such as anthropic:claude-haiku-4-5.")
        options = {**options_of(own_model), **config.conversation_options}
        if self._window is not None and config.model is None:
            options.setdefault("window", self._window)
        if self._tenant is not None:
            options["tenant"] = self._tenant
        settings = _load(options)
        if self._store is None:
            place = settings["store"]
            self._store = open_store(place) if isinstance(place, str) else place
            self._owns_store = isinstance(place, str)
        options["store"] = self._store
        tenant, summarizer = settings["tenant"], settings["summarizer"]
        catalog = self._store if config.catalog is True else (config.catalog or None)
        if catalog is not None and catalog is not self._store:
            options.setdefault("prompts", catalog.prompts)
        lifecycle = Lifecycle(config.listeners, agent=config.name, conversation=name, own=OWN_POLICY)
        if config.listeners:
            options["on_event"] = _both(lifecycle, options.get("on_event"))
        names_summarizer = isinstance(summarizer, str)  # A function may have prompts of its own.
        own_catalog = AgentCatalog(
            config.name, catalog, tenant, config.override, skips_unknown_prompts=names_summarizer
        )
        cost = config.cost or cost_of(own_model.name)
        open_it = open_async_conversation if self._asynchronous else open_conversation
        chat: Any = open_it(name, **grouped(options))

        def session(opened: Any) -> Session:
            if config.listeners:
                lifecycle.begin(lambda: opened.view.entries)
            return Session(opened, own_catalog, own_model, cost)

        async def session_later() -> Session:
            return session(await chat)

        return session_later() if inspect.isawaitable(chat) else session(chat)

    def use_conversation(self, conversation: Conversation | AsyncConversation) -> None:
        """Open conversations in the store of the agent's own one, for its tenant. `close` does not close that store.

        Its window is the default for sub-agents that have no model of their own.
        """
        access = conversation._agent
        self._store, self._tenant, self._window = access.store, access.head.tenant, access.window

    def adopt(self, model: Model) -> None:
        """Close this model too."""
        self._models[f"passed as {model.name}"] = model

    def close(self) -> list[object]:
        """Close the store and the models that were opened here. Return what the models' `close` returned."""
        if self._owns_store:
            self._store.close()
        closes = [getattr(model, "close", None) for model in self._models.values()]
        return [close() for close in closes if callable(close)]

    def _open_model(self, model: Model | str) -> Model:
        if not isinstance(model, str):
            return model
        if model not in self._models:
            self._models[model] = open_model(model, asynchronous=self._asynchronous)
        return self._models[model]


def _load(options: Mapping[str, Any]) -> Settings:
    """Merge keywords, the environment and `foveate.toml` before anything is opened."""
    return load(
        policy=options.get("policy"),
        environ=os.environ,
        folder=Path(),
        settings=options.get("settings"),
        has_plugins=bool(options.get("plugins")),
        **{name: options.get(name) for name in _SETTINGS},
    )


def _both(first: Callable[[Event], object], second: Callable[[Event], object] | None) -> Callable[[Event], object]:
    def on_event(event: Event) -> None:
        first(event)
        if second is not None:
            second(event)

    return on_event
