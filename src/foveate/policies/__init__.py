"""The mechanisms: one file each, every one a function that returns a policy (`View -> edits`).

`named` gives a policy by the name that settings and the command line use.
"""

from __future__ import annotations

import re

from ..core.planner import Policy, Rung
from ..errors import BadSetting
from .filter_tool_results import filter_tool_results
from .ladder import FLOOR
from .prune_tool_outputs import prune_tool_outputs
from .recap_batches import recap_batches
from .recap_settings import recap_settings

__all__ = [
    "FLOOR",
    "KNOWN",
    "Policy",
    "filter_tool_results",
    "named",
    "prune_tool_outputs",
    "recap_batches",
    "recap_settings",
]

KNOWN = ("off", "none", "keep-last-N", "prune", "recap")
"""Names that `named` understands: `off` switches off everything that is automatic, the hard floor too; `none`
leaves the floor alone; N is a number; `recap` keeps the first user input, which often holds the task.
"""


def named(name: str) -> tuple[tuple[Policy, ...], tuple[Rung, ...]]:
    """The policies and the floor behind a name. Raises BadSetting for a name that is not in `KNOWN`."""
    if name == "off":
        return (), ()
    if name == "none":
        return (), FLOOR
    if name == "prune":
        return (prune_tool_outputs(),), FLOOR
    if name == "recap":
        return (recap_batches(keep_first_user=True),), FLOOR
    if match := re.fullmatch(r"keep-last-([1-9]\d*)", name):
        return (filter_tool_results(keep=int(match[1])),), FLOOR
    raise BadSetting(f"There is no policy {name!r}. Known: {', '.join(KNOWN)}.")
