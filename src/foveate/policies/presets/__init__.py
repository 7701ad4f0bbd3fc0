"""Presets: named lists of mechanisms with their settings, each a short TOML file, shipped or written by users."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from ...errors import BadSetting
from .. import PRESET_NAMES
from .assembly import check_value
from .mechanisms import MECHANISMS, mechanism_named, registered
from .sources import Level, Place, Source, Sourced, TomlFile, flatten, merge, shorten, suggest
from .values import find_unknown, is_plain

__all__ = ["BARE", "SHIPPED", "Preset", "check_names", "load_preset", "load_presets", "read_tables", "values_in"]

T = TypeVar("T")

_FOLDER = Path(os.path.realpath(__file__)).parent
SHIPPED = tuple(name for name in PRESET_NAMES if name != "keep-last-N")
"""Names of the presets that are files next to this module."""
BARE = ("none", "off")
"""Presets that switch mechanisms off: settings of mechanisms on lower levels do not count under them."""

_EXAMPLES = {"summarizer": '"anthropic:claude-haiku-4-5"', "floor": "false", "description": '"What it is for."'}
"""A value of settings that a user may take for tables."""


class Preset(Struct, frozen=True):
    """A preset, merged with the presets that it extends.

    `layer`: its values by their places; the switch of a mechanism is `("prune", "enabled")`. `files`: the files of the
    user that it was read from, each followed by the one that it extends.
    """

    name: str
    description: str
    layer: Mapping[Place, Sourced]
    files: tuple[Path, ...] = ()

    def general(self, name: str, default: T) -> T:
        """Return a setting that belongs to no mechanism. Raises BadSetting for a value of another type."""
        place = (name,)
        if place not in self.layer:
            return default
        value: T = check_value(type(default), place, self.layer[place])
        return value


def load_presets(names: Iterable[str], folder: Path | None) -> Preset:
    """Return several presets as one: later ones are laid over earlier ones. Raises BadSetting as `load_preset` does."""
    loaded = [load_preset(name, folder) for name in names]
    layer: dict[Place, Sourced] = {}
    for preset in loaded:
        layer = merge(layer, preset.layer)
    if len(loaded) == 1:
        return loaded[0]
    return Preset(
        " + ".join(preset.name for preset in loaded),
        " ".join(preset.description for preset in loaded),
        layer,
        tuple(file for preset in loaded for file in preset.files),
    )


def load_preset(name: str, folder: Path | None = None) -> Preset:
    """Return the preset of this name, or in this file; a path starts in `folder` (default: the current one).

    The name of a registered policy is a preset with this policy alone. Raises BadSetting for an unknown name, and for a
    file with a fault, with file, line and the allowed values.
    """
    if _is_path(name):
        return _from_file(_resolve(name, folder), name, ())
    return _by_name(name, folder)


def read_tables(file: TomlFile, source: Source, others: Mapping[str, object]) -> dict[Place, Sourced]:
    """Return the values of a file by their places. `others`: names that the file may hold besides those of mechanisms.

    Raises BadSetting for unknown names; the kinds of values are checked once it is clear which of them count.
    """
    check_names(file.tables, others, lambda place: source.at(place, file).subject)
    return {place: Sourced(value, source.at(place, file)) for place, value in values_in(file.tables)}


def values_in(tables: Mapping[str, object]) -> Iterator[tuple[Place, object]]:
    """Yield the values of tables with their places; the empty table of a mechanism has none."""
    for place, value in flatten(tables):
        if len(place) > 1 or not isinstance(value, Mapping) or mechanism_named(place[0]) is None:
            yield place, value


def check_names(
    tables: Mapping[str, Any], others: Mapping[str, object], subject: Callable[[Place], str], *, in_python: bool = False
) -> None:
    """Raise BadSetting for a name that is no setting.

    `subject`: names the source of a place. `others`: names besides those of mechanisms, with the type `dict` if they
    are tables. `in_python`: accept settings that only a program can pass.
    """
    for name, value in tables.items():
        if name in others:
            if isinstance(value, Mapping) and value and others[name] is not dict:
                example = f", such as {name} = {_EXAMPLES[name]}" if name in _EXAMPLES else ""
                raise BadSetting(
                    f"{subject((name,))} is a table, with {shorten(next(iter(value)))} in it; allowed: one "
                    f"value{example}."
                )
            continue
        mechanism = mechanism_named(name)
        if mechanism is None:
            known = [*others, *MECHANISMS, *registered()]
            raise _unknown(subject((name,)), name, known)
        if not isinstance(value, Mapping):
            raise BadSetting(
                f"{subject((name,))} is {shorten(value)}; allowed: a table of settings of {name}, such as "
                f"enabled = {'false' if value is False else 'true'} under [{name}]."
            )
        fields = {key: field for key, field in mechanism.fields.items() if in_python or is_plain(field.kind)}
        for key, inner in value.items():
            if key == "enabled":
                continue
            if key not in fields:
                raise _unknown(subject((name, key)), key, ["enabled", *fields], f" in {name}")
            if unknown := find_unknown(fields[key].kind, inner, (name, key)):
                raise _unknown(subject(unknown[0]), unknown[0][-1], unknown[1])


# ------------------------------------------------------------------------------------------------------------- helpers


def _unknown(subject: str, name: str, known: Iterable[str], where: str = "") -> BadSetting:
    known = list(known)
    return BadSetting(
        f"{subject}: there is no setting of that name.{suggest(name, known)} Known{where}: {', '.join(known)}."
    )


def _is_path(name: str) -> bool:
    return name.endswith(".toml") or "/" in name or "\\" in name


def _by_name(name: str, folder: Path | None) -> Preset:
    if match := re.fullmatch(r"keep-last-([1-9][0-9]{0,8})", name):
        values: dict[Place, object] = {("filter", "enabled"): True, ("filter", "keep"): int(match[1])}
        return Preset(name, f"The newest {match[1]} tool results stay whole.", _preset_layer(name, values))
    if name in SHIPPED:
        return _read_shipped(name)
    if name in registered():
        return Preset(name, registered()[name].description, _preset_layer(name, {(name, "enabled"): True}))
    file = f"{name}.toml"
    if name and os.path.isfile(_resolve(file, folder)):
        raise BadSetting(f"There is no policy {name!r}, but a file {file}: name it with its ending.")
    raise BadSetting(
        f"There is no policy {name!r}.{suggest(name, [*PRESET_NAMES, *registered()])} "
        f"Known: {', '.join([*PRESET_NAMES, *registered()])}, or the path of a .toml file."
    )


def _preset_layer(name: str, values: Mapping[Place, object]) -> dict[Place, Sourced]:
    source = Source(Level.PRESET, f"preset {name}")
    return {place: Sourced(value, source.at(place)) for place, value in values.items()}


@cache
def _read_shipped(name: str) -> Preset:
    preset = _from_file(_FOLDER / f"{name}.toml", name, ())
    return Preset(
        name, preset.description, _preset_layer(name, {at: sourced.value for at, sourced in preset.layer.items()})
    )


def _from_file(path: Path, name: str, above: tuple[Path, ...]) -> Preset:
    """Read a preset from a file. `above`: the files that extend it, the nearest last."""
    if path in above:
        chain = " extends ".join(file_above.name for file_above in (*above[above.index(path) :], path))
        raise BadSetting(f"{above[-1]} extends itself: {chain}.")
    file = TomlFile(path, name)
    source = Source(Level.PRESET, f"preset {name}")
    for foreign in ("policy", "store", "format", "model", "window", "reserve", "tenant"):
        if foreign in file.tables:
            raise BadSetting(
                f"{source.at((foreign,), file).subject}: a preset does not set this; write it into foveate.toml, or "
                f"pass {foreign}= or FOVEATE_{foreign.upper()}."
            )
    layer = read_tables(file, source, dict.fromkeys(("description", "extends", "floor", "summarizer")))
    for table, value in file.tables.items():
        if isinstance(value, Mapping) and mechanism_named(table):
            layer.setdefault((table, "enabled"), Sourced(True, source.at((table,), file)))
    description, extends = (_text_of(layer.pop((key,), None)) for key in ("description", "extends"))
    files: tuple[Path, ...] = (path,)
    if extends is not None:
        try:
            other = str(extends.value)
            below = (
                _from_file(_resolve(other, path.parent), other, (*above, path))
                if _is_path(other)
                else _by_name(other, path.parent)
            )
        except BadSetting as error:
            raise BadSetting(f"{extends.source.subject} is {extends.value!r}. {error}") from error
        layer, files = merge(below.layer, layer), (path, *below.files)
    return Preset(name, str(description.value) if description else "", layer, files)


def _text_of(sourced: Sourced | None) -> Sourced | None:
    if sourced is not None and not isinstance(sourced.value, str):
        raise BadSetting(f"{sourced.source.subject} is {shorten(sourced.value)}; allowed: a text.")
    return sourced


def _resolve(name: str, folder: Path | None) -> Path:
    """Return the real path: `a.toml`, `./a.toml` and `b/../a.toml` are one file, which cannot extend itself."""
    try:
        return Path(os.path.realpath((folder or Path()) / Path(name).expanduser()))
    except (RuntimeError, ValueError, OSError) as error:  # No such user; a path that no file can have; no folder.
        raise BadSetting(f"There is no file {name!r}: {error}.") from error
