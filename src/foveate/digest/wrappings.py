"""Wrappings: what clients and servers write around the output of a tool.

Codex puts exit codes and times above it, editors the path of a file, curl its progress, MCP the fields of a protocol.
The output is read as if it stood alone; one fact from its wrapping becomes a note.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from .values import has_one

__all__ = ["Unwrapped", "output_of", "path_of_whole_output", "unwrap", "wrapper_end"]

_MOST_AROUND = 3
"""Wrappings around each other that are removed: a server's text in the JSON of a client, and so on."""
_NO_OUTPUT = "no output"
_SAYS_NO_OUTPUT = ("(Bash completed with no output)", "(no output)")
"""Texts of Claude Code and others in place of an empty output."""

_COMMAND = re.compile(
    r"(?:Command: [\s\S]{0,4000}?\n(?=Chunk ID: |Wall time|Process |Exit code))?"
    r"(?P<facts>(?:(?:Chunk ID|Wall time|Process (?:exited|running)|Exit code|Original token count|Total output lines"
    r"|Script (?:completed|running|failed))\b[^\n]*\n)+)Output:(?:\n|\Z)"
)
"""The header of Codex, in the forms of its versions."""
_CODE = re.compile(r"\b[Cc]ode:? ([1-9]\d*)")
_SESSION = re.compile(r"Process running with session ID (\d+)")
_FAILED = re.compile(r"Exit code ([1-9]\d*)\n|ERROR:\n(?=[^\n])")
"""The header of Claude Code above the output of a command that failed, and of editors above a refusal."""
_FILE = re.compile(
    r"<path>(?P<opencode>[^\n]{1,500}?)</path>\n(?:<type>[^\n]{1,40}\n)?<content>\n?"
    r"|Here's the result of running `cat -n` on (?:a snippet of )?(?P<editor>[^\n]{1,500}?):\n"
    r"|\[File: (?P<swe_agent>[^\n]{1,500}?) \(\d+ lines total\)\]\n(?:\(\d+ more lines above\)\n)?"
)
"""The header of OpenCode, of the editor tool of Anthropic and OpenHands, and of SWE-agent, above a file."""
_FOUND_FILES = re.compile(r"Found \d+ files?(?: limit: \d+)?\n(?=\S)")
"""The header of Claude Code above the files that a search found."""
_SHORTENED = re.compile(r"<persisted-output>\n[^\n]*\n\s*Preview \([^\n]*\):\n")
"""The header of Claude Code above the beginning of an output that it stored in a file."""
_CURL = re.compile(r"\s*% Total[^\n]*\n\s*Dload[^\n]*\n(?:[^\n]*(?:-:--|\d:\d\d):(?:--|\d\d)[^\n]*\n|\s*\n)*")
"""The progress that curl writes."""

_FOUND = re.compile(r"Found \d+ match(?:es)?\b[^\n]*\n\s*(?=\S[^\n]*:\n\s+Line \d+: )")
_FOUND_IN = re.compile(r"(\S.*):\Z")
_FOUND_LINE = re.compile(r"\s+Line (\d+): ?(.*)")
"""The matches of a search in the form of OpenCode, below the path of each file."""

_MCP_KEYS = frozenset(
    ("type", "text", "content", "annotations", "meta", "_meta", "isError", "is_error", "structuredContent")
)
_MCP_SIGN = '"text"'
_SIGN_NEAR = 400
_OUTPUT_SIGN = re.compile(r'\{"(?:output|chunk_id)":')
_PYTHON_RESULT = re.compile(r"(?:meta=\S+ )?content=\[TextContent\(")
_PYTHON_TEXT = re.compile(r"TextContent\(type='text', text=('(?:[^'\\]|\\.)*+'?|\"(?:[^\"\\]|\\.)*+\"?)")
"""A text in the result of an MCP server, as Python prints it; without its end if it was cut."""
_JSON_RESULT = re.compile(r'\{\s*(?:"_?meta":\s*null,\s*)?"content":\s*\[\s*\{\s*"type":\s*"text"')
_JSON_TEXT = re.compile(r'"type":\s*"text",\s*"text":\s*("(?:[^"\\]|\\.)*+"?)')
"""A text in such a result in JSON that was cut."""

_SAVED = re.compile(
    r"\b(?:full|complete|whole) (?:tool )?output(?: (?:is|was|has been))?(?: (?:saved|written|stored) (?:to|in|at))?:? "
    r"((?:[A-Za-z]:[\\/]|[~.]{0,2}/)[^\s\"'`<>\]]{4,300})",
    re.IGNORECASE,
)
"""The file with the whole output, as Claude Code, OpenCode and Pi name it in a result that they cut."""
_SAVED_SIGNS = ("full", "complete", "whole")
"""A text in which `_SAVED` finds a file has one of these, and `output`."""
_SAVED_NEAR = 600
"""Characters at the beginning and at the end of a result that are searched for this file."""


class Unwrapped(NamedTuple):
    """An output without its wrapping."""

    text: str
    note: str = ""
    """A fact from the wrapping: an exit code, the name of a file; "" for none."""
    is_failed: bool = False
    """Whether the note tells a failure."""


