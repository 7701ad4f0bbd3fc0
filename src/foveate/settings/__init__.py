"""Settings: what keywords, the environment, `foveate.toml` and presets say, merged, each value with its source.

    keyword > environment (FOVEATE_...) > foveate.toml > preset > default

Pure but for the files it reads: the environment is handed in, nothing is remembered. A wrong name is an error wherever
it stands; a wrong value where it counts, so that a level above can help out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..core.planner import Policy, Stage
from ..errors import BadInput, BadSetting
from ..formats import get_format
from ..models import is_model_name
from ..models.known import format_of_model
from ..policies import DEFAULT_PRESET, FLOOR, check_policies
from ..policies.presets import BARE, MECHANISMS, Preset, preset
from ..policies.presets.assembly import assembled, checked, is_on, precedence, refusal, settled
from ..policies.presets.said import Level, Place, Said, Saying, Source, over, shown
from ..policies.recaps import VARIABLES, recap_settings
from ..stores import place_of, without_password
from ..summarizers import summarizer_named
from .levels import FILE, GENERAL, Spoken, from_environment, from_file, from_keywords

__all__ = ["FILE", "Setting", "Settings", "load"]

_DEFAULTS = {
    "floor": True,
    "store": "memory:",
    "format": "openai",
    "model": "",
    "window": None,
    "reserve": None,
    "tenant": "",
    "summarizer": "",
    "expand": False,
    "expand_where": "auto",
}
_LEAST = {"window": 1, "reserve": 0}
_MOST = 2**63 - 1
"""The largest whole number that every store can keep."""
_RETAINS = ("retain", "enabled")
_NOBODY = Source(Level.DEFAULT, "default")

Levels = Mapping[Level, Spoken]


class Setting(Struct, frozen=True):
    """A value that counts. `source`: who said it, such as `foveate.toml, line 3: prune.protect` or `default`."""

    value: Any
    spoken_by: Source

    @property
    def source(self) -> str:
        return str(self.spoken_by)


class Settings(Struct, frozen=True):
    """Settings that go together.

    `description`: the preset's own. `steps`: the mechanisms that act, in the order in which they run; one that is put
    around others as `defer(prune, filter)`. `unused`: what is said of mechanisms that are off.
    """

    description: str
    steps: tuple[str, ...]
    unused: Mapping[str, Setting]
    said: Saying
    made: tuple[Policy, ...]

    @property
    def values(self) -> Mapping[str, Setting]:
        """All that counts, by names such as `window` and `prune.protect`, mechanisms in the order in which they run."""
        found: list[tuple[Place, Said]] = [((name,), self.said[(name,)]) for name in GENERAL]
        for mechanism in MECHANISMS:
            if (switch := (mechanism, "enabled")) in self.said:
                found.append((switch, self.said[switch]))
            if is_on(mechanism, self.said):
                found += settled(mechanism, self.said)
        return {".".join(place): Setting(said.value, said.source) for place, said in found}

    @property
    def has_preset(self) -> bool:
        """Whether the policies come from a preset."""
        return isinstance(self["policy"], str)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are on, in the order of the table."""
        return tuple(name for name in MECHANISMS if is_on(name, self.said))

    def __getitem__(self, name: str) -> Any:
        """The value of a setting that is no mechanism's: `settings["window"]`."""
        return self.said[(name,)].value

    def policies(self) -> tuple[Policy, ...]:
        """The policies, in the order in which they run."""
        return self.made

    def floor(self) -> tuple[Stage, ...]:
        """The hard floor below them; empty where it is switched off."""
        return FLOOR if self["floor"] else ()


