"""A tool: a function that models may call, with the JSON Schema of what it takes.

`tool` makes one of a plain function: what it takes is read from its signature, what is said of it from its docstring,
and what a model hands in is checked and converted before the function sees it. Knows nothing of runs and conversations;
who calls tools is `calling.py`.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .. import given
from ..core.stamps import Lease
from ..errors import BadInput, BadSetting
from .docstrings import described

__all__ = ["Tool", "ToolFailed", "tool", "tools_of"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What OpenAI takes as the name of a function; Anthropic takes longer ones too."""
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""What Anthropic takes as the name of a property."""
_LONGEST = 500
"""Characters of an error that a model is told: it may have written the value that the error quotes."""


class ToolFailed(Exception):
    """A tool could not do what it was asked for. Its text goes to the model, and says what to do instead."""


class Tool(Struct, frozen=True, kw_only=True):
    """A tool. Made by `tool`, or by hand where the schema comes from elsewhere."""

    name: str
    """What models call it by: letters, digits, `_` and `-`, at most 64."""
    description: str = ""
    parameters: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of an object: its parameters by their names."""
    call: Callable[..., object]
    """Is called with the arguments by their names. Returns text, blocks, or anything that can be written as JSON;
    or an awaitable of that, for an agent with asyncio.
    """
    needs_approval: bool = False
    """Whether somebody is asked before each call (`approve=` of the agent)."""
    is_repeatable: bool = False
    """Whether a call may be carried out again where a run broke off and nobody knows whether it was: true for what
    only reads.
    """
    together: bool = True
    """Whether it may go on beside other calls of the same reply."""
    timeout: float | None = None
    """Seconds that one call may take; None: as long as it likes."""
    lease: Lease | None = None
    """When its results expire, for `expire_results`."""
    takes: type[Struct] | None = None
    """What arguments are read as; `tool` makes it of the signature. None: they are handed on as the model said them."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise BadSetting(
                f"{self.name!r:.80} cannot be the name of a tool: providers take 1 to 64 letters, digits, _ and -. "
                'Give it another one: tool(function, name="...").'
            )
        given.text(f"The description of the tool {self.name}", self.description)
        given.callable_(f"The call of the tool {self.name}", self.call)
        if not isinstance(self.parameters, Mapping) or self.parameters.get("type") != "object":
            raise BadSetting(f'The parameters of the tool {self.name} are a JSON Schema of {{"type": "object"}}.')
        try:
            msgspec.json.encode(self.parameters)
        except Exception as error:
            raise BadSetting(f"The parameters of the tool {self.name} cannot be written as JSON: {error}.") from error
        for parameter in self.parameters.get("properties", {}):
            if not _PARAMETER.fullmatch(str(parameter)):
                raise BadSetting(
                    f"{parameter!r:.80} of the tool {self.name} cannot be the name of a parameter: providers take "
                    "letters, digits, _, - and dots."
                )
        for name in ("needs_approval", "is_repeatable", "together"):
            given.instance(f"{name}= of the tool {self.name}", getattr(self, name), bool, "True or False")
        if self.timeout is not None and not (type(self.timeout) in (int, float) and self.timeout > 0):
            raise BadSetting(f"timeout= of the tool {self.name} is seconds, more than 0, not {self.timeout!r:.60}.")
        if self.lease is not None:
            given.lease(self.lease)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function as it was called before it became a tool: nothing is checked or kept."""
        return self.call(*arguments, **named)

    @property
    def is_async(self) -> bool:
        """Whether a call of it must be awaited."""
        return inspect.iscoroutinefunction(self.call) or inspect.iscoroutinefunction(
            getattr(self.call, "__call__", None)  # noqa: B004  An object may have an async method in its place.
        )

    def wire(self, format: str = "openai") -> dict[str, Any]:
        """The definition as a provider takes it: fresh containers, the same bytes each time."""
        about = {"description": self.description} if self.description else {}
        schema = copy.deepcopy(dict(self.parameters))
        if format == "anthropic":
            return {"name": self.name, **about, "input_schema": schema}
        return {"type": "function", "function": {"name": self.name, **about, "parameters": schema}}

    def arguments(self, text: str) -> dict[str, Any]:
        """The arguments of a call, by their names, from the JSON text that a model wrote.

        Of the types that the function names, converted where nothing is lost ("3" for a number). Raises BadInput, in
        words for the model: what is wrong, and what the tool takes.
        """
        try:
            if self.takes is None:
                return self._plain(text)
            read = msgspec.json.decode(text or "{}", type=self.takes, strict=False)
            found = {name: getattr(read, name) for name in self.takes.__struct_fields__}
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, TypeError) as error:
            raise BadInput(self._refusal(error)) from error
        return {name: value for name, value in found.items() if value is not UNSET}

    def _plain(self, text: str) -> dict[str, Any]:
        read = msgspec.json.decode(text or "{}", type=dict[str, Any])
        if missing := [name for name in self.parameters.get("required", ()) if name not in read]:
            raise ValueError(f"{', '.join(missing)} must be given")
        known = self.parameters.get("properties", {})
        if self.parameters.get("additionalProperties") is False and (more := [k for k in read if k not in known]):
            raise ValueError(f"there is no {', '.join(more)}")
        return read

    def _refusal(self, error: Exception) -> str:
        required = self.parameters.get("required", ())
        known = self.parameters.get("properties", {})
        takes = ", ".join(name if name in required else f"{name} (optional)" for name in known)
        said = str(error).replace(" - at `$.", " at `").replace(" - at `$`", "")
        return (
            f"{self.name} was not called, for its arguments are wrong: {said[:_LONGEST]}. "
            f"Call it again with a JSON object; it takes {takes or 'no arguments'}."
        )


