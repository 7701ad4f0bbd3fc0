"""Assembly: turns the values of a layer into policies, and reports a wrong value with its source."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from ...core.planner import Policy
from ...errors import BadSetting
from .mechanisms import Mechanism, in_order, mechanism_named
from .sources import DEFAULT, Layer, Level, Place, Sourced, nested, shorten, without
from .values import Field, WrongValue, allowed, convert, is_table

__all__ = ["assemble", "check_value", "higher_levels", "is_on", "refusal", "settled", "switched_on"]


def assemble(layer: Layer) -> dict[str, Policy]:
    """Return the policies of the mechanisms that are on, by name, in the order in which they run.

    A mechanism that wraps others is called `defer(prune, filter)`. Raises BadSetting for values that are not allowed.
    """
    policies: dict[str, Policy] = {}
    for mechanism in switched_on(layer):
        inner = {name: policies.pop(name) for name in mechanism.wraps if name in policies}
        if inner or not mechanism.wraps:
            name = f"{mechanism.name}({', '.join(inner)})" if inner else mechanism.name
            policies[name] = _make(mechanism, layer, list(inner.values()))
    return dict(sorted(policies.items(), key=lambda item: not getattr(item[1], "runs_first", False)))


def switched_on(layer: Layer) -> list[Mechanism]:
    """Return the mechanisms that are on, in the order in which they run."""
    return [
        mechanism
        for mechanism in in_order(place[0] for place in layer if len(place) > 1)
        if is_on(mechanism.name, layer)
    ]


def is_on(mechanism: str, layer: Layer) -> bool:
    """Return whether a mechanism is switched on. Raises BadSetting if its switch is neither true nor false."""
    place = (mechanism, "enabled")
    return place in layer and bool(check_value(bool, place, layer[place]))


def settled(mechanism: Mechanism, layer: Layer) -> Iterator[tuple[Place, Sourced]]:
    """Yield all settings of a mechanism with the values that count, defaults included."""
    for field in mechanism.fields.values():
        place = (mechanism.name, field.name)
        values = {at: sourced for at, sourced in layer.items() if at[:2] == place}
        if place in values:
            values[place] = Sourced(_value(mechanism, field, values), values[place].source)
        yield from values.items()
        if not values and not field.is_required:
            yield place, Sourced(field.default, DEFAULT)


def check_value(kind: Any, place: Place, sourced: Sourced) -> Any:
    """Return the value as one of this kind. Raises BadSetting if it is none."""
    try:
        return convert(kind, sourced.value)
    except WrongValue as wrong:
        raise refusal(place, sourced, wrong.wanted) from wrong


def refusal(place: Place, sourced: Sourced, wanted: str) -> BadSetting:
    """Return the error for a value: its source, the value, the allowed values, and the levels that override it."""
    return BadSetting(
        f"{sourced.source.subject} is {shorten(sourced.value)}; allowed: {wanted}.{higher_levels([(place, sourced)])}"
    )


def higher_levels(wrong: list[tuple[Place, Sourced]]) -> str:
    """Return a sentence that names the ways to override these values; "" if there are none."""
    ways = list(dict.fromkeys(way for place, sourced in wrong for way in _ways(place, sourced.source.level)))
    if not ways:
        return ""
    text = f"{', '.join(ways[:-1])} and {ways[-1]}" if len(ways) > 1 else ways[0]
    verb, pronoun = "takes" if len(ways) == 1 else "take", "it" if len(wrong) == 1 else "them"
    return f" {text[0].upper()}{text[1:]} {verb} precedence over {pronoun}."


# ------------------------------------------------------------------------------------------------------------- helpers


def _make(mechanism: Mechanism, layer: Layer, inner: list[Policy]) -> Policy:
    """Call the function of a mechanism. `inner`: the policies that it wraps."""
    own = {place: value for place, value in layer.items() if place[0] == mechanism.name and place[1] != "enabled"}
    arguments = _arguments(mechanism, own)
    try:
        return _call(mechanism, arguments, inner)
    except BadSetting as error:
        raise _blame(_guilty(mechanism, own), error) from error


def _arguments(mechanism: Mechanism, layer: Layer) -> dict[str, Any]:
    names = {place[1] for place in layer}
    fields = mechanism.fields
    return {
        name: _value(mechanism, fields[name], layer) for name in fields if name in names or fields[name].is_required
    }


def _value(mechanism: Mechanism, field: Field, layer: Layer) -> Any:
    """Return the value of one setting, converted to its kind."""
    place = (mechanism.name, field.name)
    values = [(at, sourced) for at, sourced in layer.items() if at[:2] == place]
    if not values:
        raise BadSetting(
            f"{'.'.join(place)} is missing, and {mechanism.name} needs it; allowed: {allowed(field.kind)}. Set it with "
            f"{' or '.join(_ways(place, Level.DEFAULT))}."
        )
    value = nested(layer, place)
    try:
        return convert(field.kind, value)
    except WrongValue as wrong:
        at = place + wrong.path
        guilty = [(other, sourced) for other, sourced in values if other[: len(at)] == at or at[: len(other)] == other]
        if len(guilty) == 1 and guilty[0][1].source.level is Level.KEYWORD and callable(value):
            return value  # The function itself checks a value that only a program can pass.
        if len(guilty) == 1:
            raise refusal(*guilty[0], wrong.wanted) from wrong
        raise BadSetting(f"{_facts(guilty)}. Allowed: {wrong.wanted}.{higher_levels(guilty)}") from wrong
    except BadSetting as error:
        raise _blame(values, error) from error


def _call(mechanism: Mechanism, arguments: dict[str, Any], inner: list[Policy]) -> Policy:
    policy: Policy = mechanism.function(inner, **arguments) if mechanism.wraps else mechanism.function(**arguments)
    return policy


def _guilty(mechanism: Mechanism, layer: Layer) -> list[tuple[Place, Sourced]]:
    """Return the values to blame for a refusal: without one of them the function would not refuse."""
    if single := [place for place in layer if _works(mechanism, without(layer, place))]:
        return [(place, layer[place]) for place in single]
    names = list(dict.fromkeys(place[1] for place in layer))
    guilty = [name for name in names if _works(mechanism, without(layer, (mechanism.name, name)))]
    if not guilty:  # Several are wrong, each alone, or the wrong one is required.
        required = {field.name for field in mechanism.fields.values() if field.is_required}
        alone = {name: {at: sourced for at, sourced in layer.items() if at[1] in required | {name}} for name in names}
        guilty = [name for name, single in alone.items() if not _works(mechanism, single)] or names
    return [(place, sourced) for place, sourced in layer.items() if place[1] in guilty]


def _works(mechanism: Mechanism, layer: Layer) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _call(mechanism, _arguments(mechanism, layer), [])
        except BadSetting:
            return False
    return True


def _blame(guilty: list[tuple[Place, Sourced]], error: BadSetting) -> BadSetting:
    if not guilty:
        return error
    return BadSetting(f"{_facts(guilty)}. This is refused: {error}{higher_levels(guilty)}")


def _facts(guilty: list[tuple[Place, Sourced]]) -> str:
    first, *others = (sourced for _, sourced in guilty)
    facts = [f"{first.source.subject} is {shorten(first.value)}"]
    return "; ".join([*facts, *(f"{sourced.source.phrase} is {shorten(sourced.value)}" for sourced in others)])


def _ways(place: Place, level: Level) -> list[str]:
    """Return the ways to set a value above a level, the highest first."""
    keyword = f"{place[0]}=" if len(place) == 1 and place != ("floor",) else f"settings={_in_python(place)}"
    ways = [(Level.KEYWORD, f"the keyword {keyword}")]
    if len(place) < 3 and not _is_table(place):
        ways.append((Level.ENVIRONMENT, f"the environment (FOVEATE_{'_'.join(place).upper()})"))
    ways.append((Level.FILE, f"foveate.toml ({'.'.join(place)})"))
    return [way for of, way in ways if of > level]


def _is_table(place: Place) -> bool:
    mechanism = mechanism_named(place[0]) if len(place) == 2 else None
    field = mechanism.fields.get(place[1]) if mechanism else None
    return field is not None and is_table(field.kind)


def _in_python(place: Place) -> str:
    return f'{{"{place[0]}": {_in_python(place[1:])}}}' if place else "..."