def unwrap(text: str) -> Unwrapped:
    """Return the output that a tool wrote, or the text itself if nothing is around it."""
    found = Unwrapped(text)
    for _ in range(_MOST_AROUND):
        inner = _without_header(found.text) or _without_fields(found.text)
        if inner is None:
            break
        found = Unwrapped(inner.text, inner.note or found.note, inner.is_failed or found.is_failed)
    return found


def output_of(text: str) -> str:
    """Return the output that a tool wrote in words: behind its exit code if it failed; `no output` if it is empty."""
    own, note, is_failed = unwrap(text)
    if note and not own.strip():
        return f"{note}, {_NO_OUTPUT}"
    if text and not own:
        return _NO_OUTPUT
    return f"{note}: {own}" if is_failed and not own.lower().startswith(note, 0, len(note)) else own


def wrapper_end(text: str) -> int:
    """Return the index behind what stands above an output; 0 if nothing does, or if the output is in other fields."""
    own = unwrap(text).text
    return len(text) - len(own) if text.endswith(own) else 0


def path_of_whole_output(text: str) -> str:
    """Return the file in which a tool stored the whole output of a result that it cut; "" if it names none."""
    tail = max(0, len(text) - _SAVED_NEAR)
    for start, end in ((0, _SAVED_NEAR), (tail, len(text))):
        near = text[start:end].lower()
        if "output" in near and has_one(near, _SAVED_SIGNS) and (saved := _SAVED.search(text, start, end)):
            return saved[1].rstrip(".,;:)")
    return ""


def _without_header(text: str) -> Unwrapped | None:
    """Return the output below the lines that a client writes above it; None if there are none."""
    if text in _SAYS_NO_OUTPUT:
        return Unwrapped("")
    if header := _COMMAND.match(text):
        own = text[header.end() :]
        if failed := _CODE.search(header["facts"]):
            return Unwrapped(own, f"exit code {failed[1]}", True)
        running = _SESSION.search(header["facts"])
        return Unwrapped(own, f"still running, session {running[1]}" if running else "")
    if header := _FAILED.match(text):
        return Unwrapped(text[header.end() :], f"exit code {header[1]}" if header[1] else "error", True)
    if header := _FILE.match(text):
        path = str(next(filter(None, header.groups())))
        return Unwrapped(text[header.end() :], path.replace("\\", "/").rpartition("/")[2][:60])
    if header := _FOUND_FILES.match(text) or _SHORTENED.match(text) or _CURL.match(text):
        return Unwrapped(text[header.end() :])
    if header := _FOUND.match(text):
        return Unwrapped("\n".join(_matches(text[header.end() :])))
    return None


def _matches(text: str) -> Iterator[str]:
    """Yield matches with the path of their file, which stands above them, in the form of grep."""
    path = ""
    for line in text.splitlines():
        if found := _FOUND_LINE.match(line):
            yield f"{path}:{found[1]}:{found[2]}"
        elif found := _FOUND_IN.match(line):
            path = found[1]
        elif line:
            yield line


def _without_fields(text: str) -> Unwrapped | None:
    """Return the output in the fields of a protocol; None if it is not in any."""
    text = text.lstrip("\n")
    if _OUTPUT_SIGN.match(text) or (text[:1] in ("{", "[") and _MCP_SIGN in text[:_SIGN_NEAR]):
        return _from_json(text)
    if _PYTHON_RESULT.match(text):
        try:
            texts = [ast.literal_eval(_closed(found)) for found in _PYTHON_TEXT.findall(text)]
        except (ValueError, SyntaxError):
            return None
        return _joined(texts, text.endswith("isError=True")) if texts else None
    return None


def _closed(literal: str) -> str:
    """Return a text in quotes with its end, if it was cut."""
    return literal if len(literal) > 1 and literal[-1] == literal[0] else literal + literal[0]


def _from_json(text: str) -> Unwrapped | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _from_cut_json(text)
    match value:
        case {"output": str(own), "metadata": {"exit_code": int(code)}} | {"output": str(own), "exit_code": int(code)}:
            return Unwrapped(own, f"exit code {code}" if code else "", code != 0)
        case {"content": list(blocks)} if value.keys() <= _MCP_KEYS:
            return _from_blocks(blocks, is_failed=bool(value.get("isError") or value.get("is_error")))
        case {"type": "text", "text": str(own)} if value.keys() <= _MCP_KEYS:
            return Unwrapped(own)
        case list(blocks):
            return _from_blocks(blocks)
        case _:
            return None


def _from_cut_json(text: str) -> Unwrapped | None:
    if not _JSON_RESULT.match(text):
        return None
    try:
        texts = [msgspec.json.decode(_closed(found), type=str) for found in _JSON_TEXT.findall(text)]
    except (msgspec.DecodeError, UnicodeError):
        return None
    return _joined(texts, False) if texts else None


def _from_blocks(blocks: Sequence[Any], *, is_failed: bool = False) -> Unwrapped | None:
    """Return the texts of content blocks; None if one of them is no text."""
    if not blocks or not all(isinstance(block, Mapping) and block.get("type") == "text" for block in blocks):
        return None
    texts = [block.get("text") for block in blocks]
    return _joined(texts, is_failed) if all(isinstance(text, str) for text in texts) else None


def _joined(texts: Sequence[str], is_failed: bool) -> Unwrapped:
    return Unwrapped("\n".join(texts), "error" if is_failed else "", is_failed)
