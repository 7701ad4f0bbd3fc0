"""What a mechanism can be told: its function's keyword arguments, and how a value from a file or a text becomes one.

Names, types, allowed words and defaults are read off the function, so nothing is written down twice. Knows nothing of
files, levels or presets. Ranges are the mechanism's own affair; a kind of value is looked at here.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, structs

from ...errors import BadSetting

__all__ = ["Argument", "Misfit", "allowed", "arguments_of", "fit", "is_sayable", "is_table", "parse", "stray"]

Kind = Any
"""A type as it stands in a signature."""

_LISTS = (list, tuple, Sequence, Collection, Iterable, set, frozenset, Set)
_TABLES = (dict, Mapping)
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
_SIMPLE = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "none"}


class Argument(Struct, frozen=True):
    """One keyword argument of a mechanism. `kind`: its type. `default` has no meaning where one must be given."""

    name: str
    kind: Kind
    default: object
    is_required: bool


class Misfit(Exception):
    """A value is not of its kind. `path`: where in the value, `value`: what is there, `wanted`: what is allowed."""

    def __init__(self, path: tuple[str, ...], value: object, wanted: str) -> None:
        self.path, self.value, self.wanted = path, value, wanted
        super().__init__(wanted)


@cache
def arguments_of(function: Callable[..., object]) -> Mapping[str, Argument]:
    """The keyword arguments of a function, in its order; those whose type cannot be read are left out."""
    hints = _hints(function)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in hints:
            is_required = parameter.default is parameter.empty
            found[name] = Argument(name, hints[name], None if is_required else parameter.default, is_required)
    return found


def is_sayable(kind: Kind) -> bool:
    """Whether a file or a text can say a value of this kind; a function, for one, only a program can hand in."""
    kind, origin = _bare(kind)
    if origin in (Union, UnionType):
        return any(is_sayable(one) for one in get_args(kind) if one is not NoneType)
    if origin in _LISTS or origin in _TABLES:
        return all(is_sayable(one) for one in get_args(kind) if one is not ...)
    return kind in _SIMPLE or origin is Literal or _is_record(kind)


def is_table(kind: Kind) -> bool:
    """Whether values of this kind are tables, and nothing else that can be said in a text."""
    kind, origin = _bare(kind)
    if origin in (Union, UnionType):
        return all(is_table(one) for one in get_args(kind) if one is not NoneType and is_sayable(one))
    return origin in _TABLES or _is_record(kind)


def allowed(kind: Kind) -> str:
    """What values of this kind are, in words."""
    kind, origin = _bare(kind)
    if origin in (Union, UnionType):
        members = sorted(get_args(kind), key=lambda one: one is NoneType)
        if float in members:  # A whole number is one too.
            members = [one for one in members if one is not int]
        return " or ".join(dict.fromkeys(allowed(one) for one in members if one is NoneType or is_sayable(one)))
    if origin is Literal:
        words = [str(word) for word in get_args(kind)]
        return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    if origin in _LISTS:
        element = next((one for one in get_args(kind) if one is not ...), str)
        return "a list of " + {"a text": "texts", "a whole number": "whole numbers"}.get(allowed(element), "values")
    if origin in _TABLES:
        return "a table of names, each with " + allowed(get_args(kind)[1])
    if _is_record(kind):
        return f"a table with {', '.join(_fields(kind))}"
    return _SIMPLE.get(kind, "a value that only a program can give")


def fit(kind: Kind, value: object, path: tuple[str, ...] = ()) -> Any:
    """The value as one of this kind. Raises Misfit, which tells where in the value the fault is."""
    kind, origin = _bare(kind)
    wanted = allowed(kind)
    if origin in (Union, UnionType):
        return _fit_one_of(get_args(kind), value, path, wanted)
    if origin is Literal:
        # Compared with their types, since True equals 1.
        if any(type(value) is type(word) and value == word for word in get_args(kind)):
            return value
        raise Misfit(path, value, wanted)
    if origin in _LISTS:
        return _fit_list(kind, origin, value, path, wanted)
    if origin in _TABLES:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise Misfit(path, value, wanted)
        return {name: fit(get_args(kind)[1], one, (*path, name)) for name, one in value.items()}
    if _is_record(kind):
        return value if isinstance(value, kind) else _fit_record(kind, value, path, wanted)
    if kind is float and type(value) is int and abs(value) < 2**1000:
        return float(value)
    if kind is float and type(value) is float and not math.isfinite(value):
        raise Misfit(path, value, wanted)
    if kind in _SIMPLE and type(value) is kind:
        return value
    raise Misfit(path, value, wanted)


def parse(kind: Kind, text: str) -> object:
    """What a text such as that of an environment variable says for this kind; the text itself where it says nothing.

    `none` is none; 1, true, yes, on and 0, false, no, off, in any case, are true and false; lists have commas, and a
    comma alone is the empty list.
    """
    kind, origin = _bare(kind)
    text = text.strip()
    if origin in (Union, UnionType):
        members = get_args(kind)
        for one in [one for one in members if one is not NoneType]:
            try:
                return fit(one, parse(one, text)) if one is not str or NoneType not in members else _text_or_none(text)
            except Misfit:
                continue
        return None if NoneType in members and text.lower() == "none" else text
    if kind is bool:
        return True if text.lower() in _YES else False if text.lower() in _NO else text
    if (kind is int or kind is float) and len(text) < 40:
        if re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", text, re.ASCII):
            return int(text)
        if kind is float and re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text, re.ASCII):
            return float(text)
    if origin is Literal:
        return next((word for word in get_args(kind) if str(word) == text), text)
    if origin in _LISTS:
        element = next((one for one in get_args(kind) if one is not ...), str)
        return [parse(element, piece) for piece in text.split(",") if piece.strip()]
    return text


def stray(kind: Kind, value: object, path: tuple[str, ...] = ()) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Where a table has a name that there is not, and the names that there are; None where all names are known."""
    kind, origin = _bare(kind)
    if not isinstance(value, Mapping):
        return None
    if origin in (Union, UnionType):
        tables = [one for one in get_args(kind) if _bare(one)[1] in _TABLES or _is_record(_bare(one)[0])]
        found = [stray(one, value, path) for one in tables]
        return None if None in found else next(iter(found), None)
    if origin in _TABLES:
        inside = (stray(get_args(kind)[1], one, (*path, str(name))) for name, one in value.items())
        return next((one for one in inside if one), None)
    if _is_record(kind):
        fields = _fields(kind)
        for name, one in value.items():
            if name not in fields:
                return (*path, str(name)), tuple(fields)
            if deeper := stray(fields[name], one, (*path, str(name))):
                return deeper
    return None


