"""Kinds of values: fields of a function, allowed values in words, conversion and parsing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from foveate.policies.presets.values import allowed, convert, fields_of, is_plain, is_table, parse

if TYPE_CHECKING:
    from somewhere import Unknown


class Point(Struct):
    x: int
    y: float = 0.0


def odd(
    positional: int,
    /,
    *rest: int,
    far: Unknown | None = None,
    near: int = 1,
    must: str,
    **more: int,
) -> None:
    """A function with a type that only type checkers import."""


def test_fields_are_arguments_with_readable_types():
    found = {name: (one.kind, one.default, one.is_required) for name, one in fields_of(odd).items()}
    assert found == {"near": (int, 1, False), "must": (str, None, True)}


def test_allowed_describes_kinds_in_words():
    message = {
        int: "a whole number",
        float | None: "a number or none",
        Annotated[int, Meta(ge=1)]: "a whole number of 1 or more",
        Literal["all"]: "all",
        Literal["a", 2]: "one of a, 2",
        Collection[int]: "a list of whole numbers",
        tuple[str, ...]: "a list of texts",
        Sequence[Point]: "a list of values",
        Mapping[str, int | None]: "a table of names, each with a whole number or none",
        Point | None: "a table with x, y or none",
        int | Callable[[], int]: "a whole number",
        Callable[[], int]: "a value that only a program can give",
    }
    assert {kind: allowed(kind) for kind in message} == message


def test_kinds_that_only_a_program_can_pass_are_recognised():
    wanted = [int, int | Callable[[], int], Iterable[str], Mapping[str, Point], Annotated[str, "x"], list[Point] | None]
    unsaid = [Callable[[], int], object, Callable[[], int] | None, list[object], Mapping[str, object], type]
    assert [is_plain(kind) for kind in wanted] == [True] * len(wanted)
    assert [is_plain(kind) for kind in unsaid] == [False] * len(unsaid)
    tables = [
        kind for kind in (Point, Point | None, Mapping[str, int], int, int | Point, list[Point]) if is_table(kind)
    ]
    assert tables == [Point, Point | None, Mapping[str, int]]


def test_values_are_converted_to_their_kind():
    kinds = [
        (list[int], (1, 2), [1, 2]),
        (frozenset[str], ["a"], frozenset("a")),
        (Iterable[str], {"a"}, ("a",)),
        (Point, {"x": 1, "y": 2}, Point(1, 2.0)),
        (Sequence[Point], [{"x": 1}, Point(2)], (Point(1), Point(2))),
        (bool | int, 1, 1),
        (int | bool, True, True),
        (Literal[1, "b"], 1, 1),
    ]
    for kind, value, expected in kinds:
        found = convert(kind, value)
        assert (found, type(found)) == (expected, type(expected))


def test_texts_are_parsed_as_their_kind():
    kinds = [
        (list[int], "1, 2,", [1, 2]),
        (int | Literal["all"], "all", "all"),
        (int | Literal["all"], "5", 5),
        (bool | int, "5", 5),
        (Literal[1, 2], "2", 2),
        (Annotated[int, "x"], "7", 7),
        (str, " x ", "x"),
        (float, "5", 5),
        (int, "five", "five"),
    ]
    assert [parse(kind, text) for kind, text, _ in kinds] == [expected for _, _, expected in kinds]
