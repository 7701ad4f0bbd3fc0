"""Text of a search's result: sentences and figures, the same everywhere, and the preset as TOML."""

from __future__ import annotations

import json
import os
import re
from itertools import groupby
from pathlib import Path

from ..core.plurals import plural
from ..policies.presets.sources import flatten
from .result import Trial, Tuned
from .space import Value

__all__ = ["FIRST_WORDS", "preset_text", "saving_text", "sentences", "share_text", "value_text"]

_NEAR_LIMIT = 1.05
"""A cost within this multiple of the limit leaves hardly anything to save."""


def sentences(tuned: Tuned) -> list[str]:
    """Return what the search found, how far the result can be trusted, and why the search ended."""
    found = []
    if tuned.is_better:
        saved = 1 - tuned.best.all_in / tuned.preset.all_in if tuned.preset.all_in else 0.0
        found.append(
            f"The best settings cost {saving_text(saved)} than {tuned.policy}, counting what must be fetched back, "
            f"with {share_text(tuned.best.readable)} readable (was {share_text(tuned.preset.readable)})."
        )
    elif tuned.held_out is not None:
        found.append(f"There is nothing to win here: no settings are clearly better than {tuned.policy} itself.")
        if tuned.preset not in tuned.frontier:
            found.append(
                "Settings that look better here were found on these same recordings, and the cross-check does not "
                "confirm them."
            )
    else:
        found.append("The search ended before it could check a result, so it recommends nothing.")
    if tuned.held_out is not None and tuned.held_out.better + tuned.held_out.worse:
        check = tuned.held_out
        found.append(
            f"Cross-check: on recordings that the search did not see, its settings cost "
            f"{saving_text(check.gain)} (standard error {share_text(check.error)}): less on "
            f"{plural(check.better, 'recording')}, more on {check.worse}."
        )
    limit = (
        f"Clairvoyant limit: a policy that knows what later calls use would cost {share_text(tuned.limit)} of sending "
        "everything."
    )
    found.append(
        limit + (" Hardly anything is left to save." if tuned.best.all_in <= tuned.limit * _NEAR_LIMIT else "")
    )
    if tuned.ending == "time":
        found.append(
            f"The time ended the search after {plural(tuned.rounds, 'round')}. Give it more minutes, or fewer "
            "recordings, to search on."
        )
    if tuned.ending == "interrupted":
        found.append(f"The search was stopped after {plural(tuned.rounds, 'round')}.")
    if tuned.left_out:
        found.append(
            f"Left out for lack of time: {plural(tuned.left_out, 'recording')}. More minutes use more of them."
        )
    return found


def saving_text(share: float) -> str:
    """Format a saving: `4.1 % less`, or `0.3 % more` for a negative one."""
    return f"{share_text(abs(share))} {'less' if share >= 0 else 'more'}"


def share_text(share: float) -> str:
    """Format a share with one decimal, because tuned settings often differ by less than a percent: `57.3 %`."""
    return f"{share * 100:.1f} %"


def value_text(value: Value) -> str:
    """Format a value as TOML and JSON write it."""
    return value if isinstance(value, str) else json.dumps(value)


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
