"""The lock on a conversation: only one agent works in a conversation at a time.

An agent waits while another one works. It takes over the lock of a dead owner: at once if the owner's process is known
to have ended, else after a time without heartbeats. That time is measured with this process's own stopwatch, and a gap
in which this process could not look counts little. An owner that was wrongly taken for dead learns it at its next
write, which the store refuses.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from weakref import WeakValueDictionary

from ..core.runs import LockHolder
from ..errors import ConversationBusy
from .effects import Call, Routine, Sleep

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation

__all__ = ["LOCK_TIMEOUT", "ConversationLock", "Heartbeat", "forget_owner", "heartbeat_of", "new_owner", "owner_state"]

T = TypeVar("T")
_log = logging.getLogger("foveate")

LOCK_TIMEOUT = 30.0
"""Default seconds to wait for another agent."""
_SILENCE = {"unknown": 20.0, "alive": 60.0}
"""Seconds without a heartbeat after which an owner counts as dead, by the state of its process. An owner on another
machine has missed four heartbeats then; a local process that exists may be busy.
"""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two looks: short at first, as most work is short."""
_LOOK_MAX = 5.0
"""Seconds of silence that one look can add: a database that stood still for longer delayed the heartbeats as well."""
_INTERVAL = 5.0
"""Seconds between two heartbeats."""


