"""The tools that the demo is offered, found by what they are for: list, read, search, run, expand.

Knows the definitions of tools in the providers' formats. What is not offered is not there, and nothing fails for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..core.messages import ToolCall

__all__ = ["Deed", "Offered", "Want"]

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
