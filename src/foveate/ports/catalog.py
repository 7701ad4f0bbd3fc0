"""What keeps the set-up of agents: their actions, bindings and prompts, each tenant's apart."""

from __future__ import annotations

from typing import Protocol

from ..core.catalog import Action, Binding, Prompt
from .store import Store

__all__ = ["Catalog", "Database"]


class Catalog(Protocol):
    """What a tenant has set up for its agents. Both of foveate's stores are one too.

    Values are checked before they are kept: BadSetting for what is not allowed (`core.catalog`). Whatever is kept under
    the same name is replaced.
    """

    def put_action(self, tenant: str, action: Action) -> None:
        """Keep an action. Raises BadSetting where there is no prompt of the name that it names."""
        ...

    def put_binding(self, tenant: str, binding: Binding) -> None:
        """Keep what an agent has an action for. Raises BadSetting where there is no such action or prompt."""
        ...

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        """Keep a prompt. Raises BadSetting where another one's name means the same (`core.catalog.same_prompt`)."""
        ...

    def actions(self, tenant: str) -> list[Action]:
        """All actions, by name."""
        ...

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        """The bindings of one agent, or of all, by agent and action."""
        ...

    def prompts(self, tenant: str) -> list[Prompt]:
        """All prompts, by name."""
        ...

    def drop_action(self, tenant: str, name: str) -> bool:
        """Forget an action. Whether there was one. Raises BadSetting where an agent still has it."""
        ...

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        """Forget a binding. Whether there was one."""
        ...

    def drop_prompt(self, tenant: str, name: str) -> bool:
        """Forget a prompt. Whether there was one. Raises BadSetting where something still names it."""
        ...


class Database(Store, Catalog, Protocol):
    """What `open_store` opens: conversations, and what was set up for the agents that lead them."""
