"""The catalog of the memory store: three dictionaries, with the checks that every store makes."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

from ...core.catalog import Action, Binding, Prompt, validated
from ..checks import check_action_unused, check_names_exist, check_prompt_is_new, check_prompt_unused, check_texts

__all__ = ["MemoryCatalog"]


class MemoryCatalog:
    """The catalog part of the memory store (`ports.HasCatalog`)."""

    def __init__(self) -> None:
        self._lock = RLock()
        _catalogs.add(self)
        self._actions: dict[tuple[str, str], Action] = {}
        """By tenant and name."""
        self._bindings: dict[tuple[str, str, str], Binding] = {}
        """By tenant, agent and action."""
        self._prompts: dict[tuple[str, str], Prompt] = {}

    def put_action(self, tenant: str, action: Action) -> None:
        validated(action)
        with self._lock:
            check_names_exist(action, (), self.prompts(tenant))
            self._actions[tenant, action.name] = action

    def put_binding(self, tenant: str, binding: Binding) -> None:
        validated(binding)
        with self._lock:
            check_names_exist(binding, self.actions(tenant), self.prompts(tenant))
            self._bindings[tenant, binding.agent, binding.action] = binding

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        validated(prompt)
        with self._lock:
            check_prompt_is_new(prompt, self.prompts(tenant))
            self._prompts[tenant, prompt.name] = prompt

    def actions(self, tenant: str) -> list[Action]:
        with self._lock:
            self._check(tenant)
            return [self._actions[key] for key in sorted(self._actions) if key[0] == tenant]

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        with self._lock:
            self._check(tenant)
            keys = sorted(key for key in self._bindings if key[0] == tenant and agent in ("", key[1]))
            return [self._bindings[key] for key in keys]

    def prompts(self, tenant: str) -> list[Prompt]:
        with self._lock:
            self._check(tenant)
            return [self._prompts[key] for key in sorted(self._prompts) if key[0] == tenant]

    def drop_action(self, tenant: str, name: str) -> bool:
        with self._lock:
            check_action_unused(name, self.bindings(tenant))
            return self._actions.pop((tenant, name), None) is not None

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        with self._lock:
            self._check(tenant)
            return self._bindings.pop((tenant, agent, action), None) is not None

    def drop_prompt(self, tenant: str, name: str) -> bool:
        with self._lock:
            check_prompt_unused(name, self.actions(tenant), self.bindings(tenant))
            return self._prompts.pop((tenant, name), None) is not None

    def _check(self, tenant: str) -> None:
        check_texts("catalog", tenant=tenant)
        self._check_open()

    def _check_open(self) -> None:
        """Raise StoreError if the store was closed."""
        raise NotImplementedError


_catalogs: WeakSet[MemoryCatalog] = WeakSet()
_forking = RLock()
_held: list[Any] = []
"""The locks of all stores while the process forks: the child gets whole stores, which no thread of the parent locks."""


def _acquire_all() -> None:
    _forking.acquire()
    _held[:] = [catalog._lock for catalog in list(_catalogs)]
    for lock in _held:
        lock.acquire()


def _release_all() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all)