# ------------------------------------------------------------------------------------------------------------- helpers


def _hints(function: Callable[..., object]) -> dict[str, Kind]:
    """The types of arguments; one that names what is imported for type checkers alone does not hide the others."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:
        names = vars(sys.modules[function.__module__])
        found = {}
        for name, text in function.__annotations__.items():
            try:
                found[name] = eval(text, dict(names)) if isinstance(text, str) else text
            except NameError:
                continue
        return found


def _bare(kind: Kind) -> tuple[Kind, Kind]:
    """The type without its annotations, and what it is made of (`list` for `list[str]`)."""
    origin: Kind = get_origin(kind)
    return _bare(get_args(kind)[0]) if origin is Annotated else (kind, origin)


def _is_record(kind: Kind) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


@cache
def _fields(kind: Kind) -> Mapping[str, Kind]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in structs.fields(kind)}


def _fit_one_of(members: Sequence[Kind], value: object, path: tuple[str, ...], wanted: str) -> object:
    if value is None and NoneType in members:
        return None
    deeper: Misfit | None = None
    for one in members:
        try:
            return fit(one, value, path)
        except Misfit as misfit:
            deeper = misfit if len(misfit.path) > len(path) else deeper
    if NoneType in members and value == "none":  # TOML has no word for it.
        return None
    raise deeper or Misfit(path, value, wanted)


def _fit_list(kind: Kind, origin: Kind, value: object, path: tuple[str, ...], wanted: str) -> Collection[object]:
    # Not a string, which is a collection of letters, and not an iterator, which can be read only once.
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        raise Misfit(path, value, wanted)
    element = next((one for one in get_args(kind) if one is not ...), str)
    try:
        elements = [fit(element, one, path) for one in value]
    except Misfit as misfit:
        raise Misfit(path, value, wanted) from misfit
    if issubclass(origin, set | frozenset):
        return frozenset(elements)
    return elements if origin is list else tuple(elements)


def _fit_record(kind: Kind, value: object, path: tuple[str, ...], wanted: str) -> object:
    if not isinstance(value, Mapping):
        raise Misfit(path, value, wanted)
    fields = _fields(kind)
    if unknown := [name for name in value if name not in fields]:
        raise Misfit((*path, str(unknown[0])), value[unknown[0]], wanted)
    fitted = {name: fit(fields[name], one, (*path, name)) for name, one in value.items()}
    try:
        return kind(**fitted)
    except BadSetting:
        raise
    except (TypeError, ValueError) as error:  # A field is missing, or they do not go together.
        raise Misfit(path, value, f"{wanted} ({error})") from error


def _text_or_none(text: str) -> str | None:
    return None if text.lower() == "none" else text
