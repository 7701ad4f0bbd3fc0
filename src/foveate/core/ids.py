"""Identity: what a message, a stamp and a journal record are called.

All three are chains. A message's id is a tagged hash of *the hash of its body* and its parent's id: so the same
words after the same past have the same id everywhere, and a chain stays verifiable after a body was erased. Stamps
and journal records are chained alike, apart from the messages, so that a fact of one conversation never changes
what was said; of texts in them it is the hash that is hashed (`redacted_form.py`), so that they can be erased too.

Hashes are BLAKE2b, 20 bytes, in hex, with the purpose as BLAKE2's `person`, so that one kind can never pass for
another.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["NO_PARENT", "body_hash", "legacy_record_id", "message_id", "record_id", "seal"]

NO_PARENT = ""
"""The id before the first one of any chain."""


def _tagged(tag: bytes, *pieces: bytes) -> str:
    digest = blake2b(digest_size=20, person=tag)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def body_hash(body: bytes) -> str:
    """The hash of a message's canonical bytes (`wire.encode_message`)."""
    return _tagged(b"foveate body 1", body)


def message_id(parent: str, body: str) -> str:
    """The id of the message whose body hashes to `body`, said after the message `parent`."""
    return _tagged(b"foveate msg 1", bytes.fromhex(parent), bytes.fromhex(body))


def seal(parent: str, message: str, stamp: bytes) -> str:
    """The link of the chain of stamps for `message`, after the link `parent`. `stamp`: its outline."""
    return _tagged(b"foveate stamp 1", bytes.fromhex(parent), bytes.fromhex(message), stamp)


def record_id(parent: str, outline: bytes) -> str:
    """The id of a journal record with this outline (`outlines.redacted_record`), after the record `parent`."""
    return _tagged(b"foveate edit 2", bytes.fromhex(parent), outline)


def legacy_record_id(parent: str, body: bytes) -> str:
    """The id that a record with these canonical bytes had before records had outlines. Still verified, never made."""
    return _tagged(b"foveate edit 1", bytes.fromhex(parent), body)
