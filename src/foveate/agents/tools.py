"""Tools: functions that models may call, with the JSON Schema of their parameters.

`tool` creates a Tool from a function: the parameters come from its signature, the descriptions from its docstring. The
arguments of a model are checked and converted before the function receives them.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast, overload

import msgspec
from msgspec import UNSET, Struct

from ..conversation import validate
from ..core.stamps import Lease
from ..errors import BadInput, BadSetting
from .schema import descriptions_of, docstring_of, parameters_of

__all__ = ["Tool", "ToolFailed", "tool", "tools_of"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names of functions that OpenAI accepts. Anthropic also accepts longer ones."""
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Names of properties that Anthropic accepts."""
_LONGEST = 500
"""Characters of an error that a model receives: the error may quote a long value that the model wrote."""


class ToolFailed(Exception):
    """A tool failed. Its text goes to the model, and says what to do instead."""


class Tool(Struct, frozen=True, kw_only=True):
    """A tool. Create it with `tool`, or directly if you have a schema."""

    name: str
    """Its name for models: letters, digits, `_` and `-`, at most 64."""
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
    """When its results expire (policy `expire_results`)."""
    takes: type[Struct] | None = None
    """The type that arguments are converted to; `tool` creates it. None: they are passed on as the model wrote them."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise BadSetting(
                f"{self.name!r:.80} cannot be the name of a tool: providers accept 1 to 64 letters, digits, _ and -. "
                'Pass another one: tool(function, name="...").'
            )
        validate.text(f"The description of the tool {self.name}", self.description)
        validate.function(f"The call of the tool {self.name}", self.call)
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
        """Whether its calls must be awaited."""
        return inspect.iscoroutinefunction(self.call) or inspect.iscoroutinefunction(
            getattr(self.call, "__call__", None)  # noqa: B004  An object may have an async method in its place.
        )

    def wire(self, format: str = "openai") -> dict[str, Any]:
        """Return the definition in a provider's form: new containers, the same bytes each time."""
        description = {"description": self.description} if self.description else {}
        schema = copy.deepcopy(dict(self.parameters))
        if format == "anthropic":
            return {"name": self.name, **description, "input_schema": schema}
        return {"type": "function", "function": {"name": self.name, **description, "parameters": schema}}

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
    function: Callable[..., object] | None = None,
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
    """Create a tool from a function: models receive its name, docstring and parameters. Also usable as a decorator.

    Every parameter needs an annotation that JSON can express: numbers, text, lists, dicts, Literal, enums, dates,
    TypedDict, dataclasses, msgspec's Structs, and Optional of these. A parameter with a default is optional. Describe a
    parameter in the docstring (in Google's, NumPy's or reST's style) or in
    `Annotated[str, msgspec.Meta(description=...)]`, which can also set bounds. The other options are fields of `Tool`.
    Raises BadSetting for a function that JSON cannot describe.
    """

    def make(function: Callable[..., object]) -> Tool:
        validate.function("The argument of tool()", function)
        tool_name = name if name is not None else getattr(function, "__name__", "")
        text, descriptions = descriptions_of(docstring_of(function))
        takes, parameters = parameters_of(function, tool_name or repr(function), descriptions)
        return Tool(
            name=tool_name,
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
    """Return Tools for a list of Tools and functions. Raises BadSetting if two have the same name."""
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise BadSetting(f"tools= must be a list of functions and Tools, not {tools!r:.60}.")
    all_tools = tuple(item if isinstance(item, Tool) else tool(cast(Any, item)) for item in tools)
    names = [item.name for item in all_tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadSetting(
            f"Two tools have the name {', '.join(twice)}; a model could not tell them apart. Rename one of them: "
            'tool(function, name="...").'
        )
    return all_tools
