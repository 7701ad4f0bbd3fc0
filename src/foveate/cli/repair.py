"""`foveate repair`: a copy of a recording that its provider takes."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..errors import BadSetting, BadTranscript
from .files import folder_of, write_whole
from .options import Provider
from .text import complain

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
    """Write a legal copy of a recording, and list what had to be changed.

    Nothing is lost: what cannot stay where it was is told as a note. For openai the copy has a chat message a line; for
    anthropic it is one JSON object with `system` and `messages`.

    Example: `foveate repair session.jsonl --provider anthropic -o mended.json`

    Parameters
    ----------
    file
        A recording.
    provider
        Who shall take it: anthropic or openai.
    output
        The file to write. It is written whole, or not at all.
    force
        Overwrite it if it exists.
    reader
        The format of the recording, if it is not to be found out: a name such as codex (an unknown one lists them).
    lenient
        Skip damaged lines and count them, instead of stopping.
    """
    from ..replay.numbers import plural
    from ..replay.recordings import read_recording
    from ..replay.report import notes_told
    from ..testing.bodies import check_body
    from .output import heading, say

    folder_of(output)
    if output.exists() and (not force or os.path.samefile(output, file)):
        remedy = "Name another file." if os.path.samefile(output, file) else "--force overwrites it."
        raise BadSetting(f"{output} exists. {remedy}")
    recording = read_recording(file, lenient=lenient, format=reader)
    if not recording.messages:
        raise BadTranscript(recording.path, 0, "it holds side chains, but no main conversation.")
    body, changes = legal_copy([one.message for one in recording.messages], provider)
    if refusals := check_body(provider, body):
        complain(f"foveate: {provider} would still refuse it, so nothing was written:")
        for refusal in refusals:
            complain(f"  {refusal}")
        return 1
    write_whole(output, _written(provider, body))
    heading(f"{output}: {plural(len(recording.messages), 'message')}, {plural(len(changes), 'change')}")
    for why, handles in _grouped(changes).items():
        say(f"  {', '.join(handles)}: {why}")
    if apart := notes_told(recording.notes):
        say(f"{apart} The copy holds the main conversation.")
    return 0


def legal_copy(messages: Sequence[Message], provider: str) -> tuple[dict[str, Any], list[Fix]]:
    """The request body that says these messages legally, and what had to differ.

    What the provider would have left out because it is another's (reasoning, blocks of its own kinds) is told as text.
    """
    from ..types import Fix

    view = _opened(messages, provider).view
    shown = {entry.position: entry.message for entry in view if entry.source is not None}
    told: list[Message] = []
    changes: list[Fix] = []
    for position, message in enumerate(messages, 1):
        instead = _with_words(message, shown.get(position))
        if instead is not message:
            changes.append(Fix(f"m{position}", f"reasoning or a block that {provider} would not take is told as text"))
        told.append(instead)
    repaired = _opened(told, provider).repair()
    every = [*changes, *repaired.changes]
    return repaired.body, sorted(every, key=lambda change: int(change.handle[1:]))


def _opened(messages: Sequence[Message], provider: str) -> Conversation:
    """A conversation of these messages, as legal as foveate makes every view, and with nothing planned."""
    from ..open import open_conversation

    chat = open_conversation("repaired", store="memory:", format=provider, policy="off", model="")
    chat.append(list(messages))
    return chat


def _with_words(message: Message, shown: Message | None) -> Message:
    """The message with words in place of those parts that `shown` leaves out; itself where there are none."""
    from msgspec.structs import replace

    from ..core.messages import Opaque, Reasoning, Text, ToolResult

    kept = _pieces(shown) if shown is not None else ()

    def worded(part: Any) -> Any:
        match part:
            case Reasoning(text=text) if text.strip() and part not in kept:
                return Text(f"<thinking>\n{text}\n</thinking>")
            case Opaque(format=form, kind=kind, body=body) if part not in kept:
                return Text(f"[{kind} of {form}] {body}")
            case ToolResult(content=content):
                words = tuple(worded(nested) for nested in content)
                return part if words == content else replace(part, content=words)
            case _:
                return part

    parts = tuple(worded(part) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _pieces(message: Message) -> list[object]:
    """The parts of a message, and those inside its tool result."""
    result = message.result
    return [*message.parts, *(result.content if result else ())]


def _grouped(changes: Sequence[Fix]) -> dict[str, list[str]]:
    """The handles of the changes by their reason, in order, each once and with how often it was."""
    groups: dict[str, Counter[str]] = {}
    for change in changes:
        groups.setdefault(change.why, Counter())[change.handle] += 1
    return {
        why: [handle if times == 1 else f"{handle} ({times} times)" for handle, times in handles.items()]
        for why, handles in groups.items()
    }


def _written(provider: str, body: dict[str, Any]) -> bytes:
    if provider == "anthropic":
        return json.dumps(body, ensure_ascii=False, indent=1).encode() + b"\n"
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in body["messages"])
