"""The catalog as one agent uses it: the leases of its results, and the words about its actions that the model reads.

The lease of a result comes from, highest level first, an override for the whole run, the agent's binding in the
catalog, and the action (a `Tool`) itself. It is stamped on the message, and `expire_results` applies it. The catalog is
read when a run begins, so a change in it takes effect at the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ..core.catalog import SYSTEM_PROMPT, Action, Binding, lease_of, prompt_key
from ..core.stamps import Lease
from ..core.tool_names import find_named
from ..policies.leases import check_lease
from ..ports import HasCatalog
from .tools import Tool

__all__ = ["AgentCatalog"]

_FIELDS = ("expiration_turns", "expiration_mode", "compact_mode", "compact_length", "preserve_original")
_log = logging.getLogger("foveate")


class AgentCatalog:
    """The part of a catalog that concerns one agent, as it was read last."""

    def __init__(
        self,
        agent: str,
        catalog: HasCatalog | None,
        tenant: str,
        override: Lease | None = None,
        *,
        skips_unknown_prompts: bool = False,
    ) -> None:
        """Read nothing yet. `catalog`: None for an empty one. `override`: a lease for all results.

        `skips_unknown_prompts`: leave out names of prompts that the catalog does not hold, so that the next level
        counts. Raises BadSetting for an override that is not allowed.
        """
        self._agent, self._catalog, self._tenant = agent, catalog, tenant
        self._override = None if override is None else check_lease("message_expiration_override", override)
        self._skips_unknown_prompts = skips_unknown_prompts
        self._bindings: Mapping[str, Binding] = {}
        self._actions: Mapping[str, Action] = {}
        self._prompts = frozenset((prompt_key(SYSTEM_PROMPT),))
        self._reported: set[str] = set()

    def read(self) -> None:
        """Read the bindings of the agent, and all actions and prompts. Raises StoreError."""
        if self._catalog is None:
            return
        self._bindings = {binding.action: binding for binding in self._catalog.bindings(self._tenant, self._agent)}
        self._actions = {action.name: action for action in self._catalog.actions(self._tenant)}
        if self._skips_unknown_prompts:
            names = [prompt.name for prompt in self._catalog.prompts(self._tenant)]
            self._prompts = frozenset(map(prompt_key, [*names, SYSTEM_PROMPT]))

    # -------------------------------------------------------------------------------------------------------- leases

    def lease_of_tool(self, tool: Tool) -> Lease | None:
        """Return the lease of the result of a native call; None if no override, row or tool sets any of it."""
        binding, action = find_named(self._bindings, tool.name), find_named(self._actions, tool.name)
        has_levels = self._override or binding or (action and action.default_compact_prompt)
        return self.lease_of_action(tool.name, tool) if has_levels else tool.lease

    def lease_of_action(self, name: str, tool: Tool | None) -> Lease:
        """Return the lease of an action's result. `tool`: None if there is no such action."""
        binding, action = find_named(self._bindings, name), find_named(self._actions, name)
        levels = [self._override, lease_of(binding, action) if binding else None, tool.lease if tool else None]
        if action and action.default_compact_prompt:
            levels.append(Lease(compact_prompt_id=action.default_compact_prompt))
        lease = self._merged(levels)
        has_override = self._override is not None and self._override.expiration_turns is not None
        if binding and binding.result_expiration_turns is None and not has_override:  # No turns there means: never.
            lease = replace(lease, expiration_turns=None, expiration_mode="none")
        binding_id = binding.id if binding else ""
        return replace(lease, message_type="action-result", action_id=name, agent_action_id=binding_id)

    def lease_of_sub_agent(self, name: str, own: Lease | None) -> Lease:
        """Return the lease of a sub-agent's result."""
        return replace(self._merged([self._override, own]), message_type="sub-agent-result", action_id=name)

    def _merged(self, levels: Iterable[Lease | None]) -> Lease:
        """Return one lease: of each field the first value. Missing values are left to the policy."""
        leases = [level for level in levels if level is not None]

        def first(field: str) -> object:
            return next((value for lease in leases if (value := getattr(lease, field)) is not None), None)

        lease = replace(
            Lease(disable_expiration=any(lease.disable_expiration for lease in leases)),
            **{field: first(field) for field in _FIELDS},
        )
        names = [level.compact_prompt_id for level in leases if level.compact_prompt_id]
        return replace(lease, compact_prompt_id=next(filter(self._has_prompt, names), None))

    def _has_prompt(self, name: str) -> bool:
        """Return whether a prompt may be named in a lease. One that does not exist is reported once."""
        if not self._skips_unknown_prompts or prompt_key(name) in self._prompts:
            return True
        if name not in self._reported:
            self._reported.add(name)
            _log.warning("%s: there is no prompt %r in the catalog; the next one counts", self._agent, name)
        return False

    # ----------------------------------------------------------------------------------------------- words for models

    def describes(self, names: Iterable[str]) -> bool:
        """Return whether the catalog has words for the model about one of these actions."""
        rows = (find_named(self._actions, name) for name in names)
        return any(row is not None and bool(row.description or row.parameters) for row in rows)

    def described(self, tool: Tool) -> Tool:
        """Return a tool as the model reads it: with description and parameters of the catalog, where it has any."""
        row = find_named(self._actions, tool.name)
        if row is None:
            return tool
        parameters = msgspec.json.decode(row.parameters) if row.parameters else None
        return replace(
            tool,
            description=row.description or tool.description,
            parameters=tool.parameters if parameters is None else {"type": "object", **parameters},
        )
