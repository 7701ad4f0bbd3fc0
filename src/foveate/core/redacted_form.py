"""Redacted forms of stamps and records: all facts, and hashes in place of texts.

The hash chains of stamps and records cover the redacted form. A text in an edit is derived from messages, and an
application's metadata may be too. When a message is erased, these texts are erased with it, and their hashes remain. So
the chains stay verifiable, with every fact about the operations. An erased value holds its hash in place of the text,
and its redacted form is the same as before.
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
"""The text that a view shows in place of an erased text."""
_MARK = "#"
"""Prefix of the hash in erased metadata. Other metadata is a JSON object."""


def redacted_record(record: Record) -> bytes:
    """Return the bytes that a record's id covers: equal before and after its texts are erased."""
    return wire.encode_record(replace(record, edits=tuple(map(erased_edit, record.edits))))


def redacted_stamp(stamp: Stamp) -> bytes:
    """Return the bytes that a stamp's seal covers: equal with and without the application's metadata."""
    if not stamp.metadata or stamp.metadata.startswith(_MARK):
        return wire.encode_stamp(stamp)
    return wire.encode_stamp(erased_stamp(stamp))


def erased_stamp(stamp: Stamp) -> Stamp:
    """Return the stamp with a hash in place of the application's metadata."""
    if not stamp.metadata or stamp.metadata.startswith(_MARK):
        return stamp
    return replace(stamp, metadata=_MARK + _hash(stamp.metadata.encode("utf-8", "surrogatepass")))


def erased_edit(edit: Edit) -> Edit:
    """Return the edit with a hash in place of its texts. An edit without texts is returned unchanged."""
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
    """Return whether the texts of this edit are erased."""
    return isinstance(edit, Replace | Summarize) and bool(edit.erased)


def _hash_of(edit: Replace | Summarize) -> str:
    texts = edit.content if isinstance(edit, Replace) else edit.text
    try:
        return _hash(msgspec.json.encode((texts, edit.reason, edit.refused)))
    except UnicodeEncodeError:  # Half of a surrogate pair. Encoding refuses such an edit.
        return _hash(repr((texts, edit.reason, edit.refused)).encode("utf-8", "surrogatepass"))


def _hash(text: bytes) -> str:
    return blake2b(text, digest_size=20, person=b"foveate text 1").hexdigest()
