"""The word index of a SQL database: runs of messages and their keys, in the table `said`.

The newest messages of a branch are in pieces with all their keys. When they fill a block, its keys are divided into
buckets, each a row, part by part while the next block fills, or all at once before a search. Later, eight rows of a
bucket become one, and eight of these again. So a search reads a few rows for each key, a step writes a bounded number
of them, and nothing of another conversation is read. A bucket holds keys of one class of first letters, so that looking
for typing errors reads one part in eight.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from zlib import crc32

from ..lineage import Range
from ..postings import PackedPiece, PackedRun, Run, gather, merge, pack_piece, pack_run, without
from . import statements as sql
from .driver import Session

__all__ = [
    "BLOCK",
    "WordReader",
    "add_words",
    "block_end",
    "drop_words",
    "holding_words",
    "insert_words",
    "remove_words",
]

BLOCK = 256
"""Messages of a block: its positions end at a multiple of it."""
_MERGED = 8
"""Rows of a bucket that become one. Twice, so that the largest run has 16,384 messages."""
_PIECE_MIN = 16
"""Messages of a piece, at least, before the next one begins."""
_PIECES = -1
"""The bucket of the pieces."""
_LETTERS, _SIGNS = 16, 8
"""Classes of first letters, and of the two letters after; their product is the number of buckets."""
_PARTS = 8
"""Parts of the buckets; the steps of the next block divide a block part by part."""

Branch = tuple[str, int, int]
"""The key of a branch: tenant, root, branch."""


def block_end(position: int) -> int:
    """Return the last position of the block that contains a position."""
    return -(-position // BLOCK) * BLOCK


def add_words(
    session: Session, branch: Branch, messages: Sequence[tuple[int, Collection[str]]], first: int, *, at_once: bool
) -> None:
    """Add messages of one block by position and keys, from `first` on, the position after those that the index has.

    `at_once`: whether to divide the block with the step that completes it. Otherwise the steps of the next block divide
    it, each a part, so that none takes much longer than the others.
    """
    last, end = messages[-1][0], block_end(first)
    _divide_pieces(session, branch, first, last)
    if at_once and last == end:
        pieces = session.rows(sql.WORDS, (*branch, _PIECES, end - BLOCK + 1, end))
        whole = [
            message for begin, _, body in pieces for message in enumerate(PackedPiece(begin, body).messages(), begin)
        ]
        session.each(sql.DROP_WORDS, [(*branch, _PIECES, begin) for begin, *_ in pieces])
        begin = pieces[0][0] if pieces else first
        _divide(session, branch, (begin, end), gather(begin, [*whole, *messages]), range(_LETTERS * _SIGNS))
        return
    by_position = dict(messages)
    keys: list[Collection[str]] = [by_position.get(at, ()) for at in range(first, last + 1)]
    newest = session.rows(sql.NEWEST_WORDS, (*branch, _PIECES))
    if newest and newest[0][1] == first - 1 and first - newest[0][0] < _PIECE_MIN and newest[0][0] > end - BLOCK:
        begin, _, body = newest[0]
        packed = pack_piece([*PackedPiece(begin, body).messages(), *keys])
        session.rows(sql.SET_WORDS, (last, packed, *branch, _PIECES, begin))
    else:
        session.each(sql.ADD_WORDS, [(*branch, _PIECES, first, last, pack_piece(keys))])


def remove_words(session: Session, branch: Branch, messages: Mapping[int, Collection[str]]) -> None:
    """Remove messages, each by its position and the keys with which it was added."""
    _set_in_pieces(session, branch, dict.fromkeys(messages, ()))
    by_bucket: defaultdict[int, dict[int, list[str]]] = defaultdict(dict)
    for position, keys in messages.items():
        for key in keys:
            by_bucket[_bucket(key)].setdefault(position, []).append(key)
    low, high = min(messages, default=0), max(messages, default=0)
    for bucket, wanted in sorted(by_bucket.items()):
        for first, last, body in session.rows(sql.WORDS, (*branch, bucket, low, high)):
            run = PackedRun(first, body).run()
            if without(run, first, {at: keys for at, keys in wanted.items() if first <= at <= last}):
                _replace(session, branch, bucket, (first, last), pack_run(run) if run else None)


def insert_words(session: Session, branch: Branch, position: int, keys: Collection[str]) -> None:
    """Add one message between others, such as the outline of a message that was removed."""
    parts = _PARTS
    if _set_in_pieces(session, branch, {position: keys}):  # Buckets that are not divided yet get it from there.
        indexed = session.rows(sql.MARK, branch)[0][0]
        parts = _parts_done(indexed, block_end(position))
    by_bucket: defaultdict[int, list[str]] = defaultdict(list)
    for key in keys:
        if (bucket := _bucket(key)) in _buckets(range(parts)):
            by_bucket[bucket].append(key)
    for bucket, some in sorted(by_bucket.items()):
        rows = session.rows(sql.WORDS, (*branch, bucket, position, position))
        added = gather(position, [(position, some)])
        if rows:
            first, last, body = rows[0]
            run = merge([(first, PackedRun(first, body).run()), (position, added)])
            session.rows(sql.SET_WORDS, (last, pack_run(run), *branch, bucket, first))
        else:
            session.each(sql.ADD_WORDS, [(*branch, bucket, position, position, pack_run(added))])


def _set_in_pieces(session: Session, branch: Branch, messages: Mapping[int, Collection[str]]) -> bool:
    """Set the keys of messages in pieces; return whether a piece has any of them."""
    rows = session.rows(sql.WORDS, (*branch, _PIECES, min(messages), max(messages))) if messages else []
    changed = False
    for first, last, body in rows:
        keys: list[Collection[str]] = [*PackedPiece(first, body).messages()]
        here = {at: some for at, some in messages.items() if first <= at <= last}
        for at, some in here.items():
            keys[at - first] = some
        if here:
            changed = True
            _replace(session, branch, _PIECES, (first, last), pack_piece(keys))
    return changed


def _replace(session: Session, branch: Branch, bucket: int, span: tuple[int, int], body: bytes | None) -> None:
    """Drop a row and add it again: SQLite frees and overwrites a page when rows leave it, not when they shrink."""
    session.rows(sql.DROP_WORDS, (*branch, bucket, span[0]))
    if body is not None:
        session.each(sql.ADD_WORDS, [(*branch, bucket, *span, body)])


def drop_words(session: Session, branch: Branch) -> None:
    """Remove everything of a branch: it will be indexed again."""
    session.rows(sql.DROP_ALL_WORDS, branch)
    session.rows(sql.DROP_MARK, branch)


def holding_words(session: Session, branch: Branch, positions: Collection[int]) -> set[int]:
    """Return those of these positions whose messages have a key in the index. Reads all runs around them."""
    held: set[int] = set()
    if positions:
        low, high = min(positions), max(positions)
        for (bucket,) in session.rows(sql.BUCKETS, (*branch, low, high)):
            for first, last, body in session.rows(sql.WORDS, (*branch, bucket, low, high)):
                here = [at for at in positions if first <= at <= last]
                held |= _unpacked(bucket, first, body).holding(here)
    return held


class WordReader:
    """Reads the index of one conversation, which consists of parts of branches, in one transaction."""

    def __init__(self, session: Session, parts: Sequence[tuple[Range, Branch]], more: Sequence[PackedPiece]) -> None:
        """`parts`: in order. `more`: pieces that the index lacks yet, all of them of this conversation."""
        self._session, self._parts, self._more = session, parts, more
        self._runs: dict[int, list[tuple[Range, PackedRun | PackedPiece]]] = {}
        """By bucket, in order."""

    def positions(self, keys: Collection[str]) -> dict[str, list[int]]:
        buckets = {key: _bucket(key) for key in keys}
        self._load({_PIECES, *buckets.values()})
        return {key: self._positions(key, bucket) for key, bucket in buckets.items()}

    def keys_from(self, beginnings: Collection[str]) -> Iterator[str]:
        buckets = {_letter(letter) * _SIGNS + sign for letter in beginnings for sign in range(_SIGNS)}
        self._load({_PIECES, *buckets})
        for bucket in (_PIECES, *buckets):
            for _, run in self._runs[bucket]:
                for letter in beginnings:
                    yield from run.keys_with(letter)
        for run in self._more:
            for letter in beginnings:
                yield from run.keys_with(letter)

    def _positions(self, key: str, bucket: int) -> list[int]:
        found, in_pieces = self._positions_of(key, bucket), self._positions_of(key, _PIECES)
        for run in self._more:
            in_pieces += run.positions(key)
        found.sort()  # Parts of several branches are each in order.
        if in_pieces:  # A block that is being divided is in both.
            at = bisect_left(found, min(in_pieces))
            found[at:] = sorted({*found[at:], *in_pieces})
        return found

    def _positions_of(self, key: str, bucket: int) -> list[int]:
        found: list[int] = []
        for part, run in self._runs[bucket]:
            some = run.positions(key)
            if some and not part.first <= some[0] <= some[-1] <= part.last:
                some = [at for at in some if part.first <= at <= part.last]
            found += some
        return found

    def _load(self, buckets: set[int]) -> None:
        missing = sorted(buckets.difference(self._runs))
        asked = [
            (part, bucket, (sql.WORDS, (*branch, bucket, part.first, part.last)))
            for bucket in missing
            for part, branch in self._parts
        ]
        self._runs.update({bucket: [] for bucket in missing})
        rows = self._session.ask(*(query for _, _, query in asked)) if asked else []
        for (part, bucket, _), some in zip(asked, rows, strict=True):
            self._runs[bucket] += [(part, _unpacked(bucket, first, body)) for first, _, body in some]


def _divide_pieces(session: Session, branch: Branch, first: int, last: int) -> None:
    """Divide the block before, as far as the index has come in the block of these messages.

    The mark of the branch therefore shows which buckets are divided. The pieces stay until the last of them is.
    """
    end = block_end(first) - BLOCK
    parts = range(_parts_done(first - 1, end), _parts_done(last, end))
    pieces = session.rows(sql.WORDS, (*branch, _PIECES, end - BLOCK + 1, end)) if parts and end else []
    if not pieces:
        return  # It was divided at once, or is of another branch.
    pattern = _keys_of_parts(parts)
    messages = [
        (at, keys)
        for begin, _, body in pieces
        for at, keys in enumerate(PackedPiece(begin, body).messages(pattern), begin)
    ]
    _divide(session, branch, (pieces[0][0], end), gather(pieces[0][0], messages), _buckets(parts))
    if parts.stop == _PARTS:
        session.each(sql.DROP_WORDS, [(*branch, _PIECES, begin) for begin, *_ in pieces])


def _divide(session: Session, branch: Branch, span: tuple[int, int], run: Run, buckets: range) -> None:
    """Add these buckets of a block, and merge rows of some, others in each block: so each block costs the same."""
    divided: defaultdict[int, Run] = defaultdict(dict)
    for key, gaps in run.items():
        if (bucket := _bucket(key)) in buckets:
            divided[bucket][key] = gaps
    session.each(sql.ADD_WORDS, [(*branch, bucket, *span, pack_run(divided[bucket])) for bucket in sorted(divided)])
    last = span[1]
    for bucket in buckets:
        turn = last // BLOCK + bucket
        for blocks in (_MERGED * _MERGED, _MERGED):
            if turn % blocks == 0:
                _merge(session, branch, bucket, max(1, last - blocks * BLOCK + 1), last)
                break


def _parts_done(indexed: int, end: int) -> int:
    """Return how many parts of the block that ends at `end` are divided when this position is indexed."""
    return max(0, min(_PARTS, (indexed - end) * _PARTS // BLOCK))


def _buckets(parts: range) -> range:
    size = _LETTERS * _SIGNS // _PARTS
    return range(parts.start * size, parts.stop * size)


@lru_cache
def _keys_of_parts(parts: range) -> re.Pattern[str]:
    """Return a pattern for the keys of these parts; it also matches others with a first letter that is not ASCII."""
    letters = "".join(map(chr, range(ord("!"), 128)))
    wanted = [letter for letter in letters if _letter(letter) * _SIGNS in _buckets(parts)]
    return re.compile(rf"(?<= )[{re.escape(''.join(wanted))}\x80-\U0010ffff]\S*")


def _merge(session: Session, branch: Branch, bucket: int, first: int, last: int) -> None:
    rows = [row for row in session.rows(sql.WORDS, (*branch, bucket, first, last)) if row[0] >= first]
    if len(rows) < 2:
        return
    run = merge((begin, PackedRun(begin, body).run()) for begin, _, body in rows)
    session.each(sql.DROP_WORDS, [(*branch, bucket, begin) for begin, *_ in rows])
    session.each(sql.ADD_WORDS, [(*branch, bucket, rows[0][0], last, pack_run(run))])


def _unpacked(bucket: int, first: int, body: bytes) -> PackedRun | PackedPiece:
    return PackedPiece(first, body) if bucket == _PIECES else PackedRun(first, body)


def _bucket(key: str) -> int:
    return _letter(key[0]) * _SIGNS + crc32(key[1:3].encode("utf-8", "surrogatepass")) % _SIGNS


def _letter(letter: str) -> int:
    return ord(letter) % _LETTERS
