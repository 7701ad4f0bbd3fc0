"""The lines of an archive, version 1: their fields, conversion to bytes and back, and reading of a file.

An archive is JSON Lines. The first line names the format; the last has the number and the hash of all lines, so that a
cut or changed file is detected. Between them are the catalog, if it was exported, and the trees of forks: their
conversations, each with its own messages and edits, the runs of agents, and the erasures. Hashed content is written in
the bytes that were hashed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ...core.catalog import Action, Binding, Prompt
from ...core.runs import AgentRun, AgentRunStep
from ...core.stamps import Stamp
from ...errors import BadTranscript
from ...ports import Erasure
from .files import UNREADABLE, is_compressed, reading

__all__ = [
    "CRAFTED",
    "FORMAT",
    "LARGE",
    "VERSION",
    "ActionLine",
    "BindingLine",
    "BranchLine",
    "Count",
    "Ending",
    "ErasureLine",
    "Fork",
    "LargeBodies",
    "Line",
    "MessageLine",
    "Opening",
    "PromptLine",
    "RecordLine",
    "RunLine",
    "StepLine",
    "Tally",
    "TreeLine",
    "decode",
    "each_line",
    "encode",
    "opening_of",
]

FORMAT = "foveate archive"
VERSION = 1
LARGE = 4096
"""Bytes above which a message is large: an equal one later only names its position."""
_LARGE_MAX = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Opening(Struct, frozen=True, tag="archive", tag_field="is"):
    """The first line."""

    format: str
    version: int
    tenant: str
    conversation: str | None
    """The conversation whose tree this is; None for all conversations of the tenant."""
    catalog: bool


class PromptLine(Struct, frozen=True, tag="prompt", tag_field="is"):
    prompt: Prompt


class ActionLine(Struct, frozen=True, tag="action", tag_field="is"):
    action: Action


class BindingLine(Struct, frozen=True, tag="binding", tag_field="is"):
    binding: Binding


class Fork(Struct, frozen=True):
    """One conversation of a tree: its fork point and its end."""

    branch: int
    """From 1, in the order of their creation."""
    name: str
    parent: int
    """The parent branch; 0 if it started empty."""
    after: int
    """The last message that it shares with its parent."""
    after_edit: int
    """The last edit that it shares with its parent."""
    position: int
    """Its newest message; this and the next fields are as in `ports.Head`."""
    tip: str
    seal: str
    number: int
    record: str


class TreeLine(Struct, frozen=True, tag="tree", tag_field="is"):
    """The beginning of a tree of forks."""

    branches: tuple[Fork, ...]


class BranchLine(Struct, frozen=True, tag="branch", tag_field="is"):
    """The beginning of a branch's own messages and edits, without those that it shares with its parent."""

    branch: int


class MessageLine(Struct, frozen=True, tag="message", tag_field="is", kw_only=True):
    """A message at its position, with its content in one of three forms."""

    position: int
    id: str
    seal: str
    stamp: Stamp
    message: Raw | UnsetType = UNSET
    """Its canonical bytes."""
    same: tuple[int, int] | UnsetType = UNSET
    """Branch and position of an equal large message above."""
    erased: str | UnsetType = UNSET
    """The hash of the erased body."""
    released: str | UnsetType = UNSET
    """The hash of the released original; `message` is its outline then."""


class RecordLine(Struct, frozen=True, tag="record", tag_field="is"):
    """A record of the journal, in its canonical bytes."""

    id: str
    record: Raw


class RunLine(Struct, frozen=True, tag="run", tag_field="is"):
    run: AgentRun


class StepLine(Struct, frozen=True, tag="step", tag_field="is"):
    step: AgentRunStep


class ErasureLine(Struct, frozen=True, tag="erasure", tag_field="is"):
    """The record of an erasure in the tree: by whom and why. The messages' own lines show what is left of them."""

    erasure: Erasure


class Count(Struct, frozen=True, forbid_unknown_fields=True):
    """The size of an archive."""

    lines: int = 0
    """Lines of the archive."""
    conversations: int = 0
    """Conversations, with forks."""
    messages: int = 0
    """Messages."""
    records: int = 0
    """Records of journals."""
    runs: int = 0
    """Runs of agents."""
    steps: int = 0
    """Steps of these runs."""
    erasures: int = 0
    """Erasures."""


class Ending(Struct, frozen=True, tag="end", tag_field="is", forbid_unknown_fields=True):
    """The last line."""

    count: Count
    """Of the lines before this one."""
    hash: str
    """BLAKE2b, 20 bytes, of all lines before this one, each with its line feed."""


Line = (
    Opening
    | PromptLine
    | ActionLine
    | BindingLine
    | TreeLine
    | BranchLine
    | MessageLine
    | RecordLine
    | RunLine
    | StepLine
    | ErasureLine
    | Ending
)

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
_encoder = msgspec.json.Encoder()


def encode(line: Line) -> bytes:
    """Return a line as bytes, with its line feed."""
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:  # Texts of runs may have unpaired surrogates, which need an escape.
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode() + b"\n"


