"""Lines of a fold: what a digest keeps of steps that a fold tells in short."""

from __future__ import annotations

import re

from msgspec import Struct

from .statements import cut_at_clause
from .steps import TELLING

__all__ = ["FoldLines", "read_fold"]

_LINE = 200
"""Characters of a line, at most."""
_OUTCOME = 80
"""Characters of what is shown of a result behind its call."""
_EMPTY = re.compile(r"→ m\d+(?: empty\b|\Z)")
"""The line about a result without content."""
_CALL = re.compile(r"((?:m\d+ )?([\w.:-]+)\()(.*)\)\Z")
_AS_BEFORE = "as before"
"""Stands in a fold for arguments of the call of this tool before."""
_ARGUMENT = re.compile(r"([\w.-]+)=.*?(?=, (?:[\w.-]+=|as before)|\Z)")
_OF_TASKS = re.compile(r"(?:m\d+ )?(?:TaskUpdate|TaskCreate|TaskList|TodoWrite|todowrite|update_plan)\(")
"""A call about the list of tasks of a client."""
_NAMES = re.compile(r"(?:m\d+ )?+.*?(?:[\d`\"“_/@=(]|[a-z][A-Z]|\w\.\w)")
"""A line with a name or a number besides its handle."""
_LITTLE = 0.3
"""The part that a line is worth if it names nothing, or is about a list of tasks."""


class FoldLines(Struct):
    """The parts of a fold that a digest keeps."""

    lines: list[tuple[str, float]]
    """Texts and calls, each with the part that it is worth."""
    names: list[str]
    """Names of results and of long texts."""


def read_fold(text: str) -> FoldLines:
    """Return the lines of a fold, without the first one, which describes the kind of message."""
    found = FoldLines([], [])
    targets: dict[str, str] = {}
    """The argument that names the target of the newest call, by tool."""
    has_call = False
    """Whether the last line is a call that waits for its result."""
    for line in text.splitlines()[1:]:
        plain = line.strip()
        if plain.startswith("… "):
            found.names += plain.split()[1:]
        elif plain.startswith("→"):
            if has_call and not _EMPTY.match(plain):  # Without its call, it does not say what it is the result of.
                words, share = found.lines[-1]
                found.lines[-1] = f"{words} {cut_at_clause(plain, _OUTCOME)}", share
            has_call = False
        elif plain:
            words = cut_at_clause(_with_target(plain, targets), _LINE)
            found.lines.append((words, _LITTLE if _says_little(words) else 1.0))
            has_call = True
    return found


def _with_target(line: str, targets: dict[str, str]) -> str:
    """Return the line of a call with its target, also if the fold says only that it is as before."""
    call = _CALL.match(line)
    if call is None:
        return line
    begin, tool, arguments = call.groups()
    found = {match[1]: match[0] for match in _ARGUMENT.finditer(arguments)}
    target = next((found[key] for key in TELLING if key in found), "")
    if target:
        targets[tool] = target
    elif _AS_BEFORE in arguments and (target := targets.get(tool, "")):
        arguments = arguments.replace(_AS_BEFORE, target, 1)
    arguments = arguments.replace(f", {_AS_BEFORE}", "").removeprefix(f"{_AS_BEFORE}, ")
    return f"{begin}{arguments})"


def _says_little(line: str) -> bool:
    return bool(_OF_TASKS.match(line)) or not _NAMES.match(line)
