"""Ids of messages, stamps and journal records.

Each kind forms a hash chain. A message id is a tagged hash of *the hash of its body* and the id of its parent. Equal
messages after an equal past have equal ids, and the chain stays verifiable after a body is erased. Stamps and journal
records form chains of their own, so a fact about one conversation never changes a message id. Their chains cover only
the hashes of texts (`redacted_form.py`), so these texts can be erased too.

Hashes are BLAKE2b with 20 bytes, in hex. The BLAKE2 parameter `person` holds the purpose, so a hash of one kind never
equals a hash of another kind.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["NO_PARENT", "body_hash", "legacy_record_id", "message_id", "record_id", "seal"]

NO_PARENT = ""
"""The parent of the first element of every chain."""


def _tagged(tag: bytes, *parts: bytes) -> str:
    digest = blake2b(digest_size=20, person=tag)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def body_hash(body: bytes) -> str:
    """Return the hash of a message's canonical bytes (`wire.encode_message`)."""
    return _tagged(b"foveate body 1", body)


def message_id(parent: str, body: str) -> str:
    """Return the id of the message with body hash `body` after the message `parent`."""
    return _tagged(b"foveate msg 1", bytes.fromhex(parent), bytes.fromhex(body))


def seal(parent: str, message: str, stamp: bytes) -> str:
    """Return the link of the stamp chain for `message` after the link `parent`.

    `stamp`: its redacted form (`redacted_form.redacted_stamp`).
    """
    return _tagged(b"foveate stamp 1", bytes.fromhex(parent), bytes.fromhex(message), stamp)


def record_id(parent: str, redacted: bytes) -> str:
    """Return the id of a journal record after the record `parent`.

    `redacted`: its redacted form (`redacted_form.redacted_record`).
    """
    return _tagged(b"foveate edit 2", bytes.fromhex(parent), redacted)


def legacy_record_id(parent: str, body: bytes) -> str:
    """Return the id that early versions gave to a record with these canonical bytes. It is verified, never created."""
    return _tagged(b"foveate edit 1", bytes.fromhex(parent), body)
