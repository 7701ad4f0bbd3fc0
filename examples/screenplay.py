"""Parser for screenplays: the texts and tool calls of a session, as plain text.

    @user
    Why is the total wrong?

    @agent
    I'll look at the code that adds it up, and at its tests.
    > read_file shop/total.py 10 30
    > run_tests quiet test_total

    @agent
    > edit_file shop/total.py
    ---- old
        return sum(lines)
    ---- new
        return sum(lines) + freight
    ---- end

Each `@name` begins one message. The calls follow its text, one `>` line each; calls of one message run together. The
parser knows the arguments of each tool, but not its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SPEAKERS = ("system", "user", "agent")


@dataclass(frozen=True)
class Call:
    """One use of a tool."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One message: the speaker, the text and the tool calls."""

    speaker: str
    text: str
    calls: tuple[Call, ...]


def read(play: str) -> list[Line]:
    """Return the messages of a screenplay, in order. Raises ValueError with the number of an invalid line."""
    found: list[Line] = []
    speaker, text = "", list[str]()
    calls: list[Call] = []
    rows = enumerate(play.splitlines(), start=1)
    for number, row in rows:
        if row.startswith("@"):
            if speaker:
                found.append(Line(speaker, "\n".join(text).strip(), tuple(calls)))
            speaker, text, calls = row[1:], [], []
            if speaker not in SPEAKERS:
                raise ValueError(f"line {number}: {speaker!r} is none of {', '.join(SPEAKERS)}")
        elif row.startswith("> "):
            calls.append(_call(row[2:], rows, number))
        elif row.strip() or not calls:
            text.append(row)
    found.append(Line(speaker, "\n".join(text).strip(), tuple(calls)))
    return found


def _call(row: str, rows: Iterator[tuple[int, str]], number: int) -> Call:
    tool, _, rest = row.partition(" ")
    words = rest.split()
    match tool, words:
        case "list_files", [folder]:
            return Call(tool, {"folder": folder})
        case "read_file", [path]:
            return Call(tool, {"path": path})
        case "read_file", [path, first, last]:
            return Call(tool, {"path": path, "first": int(first), "last": int(last)})
        case "search", [folder, _, *_]:
            # The pattern is the rest of the line, including blanks.
            return Call(tool, {"folder": folder, "pattern": rest.partition(" ")[2]})
        case "run_tests", _:
            names = [word for word in words if word != "quiet"]
            arguments: dict[str, Any] = {"names": " ".join(names)} if names else {}
            return Call(tool, {**arguments, "quiet": True} if "quiet" in words else arguments)
        case "granary", [_, *_]:
            return Call(tool, {"arguments": words})
        case "edit_file", [path]:
            _until(rows, "---- old")
            return Call(tool, {"path": path, "old": _until(rows, "---- new"), "new": _until(rows, "---- end")})
    raise ValueError(f"line {number}: {row!r} is not a call")


def _until(rows: Iterator[tuple[int, str]], mark: str) -> str:
    """Return the lines before `mark`, each with its line end."""
    taken: list[str] = []
    for _, row in rows:
        if row == mark:
            return "".join(taken)
        taken.append(row + "\n")
    raise ValueError(f"{mark!r} is missing")
