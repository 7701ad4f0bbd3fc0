"""Settings: the values of keywords, environment, `foveate.toml`, preset and defaults, merged, each with its source.

    keyword > environment (FOVEATE_...) > foveate.toml > preset > default

A wrong name is refused wherever it is set; a wrong value only if it counts, so that a higher level can override it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..core.planner import Policy, Stage
from ..errors import BadInput, BadSetting
from ..formats import get_format
from ..models import is_model_name, suggest_model
from ..models.known import format_of_model
from ..policies import DEFAULT_PRESET, FLOOR, PolicyChoice, check_policies
from ..policies.presets import BARE, Preset, load_presets
from ..policies.presets.assembly import assemble, check_value, higher_levels, is_on, settled, switched_on
from ..policies.presets.mechanisms import in_order
from ..policies.presets.sources import DEFAULT, Layer, Level, Place, Source, Sourced, merge, shorten
from ..policies.recap_environment import VARIABLES, recap_settings
from ..stores import place_of, without_password
from ..summarizers import check_name
from .layers import FILE, GENERAL, Spoken, from_environment, from_file, from_keywords, load_ages

__all__ = ["FILE", "Setting", "Settings", "load", "load_ages"]

_RETENTION = ("retain", "enabled")

Levels = Mapping[Level, Spoken]


class Setting(Struct, frozen=True):
    """The value of one setting. `origin`: where it was set. `description`: one sentence; "" if there is none."""

    value: Any
    origin: Source
    description: str = ""

    @property
    def source(self) -> str:
        """The origin in words, such as `foveate.toml, line 3: prune.protect` or `default`."""
        return str(self.origin)


class Settings(Struct, frozen=True):
    """The settings that count together.

    `description`: that of the preset. `steps`: the mechanisms that act, in the order in which they run; one that wraps
    others is called `defer(prune, filter)`. `unused`: settings of mechanisms that are off. `policies`: those of the
    mechanisms and of the program, in the order in which they run.
    """

    description: str
    steps: tuple[str, ...]
    unused: Mapping[str, Setting]
    layer: Layer
    policies: tuple[Policy, ...]

    @property
    def values(self) -> Mapping[str, Setting]:
        """All settings by names such as `window` and `prune.protect`, mechanisms in the order in which they run."""
        values = {name: _setting(self.layer[(name,)], field.description) for name, field in GENERAL.items()}
        for mechanism in in_order(place[0] for place in self.layer if len(place) > 1):
            switch = (mechanism.name, "enabled")
            if switch in self.layer:
                values[".".join(switch)] = _setting(self.layer[switch], "Whether this mechanism runs")
            if is_on(mechanism.name, self.layer):
                for place, sourced in settled(mechanism, self.layer):
                    values[".".join(place)] = _setting(sourced, mechanism.description_of(place[1]))
        return values

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are on, in the order in which they run."""
        return tuple(mechanism.name for mechanism in switched_on(self.layer))

    def __getitem__(self, name: str) -> Any:
        """Return the value of a setting that belongs to no mechanism: `settings["window"]`."""
        return self.layer[(name,)].value

    def is_switched_off(self, mechanism: str) -> bool:
        """Return whether a switch `enabled = false`, or the policy `off`, excludes a mechanism."""
        switch = self.layer.get((mechanism, "enabled"))
        return self["policy"] == "off" or (switch is not None and not is_on(mechanism, self.layer))

    def floor(self) -> tuple[Stage, ...]:
        """Return the hard floor below the policies; empty if it is switched off."""
        return FLOOR if self["floor"] else ()


