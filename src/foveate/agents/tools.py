"""Tools: functions that models may call, with the JSON Schema of their parameters.

`tool` creates a Tool from a function: the parameters come from its signature, the descriptions from its docstring. An
object with a name and a method `invoke` or `__call__` becomes a Tool in the same way. The arguments of a model are
checked and converted before the function receives them.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast, overload

import msgspec
from msgspec import UNSET, Struct

from ..conversation import validate
from ..core.stamps import Lease
from ..core.tool_names import LONGEST_NAME, tool_name
from ..errors import BadInput, BadSetting
from .schema import descriptions_of, docstring_of, parameters_of

__all__ = ["OutcomeUnknown", "Tool", "ToolFailed", "ToolSource", "tool", "tools_of"]

_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Names of properties that Anthropic accepts."""
_LONGEST = 500
"""Characters of an error that a model receives: the error may quote a long value that the model wrote."""


class ToolObject(Protocol):
    """An object that can be a tool. It may also have `name`, `description` and `parameters`."""

    @property
    def invoke(self) -> Callable[..., object]:
        """The method that carries out calls."""


ToolSource = Callable[..., object] | ToolObject
"""A function, or an object with the method `invoke` or `__call__`."""


class ToolFailed(Exception):
    """A tool failed. Its text goes to the model, and says what to do instead."""


class OutcomeUnknown(ToolFailed):
    """A tool may have done its work, and cannot find out. The state of the result is `interrupted`.

    Its text goes to the model, and says how to find out before the call is repeated.
    """


class Tool(Struct, frozen=True, kw_only=True):
    """A tool. Create it with `tool`, or directly if you have a schema."""

    name: str
    """Its name, such as `search` or `Query Database`: at most 500 printable characters."""
    description: str = ""
    """Its description for models."""
    parameters: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of an object: its parameters by name."""
    call: Callable[..., object]
    """Receives the arguments by name. Returns text, parts such as images, or any value that JSON can express; for async
    agents also an awaitable of that.
    """
    needs_approval: bool = False
    """Whether each call needs approval (`approve=` of the agent)."""
    is_repeatable: bool = False
    """Whether a call may be repeated after a run broke off and left its end unknown. True for tools that only read."""
    is_parallel: bool = True
    """Whether it may run in parallel with other calls of the same reply."""
    timeout: float | None = None
    """Seconds that one call may take; None: no limit."""
    lease: Lease | None = None
    """When its results expire, under every policy but `off`."""
    takes: type[Struct] | None = None
    """The type that arguments are converted to; `tool` creates it. None: they are passed on as the model wrote them."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        validate.text(f"The description of the tool {self.name}", self.description)
        validate.function(f"The call of the tool {self.name}", self.call)
        if inspect.isgeneratorfunction(self.call) or inspect.isasyncgenfunction(self.call):
            raise BadSetting(f"The tool {self.name} is a generator, and no model receives its values. Return a list.")
        if not isinstance(self.parameters, Mapping) or self.parameters.get("type") != "object":
            raise BadSetting(f'The parameters of the tool {self.name} must be a JSON Schema of {{"type": "object"}}.')
        try:
            msgspec.json.encode(self.parameters)
        except Exception as error:
            raise BadSetting(f"The parameters of the tool {self.name} cannot be written as JSON: {error}.") from error
        for parameter in self.parameters.get("properties", {}):
            if not _PARAMETER.fullmatch(str(parameter)):
                raise BadSetting(
                    f"{parameter!r:.80} of the tool {self.name} cannot be the name of a parameter: providers "
                    "accept letters, digits, _, - and dots."
                )
        for name in ("needs_approval", "is_repeatable", "is_parallel"):
            validate.instance(f"{name}= of the tool {self.name}", getattr(self, name), bool, "True or False")
        if self.timeout is not None and not (type(self.timeout) in (int, float) and self.timeout > 0):
            raise BadSetting(f"timeout= of the tool {self.name} must be seconds above 0, not {self.timeout!r:.60}.")
        if self.lease is not None:
            validate.lease(self.lease)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function directly. Nothing is checked or stored."""
        return self.call(*arguments, **named)

    @property
    def is_async(self) -> bool:
        """Return whether its calls must be awaited."""
        return _is_async(self.call)

    @property
    def wire_name(self) -> str:
        """Its name for providers, which accept 1 to 64 letters, digits, `_` and `-`: `Query_Database`."""
        return tool_name(self.name)

    def wire(self, format: str = "openai") -> dict[str, Any]:
        """Return the definition in a provider's form: new containers, the same bytes each time."""
        description = {"description": self.description} if self.description else {}
        schema = copy.deepcopy(dict(self.parameters))
        if format == "anthropic":
            return {"name": self.wire_name, **description, "input_schema": schema}
        return {"type": "function", "function": {"name": self.wire_name, **description, "parameters": schema}}

    def arguments(self, text: str) -> dict[str, Any]:
        """Return the arguments of a call by name, from the JSON text that a model wrote.

        They have the types of the function's annotations, converted if nothing is lost ("3" for a number). Raises
        BadInput, in words for the model: what is wrong, and what the tool takes.
        """
        try:
            if self.takes is None:
                return self._plain(text)
            struct = msgspec.json.decode(text or "{}", type=self.takes, strict=False)
            values = {name: getattr(struct, name) for name in self.takes.__struct_fields__}
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, TypeError) as error:
            raise BadInput(self._refusal(error)) from error
        return {name: value for name, value in values.items() if value is not UNSET}

    def _plain(self, text: str) -> dict[str, Any]:
        values = msgspec.json.decode(text or "{}", type=dict[str, Any])
        if missing := [name for name in self.parameters.get("required", ()) if name not in values]:
            raise ValueError(f"{', '.join(missing)} must be given")
        known = self.parameters.get("properties", {})
        if self.parameters.get("additionalProperties") is False and (
            more := [name for name in values if name not in known]
        ):
            raise ValueError(f"there is no {', '.join(more)}")
        return values

    def _refusal(self, error: Exception) -> str:
        required = self.parameters.get("required", ())
        known = self.parameters.get("properties", {})
        parameters = ", ".join(name if name in required else f"{name} (optional)" for name in known)
        text = str(error).replace(" - at `$.", " at `").replace(" - at `$`", "")
        return (
            f"{self.name} was not called, for its arguments are wrong: {text[:_LONGEST]}. "
            f"Call it again with a JSON object; it takes {parameters or 'no arguments'}."
        )


