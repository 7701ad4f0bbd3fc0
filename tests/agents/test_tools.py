"""Tools from functions: definitions, arguments, and refused functions."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import functools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

import msgspec
import pytest

from foveate import BadInput, Tool, tool
from foveate.agents.schema import descriptions_of
from foveate.agents.tools import tools_of
from foveate.errors import BadSetting
from foveate.types import Lease


class Box(TypedDict):
    width: int
    height: NotRequired[int]


@dataclasses.dataclass
class Place:
    """Somewhere."""

    name: str
    inside: Place | None = None


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def read_file(path: str, lines: int = 10, mode: Literal["text", "hex"] = "text") -> str:
    """Read a file.

    Only what lies in the folder.

    Args:
        path (str): Where it is,
            relative to the folder.
        mode: How: as text,
            or as numbers.

    Returns:
        What it holds.
    """
    return f"{path} {lines} {mode}"


READ_FILE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where it is, relative to the folder."},
        "lines": {"type": "integer", "default": 10},
        "mode": {"enum": ["hex", "text"], "default": "text", "description": "How: as text, or as numbers."},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def test_a_function_becomes_a_tool_by_its_signature_and_docstring():
    made = tool(read_file)
    assert (made.name, made.description, made.parameters) == (
        "read_file",
        "Read a file.\n\nOnly what lies in the folder.",
        READ_FILE,
    )
    assert made.call is read_file


def test_a_tool_has_the_definition_of_each_provider():
    made = tool(read_file, description="Read.")
    assert made.wire("anthropic") == {"name": "read_file", "description": "Read.", "input_schema": READ_FILE}
    assert made.wire("openai") == {
        "type": "function",
        "function": {"name": "read_file", "description": "Read.", "parameters": READ_FILE},
    }
    made.wire("openai")["function"]["parameters"]["properties"].clear()
    assert made.parameters == READ_FILE


def test_the_decorator_accepts_the_options_of_a_tool():
    @tool(name="rm", needs_approval=True, is_repeatable=True, is_parallel=False, timeout=3, lease=Lease(2))
    def remove(path: str) -> None: ...

    assert isinstance(remove, Tool)
    said = (remove.name, remove.needs_approval, remove.is_repeatable, remove.is_parallel, remove.timeout, remove.lease)
    assert said == ("rm", True, True, False, 3, Lease(2))


def test_a_tool_can_be_called_like_its_function():
    assert tool(read_file)("a", lines=3) == "a 3 text"


def test_arguments_are_converted_to_the_annotated_types():
    def f(
        count: int,
        box: Box,
        place: Place,
        colour: Colour,
        day: datetime.date,
        tags: list[str] | None = None,
        ratios: dict[str, float] | None = None,
    ) -> None: ...

    arguments = tool(f).arguments(
        '{"count":"3","box":{"width":1},"place":{"name":"a","inside":{"name":"b"}},"colour":"red","day":"2026-01-02",'
        '"ratios":{"x":1}}'
    )
    assert arguments == {
        "count": 3,
        "box": {"width": 1},
        "place": Place("a", Place("b")),
        "colour": Colour.RED,
        "day": datetime.date(2026, 1, 2),
        "ratios": {"x": 1.0},
    }


def test_a_missing_argument_takes_the_functions_default():
    missing = object()

    def f(a: int = 1, b: Any = missing, c: list[int] = [1]) -> None: ...  # noqa: B006

    assert tool(f).arguments("{}") == tool(f).arguments("") == {}
    assert [part.get("default") for part in tool(f).parameters["properties"].values()] == [1, None, [1]]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ('{"path":"a","lines":"many"}', "Expected `int`, got `str` at `lines`"),
        ('{"path":"a"', "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "Object missing required field `path`"),
        ('{"path":"a","line":1}', "Object contains unknown field `line`"),
        ('{"path":"a","mode":"x"}', "Invalid enum value 'x' at `mode`"),
        ("[" * 100_000, "Expected `object`, got `array`"),
    ],
)
def test_wrong_arguments_raise_with_advice(arguments: str, wrong: str):
    with pytest.raises(BadInput) as caught:
        tool(read_file).arguments(arguments)
    assert str(caught.value) == (
        f"read_file was not called, for its arguments are wrong: {wrong}. Call it again with a JSON object; it takes "
        "path, lines (optional), mode (optional)."
    )


def test_a_tool_created_directly_passes_arguments_unchanged():
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    }
    made = Tool(name="ask", parameters=schema, call=lambda **given: given)
    assert made.arguments('{"q":[1]}') == {"q": [1]}
    for wrong, said in {"{}": "q must be given", '{"q":1,"z":2}': "there is no z", "3": "Expected `object`"}.items():
        with pytest.raises(BadInput, match=said):
            made.arguments(wrong)


def test_annotations_set_descriptions_and_bounds():
    def f(
        count: Annotated[int, msgspec.Meta(ge=1, description="How many.")],
        unit: Annotated[str, "In which unit."] = "m",
    ) -> None:
        """Measure.

        Args:
            count: Not this.
        """

    assert tool(f).parameters["properties"] == {
        "count": {"type": "integer", "minimum": 1, "description": "How many."},
        "unit": {"type": "string", "description": "In which unit.", "default": "m"},
    }
    with pytest.raises(BadInput, match="Expected `int` >= 1 at `count`"):
        tool(f).arguments('{"count":0}')


def test_named_and_recursive_types_stand_under_defs():
    def f(place: Place) -> None: ...

    assert tool(f).parameters == {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/Place"}},
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "description": "Somewhere.",
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "inside": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None},
                },
                "required": ["name"],
            }
        },
    }


class Adder:
    """Add to a number."""

    def __call__(self, number: int) -> int:
        return number + 1

    def more(self, number: int) -> int:
        """Add more."""
        return number + 2

    async def later(self, number: int) -> int:
        return number


class AsyncAdder:
    async def __call__(self, number: int) -> int:
        return number


def test_methods_partials_and_callable_objects_become_tools():
    whole = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    whole["additionalProperties"] = False
    made = [tool(Adder(), name="add"), tool(Adder().more), tool(Adder().later), tool(AsyncAdder(), name="a")]
    assert [item.parameters for item in made] == [whole] * 4
    assert [one.name for one in made] == ["add", "more", "later", "a"]
    assert [one.description for one in made[:2]] == ["Add to a number.", "Add more."]
    assert [item.is_async for item in made] == [False, False, True, True]
    partial = tool(functools.partial(read_file, mode="hex"), name="hex")
    assert partial.parameters["properties"]["mode"]["default"] == "hex"
    assert partial.description.startswith("Read a file.")


class SearchTool:
    name = "Google Search"
    description = "Search the web."

    def invoke(self, query: str, limit: int = 3) -> str:
        """Not for the model.

        Args:
            query: The words.
        """
        return f"{limit} pages about {query}"


class Weather:
    """Tell the weather."""

    name = "weather"
    parameters: ClassVar = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}

    async def invoke(self, arguments: str) -> str:
        return arguments


class Clock:
    name = "clock"
    parameters = Weather.parameters

    def __call__(self, arguments: dict[str, Any]) -> list[str]:
        """Tell the time."""
        return list(arguments)


def test_an_object_with_a_name_and_invoke_becomes_a_tool():
    search = tools_of([SearchTool()])[0]
    assert (search.name, search.wire_name, search.description) == ("Google Search", "Google_Search", "Search the web.")
    assert search.parameters["properties"]["query"] == {"type": "string", "description": "The words."}
    assert search(**search.arguments('{"query": "trams", "limit": "5"}')) == "5 pages about trams"
    assert search.wire()["function"]["name"] == search.wire("anthropic")["name"] == "Google_Search"


def test_an_object_with_a_schema_receives_all_arguments_in_one():
    weather, clock = tools_of([Weather(), Clock()])
    assert (weather.description, clock.description) == ("Tell the weather.", "Tell the time.")
    assert weather.parameters == Weather.parameters
    assert weather.is_async
    assert asyncio.run(weather(town="Oslo")) == '{"town":"Oslo"}'
    assert clock(town="Oslo") == ["town"]
    with pytest.raises(BadInput, match="town must be given"):
        clock.arguments("{}")


def test_an_object_with_a_schema_may_be_async():
    class Bell:
        name = "bell"
        parameters = Weather.parameters

        async def __call__(self, arguments: dict[str, Any]) -> list[str]:
            """Ring."""
            return list(arguments)

    (bell,) = tools_of([Bell()])
    assert bell.is_async
    assert asyncio.run(bell(town="Oslo")) == ["town"]


def test_two_names_that_providers_cannot_tell_apart_are_refused():
    with pytest.raises(BadSetting, match="Two tools have the name Read File and Read_File"):
        tools_of([tool(read_file, name="Read File"), tool(read_file, name="Read_File")])


def nothing_said(x) -> None: ...  # type: ignore[no-untyped-def]


def many(*paths: str) -> None: ...


def anything(**options: str) -> None: ...


def by_place(x: int, /) -> None: ...


def foreign(é: int) -> None: ...


def unknown(x: Nope) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def own(x: Adder) -> None: ...


def path(x: Path | None) -> None: ...


def described(x: Annotated[Path, "A file."]) -> None: ...


@dataclasses.dataclass
class Files:
    folders: dict[str, list[Path]]


def nested(x: Files) -> None: ...


def each(limit: int) -> Iterator[int]:
    yield limit


async def each_async(limit: int) -> AsyncIterator[int]:
    yield limit


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (nothing_said, "The parameter x of the tool nothing_said has no annotation"),
        (many, "takes \\*paths, but models pass arguments by name only"),
        (anything, "takes \\*\\*options, but models pass arguments by name only"),
        (by_place, "takes x, but models pass arguments by name only"),
        (foreign, "'é' of the tool foreign cannot be the name of a parameter"),
        (unknown, "An annotation of the tool unknown cannot be read: name 'Nope' is not defined"),
        (own, "The parameter x of the tool own uses the type Adder, which has no form in JSON. Use a str, a number"),
        (path, "The parameter x of the tool path uses the type Path, .* and convert the value in the function."),
        (described, "The parameter x of the tool described uses the type Path"),
        (nested, "The parameter x of the tool nested uses the type Path"),
        (each, "The tool each is a generator, and no model receives its values. Return a list."),
        (each_async, "The tool each_async is a generator"),
        (lambda: 1, "'<lambda>' cannot be the name of a tool"),
        (Adder(), "'' cannot be the name of a tool"),
        (3, "The argument of tool\\(\\) must be something that can be called"),
        (SearchTool, "SearchTool is a class. Pass an object of it: SearchTool\\(...\\)"),
    ],
)
def test_a_function_that_json_cannot_describe_is_refused(function: Any, said: str):
    with pytest.raises(BadSetting, match=said):
        tool(function)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "read\nfile"},
        {"name": " read"},
        {"name": "x" * 501},
        {"name": ""},
        {"name": 3},
        {"description": None},
        {"call": 3},
        {"parameters": {"type": "string"}},
        {"parameters": {"type": "object", "default": object()}},
        {"timeout": 0},
        {"timeout": True},
        {"needs_approval": "yes"},
        {"lease": 3},
    ],
)
def test_a_tool_with_wrong_fields_is_refused(wrong: dict[str, Any]):
    with pytest.raises(BadSetting):
        Tool(**{"name": "a", "call": print, **wrong})


def test_two_tools_with_one_name_are_refused():
    with pytest.raises(BadSetting, match="Two tools have the name read_file; a model could not tell them apart"):
        tools_of([read_file, tool(many_named)])
    with pytest.raises(BadSetting, match="tools= must be a list of functions"):
        tools_of("read_file")


def _named() -> None: ...


many_named = functools.wraps(read_file)(lambda path: path)


@pytest.mark.parametrize(
    "docstring",
    [
        "Do it.\n\nArgs:\n    a (int): The first,\n        and more.\n    b: The second.\n\nRaises:\n    x: y",
        "Do it.\n\n    Parameters\n    ----------\n    a : int\n        The first,\n        and more.\n"
        "    b, c : float\n        The second.\n\n    Returns\n    -------\n    int\n        Sum",
        "Do it.\n\n:param int a: The first,\n    and more.\n:param b: The second.\n:type b: int\n:returns: c",
    ],
)
def test_docstrings_of_three_styles_give_the_same_descriptions(docstring: str):
    about, parameters = descriptions_of(docstring)
    assert (about, parameters["a"], parameters["b"]) == ("Do it.", "The first, and more.", "The second.")


def test_a_docstring_without_parameters_is_a_description():
    assert descriptions_of(None) == ("", {})
    assert descriptions_of("One.\n\nTwo: three.\n  four") == ("One.\n\nTwo: three.\n  four", {})
    assert descriptions_of("Note: this is prose\nthat goes on.") == ("Note: this is prose\nthat goes on.", {})
