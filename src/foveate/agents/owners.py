"""Names for whoever is at work, and what this machine knows of whether one still is.

A name says which process of which machine it is, so that work whose process has ended is known to be left behind, at
once and without any clock. Of other machines nothing is known. Knows nothing of conversations.
"""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Literal

__all__ = ["ended", "known_of", "new_owner"]

_here: set[str] = set()
"""Whoever is at work in this process."""


def new_owner() -> str:
    """A name that nobody had before. It counts as at work until `ended` is told of it."""
    owner = f"{_machine()}:{os.getpid()}:{_began(os.getpid())}:{uuid.uuid4().hex}"
    _here.add(owner)
    return owner


def ended(owner: str) -> None:
    """The work under this name has ended, well or badly."""
    _here.discard(owner)


def known_of(owner: str) -> Literal["lives", "dead", "unknown"]:
    """What is known of one who is at work, or was."""
    parts = owner.split(":")
    if len(parts) != 4 or parts[0] != _machine() or not parts[1].isdecimal():
        return "unknown"
    process = int(parts[1])
    if process == os.getpid():
        return "lives" if owner in _here else "dead"
    return "lives" if _runs(process, parts[2]) else "dead"


@cache
def _machine() -> str:
    """A name of this machine since it was started; of a container, where that has processes of its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        said = f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # Not Linux.
        said = f"{socket.gethostname()} {uuid.getnode()}"
    return blake2b(said.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _runs(process: int, began: str) -> bool:
    """Whether a process of this machine runs that began then."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # It is there, and somebody else's.
        return True
    return _began(process) in (began, "")


def _began(process: int) -> str:
    """When a process began, in the system's own count, so that another one of the same number is told apart; "dead" for
    one that has ended and was not waited for, and "" where the system does not tell.
    """
    try:
        facts = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "dead" if facts[0] in "ZX" else facts[19]
    except (OSError, IndexError):
        return ""
