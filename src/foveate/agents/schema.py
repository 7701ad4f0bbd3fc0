"""The JSON Schema of a function's parameters, and the descriptions in its docstring.

msgspec creates the schema from the annotations of the signature. Docstrings are read in three styles: Google's (`Args:`
and an indented list), NumPy's (`Parameters` underlined) and reST's (`:param name: ...`). Other sections, such as return
values and errors, are for programmers and are left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import msgspec.inspect
from msgspec import UNSET, Struct, UnsetType

from ..errors import BadSetting

__all__ = ["descriptions_of", "docstring_of", "parameters_of"]


def docstring_of(function: Callable[..., object]) -> str | None:
    """Return the docstring of a function, a partial, or an object that can be called."""
    if hasattr(function, "__name__"):
        return function.__doc__
    wrapped = getattr(function, "func", None)  # The docstring of a partial describes `partial` itself.
    if wrapped is not None:
        return str(wrapped.__doc__ or "")
    method = type(function).__call__
    return type(function).__doc__ or (str(method.__doc__ or "") if inspect.isfunction(method) else "")


def parameters_of(
    function: Callable[..., object], name: str, descriptions: Mapping[str, str]
) -> tuple[type[Struct], dict[str, Any]]:
    """Return a function's parameters as a Struct, and its JSON Schema. `descriptions`: of parameters, by name."""
    signature, hints = _signature(function, name)
    fields: list[tuple[str, Any, Any]] = []
    for parameter in signature.parameters.values():
        kind = _kind(parameter, hints, name)
        if foreign := next(_foreign_types(kind), None):
            raise BadSetting(
                f"The parameter {parameter.name} of the tool {name} uses the type {foreign.__name__}, which has no "
                "form in JSON. Use a str, a number, a bool, a list, a dict, a dataclass or a Struct of msgspec, and "
                "convert the value in the function."
            )
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind, ...))
        else:  # An argument that is left out is not passed on, so that the function's own default applies.
            fields.append((parameter.name, kind | UnsetType, UNSET))
    try:
        takes = msgspec.defstruct(
            f"arguments_of_{name}",  # A name that no type in the function's annotations has.
            [(field, kind) if default is ... else (field, kind, default) for field, kind, default in fields],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        schema = msgspec.json.schema(takes)
        msgspec.json.Decoder(takes)
    except Exception as error:
        raise BadSetting(f"The parameters of the tool {name} cannot be expressed in JSON: {error}") from error
    parameters = _unreferenced(schema)
    for parameter in signature.parameters.values():
        entry = parameters["properties"][parameter.name]
        if parameter.name in descriptions:
            entry.setdefault("description", descriptions[parameter.name])
        if parameter.default is not parameter.empty:
            _add_default(entry, parameter.default)
    return takes, parameters


def _signature(function: Callable[..., object], name: str) -> tuple[inspect.Signature, dict[str, Any]]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise BadSetting(f"The tool {name} has no readable signature: {error}. Wrap it in a function.") from error
    source = function
    while not hasattr(source, "__annotations__") and hasattr(source, "func"):  # functools.partial
        source = source.func
    if not hasattr(source, "__name__") and not isinstance(source, type):
        source = type(source).__call__  # An object that can be called.
    try:
        return signature, get_type_hints(source, include_extras=True)
    except Exception as error:
        raise BadSetting(
            f"An annotation of the tool {name} cannot be read: {error}. Define its types outside of any function."
        ) from error


def _kind(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    """Return the type of one parameter."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        bare = parameter.replace(annotation=parameter.empty)
        raise BadSetting(
            f"The tool {name} takes {bare}, but models pass arguments by name only. Give it named parameters."
        )
    if parameter.name not in hints:
        raise BadSetting(
            f"The parameter {parameter.name} of the tool {name} has no annotation, so it has no schema. "
            f"Write its type: {parameter.name}: str."
        )
    kind = hints[parameter.name]
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        metas = [note for note in notes if isinstance(note, msgspec.Meta)]
        metas += [msgspec.Meta(description=note) for note in notes if isinstance(note, str)]
        for meta in metas:  # Other annotations have no meaning here.
            inner = Annotated[inner, meta]
        return inner
    return kind


def _foreign_types(kind: Any) -> Iterator[type]:
    """Yield the classes in a type that msgspec does not know, such as `Path` and models of pydantic."""
    try:
        waiting: list[Any] = [msgspec.inspect.type_info(kind)]
    except Exception:  # The schema is refused, with the reason.
        return
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, msgspec.inspect.CustomType):
            yield node.cls
        elif isinstance(node, tuple):
            waiting += node
        elif isinstance(node, Struct) and id(node) not in seen:  # Types may contain themselves.
            seen.add(id(node))
            waiting += (getattr(node, field) for field in node.__struct_fields__)


def _unreferenced(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the object on top and the named types under `$defs`, as both providers accept it."""
    defs = schema["$defs"]
    top: dict[str, Any] = defs.pop(schema["$ref"].rpartition("/")[2])
    top.pop("title", None)
    top.setdefault("properties", {})
    return top | ({"$defs": defs} if defs else {})


def _add_default(schema: dict[str, Any], default: object) -> None:
    try:
        plain = msgspec.json.decode(msgspec.json.encode(default))
    except Exception:  # Not every default can be written as JSON.
        return
    if plain is not None:
        schema.setdefault("default", plain)


# ---------------------------------------------------------------------------------------------------------- docstrings

_GOOGLE = re.compile(
    r"(args|arguments|params|parameters|keyword args|keyword arguments|other parameters|returns?|yields?|raises|"
    r"examples?|notes?|attributes|see also|references|warnings?|todo):\s*",
    re.IGNORECASE,
)
_PARAMETERS = {"args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters"}
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_REST_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_REST_FIELD = re.compile(r":\w+[^:]*:(\s|$)")


def descriptions_of(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return the description, which is the text before any heading or field, and the parameters' descriptions by name.

    Line breaks within a parameter's description become spaces.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    prose: list[str] = []
    parameters: dict[str, list[str]] = {}
    place = 0
    while place < len(lines):
        line = lines[place]
        if heading := _heading(lines, place):
            name, first = heading
            place = _end(lines, first)
            if name in _PARAMETERS:
                _entries(lines[first:place], parameters)
        elif _REST_FIELD.match(line):
            end = _deeper(lines, place + 1)
            if parameter := _REST_PARAMETER.match(line):
                parameters.setdefault(parameter[1], []).extend([parameter[2], *lines[place + 1 : end]])
            place = end
        else:
            if not parameters:  # Text after the parameters is not part of the description.
                prose.append(line)
            place += 1
    return "\n".join(prose).strip(), {name: " ".join(" ".join(words).split()) for name, words in parameters.items()}


def _heading(lines: list[str], place: int) -> tuple[str, int] | None:
    """Return the heading at this line, in lower case, and the first line below it."""
    line, below = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
    if line and not line[0].isspace():
        if re.fullmatch(r"-{3,}\s*", below):
            return line.strip().lower(), place + 2
        if (match := _GOOGLE.fullmatch(line)) and (not below.strip() or below[0].isspace()):
            return match[1].lower(), place + 1
    return None


def _end(lines: list[str], place: int) -> int:
    """Return the line after a section: the next heading, or in Google's style the next line that is not indented."""
    is_numpy = set(lines[place - 1].strip()) == {"-"}
    while place < len(lines):
        line = lines[place]
        if _heading(lines, place) or (not is_numpy and line.strip() and not line[0].isspace()):
            return place
        place += 1
    return place


def _deeper(lines: list[str], place: int) -> int:
    """Return the first line from here on that is not indented, or is blank."""
    while place < len(lines) and lines[place].strip() and lines[place][0].isspace():
        place += 1
    return place


def _entries(lines: list[str], parameters: dict[str, list[str]]) -> None:
    """Read the parameters of one section: the lines with the least indentation, each with the deeper lines below it."""
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    current: list[list[str]] = []
    for line in lines:
        is_entry = line.strip() and len(line) - len(line.lstrip()) == depth
        if not is_entry:
            for description in current:
                description.append(line)
        elif depth and (entry := _GOOGLE_ENTRY.match(line.strip())):
            current = [parameters.setdefault(entry[1], [])]
            current[0].append(entry[2])
        elif not depth and (names := _NUMPY_ENTRY.fullmatch(line.strip())):
            current = [parameters.setdefault(name.strip(), []) for name in names[1].split(",")]
