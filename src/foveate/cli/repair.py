"""`foveate repair`: a copy of a recording that its provider accepts."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..errors import BadSetting, BadTranscript
from .files import STDOUT, folder_of, write_whole
from .options import Provider
from .text import complain, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .. import Conversation
    from ..core.messages import Message
    from ..types import Fix

__all__ = ["repair"]


def repair(
    file: Path,
    /,
    *,
    provider: Provider,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    force: bool = False,
    reader: Annotated[str | None, Parameter(name="--format")] = None,
    lenient: bool = False,
) -> int:
    """Write a legal copy of a recording, and list the changes.

    The copy loses no text: a part that cannot stay in its place becomes a note. For openai the copy has one chat
    message a line; for the others it is one JSON object, the body of a request.

    Example: `foveate repair session.jsonl --provider anthropic -o repaired.json`

    Parameters
    ----------
    file
        A recording.
    provider
        The provider of the copy: anthropic, openai, openai_responses or gemini.
    output
        The file to write, completely or not at all; - for standard output, without the list of changes.
    force
        Overwrite the file if it exists.
    reader
        The format of the recording, if detection fails. An unknown name lists the formats.
    lenient
        Skip damaged lines and count them.
    """
    from ..core.plurals import plural
    from ..replay.recordings import read_recording
    from ..replay.report import notes_sentence
    from ..testing.bodies import check_body
    from .output import heading, say

    is_stream = str(output) == STDOUT
    if not is_stream:
        folder_of(output)
    if not is_stream and output.exists() and (not force or os.path.samefile(output, file)):
        remedy = "Name another file." if os.path.samefile(output, file) else "--force overwrites it."
        raise BadSetting(f"{output} exists. {remedy}")
    recording = read_recording(file, lenient=lenient, format=reader)
    if not recording.messages:
        raise BadTranscript(recording.path, 0, "it holds side chains, but no main conversation.")
    body, changes = legal_copy([row.message for row in recording.messages], provider)
    if refusals := check_body(provider, body):
        complain(f"foveate: {provider} would still refuse the copy, so nothing was written:")
        for refusal in refusals:
            complain(f"  {refusal}")
        return 1
    if is_stream:
        write_json(_encode(provider, body).decode().removesuffix("\n"))
        return 0
    write_whole(output, _encode(provider, body))
    heading(f"{output}: {plural(len(recording.messages), 'message')}, {plural(len(changes), 'change')}")
    for why, handles in _grouped(changes).items():
        say(f"  {', '.join(handles)}: {why}")
    if apart := notes_sentence(recording.notes):
        say(f"{apart} The copy holds the main conversation.")
    return 0


def legal_copy(messages: Sequence[Message], provider: str) -> tuple[dict[str, Any], list[Fix]]:
    """Return a legal request body with these messages, and the changes in it.

    Reasoning and blocks of another provider become text.
    """
    from ..types import Fix

    view = _open(messages, provider).view
    shown = {entry.position: entry.message for entry in view if entry.outline is not None}
    copies: list[Message] = []
    changes: list[Fix] = []
    for position, message in enumerate(messages, 1):
        copy = _as_text(message, shown.get(position))
        if copy is not message:
            changes.append(Fix(f"m{position}", f"{provider} does not accept this reasoning or block; it becomes text"))
        copies.append(copy)
    repaired = _open(copies, provider).journal.repair()
    every = [*changes, *repaired.changes]
    return repaired.body, sorted(every, key=lambda change: int(change.handle[1:]))


def _open(messages: Sequence[Message], provider: str) -> Conversation:
    """Open a conversation of these messages without a policy."""
    from ..open import open_conversation

    chat = open_conversation("repaired", store="memory:", format=provider, policy="off", model="")
    chat.append(list(messages))
    return chat


def _as_text(message: Message, shown: Message | None) -> Message:
    """Return the message with text in place of the parts that `shown` leaves out, or the message itself."""
    from msgspec.structs import replace

    from ..core.messages import Opaque, Reasoning, Text, ToolResult

    kept = _pieces(shown) if shown is not None else ()

    def as_text(part: Any) -> Any:
        match part:
            case Reasoning(text=text) if text.strip() and part not in kept:
                return Text(f"<thinking>\n{text}\n</thinking>")
            case Opaque(format=form, kind=kind, body=body) if part not in kept:
                return Text(f"[{kind} of {form}] {body}")
            case ToolResult(content=content):
                texts = tuple(as_text(nested) for nested in content)
                return part if texts == content else replace(part, content=texts)
            case _:
                return part

    parts = tuple(as_text(part) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _pieces(message: Message) -> list[object]:
    """Return the parts of a message and of its tool result."""
    result = message.result
    return [*message.parts, *(result.content if result else ())]


def _grouped(changes: Sequence[Fix]) -> dict[str, list[str]]:
    """Group handles by reason, in order, each with the number of its changes if there are several."""
    groups: dict[str, Counter[str]] = {}
    for change in changes:
        groups.setdefault(change.why, Counter())[change.handle] += 1
    return {
        why: [handle if times == 1 else f"{handle} ({times} times)" for handle, times in handles.items()]
        for why, handles in groups.items()
    }


def _encode(provider: str, body: dict[str, Any]) -> bytes:
    if provider != "openai":
        return json.dumps(body, ensure_ascii=False, indent=1).encode() + b"\n"
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in body["messages"])
