"""Signs of life for whoever is at work, given by a thread of this process while they are busy elsewhere.

A tool that takes an hour, or a model that thinks for minutes, writes nothing meanwhile; others are not to take it for
dead. Each store has a thread of its own, so that one that hangs stops nobody who works in another. Knows nothing of
what is beaten for.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

__all__ = ["EVERY", "Pulse", "pulse_of"]

_log = logging.getLogger("foveate")

EVERY = 5.0
"""Seconds between two signs of life."""


class Pulse:
    """Calls what gives a sign of life, for each that is at work, again and again. The thread ends when nobody is."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self.forget()

    def forget(self) -> None:
        """Begin anew with nobody: in a forked child, whose parent gives its signs of life itself, by connections of its
        own.
        """
        # Taken again by its own thread where Python collects garbage: who leaves a stream in the middle ends there.
        self._lock = threading.RLock()
        self._beats: dict[str, Callable[[], bool]] = {}
        self._thread: threading.Thread | None = None

    def begin(self, owner: str, beat: Callable[[], bool]) -> None:
        """From now on call `beat`, until it says False, or `end` is called."""
        with self._lock:
            self._beats[owner] = beat
            if self._thread is None:
                thread = threading.Thread(target=self._go_on, name="foveate-pulse", daemon=True)
                thread.start()
                self._thread = thread  # Once it runs: where no thread is to be had, the next who begins tries again.

    def end(self, owner: str) -> None:
        """Call it no more, but for a call that is under way."""
        with self._lock:
            self._beats.pop(owner, None)

    def beat(self) -> None:
        """One sign of life for each."""
        with self._lock:
            beats = self._beats.copy()
        for owner, beat in beats.items():
            try:
                if not beat():  # Somebody has taken it over: there is nothing to keep up any more.
                    self.end(owner)
            except Exception as error:  # Whatever it is: the next one may come through.
                _log.debug("no sign of life could be given: %s", error)

    def _go_on(self) -> None:
        quiet = threading.Event()  # Nobody sets it: a wait that no test has to patch.
        while True:
            quiet.wait(self._every)
            with self._lock:
                if not self._beats:
                    self._thread = None
                    return
            self.beat()


_pulses: WeakValueDictionary[int, Pulse] = WeakValueDictionary()  # By id: a store need not be hashable.
_making = threading.RLock()


def pulse_of(store: object) -> Pulse:
    """That of this process for whoever works in this store."""
    with _making:
        return _pulses.setdefault(id(store), Pulse())


def _forget_all() -> None:
    global _making
    _making = threading.RLock()
    for pulse in list(_pulses.values()):
        pulse.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
