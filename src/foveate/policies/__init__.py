"""Policies: functions from a view to edits, one file for each mechanism.

Each function of this package returns a policy and is imported on first use. `load_policies` returns the policies of a
preset, shipped or in a TOML file. `placeholder` and `replacement` help to write a policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names
from ..core.planner import Policy, Stage
from ..errors import BadSetting
from .floor import FLOOR

if TYPE_CHECKING:
    from ..core.growing import Growing, Selected, selecting
    from .block_retention import PluginRetention, retain_blocks
    from .checkpoints import checkpoint, checkpoint_edit
    from .compaction import compact_on_overflow
    from .deferral import when_it_pays
    from .digests import shrink_to_digest
    from .duplicates import dedupe
    from .expiry import expire_results
    from .folds import fold
    from .leases import effective_lease, most_aggressive
    from .pins import pin_newest
    from .placeholders import placeholder, replacement
    from .pruning import prune_tool_outputs
    from .recap_environment import RecapSettings, recap_settings
    from .recaps import RECAP_INSTRUCTION, recap_batches
    from .span_selection import TokenWindow
    from .superseded_results import supersede
    from .tool_result_filter import filter_tool_results

__all__ = [
    "DEFAULT_PRESET",
    "FLOOR",
    "PRESET_NAMES",
    "RECAP_INSTRUCTION",
    "Growing",
    "PluginRetention",
    "Policy",
    "PolicyChoice",
    "RecapSettings",
    "Selected",
    "Stage",
    "TokenWindow",
    "checkpoint",
    "checkpoint_edit",
    "compact_on_overflow",
    "dedupe",
    "effective_lease",
    "expire_results",
    "filter_tool_results",
    "fold",
    "load_policies",
    "most_aggressive",
    "pin_newest",
    "placeholder",
    "prune_tool_outputs",
    "recap_batches",
    "recap_settings",
    "replacement",
    "retain_blocks",
    "selecting",
    "shrink_to_digest",
    "supersede",
    "when_it_pays",
]

PolicyChoice = str | Policy | Sequence[str | Policy]
"""A preset's name or file, a policy, or a list of both."""

DEFAULT_PRESET = "balanced"
"""The preset of a conversation that names none."""

PRESET_NAMES = (
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
"""Names that `load_policies` accepts in addition to paths of `.toml` files.

`off` switches off every automatic edit, and the hard floor. `none` keeps only the hard floor. N is a number. The others
are presets.
"""

_WITH_STATE = ("recap",)
"""Presets with a policy that remembers what it has reported. Conversations do not share it."""


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Growing": "..core.growing",
            "PluginRetention": ".block_retention",
            "RECAP_INSTRUCTION": ".recaps",
            "RecapSettings": ".recap_environment",
            "Selected": "..core.growing",
            "TokenWindow": ".span_selection",
            "checkpoint": ".checkpoints",
            "checkpoint_edit": ".checkpoints",
            "compact_on_overflow": ".compaction",
            "dedupe": ".duplicates",
            "effective_lease": ".leases",
            "expire_results": ".expiry",
            "filter_tool_results": ".tool_result_filter",
            "fold": ".folds",
            "most_aggressive": ".leases",
            "pin_newest": ".pins",
            "placeholder": ".placeholders",
            "prune_tool_outputs": ".pruning",
            "recap_batches": ".recaps",
            "recap_settings": ".recap_environment",
            "replacement": ".placeholders",
            "retain_blocks": ".block_retention",
            "selecting": "..core.growing",
            "shrink_to_digest": ".digests",
            "supersede": ".superseded_results",
            "when_it_pays": ".deferral",
        },
    )


def load_policies(name: str) -> tuple[tuple[Policy, ...], tuple[Stage, ...]]:
    """Return the policies and the floor of a preset, given its name or the path of its file.

    Conversations share those of a shipped preset. Raises BadSetting if the preset does not exist or is not valid.
    """
    is_shared = name in PRESET_NAMES and name not in _WITH_STATE
    return _shipped_policies(name) if is_shared else _read_policies(name)


@cache
def _shipped_policies(name: str) -> tuple[tuple[Policy, ...], tuple[Stage, ...]]:
    return _read_policies(name)


def _read_policies(name: str) -> tuple[tuple[Policy, ...], tuple[Stage, ...]]:
    from .presets import load_preset  # Imported here: most programs need no TOML reader.
    from .presets.assembly import assemble

    preset = load_preset(name)
    return tuple(assemble(preset.layer).values()), FLOOR if preset.general("floor", True) else ()


def load_summarizer_name(name: str) -> str:
    """Return the name of the summarizer that a preset uses if the program passes none; "" for none."""
    from .presets import load_preset

    return load_preset(name).general("summarizer", "")


def check_policies(policy: object) -> tuple[Policy, ...]:
    """Return the argument `policy=`, one policy or a list, as a tuple. Raises BadSetting for any other value."""
    policies = (policy,) if callable(policy) else policy
    if not isinstance(policies, list | tuple) or not all(map(callable, policies)):
        raise BadSetting(
            f"policy is {policy!r:.100}. Pass the name of a preset or of a .toml file as text, a policy or a list of "
            "policies."
        )
    return tuple(policies)


def select_active(policies: Iterable[Policy], *, has_summarizer: bool) -> tuple[Policy, ...]:
    """Return the policies that can act: without a summarizer, those with the attribute `optional` are left out."""
    return tuple(policy for policy in policies if has_summarizer or not getattr(policy, "optional", False))


def idle_notes(policies: Iterable[Policy], *, usable: int, has_summarizer: bool) -> list[str]:
    """Return a sentence for each policy that cannot act as it is opened.

    A policy may have a method `idle_note(usable, *, has_summarizer)` that returns this sentence, or "". `usable`: the
    usable tokens of the window.
    """
    notes = (getattr(policy, "idle_note", None) for policy in policies)
    return [text for note in notes if note and (text := note(usable, has_summarizer=has_summarizer))]


def check_compatible(policies: Iterable[Policy], *, has_summarizer: bool) -> None:
    """Raise BadSetting for policies that cannot work in this conversation or contradict each other.

    Two attributes of a policy are read: `needs_summarizer`, if it does nothing without a summarizer, and
    `tool_results_keep`, the number of tool results that it keeps whole.
    """
    policies = list(policies)
    if not has_summarizer and any(getattr(policy, "needs_summarizer", False) for policy in policies):
        raise BadSetting(
            "A policy of this conversation needs summaries, but there is no summarizer. Pass summarizer=, a name such "
            "as digest or anthropic:claude-haiku-4-5, or a function that takes a SummaryRequest and returns the text."
        )
    counts = sorted({count for policy in policies if (count := getattr(policy, "tool_results_keep", 0))})
    if len(counts) > 1:
        raise BadSetting(
            f"Two policies keep different numbers of tool results whole: {counts[0]} and {counts[-1]}. Set only one: "
            "keep of filter_tool_results or tool_results_keep of checkpoint."
        )
