"""Postings of a word index: which messages of a run of consecutive ones contain which key, packed into few bytes.

A run is a mapping from keys to gaps. The first gap of a key is the distance of its first message from the first
message of the run, each other gap is the distance from the message before. So two runs of neighbouring messages are
merged without reading a single position. Packed, the sorted keys come first, then the number of gaps of each key, then
the gaps; zlib compresses it all. Few new messages are a piece, which lists the keys of each.

Places within a text are not stored: they would be four of five bytes.
"""

from __future__ import annotations

import re
import struct
import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from operator import sub

from .codec import DamagedBody

__all__ = ["SPAN_MAX", "PackedPiece", "PackedRun", "Run", "gather", "merge", "pack_piece", "pack_run", "without"]

SPAN_MAX = 65_535
"""Messages of a run at most: a gap and a number of gaps take two bytes."""

Run = dict[str, "array[int]"]
"""The gaps of each key."""

_KEY = re.compile(r"\S+")
_HEADER = struct.Struct("<BII")
_VERSION = 1
_LEVEL = 6
"""Of zlib: level 9 saves one part in a hundred, level 1 costs a tenth more."""


def gather(first: int, messages: Iterable[tuple[int, Iterable[str]]]) -> Run:
    """Return the run of these messages, in order of their positions, each with its keys."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position, keys in messages:
        for key in keys:
            found[key].append(position)
    return {key: _gaps(positions, first) for key, positions in found.items()}


def merge(runs: Iterable[tuple[int, Run]]) -> Run:
    """Return one run for several, each with its first position, in order of these. The first one is changed."""
    merged: Run = {}
    begin = -1
    for first, run in runs:
        if begin < 0:
            begin, merged = first, run
            continue
        for key, gaps in run.items():
            known = merged.get(key)
            gap = gaps[0] + first - begin - (sum(known) if known else 0)
            if known is None:
                gaps[0] = gap
                merged[key] = gaps
            elif gap > 0:
                gaps[0] = gap
                known.extend(gaps)
            else:  # A message between those of an earlier run.
                merged[key] = _gaps(sorted({*_positions(known, begin), *_positions(gaps, first)}), begin)
    return merged


def without(run: Run, first: int, messages: Mapping[int, Iterable[str]]) -> bool:
    """Remove messages, each by its position and keys, from a run; return whether it had any of them."""
    gone: dict[str, set[int]] = {}
    for position, keys in messages.items():
        for key in keys:
            gone.setdefault(key, set()).add(position)
    changed = False
    for key, positions in gone.items():
        if key not in run:
            continue
        before = _positions(run[key], first)
        rest = [position for position in before if position not in positions]
        if len(rest) < len(before):
            changed = True
            del run[key]
            if rest:
                run[key] = _gaps(rest, first)
    return changed


def pack_run(run: Mapping[str, array[int]]) -> bytes:
    """Return the stored form of a run."""
    keys = sorted(run)
    text = "\n".join(keys).encode("utf-8", "surrogatepass")
    counts = array("H", [len(run[key]) for key in keys])
    gaps = array("H")
    for key in keys:
        gaps.extend(run[key])
    header = _HEADER.pack(_VERSION, len(keys), len(gaps))
    return zlib.compress(b"".join((header, *_planes(counts), *_planes(gaps), text)), _LEVEL)


class PackedRun:
    """A stored run, of which some keys are read."""

    def __init__(self, first: int, stored: bytes) -> None:
        """Raises DamagedBody if the stored form was changed."""
        try:
            raw = zlib.decompress(stored)
            _, size, total = _HEADER.unpack_from(raw)
            begin, end = _HEADER.size, _HEADER.size + 2 * (size + total)
            if len(raw) < end:
                raise ValueError("it is too short")
            self._text = "\n" + raw[end:].decode("utf-8", "surrogatepass") + "\n"
        except (zlib.error, struct.error, ValueError, TypeError) as error:
            raise DamagedBody(f"a run of the word index is damaged: {error}") from error
        self._first = first
        self._counts = _array(raw, begin, size)
        self._gaps = _array(raw, begin + 2 * size, total)

    def keys(self) -> list[str]:
        """Return the keys, sorted."""
        return self._text[1:-1].split("\n") if len(self._counts) else []

    def keys_with(self, beginning: str) -> list[str]:
        """Return the keys that begin with these letters."""
        begin = self._text.find("\n" + beginning)
        if begin < 0:
            return []
        end = self._text.find("\n", self._text.rfind("\n" + beginning) + 1)
        return self._text[begin + 1 : end].split("\n")

    def positions(self, key: str) -> list[int]:
        """Return the positions of the messages that contain a key, in order."""
        at = self._text.find(f"\n{key}\n")
        if at < 0:
            return []
        index = self._text.count("\n", 0, at)
        begin = sum(self._counts[:index])
        return _positions(self._gaps[begin : begin + self._counts[index]], self._first)

    def run(self) -> Run:
        """Return everything."""
        begin, run = 0, Run()
        for key, count in zip(self.keys(), self._counts, strict=True):
            run[key] = self._gaps[begin : begin + count]
            begin += count
        return run

    def holding(self, positions: Collection[int]) -> set[int]:
        """Return those of these positions whose messages contain any key."""
        wanted = set(positions)
        return {at for gaps in self.run().values() for at in wanted.intersection(_positions(gaps, self._first))}


def pack_piece(messages: Iterable[Iterable[str]]) -> bytes:
    """Return the stored form of a piece: the keys of consecutive messages, one after the other.

    It is written in a third of the time of a run, and takes up to twice its bytes.
    """
    lines = "\n".join([f" {' '.join(sorted(keys))} " for keys in messages])
    return zlib.compress(lines.encode("utf-8", "surrogatepass"), _LEVEL)


class PackedPiece:
    """A stored piece."""

    def __init__(self, first: int, stored: bytes) -> None:
        """Raises DamagedBody if the stored form was changed."""
        try:
            self._text = zlib.decompress(stored).decode("utf-8", "surrogatepass")
        except (zlib.error, ValueError, TypeError) as error:
            raise DamagedBody(f"a piece of the word index is damaged: {error}") from error
        self._first = first

    def messages(self, pattern: re.Pattern[str] = _KEY) -> list[list[str]]:
        """Return the keys of each message, in order; with a pattern those that match it, after a space."""
        return [pattern.findall(line) for line in self._text.split("\n")]

    def keys_with(self, beginning: str) -> set[str]:
        """Return the keys that begin with these letters."""
        return set(re.findall(rf" ({re.escape(beginning)}\S*)", self._text))

    def positions(self, key: str) -> list[int]:
        """Return the positions of the messages that contain a key, in order."""
        found: list[int] = []
        wanted, text, position, counted = f" {key} ", self._text, self._first, 0
        at = text.find(wanted)
        while at >= 0:
            position += text.count("\n", counted, at)
            counted = at
            found.append(position)
            at = text.find(wanted, at + 1)
        return found

    def holding(self, positions: Collection[int]) -> set[int]:
        """Return those of these positions whose messages contain any key."""
        messages = self.messages()
        return {at for at in positions if 0 <= at - self._first < len(messages) and messages[at - self._first]}


def _gaps(positions: list[int], first: int) -> array[int]:
    return array("H", (positions[0] - first, *map(sub, positions[1:], positions)))


def _positions(gaps: array[int], first: int) -> list[int]:
    return list(accumulate(gaps, initial=first))[1:]


def _planes(numbers: array[int]) -> tuple[bytes, bytes]:
    """Return the low bytes, then the high bytes, most of which are 0."""
    raw = numbers.tobytes()
    return (raw[0::2], raw[1::2]) if sys.byteorder == "little" else (raw[1::2], raw[0::2])


def _array(raw: bytes, begin: int, size: int) -> array[int]:
    mixed = bytearray(2 * size)
    low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
    mixed[low::2], mixed[high::2] = raw[begin : begin + size], raw[begin + size : begin + 2 * size]
    numbers = array("H")
    numbers.frombytes(bytes(mixed))
    return numbers
