"""What stands in the messages of a request, as the demo reads it: what was asked, and what was done for it since."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..core.messages import Message, Text, ToolCall, ToolResult

__all__ = ["Deed", "Offered", "Past", "Step", "Want", "handle_in", "past_of"]

# MODULEDOC """The tools that the demo is offered, found by what they are for: list, read, search, run, expand.
#
# Knows the definitions of tools in the providers' formats. What is not offered is not there, and nothing fails for it.
# """
Deed = Literal["list", "read", "search", "run", "expand"]

_NAMES: dict[Deed, tuple[str, ...]] = {
    "list": ("list_files", "list", "ls", "glob"),
    "read": ("read_file", "read", "cat", "view"),
    "search": ("search_files", "search", "grep", "find"),
    "run": ("run_command", "shell", "bash", "run", "exec"),
    "expand": ("expand",),
}
"""What tools for a deed are called, the likeliest first."""
_TAKES: dict[Deed, tuple[str, ...]] = {
    "list": ("path", "folder", "directory", "dir"),
    "read": ("path", "file", "file_path", "filename", "name"),
    "search": ("pattern", "query", "words", "text"),
    "run": ("command", "cmd"),
    "expand": ("handle",),
}
"""What their parameter for what it is about is called."""
_WORDS = re.compile(r"[a-z]+")


class Want(Struct, frozen=True):
    """Something to be done with a tool."""

    deed: Deed
    what: str
    """The folder, file, pattern, command or handle."""
    beside: tuple[tuple[str, object], ...] = ()
    """Other arguments, which are left out where the tool does not take them."""


class Offered:
    """The tools of one request. `definitions`: as the provider takes them."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        self._takes: dict[str, tuple[str, ...]] = {}
        for definition in definitions:
            one = definition.get("function", definition)
            schema = one.get("parameters") or one.get("input_schema") or {}
            self._takes[str(one.get("name", ""))] = tuple(schema.get("properties") or ())

    def name(self, deed: Deed) -> str:
        """The tool for a deed; "" where there is none."""
        for wanted in _NAMES[deed]:
            if wanted in self._takes:
                return wanted
        near = (name for wanted in _NAMES[deed] for name in self._takes if wanted in _WORDS.findall(name.lower()))
        return next(near, "")

    def deed(self, call: ToolCall) -> Deed | None:
        """What a call is for."""
        return next((deed for deed in _NAMES if call.name and call.name == self.name(deed)), None)

    def what(self, call: ToolCall) -> str:
        """What a call is about: the folder, file, pattern, command or handle."""
        deed = self.deed(call)
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return ""
        if deed is None or not isinstance(arguments, dict):
            return ""
        return str(next((arguments[name] for name in _TAKES[deed] if name in arguments), ""))

    def call(self, want: Want, call_id: str) -> ToolCall | None:
        """The call that does this; None where no tool is offered for it."""
        name = self.name(want.deed)
        takes = self._takes.get(name, ())
        about = next((one for one in _TAKES[want.deed] if one in takes), takes[0] if takes else "")
        if not name:
            return None
        arguments: dict[str, object] = {about: want.what} if about and want.what else {}
        arguments |= {key: value for key, value in want.beside if key in takes}
        return ToolCall(call_id, name, json.dumps(arguments, ensure_ascii=False))


_LISTED = re.compile(r"(.+?)(?: ([\d,]+))?")
_HANDLE = re.compile(r'expand\("(m\d+(?:\.\d+)*(?:-m\d+)?)"\)')
_NOTE = re.compile(r"[\[<]")
"""What a text begins with that stands in a user's place, and that no user said."""
_FAILED = re.compile(
    r"Error|\w+ (?:failed: |was not )|Nothing (?:here is called|that is not shown)|There is no tool|The user did not"
)
"""What a result begins with that tells of a failure: not every format carries that apart."""
_WRONG = re.compile(r"\b(?:no|not|outside|cannot|is a folder)\b")
"""What stands in the one sentence of a tool that could not do something with a file or a folder."""
_ENDS = 400
"""Characters at either end of a result in which the note stands that it was shrunk."""


class Step(Struct, frozen=True):
    """A call and what was answered."""

    deed: Deed | None
    what: str
    text: str
    failed: bool
    said: str = ""
    """What the demo said with it."""

    @property
    def shrunk(self) -> str:
        """The handle of the original, where this is shown shortened; else ""."""
        return handle_in(self.text[:_ENDS]) or handle_in(self.text[-_ENDS:])

    def listed(self) -> tuple[list[str], list[tuple[str, int]]]:
        """The folders, and the files with their sizes, in the answer of a tool that lists."""
        folders: list[str] = []
        files: list[tuple[str, int]] = []
        for line in self.text.splitlines():
            found = _LISTED.fullmatch(line.strip())
            if found is None or line.startswith(("[", "(")):
                continue
            if found[1].endswith("/"):
                folders.append(found[1].rstrip("/"))
            else:
                files.append((found[1], int((found[2] or "0").replace(",", ""))))
        return folders, files


class Past(Struct, frozen=True):
    """What the demo goes by."""

    request: str
    """What the user said last."""
    steps: tuple[Step, ...]
    """What was done since, oldest first."""
    earlier: tuple[Step, ...]
    """What was done before."""
    inputs: tuple[str, ...]
    """What else the user said, as far as it is shown, questions about it left out."""
    may_expand: bool


def past_of(said: Sequence[Message], offered: Offered) -> Past:
    """The past in these messages."""
    results = {one.call_id: one for message in said if (one := message.result) is not None}
    asked = [place for place, message in enumerate(said) if _input(message)]
    last = asked[-1] if asked else -1
    steps: list[tuple[int, Step]] = []
    for place, message in enumerate(said):
        for call in message.calls:
            result = results.get(call.call_id)
            text, failed = (result.text, _failed(result, offered.what(call))) if result else ("", True)
            steps.append((place, Step(offered.deed(call), offered.what(call), text, failed, message.text)))
    inputs = [_input(said[place]) for place in asked[:-1]]
    return Past(
        _input(said[last]) if asked else "",
        tuple(step for place, step in steps if place > last),
        tuple(step for place, step in steps if place <= last),
        tuple(text for text in inputs if not text.lower().startswith("what did i")),
        bool(offered.name("expand")),
    )


def handle_in(text: str) -> str:
    """The handle in a note that something was shortened; "" where there is none."""
    found = _HANDLE.search(text)
    return found[1] if found else ""


def _input(message: Message) -> str:
    """What a user said in this message; "" where it is no user's."""
    if message.role != "user":
        return ""
    texts = [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return next((text for text in texts if text and not _NOTE.match(text)), "")


def _failed(result: ToolResult, what: str) -> bool:
    """Whether a result tells of a failure: as its state, where the format carries that, or in words."""
    text = result.text
    is_told = what in text and "\n" not in text and text.endswith(".") and bool(_WRONG.search(text))
    return result.state != "ok" or is_told or bool(_FAILED.match(text))
