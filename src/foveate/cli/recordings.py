"""The recordings that a command names: files, folders, standard input, and the sessions of agent programs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..core.plurals import plural
from ..errors import BadSetting, BadTranscript, UnknownFormat
from .output import print_table, say
from .text import complain, write_json

if TYPE_CHECKING:
    from ..replay.recordings.session_folders import ClientSession

__all__ = ["STDIN", "choose_sessions", "named_recordings", "sessions_here"]

STDIN = "/dev/stdin"
"""The name of standard input. The parser of arguments takes `-` for an option, so `foveate` passes this instead."""
_LISTED = 15
"""Sessions that the list shows."""
_NAMED = 3
"""Files without a recording that are named."""
_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst", ".traj")


@contextmanager
def named_recordings(names: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield the files for these names: STDIN is standard input, a folder stands for all recordings in it.

    Raises BadSetting for a folder without recordings.
    """
    with tempfile.TemporaryDirectory(prefix="foveate-") as folder:
        paths: list[Path] = []
        for name in names:
            if str(name) == STDIN:
                paths.append(Path(folder, "stdin"))
                paths[-1].write_bytes(sys.stdin.buffer.read())
            elif name.is_dir():
                paths += _recordings_in(name)
            else:
                paths.append(name)
        yield list(dict.fromkeys(paths))


def _recordings_in(folder: Path) -> list[Path]:
    """Return the recordings in a folder and all folders in it, and name other files of this kind that it has."""
    from ..replay.recordings import sniff

    found: list[Path] = []
    others: list[str] = []
    for path in sorted(folder.rglob("*")):
        if not path.name.endswith(_SUFFIXES) or path.name.startswith("agent-") or not path.is_file():
            continue
        try:
            sniff(path)
        except (BadTranscript, UnknownFormat):
            others.append(str(path.relative_to(folder)))
        else:
            found.append(path)
    if not found:
        raise BadSetting(f"{folder} holds no recording. Name a file, or a folder with .json or .jsonl files.")
    if others:
        names = ", ".join([*others[:_NAMED], *(["..."] if len(others) > _NAMED else [])])
        complain(f"foveate: Left out {plural(len(others), 'JSON file')} without a recording in {folder}: {names}")
    return found


def sessions_here() -> list[ClientSession]:
    """Return the sessions of agent programs on this computer, newest first. Raises BadSetting if there are none."""
    from ..replay.recordings.session_folders import CLIENTS, TITLES, client_sessions, session_folder

    if found := client_sessions(os.environ):
        return found
    folders = ", ".join(str(session_folder(client, os.environ)) for client in CLIENTS)
    raise BadSetting(
        f"foveate replay needs a recording, and there is no session of {', '.join(TITLES.values())} in {folders}. "
        "Name a file or a folder: foveate replay session.jsonl"
    )


def choose_sessions(sessions: Sequence[ClientSession], *, as_json: bool) -> list[Path]:
    """Show the newest sessions, and return those that the person at the terminal chooses; none in a pipe."""
    from ..replay.recordings.session_folders import TITLES, project_of

    if as_json:
        for client, file in sessions:
            facts = {"client": client, "path": str(file.path), "time": file.time // 1_000_000, "bytes": file.size}
            write_json(msgspec.json.encode(facts).decode())
        return []
    rows = [
        (
            str(number),
            TITLES[client],
            f"{datetime.fromtimestamp(file.time / 1e9):%Y-%m-%d %H:%M}",
            _size(file.size),
            Path(project_of(file.path, client)).name or "-",
        )
        for number, (client, file) in enumerate(sessions[:_LISTED], 1)
    ]
    print_table(("", "client", "last change", "size", "project"), rows, left=5)
    if len(sessions) > _LISTED:
        say(f"The newest {_LISTED} of {len(sessions):,} sessions. --json lists all of them.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(f"Replay the newest: foveate replay --last. Or one by its path: foveate replay '{sessions[0].file.path}'")
        return []
    return _ask(sessions[:_LISTED])


def _ask(sessions: Sequence[ClientSession]) -> list[Path]:
    """Ask which sessions to replay, until the answer names some; an empty answer stands for the newest."""
    while True:
        try:
            answer = input("Replay which? (numbers such as 1, 2-5 or all; Enter for 1) ").strip()
        except EOFError:
            return []
        chosen = _numbers(answer or "1", len(sessions))
        if chosen:
            return [sessions[number - 1].file.path for number in chosen]
        say(f"Answer with numbers from 1 to {len(sessions)}.")


def _numbers(answer: str, last: int) -> list[int]:
    """Return the numbers in an answer such as `1,3-5`; an empty list if one of them is not from 1 to `last`."""
    if answer == "all":
        return list(range(1, last + 1))
    numbers: list[int] = []
    for word in answer.replace(",", " ").split():
        first, mark, end = word.partition("-")
        with suppress(ValueError):
            numbers += range(int(first), int(end if mark else first) + 1)
            continue
        return []
    return numbers if numbers and all(1 <= number <= last for number in numbers) else []


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
