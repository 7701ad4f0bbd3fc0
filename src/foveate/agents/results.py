"""What tools return, as the content of a result, and as the text by which a step keeps it.

Text stays as it is, parts such as images are kept, anything else becomes JSON. What a step has kept gives back the same
content, so that a result that was not appended yet can be appended by whoever takes the run up. Pure.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.messages import Content, Media, Message, Opaque, State, Text, ToolResult
from ..errors import BadInput
from .tools import ToolFailed

__all__ = ["LARGEST", "content_of", "failure", "kept", "read", "sendable", "sized", "trace"]

LARGEST = 10_000_000
"""Characters of a result. More is for no model, and whoever called the tool is better told at once."""
_NOTHING = "Done. It returned nothing."
_PARTS = '{"content":['
_LONGEST = 2_000
"""Characters of an error that a model is told."""


class _Kept(msgspec.Struct):
    content: tuple[Content, ...]


_decoder = msgspec.json.Decoder(_Kept)


def content_of(value: object) -> tuple[tuple[Content, ...], State]:
    """What a tool returned as content, and whether it is an error. Raises BadInput, in words for the model."""
    match value:
        case None:
            return (Text(_NOTHING),), "ok"
        case str():
            return (Text(sendable(value)),), "ok"
        case ToolResult():
            return _mended(value.content), value.state
        case Message():
            return _mended([part for part in value.parts if isinstance(part, Content)]), "ok"
        case Text() | Media() | Opaque():
            return _mended([value]), "ok"
        case list() | tuple() if any(isinstance(part, Content) for part in value) and all(
            isinstance(part, Content | str) for part in value
        ):
            return _mended([Text(part) if isinstance(part, str) else part for part in value]), "ok"
    return (Text(_json(value)),), "ok"


def failure(name: str, error: BaseException) -> str:
    """What a model is told of a tool that failed: no trace, which is for people. Of a ToolFailed its own words."""
    said = str(error) if isinstance(error, ToolFailed) else f"{type(error).__name__}: {error}".rstrip(": ")
    said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
    return said if isinstance(error, ToolFailed) and said else f"{name} failed: {said}"


def trace(error: BaseException) -> str:
    """The same for people: what was raised, and where."""
    return sendable("".join(traceback.format_exception(error)))


def sized(name: str, content: tuple[Content, ...]) -> tuple[tuple[Content, ...], bool]:
    """The content, and whether it can be shown at all; where it cannot, a word that says so."""
    size = sum(len(part.text if isinstance(part, Text) else getattr(part, "data", "")) for part in content)
    if size <= LARGEST:
        return content, True
    told = f"{name} returned {size:,} characters, more than can be read. Ask it for less, or for a part."
    return (Text(told),), False


def kept(content: tuple[Content, ...]) -> str:
    """The text by which a step keeps content: the text itself where it is nothing else."""
    if len(content) == 1 and isinstance(content[0], Text) and content[0].extra is None:
        text = content[0].text
        if not text.startswith(_PARTS):
            return text
    return msgspec.json.encode(_Kept(content)).decode()


def read(output: str) -> tuple[Content, ...]:
    """The content that was kept so."""
    if output.startswith(_PARTS):
        return _decoder.decode(output).content
    return (Text(output),)


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except Exception as error:
        said = str(error) or type(error).__name__
        raise BadInput(
            f"It was carried out, but what it returned ({type(value).__name__}) cannot be written as JSON: "
            f"{sendable(said)[:_LONGEST]}. Calling it again will not help."
        ) from error


def _plain(value: object) -> object:
    """What msgspec does not know: models of other libraries, paths."""
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return dump()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"there is no JSON for {type(value).__name__}")


def _mended(parts: Sequence[Any]) -> tuple[Content, ...]:
    return tuple(Text(sendable(part.text), part.extra) if isinstance(part, Text) else part for part in parts)


def sendable(text: str) -> str:
    """The text as it can be sent. Names of files may hold halves of surrogate pairs, which no provider takes."""
    return text.encode("utf-8", "backslashreplace").decode()
