"""Presets: named lists of mechanisms with their parameters, each a short TOML file, shipped or written by users.

Holds the one table of mechanisms, in the order in which they run, whatever the order in a file. Knows nothing of the
other places in which settings are said; `settings` lays those over what a preset says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...errors import BadSetting
from .. import PRESET_NAMES
from .arguments import Argument, arguments_of, is_sayable, stray
from .said import Level, Place, Said, Source, flat, nearest, over, shown
from .toml_file import TomlFile

__all__ = [
    "BARE",
    "MECHANISMS",
    "SHIPPED",
    "Mechanism",
    "Preset",
    "check_names",
    "is_path",
    "preset",
    "tables_of",
    "values_of",
]


class Mechanism:
    """A mechanism as presets know it: its name, and the function that makes its policy.

    `around`: names of mechanisms whose policies are handed to this function, so that its policy runs in their place.
    """

    def __init__(self, name: str, module: str, function: str = "", around: tuple[str, ...] = ()) -> None:
        self.name, self.around = name, around
        self._module, self._function = module, function or module

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function that makes the policy. Its module is imported when this is asked for."""
        function: Callable[..., Any] = getattr(import_module(f"..{self._module}", __package__), self._function)
        return function

    @property
    def arguments(self) -> Mapping[str, Argument]:
        """What the mechanism can be told; `enabled` is a word of the tables themselves."""
        known = arguments_of(self.function)
        hidden = ("enabled", *_RENAMED, *(["policy"] if self.around else []))
        return {name: known[name] for name in known if name not in hidden}


_MAY_WAIT = ("fold", "supersede", "dedupe", "prune", "filter", "shrink")

MECHANISMS: Mapping[str, Mechanism] = {
    one.name: one
    for one in (
        Mechanism("retain", "block_retention", "retain_blocks"),
        Mechanism("expire", "expiry", "expire_results"),
        Mechanism("supersede", "superseded_results", "supersede"),
        Mechanism("dedupe", "duplicates", "dedupe"),
        Mechanism("pins", "pins", "pin_newest"),
        Mechanism("prune", "pruning", "prune_tool_outputs"),
        Mechanism("filter", "tool_result_filter", "filter_tool_results"),
        Mechanism("fold", "folds", "fold"),
        Mechanism("shrink", "digests", "shrink_to_digest"),
        Mechanism("defer", "deferral", "when_it_pays", around=_MAY_WAIT),
        Mechanism("recap", "recaps", "recap_batches"),
        Mechanism("checkpoint", "checkpoints", "checkpoint"),
        Mechanism("compact", "compaction", "compact_on_overflow"),
    )
}
"""All mechanisms by their names in files, in the order in which they run; the hard floor comes after them."""

_RENAMED = ("min_preserved_pairs",)
"""Arguments that are there for old programs alone."""

_FOLDER = Path(os.path.realpath(__file__)).parent
SHIPPED = tuple(name for name in PRESET_NAMES if name != "keep-last-N")
"""Names of the presets that are files beside this one."""
BARE = ("none", "off")
"""Presets that want next to nothing to be done: what lower levels say of mechanisms does not count then."""


class Preset(Struct, frozen=True):
    """A preset as it was read, with what it extends laid under it.

    `said`: values by their places; the switch of a mechanism is `("prune", "enabled")`.
    """

    name: str
    description: str
    said: Mapping[Place, Said]


def is_path(name: str) -> bool:
    """Whether what is given for a policy is a file rather than a name."""
    return name.endswith(".toml") or "/" in name or "\\" in name


def preset(name: str, folder: Path | None = None) -> Preset:
    """The preset of this name, or in this file; a path is looked up in `folder` (default: where the program runs).

    Raises BadSetting for a name that there is not, and for a file with a fault, naming file, line and what is allowed.
    """
    if is_path(name):
        return _from_file(_beside(name, folder), name, ())
    return _shipped(name, folder)


def tables_of(file: TomlFile, source: Source, others: Mapping[str, object]) -> dict[Place, Said]:
    """What a file says, with its places. `others`: names that may stand in it beside the mechanisms.

    A table of a mechanism switches it on unless it says `enabled = false`. Raises BadSetting for names that there are
    not; what kinds of values they have is looked at when it is clear which count.
    """
    check_names(file.tables, others, lambda place: _at(source, file, place).subject)
    return {place: Said(value, _at(source, file, place)) for place, value in values_of(file.tables)}


def values_of(tables: Mapping[str, object]) -> Iterator[tuple[Place, object]]:
    """The values of tables with their places; the empty table of a mechanism says nothing of its values."""
    return ((place, value) for place, value in flat(tables) if place[0] not in MECHANISMS or len(place) > 1)


def check_names(
    tables: Mapping[str, Any], others: Mapping[str, object], told: Callable[[Place], str], *, in_python: bool = False
) -> None:
    """Raises BadSetting for a name that is no setting. `told` tells where a place of the tables stands. `others`: names
    beside those of mechanisms; of one that may be a table, `dict`.

    `in_python`: whether values may be such as only a program has.
    """
    for name, value in tables.items():
        if name in others:
            if isinstance(value, Mapping) and value and others[name] is not dict:
                example = f", such as {name} = {_EXAMPLES[name]}" if name in _EXAMPLES else ""
                raise BadSetting(
                    f"{told((name,))} is a table, with {shown(next(iter(value)))} in it; allowed: one value{example}."
                )
            continue
        if name not in MECHANISMS:
            known = [*others, *MECHANISMS]
            hint = nearest(name, known)
            raise BadSetting(f"{told((name,))}: there is no setting of that name.{hint} {_listed(known)}")
        if not isinstance(value, Mapping):
            raise BadSetting(
                f"{told((name,))} is {shown(value)}; allowed: a table of what {name} is told, such as "
                f"enabled = {'false' if value is False else 'true'} under [{name}]."
            )
        _check_table(name, value, told, in_python)


