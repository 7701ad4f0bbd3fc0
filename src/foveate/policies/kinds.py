"""The kinds of a policy's settings: numbers, texts and switches of the wrong kind are refused by name."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

from ..errors import BadSetting

__all__ = ["check_kinds"]

P = ParamSpec("P")
R = TypeVar("R")


def check_kinds(make: Callable[P, R]) -> Callable[P, R]:
    """Let a function that makes a policy raise BadSetting for an argument that is not of its annotated kind.

    The function checks limits itself, and kinds that are not in this module. Without this check, a wrong value raises
    the TypeError of some comparison, or counts as another one: a text as a list of letters. `make` gives warnings the
    `stacklevel=3` of its caller.
    """
    named = {name: kind.split(" | ") for name, kind in make.__annotations__.items()}
    kinds = {name: names for name, names in named.items() if all(each in _KINDS for each in names)}

    @wraps(make)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            policy = make(*args, **kwargs)  # First, since its own refusals say more.
        except (TypeError, AttributeError) as error:
            check(args, kwargs, error)
            raise
        check(args, kwargs)
        return policy

    def check(args: tuple[object, ...], kwargs: Mapping[str, object], cause: Exception | None = None) -> None:
        for name, value in (*zip(make.__code__.co_varnames, args, strict=False), *kwargs.items()):
            if name in kinds and not any(_KINDS[kind][0](value) for kind in kinds[name]):
                wanted = " or ".join(_KINDS[kind][1] for kind in kinds[name])
                raise BadSetting(f"{make.__name__}({name}=...) must be {wanted}, not {reprlib.repr(value)}.") from cause

    return checked


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value  # Only NaN differs from itself.


def _are_texts(value: object) -> bool:
    if not isinstance(value, Collection):
        return isinstance(value, Iterable)  # The function has read it.
    return not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _are_policies(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(callable, value))


_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "int": (lambda value: isinstance(value, Integral) and not isinstance(value, bool), "a whole number"),
    "float": (_is_number, "a number"),
    "TokenWindow": (_is_number, "a number"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "None": (lambda value: value is None, "None"),
    "Collection[str]": (_are_texts, "a list of texts"),
    "Policy": (callable, "a policy"),
    "Sequence[Policy]": (_are_policies, "a list of policies"),
    "Mapping[str, Lease]": (lambda value: isinstance(value, Mapping), "a mapping from names to a Lease"),
    "Mapping[str, PluginRetention]": (
        lambda value: isinstance(value, Mapping),
        "a mapping from names to a PluginRetention",
    ),
}
"""For each annotation: whether a value is of this kind, and the kind in words."""