@overload
def tool(function: ToolSource, /) -> Tool: ...
@overload
def tool(
    function: ToolSource,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    is_repeatable: bool = False,
    is_parallel: bool = True,
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
    is_parallel: bool = True,
    timeout: float | None = None,
    lease: Lease | None = None,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: ToolSource | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    is_repeatable: bool = False,
    is_parallel: bool = True,
    timeout: float | None = None,
    lease: Lease | None = None,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Create a tool from a function or an object: models receive its name, description and parameters. Also usable as
    a decorator.

    Every parameter needs an annotation that JSON can express: numbers, text, lists, dicts, Literal, enums, dates,
    TypedDict, dataclasses, msgspec's Structs, and Optional of these. A parameter with a default is optional. Describe a
    parameter in the docstring (in Google's, NumPy's or reST's style) or in
    `Annotated[str, msgspec.Meta(description=...)]`, which can also set bounds. The other options are fields of `Tool`.

    An object has the method `invoke` or `__call__`, and may have the attributes `name`, `description` and `parameters`
    (a JSON Schema). With `parameters`, a method that takes one argument of another name receives all arguments in it:
    as JSON text if it is annotated with `str`, else as a dict.

    Raises BadSetting for a function or an object that JSON cannot describe.
    """

    def make(source: ToolSource) -> Tool:
        function = _function_of(source)
        own_name = name if name is not None else _own_text(source, "name") or getattr(source, "__name__", "")
        _check_name(own_name)
        text, descriptions = descriptions_of(docstring_of(function))
        text = _own_text(source, "description") or text or inspect.cleandoc(type(source).__doc__ or "")
        schema = None if inspect.isroutine(source) else getattr(source, "parameters", None)
        takes: type[Struct] | None = None
        if isinstance(schema, Mapping):
            parameters, function = dict(schema), _by_name(function, schema)
        else:
            takes, parameters = parameters_of(function, own_name, descriptions)
        return Tool(
            name=own_name,
            description=text if description is None else description,
            parameters=parameters,
            call=function,
            needs_approval=needs_approval,
            is_repeatable=is_repeatable,
            is_parallel=is_parallel,
            timeout=timeout,
            lease=lease,
            takes=takes,
        )

    return make if function is None else make(function)


def tools_of(tools: Iterable[object]) -> tuple[Tool, ...]:
    """Return Tools for a list of Tools, functions and objects. Raises BadSetting if two have the same name."""
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise BadSetting(f"tools= must be a list of functions and Tools, not {tools!r:.60}.")
    items = tuple(tools)
    if None in items:
        raise BadSetting(f"Tool {items.index(None)} of the list is None. Leave it out, or pass a function or a Tool.")
    all_tools = tuple(item if isinstance(item, Tool) else tool(cast(Any, item)) for item in items)
    names = [item.wire_name for item in all_tools]
    if twice := sorted({item.name for item in all_tools if names.count(item.wire_name) > 1}):
        raise BadSetting(
            f"Two tools have the name {' and '.join(twice)}; a model could not tell them apart. Rename one of them: "
            'tool(function, name="...").'
        )
    return all_tools


def _check_name(name: object) -> None:
    """Raise BadSetting for a name that no tool can have."""
    is_name = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()
    if not is_name or name == "<lambda>":
        raise BadSetting(
            f"{name!r:.80} cannot be the name of a tool: a name has 1 to {LONGEST_NAME} printable characters, without "
            'spaces around them. Pass another one: tool(function, name="...").'
        )


def _own_text(source: object, attribute: str) -> str:
    """Return an attribute of an object if it is a text. Functions have none that describe a tool."""
    value = "" if inspect.isroutine(source) else getattr(source, attribute, "")
    return value if isinstance(value, str) else ""


def _function_of(source: object) -> Callable[..., object]:
    """Return the function that carries out calls: `invoke` of an object that has one, else the source itself."""
    invoke = None if inspect.isroutine(source) else getattr(source, "invoke", None)
    if invoke is None:
        validate.function("The argument of tool()", source)
        return cast(Callable[..., object], source)
    if isinstance(source, type):
        raise BadSetting(f"{source.__name__} is a class. Pass an object of it: {source.__name__}(...).")
    validate.function(f"invoke of {source!r:.60}", invoke)
    return cast(Callable[..., object], invoke)


def _by_name(function: Callable[..., object], schema: Mapping[str, Any]) -> Callable[..., object]:
    """Return a function that takes the arguments of a schema by name."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function
    required = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) != 1 or required[0].name in schema.get("properties", {}):
        return function
    is_text = required[0].annotation in (str, "str")

    def all_in_one(**arguments: Any) -> object:
        return function(msgspec.json.encode(arguments).decode() if is_text else arguments)

    async def all_in_one_async(**arguments: Any) -> object:
        return await cast(Any, all_in_one(**arguments))

    return all_in_one_async if _is_async(function) else all_in_one


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  An object may have an async method in its place.
    )