_EXAMPLES = {"summarizer": '"anthropic:claude-haiku-4-5"', "floor": "false", "description": '"What it is for."'}
"""One value of settings that somebody may take for tables."""


def _check_table(mechanism: str, table: Mapping[str, Any], told: Callable[[Place], str], in_python: bool) -> None:
    arguments = MECHANISMS[mechanism].arguments
    arguments = {name: one for name, one in arguments.items() if in_python or is_sayable(one.kind)}
    for name, value in table.items():
        if name == "enabled":
            continue
        if name not in arguments:
            known = ["enabled", *arguments]
            place: Place = (mechanism, name)
        elif odd := stray(arguments[name].kind, value, (mechanism, name)):
            place, known = odd[0], list(odd[1])
        else:
            continue
        raise BadSetting(
            f"{told(place)}: there is no setting of that name.{nearest(place[-1], known)} "
            f"{_listed(known, f' in {place[0]}' if len(place) == 2 else '')}"
        )


def _listed(known: Iterable[str], where: str = "") -> str:
    return f"Known{where}: {', '.join(known)}."


# ------------------------------------------------------------------------------------------------------------- helpers


def _shipped(name: str, folder: Path | None) -> Preset:
    if match := re.fullmatch(r"keep-last-([1-9][0-9]{0,8})", name):
        keep = Said(int(match[1]), Source(Level.PRESET, f"preset {name}", None, ("filter", "keep")))
        on = Said(True, Source(Level.PRESET, f"preset {name}", None, ("filter", "enabled")))
        return Preset(
            name,
            f"The newest {match[1]} tool results stay whole.",
            {("filter", "enabled"): on, ("filter", "keep"): keep},
        )
    if name in SHIPPED:
        return _read_shipped(name)
    file = f"{name}.toml"
    if name and os.path.isfile(_beside(file, folder)):
        raise BadSetting(f"There is no policy {name!r}, but a file {file}: name it with its ending.")
    raise BadSetting(
        f"There is no policy {name!r}.{nearest(name, PRESET_NAMES)} Known: {', '.join(PRESET_NAMES)}, "
        "or the path of a .toml file."
    )


@cache
def _read_shipped(name: str) -> Preset:
    return _from_file(_FOLDER / f"{name}.toml", name, ())


def _from_file(path: Path, name: str, above: tuple[Path, ...]) -> Preset:
    """The preset in a file. `above`: files that extend it, the nearest last."""
    is_shipped = path.parent == _FOLDER
    if path in above:
        chain = " extends ".join(one.name for one in (*above[above.index(path) :], path))
        raise BadSetting(f"{above[-1]} extends itself: {chain}.")
    file = TomlFile(path, name)
    source = Source(Level.PRESET, f"preset {name}")
    others = dict.fromkeys(("description", "extends", "floor", "summarizer"))
    for foreign in ("policy", "store", "format", "model", "window", "reserve", "tenant"):
        if foreign in file.tables:
            where = _at(source, file, (foreign,)).subject
            raise BadSetting(
                f"{where}: a preset does not say this; write it into foveate.toml, or give it as "
                f"{foreign}= or FOVEATE_{foreign.upper()}."
            )
    said = tables_of(file, source, others)
    for mechanism in (one for one in MECHANISMS if one in file.tables):
        said.setdefault((mechanism, "enabled"), Said(True, _at(source, file, (mechanism,))))
    for key in ("description", "extends"):
        if (key,) in said and not isinstance(said[(key,)].value, str):
            raise BadSetting(f"{said[(key,)].source.subject} is {shown(said[(key,)].value)}; allowed: a text.")
    if is_shipped:  # Its lines are nobody's concern.
        said = {at: Said(one.value, Source(Level.PRESET, f"preset {name}", None, at)) for at, one in said.items()}
    description = said.pop(("description",), None)
    extends = said.pop(("extends",), None)
    if extends is not None:
        below = _extended(str(extends.value), path, (*above, path), extends.source)
        said = over(below.said, said)
    return Preset(name, str(description.value) if description else "", said)


def _extended(name: str, path: Path, above: tuple[Path, ...], source: Source) -> Preset:
    try:
        if is_path(name):
            return _from_file(_beside(name, path.parent), name, above)
        return _shipped(name, path.parent)
    except BadSetting as error:
        raise BadSetting(f"{source.subject} is {name!r}. {error}") from error


def _beside(name: str, folder: Path | None) -> Path:
    try:
        # By its real path, since `a.toml`, `./a.toml` and `b/../a.toml` are one file, which cannot extend itself.
        return Path(os.path.realpath((folder or Path()) / Path(name).expanduser()))
    except (RuntimeError, ValueError, OSError) as error:  # No such user; a path that no file can have; no folder.
        raise BadSetting(f"There is no file {name!r}: {error}.") from error


def _at(source: Source, file: TomlFile, place: Place) -> Source:
    return Source(source.level, source.name, file, place)
