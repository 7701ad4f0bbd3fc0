"""Parameters of a preset that a search may change, and the values that it tries for each.

The space is read off the mechanisms that are on: every setting that is a number or a switch belongs to it. Texts, lists
and choices between words do not, because a replay cannot judge what a model makes of words. A setting that the
environment or `foveate.toml` sets does not either, because no preset could change it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct

from ..errors import BadSetting
from ..policies.presets.assembly import assemble, settled, switched_on
from ..policies.presets.sources import Layer, Level, Place, Source, Sourced, flatten, merge
from ..policies.presets.values import Field, fields_of, members_of

__all__ = ["Parameter", "Point", "Space", "Value", "changes_between", "space_of"]

Value = bool | int | float | str
"""A value of a parameter. The text `none` stands for None, as in TOML."""

Point = tuple[int, ...]
"""A place in the space: for each parameter the index of its value."""

_NONE = "none"
_STEPS = range(-4, 5)
"""Steps of a ladder from the preset's value. A step is a factor of the square root of 2, so the ladder reaches from a
quarter to four times the value."""
_FROM_ZERO: Mapping[type, tuple[float, ...]] = {int: (0, 1, 2, 4, 8, 16, 32), float: (0.0, 0.25, 0.5, 0.75)}
"""Ladders of parameters that the preset sets to 0, which has no multiples."""


class Parameter(Struct, frozen=True):
    """A setting that the search may change."""

    place: Place
    """The mechanism and the name of its setting."""
    values: tuple[Value, ...]
    """Allowed values: numbers ascend, `none` is the last."""
    start: int
    """The index of the preset's value."""
    is_set: bool
    """Whether the preset sets it. Other parameters have the mechanism's default."""

    @property
    def name(self) -> str:
        """The name in settings, such as `prune.protect`."""
        return ".".join(self.place)


class Space:
    """The parameters of a preset."""

    def __init__(self, parameters: Sequence[Parameter], layer: Layer) -> None:
        """Create a space. `layer`: the values of the preset, the environment and `foveate.toml`."""
        self.parameters = tuple(parameters)
        self.start: Point = tuple(parameter.start for parameter in parameters)
        """The preset itself."""
        self._layer = layer

    def settings(self, point: Point) -> dict[str, Any]:
        """Return the values that differ from the preset's: a table for each mechanism, with tables inside."""
        pairs = zip(self.parameters, point, strict=True)
        return _tables({each.place: each.values[index] for each, index in pairs if index != each.start})

    def moved(self, point: Point, at: int, steps: int) -> Point:
        """Return the point with the parameter at index `at` moved by `steps` values, at most to the end of its list."""
        last = len(self.parameters[at].values) - 1
        return (*point[:at], min(max(point[at] + steps, 0), last), *point[at + 1 :])

    def is_allowed(self, point: Point) -> bool:
        """Return whether the mechanisms accept these values together."""
        return _is_accepted(self._layer, self.settings(point))


def space_of(layer: Layer) -> Space:
    """Return the space around the settings of a layer."""
    parameters = [
        parameter
        for mechanism in switched_on(layer)
        for place, sourced in settled(mechanism, layer)
        if place[1] in mechanism.fields and sourced.source.level <= Level.PRESET
        if (parameter := _parameter(place, _kind_of(mechanism.fields, place[1:]), sourced, layer)) is not None
    ]
    return Space(parameters, layer)


def changes_between(space: Space, point: Point) -> list[tuple[str, Value, Value]]:
    """Return the name, the preset's value and the new value of each parameter that differs from the preset."""
    return [
        (parameter.name, parameter.values[parameter.start], parameter.values[index])
        for parameter, index in zip(space.parameters, point, strict=True)
        if index != parameter.start
    ]


def _kind_of(fields: Mapping[str, Field], path: Place) -> Any:
    """Return the type of the value at a path of names, through the tables on the way; None if it is unknown."""
    kind = fields[path[0]].kind
    for name in path[1:]:
        kinds = [_kind_in(_bare(member), name) for member in members_of(kind)]
        kind = next((inner for inner in kinds if inner is not None), None)
    return kind


def _kind_in(table: Any, name: str) -> Any:
    """Return the type of the value with this name in a table of this type; None if it has none."""
    if isinstance(table, type) and issubclass(table, Struct):
        fields = fields_of(table)
        return fields[name].kind if name in fields else None
    return arguments[1] if len(arguments := get_args(table)) == 2 else None


def _tables(values: Mapping[Place, Value]) -> dict[str, Any]:
    """Return values by place as nested tables."""
    tables: dict[str, Any] = {}
    for (*above, name), value in values.items():
        table = tables
        for each in above:
            table = table.setdefault(each, {})
        table[name] = value
    return tables


def _parameter(place: Place, kind: Any, sourced: Sourced, layer: Layer) -> Parameter | None:
    """Return the parameter of a setting, or None if it is neither a number nor a switch, or has only one value."""
    kinds = {_bare(member) for member in members_of(kind)}
    value = sourced.value
    if kinds == {bool}:
        return Parameter(place, (False, True), int(bool(value)), sourced.source.level is Level.PRESET)
    if not kinds <= {int, float, NoneType} or isinstance(value, bool) or not isinstance(value, int | float):
        return None  # A number that is not set has no scale.
    is_whole = isinstance(value, int) and int in kinds
    wanted: list[Value] = [*_ladder(value if is_whole else float(value)), *([_NONE] if NoneType in kinds else [])]
    values = [
        candidate for candidate in wanted if candidate == value or _is_accepted(layer, _tables({place: candidate}))
    ]
    if len(values) < 2:
        return None
    return Parameter(place, tuple(values), values.index(value), sourced.source.level is Level.PRESET)


def _ladder(value: int | float) -> list[int | float]:
    """Return the values around one: itself, and multiples with two significant digits.

    A share (a number below 1) stays one, because numbers above 1 often have another unit.
    """
    kind = type(value)
    if value <= 0:
        return [*map(kind, _FROM_ZERO[kind])] if value == 0 else [value]
    others = {kind(_rounded(value * math.sqrt(2) ** step)) for step in _STEPS if step}
    if value < 1:
        others = {other for other in others if other <= 1}
    return sorted({value, *(other for other in others if other > 0)})


def _rounded(value: float) -> float:
    """Round to two significant digits."""
    return round(value, 1 - math.floor(math.log10(value)))


def _is_accepted(layer: Layer, settings: Mapping[str, Any]) -> bool:
    source = Source(Level.KEYWORD, "tune")
    over = {place: Sourced(value, source) for place, value in flatten(settings)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            assemble(merge(layer, over))
        except BadSetting:
            return False
    return True


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
