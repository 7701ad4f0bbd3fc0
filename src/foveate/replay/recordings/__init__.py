"""Reading of recorded sessions: picks the reader for a file, and one of several conversations in it.

A new format is one module with a `Reader`, and one line in READERS. If no reader recognises a file, the error describes
its content.
"""

from __future__ import annotations

import os
from typing import Any

from msgspec import structs

from ...errors import BadSetting, BadTranscript, UnknownFormat
from . import (
    atif,
    chat_json,
    chatgpt,
    claude_code,
    codex,
    copilot,
    gemini,
    gemini_cli,
    opencode,
    opencode_store,
    openhands,
    pi_session,
    swe_agent,
)
from .recording import KINDS, Reader, Recording
from .source import LINE_LIMIT, Sample, Source

__all__ = ["READERS", "read_recording", "read_recordings", "sniff"]

READERS: tuple[Reader, ...] = (
    claude_code.READER,
    codex.READER,
    opencode.READER,
    copilot.READER,
    gemini_cli.READER,
    chatgpt.READER,
    atif.READER,
    pi_session.READER,
    swe_agent.READER,
    openhands.READER,
    codex.RESPONSES,
    gemini.READER,
    chat_json.READER,
)
"""The first reader that recognises a file reads it, so narrow readers come before wide ones."""


def sniff(path: str | os.PathLike[str]) -> str:
    """Return the name of the reader that recognises this file.

    Raises UnknownFormat with a description of the content, or BadTranscript if the file cannot be read at all.
    """
    file, _ = _split(os.fspath(path))
    if opencode_store.is_database(file):
        return opencode.READER.name
    source = Source(file, lenient=True)
    return _reader_for(source, source.sample()).name


def read_recording(
    path: str | os.PathLike[str], *, lenient: bool = False, format: str | None = None, line_limit: int = LINE_LIMIT
) -> Recording:
    """Read the recorded conversation in a file, as `read_recordings` does.

    Raises BadTranscript for a file with several conversations; `FILE#1` names the first of them.
    """
    found = read_recordings(path, lenient=lenient, format=format, line_limit=line_limit)
    if len(found) > 1:
        problem = f"it holds {len(found):,} conversations."
        raise BadTranscript(os.fspath(path), 0, problem, f"Name one of them, such as {found[0].path}")
    return found[0]


def read_recordings(
    path: str | os.PathLike[str], *, lenient: bool = False, format: str | None = None, line_limit: int = LINE_LIMIT
) -> tuple[Recording, ...]:
    """Read the recorded conversations in a file, in its order.

    `FILE#3` names the third conversation of a file, `FILE#NAME` the one with this name. `format` names a reader of
    READERS; by default the content decides. A damaged line raises BadTranscript; with `lenient` the reader skips it and
    counts it under `damaged lines` in the notes of the first conversation. `line_limit` is the length of the longest
    line accepted, in bytes. Raises UnknownFormat if no reader recognises the file, BadSetting if `format` is unknown.
    """
    file, wanted = _split(os.fspath(path))
    if opencode_store.is_database(file):
        sources = [
            Source(f"{file}#{name}", lenient=lenient, document=opencode_store.document_of(file, name))
            for name in opencode_store.choose(file, wanted)
        ]
        return tuple(found for source in sources for found in _read(opencode.READER, source))
    source = Source(file, lenient=lenient, line_limit=line_limit)
    sample = source.sample()
    reader = _reader_named(format) if format else _reader_for(source, sample)
    return _chosen(_read(reader, source), file, wanted)


def _split(path: str) -> tuple[str, str]:
    """Return the file in a path, and the conversation that it names; "" for none."""
    file, mark, wanted = path.rpartition("#")
    return (file, wanted) if mark and wanted and not os.path.exists(path) and os.path.exists(file) else (path, "")


def _read(reader: Reader, source: Source) -> tuple[Recording, ...]:
    try:
        read = reader.read(source)
    except RecursionError as error:
        raise BadTranscript(source.path, 0, "it is nested too deeply to be read.") from error
    found = (read,) if isinstance(read, Recording) else tuple(read)
    found = tuple(recording for recording in found if recording.messages or recording.side_chains)
    if not found:
        skipped = f", and {source.damaged:,} of its lines are damaged" if source.damaged else ""
        raise BadTranscript(source.path, 0, f"it holds no message of a conversation (read as {reader.name}){skipped}.")
    if len(found) > 1:
        found = tuple(
            structs.replace(recording, path=f"{source.path}#{number}") for number, recording in enumerate(found, 1)
        )
    if not source.damaged:
        return found
    notes = {**found[0].notes, "damaged lines": source.damaged}
    return structs.replace(found[0], notes={kind: notes[kind] for kind in KINDS if kind in notes}), *found[1:]


def _chosen(found: tuple[Recording, ...], file: str, wanted: str) -> tuple[Recording, ...]:
    if not wanted:
        return found
    for number, recording in enumerate(found, 1):
        if wanted in (str(number), recording.name):
            return (recording,)
    problem = "there is no such conversation."
    raise BadTranscript(f"{file}#{wanted}", 0, problem, f"Name one of 1 to {len(found):,}, or its id.")


def _reader_named(name: str) -> Reader:
    for reader in READERS:
        if reader.name == name:
            return reader
    raise BadSetting(f"Format {name!r} is unknown. Use one of: {', '.join(reader.name for reader in READERS)}.")


def _reader_for(source: Source, sample: Sample) -> Reader:
    for reader in READERS:
        if reader.recognises(sample):
            return reader
    raise UnknownFormat(source.path, _seen(sample), [reader.name for reader in READERS])


_ROLES = ("system", "developer", "user", "assistant", "tool", "function", "model")
"""The roles of messages in the formats of chats."""


def _seen(sample: Sample) -> str:
    if sample.document is not None or not sample.lines:
        return f"a JSON document: {_described(sample.document)}"
    kind = "object" if isinstance(sample.lines[0], dict) else "value"
    return f"JSON Lines whose first {kind} is {_described(sample.lines[0])}"


def _described(value: Any) -> str:
    match value:
        case dict():
            keys = [str(key)[:40] for key in value]
            more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
            role = value.get("role")
            wrong = f". Its role is {role!r:.40}" if isinstance(role, str) and role not in _ROLES else ""
            return f"an object with the keys {', '.join(keys[:8])}{more}{wrong}" if keys else "an empty object"
        case [first, *_]:
            first_item = "a list" if isinstance(first, list) else _described(first)
            return f"a list of {len(value):,}; the first is {first_item}"
        case list():
            return "an empty list"
        case str():
            return "a text"
        case bool() | None:
            return "true, false or null"
        case _:
            return "a number"
