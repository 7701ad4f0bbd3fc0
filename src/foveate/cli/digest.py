"""`foveate digest`: what a digest says of a text, and how much digests keep of recorded sessions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from ..errors import BadSetting, BadTranscript
from .output import heading, print_table, progress, say
from .text import complain

__all__ = ["digest"]

_TITLES = (
    "", "results", "characters", "size", "largest", "used later", "kept", "first characters", "head and tail",
)  # fmt: skip

_LEAST_SHOWN = 200
"""Characters: a quarter of a short text would not even hold the line that says what it is."""


def digest(
    *files: Path,
    show: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    room: int | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    lenient: bool = False,
) -> int:
    """How much do digests keep of what later calls of recorded sessions used?

    For each transcript and each kind of content: results of more than 800 characters, the size of their digests, and
    how many of the identifiers that later calls used, and that only one result had, are still there; beside it what
    the first characters, and head and tail, keep in the same size.

    Example: `foveate digest session.jsonl`, or `foveate digest --show output.txt`

    Parameters
    ----------
    files
        Recordings.
    show
        Print the digest of this text file instead; - is standard input.
    room
        Characters that digest may have. Default: by the length of the text, 200 at least.
    as_json
        Print JSON: an object a line for each transcript, its kinds in it.
    lenient
        Skip damaged lines and count them, instead of stopping.
    """
    if show is not None:
        if files:
            raise BadSetting("--show takes the place of recordings: name the one or the others.")
        return _show(show, room)
    if not files:
        raise BadSetting("Name recordings, or a text: foveate digest --show FILE.")
    if room is not None:
        raise BadSetting("--room goes with --show: in figures every digest has the room that its text deserves.")
    return _figures(files, as_json, lenient)


def _show(path: Path, room: int | None) -> int:
    from ..digest import digest as made_of
    from ..digest import room_for

    if room is not None and room < 1:
        raise BadSetting(f"--room takes characters, 1 or more, not {room}.")
    try:
        given = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror or error}.") from error
    text = given.decode("utf-8", "replace")
    made = made_of(text, max(_LEAST_SHOWN, room_for(len(text))) if room is None else room)
    say(made.text)
    return 0


def _figures(files: tuple[Path, ...], as_json: bool, lenient: bool) -> int:
    from ..replay.digests import DigestFigures, digest_figures, sum_of_figures, table_of
    from ..replay.recordings import read_recording

    by_file: list[tuple[str, tuple[DigestFigures, ...]]] = []
    failed: list[str] = []
    with progress("digesting", len(files)) as tell:
        for number, file in enumerate(files, 1):
            try:
                recording = read_recording(file, lenient=lenient)
            except BadTranscript as error:
                failed.append(str(error))
                continue
            by_file.append((str(file), digest_figures(one.message for one in recording.messages)))
            if tell:
                tell(number, len(files), str(file))
    if as_json:
        for name, figures in by_file:
            facts = {**msgspec.structs.asdict(sum_of_figures(figures, name)), "kinds": list(figures)}
            sys.stdout.write(msgspec.json.encode(facts).decode() + "\n")
    elif by_file:
        kinds = sorted({one.name for _, figures in by_file for one in figures})
        everything = [one for _, figures in by_file for one in figures]
        if len(by_file) > 1:
            heading("By transcript")
            print_table(_TITLES, table_of([sum_of_figures(figures, Path(name).stem) for name, figures in by_file]))
        heading("By kind of content")
        sums = [sum_of_figures((one for one in everything if one.name == kind), kind) for kind in kinds]
        print_table(_TITLES, table_of([*sums, sum_of_figures(everything, "all")]))
    for said in failed:
        complain(f"foveate: {said}")
    return 2 if failed else 0