class ConversationLock:
    """One agent's lock on its conversation. It is taken for each piece of work, and released after it."""

    def __init__(
        self,
        conversation: Conversation | AsyncConversation,
        *,
        lock_timeout: float = LOCK_TIMEOUT,
        stopwatch: Callable[[], float] = time.monotonic,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        """`lock_timeout`: seconds to wait for another agent. `stopwatch`: monotonic seconds. `heartbeat`: default is
        that of the conversation's store.
        """
        self._chat, self._timeout, self._stopwatch, self._heartbeat = conversation, lock_timeout, stopwatch, heartbeat
        self.owner = ""
        """The owner's name, new for each piece of work."""
        self.took_over = False
        """Whether the owner before this one left the conversation in the middle of its work."""

    def hold(self, routine: Callable[[], Routine[T]], content: object = None) -> Routine[T]:
        """Run a routine while holding the lock. Raises ConversationBusy if another agent works for too long.

        `content`: the input that the routine appends. If the program's list became shorter, the conversation first goes
        back to its end; after that, an append would count as a continuation of what the list lacks.
        """
        self.owner, self.took_over = new_owner(), False
        try:
            yield from self._acquire()
            if (yield Call(partial(self._chat._agent.go_back, content, owner=self.owner))):
                yield from self._acquire()  # A lock belongs to one branch, and the conversation has another one now.
            store, beat = self._chat._agent.heartbeat(self.owner)
            heartbeat = self._heartbeat or heartbeat_of(store)
            try:
                heartbeat.start(self.owner, beat)
                return (yield from routine())
            finally:
                heartbeat.stop(self.owner)
        finally:
            forget_owner(self.owner)
            yield from self._release()

    def _acquire(self) -> Routine[None]:
        start = looked = self._stopwatch()
        silence = 0.0
        seen: LockHolder | None = None
        dead: LockHolder | None = None
        pause, has_moved = _FIRST_PAUSE, False
        while True:
            holder: LockHolder = yield Call(partial(self._chat._agent.acquire_lock, self.owner, dead))
            if holder.owner == self.owner:
                self.took_over = dead is not None
                return
            now, state = self._stopwatch(), owner_state(holder.owner)
            silence, looked = silence + min(now - looked, _LOOK_MAX), now
            if holder != seen:
                has_moved, seen, silence = has_moved or seen is not None, holder, 0.0
            dead = holder if state == "dead" or silence >= _SILENCE[state] else None
            if dead is not None:
                continue
            # An owner that shows no life may be dead: wait until that is known.
            if now - start >= self._timeout and (has_moved or state == "alive"):
                raise ConversationBusy(
                    f"Conversation {self._chat._agent.head.label} is busy: another agent did not finish within "
                    f"{self._timeout:g} seconds. Nothing was done; try again later, or raise lock_timeout=.",
                    holder.owner,
                )
            yield Sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _release(self) -> Routine[None]:
        """Release the lock. If that cannot be stored, others find out by `owner_state`."""
        try:
            yield Call(partial(self._chat._agent.release_lock, self.owner))
        except Exception as error:
            _log.warning("%s: the lock could not be released: %s", self._chat._agent.head.log_name, error)


# -------------------------------------------------------------------------------------------------------------- owners

_owners: set[str] = set()
"""Owners in this process."""


def new_owner() -> str:
    """Return a unique name, which counts as alive until `forget_owner`. It names the machine and the process."""
    owner = f"{_machine()}:{os.getpid()}:{_process_start(os.getpid())}:{uuid.uuid4().hex}"
    _owners.add(owner)
    return owner


def forget_owner(owner: str) -> None:
    """Mark the work under this name as ended."""
    _owners.discard(owner)


def owner_state(owner: str) -> Literal["alive", "dead", "unknown"]:
    """Return what this machine knows of an owner. Owners on other machines are unknown."""
    parts = owner.split(":")
    if len(parts) != 4 or parts[0] != _machine() or not parts[1].isdecimal():
        return "unknown"
    process = int(parts[1])
    if process == os.getpid():
        return "alive" if owner in _owners else "dead"
    return "alive" if _is_running(process, parts[2]) else "dead"


@cache
def _machine() -> str:
    """Return a name of this machine since it booted, or of a container that has its own processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        facts = f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # Not Linux.
        facts = f"{socket.gethostname()} {uuid.getnode()}"
    return blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _is_running(process: int, start: str) -> bool:
    """Return whether the local process that started then is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # It exists, and belongs to another user.
        return True
    return _process_start(process) in (start, "")


def _process_start(process: int) -> str:
    """Return when a process started, in the system's own count, to tell apart processes with the same number.

    "dead" for a zombie, "" if the system does not provide it.
    """
    try:
        facts = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "dead" if facts[0] in "ZX" else facts[19]
    except (OSError, IndexError):
        return ""


# ---------------------------------------------------------------------------------------------------------- heartbeats


class Heartbeat:
    """Sends heartbeats for all active owners from one background thread. The thread exits when no owner is left.

    A tool that takes an hour writes nothing meanwhile, and its owner must not be taken for dead.
    """

    def __init__(self, interval: float = _INTERVAL) -> None:
        self._interval = interval
        self.reset()

    def reset(self) -> None:
        """Forget all owners. Needed in a forked child: the parent sends its heartbeats with its own connections."""
        # Reentrant: garbage collection in this thread may close a stream, which calls `stop`.
        self._lock = threading.RLock()
        self._beats: dict[str, Callable[[], bool]] = {}
        self._thread: threading.Thread | None = None

    def start(self, owner: str, beat: Callable[[], bool]) -> None:
        """Call `beat` regularly until it returns False or `stop` is called."""
        with self._lock:
            self._beats[owner] = beat
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="foveate-heartbeat", daemon=True)
                thread.start()
                self._thread = thread  # Set after the start: if no thread is available, the next owner tries again.

    def stop(self, owner: str) -> None:
        """Send no more heartbeats for this owner. One that is in progress is not interrupted."""
        with self._lock:
            self._beats.pop(owner, None)

    def beat(self) -> None:
        """Send one heartbeat for each owner."""
        with self._lock:
            beats = self._beats.copy()
        for owner, beat in beats.items():
            try:
                if not beat():  # Another owner has taken over.
                    self.stop(owner)
            except Exception as error:  # The next heartbeat may succeed.
                _log.debug("a heartbeat failed: %s", error)

    def _run(self) -> None:
        never = threading.Event()  # Its wait is a sleep that tests need not patch.
        while True:
            never.wait(self._interval)
            with self._lock:
                if not self._beats:
                    self._thread = None
                    return
            self.beat()


_heartbeats: WeakValueDictionary[int, Heartbeat] = WeakValueDictionary()  # By id: a store need not be hashable.
_creation = threading.RLock()


def heartbeat_of(store: object) -> Heartbeat:
    """Return this process's Heartbeat for a store. Each store has its own thread: one that hangs delays no other."""
    with _creation:
        return _heartbeats.setdefault(id(store), Heartbeat())


def _reset_after_fork() -> None:
    global _creation
    _creation = threading.RLock()
    for heartbeat in list(_heartbeats.values()):
        heartbeat.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
