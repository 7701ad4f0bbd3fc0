"""Kinds of values: reads them off a function's signature, describes them in words, and converts values to them."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, structs

from ...errors import BadSetting

__all__ = [
    "Field",
    "WrongValue",
    "allowed",
    "convert",
    "fields_of",
    "find_unknown",
    "is_plain",
    "is_table",
    "members_of",
    "parse",
]

Kind = Any
"""A type as it is written in a signature."""

_LISTS = (list, tuple, Sequence, Collection, Iterable, set, frozenset)
_TABLES = (dict, Mapping)
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
_SIMPLE = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "none"}


class Field(Struct, frozen=True):
    """One setting: a keyword argument of a mechanism's function, or a field of a Struct.

    `default` has no meaning if a value is required. `description`: one sentence; "" if there is none.
    """

    name: str
    kind: Kind
    default: object = None
    is_required: bool = False
    description: str = ""


class WrongValue(Exception):
    """A value is not of its kind. `path`: the place inside the value; `wanted`: the allowed values, in words."""

    def __init__(self, path: tuple[str, ...], wanted: str) -> None:
        self.path, self.wanted = path, wanted
        super().__init__(wanted)


@cache
def fields_of(owner: Callable[..., object]) -> Mapping[str, Field]:
    """Return the settings that a function takes by keyword, or the fields of a Struct, in their order.

    Arguments whose type cannot be read are left out. Descriptions come from the docstring of the function, where a
    sentence begins with the name (`` `keep`: results that stay whole. ``), or from the `Meta` of the type.
    """
    hints = _hints(owner)
    descriptions = _descriptions(owner.__doc__ or "")
    fields = {}
    for name, parameter in inspect.signature(owner).parameters.items():
        is_keyword = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if is_keyword and name in hints:
            is_required = parameter.default is parameter.empty
            described = [
                meta.description for member in (hints[name], *members_of(hints[name])) for meta in _metas(member)
            ]
            description = next(filter(None, described), descriptions.get(name, ""))
            default = None if is_required else parameter.default
            fields[name] = Field(name, hints[name], default, is_required, description)
    return fields


def is_plain(kind: Kind) -> bool:
    """Return whether a file or a text can hold a value of this kind; a function, for one, only a program can pass."""
    kind, origin = _bare(kind)
    if origin in (Union, UnionType):
        return any(is_plain(member) for member in get_args(kind) if member is not NoneType)
    if origin in _LISTS or origin in _TABLES:
        return all(is_plain(argument) for argument in get_args(kind) if argument != ...)
    return kind in _SIMPLE or origin is Literal or _is_struct(kind)


def is_table(kind: Kind) -> bool:
    """Return whether values of this kind are tables, which one line of text cannot hold."""
    kind, origin = _bare(kind)
    if origin in (Union, UnionType):
        return all(is_table(member) for member in get_args(kind) if member is not NoneType and is_plain(member))
    return origin in _TABLES or _is_struct(kind)


def allowed(kind: Kind) -> str:
    """Describe the values of this kind in words."""
    bounds = _bounds(kind)
    kind, origin = _bare(kind)
    if origin in (Union, UnionType):
        members = sorted(get_args(kind), key=lambda member: member is NoneType)
        if float in members:  # A whole number is one too.
            members = [member for member in members if member is not int]
        if any("none" in get_args(member) for member in members):  # A word of its own, which is never None.
            members = [member for member in members if member is not NoneType]
        words = [allowed(member) for member in members if member is NoneType or is_plain(member)]
        return " or ".join(dict.fromkeys(words))
    if origin is Literal:
        words = [str(word) for word in get_args(kind)]
        return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    if origin in _LISTS:
        return "a list of " + {"a text": "texts", "a whole number": "whole numbers"}.get(
            allowed(_element(kind)), "values"
        )
    if origin in _TABLES:
        return "a table of names, each with " + allowed(get_args(kind)[1])
    if _is_struct(kind):
        return f"a table with {', '.join(_struct_fields(kind))}"
    return _SIMPLE.get(kind, "a value that only a program can give") + bounds


def convert(kind: Kind, value: object, path: tuple[str, ...] = ()) -> Any:
    """Return the value as one of this kind. Raises WrongValue with the place of the fault."""
    members = [member for member in members_of(kind) if member is not NoneType and is_plain(member)]
    may_be_none = NoneType in members_of(kind)
    if value is None and may_be_none:
        return None
    table = next((member for member in members if is_table(member)), None)
    if table is not None and isinstance(value, Mapping):
        return _convert_table(_bare(table)[0], value, path, allowed(kind))
    if any(_is_struct(member) and isinstance(value, member) for member in members):
        return value
    if isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping):
        value = list(value)
    for member in members:
        if member is not table:
            try:
                converted = msgspec.convert(value, _convertible(member))
            except (msgspec.ValidationError, TypeError):
                continue
            if not isinstance(converted, float) or math.isfinite(converted):
                return converted
    if may_be_none and value == "none":  # TOML has no word for it.
        return None
    raise WrongValue(path, allowed(kind))


def parse(kind: Kind, text: str) -> object:
    """Return the value that a text, such as an environment variable, gives for this kind; else the text itself.

    `none` is none; 1, true, yes, on and 0, false, no, off, in any case, are true and false; commas separate the
    elements of a list, and a comma alone is the empty list.
    """
    text = text.strip()
    members = members_of(kind)
    if len(members) > 1:
        for member in (member for member in members if member is not NoneType):
            if member is str and NoneType in members:
                return None if text.lower() == "none" else text
            value = parse(member, text)
            if value is not text or _fits(member, text):
                return value
        return None if NoneType in members and text.lower() == "none" else text
    kind, origin = _bare(kind)
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
        return [parse(_element(kind), piece) for piece in text.split(",") if piece.strip()]
    return text


def find_unknown(kind: Kind, value: object, path: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the place of an unknown name inside a table, and the known names; None if all names are known."""
    if not isinstance(value, Mapping):
        return None
    tables = [_bare(member)[0] for member in members_of(kind) if is_plain(member) and is_table(member)]
    for table in tables:
        if _is_struct(table):
            kinds = _struct_fields(table)
            unknown = [str(name) for name in value if name not in kinds]
            if unknown:
                return (*path, unknown[0]), tuple(kinds)
        else:
            kinds = dict.fromkeys(value, get_args(table)[1])
        for name, inner in value.items():
            if deeper := find_unknown(kinds[name], inner, (*path, str(name))):
                return deeper
    return None


