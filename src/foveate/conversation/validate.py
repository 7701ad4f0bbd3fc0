"""Checks of the values that users pass in: settings and arguments.

Each check refuses a wrong kind of value and names the argument. The formats check wire messages, and
`core/stored_form.py` checks messages and edits.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeVar, get_args

from ..core.enrich import retained_parts
from ..core.messages import Message
from ..core.metadata import encode_metadata, is_metadata
from ..core.scalars import plain_scalar
from ..core.stamps import Origin, PartRetention, Usage
from ..errors import BadInput, BadMessage, BadSetting
from ..ports import IMPORTING

__all__ = [
    "conversation_name",
    "function",
    "has_methods",
    "instance",
    "integer",
    "lease",
    "listener",
    "metadata",
    "origin",
    "part_retention",
    "retention_fits",
    "system_prompt",
    "text",
    "tools",
    "usage",
    "window",
]

T = TypeVar("T")
MIN_WINDOW = 1_000
"""Tokens. A smaller window has no room for a system prompt, a request and an answer."""
_NO_OBJECTS = (str, bytes, int, float, list, tuple)
"""Types of values that are no objects of JSON, or none that a wire message has."""
_MAX_INTEGER = 2**63 - 1
"""The largest integer that every store can keep."""


def integer(name: str, value: object, least: int = 0) -> int:
    """Return `value` as an int if it is an integer of at least `least`. Raises BadSetting."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number: int = plain_scalar(value)
        if number > _MAX_INTEGER:
            raise BadSetting(f"{name} must be at most 2**63 - 1, not {reprlib.repr(value)}.")
        if number >= least:
            return number
    raise BadSetting(f"{name} must be a whole number of {least} or more, not {reprlib.repr(value)}.")


def window(value: object) -> int:
    """Return the window if a conversation can work in it. Raises BadSetting."""
    tokens = integer("window= (tokens)", value, 1)
    if tokens < MIN_WINDOW:
        raise BadSetting(f"Window must be at least {MIN_WINDOW:,} tokens, not {tokens}. Pass the window of your model.")
    return tokens


def text(name: str, value: object) -> str:
    """Return `value` as a str if it is a string. Raises BadSetting."""
    return str.__str__(instance(name, value, str, "a string"))


def conversation_name(name: str, value: object) -> str:
    """Return `value` if it can name a conversation. Raises BadSetting."""
    checked = text(name, value)
    if checked.startswith(IMPORTING):
        raise BadSetting(
            f"{name} begins with {IMPORTING!r}, which is reserved for unfinished imports: it would not be exported, "
            f"and `foveate db unfinished --drop` would delete it. Choose another name."
        )
    return checked


def instance(name: str, value: object, kind: type[T], wanted: str) -> T:
    """Return `value` if it is an instance of `kind`, which `wanted` describes. Raises BadSetting."""
    if isinstance(value, kind):
        return value
    raise BadSetting(f"{name} must be {wanted}, not {reprlib.repr(value)}.")


def usage(value: object) -> Usage:
    """Return the usage of a call with plain numbers. Raises BadSetting if a field is no number of tokens or None."""
    reported = instance("usage=", value, Usage, "a Usage")
    fields = {field: getattr(reported, field) for field in Usage.__struct_fields__}
    return Usage(
        **{field: integer(f"Usage({field}=...)", count) for field, count in fields.items() if count is not None}
    )


def tools(value: object) -> Sequence[Any]:
    """Return the definitions of tools as a list or tuple; None stands for no tools. Raises BadSetting."""
    if value is None:
        return ()
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise BadSetting(f"tools= must be a list with the definitions of tools, not {reprlib.repr(value)}.")
    definitions = value if isinstance(value, list | tuple) else list(value)
    for number, tool in enumerate(definitions):
        if tool is None or isinstance(tool, _NO_OBJECTS):
            raise BadSetting(f"tools[{number}] must be the definition of a tool, an object, not {reprlib.repr(tool)}.")
    return definitions


def system_prompt(value: object) -> object:
    """Return a system prompt, as a plain `str` if it is a string of a derived type. Raises BadSetting.

    The format reads its blocks, but only after edits were committed: what no format reads is refused before.
    """
    if isinstance(value, str):
        return str.__str__(value)
    for item in value if isinstance(value, list | tuple) else (value,):
        if not (item is None or isinstance(item, str | Mapping) or hasattr(item, "model_dump")):
            raise BadSetting(f"system= must be a text, or a list of texts and blocks; it holds {reprlib.repr(item)}.")
    return value


def function(name: str, value: object) -> None:
    """Raise BadSetting unless `value` is callable."""
    if not callable(value):
        raise BadSetting(f"{name} must be something that can be called, such as a function, not {reprlib.repr(value)}.")


def listener(name: str, value: object) -> None:
    """Raise BadSetting unless `value` is callable, and not async: events are not awaited."""
    function(name, value)
    if inspect.iscoroutinefunction(value):
        raise BadSetting(f"{name} is called and not awaited. Pass a plain function, which may begin a task.")


def has_methods(name: str, value: object, methods: tuple[str, ...], wanted: str) -> None:
    """Raise BadSetting unless `value` is an object, not a class, that has these methods."""
    if isinstance(value, type) or not all(callable(getattr(value, method, None)) for method in methods):
        raise BadSetting(f"{name} must be {wanted}, not {reprlib.repr(value)}.")


def origin(value: object) -> None:
    """Raise BadSetting unless `value` is an origin of messages."""
    if value not in get_args(Origin):
        raise BadSetting(f"origin= must be one of {', '.join(get_args(Origin))}, not {reprlib.repr(value)}.")


def lease(value: object) -> None:
    """Raise BadSetting unless `value` is a Lease whose fields fit together."""
    from ..policies.leases import check_lease  # Few messages have one.

    check_lease("lease=", value)


def part_retention(values: object) -> tuple[PartRetention, ...]:
    """Return the retention of each part of a message. Raises BadSetting."""
    if not isinstance(values, list | tuple):
        raise BadSetting(f"kept= must be a list with a PartRetention for each part, not {reprlib.repr(values)}.")
    for value in values:
        part = instance("An element of kept=", value, PartRetention, "a PartRetention")
        instance("PartRetention(shown=...)", part.shown, bool, "True or False")
        text("PartRetention(plugin=...)", part.plugin)
        if part.calls is not None:
            integer("PartRetention(calls=...)", part.calls)
    return tuple(values)


def retention_fits(values: Sequence[PartRetention], messages: Sequence[Message]) -> None:
    """Raise BadMessage unless there is one value for each part of the one message."""
    if not values:
        return
    if len(messages) != 1:
        raise BadMessage(f"kept= describes one message, but {len(messages)} were passed. Append them one by one.")
    if messages[0].role not in ("user", "tool"):
        raise BadMessage(f"kept= is allowed for messages of users and tools, not for the role {messages[0].role}.")
    count = len(retained_parts(messages[0]))
    if count != len(values):
        raise BadMessage(f"kept= has {len(values)} entries for {count} parts. Pass one entry for each part.")


def metadata(value: object) -> str:
    """Return an application's own facts as JSON text. Raises BadSetting or BadInput."""
    if value is None:
        return ""
    if not is_metadata(value):
        raise BadSetting(
            f"metadata= must be a JSON object (a dict, a dataclass, a Struct or a model of pydantic), not "
            f"{reprlib.repr(value)}."
        )
    try:
        return encode_metadata(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata= cannot be written as JSON: {error}.") from error