def load(
    *,
    policy: str | Policy | Sequence[str | Policy] | None = None,
    environ: Mapping[str, str],
    folder: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    has_plugins: bool = False,
    **keywords: object,
) -> Settings:
    """Merge all that is said.

    `environ`: such as `os.environ`. `folder`: where `foveate.toml` may lie, and where paths of presets start; None: no
    such file is read. `keywords`: `store`, `format`, `model`, `window`, `reserve`, `tenant`, `summarizer`, `expand`,
    `expand_where`; None says nothing. `settings`: of mechanisms, such as `{"prune": {"protect": 20_000}}`.
    `has_plugins`: then `retain` is on, unless somebody says otherwise or `off` is chosen. A Store, a Format, a
    summarizer and policies of your own are taken as they are. Raises BadSetting, naming source and value, what is
    allowed, and what takes precedence.
    """
    levels = {
        Level.FILE: from_file(folder),
        Level.ENVIRONMENT: from_environment(environ),
        Level.KEYWORD: from_keywords({"policy": policy, **keywords}, settings),
    }
    chosen = _highest(("policy",), levels) or Said(DEFAULT_PRESET, _NOBODY)
    base = _preset(chosen, folder)
    counting = _counting(levels, chosen, base)
    merged: Saying = {(name,): Said(value, _NOBODY) for name, value in _DEFAULTS.items()}
    for saying in (base.said if base else {}, *(level.saying for level in counting.values())):
        merged = over(merged, saying)
    merged = over(merged, {("policy",): chosen})
    if base is not None:
        merged = _switched(merged, counting, chosen.source.level)
        if has_plugins and base.name != "off" and _RETAINS not in merged:
            merged = over(merged, {_RETAINS: Said(True, Source(Level.KEYWORD, "keyword plugins=", None, _RETAINS))})
        merged = _with_recap_variables(merged, environ)
    model = merged[("model",)].value
    if merged[("format",)].source is _NOBODY and isinstance(model, str) and (format := format_of_model(model)):
        merged = over(merged, {("format",): Said(format, Source(Level.DEFAULT, f"model {model}"))})
    _check_general(merged)
    _check_store_of_file(merged[("store",)], folder)
    made = {} if base is None else assembled(merged)
    policies = check_policies(chosen.value) if base is None else tuple(made.values())
    return Settings(base.description if base else "", tuple(made), _unused(levels, merged), merged, policies)


# ------------------------------------------------------------------------------------------------------------- merging


def _highest(place: Place, levels: Levels) -> Said | None:
    return next((levels[level].saying[place] for level in sorted(levels)[::-1] if place in levels[level].saying), None)


def _preset(chosen: Said, folder: Path | None) -> Preset | None:
    """The preset that was chosen; None for policies of the program's own."""
    if chosen.source.level is Level.KEYWORD and not isinstance(chosen.value, str):
        return None
    name = checked(str, ("policy",), chosen)
    try:
        return preset(name, folder)
    except BadSetting as error:
        if chosen.source.level is Level.KEYWORD:
            raise
        raise _again(("policy",), chosen, error) from error


def _counting(levels: Levels, chosen: Said, base: Preset | None) -> Levels:
    """What counts of each level: nothing of mechanisms from below a choice that excludes them."""
    if base is not None and base.name not in BARE:
        return levels
    if base is None:
        told = levels[Level.KEYWORD].tables
        if told:
            raise BadSetting(
                f"Keyword settings= tells mechanisms of a preset what to do ({', '.join(told)}), and policy= is a "
                "policy of your own. Give one of them."
            )
        return {level: Spoken(_without_tables(spoken.saying), {}) for level, spoken in levels.items()}
    # Whoever says `off` does not want what somebody had said before of what is to be done.
    return {level: one if level >= chosen.source.level else one.of_general() for level, one in levels.items()}


def _without_tables(saying: Saying) -> Saying:
    return {place: said for place, said in saying.items() if place[0] in GENERAL}


