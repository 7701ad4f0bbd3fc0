"""The lines of an archive: what each kind holds, to bytes and back. Version 1.

An archive is JSON Lines. The first line says what it is, the last how many lines there were and what they hash to, so
that a file that was cut or changed is found. Between them lies the catalog, if it was asked for, and then tree after
tree: which conversations it has, each one's own messages and edits, the runs of its agents. What is hashed stands in
the very bytes that were hashed. Values only; nothing here knows a file or a store.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..core.catalog import Action, Binding, Prompt
from ..core.runs import AgentRun, AgentRunStep
from ..core.stamps import Stamp
from ..ports import Erasure

__all__ = [
    "FORMAT",
    "VERSION",
    "ActionLine",
    "BindingLine",
    "BranchLine",
    "Count",
    "Ending",
    "ErasureLine",
    "Fork",
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
    "encode",
]

FORMAT = "foveate archive"
VERSION = 1


class Opening(Struct, frozen=True, tag="archive", tag_field="is"):
    """The first line."""

    format: str
    version: int
    tenant: str
    conversation: str | None
    """The one whose tree this is; None where it is all of the tenant's."""
    catalog: bool


class PromptLine(Struct, frozen=True, tag="prompt", tag_field="is"):
    prompt: Prompt


class ActionLine(Struct, frozen=True, tag="action", tag_field="is"):
    action: Action


class BindingLine(Struct, frozen=True, tag="binding", tag_field="is"):
    binding: Binding


class Fork(Struct, frozen=True):
    """One conversation of a tree: what it left, and where it ends."""

    branch: int
    """From 1 on, in the order in which they were begun."""
    name: str
    parent: int
    """The branch it left; 0 where it began with nothing."""
    after: int
    """The last message that it shares with its parent."""
    after_edit: int
    """The last edit, likewise."""
    position: int
    """Its newest message, and so on, as in `ports.Head`."""
    tip: str
    seal: str
    number: int
    record: str


class TreeLine(Struct, frozen=True, tag="tree", tag_field="is"):
    """A tree of forks begins."""

    branches: tuple[Fork, ...]


class BranchLine(Struct, frozen=True, tag="branch", tag_field="is"):
    """What follows are the messages and edits that this branch does not share with the one it left."""

    branch: int


class MessageLine(Struct, frozen=True, tag="message", tag_field="is", kw_only=True):
    """A message in its place, with what it said in one of three forms."""

    position: int
    id: str
    seal: str
    stamp: Stamp
    message: Raw | UnsetType = UNSET
    """Its canonical bytes, as they are."""
    same: tuple[int, int] | UnsetType = UNSET
    """Branch and position of a message above, of which it is a large repetition."""
    erased: str | UnsetType = UNSET
    """The hash of what was erased."""


class RecordLine(Struct, frozen=True, tag="record", tag_field="is"):
    """A record of the journal, in its canonical bytes."""

    id: str
    record: Raw


class RunLine(Struct, frozen=True, tag="run", tag_field="is"):
    run: AgentRun


class StepLine(Struct, frozen=True, tag="step", tag_field="is"):
    step: AgentRunStep


class ErasureLine(Struct, frozen=True, tag="erasure", tag_field="is"):
    """Of the tree: what was erased in it, by whom and why. What is left of the messages stands in their lines."""

    erasure: Erasure


class Count(Struct, frozen=True, forbid_unknown_fields=True):
    """How much there is in an archive."""

    lines: int = 0
    conversations: int = 0
    messages: int = 0
    records: int = 0
    runs: int = 0
    steps: int = 0
    erasures: int = 0


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

_decoder = msgspec.json.Decoder(Line)
_encoder = msgspec.json.Encoder()


def encode(line: Line) -> bytes:
    """One line, with its line feed."""
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:  # Of runs, whose texts may hold halves of surrogate pairs: only an escape carries them.
        return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode() + b"\n"


def decode(line: bytes | bytearray) -> Line:
    """The line with these bytes. Raises msgspec.DecodeError, which a ValueError is too, where they are none."""
    try:
        return cast("Line", _decoder.decode(line))
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
    """Counts lines and hashes them, in their order."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=20, person=b"foveate file 1")
        self._counts = dict.fromkeys(Count.__struct_fields__, 0)

    def add(self, line: Line, raw: bytes | bytearray) -> None:
        """Take in a line, in its bytes."""
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
        """The same, which counts on by itself."""
        twin = Tally()
        twin._hash, twin._counts = self._hash.copy(), self._counts.copy()
        return twin

    @property
    def lines(self) -> int:
        """How many."""
        return self._counts["lines"]

    @property
    def count(self) -> Count:
        """What was taken in."""
        return Count(**self._counts)

    def ending(self) -> Ending:
        """The line that these lines end with."""
        return Ending(self.count, self._hash.hexdigest())
