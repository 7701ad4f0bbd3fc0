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
from typing import Any, cast, overload

import msgspec
from msgspec import UNSET, Struct

from .. import given
from ..core.stamps import Lease
from ..errors import BadInput, BadSetting
from .docstrings import described
from .signatures import docstring_of, parameters_of

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
        about, of_parameters = described(docstring_of(function))
        takes, parameters = parameters_of(function, called or repr(function), of_parameters)
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
