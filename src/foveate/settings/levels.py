"""Each place in which settings are said, read into values with their sources: keywords, environment, `foveate.toml`.

Names are looked at here, wherever they stand; values later, where they count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ..errors import BadSetting
from ..policies.presets import MECHANISMS, check_names, tables_of, values_of
from ..policies.presets.arguments import is_sayable, is_table, parse
from ..policies.presets.said import Level, Place, Said, Saying, Source, nearest, shown
from ..policies.presets.toml_file import TomlFile

__all__ = ["FILE", "GENERAL", "Spoken", "from_environment", "from_file", "from_keywords"]

FILE = "foveate.toml"
"""The file of settings, in the folder where the program runs."""

GENERAL: Mapping[str, Any] = {
    "policy": str,
    "floor": bool,
    "store": str,
    "format": str,
    "model": str,
    "window": int,
    "reserve": int,
    "tenant": str,
    "summarizer": str,
    "expand": bool,
    "expand_where": Literal["view", "tail", "auto"],
}
"""Settings that are no mechanism's, and the kinds of their values."""

_IGNORED = ("FOVEATE_THOROUGH", "FOVEATE_TRANSCRIPTS", "FOVEATE_TEST_")
"""Beginnings of variables that are meant for foveate's own tests."""


class Spoken(Struct, frozen=True):
    """What one level says. `tables`: the mechanisms that it speaks of, even where it says no more than their name."""

    saying: Saying
    tables: Mapping[str, Source]

    def of_general(self) -> Spoken:
        """The same without what it says of mechanisms and the floor."""
        kept = {place: said for place, said in self.saying.items() if place[0] in GENERAL and place != ("floor",)}
        return Spoken(kept, {})


def from_keywords(keywords: Mapping[str, object], settings: Mapping[str, Any] | None) -> Spoken:
    """What a program says. Raises BadSetting for names that there are not."""
    if unknown := [name for name in keywords if name not in GENERAL]:
        raise BadSetting(f"Keyword {unknown[0]}=: there is no setting of that name.{nearest(unknown[0], GENERAL)}")
    saying: dict[Place, Said] = {
        (name,): Said(value, Source(Level.KEYWORD, f"keyword {name}=", None, (name,)))
        for name, value in keywords.items()
        if value is not None
    }
    if settings is None:
        return Spoken(saying, {})
    if not isinstance(settings, Mapping):
        raise BadSetting(
            f'Keyword settings= is {shown(settings)}; allowed: a mapping, such as {{"prune": {{"protect": 20_000}}}}.'
        )
    check_names(settings, {"floor": bool}, lambda place: _keyword(place).subject, in_python=True)
    saying |= {place: Said(value, _keyword(place)) for place, value in values_of(settings)}
    return Spoken(saying, {name: _keyword((name,)) for name in settings if name in MECHANISMS})


def from_environment(environ: Mapping[str, str]) -> Spoken:
    """What variables `FOVEATE_...` say; a blank one says nothing. Raises BadSetting for one that there is not."""
    saying: dict[Place, Said] = {}
    tables: dict[str, Source] = {}
    for name in sorted(environ):
        if not name.upper().startswith("FOVEATE_") or name.startswith(_IGNORED):
            continue
        place, kind = _place_of(name)
        if text := environ[name].strip():
            source = Source(Level.ENVIRONMENT, f"environment {name}", None, place)
            saying[place] = Said(parse(kind, text), source)
            if len(place) > 1:
                tables.setdefault(place[0], source)
    return Spoken(saying, tables)


def from_file(folder: Path | None) -> Spoken:
    """What `foveate.toml` in this folder says, if it is there. Raises BadSetting where it has a fault."""
    if folder is None or not os.path.lexists(folder / FILE):
        return Spoken({}, {})
    file = TomlFile(folder / FILE, FILE)
    source = Source(Level.FILE, FILE)
    for preset_only in ("extends", "description"):
        if preset_only in file.tables:
            where = Source(Level.FILE, FILE, file, (preset_only,)).subject
            raise BadSetting(f'{where}: only a preset says this; name the preset here: policy = "balanced".')
    saying = tables_of(file, source, {**GENERAL, "ages": dict})
    saying = {place: said for place, said in saying.items() if place[0] != "ages"}  # Read where they count: ages.py
    tables = {name: Source(Level.FILE, FILE, file, (name,)) for name in file.tables if name in MECHANISMS}
    return Spoken(saying, tables)


def _keyword(place: Place) -> Source:
    indices = "".join(f'["{name}"]' for name in place)
    return Source(Level.KEYWORD, f"keyword settings{indices}", None, place)


def _place_of(variable: str) -> tuple[Place, Any]:
    """The setting that a variable names, and the kind of its values."""
    rest = variable.removeprefix("FOVEATE_")
    if rest.lower() in GENERAL and rest.isupper():
        return (rest.lower(),), GENERAL[rest.lower()]
    mechanism, _, name = rest.lower().partition("_")
    if mechanism in MECHANISMS and rest.isupper() and variable.startswith("FOVEATE_"):
        if name == "enabled":
            return (mechanism, name), bool
        argument = MECHANISMS[mechanism].arguments.get(name)
        if argument is not None and is_sayable(argument.kind):
            if is_table(argument.kind):
                told = f"{variable}: {mechanism}.{name} is a table, which the environment cannot say"
                raise BadSetting(f"{told}; write it into {FILE}.")
            return (mechanism, name), argument.kind
    raise BadSetting(
        f"The environment has {variable}, but there is no setting of that name.{nearest(variable, _variables())} "
        f"`foveate policy show` tells which there are."
    )


def _variables() -> list[str]:
    """The names of all variables."""
    places: list[Place] = [(name,) for name in GENERAL]
    for name, mechanism in MECHANISMS.items():
        sayable = [one.name for one in mechanism.arguments.values() if is_sayable(one.kind) and not is_table(one.kind)]
        places += [(name, key) for key in ("enabled", *sayable)]
    return [f"FOVEATE_{'_'.join(place).upper()}" for place in places]
