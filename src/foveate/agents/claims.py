"""Claims an agent's conversation while it works there, so that no two agents work in one at the same time.

What others do is waited for. A claim that was left behind is taken over: where the process of its owner is known to
have ended at once, else when no sign of life came for long enough, by this process's own stopwatch; no clock that tells
the time is asked, and of a time in which nobody could look little counts. One who is taken for dead and is not finds
out at its next write, which the store refuses.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ..core.runs import LockHolder
from ..errors import ConversationBusy
from .acts import Act, Do, Pause
from .owners import ended, known_of, new_owner
from .pulse import Pulse, pulse_of

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation

__all__ = ["WAITS", "Hold"]

T = TypeVar("T")
_log = logging.getLogger("foveate")

WAITS = 30.0
"""Seconds that somebody else's work is waited for, where nothing else is said."""
_SILENCE = {"unknown": 20.0, "lives": 60.0}
"""Seconds without a sign of life after which one counts as dead, by what is known of its process. Four signs of life
are missed then by another machine; a process that is there may just have much to do.
"""
_FIRST, _LONGEST = 0.02, 0.5
"""Seconds between two looks: few at first, as most work is short, then more."""
_LOOK_MAX = 5.0
"""Seconds of silence, at most, that one look tells of: a database that stood still for longer has held up the other's
signs of life as well.
"""


class Hold:
    """One agent's hold on its conversation: taken for each piece of work, and given up after it."""

    def __init__(
        self,
        conversation: Conversation | AsyncConversation,
        *,
        waits: float = WAITS,
        stopwatch: Callable[[], float] = time.monotonic,
        pulse: Pulse | None = None,
    ) -> None:
        """`waits`: seconds that somebody else's work is waited for. `stopwatch`: seconds that never go back. `pulse`:
        what gives signs of life, by default that of the conversation's store.
        """
        self._chat, self._waits, self._stopwatch, self._pulse = conversation, waits, stopwatch, pulse
        self.owner = ""
        """Whom the claim is made for: a new name for each piece of work."""
        self.took_over = False
        """Whether somebody had left the conversation in the middle of a work."""

    def during(self, act: Callable[[], Act[T]]) -> Act[T]:
        """The same act, performed while nobody else is at work. Raises ConversationBusy where somebody is for too
        long.
        """
        self.owner, self.took_over = new_owner(), False
        try:
            yield from self._take()
            store, beat = self._chat.pulse(self.owner)
            pulse = self._pulse or pulse_of(store)
            try:
                pulse.begin(self.owner, beat)
                return (yield from act())
            finally:
                pulse.end(self.owner)
        finally:
            ended(self.owner)
            yield from self._give_up()

    def _take(self) -> Act[None]:
        begun = looked = self._stopwatch()
        silent = 0.0
        seen: LockHolder | None = None
        dead: LockHolder | None = None
        pause, has_moved = _FIRST, False
        while True:
            claim: LockHolder = yield Do(partial(self._chat.claim, self.owner, dead))
            if claim.owner == self.owner:
                self.took_over = dead is not None
                return
            now, known = self._stopwatch(), known_of(claim.owner)
            silent, looked = silent + min(now - looked, _LOOK_MAX), now
            if claim != seen:
                has_moved, seen, silent = has_moved or seen is not None, claim, 0.0
            dead = claim if known == "dead" or silent >= _SILENCE[known] else None
            if dead is not None:
                continue
            if now - begun >= self._waits and (has_moved or known == "lives"):  # Else it may be dead: find that out.
                raise ConversationBusy(
                    f"Another agent is at work in {self._chat.name!r}, and {self._waits:g} seconds were not enough for "
                    "it to end. Nothing was done. Try again when it has, or wait longer: waits=.",
                    claim.owner,
                )
            yield Pause(pause)
            pause = min(2 * pause, _LONGEST)

    def _give_up(self) -> Act[None]:
        """Let others work here. If that cannot be written down they find out: see `known_of`."""
        try:
            yield Do(partial(self._chat.release, self.owner))
        except Exception as error:
            _log.warning("%s: the claim on it could not be given up: %s", self._chat.name, error)
