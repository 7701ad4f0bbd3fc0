"""All errors that foveate raises on purpose, as one tree.

    FoveateError
    ├── BadInput                 an argument, message or setting is not allowed; nothing was changed
    │   ├── BadMessage           a message, part or tool result is malformed
    │   ├── BadTranscript        a recorded conversation is damaged; names file and line
    │   ├── UnknownFormat        no reader or format recognises the input; describes it
    │   ├── UnknownHandle        no message or part of this conversation has the handle
    │   ├── NotExpandable        the target of a handle is shown whole, or kept from the model
    │   ├── BadEdit              an edit names no target, or does not fit its target
    │   └── BadSetting           a setting is missing or has a value that is not allowed
    │       ├── MissingKey       a model needs a key, and the environment has none
    │       └── UnknownWindow    neither a window nor a model with a known window is named
    ├── DoesNotFit               even the smallest possible view is larger than the budget
    ├── CompactionFailed         a conversation outgrew its window, and its summary failed
    ├── NoSummary                no summarizer wrote an acceptable summary
    ├── Refused                  the provider refused a prompt, and no smaller one is left to try
    ├── BrokenStream             a streamed answer ended early; nothing of it was recorded
    ├── StoreError               the store failed; the conversation is unchanged
    │   ├── NoSuchConversation   the store holds no conversation, or branch, of that name
    │   ├── ConflictError        another writer changed the conversation first
    │   ├── ConversationBusy     another agent runs in the conversation, or has taken it over
    │   ├── StoreRolledBack      the store lost data that it had acknowledged
    │   └── Damaged              stored bytes do not match their recorded hash
    ├── IllegalView              a view breaks a rule of its provider: a bug of foveate
    └── MissingExtra             an optional package is not installed; names the extra

Each error says what happened and what to do next, and carries its facts as attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    "MissingKey",
    "NoSuchConversation",
    "NoSummary",
    "NotExpandable",
    "Refused",
    "StoreError",
    "StoreRolledBack",
    "UnknownFormat",
    "UnknownHandle",
    "UnknownWindow",
]


class FoveateError(Exception):
    """The root of the tree. Catch it to catch everything that foveate raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is not made by `__init__`, which takes facts, not the message: a pool of processes breaks on that.
        return _copied, (type(self), self.args), self.__dict__


def _copied(kind: type[FoveateError], arguments: tuple[Any, ...]) -> FoveateError:
    return kind.__new__(kind, *arguments)


class BadInput(FoveateError):
    """An argument, message or setting is not allowed. Nothing was changed: correct it and call again."""


class BadMessage(BadInput):
    """A message, part or tool result is malformed. Correct it and append it again."""


class BadTranscript(BadInput):
    """A recorded conversation is damaged. Correct the file at `path` and `line` (from 1; 0: the whole file)."""

    def __init__(self, path: str, line: int, problem: str, remedy: str = "") -> None:
        self.path, self.line, self.problem = path, line, problem
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {problem}" + (f" {remedy}" if remedy else ""))


class UnknownFormat(BadInput):
    """No reader or format recognises the input. Use one of the formats in `known`; `saw` describes the input."""

    def __init__(self, what: str, saw: str, known: Sequence[str], problem: str = "") -> None:
        """`problem`: the first sentences of the message, if nothing was read."""
        self.what, self.saw, self.known = what, saw, tuple(known)
        problem = problem or f"{what}: not a known format. It holds {saw}."
        super().__init__(f"{problem} Known: {', '.join(known)}.")


class UnknownHandle(BadInput):
    """No message or part of this conversation has the handle. Use a handle that the view or a placeholder names."""

    def __init__(self, handle: str, hint: str = "") -> None:
        self.handle = handle
        """The handle that names no message."""
        super().__init__(f"Nothing here is called {handle!r:.80}." + (f" {hint}" if hint else ""))


class NotExpandable(BadInput):
    """The target of a handle is shown whole already, or its policy keeps the original from the model."""

    def __init__(self, handle: str, why: str) -> None:
        self.handle = handle
        """The handle that cannot be expanded."""
        super().__init__(f"{handle} cannot be expanded: {why}.")


class BadEdit(BadInput):
    """An edit names no target in this conversation, or does not fit its target. Correct the target or the edit."""


class BadSetting(BadInput, ValueError):
    """A setting is missing or has a value that is not allowed. The message names its source and the allowed values."""


class MissingKey(BadSetting):
    """A model needs a key, and the environment has none. `model`: its name. `variables`: where the key may be."""

    def __init__(self, model: str, variables: Sequence[str]) -> None:
        self.model, self.variables = model, tuple(variables)
        super().__init__(
            f"{model} needs a key, and {' or '.join(variables)} is not set. Set it in the environment, or pass the "
            f'model as foveate.open_model("{model}", api_key=...).'
        )


