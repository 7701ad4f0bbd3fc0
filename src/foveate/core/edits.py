"""The closed union of edits: every way in which the *view* of a conversation can change.

An edit never touches the history. It names messages by id, never by position, so that it means the same after any
later append, edit or fork. What it names but this conversation does not have, it leaves alone.

A plan is committed as one record, or not at all. Edits are numbered from 1 over the whole journal, so that an edit
can be named (`why`, `undo`) for ever. Records are chained by hash like the messages are (`ids.record_id`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from .messages import Media, Text

__all__ = [
    "Edit",
    "Hide",
    "Path",
    "Pin",
    "Record",
    "Replace",
    "Restore",
    "Span",
    "Summarize",
    "Target",
    "Task",
    "TaskState",
    "Unpin",
    "named_messages",
    "path_of",
    "paths_overlap",
]

Path = tuple[int, ...]
"""Where in a message: `()` the whole of it, `(i,)` its part i, `(i, j)` part j inside the tool result that is part
i.
"""


class Target(Struct, frozen=True, gc=False, tag="at", array_like=True):
    """A message, or one part of it."""

    message: str
    path: Path = ()


class Span(Struct, frozen=True, gc=False, tag="span", array_like=True):
    """A run of messages along the history, both ends included."""

    first: str
    last: str


class Replace(Struct, frozen=True, gc=False, tag="replace", omit_defaults=True):
    """Show other content in a part's place. The part keeps its kind, call id and state; media may become text.

    On a tool call the content is one Text holding the new arguments, which must be a JSON object.
    """

    target: Target
    content: tuple[Text | Media, ...]
    policy: str = ""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    expandable: bool = True
    """Whether the model may have the original back."""
    by: str = ""
    """Who wrote the content, where a summarizer did and said so."""
    refused: tuple[str, ...] = ()
    """Why summarizers that were asked before did not do, each as `who: why`."""
    erased: str = ""
    """Hash of content, reason and refusals where they were erased with the message they stood for."""


class Hide(Struct, frozen=True, gc=False, tag="hide", omit_defaults=True):
    """Show nothing of a part, a message or a span."""

    target: Target | Span
    policy: str = ""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


class Summarize(Struct, frozen=True, gc=False, tag="summarize", omit_defaults=True):
    """Show one text in place of a span. Summaries inside the span vanish with it."""

    span: Span
    text: str
    policy: str = ""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    keep: tuple[str, ...] = ()
    """Ids of messages in the span that stay as they are shown, such as a call that still runs."""
    by: str = ""
    """Who wrote the text, where a summarizer did and said so."""
    refused: tuple[str, ...] = ()
    """Why summarizers that were asked before did not do, each as `who: why`."""
    erased: str = ""
    """Hash of text, reason and refusals where they were erased with a message they told of."""
    outlives: bool = False
    """Whether it stands although originals of its span are erased: it was made after that, or a view showed it when
    they went because of their age.
    """


class Restore(Struct, frozen=True, gc=False, tag="restore", omit_defaults=True):
    """Show the originals again: of the targets named, or of everything that the edits with these numbers changed."""

    targets: tuple[Target | Span, ...] = ()
    edits: tuple[int, ...] = ()
    policy: str = ""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


class Pin(Struct, frozen=True, gc=False, tag="pin", omit_defaults=True):
    """Keep a message, or one part of it, as it is now: no policy may shrink or hide it."""

    target: Target
    policy: str = ""
    reason: str = ""


class Unpin(Struct, frozen=True, gc=False, tag="unpin", omit_defaults=True):
    """Take a pin back."""

    target: Target
    policy: str = ""
    reason: str = ""


TaskState = Literal["pending", "done", "failed", "skipped"]


class Task(Struct, frozen=True, gc=False, tag="task", omit_defaults=True):
    """How a compaction stands. It changes nothing of the view: it is the memory of what was tried.

    `pending` is written before a model is asked, so that an attempt counts even if the process ends in the middle of
    it; `done` together with the summary; `failed` with the reason; `skipped` where there was nothing to compact.
    """

    policy: str
    state: TaskState
    attempt: int = 1
    """Number of this attempt, from 1, since the last success."""
    turn: int = 0
    """The model call that it was made for."""
    span: Span | None = None
    reason: str = ""
    seen: int = 0
    """Position of the newest message that was shown."""
    asked: int = 0
    """Tokens of what a model was asked to read: a further attempt asks for no more."""


INTERRUPTED = "interrupted calls"
"""The policy of the Task that notes, at a model call, that calls were shown to it without their answers."""

Edit = Replace | Hide | Summarize | Restore | Pin | Unpin | Task


def named_messages(edits: Iterable[Edit]) -> list[str]:
    """Ids of all messages that these edits name, each once, in order."""
    named: list[str] = []
    for edit in edits:
        match edit:
            case Restore(targets=targets):
                pass
            case Summarize(span=span):
                targets = (span, *map(Target, edit.keep))
            case Task():
                targets = ()
            case Replace(target=target) | Hide(target=target) | Pin(target=target) | Unpin(target=target):
                targets = (target,)
        for target in targets:
            named.extend((target.first, target.last) if isinstance(target, Span) else (target.message,))
    return list(dict.fromkeys(named))


def paths_overlap(one: Path, other: Path) -> bool:
    """Whether one of two paths leads through the other: then neither shows its original unless both do."""
    return one[: len(other)] == other or other[: len(one)] == one


def path_of(edit: Edit) -> Path:
    """Where in its message an edit is made."""
    target = getattr(edit, "target", None)
    return target.path if isinstance(target, Target) else ()


class Record(Struct, frozen=True, omit_defaults=True):
    """What one commit did to the view."""

    first: int
    """Number of its first edit; the others follow."""
    edits: tuple[Edit, ...]
    turn: int
    """The first model call that sees the change."""
    time: int
    """Milliseconds since 1970, by the conversation's clock."""
    tip: str
    """Id of the newest message when it was planned: what came later is not covered by it."""
    position: int
    """Position of that message."""
    tokens_before: int = 0
    tokens_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    author: str = ""
    """`plan` where policies made it, otherwise the call that did: `expand`, `pin`, `undo`, `edit`, ..."""

    @property
    def last(self) -> int:
        """Number of its last edit."""
        return self.first + len(self.edits) - 1

    def numbered(self) -> Iterator[tuple[int, Edit]]:
        """Its edits, each with its number."""
        return enumerate(self.edits, self.first)
