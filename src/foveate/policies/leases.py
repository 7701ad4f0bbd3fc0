"""Leases: the lease that counts for a message, merged from several levels, and whether it has ended.

A lease may be set for the message, its binding or tool, its action, all results, and for a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..core.catalog import LENGTH, SYSTEM_PROMPT
from ..core.stamps import Lease
from ..core.tool_names import add_tool_names_to
from ..core.view import Entry
from ..errors import BadSetting
from .placeholders import placeholder

__all__ = [
    "LENGTH",
    "SYSTEM_PROMPT",
    "Due",
    "Levels",
    "check_lease",
    "effective_lease",
    "expires",
    "merge_leases",
    "most_aggressive",
]

_MODES = ("none", "remove", "compact")
_COMPACT_MODES = ("first_chars", "summary")
_IDENTITY = ("message_type", "action_id", "agent_action_id")


def effective_lease(
    *levels: Lease | None, prompts: Collection[str] | None = None, system_prompt: str = SYSTEM_PROMPT
) -> Lease:
    """Return the lease that these levels give together, the highest level first.

    For each field, the first level that sets it wins; `disable_expiration` on any level overrides everything. Unset
    fields get their defaults (500 characters; originals can be expanded), and fields without effect are cleared. A
    lease that never expires has the mode `none`.

    The prompt of a summary is the first one on these levels that exists, or else `system_prompt`. `prompts`: names of
    the existing prompts (None: all names exist). If none exists, the field is None. Raises BadSetting for values that
    are not allowed.
    """
    checked = [check_lease(f"level {n}", level) for n, level in enumerate(levels, 1) if level is not None]
    return merge_leases(checked, prompts, system_prompt)


def most_aggressive(leases: Iterable[Lease]) -> Lease:
    """Return one lease for a message that holds the results of several actions, given their effective leases.

    Among the leases that expire: the fewest turns; removal before compaction; the smallest length, with the mode and
    the prompt of the first lease that has it; expandable only if all are. Leases that never expire do not count, so a
    short lease of one action also applies to a lasting result: append one message for each result to avoid that. If
    no lease expires, the message does not expire.
    """
    plain = [_merge_fields([check_lease(f"lease {n}", lease)]) for n, lease in enumerate(leases, 1)]
    expiring = [lease for lease in plain if expires(lease)]
    if not expiring:
        return plain[0] if plain else Lease(expiration_mode="none")
    strictest = min(expiring, key=lambda lease: lease.compact_length or 0)  # Removal keeps no characters.
    return replace(
        strictest,
        expiration_turns=min(lease.expiration_turns or 0 for lease in expiring),
        preserve_original=all(lease.preserve_original for lease in expiring),
    )


def expires(lease: Lease) -> bool:
    """Return whether messages with this effective lease ever expire."""
    return lease.expiration_mode != "none"


def check_lease(level: str, lease: object) -> Lease:
    """Return the lease if its values are allowed. Raises BadSetting with the level, the field and the rule."""
    if not isinstance(lease, Lease):
        raise BadSetting(f"{level} is {lease!r:.80}; allowed: a Lease.")
    for field, (is_allowed, allowed) in _ALLOWED.items():
        value = getattr(lease, field)
        if not is_allowed(value):
            raise BadSetting(f"{level}: {field} is {value!r:.80}; allowed: {allowed}.")
    return lease


def merge_leases(levels: Sequence[Lease], prompts: Collection[str] | None, system_prompt: str) -> Lease:
    """Return the `effective_lease` of levels that are already checked."""
    lease = _merge_fields(levels)
    if lease.compact_mode != "summary":
        return lease
    names = [*(level.compact_prompt_id for level in levels), system_prompt]
    existing = (name for name in names if name and (prompts is None or name in prompts))
    return replace(lease, compact_prompt_id=next(existing, None))


def _merge_fields(levels: Sequence[Lease]) -> Lease:
    """Return the merged lease with the first prompt that a level names, whether it exists or not."""

    def first(field: str, default: Any = None) -> Any:
        values = (getattr(level, field) for level in levels)
        return next((value for value in values if value is not None), default)

    names = {field: next((name for level in levels if (name := getattr(level, field))), "") for field in _IDENTITY}
    never = Lease(expiration_mode="none", disable_expiration=any(level.disable_expiration for level in levels))
    never = replace(never, **names)
    turns, mode = first("expiration_turns"), first("expiration_mode", "none")
    if never.disable_expiration or turns is None or mode == "none":
        return never
    preserve = first("preserve_original", True)
    lease = replace(never, expiration_turns=turns, expiration_mode=mode, preserve_original=preserve)
    if mode == "remove":
        return lease
    compact_mode, length = first("compact_mode", "first_chars"), first("compact_length", LENGTH)
    prompt = first("compact_prompt_id") if compact_mode == "summary" else None
    return replace(lease, compact_mode=compact_mode, compact_length=length, compact_prompt_id=prompt)


# ------------------------------------------------------------------------------------------------------ allowed values


_MOST = 2**64 - 1
"""The largest number that a stamp can hold."""


def _whole_number(least: int) -> Callable[[Any], bool]:
    return lambda value: value is None or (type(value) is int and least <= value <= _MOST)


def _one_of(words: Sequence[str]) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, str) and value in words)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_ALLOWED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "expiration_turns": (_whole_number(0), "a whole number of 0 or more, below 2**64, or None"),
    "expiration_mode": (_one_of(_MODES), f"one of {', '.join(_MODES)}, or None"),
    "compact_mode": (_one_of(_COMPACT_MODES), f"one of {', '.join(_COMPACT_MODES)}, or None"),
    "compact_length": (_whole_number(1), "a whole number of 1 or more, below 2**64, or None"),
    "compact_prompt_id": (lambda value: value is None or _is_text(value), "the name of a prompt, or None"),
    "disable_expiration": (lambda value: isinstance(value, bool), "True or False"),
    "preserve_original": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    **dict.fromkeys(_IDENTITY, (_is_text, "a text")),
}


class Due(NamedTuple):
    """An entry whose lease has ended."""

    entry: Entry
    lease: Lease
    age: int
    """Model calls since the lease began."""

    @property
    def is_expandable(self) -> bool:
        """Return whether the model may expand the original."""
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
        """Return whether a lease of these levels asks for summaries."""
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
