"""Verify the chains of one tree of an archive, line by line.

Every id, seal and record id is computed again. Only the links of fork points and requested links are remembered, so a
conversation of any length needs little memory.
"""

from __future__ import annotations

import re

import msgspec

from ...core import ids, wire
from ...core.ids import redacted_record, redacted_stamp
from .lines import LARGE, Fork, LargeBodies, MessageLine, RecordLine, TreeLine

__all__ = ["Chains"]

_HASH = re.compile("[0-9a-f]{40}")

Point = tuple[int, int]
"""A branch, and a position or an edit in its own part."""


class Chains:
    """The chains of one tree. Methods raise ValueError with a sentence if a line does not follow from those before
    it.
    """

    def __init__(self, tree: TreeLine) -> None:
        self.forks = {fork.branch: fork for fork in tree.branches}
        self.links: dict[Point, tuple[str, str]] = {}
        """Id and seal of the requested messages that exist."""
        self.records: dict[Point, str] = {}
        """Ids of the records that end with the requested edits."""
        self._wanted: set[Point] = set()
        self._wanted_edits: set[Point] = set()
        self._large = LargeBodies[Point, str]()
        self._outlines: dict[str, tuple[int, str]] = {}
        """Released messages by id: their positions, and the hashes of their outlines."""
        self._released: dict[str, tuple[int, str]] = {}
        """The newest edit that released each message, and the hash of the outline that it names."""
        self._branch = 0
        self._position, self._tip, self._seal, self._number, self._record = 0, "", "", 0, ""
        _check_tree(tree)
        for fork in tree.branches:
            self.want(fork.parent, fork.after)
            self.want_edit(fork.parent, fork.after_edit)

    def want(self, branch: int, position: int) -> Point:
        """Request the link at a position of a branch, its own or shared; return its key in `links`."""
        while branch and position <= self.forks[branch].after:
            branch = self.forks[branch].parent
        self._wanted.add((branch, position))
        return branch, position

    def want_edit(self, branch: int, number: int) -> Point:
        """Request the id of the record that ends with an edit; return its key in `records`."""
        while branch and number <= self.forks[branch].after_edit:
            branch = self.forks[branch].parent
        self._wanted_edits.add((branch, number))
        return branch, number

    def begin(self, branch: int) -> None:
        """Begin the lines of a branch."""
        self._finish()
        if branch != self._branch + 1 or branch not in self.forks:
            raise ValueError(f"branch {branch} comes after branch {self._branch} of {len(self.forks)}")
        fork = self.forks[branch]
        self._branch, self._position, self._number = branch, fork.after, fork.after_edit
        self._tip, self._seal, self._record = "", "", ""
        if fork.after:
            self._tip, self._seal = self.links[self.want(fork.parent, fork.after)]
        if fork.after_edit:
            point = self.want_edit(fork.parent, fork.after_edit)
            if point not in self.records:
                raise ValueError(f"{fork.name!r} leaves its parent in the middle of a record, at edit {point[1]}")
            self._record = self.records[point]

    def message(self, line: MessageLine) -> None:
        """Take the next message of the branch."""
        self._inside()
        if line.position != self._position + 1:
            raise ValueError(f"message {self._position + 1} is missing: the next is message {line.position}")
        digest = self._digest(line)
        if ids.message_id(self._tip, digest) != line.id:
            raise ValueError(
                f"the id of message {line.position} does not follow from its content and the message before it"
            )
        stamps = redacted_stamp(line.stamp), wire.encode_stamp(line.stamp)
        if not any(ids.seal(self._seal, line.id, stamp) == line.seal for stamp in dict.fromkeys(stamps)):
            raise ValueError(f"the stamp of message {line.position} does not match its seal")
        self._position, self._tip, self._seal = line.position, line.id, line.seal
        point = self._branch, line.position
        if point in self._wanted:
            self.links[point] = line.id, line.seal

    def record(self, line: RecordLine) -> None:
        """Take the next record of the branch."""
        self._inside()
        body = bytes(line.record)
        record = wire.decode_record(body)
        if record.first != self._number + 1 or not record.edits:
            raise ValueError(f"edit {self._number + 1} is missing: the next is edit {record.first}")
        if line.id != ids.record_id(self._record, redacted_record(record)) and line.id != ids.legacy_record_id(
            self._record, body
        ):
            raise ValueError(
                f"the id of the record with edit {record.first} does not follow from its content and the record "
                f"before it"
            )
        for number, id, hash in record.releases():
            self._released[id] = max(self._released.get(id, (0, "")), (number, hash))
        self._number, self._record = record.last, line.id
        if (self._branch, record.last) in self._wanted_edits:
            self.records[self._branch, record.last] = line.id

    def end(self) -> None:
        """End the messages and edits of the tree."""
        self._finish()
        if self._branch != len(self.forks):
            raise ValueError(f"the tree has {len(self.forks)} branches, and only {self._branch} follow")
        for id, (position, digest) in self._outlines.items():
            if self._released.get(id, (0, ""))[1] != digest:
                raise ValueError(f"the outline of message {position} is not the one that the journal names")

    def _digest(self, line: MessageLine) -> str:
        if isinstance(line.message, msgspec.Raw):
            body = bytes(line.message)
            wire.decode_message(body)
            digest = ids.body_hash(body)
            if isinstance(line.released, str) and _HASH.fullmatch(line.released):
                self._outlines[line.id] = line.position, digest
                return line.released
            if len(body) > LARGE:
                self._large.keep((self._branch, line.position), digest)
            return digest
        if isinstance(line.same, tuple):
            if line.same not in self._large:
                raise ValueError(f"message {line.position} repeats a large message that is not above it")
            return self._large[line.same]
        if isinstance(line.erased, str) and _HASH.fullmatch(line.erased):
            return line.erased
        raise ValueError(f"message {line.position} has no content")

    def _inside(self) -> None:
        if not self._branch:
            raise ValueError("it belongs to no branch")

    def _finish(self) -> None:
        if not self._branch:
            return
        fork = self.forks[self._branch]
        end = Fork(
            *(fork.branch, fork.name, fork.parent, fork.after, fork.after_edit),
            *(self._position, self._tip, self._seal, self._number, self._record),
        )
        if end != fork:
            raise ValueError(
                f"{fork.name!r} ends with message {self._position} and edit {self._number} here; in the tree it "
                f"ends with message {fork.position} and edit {fork.number}, or with other ones"
            )


def _check_tree(tree: TreeLine) -> None:
    known: dict[int, Fork] = {}
    for number, fork in enumerate(tree.branches, 1):
        parent = known.get(fork.parent)
        if fork.branch != number or (fork.parent and parent is None):
            raise ValueError(f"branch {fork.branch} of the tree is out of order")
        ends = (parent.position, parent.number) if parent else (0, 0)
        if not (0 <= fork.after <= min(ends[0], fork.position) and 0 <= fork.after_edit <= min(ends[1], fork.number)):
            raise ValueError(f"{fork.name!r} leaves its parent after the parent's end")
        known[number] = fork
    if not known or len({fork.name for fork in tree.branches}) < len(known):
        raise ValueError("a tree needs conversations, each with another name")
