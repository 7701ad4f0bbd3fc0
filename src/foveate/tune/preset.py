"""Writing of a preset as TOML: what it extends, the values that differ, and what was measured."""

from __future__ import annotations

import json
import os
import re
from itertools import groupby
from pathlib import Path

from ..policies.presets.sources import flatten
from .report import saving_text, share_text
from .result import Trial, Tuned

__all__ = ["FIRST_WORDS", "preset_text"]

FIRST_WORDS = "# Tuned on"
"""The beginning of every preset that tuning writes."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def preset_text(tuned: Tuned, trial: Trial | None = None, *, place: Path | None = None) -> str:
    """Return a trial's settings as the text of a preset that extends the searched one.

    `trial`: default the best one. `place`: the file to write, so that a preset in another file is named relative to it;
    default: the current folder.
    """
    chosen = trial or tuned.best
    base = tuned.policy
    if base.endswith(".toml") or "/" in base or "\\" in base:
        folder = (place.parent if place else Path()).resolve()
        base = Path(os.path.relpath(Path(base).expanduser().resolve(), folder)).as_posix()
    preset_values = {name: value for name, value, _ in chosen.changes}
    cost, readable = share_text(tuned.preset.all_in), share_text(tuned.preset.readable)
    lines = [
        f"{FIRST_WORDS} {tuned.recordings} recordings, window {tuned.window:,} tokens, seed {tuned.seed}.",
        f"# Cost with fetching back what was missed: {share_text(chosen.all_in)} of sending everything, was {cost}.",
        f"# Readable of what the calls used: {share_text(chosen.readable)}, was {readable}.",
    ]
    if tuned.held_out is not None:
        lines.append(
            f"# On recordings that the search did not see, it cost {saving_text(tuned.held_out.gain)} "
            f"(standard error {share_text(tuned.held_out.error)})."
        )
    description = f"{Path(tuned.policy).stem} tuned on {tuned.recordings} recordings."
    lines += [f"description = {_toml(description)}", f"extends = {_toml(base)}"]
    for table, values in groupby(flatten(chosen.settings), key=lambda item: item[0][:-1]):
        lines += ["", f"[{'.'.join(map(_key, table))}]"]
        lines += [
            f"{place[-1]} = {_toml(value)}  # was {_toml(preset_values['.'.join(place)])}" for place, value in values
        ]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    """Return the name of a table as TOML: in quotes unless it is a bare key."""
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: object) -> str:
    """Return a value as TOML; for texts and numbers JSON is TOML."""
    return json.dumps(value, ensure_ascii=False)
