"""Results of tools and actions: their content, their messages for the model, and their stored form."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ..core.messages import Content, Media, Message, Opaque, ResultState, Text, ToolResult
from ..core.results import headline, merged_headline
from ..core.stamps import Lease
from ..core.stored_form import stored_message
from ..errors import BadInput, BadMessage
from ..policies.leases import most_aggressive
from .mcp_results import read_mcp_result
from .tools import ToolFailed

__all__ = [
    "LARGEST",
    "content_of",
    "decode_content",
    "encode_content",
    "error_trace",
    "failure_text",
    "limit_size",
    "merged_message",
    "result_message",
    "sendable",
]

LARGEST = 10_000_000
"""Characters of a result. The model receives an error instead of a longer one."""
_NOTHING = "Done. It returned nothing."
_NO_REASON = "It failed, and gave no reason."
_PARTS = '{"content":['
_LONGEST = 2_000
"""Characters of an error that a model receives."""


class _StoredContent(msgspec.Struct):
    content: tuple[Content, ...]


_decoder = msgspec.json.Decoder(_StoredContent)


def content_of(value: object) -> tuple[tuple[Content, ...], ResultState]:
    """Return a tool's return value as content, and whether it is an error. Raises BadInput, in words for the model.

    Text and parts such as images are kept, results of MCP are read as parts, and any other value becomes JSON.
    """
    match value:
        case None:
            return (Text(_NOTHING),), "ok"
        case str():
            return (Text(sendable(value)),), "ok"
    try:
        content, state = _parts_of(value)
        # A part with a field of the wrong kind would be stored, and never be read again.
        read = stored_message(Message("tool", (ToolResult("", content, state),))).result
    except BadMessage as error:
        raise _unusable(value, "cannot be read", error) from error
    except BadInput:
        raise
    except Exception as error:
        raise _unusable(value, "cannot be read", error) from error
    assert read is not None, "It was passed in."
    return read.content, read.state


def _parts_of(value: object) -> tuple[tuple[Content, ...], ResultState]:
    match value:
        case ToolResult():
            return _sendable_parts(value.content), value.state
        case Message(result=ToolResult() as answer):
            return content_of(answer)
        case Message():
            parts = [part for part in value.parts if isinstance(part, Content)]
            return _sendable_parts(parts or [Text(_NOTHING)]), "ok"
        case Text() | Media() | Opaque():
            return _sendable_parts([value]), "ok"
        case list() | tuple() if any(isinstance(part, Content) for part in value) and all(
            isinstance(part, Content | str) for part in value
        ):
            return _sendable_parts([Text(part) if isinstance(part, str) else part for part in value]), "ok"
    if (result := read_mcp_result(value)) is not None:
        content, state = result
        return _sendable_parts(content or [Text(_NO_REASON if state == "error" else _NOTHING)]), state
    return (Text(_json(value)),), "ok"


def failure_text(name: str, error: BaseException) -> str:
    """Return an error in words for the model, without a traceback. The text of a ToolFailed is used as it is."""
    try:
        text = str(error)
    except Exception:  # The error of a tool may have a fault too.
        text = ""
    if not isinstance(error, ToolFailed):
        text = f"{type(error).__name__}: {text}".rstrip(": ")
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return text if isinstance(error, ToolFailed) and text else f"{name} failed: {text}".rstrip(": ")


def error_trace(error: BaseException) -> str:
    """Return an error with its traceback, for people."""
    return sendable("".join(traceback.format_exception(error)))


def limit_size(name: str, content: tuple[Content, ...]) -> tuple[tuple[Content, ...], bool]:
    """Return the content, and True; or, if it is too large, a sentence that says so, and False."""
    size = sum(len(part.text if isinstance(part, Text) else getattr(part, "data", "")) for part in content)
    if size <= LARGEST:
        return content, True
    return (
        Text(f"{name} returned {size:,} characters, more than can be read. Ask it for less, or for a part."),
    ), False


def encode_content(content: tuple[Content, ...]) -> str:
    """Return the text that a step stores: the text itself if there is only text, else JSON."""
    if len(content) == 1 and isinstance(content[0], Text) and content[0].extra is None:
        text = content[0].text
        if not text.startswith(_PARTS):
            return text
    return msgspec.json.encode(_StoredContent(content)).decode()


def decode_content(output: str) -> tuple[Content, ...]:
    """Return the content that `encode_content` encoded."""
    if output.startswith(_PARTS):
        return _decoder.decode(output).content
    return (Text(output),)


def _json(value: object) -> str:
    try:
        try:
            return msgspec.json.encode(value, enc_hook=_plain).decode()
        except UnicodeEncodeError:  # Halves of surrogate pairs, as in names of files.
            plain = msgspec.to_builtins(value, enc_hook=_plain, str_keys=True)
            return sendable(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    except Exception as error:
        raise _unusable(value, "cannot be written as JSON", error) from error


def _unusable(value: object, problem: str, error: Exception) -> BadInput:
    text = sendable(str(error) or type(error).__name__)[:_LONGEST].rstrip(".")
    return BadInput(
        f"It was carried out, but what it returned ({type(value).__name__}) {problem}: {text}. "
        "Calling it again will not help."
    )


def _plain(value: object) -> object:
    """Convert what msgspec does not know: models of other libraries, and paths."""
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return dump()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"there is no JSON for {type(value).__name__}")


def _sendable_parts(parts: Sequence[Any]) -> tuple[Content, ...]:
    return tuple(
        Text(sendable(part.text), part.extra) if isinstance(part, Text) and isinstance(part.text, str) else part
        for part in parts
    )


def sendable(text: str) -> str:
    """Return the text without halves of surrogate pairs, which file names may hold and providers refuse."""
    return text.encode("utf-8", "backslashreplace").decode()


def result_message(
    name: str,
    content: Sequence[Content],
    state: ResultState = "ok",
    place: int = 1,
    of: int = 1,
    what: str = "Result of",
) -> Message:
    """Return the message that shows the result of an action or a sub-agent to the model.

    `place`, from 1: among the `of` actions of its step. Headline and text form one part, so that the kept beginning of
    a shortened result names its origin.
    """
    head = headline(name, state, place=place, of=of, what=what)
    first, rest = (content[0], content[1:]) if content else (Text("nothing"), ())
    if isinstance(first, Text):
        return Message("user", (Text(f"{head}\n{first.text}"), *rest))
    return Message("user", (Text(head), first, *rest))


def merged_message(
    messages: Sequence[Message], leases: Sequence[Lease], counting: Sequence[Lease], failed: int
) -> tuple[Message, Lease]:
    """Return all results of one step as one message, with the strictest of their leases (`most_aggressive`).

    `leases`: those that the agent sets. `counting`: the same with what the policy adds to each.
    """
    parts = [part for message in messages for part in message.parts]
    text = "\n\n".join(
        [merged_headline(failed, len(messages)), *(part.text for part in parts if isinstance(part, Text))]
    )
    # If all results have the same lease, the levels of the policy still apply to the message.
    is_same = len({replace(lease, action_id="", agent_action_id="") for lease in counting}) == 1
    lease = leases[0] if is_same else most_aggressive(counting)
    return Message("user", (Text(text), *(part for part in parts if not isinstance(part, Text)))), lease
