"""Outlines: what the chains of stamps and records are hashed over. All facts, and of what was said only its hash.

A text that stands for a message in the view is derived from what was said there, and so is what an application noted
of it: when the message is erased, these go too. Their hashes stay, so that the chains stay verifiable, with each fact
about what was done. What is erased holds its hash in its own place, and its outline is the same as before.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from . import wire
from .edits import Edit, Record, Replace, Summarize
from .messages import Text
from .stamps import Stamp

__all__ = ["ERASED", "erased_edit", "erased_stamp", "is_erased", "redacted_record", "redacted_stamp"]

ERASED = "[erased]"
"""Stands in a view where the text that was shown has been erased."""
_MARK = "#"
"""What the hash of erased facts of an application begins with, where else their JSON object stands."""


def redacted_record(record: Record) -> bytes:
    """What a record's id is made of: the same for the record as it was committed and with its texts erased."""
    return wire.encode_record(replace(record, edits=tuple(map(erased_edit, record.edits))))


def redacted_stamp(stamp: Stamp) -> bytes:
    """What a stamp's seal is made of: the same with and without an application's own facts."""
    if not stamp.metadata or stamp.metadata.startswith(_MARK):
        return wire.encode_stamp(stamp)
    return wire.encode_stamp(erased_stamp(stamp))


def erased_stamp(stamp: Stamp) -> Stamp:
    """The stamp without the application's own facts, but for their hash."""
    if not stamp.metadata or stamp.metadata.startswith(_MARK):
        return stamp
    return replace(stamp, metadata=_MARK + _hash(stamp.metadata.encode("utf-8", "surrogatepass")))


def erased_edit(edit: Edit) -> Edit:
    """The edit without the texts that were written for it, but for their hash; an edit that has none as it is."""
    match edit:
        case Replace() | Summarize() if edit.erased:
            return edit
        case Replace():
            content = (Text(ERASED),)
            return replace(edit, content=content, reason="", refused=(), erased=_hash_of(edit))
        case Summarize():
            return replace(edit, text=ERASED, reason="", refused=(), erased=_hash_of(edit), outlives=False)
    return edit


def is_erased(edit: Edit) -> bool:
    """Whether the texts of this edit have been erased."""
    return isinstance(edit, Replace | Summarize) and bool(edit.erased)


def _hash_of(edit: Replace | Summarize) -> str:
    said = edit.content if isinstance(edit, Replace) else edit.text
    try:
        return _hash(msgspec.json.encode((said, edit.reason, edit.refused)))
    except UnicodeEncodeError:  # Half of a surrogate pair: such an edit is refused where it is encoded.
        return _hash(repr((said, edit.reason, edit.refused)).encode("utf-8", "surrogatepass"))


def _hash(said: bytes) -> str:
    return blake2b(said, digest_size=20, person=b"foveate text 1").hexdigest()
