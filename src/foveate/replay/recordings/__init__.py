"""Reading of recorded sessions: picks the reader for a file.

A new format is one module with a `Reader`, and one line in READERS. If no reader recognises a file, the error describes
its content.
"""

from __future__ import annotations

import os
from typing import Any

from msgspec import structs

from ...errors import BadSetting, BadTranscript, UnknownFormat
from . import atif, chat_json, claude_code, codex, gemini, opencode, openhands, pi_session, swe_agent
from .recording import KINDS, Reader, Recording
from .source import LINE_LIMIT, Sample, Source

__all__ = ["READERS", "read_recording", "sniff"]

READERS: tuple[Reader, ...] = (
    claude_code.READER,
    codex.READER,
    opencode.READER,
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
    source = Source(path, lenient=True)
    return _reader_for(source, source.sample()).name


def read_recording(
    path: str | os.PathLike[str], *, lenient: bool = False, format: str | None = None, line_limit: int = LINE_LIMIT
) -> Recording:
    """Read the recorded conversation in a file.

    `format` names a reader of READERS; by default the content decides. A damaged line raises BadTranscript; with
    `lenient` the reader skips it and counts it under `damaged lines` in the notes. `line_limit` is the length of the
    longest line accepted, in bytes. Raises UnknownFormat if no reader recognises the file, BadSetting if `format` is
    unknown.
    """
    source = Source(path, lenient=lenient, line_limit=line_limit)
    sample = source.sample()
    reader = _reader_named(format) if format else _reader_for(source, sample)
    try:
        recording = reader.read(source)
    except RecursionError as error:
        raise BadTranscript(source.path, 0, "it is nested too deeply to be read.") from error
    if not recording.messages and not recording.side_chains:
        skipped = f", and {source.damaged:,} of its lines are damaged" if source.damaged else ""
        raise BadTranscript(source.path, 0, f"it holds no message of a conversation (read as {reader.name}){skipped}.")
    if not source.damaged:
        return recording
    notes = {**recording.notes, "damaged lines": source.damaged}
    return structs.replace(recording, notes={kind: notes[kind] for kind in KINDS if kind in notes})


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
            return f"an object with the keys {', '.join(keys[:8])}{more}" if keys else "an empty object"
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
