"""Layers of settings: reads keywords, the environment and `foveate.toml` into values with their sources.

Names are checked here; values are checked later, if they count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.retention import Age, read_ages
from ..errors import BadSetting
from ..policies.presets import check_names, read_tables, values_in
from ..policies.presets.mechanisms import MECHANISMS, registered
from ..policies.presets.sources import Layer, Level, Place, Source, Sourced, TomlFile, shorten, suggest
from ..policies.presets.values import Field, fields_of, is_plain, is_table, members_of, parse

__all__ = ["FILE", "GENERAL", "General", "Spoken", "from_environment", "from_file", "from_keywords", "load_ages"]

FILE = "foveate.toml"
"""The file of settings, in the folder where the program runs."""

MOST = 2**63 - 1
"""The largest whole number that every store can keep."""

_IGNORED = (
    *("FOVEATE_MCP_TOKEN", "FOVEATE_PROXY_", "FOVEATE_INSPECT_TOKEN"),
    *("FOVEATE_THOROUGH", "FOVEATE_TRANSCRIPTS", "FOVEATE_WIRE", "FOVEATE_TEST_"),
)
"""Beginnings of variables that are no settings: those of `foveate mcp`, `foveate proxy` and `foveate inspect`, and of
foveate's own tests."""


class General(Struct, frozen=True, kw_only=True):
    """The settings of a conversation that belong to no mechanism."""

    policy: Annotated[str, Meta(description="The preset: a name or the path of a .toml file")] = "balanced"
    floor: Annotated[bool, Meta(description="Whether the hard floor makes every view fit the window")] = True
    store: Annotated[str, Meta(description="The URL of the store")] = "memory:"
    format: Annotated[str, Meta(description="The wire format of messages; default: the model's")] = "openai"
    model: Annotated[str, Meta(description="The name of the model; it chooses format, window and prices")] = ""
    window: Annotated[int, Meta(ge=1_000, le=MOST, description="The model's window in tokens")] | None = None
    reserve: Annotated[int, Meta(ge=0, le=MOST, description="Tokens kept free for the answer")] | None = None
    tenant: Annotated[str, Meta(description="The owner of the conversation in a shared store")] = ""
    summarizer: Annotated[str, Meta(description="The writer of summaries: digest, first-characters or a model")] = ""
    expand: (
        Annotated[bool, Meta(description="Whether to offer the tool `expand`; default: with other tools")] | None
    ) = None
    expand_where: Annotated[
        Literal["view", "tail", "auto"], Meta(description="Where an expanded original is shown")
    ] = "auto"


GENERAL: Mapping[str, Field] = {
    name: replace(field, kind=next(iter(members_of(field.kind)))) for name, field in fields_of(General).items()
}
"""The fields of `General` by name. None is no value: it stands for a setting without a source."""


class Spoken(Struct, frozen=True):
    """The values that one level sets. `tables`: the mechanisms that it names, even without a value."""

    layer: Layer
    tables: Mapping[str, Source]

    def general(self, *, floor: bool = True) -> Spoken:
        """Return the same without settings of mechanisms, and without the floor if `floor` is false."""
        kept = {place: value for place, value in self.layer.items() if place[0] in GENERAL}
        if not floor:
            kept.pop(("floor",), None)
        return Spoken(kept, {})


def from_keywords(keywords: Mapping[str, object], settings: Mapping[str, Any] | None) -> Spoken:
    """Read keywords of a program; None sets nothing. Raises BadSetting for unknown names."""
    if unknown := [name for name in keywords if name not in GENERAL]:
        raise BadSetting(f"Keyword {unknown[0]}=: there is no setting of that name.{suggest(unknown[0], GENERAL)}")
    layer: dict[Place, Sourced] = {
        (name,): Sourced(value, Source(Level.KEYWORD, f"keyword {name}=", None, (name,)))
        for name, value in keywords.items()
        if value is not None
    }
    if settings is None:
        return Spoken(layer, {})
    if not isinstance(settings, Mapping):
        raise BadSetting(
            f'Keyword settings= is {shorten(settings)}; allowed: a mapping, such as {{"prune": {{"protect": 20_000}}}}.'
        )
    check_names(settings, {"floor": bool}, lambda place: _keyword(place).subject, in_python=True)
    layer |= {place: Sourced(value, _keyword(place)) for place, value in values_in(settings)}
    return Spoken(layer, {name: _keyword((name,)) for name in settings if name not in GENERAL})