def load(
    *,
    policy: PolicyChoice | None = None,
    environ: Mapping[str, str],
    folder: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    has_plugins: bool = False,
    **keywords: object,
) -> Settings:
    """Merge the settings of all levels.

    `environ`: such as `os.environ`. `folder`: the folder of `foveate.toml`, where paths of presets start; None: read no
    such file. `keywords`: the general settings, such as `window`; None sets nothing. `settings`: of mechanisms, such as
    `{"prune": {"protect": 20_000}}`. `has_plugins`: switch `retain` on, unless it is set otherwise or the policy is
    `off`. Objects, such as a Store or policies of your own, are taken as they are. Raises BadSetting with source and
    value, the allowed values, and the levels that override it.
    """
    levels = {
        Level.FILE: from_file(folder),
        Level.ENVIRONMENT: from_environment(environ),
        Level.KEYWORD: from_keywords({"policy": policy, **keywords}, settings),
    }
    chosen = _highest(("policy",), levels) or Sourced(DEFAULT_PRESET, DEFAULT)
    names, before, after = _split(chosen)
    base = _load_presets(names, chosen, folder)
    counting = _counting(levels, chosen, base)
    merged: Layer = {(name,): Sourced(field.default, DEFAULT) for name, field in GENERAL.items()}
    for layer in (base.layer if base else {}, *(spoken.layer for spoken in counting.values())):
        merged = merge(merged, layer)
    merged = _with_format(merge(merged, {("policy",): chosen}))
    if base is not None:
        merged = _with_switches(merged, counting, chosen.source.level)
        if has_plugins and base.name != "off" and _RETENTION not in merged:
            source = Source(Level.KEYWORD, "keyword plugins=", None, _RETENTION)
            merged = merge(merged, {_RETENTION: Sourced(True, source)})
        merged = _with_recap_variables(merged, environ)
    _check_general(merged)
    _check_store_of_file(merged[("store",)], folder)
    built = {} if base is None else assemble(merged)
    policies = (*before, *built.values(), *after)
    return Settings(base.description if base else "", tuple(built), _unused(levels, merged), merged, policies)


# ------------------------------------------------------------------------------------------------------------- merging


def _setting(sourced: Sourced, description: str = "") -> Setting:
    return Setting(sourced.value, sourced.source, description)


def _highest(place: Place, levels: Levels) -> Sourced | None:
    return next((levels[level].layer[place] for level in sorted(levels)[::-1] if place in levels[level].layer), None)


def _split(chosen: Sourced) -> tuple[list[str], tuple[Policy, ...], tuple[Policy, ...]]:
    """Return the names of presets in `policy=`, and the program's own policies before and after the first name."""
    value = chosen.value
    if chosen.source.level is not Level.KEYWORD or isinstance(value, str):
        return [check_value(str, ("policy",), chosen)], (), ()
    listed = value if isinstance(value, list | tuple) else [value]
    names = [choice for choice in listed if isinstance(choice, str)]
    own = check_policies([choice for choice in listed if not isinstance(choice, str)] if names else value)
    if len(names) > 1 and (alone := [name for name in names if name in BARE]):
        raise BadSetting(f"policy= names {alone[0]!r} among other presets. Name it alone, or leave it out.")
    first = next((at for at, choice in enumerate(listed) if isinstance(choice, str)), len(listed))
    return names, own[:first], own[first:]


def _load_presets(names: Sequence[str], chosen: Sourced, folder: Path | None) -> Preset | None:
    """Return the chosen presets as one; None for policies of the program alone."""
    if not names:
        return None
    try:
        return load_presets(names, folder)
    except BadSetting as error:
        if chosen.source.level is Level.KEYWORD:
            raise
        raise _with_source(("policy",), chosen, error) from error


def _counting(levels: Levels, chosen: Sourced, base: Preset | None) -> Levels:
    """Return the values of each level that count: none of mechanisms on a level below a choice that excludes them."""
    if base is not None and base.name not in BARE:
        return levels
    if base is None:
        if tables := levels[Level.KEYWORD].tables:
            raise BadSetting(
                f"Keyword settings= sets mechanisms of a preset ({', '.join(tables)}), and policy= is a policy of your "
                "own. Pass only one of them."
            )
        return {level: spoken.general() for level, spoken in levels.items()}
    # `off` overrides everything automatic that lower levels switch on.
    lower = chosen.source.level
    return {level: spoken if level >= lower else spoken.general(floor=False) for level, spoken in levels.items()}


def _with_format(merged: Layer) -> Layer:
    """Let the model choose the format, if nothing else does."""
    model = merged[("model",)].value
    if merged[("format",)].source is DEFAULT and isinstance(model, str) and (format := format_of_model(model)):
        return merge(merged, {("format",): Sourced(format, Source(Level.DEFAULT, f"model {model}"))})
    return merged


