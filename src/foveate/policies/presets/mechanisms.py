"""The mechanisms that settings and presets can name: shipped ones, and those that other distributions register."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...errors import BadSetting
from .descriptions import DESCRIPTIONS
from .values import Field, fields_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "MECHANISMS", "Mechanism", "in_order", "mechanism_named", "registered"]

GROUP = "foveate.policies"
"""The entry point group in which a distribution registers functions that return a policy."""

_HIDDEN = ("enabled", "min_preserved_pairs", "policy")
"""Arguments that no setting sets: the switch of each table, an old name, and the policies that `defer` wraps."""


class Mechanism:
    """A mechanism: its name in settings, and the function that makes its policy from keyword arguments.

    `wraps`: the mechanisms whose policies are passed to this function, so that its policy runs in their place.
    """

    def __init__(self, name: str, load: Callable[[], Callable[..., Any]], wraps: tuple[str, ...] = ()) -> None:
        self.name, self.wraps, self._load = name, wraps, load
        self._function: Callable[..., Any] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function that makes the policy; imported at the first use."""
        if self._function is None:
            self._function = self._load()
        return self._function

    @property
    def fields(self) -> Mapping[str, Field]:
        """The settings of the mechanism, without its switch `enabled`."""
        return {name: field for name, field in fields_of(self.function).items() if name not in _HIDDEN}

    def description_of(self, name: str) -> str:
        """Return one line about a setting; "" if there is none."""
        return DESCRIPTIONS.get(self.name, {}).get(name) or self.fields[name].description

    @property
    def description(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


def _shipped(name: str, module: str, function: str, wraps: tuple[str, ...] = ()) -> Mechanism:
    def load() -> Callable[..., Any]:
        loaded: Callable[..., Any] = getattr(import_module(f"foveate.policies.{module}"), function)
        return loaded

    return Mechanism(name, load, wraps)


MECHANISMS: Mapping[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        _shipped("retain", "block_retention", "retain_blocks"),
        _shipped("expire", "expiry", "expire_results"),
        _shipped("supersede", "superseded_results", "supersede"),
        _shipped("dedupe", "duplicates", "dedupe"),
        _shipped("pins", "pins", "pin_newest"),
        _shipped("prune", "pruning", "prune_tool_outputs"),
        _shipped("filter", "tool_result_filter", "filter_tool_results"),
        _shipped("fold", "folds", "fold"),
        _shipped("shrink", "digests", "shrink_to_digest"),
        _shipped(
            "defer", "deferral", "when_it_pays", wraps=("supersede", "dedupe", "prune", "filter", "fold", "shrink")
        ),
        _shipped("recap", "recaps", "recap_batches"),
        _shipped("checkpoint", "checkpoints", "checkpoint"),
        _shipped("compact", "compaction", "compact_on_overflow"),
    )
}
"""The shipped mechanisms in the order in which they run; the hard floor follows them."""


def mechanism_named(name: str) -> Mechanism | None:
    """Return the shipped or registered mechanism of this name; None if there is none."""
    return MECHANISMS.get(name) or registered().get(name)


def registered() -> Mapping[str, Mechanism]:
    """Return the mechanisms that installed distributions register, by name. Shipped names cannot be taken."""
    return _scan(tuple(sys.path), os.getcwd() if "" in sys.path else "")


def in_order(names: Iterable[str]) -> Iterator[Mechanism]:
    """Yield the named mechanisms in the order in which they run: registered ones before `compact`, by name."""
    wanted = set(names)
    for mechanism in MECHANISMS.values():
        if mechanism.name == "compact" and (others := wanted - MECHANISMS.keys()):
            known = registered()
            yield from (known[name] for name in sorted(others) if name in known)
        if mechanism.name in wanted:
            yield mechanism


@cache
def _scan(path: tuple[str, ...], folder: str) -> Mapping[str, Mechanism]:
    """Find the entry points on this search path."""
    from importlib.metadata import entry_points  # Slow to load, and most settings name shipped mechanisms only.

    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: Mechanism(entry.name, _loader(entry)) for entry in entries if entry.name not in MECHANISMS}


def _loader(entry: EntryPoint) -> Callable[[], Callable[..., Any]]:
    def load() -> Callable[..., Any]:
        try:
            function = entry.load()
        except Exception as error:
            raise BadSetting(
                f"Policy {entry.name!r} cannot be loaded from {entry.value}: {error}. Repair or uninstall the package "
                "that registers it."
            ) from error
        if not callable(function):
            raise BadSetting(f"Policy {entry.name!r}: {entry.value} is no function that returns a policy.")
        loaded: Callable[..., Any] = function
        return loaded

    return load
