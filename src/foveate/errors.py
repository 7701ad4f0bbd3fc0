"""Everything foveate raises, as one tree.

    FoveateError
    ├── BadInput             what was handed in cannot be used; nothing was changed
    │   ├── BadMessage       a message, part or tool result is malformed
    │   ├── BadTranscript    a recorded conversation is damaged: file and line
    │   ├── UnknownFormat    no reader or format recognises it; says what was seen
    │   ├── UnknownHandle    nothing in this conversation answers to that handle
    │   ├── NotExpandable    what a handle names is shown whole, or is kept from the model
    │   ├── BadEdit          an edit names nothing, or asks for what its target cannot be
    │   └── BadSetting       a setting is missing or has a value that is not allowed
    ├── DoesNotFit           even the least possible view is larger than the budget
    ├── CompactionFailed     a conversation outgrew its window, and no summary of it could be had
    ├── NoSummary            no summarizer that was asked wrote a summary that can be taken
    ├── Refused              the provider refused a prompt that was already replanned
    ├── BrokenStream         an answer broke off before it was whole; nothing of it was recorded
    ├── StoreError           the store could not do it; the conversation is as it was
    │   ├── NoSuchConversation   there is no conversation, or branch, of that name
    │   ├── ConflictError    another writer extended this conversation, or changed its view, first
    │   ├── ConversationBusy another agent is at work in this conversation, or has taken it over
    │   ├── StoreRolledBack the store lacks what it had acknowledged: a failover, or an old backup
    │   └── Damaged          stored bytes do not match their recorded hash
    ├── IllegalView          a view breaks a rule of its provider: a bug of foveate
    └── MissingExtra         an optional package is not installed; names the extra

Each says what happened, whose fault it is and what to do next, and carries its facts as attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "BadEdit",
    "BadInput",
    "BadMessage",
    "BadSetting",
    "BadTranscript",
    "BrokenStream",
    "CompactionFailed",
    "ConflictError",
    "ConversationBusy",
    "Damaged",
    "DoesNotFit",
    "FoveateError",
    "IllegalView",
    "MissingExtra",
    "NoSuchConversation",
    "NoSummary",
    "NotExpandable",
    "Refused",
    "StoreError",
    "StoreRolledBack",
    "UnknownFormat",
    "UnknownHandle",
]


class FoveateError(Exception):
    """The root of the tree: catch this to catch everything foveate raises on purpose."""


class BadInput(FoveateError):
    """What was handed in cannot be used. Nothing was changed; mend the input and call again."""


class BadMessage(BadInput):
    """A message, part or tool result is malformed."""


class BadTranscript(BadInput):
    """A recorded conversation is damaged. `path` and `line` (from 1; 0: the whole file) say where."""

    def __init__(self, path: str, line: int, problem: str, remedy: str = "") -> None:
        self.path, self.line, self.problem = path, line, problem
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {problem}" + (f" {remedy}" if remedy else ""))


class UnknownFormat(BadInput):
    """No reader or format recognises what was given. `saw` describes it."""

    def __init__(self, what: str, saw: str, known: Sequence[str]) -> None:
        self.what, self.saw, self.known = what, saw, tuple(known)
        super().__init__(f"{what}: not a format I know. I saw {saw}. Known: {', '.join(known)}.")


class UnknownHandle(BadInput):
    """Nothing in this conversation answers to that handle."""

    def __init__(self, handle: str, hint: str = "") -> None:
        self.handle = handle
        super().__init__(f"Nothing here is called {handle!r}." + (f" {hint}" if hint else ""))


class NotExpandable(BadInput):
    """What a handle names is shown whole already, or the policy that shrank it keeps the original from the model."""

    def __init__(self, handle: str, why: str) -> None:
        self.handle = handle
        super().__init__(f"{handle} cannot be expanded: {why}.")


class BadEdit(BadInput):
    """An edit names nothing in this conversation, or asks for what its target cannot be."""


class BadSetting(BadInput, ValueError):
    """A setting is missing or has a value that is not allowed. A ValueError too, as Python calls it."""


class DoesNotFit(FoveateError):
    """Even the least possible view (system prompt, pending request and pins) is larger than the budget.

    `needed` and `usable` are in `unit` (tokens, bytes or images).
    """

    def __init__(self, needed: int, usable: int, unit: str) -> None:
        self.needed, self.usable, self.unit = needed, usable, unit
        super().__init__(
            f"The system prompt, the pending request and pins alone need {needed:,} {unit}, and {usable:,} are usable. "
            f"Shorten one of them, or use a model with a larger window."
        )


class CompactionFailed(FoveateError):
    """A conversation outgrew its window, and no summary of it could be had. It is as it was before the call.

    The next request would take `occupied` of `usable` tokens; `attempt` (a number, from 1) failed for `reason`, and
    `is_final` says that there will be no other until the user speaks again. `task`: what the journal has of it then.
    """

    def __init__(
        self, reason: str, attempt: int, occupied: int, usable: int, *, is_final: bool, task: object = None
    ) -> None:
        self.reason, self.attempt, self.is_final, self.task = reason, attempt, is_final, task
        self.occupied, self.usable = occupied, usable
        again = "No other is made until the user says something new." if is_final else "Call again for another one."
        super().__init__(
            f"The next request would take {occupied:,} of {usable:,} usable tokens, and attempt {attempt} to compact "
            f"the conversation failed: {reason}. {again} Or compact by hand, or let the hard floor act (strict=False)."
        )


class NoSummary(FoveateError):
    """No summarizer that was asked wrote a summary that can be taken. `refused` says of each who it was, and why."""

    def __init__(self, refused: Sequence[str]) -> None:
        self.refused = tuple(refused)
        super().__init__("; ".join(self.refused) or "there is nothing to summarise")


class Refused(FoveateError):
    """The provider refused a prompt that had already been replanned to a smaller size."""


class BrokenStream(FoveateError, ConnectionError):
    """A streamed answer ended before it was whole. Nothing of it was recorded: ask again. A ConnectionError too."""


class StoreError(FoveateError):
    """The store could not do it. The conversation is as it was before the call."""


class NoSuchConversation(StoreError):
    """There is no conversation, or branch, of that name in this store."""

    def __init__(self, name: str, store: str = "this store") -> None:
        self.name = name
        super().__init__(f"There is no conversation {name!r} in {store}.")


class ConflictError(StoreError):
    """Another writer extended this conversation, or changed its view, first. Read it again, then retry."""


class StoreRolledBack(StoreError):
    """The store does not hold any more what it had acknowledged: it failed over to a server that was behind, or an
    older backup took its place. No message was written.

    `known` and `now` are (messages, edits): how many were acknowledged, and how many there are.
    """

    def __init__(self, name: str, known: tuple[int, int], now: tuple[int, int]) -> None:
        self.name, self.known, self.now = name, known, now
        is_short = now[0] < known[0] or now[1] < known[1]
        there = f"there are {now[0]} and {now[1]}" if is_short else "what is there now are others"
        super().__init__(
            f"The database went back: of {name!r}, {known[0]} messages and {known[1]} edits were acknowledged, and "
            f"{there}. It failed over to a server that was behind, or an older backup took its place. Open the "
            f"conversation again to go on from what is there, and say again what is missing."
        )


class ConversationBusy(StoreError):
    """Another agent is at work in this conversation. Wait until it is done, or resume later. `owner` is whose claim it
    is; "" where nobody has one any more.
    """

    def __init__(self, said: str, owner: str = "") -> None:
        self.owner = owner
        super().__init__(said)


class Damaged(StoreError):
    """Stored bytes do not match their recorded hash. Run `verify` to see what is wrong and where."""


class IllegalView(FoveateError):
    """A view breaks a rule of its provider. This is a bug of foveate; `violations` tells which rules."""

    def __init__(self, violations: Sequence[object]) -> None:
        self.violations = tuple(violations)
        super().__init__("The view breaks a rule of its provider: " + "; ".join(str(v) for v in violations))


class MissingExtra(FoveateError, ImportError):
    """An optional package is not installed."""

    def __init__(self, need: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f'{need} needs: pip install "foveate[{extra}]".')