def _switched(merged: Saying, counting: Levels, choice: Level) -> Saying:
    """Each mechanism on or off, where it is not as the preset has it.

    `enabled` says so. Without that, whoever speaks of a mechanism on the level that chose the preset, or above it,
    means it to run; what is said below only tunes what the choice has switched on.
    """
    switched = dict(merged)
    for mechanism in MECHANISMS:
        place = (mechanism, "enabled")
        if _highest(place, counting) is None:
            speaking = [level for at, level in counting.items() if at >= choice]
            meant = [level.tables[mechanism] for level in speaking if mechanism in level.tables]
            if meant and not is_on(mechanism, switched):
                switched[place] = Said(True, meant[-1])
    return switched


def _with_recap_variables(merged: Saying, environ: Mapping[str, str]) -> Saying:
    """What older variables say of recaps, where recaps are on and no newer variable or keyword speaks of it."""
    if not is_on("recap", merged):
        return merged
    counting = {}
    for name, variable in VARIABLES.items():
        earlier = merged.get(("recap", name))
        is_newer = earlier is not None and earlier.source.level >= Level.ENVIRONMENT
        if environ.get(variable, "").strip() and not is_newer:
            counting[variable] = environ[variable]
    told = dict(merged)
    for name, value in recap_settings(counting).items():
        if (variable := VARIABLES[name]) in counting:
            place = ("recap", name)
            told[place] = Said(value, Source(Level.ENVIRONMENT, f"environment {variable}", None, place))
    return told


def _unused(levels: Levels, merged: Saying) -> Mapping[str, Setting]:
    """What is said without effect, because the mechanism is off or the choice of the policy excludes it."""
    unused = {}
    for level, spoken in levels.items():
        for place, said in spoken.saying.items():
            counts = place[0] in GENERAL or place[1] == "enabled" or is_on(place[0], merged)
            known = merged.get(place)
            if not counts or (place == ("floor",) and known is not None and known.source.level < level):
                unused[".".join(place)] = Setting(said.value, said.source)
    return unused


# ------------------------------------------------------------------------------------------------------------ checking


def _check_general(merged: Saying) -> None:
    """Raises BadSetting for a value that is not allowed, of what is no mechanism's."""
    for name, kind in GENERAL.items():
        place = (name,)
        said = merged[place]
        by_keyword = said.source.level is Level.KEYWORD
        if said.source.level is Level.DEFAULT or (
            by_keyword and name in ("policy", "store", "format", "summarizer") and not isinstance(said.value, str)
        ):
            continue
        if name in _LEAST:
            if type(said.value) is not int or not _LEAST[name] <= said.value <= _MOST:
                raise refusal(place, said, f"a whole number of {_LEAST[name]} or more")
            continue
        value = checked(kind, place, said)
        try:
            if name == "store":
                place_of(value)
            elif name == "format":
                get_format(value)
            elif name == "summarizer" and value and not is_model_name(value):
                summarizer_named(value)
        except BadInput as error:
            raise _again(place, said, error) from error


def _check_store_of_file(said: Said, folder: Path | None) -> None:
    """Raise BadSetting if `foveate.toml` names a store that is not a SQLite file inside its folder.

    A folder may come from somebody else: its settings must not send conversations to another place.
    """
    if said.source.level is not Level.FILE or folder is None:
        return
    url = str(said.value)
    place = place_of(url)
    if place.kind == "memory":
        return
    if place.kind == "sqlite":
        path = (folder / Path(place.path).expanduser()).resolve()
        if path.is_relative_to(folder.resolve()):
            return
    raise BadSetting(
        f"{said.source.subject} is {shown(without_password(url))}, which is not a SQLite file inside the folder "
        f"of {FILE}. Name such a store with the keyword store= or the environment (FOVEATE_STORE), or write a path "
        "inside the folder, such as sqlite:///chats.db."
    )


def _again(place: Place, said: Said, error: BadInput) -> BadSetting:
    """An error, said again with the source of the value that it is about."""
    value = without_password(str(said.value)) if place == ("store",) else said.value
    return BadSetting(f"{said.source.subject} is {shown(value)}. {error}{precedence([(place, said)])}")
