"""What an agent is made of: everything that is said of it is looked at before anything is opened."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from .. import given
from ..errors import BadSetting
from ..open import KEYWORDS, cost_of, open_model
from ..plugins import brought, listed
from ..ports import Clock, Cost, Model
from .answers import Wanted
from .calling import Approve, Calling
from .limits import Limits, seconds
from .talking import Talking
from .tools import Tool, tools_of

__all__ = ["BUSY", "Made", "checked_system", "closed", "fresh_id", "made_of", "wall_clock"]

BUSY = "This agent is at work: it does one thing at a time. Wait until that has ended, or make a second agent."
"""What a second call at once is told."""


class Made(Struct, frozen=True):
    """What an agent was made of, before its conversation is open."""

    talking: Talking
    conversation: Any
    """Its name, or the conversation itself."""
    opening: dict[str, Any]
    """What it is opened with, where it has a name."""


def made_of(
    kind: Any,
    model: str | Model,
    *,
    asynchronous: bool,
    conversation: object,
    name: str,
    system: object,
    tools: Iterable[Tool | Callable[..., object]],
    limits: Limits | None,
    calling: tuple[Approve | None, bool, int],
    result_type: Any,
    options: Mapping[str, Any] | None,
    waits: float,
    cost: Cost | None,
    clock: Clock | None,
    new_id: Callable[[], str] | None,
    opening: dict[str, Any],
) -> Made:
    """Look at everything before anything is opened."""
    given.text("name=", name)
    name = name or kind._name
    for keyword in opening:
        if keyword not in KEYWORDS:
            raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {keyword!r}")
    if not isinstance(conversation, str):
        given.like("conversation=", conversation, ("append", "prompt", "record"), "a name or an open conversation")
        if opening:
            raise BadSetting(f"{', '.join(opening)}: the conversation is open already, and is as it was opened.")
    given.like("tools=", tools, ("__iter__",), "a list of functions and Tools")
    all_tools = tools_of([*tools, *brought(listed(opening.get("plugins", ())))])
    approve, approves_all, at_most = calling
    answers = Calling({tool.name: tool for tool in all_tools}, approve, approves_all, at_most)
    answers.check(asynchronous=asynchronous)
    given.instance("limits=", limits or Limits(), Limits, "a Limits, such as Limits(turns=20)")
    if options is not None and not isinstance(options, Mapping):
        raise BadSetting(f"options= is a dict of what is said with every request, not {options!r:.60}.")
    for what, value in {"clock=": clock, "new_id=": new_id, "cost=": cost}.items():
        if value is not None:
            given.callable_(what, value)
    wanted = Wanted(result_type) if result_type is not None else None
    opened = _model(model, asynchronous=asynchronous)
    cost = cost or cost_of(opened.name)
    if limits is not None and limits.money is not None and cost is None:
        raise BadSetting(f"limits.money needs the price of {opened.name}, which is not known. Hand in cost=.")
    talking = Talking(
        name=name,
        model=opened,
        calling=answers,
        system=kind._system if system is None else checked_system(system),
        limits=limits or Limits(),
        clock=clock or wall_clock,
        new_id=new_id or fresh_id,
        cost=cost,
        options=options,
        wanted=wanted,
        waits=seconds("waits=", waits),
    )
    if isinstance(conversation, str):
        # What mechanisms leave in a view names what `expand` takes.
        opening = {"expand": True, **_following(opened), **opening, **({"clock": clock} if clock else {})}
    return Made(talking, conversation or name if isinstance(conversation, str) else conversation, opening)


def _model(model: str | Model, *, asynchronous: bool) -> Model:
    if isinstance(model, str):
        return open_model(model, asynchronous=asynchronous)
    given.like("model=", model, ("complete",), "a name such as anthropic:claude-haiku-4-5, or a Model")
    for field in ("name", "format"):
        given.instance(f"model.{field}", getattr(model, field, None), str, "a string")
    return model


def checked_system(system: object) -> object:
    """A system prompt in a form that every format takes: text, or a block or message of it, or a list of these.

    Raises BadSetting for anything else, since a conversation would find it out at its first request.
    """
    for one in system if isinstance(system, list | tuple) else [system]:
        if not (one is None or isinstance(one, str | Mapping) or hasattr(one, "model_dump")):
            raise BadSetting(f"system= is a text, or a list of texts and blocks; not {one!r:.60}.")
    return system


def closed(model: Model | None) -> object:
    """Let go of a model's connections; to be awaited if it is."""
    close = getattr(model, "close", None)
    return close() if callable(close) else None


def _following(model: Model) -> dict[str, Any]:
    """What a conversation is opened with because of its model."""
    said: dict[str, Any] = {"format": model.format, "model": model.name}
    window = getattr(model, "window", None)
    return said | ({"window": window} if isinstance(window, int) else {})


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def fresh_id() -> str:
    """An id that no other run has."""
    return uuid.uuid4().hex
