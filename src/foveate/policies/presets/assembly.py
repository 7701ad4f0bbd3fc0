"""From what is said to policies: looks at each value of the mechanisms that are on, and has their functions called.

A wrong value is told with its source, what is allowed, and what would take precedence over it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from ...core.planner import Policy
from ...errors import BadSetting
from . import MECHANISMS, Mechanism
from .arguments import Argument, Misfit, allowed, fit
from .said import Level, Place, Said, Saying, Source, nested, shown, unsaid

__all__ = ["assembled", "checked", "has_floor", "is_on", "precedence", "refusal", "settled", "summarizer_of"]

DEFAULT = Source(Level.DEFAULT, "default")


def assembled(saying: Saying) -> dict[str, Policy]:
    """The policies of the mechanisms that are on, in the order of the table; what was told to come first does.

    Each by its name; one that is put around others is called as `defer(prune, filter)`. Raises BadSetting for what is
    refused.
    """
    made: dict[str, Policy] = {}
    for mechanism in MECHANISMS.values():
        if is_on(mechanism.name, saying):
            inner = {name: made.pop(name) for name in mechanism.around if name in made}
            if inner or not mechanism.around:
                name = f"{mechanism.name}({', '.join(inner)})" if inner else mechanism.name
                made[name] = _built(mechanism, saying, list(inner.values()))
    return dict(sorted(made.items(), key=lambda one: not getattr(one[1], "runs_first", False)))


def is_on(mechanism: str, saying: Saying) -> bool:
    """Whether a mechanism is switched on. Raises BadSetting where that is said by something else than true or false."""
    said = saying.get((mechanism, "enabled"))
    return said is not None and bool(checked(bool, (mechanism, "enabled"), said))


def has_floor(saying: Saying) -> bool:
    """Whether the hard floor is there; it is unless somebody says `floor = false`."""
    said = saying.get(("floor",))
    return said is None or bool(checked(bool, ("floor",), said))


def summarizer_of(saying: Saying) -> str:
    """The name of the summarizer; "" where none is named."""
    said = saying.get(("summarizer",))
    return "" if said is None else str(checked(str, ("summarizer",), said))


def checked(kind: Any, place: Place, said: Said) -> Any:
    """The value, which is of this kind. Raises BadSetting where it is not."""
    try:
        return fit(kind, said.value)
    except Misfit as misfit:
        raise refusal(place, said, misfit.wanted) from misfit


def settled(mechanism: str, saying: Saying) -> Iterator[tuple[Place, Said]]:
    """All that a mechanism is told, value by value, with the defaults of its function."""
    for argument in MECHANISMS[mechanism].arguments.values():
        place = (mechanism, argument.name)
        told = {at: said for at, said in saying.items() if at[:2] == place}
        if place in told:
            told[place] = Said(_value(MECHANISMS[mechanism], argument, told), told[place].source)
        yield from told.items()
        if not told and not argument.is_required:
            yield place, Said(argument.default, DEFAULT)


def refusal(place: Place, said: Said, wanted: str) -> BadSetting:
    """A value is refused: where it was said, what it is, what is allowed, what takes precedence over it."""
    return BadSetting(f"{said.source.subject} is {shown(said.value)}; allowed: {wanted}.{precedence([(place, said)])}")


def precedence(guilty: list[tuple[Place, Said]]) -> str:
    """What takes precedence over values, in a sentence."""
    ways = list(dict.fromkeys(way for place, said in guilty for way in _levels(place, said.source.level)))
    if not ways:
        return ""
    listed = f"{', '.join(ways[:-1])} and {ways[-1]}" if len(ways) > 1 else ways[0]
    verb, what = "takes" if len(ways) == 1 else "take", "it" if len(guilty) == 1 else "them"
    return f" {listed[0].upper()}{listed[1:]} {verb} precedence over {what}."


# ------------------------------------------------------------------------------------------------------------- helpers


def _built(mechanism: Mechanism, saying: Saying, inner: list[Policy]) -> Policy:
    """The policy of a mechanism. `inner`: the policies that it is put around, if it is."""
    told = _told(mechanism.name, saying)
    values = _values(mechanism, told)
    try:
        return _call(mechanism, values, inner)
    except BadSetting as error:
        raise _blamed(mechanism, told, error) from error


_UNSAID: Any = object()


def _told(mechanism: str, saying: Saying) -> dict[Place, Said]:
    return {place: said for place, said in saying.items() if place[0] == mechanism and place[1] != "enabled"}


def _value(mechanism: Mechanism, argument: Argument, told: Saying) -> Any:
    place = (mechanism.name, argument.name)
    value = nested(told, place)
    if value == {} and place not in told:
        if argument.is_required:
            raise BadSetting(
                f"{'.'.join(place)} is missing, and {mechanism.name} cannot do without; allowed: "
                f"{allowed(argument.kind)}. Say it with {' or '.join(_levels(place, Level.DEFAULT))}."
            )
        return _UNSAID
    try:
        return fit(argument.kind, value)
    except Misfit as misfit:
        at = place + misfit.path
        guilty = [(one, said) for one, said in told.items() if one[: len(at)] == at or at[: len(one)] == one]
        if len(guilty) == 1 and guilty[0][1].source.level is Level.KEYWORD and callable(value):
            return value  # What only a program can hand in is the function's to judge.
        raise _misfit(guilty, misfit) from misfit
    except BadSetting as error:
        raise _blame([(one, said) for one, said in told.items() if one[:2] == place], error) from error


def _values(mechanism: Mechanism, told: Saying) -> dict[str, Any]:
    values = {name: _value(mechanism, argument, told) for name, argument in mechanism.arguments.items()}
    return {name: value for name, value in values.items() if value is not _UNSAID}


def _call(mechanism: Mechanism, values: dict[str, Any], inner: list[Policy]) -> Policy:
    policy: Policy = mechanism.function(inner, **values) if mechanism.around else mechanism.function(**values)
    return policy


def _blamed(mechanism: Mechanism, told: Saying, error: BadSetting) -> BadSetting:
    """The refusal of a mechanism, said again with the values that are to blame: without them it would not refuse."""
    names = list(dict.fromkeys(place[1] for place in told))
    guilty = [name for name in names if _works(mechanism, unsaid(told, (mechanism.name, name)))]
    if not guilty:  # Several are wrong, each by itself, or the one that is cannot be left out.
        required = {one.name for one in mechanism.arguments.values() if one.is_required}
        alone = {name: {at: one for at, one in told.items() if at[1] in required | {name}} for name in names}
        guilty = [name for name, saying in alone.items() if not _works(mechanism, saying)] or names
    return _blame([(place, said) for place, said in told.items() if place[1] in guilty], error)


def _works(mechanism: Mechanism, told: Saying) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _call(mechanism, _values(mechanism, told), [])
        except BadSetting:
            return False
    return True


def _blame(guilty: list[tuple[Place, Said]], error: BadSetting) -> BadSetting:
    if not guilty:
        return error
    return BadSetting(f"{_facts(guilty)}. This is refused: {error}{precedence(guilty)}")


def _misfit(guilty: list[tuple[Place, Said]], misfit: Misfit) -> BadSetting:
    if len(guilty) == 1:
        return refusal(*guilty[0], misfit.wanted)
    return BadSetting(f"{_facts(guilty)}. Allowed: {misfit.wanted}.{precedence(guilty)}")


def _facts(guilty: list[tuple[Place, Said]]) -> str:
    first, *others = (said for _, said in guilty)
    facts = [f"{first.source.subject} is {shown(first.value)}"]
    return "; ".join([*facts, *(f"{said.source.told} is {shown(said.value)}" for said in others)])


def _levels(place: Place, level: Level) -> list[str]:
    """How the same setting is said on the levels above, the highest first."""
    keyword = f"{place[0]}=" if len(place) == 1 and place != ("floor",) else f"settings={_python(place)}"
    ways = [(Level.KEYWORD, f"the keyword {keyword}")]
    if len(place) < 3:
        ways.append((Level.ENVIRONMENT, f"the environment (FOVEATE_{'_'.join(place).upper()})"))
    ways.append((Level.FILE, f"foveate.toml ({'.'.join(place)})"))
    return [way for of, way in ways if of > level]


def _python(place: Place) -> str:
    if not place:
        return "..."
    return f'{{"{place[0]}": {_python(place[1:])}}}'
