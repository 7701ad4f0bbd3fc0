"""Leases: merge the settings of several levels into the lease of one result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..core.catalog import LENGTH, SYSTEM_PROMPT
from ..core.stamps import Lease
from ..errors import BadSetting

__all__ = ["LENGTH", "SYSTEM_PROMPT", "check_lease", "effective_lease", "expires", "merge_leases", "most_aggressive"]

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