@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    function: Callable[..., object],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    is_repeatable: bool = False,
    together: bool = True,
    timeout: float | None = None,
    lease: Lease | None = None,
) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    is_repeatable: bool = False,
    together: bool = True,
    timeout: float | None = None,
    lease: Lease | None = None,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    is_repeatable: bool = False,
    together: bool = True,
    timeout: float | None = None,
    lease: Lease | None = None,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """A tool of a function: its name, docstring and signature say what models are told. Also a decorator.

    Every parameter needs an annotation that JSON can say: numbers, text, lists, dicts, Literal, enums, dates,
    TypedDict, dataclasses, msgspec's Structs, and Optional of these. A parameter with a default may be left out. What
    is said of a parameter stands in the docstring (in Google's, NumPy's or reST's style) or in
    `Annotated[str, msgspec.Meta(description=...)]`, which may also give bounds. The other options are fields of `Tool`.
    Raises BadSetting for a function that models cannot be told of.
    """

    def make(function: Callable[..., object]) -> Tool:
        given.callable_("What tool() takes", function)
        called = name if name is not None else getattr(function, "__name__", "")
        about, of_parameters = described(_docstring(function))
        takes, parameters = _schema(function, called or repr(function), of_parameters)
        return Tool(
            name=called,
            description=about if description is None else description,
            parameters=parameters,
            call=function,
            needs_approval=needs_approval,
            is_repeatable=is_repeatable,
            together=together,
            timeout=timeout,
            lease=lease,
            takes=takes,
        )

    return make if function is None else make(function)


def tools_of(tools: Iterable[object]) -> tuple[Tool, ...]:
    """Tools as users hand them in: each a Tool or a plain function. Raises BadSetting where two have one name."""
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise BadSetting(f"tools= is a list of functions and Tools, not {tools!r:.60}.")
    made = tuple(one if isinstance(one, Tool) else tool(cast(Any, one)) for one in tools)
    names = [one.name for one in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadSetting(
            f"Two tools are called {', '.join(twice)}; a model could not tell them apart. Name one of them anew: "
            'tool(function, name="...").'
        )
    return made


def _docstring(function: Callable[..., object]) -> str | None:
    if hasattr(function, "__name__"):
        return function.__doc__
    wrapped = getattr(function, "func", None)  # What functools.partial says of itself is about partial.
    return wrapped.__doc__ if wrapped is not None else type(function).__doc__


def _schema(
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
