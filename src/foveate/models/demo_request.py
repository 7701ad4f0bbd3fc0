"""The demo's reading of a request: its tools, the user's inputs, the calls since then."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..core.messages import Message, Text, ToolCall, ToolResult

__all__ = ["Past", "Reply", "Step", "Task", "ToolSet", "Want", "handle_in", "read_past"]

Task = Literal["list", "read", "search", "run", "expand"]

_NAMES: dict[Task, tuple[str, ...]] = {
    "list": ("list_files", "list", "ls", "glob"),
    "read": ("read_file", "read", "cat", "view"),
    "search": ("search_files", "search", "grep", "find"),
    "run": ("run_command", "shell", "bash", "run", "exec"),
    "expand": ("expand",),
}
"""Names of tools for each task, the most likely first."""
_TAKES: dict[Task, tuple[str, ...]] = {
    "list": ("path", "folder", "directory", "dir"),
    "read": ("path", "file", "file_path", "filename", "name"),
    "search": ("pattern", "query", "words", "text"),
    "run": ("command", "cmd"),
    "expand": ("handle",),
}
"""Names of the parameter with the folder, file, pattern, command or handle."""
_WORDS = re.compile(r"[a-z]+")


class Want(Struct, frozen=True):
    """A wanted tool call."""

    task: Task
    what: str
    """The folder, file, pattern, command or handle."""
    extra_arguments: tuple[tuple[str, object], ...] = ()
    """Other arguments, left out if the tool has no such parameter."""


Reply = tuple[str, Sequence[Want]]
"""A text, and the next calls; without calls the demo is done."""


class ToolSet:
    """The tools of one request, found by their task. `definitions` have the provider's shape."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        self._takes: dict[str, tuple[str, ...]] = {}
        for definition in definitions:
            tool = definition.get("function", definition)
            schema = tool.get("parameters") or tool.get("input_schema") or {}
            self._takes[str(tool.get("name", ""))] = tuple(schema.get("properties") or ())

    def name(self, task: Task) -> str:
        """Return the name of the tool for a task, or an empty text."""
        for wanted in _NAMES[task]:
            if wanted in self._takes:
                return wanted
        near = (name for wanted in _NAMES[task] for name in self._takes if wanted in _WORDS.findall(name.lower()))
        return next(near, "")

    def task(self, call: ToolCall) -> Task | None:
        """Return the task of a call."""
        return next((task for task in _NAMES if call.name and call.name == self.name(task)), None)

    def what(self, call: ToolCall) -> str:
        """Return the folder, file, pattern, command or handle that a call names."""
        task = self.task(call)
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return ""
        if task is None or not isinstance(arguments, dict):
            return ""
        return str(next((arguments[name] for name in _TAKES[task] if name in arguments), ""))

    def call(self, want: Want, call_id: str) -> ToolCall | None:
        """Return the call, or None if no tool can do it."""
        name = self.name(want.task)
        takes = self._takes.get(name, ())
        about = next((parameter for parameter in _TAKES[want.task] if parameter in takes), takes[0] if takes else "")
        if not name:
            return None
        arguments: dict[str, object] = {about: want.what} if about and want.what else {}
        arguments |= {key: value for key, value in want.extra_arguments if key in takes}
        return ToolCall(call_id, name, json.dumps(arguments, ensure_ascii=False))


_LISTED = re.compile(r"(.+?)(?: ([\d,]+))?")
_HANDLE = re.compile(r'expand\("(m\d+(?:\.\d+)*(?:-m\d+)?)"\)')
_NOTE = re.compile(r"[\[<]")
"""The beginning of a user message that no user wrote."""
_FAILED = re.compile(
    r"Error|\w+ (?:failed: |was not )|Nothing (?:here is called|that is not shown)|There is no tool|The user did not"
)
"""The beginning of a failed result; not every format has a state for failures."""
_WRONG = re.compile(r"\b(?:no|not|outside|cannot|is a folder)\b")
"""Words in the one sentence with which a tool refuses a file or a folder."""
_ENDS = 400
"""Characters at either end of a result that may hold the note that it is shrunk."""


class Step(Struct, frozen=True):
    """A call and its result."""

    task: Task | None
    what: str
    text: str
    failed: bool
    text_before: str = ""
    """The demo's text with the call."""

    @property
    def shrunk(self) -> str:
        """The handle of the original if the result is shrunk, else an empty text."""
        return handle_in(self.text[:_ENDS]) or handle_in(self.text[-_ENDS:])

    def files_listed(self) -> tuple[list[str], list[tuple[str, int]]]:
        """Return the folders, and the files with their sizes, from the result of a listing tool."""
        folders: list[str] = []
        files: list[tuple[str, int]] = []
        for line in self.text.splitlines():
            match = _LISTED.fullmatch(line.strip())
            if match is None or line.startswith(("[", "(")):
                continue
            if match[1].endswith("/"):
                folders.append(match[1].rstrip("/"))
            else:
                files.append((match[1], int((match[2] or "0").replace(",", ""))))
        return folders, files


class Past(Struct, frozen=True):
    """The part of a conversation that decides the demo's reply."""

    request: str
    """The user's last input."""
    steps: tuple[Step, ...]
    """The steps since the last input, oldest first."""
    earlier: tuple[Step, ...]
    """The steps before it."""
    notes: tuple[str, ...]
    """The texts in place of messages since then, such as folds."""
    inputs: tuple[str, ...]
    """The user's earlier inputs that the view shows, without questions about them."""
    may_expand: bool


def read_past(messages: Sequence[Message], tools: ToolSet) -> Past:
    """Return the past in these messages."""
    results = {result.call_id: result for message in messages if (result := message.result) is not None}
    inputs_at = [place for place, message in enumerate(messages) if _input(message)]
    last = inputs_at[-1] if inputs_at else -1
    steps: list[tuple[int, Step]] = []
    for place, message in enumerate(messages):
        for call in message.calls:
            result = results.get(call.call_id)
            text, failed = (result.text, _failed(result, tools.what(call))) if result else ("", True)
            steps.append((place, Step(tools.task(call), tools.what(call), text, failed, message.text)))
    inputs = [_input(messages[place]) for place in inputs_at[:-1]]
    notes = [message.text for message in messages[last + 1 :] if message.role == "user"]
    return Past(
        _input(messages[last]) if inputs_at else "",
        tuple(step for place, step in steps if place > last),
        tuple(step for place, step in steps if place <= last),
        tuple(notes),
        tuple(text for text in inputs if not text.lower().startswith("what did i")),
        bool(tools.name("expand")),
    )


def handle_in(text: str) -> str:
    """Return the handle in a note about a shrunk message, or an empty text."""
    match = _HANDLE.search(text)
    return match[1] if match else ""


def _input(message: Message) -> str:
    """Return the user's input in a message; empty if there is none."""
    if message.role != "user":
        return ""
    texts = [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return next((text for text in texts if text and not _NOTE.match(text)), "")


def _failed(result: ToolResult, what: str) -> bool:
    """Return whether a result is a failure, by its state or by its words."""
    text = result.text
    is_refusal = what in text and "\n" not in text and text.endswith(".") and bool(_WRONG.search(text))
    return result.state != "ok" or is_refusal or bool(_FAILED.match(text))