class UnknownWindow(BadSetting):
    """No window is known. Pass `window=` in tokens, or `model=` with a model whose window is known."""

    def __init__(self, model: str = "", remedy: str = "") -> None:
        self.model = model
        """The name of the model; "" if none was named."""
        of_model = f" of model {model!r}" if model else ""
        super().__init__(
            f"Window{of_model} is not known. Pass window=200_000 (tokens), or model= with the name of a model whose "
            f"window is known{remedy}."
        )


class DoesNotFit(FoveateError):
    """Even the smallest possible view (system prompt, pending request and pins) is larger than the budget.

    Shorten one of them, or use a model with a larger window. `needed` and `usable` are in `unit` (tokens, bytes or
    images).
    """

    def __init__(self, needed: int, usable: int, unit: str) -> None:
        self.needed, self.usable, self.unit = needed, usable, unit
        super().__init__(
            f"The system prompt, the pending request and pins alone need {needed:,} {unit}, and {usable:,} are usable. "
            f"Shorten one of them, or use a model with a larger window."
        )


class CompactionFailed(FoveateError):
    """A conversation outgrew its window, and its summary failed. The conversation is unchanged.

    Call again for another attempt, unless `is_final`: then the next one follows new input of the user. The next request
    would take `occupied` of `usable` tokens; `attempt` (from 1) failed for `reason`. `task`: its record in the journal.
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
    """No summarizer wrote an acceptable summary. `refused` names each one, with the reason."""

    def __init__(self, refused: Sequence[str]) -> None:
        self.refused = tuple(refused)
        """Each summarizer that was asked, with its error."""
        super().__init__("; ".join(self.refused) or "there is nothing to summarise")


class Refused(FoveateError):
    """The provider refused a prompt that was already made smaller, or that no policy makes smaller. Read the provider's
    error: it is the cause.
    """


class BrokenStream(FoveateError, ConnectionError):
    """A streamed answer ended early. Nothing of it was recorded: send the request again."""


class StoreError(FoveateError):
    """The store failed. The conversation is as it was before the call, so the call can be repeated."""


def conversation_label(tenant: str, name: str) -> str:
    """Return how errors name a conversation: with its tenant, if it has one."""
    return f"{name!r} of the tenant {tenant!r}" if tenant else repr(name)


class NoSuchConversation(StoreError):
    """The store holds no conversation, or branch, of that name. Check the name and the tenant."""

    def __init__(self, name: str, store: str = "this store", tenant: str = "") -> None:
        self.name, self.tenant = name, tenant
        """The name that the store does not have, and the tenant that was asked for it."""
        super().__init__(f"There is no conversation {conversation_label(tenant, name)} in {store}.")


class ConflictError(StoreError):
    """Another writer extended this conversation, or changed its view, first. Read it again, then retry."""


class StoreRolledBack(StoreError):
    """The store lost data that it had acknowledged, after a failover or from an older backup. Nothing was written.

    Open the conversation again and append the missing messages. `known` and `now` count messages and edits: those that
    were acknowledged, and those that the store holds.
    """

    def __init__(self, name: str, known: tuple[int, int], now: tuple[int, int], tenant: str = "") -> None:
        self.name, self.known, self.now, self.tenant = name, known, now, tenant
        is_short = now[0] < known[0] or now[1] < known[1]
        there = f"holds {now[0]} and {now[1]}" if is_short else "holds others"
        super().__init__(
            f"The database was rolled back: of {conversation_label(tenant, name)}, {known[0]} messages and {known[1]} "
            f"edits were acknowledged, and it {there}. It failed over to a server that was behind, or an older backup "
            f"replaced it. Open the conversation again, then append the missing messages."
        )


class ConversationBusy(StoreError):
    """Another agent runs in this conversation, or has taken it over. Wait until it ends, or resume later.

    `owner`: the owner of the lock; "" if no owner is left.
    """

    def __init__(self, message: str, owner: str = "") -> None:
        self.owner = owner
        """The owner of the lock, as it named itself."""
        super().__init__(message)


class Damaged(StoreError):
    """Stored bytes do not match their recorded hash. Run `verify` to find the damaged rows."""


class IllegalView(FoveateError):
    """A view breaks a rule of its provider. This is a bug of foveate: report it with `violations`, the broken rules."""

    def __init__(self, violations: Sequence[object]) -> None:
        self.violations = tuple(violations)
        """The rules that the view breaks, and where."""
        super().__init__("The view breaks a rule of its provider: " + "; ".join(str(v) for v in violations))


class MissingExtra(FoveateError, ImportError):
    """An optional package is not installed. Install the extra that the message names."""

    def __init__(self, need: str, extra: str) -> None:
        self.extra = extra
        """The name of the extra to install."""
        super().__init__(f'{need} needs: pip install "foveate[{extra}]".')
