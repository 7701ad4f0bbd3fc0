"""The mechanisms: one file each, every one a function that returns a policy (`View -> edits`).

The functions are public as `foveate.prune_tool_outputs` and so on; each is imported when it is asked for.

`named` gives policies by the name that settings and the command line use: a preset, shipped or a file of your own.
"""

from __future__ import annotations

from ..core.planner import Policy, Rung
from ..errors import BadSetting
from .ladder import FLOOR

__all__ = [
    "DEFAULT",
    "FLOOR",
    "KNOWN",
    "Policy",
    "named",
    "own_policies",
]

DEFAULT = "prune"
"""The preset that counts where nobody chooses one."""

KNOWN = ("off", "none", "keep-last-N", "prune", "balanced", "recap")
"""Names that `named` understands, beside the paths of `.toml` files: `off` switches off everything that is automatic,
the hard floor too; `none` leaves the floor alone; N is a number; the others are presets.
"""


def named(name: str) -> tuple[tuple[Policy, ...], tuple[Rung, ...]]:
    """The policies and the floor behind a name or in a preset's file. Raises BadSetting for what there is not."""
    from .assembly import assembled, has_floor  # What reads files is imported where one is read.
    from .presets import preset

    said = preset(name).said
    return assembled(said), FLOOR if has_floor(said) else ()


def own_policies(policy: object) -> tuple[Policy, ...]:
    """The policies that a program hands in: one, or a list. Raises BadSetting for something else."""
    several = (policy,) if callable(policy) else policy
    if not isinstance(several, list | tuple) or not all(callable(one) for one in several):
        raise BadSetting(f"policy= is a name, a policy or a list of policies, not {policy!r:.100}.")
    return tuple(several)
