"""What stands in the messages of a request, as the demo reads it: what was asked, and what was done for it since."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from ..core.messages import Message, Text, ToolResult
from ._demo_tools import Deed, Offered

__all__ = ["Past", "Step", "handle_in", "past_of"]

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
