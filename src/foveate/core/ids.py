"""Ids of messages, stamps and journal records, and the redacted forms that they cover.

Each kind forms a hash chain. A message id is a tagged hash of *the hash of its body* and the id of its parent. Equal
messages after an equal past have equal ids, and the chain stays verifiable after a body is erased. Stamps and journal
records form chains of their own, so a fact about one conversation never changes a message id.

The chains of stamps and records cover redacted forms: all facts, and hashes in place of texts. A text in an edit is
derived from messages, and an application's metadata may be too. When a message is erased, these texts are erased with
it, and their hashes remain. An erased value holds its hash in place of the text, so its redacted form is the same as
before.

Hashes are BLAKE2b with 20 bytes, in hex. The BLAKE2 parameter `person` holds the purpose, so a hash of one kind never
equals a hash of another kind.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from . import wire
from .edits import Edit, Record, Replace, Summarize
from .messages import Text
from .stamps import Stamp

__all__ = [
    "ERASED",
    "NO_PARENT",
    "body_hash",
    "erased_edit",
    "erased_stamp",
    "is_erased",
    "is_erased_metadata",
    "legacy_record_id",
    "message_id",
    "record_id",
    "redacted_record",
    "redacted_stamp",
    "seal",
]

NO_PARENT = ""
"""The parent of the first element of every chain."""
ERASED = "[erased]"
"""The text that a view shows in place of an erased text."""
_MARK = "#"
"""Prefix of the hash in erased metadata. Other metadata is a JSON object."""


def _tagged(tag: bytes, *parts: bytes) -> str:
    return blake2b(b"".join(parts), digest_size=20, person=tag).hexdigest()


def body_hash(body: bytes) -> str:
    """Return the hash of a message's canonical bytes (`wire.encode_message`)."""
    return _tagged(b"foveate body 1", body)


def message_id(parent: str, body: str) -> str:
    """Return the id of the message with body hash `body` after the message `parent`."""
    return _tagged(b"foveate msg 1", bytes.fromhex(parent), bytes.fromhex(body))


def seal(parent: str, message: str, stamp: bytes) -> str:
    """Return the link of the stamp chain for `message` after the link `parent`.

    `stamp`: its redacted form (`redacted_stamp`).
    """
    return _tagged(b"foveate stamp 1", bytes.fromhex(parent), bytes.fromhex(message), stamp)


def record_id(parent: str, redacted: bytes) -> str:
    """Return the id of a journal record after the record `parent`.

    `redacted`: its redacted form (`redacted_record`).
    """
    return _tagged(b"foveate edit 2", bytes.fromhex(parent), redacted)


def legacy_record_id(parent: str, body: bytes) -> str:
    """Return the id that early versions gave to a record with these canonical bytes. It is verified, never created."""
    return _tagged(b"foveate edit 1", bytes.fromhex(parent), body)


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


def is_erased_metadata(metadata: str) -> bool:
    """Return whether this stands for metadata that was erased."""
    return metadata.startswith(_MARK)


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
