"""Leases: on several levels it may be said how long a result stays whole; here they come to one.

A level says what it wants to say and leaves the rest to those below it. Knows nothing of views and edits: what a lease
leads to is `expire_results.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..core.catalog import LENGTH, SYSTEM_PROMPT
from ..core.stamps import Lease
from ..errors import BadSetting

__all__ = ["LENGTH", "SYSTEM_PROMPT", "check_lease", "effective_lease", "expires", "merged", "most_aggressive"]

_MODES = ("none", "remove", "compact")
_COMPACT_MODES = ("first_chars", "summary")
_IDENTITY = ("message_type", "action_id", "agent_action_id")


def effective_lease(
    *levels: Lease | None, prompts: Collection[str] | None = None, system_prompt: str = SYSTEM_PROMPT
) -> Lease:
    """The one lease that these levels come to, the highest first.

    Field by field the first level that says something counts, and `disable_expiration` on any level beats all else.
    Then defaults are filled in (compact without more: the first 500 characters; originals may be had back), and fields
    that no longer apply are dropped. What never expires comes out with the mode `none`.

    A summary's prompt is looked for from the highest level to the lowest, and at last the `system_prompt` is taken.
    `prompts`: names of the prompts that there are (None: all that are named); a name that is not among them is passed
    over, and None comes out where no level names one that is. Raises BadSetting for values that are not allowed.
    """
    said = [check_lease(f"level {n}", level) for n, level in enumerate(levels, 1) if level is not None]
    return merged(said, prompts, system_prompt)


def most_aggressive(leases: Iterable[Lease]) -> Lease:
    """One lease for one message that holds the results of several actions, each with an effective lease of its own.

    Of those that expire: the fewest turns; removed rather than compacted; compacted to the smallest length, in the way
    and with the prompt of the one that says so (the first, where several do); expandable only if all are. What never
    expires has no say, so one short-lived action may take a lasting result with it: one message for each result avoids
    that. Where nothing expires, neither does the message.
    """
    lasting = [_plain([check_lease(f"lease {n}", lease)]) for n, lease in enumerate(leases, 1)]
    expiring = [lease for lease in lasting if expires(lease)]
    if not expiring:
        return lasting[0] if lasting else Lease(expiration_mode="none")
    strictest = min(expiring, key=lambda lease: lease.compact_length or 0)  # What is removed keeps nothing.
    return replace(
        strictest,
        expiration_turns=min(lease.expiration_turns or 0 for lease in expiring),
        preserve_original=all(lease.preserve_original for lease in expiring),
    )


def expires(lease: Lease) -> bool:
    """Whether anything with this effective lease ever expires."""
    return lease.expiration_mode != "none"


def check_lease(level: str, lease: object) -> Lease:
    """The lease, if all that it says is allowed. Raises BadSetting, naming the level, the field and what is allowed."""
    if not isinstance(lease, Lease):
        raise BadSetting(f"{level} is {lease!r:.80}; allowed: a Lease.")
    for field, (is_allowed, allowed) in _ALLOWED.items():
        value = getattr(lease, field)
        if not is_allowed(value):
            raise BadSetting(f"{level}: {field} is {value!r:.80}; allowed: {allowed}.")
    return lease


def merged(levels: Sequence[Lease], prompts: Collection[str] | None, system_prompt: str) -> Lease:
    """`effective_lease` of levels that have been checked."""
    lease = _plain(levels)
    if lease.compact_mode != "summary":
        return lease
    named = [*(level.compact_prompt_id for level in levels), system_prompt]
    found = (name for name in named if name and (prompts is None or name in prompts))
    return replace(lease, compact_prompt_id=next(found, None))


# ------------------------------------------------------------------------------------------------------------- helpers


def _plain(levels: Sequence[Lease]) -> Lease:
    """What levels come to, with the first prompt that is named, whether there is one of that name or not."""

    def first(field: str, default: Any = None) -> Any:
        said = (getattr(level, field) for level in levels)
        return next((value for value in said if value is not None), default)

    names = {field: next((name for level in levels if (name := getattr(level, field))), "") for field in _IDENTITY}
    never = Lease(expiration_mode="none", disable_expiration=any(level.disable_expiration for level in levels))
    never = replace(never, **names)
    turns, mode = first("expiration_turns"), first("expiration_mode", "none")
    if never.disable_expiration or turns is None or mode == "none":
        return never
    kept = first("preserve_original", True)
    lease = replace(never, expiration_turns=turns, expiration_mode=mode, preserve_original=kept)
    if mode == "remove":
        return lease
    way, length = first("compact_mode", "first_chars"), first("compact_length", LENGTH)
    prompt = first("compact_prompt_id") if way == "summary" else None
    return replace(lease, compact_mode=way, compact_length=length, compact_prompt_id=prompt)


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: value is None or (type(value) is int and value >= least)


def _one_of(words: Sequence[str]) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, str) and value in words)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_ALLOWED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "expiration_turns": (_whole(0), "a whole number of 0 or more, or None"),
    "expiration_mode": (_one_of(_MODES), f"one of {', '.join(_MODES)}, or None"),
    "compact_mode": (_one_of(_COMPACT_MODES), f"one of {', '.join(_COMPACT_MODES)}, or None"),
    "compact_length": (_whole(1), "a whole number of 1 or more, or None"),
    "compact_prompt_id": (lambda value: value is None or _is_text(value), "the name of a prompt, or None"),
    "disable_expiration": (lambda value: isinstance(value, bool), "True or False"),
    "preserve_original": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    **dict.fromkeys(_IDENTITY, (_is_text, "a text")),
}
