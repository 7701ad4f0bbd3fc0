"""The mechanisms: one file each, every one a function that returns a policy (`View -> edits`).

The functions are public as `foveate.prune_tool_outputs` and so on; each is imported when it is asked for.

`named` gives policies by the name that settings and the command line use: a preset, shipped or a file of your own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.planner import Policy, Stage
from ..errors import BadSetting
from .ladder import FLOOR

__all__ = [
    "DEFAULT",
    "FLOOR",
    "KNOWN",
    "Policy",
    "check_together",
    "in_use",
    "named",
    "named_summarizer",
    "own_policies",
]

DEFAULT = "balanced"
"""The preset that counts where nobody chooses one."""

KNOWN = (
    "off",
    "none",
    "keep-last-N",
    "prune",
    "balanced",
    "frugal",
    "coding",
    "browser",
    "expire",
    "prune-and-compact",
    "retain",
    "recap",
    "checkpoint",
)
"""Names that `named` understands, beside the paths of `.toml` files: `off` switches off everything that is automatic,
the hard floor too; `none` leaves the floor alone; N is a number; the others are presets.
"""


def named(name: str) -> tuple[tuple[Policy, ...], tuple[Stage, ...]]:
    """The policies and the floor behind a name or in a preset's file. Raises BadSetting for what there is not."""
    from .presets import preset
    from .presets.assembly import assembled, has_floor  # What reads files is imported where one is read.

    said = preset(name).said
    return tuple(assembled(said).values()), FLOOR if has_floor(said) else ()


def named_summarizer(name: str) -> str:
    """The name of the summarizer that a preset takes where a program hands in none; "" for none."""
    from .presets import preset
    from .presets.assembly import summarizer_of

    return summarizer_of(preset(name).said)


def own_policies(policy: object) -> tuple[Policy, ...]:
    """The policies that a program hands in: one, or a list. Raises BadSetting for something else."""
    several = (policy,) if callable(policy) else policy
    if not isinstance(several, list | tuple) or not all(callable(one) for one in several):
        raise BadSetting(f"policy= is a name, a policy or a list of policies, not {policy!r:.100}.")
    return tuple(several)


def in_use(policies: Iterable[Policy], *, has_summarizer: bool) -> tuple[Policy, ...]:
    """Those that can do something: an optional one steps aside where nobody writes summaries."""
    return tuple(one for one in policies if has_summarizer or not getattr(one, "optional", False))


def check_together(policies: Iterable[Policy], *, has_summarizer: bool) -> None:
    """Raises BadSetting for policies that cannot work in this conversation, or not beside each other.

    A policy that can do nothing without a model says so by an attribute `needs_summarizer`; how many tool results it
    keeps whole, if it does that, by `tool_results_keep`.
    """
    several = list(policies)
    if not has_summarizer and any(getattr(one, "needs_summarizer", False) for one in several):
        raise BadSetting(
            "A policy of this conversation lets a model write summaries: give summarizer=, a function that is handed a "
            "SummaryRequest and returns the text."
        )
    keeps = sorted({keep for one in several if (keep := getattr(one, "tool_results_keep", 0))})
    if len(keeps) > 1:
        raise BadSetting(
            f"Policies of this conversation keep {keeps[0]} and {keeps[-1]} tool results whole. Say one number, in one "
            "place: the keep of filter_tool_results or the tool_results_keep of checkpoint."
        )
