"""What a call did, as far as its name and its arguments tell: it read a file, changed files, looked, asked, or else.

Knows the tools of common coding and browser agents, and nothing of policies. What it does not recognise is `other`:
no result is taken for a copy of another on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from posixpath import normpath
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..core.caches import cached
from ..core.messages import ToolResult
from ..core.view import Entry, View

__all__ = [
    "ASKS",
    "LOOKS",
    "READS",
    "WRITES",
    "Deed",
    "deed_reader",
    "is_absolute",
    "is_same_file",
    "results_with_deeds",
]

READS = (
    "cat", "file_read", "get_file_contents", "notebookread", "open", "open_file", "read", "read_file",
    "read_text_file", "str_replace_based_edit_tool", "str_replace_editor", "text_editor", "view", "view_file",
)  # fmt: skip
"""Tools that show a file or a part of it. One that is also among `WRITES` reads if its `command` is `view`."""

WRITES = (
    "append", "apply_patch", "create", "create_file", "delete_file", "edit", "edit_block", "edit_file", "file_write",
    "insert", "multiedit", "notebookedit", "patch", "replace_in_file", "str_replace", "str_replace_based_edit_tool",
    "str_replace_editor", "text_editor", "write", "write_file", "write_to_file",
)  # fmt: skip
"""Tools that change files."""

LOOKS = (
    "browser_click", "browser_fill_form", "browser_get_state", "browser_go_back", "browser_hover", "browser_navigate",
    "browser_navigate_back", "browser_press_key", "browser_screenshot", "browser_scroll", "browser_select_option",
    "browser_snapshot", "browser_take_screenshot", "browser_type", "browser_wait_for", "computer", "get_page_text",
    "goto", "navigate", "read_page", "screenshot", "scroll_down", "scroll_up", "take_screenshot", "take_snapshot",
)  # fmt: skip
"""Tools that show what a page or a screen looks like now."""

ASKS = (
    "bash", "exec_command", "execute_bash", "find", "find_by_name", "glob", "grep", "list", "list_dir",
    "list_directory", "list_files", "ls", "powershell", "run_command", "run_terminal_cmd", "search_files", "shell",
)  # fmt: skip
"""Tools whose earlier answer is out of date once the same was asked again: commands, listings, searches."""

_FILE = ("file_path", "filePath", "path", "filename", "file", "target_file", "notebook_path")
_COMMAND = ("command", "cmd")
_FOLDER = ("workdir", "cwd")
_FIRST = ("offset", "start_line", "line_number")
_ASIDE = frozenset(("description", "explanation", "justification", "max_output_tokens", "timeout", "yield_time_ms"))
"""Arguments that say why or how long, not what."""

_PATCHED = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ([^\n\\\"]+)")
_SHOWN = re.compile(
    r"(?:cd (?P<folder>[\w./~-]+) && )?"
    r"(?:(?:cat(?: -n)?|nl -ba) (?P<file>[\w./~@+-]+)(?: \| sed -n '(?P<from>\d{1,9}),(?P<to>\d{1,9})p')?"
    r"|sed -n '(?P<first>\d{1,9}),(?P<last>\d{1,9})p' (?P<part>[\w./~@+-]+))"
)
_LONGEST_SHOWN = 500
_END = 10**9
"""The last line of a file, whatever its number."""


class Deed(Struct, frozen=True, gc=False):
    """What one call did."""

    kind: Literal["read", "write", "look", "ask", "other"]
    files: tuple[str, ...] = ()
    """What it read or changed, as far as it said."""
    lines: tuple[int, int] = (1, _END)
    """Of a read: the first and the last line that it asked for."""
    question: str = ""
    """Of an ask: the same text is the same question."""


DeedReader = Callable[[str, str], Deed]
"""Takes a tool's name and the arguments of a call, as JSON text."""

ResultWithDeed = tuple[Entry, ToolResult, Deed]

_OTHER = Deed("other")
_LOOK = Deed("look")


def deed_reader(
    reads: Collection[str] = READS,
    writes: Collection[str] = WRITES,
    looks: Collection[str] = LOOKS,
    asks: Collection[str] = ASKS,
) -> DeedReader:
    """What tells the deed of a call, given the names of tools by what they do.

    Names count without regard to case and to what stands before a `__`: `mcp__files__read_file` is `read_file`.
    Calls it has been asked about before cost next to nothing.
    """
    return _reader(*(frozenset(map(_plain, names)) for names in (reads, writes, looks, asks)))


