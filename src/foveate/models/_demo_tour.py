"""The demo's tour: one file after the other is read and searched for, some forty calls, until the window overflows.

Where it is it finds out from what it said with its newest call, as a language model would have to; and once the list
of files is shrunk, it lists them again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ._demo_past import Past, Step
from ._demo_tools import Want

__all__ = ["tour"]

_FILES = 20
"""Each is read and searched for: two calls."""
_LARGEST = 100_000
"""Bytes of a file that is worth a look."""
_TEXTS = frozenset((".c", ".cfg", ".css", ".csv", ".go", ".html", ".ini", ".java", ".js", ".json", ".md", ".py", ".rs"))
_TEXTS |= {".rst", ".sh", ".sql", ".toml", ".ts", ".txt", ".xml", ".yaml", ".yml"}
_FIRST = ("deep", True), ("pattern", "*.[mp][dy]")
"""What is listed: Markdown and Python, and all files where there are none of these."""
_ALL = (("deep", True),)
_AT = re.compile(r"\((\d+) of \d+\)")
"""How the demo says where it is."""


def tour(past: Past, *_: str) -> tuple[str, Sequence[Want]]:
    """What is said next on the tour, and done."""
    steps = past.steps
    if not steps:
        return "A tour, then. First the list of what is here.", [Want("list", ".", _FIRST)]
    files = _files(steps)
    if steps[-1].deed == "expand":
        return _told(files or ()), ()
    if files is None:
        return _list_again(past)
    if not files and steps[-1].deed == "list" and not steps[-1].failed and "all files" not in steps[-1].said:
        return f"No Markdown, no Python ({_done(steps)} of {_FILES}): all files, then.", [Want("list", ".", _ALL)]
    if not files:
        return "There are no files here that I could read. Start the chat in another --folder.", ()
    done = _done(steps)
    if done < len(files):
        return f"{files[done]} ({done + 1} of {len(files)}).", [
            Want("read", files[done]),
            Want("search", PurePosixPath(files[done]).stem, (("ignore_case", True),)),
        ]
    return _end(past, files)


def _end(past: Past, files: Sequence[str]) -> tuple[str, Sequence[Want]]:
    """Something that was shrunk is had back, to show that it can be; then the tour is over."""
    shrunk = next((step for step in past.steps if step.deed == "read" and step.shrunk), None)
    if shrunk is not None and past.may_expand:
        return f"What I read in {shrunk.what} is shrunk by now. I have it back.", [Want("expand", shrunk.shrunk)]
    return _told(files), ()


def _told(files: Sequence[str]) -> str:
    count = f"{len(files)} files, each" if len(files) > 1 else "one file,"
    looked = f"{count} read and searched for. " if files else ""
    return (
        f"That was the tour: {looked}`/context` tells what the window holds, `/why m4` what became of the fourth "
        "message, `/cost` what all this cost and saved."
    )


def _list_again(past: Past) -> tuple[str, Sequence[Want]]:
    if past.steps[-1].deed == "list":
        return "I cannot see what files there are, so the tour ends here.", ()
    again = f"The list of files is shrunk by now ({_done(past.steps)} of {_FILES}); I list them again."
    return again, [Want("list", ".", _FIRST)]


def _files(steps: Sequence[Step]) -> list[str] | None:
    """The files of the tour, from the newest list that is shown whole; None where none is."""
    for step in reversed(steps):
        if step.deed == "list" and not step.shrunk:
            found = [] if step.failed else step.listed()[1]
            return [name for name, size in found if 0 < size <= _LARGEST and _is_text(name)][:_FILES]
    return None


def _is_text(name: str) -> bool:
    return PurePosixPath(name).suffix in _TEXTS


def _done(steps: Sequence[Step]) -> int:
    """How many files were read, by what was said last of that."""
    return next((int(found[1]) for step in reversed(steps) if (found := _AT.search(step.said))), 0)