def decode(line: bytes | bytearray) -> Line:
    """Return the line with these bytes. Raises msgspec.DecodeError, a ValueError, if they are none."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if not line.startswith((b'{"is":"run"', b'{"is":"step"')):
            raise
    try:
        return msgspec.convert(json.loads(line), RunLine | StepLine)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from error


class Tally:
    """Counts and hashes lines, in their order."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=20, person=b"foveate file 1")
        self._counts = dict.fromkeys(Count.__struct_fields__, 0)

    def add(self, line: Line, raw: bytes | bytearray) -> None:
        """Add a line and its bytes."""
        self._hash.update(raw)
        self._counts["lines"] += 1
        match line:
            case TreeLine(branches=branches):
                self._counts["conversations"] += len(branches)
            case MessageLine():
                self._counts["messages"] += 1
            case RecordLine():
                self._counts["records"] += 1
            case RunLine():
                self._counts["runs"] += 1
            case StepLine():
                self._counts["steps"] += 1
            case ErasureLine():
                self._counts["erasures"] += 1

    def copy(self) -> Tally:
        """Return an independent copy."""
        twin = Tally()
        twin._hash, twin._counts = self._hash.copy(), self._counts.copy()
        return twin

    @property
    def lines(self) -> int:
        """The number of lines so far."""
        return self._counts["lines"]

    @property
    def count(self) -> Count:
        """The counts so far."""
        return Count(**self._counts)

    def ending(self) -> Ending:
        """Return the last line for these lines."""
        return Ending(self.count, self._hash.hexdigest())


class LargeBodies(dict[K, V]):
    """The newest large messages of an archive, oldest first.

    Writer and reader keep the same ones, so that a position which the writer names is known to the reader. Older ones
    are dropped and written again, so that an archive of any length needs little memory.
    """

    def keep(self, key: K, value: V) -> None:
        """Add a large message that was written in full."""
        self[key] = value
        if len(self) > _LARGE_MAX:
            del self[next(iter(self))]


CRAFTED = (OverflowError, RecursionError)
"""Errors of reading a crafted line: numbers too large, brackets too deep."""

_LINE_MAX = 1 << 30
"""Bytes of a line in an uncompressed file. A longer line is no archive."""
_UNPACKED_MAX = 1 << 28
"""Bytes of a line in a compressed file: a small file must not be able to fill the memory."""
_PIECE = 1 << 20
"""Bytes of a line read at a time."""


def opening_of(path: Path) -> Opening:
    """Return the first line of an archive. Raises BadTranscript if the file is none, or of a later version."""
    for _, line in each_line(path):
        if isinstance(line, Opening):
            return line
    raise BadTranscript(str(path), 0, "it is empty, so it is no archive of foveate.")


def each_line(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield every line but the last, numbered from 1. Raises BadTranscript with the line if one cannot be read.

    The file is known to be whole only when all lines were read.
    """
    tally, number, ended = Tally(), 0, False
    longest = _UNPACKED_MAX if is_compressed(path) else _LINE_MAX
    with reading(path) as file:
        while raw := _next(file, path, number + 1, longest):
            number += 1
            if ended:
                raise BadTranscript(str(path), number, "there are lines after the end of the archive.")
            line = _line(raw, path, number)
            if isinstance(line, Ending):
                if line != tally.ending():
                    raise BadTranscript(
                        str(path),
                        number,
                        f"the file was changed: the lines above are not the {line.count.lines:,} that its last line "
                        f"names.",
                        "Export again, or find an intact copy.",
                    )
                ended = True
            else:
                tally.add(line, raw)
                yield number, line
    if not number:
        raise BadTranscript(str(path), 0, "it is empty, so it is no archive of foveate.")
    if not ended:
        raise _cut(path, number)


def _next(file: BinaryIO, path: Path, number: int, longest: int) -> bytes | bytearray:
    try:
        raw: bytes | bytearray = file.readline(_PIECE)
        if len(raw) == _PIECE and not raw.endswith(b"\n"):
            raw = bytearray(raw)
            while len(raw) <= longest and (piece := file.readline(_PIECE)):
                raw += piece
                if piece.endswith(b"\n"):
                    break
    except UNREADABLE as error:
        raise BadTranscript(
            str(path), number, f"it cannot be unpacked from here on ({error}).", "It was cut off or damaged."
        ) from error
    if len(raw) > longest:
        raise BadTranscript(
            str(path),
            number,
            f"the line is longer than {longest >> 20:,} MiB.",
            "If you trust the file, unpack it and import the unpacked file." if longest < _LINE_MAX else "",
        )
    if raw and not raw.endswith(b"\n"):
        raise _cut(path, number)
    return raw


def _line(raw: bytes | bytearray, path: Path, number: int) -> Line:
    try:
        line = decode(raw)
    except (ValueError, *CRAFTED) as error:
        cause = "The file is no archive of foveate." if number == 1 else "The file was damaged."
        raise BadTranscript(str(path), number, f"it is no line of an archive ({error}).", cause) from error
    if isinstance(line, Opening) != (number == 1):
        problem = "an archive begins in the middle of another one." if number > 1 else "no archive begins here."
        raise BadTranscript(str(path), number, problem)
    if isinstance(line, Opening) and line.format != FORMAT:
        raise BadTranscript(str(path), number, f"it is a {line.format!r}, not a {FORMAT!r}.")
    if isinstance(line, Opening) and line.version != VERSION:
        raise BadTranscript(
            str(path),
            number,
            f"the archive has version {line.version}; this foveate reads version {VERSION}.",
            "Upgrade foveate.",
        )
    return line


def _cut(path: Path, number: int) -> BadTranscript:
    cause = "It was cut off." if number > 1 else "It is no archive of foveate, or was cut off."
    return BadTranscript(str(path), number, "the file ends here, before the end of the archive.", cause)