def members_of(kind: Kind) -> tuple[Kind, ...]:
    """Return the members of a union; for any other type, itself."""
    bare, origin = _bare(kind)
    return get_args(bare) if origin in (Union, UnionType) else (kind,)


# ------------------------------------------------------------------------------------------------------------- helpers


def _hints(owner: Callable[..., object]) -> dict[str, Kind]:
    """Return the types of arguments; one that is imported for type checkers alone does not hide the others."""
    try:
        return get_type_hints(owner, include_extras=True)
    except NameError:
        names = vars(sys.modules[owner.__module__])
        hints = {}
        for name, text in owner.__annotations__.items():
            try:
                hints[name] = eval(text, dict(names)) if isinstance(text, str) else text
            except NameError:
                continue
        return hints


def _descriptions(docstring: str) -> dict[str, str]:
    """Return the first sentence about each argument: the text after `` `name`: ``, or before the next name."""
    text = " ".join(docstring.split())
    descriptions: dict[str, str] = {}
    for names, sentence in re.findall(r"((?:`\w+`(?:, | and )?)+): (.*?(?:\.(?= |$)|(?=; `\w+`)|$))", text):
        for name in re.findall(r"\w+", names):
            descriptions.setdefault(name, sentence[:1].upper() + sentence[1:].rstrip("."))
    return descriptions


def _bare(kind: Kind) -> tuple[Kind, Kind]:
    """Return the type without its annotations, and its origin (`list` for `list[str]`)."""
    origin: Kind = get_origin(kind)
    return _bare(get_args(kind)[0]) if origin is Annotated else (kind, origin)


def _bounds(kind: Kind) -> str:
    """Describe the bounds of a number: ` of 1 or more`."""
    least = next((meta.ge for meta in _metas(kind) if meta.ge is not None), None)
    return "" if least is None else f" of {least:,} or more"


def _metas(kind: Kind) -> list[Meta]:
    origin: Kind = get_origin(kind)
    return [argument for argument in get_args(kind)[1:] if isinstance(argument, Meta)] if origin is Annotated else []


def _fits(kind: Kind, value: object) -> bool:
    try:
        convert(kind, value)
    except WrongValue:
        return False
    return True


def _element(kind: Kind) -> Kind:
    arguments: tuple[Any, ...] = get_args(kind)
    return next((argument for argument in arguments if argument != ...), str)


def _is_struct(kind: Kind) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


@cache
def _struct_fields(kind: Kind) -> Mapping[str, Kind]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in structs.fields(kind)}


def _convertible(kind: Kind) -> Kind:
    """Return the type that msgspec converts to: a tuple for any read-only list."""
    bare, origin = _bare(kind)
    listed: Kind = tuple.__class_getitem__((_element(bare), ...))
    return listed if origin in (Sequence, Collection, Iterable, tuple) else kind


def _convert_table(kind: Kind, value: Mapping[Any, object], path: tuple[str, ...], wanted: str) -> object:
    if not all(isinstance(name, str) for name in value):
        raise WrongValue(path, wanted)
    kinds = _struct_fields(kind) if _is_struct(kind) else dict.fromkeys(value, get_args(kind)[1])
    if unknown := [name for name in value if name not in kinds]:
        raise WrongValue((*path, str(unknown[0])), wanted)
    fitted = {name: convert(kinds[name], inner, (*path, str(name))) for name, inner in value.items()}
    if not _is_struct(kind):
        return fitted
    try:
        return kind(**fitted)
    except BadSetting:
        raise
    except (TypeError, ValueError) as error:  # A field is missing, or two contradict each other.
        raise WrongValue(path, f"{wanted} ({error})") from error