@cached(64)
def _reader(
    reading: frozenset[str], writing: frozenset[str], looking: frozenset[str], asking: frozenset[str]
) -> DeedReader:
    @cached(1 << 14)
    def deed_of(name: str, arguments: str) -> Deed:
        tool = _plain(name)
        if tool in looking:
            return _LOOK
        if tool in writing or tool in asking:
            if patched := _PATCHED.findall(arguments):
                return Deed("write", tuple(_path(file) for file in patched))
        elif tool not in reading:
            return _OTHER
        given = _decoded(arguments)
        folder, file = _text(given, _FOLDER), _text(given, _FILE)
        if tool in asking:
            return _shown_by(given, folder) or Deed("ask", question=_question(tool, given))
        if not file:
            return _OTHER
        if tool in writing and (tool not in reading or given.get("command") not in ("view", None)):
            return Deed("write", (_path(file, folder),))
        return Deed("read", (_path(file, folder),), _lines(given))

    return deed_of


def results_with_deeds(view: View, deed_of: DeedReader) -> tuple[ResultWithDeed, ...]:
    """Every result in the view, but for interrupted ones, as it was given, with what its call did; oldest first."""
    return _results(view.entries, deed_of)


@cached(4)  # Several mechanisms ask this of one view.
def _results(entries: tuple[Entry, ...], deed_of: DeedReader) -> tuple[ResultWithDeed, ...]:
    called: dict[str, Deed] = {}
    found: list[ResultWithDeed] = []
    for entry in entries:
        match _told(entry, deed_of):
            case ToolResult() as result:
                if (deed := called.get(result.call_id)) is not None:
                    found.append((entry, result, deed))
            case deeds:
                called.update(deeds)
    return tuple(found)


@cached(1 << 14)
def _told(entry: Entry, deed_of: DeedReader) -> ToolResult | tuple[tuple[str, Deed], ...]:
    """The finished result of an entry, or the deeds of its calls, each by the call's id."""
    source = entry.source
    if source is None:
        return ()
    if source.role == "assistant":  # As they were appended: the arguments that are shown may have been cut.
        return tuple((call.call_id, deed_of(call.name, call.arguments)) for call in source.calls)
    result = source.result if entry.is_result else None
    return result if result is not None and result.state != "interrupted" else ()


def is_absolute(path: str) -> bool:
    """Whether a path names a file wherever the tool runs."""
    return path.startswith(("/", "~")) or path[1:2] == ":"


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths may name one file, where either may be relative to a folder that nobody told."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _plain(tool: str) -> str:
    return tool.rsplit("__", 1)[-1].lower()


def _decoded(arguments: str) -> Mapping[str, Any]:
    try:
        given = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}
    return given if isinstance(given, dict) else {}


def _text(given: Mapping[str, Any], keys: Collection[str]) -> str:
    """The first of these arguments that says something."""
    return next((value for key in keys if isinstance(value := given.get(key), str) and value.strip()), "")


def _path(file: str, folder: str = "") -> str:
    file = file.strip().replace("\\", "/")
    return normpath(f"{folder}/{file}" if folder and not is_absolute(file) else file)


def _lines(given: Mapping[str, Any]) -> tuple[int, int]:
    match given.get("view_range"):
        case [int(first), int(last)]:
            return first, last if last > 0 else _END
        case _:
            pass
    first = next((value for key in _FIRST if isinstance(value := given.get(key), int)), 1)
    match given:
        case {"limit": int(limit)}:
            return first, first + limit - 1
        case {"end_line": int(last)}:
            return first, last
        case _:
            return first, _END


def _question(tool: str, given: Mapping[str, Any]) -> str:
    asked = {key: value for key, value in sorted(given.items()) if key not in _ASIDE}
    return f"{tool} {msgspec.json.encode(asked).decode()}"


def _shown_by(given: Mapping[str, Any], folder: str) -> Deed | None:
    """The read of a shell command that does nothing but show a file or a part of it."""
    command = next((given[key] for key in _COMMAND if key in given), "")
    if isinstance(command, list) and command:
        command = command[-1]  # ["bash", "-lc", "cat x.py"]
    if not isinstance(command, str) or len(command) > _LONGEST_SHOWN:
        return None
    if (shown := _SHOWN.fullmatch(command.strip())) is None:
        return None
    file = _path(shown["file"] or shown["part"], shown["folder"] or folder)
    first, last = shown["from"] or shown["first"], shown["to"] or shown["last"]
    return Deed("read", (file,), (int(first), int(last)) if first else (1, _END))
