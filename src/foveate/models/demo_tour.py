"""The demo's tour: it reads many files and searches for the name of each, more than its window can hold.

The demo writes its plan into its first text and its place into every text, so it needs no list twice. It calls `expand`
for the plan once a fold hides it, and for one shrunk result at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ..core.plurals import plural
from .demo_request import Past, Reply, Step, Want

__all__ = ["tour"]

_FILES = 20
"""The tour reads and searches each: two calls a file."""
_LARGEST = 100_000
"""The largest file of the tour, in bytes."""
_TEXTS = frozenset((".c", ".cfg", ".css", ".csv", ".go", ".html", ".ini", ".java", ".js", ".json", ".md", ".py", ".rs"))
_TEXTS |= {".rst", ".sh", ".sql", ".toml", ".ts", ".txt", ".xml", ".yaml", ".yml"}
_FIRST = ("deep", True), ("pattern", "*.[mp][dy]")
"""The tour lists Markdown and Python files, or all files if there are none."""
_ALL = (("deep", True),)
_PLACE = re.compile(r"\((\d+) of (\d+)\)")
"""The demo's place on the tour, as its texts give it."""
_PLAN = re.compile(r"My plan for \d+ files?: (.+?)\. ")
_FOLDED_PLAN = re.compile(r"^\s*(m\d+) My plan for ", re.MULTILINE)
_QUESTION = "One question is left"
"""The beginning of the last text with a call."""


def tour(past: Past, *_: str) -> Reply:
    """Return the next text and calls of the tour."""
    steps = past.steps
    if not steps:
        return "A tour. First I list the files here.", [Want("list", ".", _FIRST)]
    done, count = _place(steps)
    if steps[-1].text_before.startswith(_QUESTION):
        return _summary(count, steps[-1]), ()
    if 0 < count <= done:
        return _ask_last_question(past, count)
    files = _plan(steps)
    if files is None:
        return _recover_plan(past, done)
    if not files and steps[-1].task == "list" and not steps[-1].failed and "all files" not in steps[-1].text_before:
        return "No Markdown, no Python, so I list all files.", [Want("list", ".", _ALL)]
    if not files:
        return "There are no files here that I can read. Start the chat in another --folder.", ()
    plan = "" if done else f"My plan for {plural(len(files), 'file')}: {', '.join(files)}. "
    stem = PurePosixPath(files[done]).stem
    wants = [Want("read", files[done]), Want("search", stem, (("ignore_case", True),))]
    if stem.startswith("__"):  # Several files have this name.
        wants.pop()
    return f"{plan}{files[done]} ({done + 1} of {len(files)}).", wants


def _place(steps: Sequence[Step]) -> tuple[int, int]:
    """Return how many files the tour has read, and of how many, from its last text; (0, 0) at its beginning."""
    match = next((match for step in reversed(steps) if (match := _PLACE.search(step.text_before))), None)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _plan(steps: Sequence[Step]) -> list[str] | None:
    """Return the files of the tour from the plan, or from the list before there is a plan; None if neither is shown."""
    for step in reversed(steps):
        if match := _PLAN.search(step.text_before) or (step.task == "expand" and _PLAN.search(step.text)) or None:
            return match[1].split(", ")
    newest = next((step for step in reversed(steps) if step.task == "list" and not step.shrunk), None)
    if newest is None:
        return None
    entries = [] if newest.failed else newest.files_listed()[1]
    return [name for name, size in entries if 0 < size <= _LARGEST and _is_text(name)][:_FILES]


def _is_text(name: str) -> bool:
    return PurePosixPath(name).suffix in _TEXTS and ", " not in name and ". " not in name


def _recover_plan(past: Past, done: int) -> Reply:
    """Expand the plan that a fold hides, or list the files again if that is not possible."""
    place = f"({done} of {_place(past.steps)[1] or _FILES})"
    handles = [match[1] for note in past.notes for match in _FOLDED_PLAN.finditer(note)]
    if handles and past.may_expand and past.steps[-1].task != "expand":
        return f"A fold hides my plan {place}. I expand it.", [Want("expand", handles[-1])]
    if past.steps[-1].task == "list":
        return "I cannot see the list of files, so the tour ends here.", ()
    return f"My plan is no longer shown {place}. I list the files again.", [Want("list", ".", _FIRST)]


def _ask_last_question(past: Past, count: int) -> Reply:
    """Expand the end of a shrunk result, which answers a question; then end the tour."""
    shrunk = next((step for step in past.steps if step.task == "read" and step.shrunk), None)
    if shrunk is None or not past.may_expand:
        return _summary(count), ()
    text = f"{_QUESTION}: how does {shrunk.what} end? My reading of it is shrunk, so I expand its last lines."
    return text, [Want("expand", shrunk.shrunk, (("lines", "-5"),))]


def _summary(count: int, answer: Step | None = None) -> str:
    """Return the last text. `answer`: the call that answers the last question."""
    last = "" if answer is None or answer.failed else (answer.text.rstrip().splitlines() or [""])[-1].strip()
    found = f"The expanded text ends with `{last}`. " if last else ""
    files = f"{count} files, each" if count > 1 else "one file,"
    return (
        f"The tour is complete: {files} read and searched for. {found}`/context` shows what the window holds, "
        "`/why 4` what happened to message 4, `/cost` what all this cost and saved. Start the chat with --policy off "
        "for the same tour without foveate."
    )