def _with_switches(merged: Layer, counting: Levels, choice: Level) -> Layer:
    """Switch each mechanism on that is set on the level that chose the preset, or above it.

    `enabled` decides, if it is set. A mechanism that only a lower level sets runs only if the preset switches it on.
    """
    switched = dict(merged)
    named = {name: spoken for level, spoken in counting.items() if level >= choice for name in spoken.tables}
    for name, spoken in named.items():
        place = (name, "enabled")
        if _highest(place, counting) is None and not is_on(name, switched):
            switched[place] = Sourced(True, spoken.tables[name])
    return switched


def _with_recap_variables(merged: Layer, environ: Mapping[str, str]) -> Layer:
    """Add the variables `LLM_COMPACTION_...`, if recaps are on and no variable FOVEATE_RECAP_... or keyword is set."""
    if not is_on("recap", merged):
        return merged
    counting = {}
    for name, variable in VARIABLES.items():
        earlier = merged.get(("recap", name))
        is_newer = earlier is not None and earlier.source.level >= Level.ENVIRONMENT
        if environ.get(variable, "").strip() and not is_newer:
            counting[variable] = environ[variable]
    added = dict(merged)
    for name, value in recap_settings(counting).items():
        if (variable := VARIABLES[name]) in counting:
            place = ("recap", name)
            added[place] = Sourced(value, Source(Level.ENVIRONMENT, f"environment {variable}", None, place))
    return added


def _unused(levels: Levels, merged: Layer) -> Mapping[str, Setting]:
    """Return values without effect: their mechanism is off, or the chosen policy excludes them."""
    unused = {}
    for level, spoken in levels.items():
        for place, sourced in spoken.layer.items():
            counts = place[0] in GENERAL or place[1] == "enabled" or is_on(place[0], merged)
            known = merged.get(place)
            if not counts or (place == ("floor",) and known is not None and known.source.level < level):
                unused[".".join(place)] = _setting(sourced)
    return unused


# ------------------------------------------------------------------------------------------------------------ checking


def _check_general(merged: Layer) -> None:
    """Raise BadSetting for a general setting with a value that is not allowed."""
    for name, field in GENERAL.items():
        place = (name,)
        sourced = merged[place]
        is_object = name in ("policy", "store", "format", "summarizer") and not isinstance(sourced.value, str)
        if sourced.source.level is Level.DEFAULT or (is_object and sourced.source.level is Level.KEYWORD):
            continue
        value = check_value(field.kind, place, sourced)
        try:
            if name == "store":
                place_of(value)
            elif name == "format":
                get_format(value)
            elif name == "summarizer" and value and not is_model_name(value):
                check_name(value, suggest_model(value))
        except BadInput as error:
            raise _with_source(place, sourced, error) from error


def _check_store_of_file(sourced: Sourced, folder: Path | None) -> None:
    """Raise BadSetting if `foveate.toml` names a store that is not a SQLite file inside its folder.

    The folder may come from another person: its settings must not send conversations to another place.
    """
    if sourced.source.level is not Level.FILE or folder is None:
        return
    url = str(sourced.value)
    place = place_of(url)
    if place.kind == "memory":
        return
    if place.kind == "sqlite":
        path = (folder / Path(place.path).expanduser()).resolve()
        if path.is_relative_to(folder.resolve()):
            return
    raise BadSetting(
        f"{sourced.source.subject} is {shorten(without_password(url))}, which is not a SQLite file inside the folder "
        f"of {FILE}. Name such a store with the keyword store= or the environment (FOVEATE_STORE), or write a path "
        "inside the folder, such as sqlite:///chats.db."
    )


def _with_source(place: Place, sourced: Sourced, error: BadInput) -> BadSetting:
    """Return an error about a value, with the source of the value."""
    value = without_password(str(sourced.value)) if place == ("store",) else sourced.value
    return BadSetting(f"{sourced.source.subject} is {shorten(value)}. {error}{higher_levels([(place, sourced)])}")
