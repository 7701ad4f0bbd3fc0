"""Heads that are stored outside of their database: a line of text that proves later that a history is unchanged.

A chain of hashes proves that nothing between its ends was changed, but not that the end is still the same. A head that
is out of reach of the database's owner reveals a history that was rewritten, cut or exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from ...errors import BadSetting
from ...ports import Erasure, Head

__all__ = ["SavedHead", "hash_of_erasures", "head_text", "heads_in"]

_VERSION = 1
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters of a name that end a line, steer a terminal or reverse the text after them. JSON can escape each."""


class SavedHead(Struct, frozen=True, tag="head", tag_field="is"):
    """The head of a conversation, for storage outside of its database. It contains no text of messages."""

    version: int
    tenant: str
    name: str
    root: int
    """The number of its tree of forks in its store. It is not compared: an import has another one."""
    position: int
    tip: str
    seal: str
    number: int
    record: str
    time: int
    """When it was taken, as its caller says; milliseconds since 1970."""
    erased: int = 0
    """The number of erasures in its tree."""
    erasures: str = ""
    """The hash of their records; "" if there are none."""


def head_text(head: Head, *, time: int = 0, erasures: Sequence[Erasure] = ()) -> str:
    """Return a head as one line of JSON, to be stored out of reach of everyone who may write to the database.

    `erasures`: the erasures in the conversation's tree (`Erases.erasures`), to prove them too.
    """
    ends = head.position, head.tip, head.seal, head.number, head.record
    proofs = len(erasures), hash_of_erasures(erasures)
    text = msgspec.json.encode(SavedHead(_VERSION, head.tenant, head.name, head.root, *ends, time, *proofs)).decode()
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def heads_in(text: str) -> list[SavedHead]:
    """Return the heads in a text, one per line. Raises BadSetting if a line is no head, or if there are none."""
    heads = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            head = msgspec.json.decode(line, type=SavedHead)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise BadSetting(f"Line {number} is no head: {error}. `foveate db head` prints heads.") from error
        if head.version != _VERSION:
            raise BadSetting(f"The head in line {number} has version {head.version}; known: {_VERSION}.")
        heads.append(head)
    if not heads:
        raise BadSetting("There is no head here. `foveate db head CONVERSATION` prints one.")
    return heads


def hash_of_erasures(erasures: Sequence[Erasure]) -> str:
    """Return the hash of these records with all their fields; "" if there are none."""
    if not erasures:
        return ""
    body = msgspec.json.encode([astuple(erasure) for erasure in erasures])
    return blake2b(body, digest_size=20, person=b"foveate erased 1").hexdigest()