def from_environment(environ: Mapping[str, str]) -> Spoken:
    """Read variables `FOVEATE_...`; a blank one sets nothing. Raises BadSetting for an unknown variable."""
    layer: dict[Place, Sourced] = {}
    tables: dict[str, Source] = {}
    for name in sorted(environ):
        if not name.upper().startswith("FOVEATE_") or name.startswith(_IGNORED):
            continue
        place, kind = _setting_of(name)
        if text := environ[name].strip():
            source = Source(Level.ENVIRONMENT, f"environment {name}", None, place)
            layer[place] = Sourced(parse(kind, text), source)
            if len(place) > 1:
                tables.setdefault(place[0], source)
    return Spoken(layer, tables)


def from_file(folder: Path | None) -> Spoken:
    """Read `foveate.toml` in this folder, if it exists. Raises BadSetting for a fault in it."""
    if folder is None or not os.path.lexists(folder / FILE):
        return Spoken({}, {})
    file = TomlFile(folder / FILE, FILE)
    source = Source(Level.FILE, FILE)
    for name in ("extends", "description"):
        if name in file.tables:
            raise BadSetting(
                f"{source.at((name,), file).subject}: only a preset sets this; name the preset here: "
                'policy = "balanced".'
            )
    layer = read_tables(file, source, {**GENERAL, "ages": dict})
    layer = {place: value for place, value in layer.items() if place[0] != "ages"}  # Read by `load_ages`.
    tables = {name: source.at((name,), file) for name in file.tables if name not in GENERAL and name != "ages"}
    return Spoken(layer, tables)


def load_ages(folder: Path) -> tuple[Age, ...]:
    """Return the rules of retention in the table `[ages]` of `foveate.toml`; none without such a file or table.

    Each is one rule in words by its kind, or a list of several: `tool_results = "90 days and 200 turns"`. Raises
    BadSetting, with the line, for a rule that is not allowed.
    """
    if not os.path.lexists(folder / FILE):
        return ()
    file = TomlFile(folder / FILE, FILE)
    source = Source(Level.FILE, FILE)
    table = file.tables.get("ages", {})
    if not isinstance(table, Mapping):
        raise BadSetting(
            f"{source.at(('ages',), file).subject} is {table!r:.60}; allowed: a table, such as "
            'tool_results = "90 days".'
        )
    ages: list[Age] = []
    for kind, rules in table.items():
        try:
            ages += read_ages({kind: rules})
        except BadSetting as error:
            raise BadSetting(f"{source.at(('ages', kind), file).subject}: {error}") from error
    return tuple(ages)


def _keyword(place: Place) -> Source:
    indices = "".join(f'["{name}"]' for name in place)
    return Source(Level.KEYWORD, f"keyword settings{indices}", None, place)


def _setting_of(variable: str) -> tuple[Place, Any]:
    """Return the setting that a variable sets, and the kind of its values."""
    rest = variable.removeprefix("FOVEATE_")
    if rest.isupper() and variable.startswith("FOVEATE_"):
        if rest.lower() in GENERAL:
            return (rest.lower(),), GENERAL[rest.lower()].kind
        for known in _mechanism_names(rest.lower()):
            fields, name = (MECHANISMS.get(known) or registered()[known]).fields, rest.lower()[len(known) + 1 :]
            if name == "enabled":
                return (known, name), bool
            field = fields.get(name)
            if field is not None and is_plain(field.kind):
                if is_table(field.kind):
                    raise BadSetting(
                        f"{variable}: {known}.{name} is a table, which the environment cannot hold; write it into "
                        f"{FILE}."
                    )
                return (known, name), field.kind
    names = _variables()
    switch = f"{variable}_ENABLED"  # FOVEATE_PRUNE means the mechanism.
    hint = f" Did you mean {switch}?" if switch in names else suggest(variable, names)
    raise BadSetting(
        f"The environment has {variable}, but there is no setting of that name.{hint} "
        "`foveate policy show` lists all settings."
    )


def _mechanism_names(text: str) -> list[str]:
    """Return the mechanisms that a variable may name; installed packages are read only if no shipped one fits."""
    shipped = [name for name in MECHANISMS if text.startswith(f"{name}_")]
    return shipped or [name for name in registered() if text.startswith(f"{name}_".replace("-", "_").lower())]


def _variables() -> list[str]:
    """Return the names of all variables."""
    places: list[Place] = [(name,) for name in GENERAL]
    for name, mechanism in {**MECHANISMS, **registered()}.items():
        texts = [field.name for field in mechanism.fields.values() if is_plain(field.kind) and not is_table(field.kind)]
        places += [(name, key) for key in ("enabled", *texts)]
    return [f"FOVEATE_{'_'.join(place).upper()}" for place in places]
