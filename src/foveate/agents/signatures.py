"""What a function takes, as a type that arguments are read as and as the JSON Schema that models are told.

Made by msgspec of the signature's annotations. Knows nothing of tools but the name that errors give.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..errors import BadSetting

__all__ = ["docstring_of", "parameters_of"]


def docstring_of(function: Callable[..., object]) -> str | None:
    if hasattr(function, "__name__"):
        return function.__doc__
    wrapped = getattr(function, "func", None)  # What functools.partial says of itself is about partial.
    return wrapped.__doc__ if wrapped is not None else type(function).__doc__


def parameters_of(
    function: Callable[..., object], name: str, of_parameters: Mapping[str, str]
) -> tuple[type[Struct], dict[str, Any]]:
    """What a function takes: a Struct with its parameters as fields, and the JSON Schema of it."""
    signature, hints = _signature(function, name)
    fields: list[tuple[str, Any, Any]] = []
    for parameter in signature.parameters.values():
        kind = _kind(parameter, hints, name)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind, ...))
        else:  # Left out, it is not handed on either: then the function's own default holds, whatever it is.
            fields.append((parameter.name, kind | UnsetType, UNSET))
    try:
        takes = msgspec.defstruct(
            f"arguments_of_{name}",  # No type that the function names can be called so too.
            [(field, kind) if default is ... else (field, kind, default) for field, kind, default in fields],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        schema = msgspec.json.schema(takes)
        msgspec.json.Decoder(takes)
    except Exception as error:
        raise BadSetting(f"What the tool {name} takes cannot be said in JSON: {error}") from error
    parameters = _unreferenced(schema)
    for parameter in signature.parameters.values():
        told = parameters["properties"][parameter.name]
        if parameter.name in of_parameters:
            told.setdefault("description", of_parameters[parameter.name])
        if parameter.default is not parameter.empty:
            _tell_default(told, parameter.default)
    return takes, parameters


def _signature(function: Callable[..., object], name: str) -> tuple[inspect.Signature, dict[str, Any]]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise BadSetting(f"What the tool {name} takes cannot be found out: {error}. Wrap it in a function.") from error
    told = function
    while not hasattr(told, "__annotations__") and hasattr(told, "func"):  # functools.partial
        told = told.func
    if not hasattr(told, "__name__") and not isinstance(told, type):
        told = type(told).__call__  # An object that can be called.
    try:
        return signature, get_type_hints(told, include_extras=True)
    except Exception as error:
        raise BadSetting(
            f"An annotation of the tool {name} cannot be read: {error}. Define its types outside of any function."
        ) from error


def _kind(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    """The type of one parameter."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        bare = parameter.replace(annotation=parameter.empty)
        raise BadSetting(
            f"The tool {name} takes {bare}, and models call by names alone. Give it parameters with names."
        )
    if parameter.name not in hints:
        raise BadSetting(
            f"The parameter {parameter.name} of the tool {name} has no annotation, so models cannot be told what it "
            f"is. Write its type: {parameter.name}: str."
        )
    kind = hints[parameter.name]
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        metas = [note for note in notes if isinstance(note, msgspec.Meta)]
        metas += [msgspec.Meta(description=note) for note in notes if isinstance(note, str)]
        for meta in metas:  # Others' annotations mean nothing here.
            inner = Annotated[inner, meta]
        return inner
    return kind


def _unreferenced(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the object itself on top, and the types that it names under `$defs`, as both providers take it."""
    defs = schema["$defs"]
    top: dict[str, Any] = defs.pop(schema["$ref"].rpartition("/")[2])
    top.pop("title", None)
    top.setdefault("properties", {})
    return top | ({"$defs": defs} if defs else {})


def _tell_default(told: dict[str, Any], default: object) -> None:
    try:
        plain = msgspec.json.decode(msgspec.json.encode(default))
    except Exception:  # It is the function's own affair then.
        return
    if plain is not None:
        told.setdefault("default", plain)
