"""`foveate digest`: the digest of a text, and figures about digests in recorded sessions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from ..errors import BadSetting, BadTranscript, UnknownFormat
from .output import heading, print_table, progress, say
from .recordings import named_recordings
from .text import complain, write_json

__all__ = ["digest"]

_TITLES = (
    "", "results", "characters", "size", "largest", "used later", "kept", "first characters", "head and tail",
)  # fmt: skip

_LEGEND = (
    "size, largest: of the digests, as shares of their results of more than 800 characters. used later: identifiers "
    "that a later call used and only one result had. kept: the share of them in the digest. first characters, head and "
    "tail: the share in as many characters of the result itself."
)
"""The meaning of the columns, for a line under the table."""
_LEAST_SHOWN = 200
"""Characters. A quarter of a short text would be less than the first line of its digest."""


def digest(
    *files: Path,
    show: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    room: int | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    lenient: bool = False,
) -> int:
    """Measure how much of recorded results digests keep, or print the digest of a text.

    For each recording and each kind of content: results of more than 800 characters, the size of their digests, and
    how many identifiers they keep, of those that later calls used and only one result had. For comparison: how many
    the first characters keep, and head and tail, in the same size.

    Example: `foveate digest session.jsonl`, or `foveate digest --show output.txt`

    Parameters
    ----------
    files
        Recordings, or folders with recordings.
    show
        Print the digest of this text file instead; - for standard input.
    room
        Largest size of that digest, in characters (default: from the length of the text, at least 200).
    as_json
        Print JSON Lines: one object for each recording.
    lenient
        Skip damaged lines and count them.
    """
    if show is not None:
        if files:
            raise BadSetting("--show prints the digest of one text. Leave it out, or leave out the recordings.")
        return _show(show, room)
    if not files:
        raise BadSetting("foveate digest needs recordings, or a text: foveate digest --show FILE.")
    if room is not None:
        raise BadSetting("--room needs --show. In a measurement, the length of each text sets the size of its digest.")
    with named_recordings(files) as paths:
        return _figures(paths, as_json, lenient)


def _show(path: Path, room: int | None) -> int:
    from ..digest import digest as digest_of
    from ..digest import room_for

    if room is not None and room < 1:
        raise BadSetting(f"--room must be at least 1 character, not {room}.")
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror or error}.") from error
    text = raw.decode("utf-8", "replace")
    result = digest_of(text, max(_LEAST_SHOWN, room_for(len(text))) if room is None else room)
    say(result.text)
    return 0


def _figures(files: Sequence[Path], as_json: bool, lenient: bool) -> int:
    from ..replay.digests import DigestFigures, figures_table, measure_digests, sum_figures
    from ..replay.recordings import read_recording

    by_file: list[tuple[str, tuple[DigestFigures, ...]]] = []
    failed: list[str] = []
    with progress("Digesting", len(files)) as update:
        for number, file in enumerate(files, 1):
            try:
                recording = read_recording(file, lenient=lenient)
            except (BadTranscript, UnknownFormat) as error:
                failed.append(str(error))
                continue
            by_file.append((str(file), measure_digests(row.message for row in recording.messages)))
            if update:
                update(number, len(files), str(file))
    if as_json:
        for name, figures in by_file:
            facts = {**msgspec.structs.asdict(sum_figures(figures, name)), "kinds": list(figures)}
            write_json(msgspec.json.encode(facts).decode())
    elif by_file:
        kinds = sorted({row.name for _, figures in by_file for row in figures})
        everything = [row for _, figures in by_file for row in figures]
        if len(by_file) > 1:
            heading("By recording")
            print_table(_TITLES, figures_table([sum_figures(figures, Path(name).stem) for name, figures in by_file]))
        heading("By kind of content")
        sums = [sum_figures((row for row in everything if row.name == kind), kind) for kind in kinds]
        print_table(_TITLES, figures_table([*sums, sum_figures(everything, "all")]))
        say(_LEGEND, "dim")
    for message in failed:
        complain(f"foveate: {message}")
    return 2 if failed else 0
