"""The result of a search: the figures of its trials, and what to expect of the best one."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ..replay.corpus import Failure
from ..replay.result import Row

__all__ = ["Ending", "HeldOut", "Trial", "Tuned"]

Ending = Literal["complete", "time", "interrupted"]
"""Why a search ended: it found nothing better for two rounds or made all rounds, its time was over, or Ctrl-C."""


class Trial(Struct, frozen=True):
    """Settings that were measured on all recordings."""

    settings: dict[str, Any]
    """The values that differ from the preset's, by mechanism and setting; empty for the preset itself."""
    changes: tuple[tuple[str, bool | int | float | str, bool | int | float | str], ...]
    """The same as name, value of the preset, and new value."""
    all_in: float
    """The cost with fetching back everything that was missed, relative to sending everything."""
    readable: float
    """The share of everything that calls used and their views showed: recall, said and quoted together."""
    row: Row
    """The figures of all recordings together."""


class HeldOut(Struct, frozen=True):
    """The cross-check: each half of the recordings under the settings that a search of the other half found."""

    all_in: float
    """Cost with everything that must be read again, as a share of sending everything."""
    all_in_preset: float
    """The same recordings under the preset itself."""
    readable: float
    """Share of used content that stayed readable, with the tuned preset."""
    readable_preset: float
    """The same with the preset that the search began with."""
    gain: float
    """The saving in proportion to the preset's cost, such as 0.04; negative if the settings cost more."""
    error: float
    """The standard error of `gain`, from the differences between recordings."""
    better: int
    """The number of recordings that cost less."""
    worse: int
    """The number of recordings that cost more. The others cost the same."""


class Tuned(Struct, frozen=True):
    """The result of a search."""

    policy: str
    """The preset."""
    window: int
    """The window of the replays, in tokens."""
    recordings: int
    """The number of recordings that the search used."""
    left_out: int
    """The number of recordings for which there was no time."""
    failures: tuple[Failure, ...]
    """Recordings that could not be replayed, and copies of others."""
    preset: Trial
    """The preset itself."""
    best: Trial
    """The best settings; the preset itself if nothing is worth a change."""
    trials: tuple[Trial, ...]
    """All settings that were measured on all recordings, the preset first."""
    frontier: tuple[Trial, ...]
    """The trials that no other trial beats in both cost and readable content, the cheapest first."""
    held_out: HeldOut | None
    """The cross-check; None if the search ended before it."""
    limit: float
    """The clairvoyant limit, relative to sending everything (`frontier.clairvoyant_cost`).

    Settings that shorten results before their first request may cost less. The limit is then the cost of the cheapest.
    """
    keep_readable: float
    """The share that had to stay readable."""
    parameters: int
    """The number of parameters that the search could change."""
    rounds: int
    """Complete rounds."""
    replays: int
    """How many replays the search made."""
    ending: Ending
    """Why the search ended."""
    seed: int
    """The seed of the search. The same seed gives the same result."""

    @property
    def is_better(self) -> bool:
        """Return whether some settings are worth a change of the preset."""
        return bool(self.best.settings)

    def as_json(self) -> dict[str, Any]:
        """Return the facts of the result as plain values for JSON."""

        def facts(trial: Trial) -> dict[str, Any]:
            row = trial.row
            return {
                "settings": trial.settings,
                "all_in": trial.all_in,
                "readable": trial.readable,
                "cost": row.cost_ratio,
                "recall": row.recall_visible,
                "said": row.said_visible,
                "quoted": row.quoted_visible,
            }

        names = ("policy", "window", "recordings", "left_out", "limit", "keep_readable", "rounds", "replays", "seed")
        return {
            **{name: getattr(self, name) for name in names},
            "ending": self.ending,
            "is_better": self.is_better,
            "preset": facts(self.preset),
            "best": facts(self.best),
            "held_out": self.held_out,
            "frontier": [facts(trial) for trial in self.frontier],
            "trials": [facts(trial) for trial in self.trials],
            "failures": self.failures,
        }
