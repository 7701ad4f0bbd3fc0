"""Lease levels: which lease counts for a message, and whether it has ended.

A lease may be set for the message, its binding or tool, its action, all results, and for a run. `leases.py` says how
the levels merge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..core.stamps import Lease
from ..core.tool_names import add_tool_names_to
from ..core.view import Entry
from ..errors import BadSetting
from .leases import check_lease, expires, merge_leases
from .placeholders import placeholder

__all__ = ["Due", "Levels"]


class Due(NamedTuple):
    """An entry whose lease has ended."""

    entry: Entry
    lease: Lease
    age: int
    """Model calls since the lease began."""

    @property
    def is_expandable(self) -> bool:
        """Whether the model may expand the original."""
        return self.lease.preserve_original is not False

    @property
    def length(self) -> int:
        """Characters that are kept, or that a summary should have."""
        return self.lease.compact_length or 0

    def fill(self, template: str, length: int) -> str:
        """Return the note for a text of `length` characters."""
        text = placeholder(template, self.entry).replace("{kept}", str(self.length))
        return text.replace("{length}", str(length))


class Levels:
    """The leases of all levels. Raises BadSetting for values that are not allowed."""

    def __init__(
        self,
        tools: Mapping[str, Lease],
        actions: Mapping[str, Lease],
        default: Lease | None,
        override: Lease | None,
        prompts: Collection[str] | None,
        system_prompt: str,
    ) -> None:
        self._tools, self._actions = _check_leases("tools", tools), _check_leases("actions", actions)
        # Results of native calls have the names that providers receive.
        self._tools_by_name, self._actions_by_name = map(add_tool_names_to, (self._tools, self._actions))
        self._default = None if default is None else check_lease("default", default)
        self._override = None if override is None else check_lease("override", override)
        if prompts is not None and (isinstance(prompts, str) or not all(isinstance(name, str) for name in prompts)):
            raise BadSetting(f"prompts is {prompts!r:.80}; allowed: names of prompts, or None.")
        if not isinstance(system_prompt, str):
            raise BadSetting(f"system_prompt is {system_prompt!r:.80}; allowed: the name of a prompt.")
        self._prompts = None if prompts is None else frozenset(prompts)
        self._system_prompt = system_prompt
        self.lease_of = lru_cache(4096)(self._merge)  # Every call needs the same few leases.

    def _leases(self) -> dict[str, Lease]:
        leases = {"override": self._override, "default": self._default}
        for level, by_name in (("tools", self._tools), ("actions", self._actions)):
            leases |= {f"{level}[{name!r}]": lease for name, lease in by_name.items()}
        return {name: lease for name, lease in leases.items() if lease}

    @property
    def wants_summaries(self) -> bool:
        """Whether a lease of these levels asks for summaries."""
        return any(lease.compact_mode == "summary" and expires(lease) for lease in self._leases().values())

    @property
    def unseen(self) -> list[str]:
        """The levels whose results expire before a model call sees them."""
        at_once = {name: lease for name, lease in self._leases().items() if lease.expiration_turns == 0}
        return [
            name for name, lease in at_once.items() if lease.expiration_mode != "none" and not lease.disable_expiration
        ]

    def find_due(self, entry: Entry, turn: int) -> Due | None:
        """Return the entry with its lease if the lease has ended before this model call."""
        age = turn - max(entry.stamp.turn, entry.renewed)
        if age < 1 or not (entry.is_result or entry.stamp.lease):
            return None
        lease = self.lease_of(entry.stamp.lease, entry.tool, entry.is_result)
        if not expires(lease) or lease.message_type == "system" or age <= (lease.expiration_turns or 0):
            return None
        return Due(entry, lease, age)

    def _merge(self, own: Lease | None, tool: str, is_result: bool) -> Lease:
        levels: list[Lease | None] = [self._override, own]
        if is_result:
            binding, action = (own.agent_action_id, own.action_id) if own else ("", "")
            levels += [self._tools.get(binding), self._tools_by_name.get(tool)]
            levels += [self._actions.get(action), self._actions_by_name.get(tool), self._default]
        elif self._override and not self._override.disable_expiration:
            levels = [own]  # The override of a run applies to results only.
        return merge_leases([level for level in levels if level], self._prompts, self._system_prompt)


def _check_leases(level: str, leases: Mapping[str, Lease]) -> dict[str, Lease]:
    if not isinstance(leases, Mapping):
        raise BadSetting(f"{level} is {leases!r:.80}; allowed: names, each with a Lease.")
    return {name: check_lease(f"{level}[{name!r}]", lease) for name, lease in leases.items()}
