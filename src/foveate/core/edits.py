"""Edits of the *view*, and the journal records that hold them.

An edit never changes the history. It names messages by id, never by position, so its meaning survives any later append,
edit or fork. An edit ignores ids that the conversation does not have.

A plan is committed as one record or not at all. Edits are numbered from 1 over the whole journal, so `why` and `undo`
can name any edit. Records form a hash chain like the messages (`ids.record_id`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct, field

from .messages import Media, Text
from .stamps import Usage

__all__ = [
    "CALLER",
    "COMPACTED",
    "INTERRUPTED",
    "MARKS",
    "NOT_OFFERED",
    "SAVED",
    "Bill",
    "Edit",
    "Hide",
    "Path",
    "Pin",
    "Record",
    "Replace",
    "Restore",
    "Span",
    "Summarize",
    "SummaryRole",
    "Target",
    "Task",
    "Unpin",
    "ends_of",
    "named_messages",
    "path_of",
    "paths_overlap",
    "released_by",
    "target_of",
]

Path = tuple[int, ...]
"""A place in a message: `()` is the whole message, `(i,)` its part i, `(i, j)` part j of the tool result in part i."""


SummaryRole = Literal["user", "assistant", "system"]
"""The role in which a summary is shown."""


class Target(Struct, frozen=True, gc=False, tag="at", array_like=True):
    """A message, or one part of it."""

    message: str
    """Id of the message."""
    path: Path = ()
    """The part; `()` is the whole message."""


class Span(Struct, frozen=True, gc=False, tag="span", array_like=True):
    """A range of messages along the history, both ends included."""

    first: str
    """Id of the first message."""
    last: str
    """Id of the last message."""


SAVED = "{saved}"
"""In a reason of a policy: the planner replaces it by the tokens that the edit saves, by the conversation's counter."""


class Replace(Struct, frozen=True, gc=False, tag="replace", omit_defaults=True):
    """Show other content in place of a part. The part keeps its kind, call id and state; media may become text.

    For a tool call the content is one Text with the new arguments, which must be a JSON object.
    """

    target: Target
    """The part to replace."""
    content: tuple[Text | Media, ...]
    """The content to show."""
    policy: str = ""
    """The policy that made the edit; "" for an edit by hand."""
    reason: str = ""
    """Why the edit was made."""
    tokens_before: int = 0
    """Tokens of the message before the edit."""
    tokens_after: int = 0
    """Tokens of the message after the edit."""
    expandable: bool = True
    """Whether the model may expand the original."""
    by: str = ""
    """The author of the content, if a summarizer reported it."""
    refused: tuple[str, ...] = ()
    """Why earlier summarizers failed, each as `name: reason`."""
    erased: str = ""
    """Hash of content, reason and refusals, if these were erased together with the message."""
    keeps_original: bool = True
    """Whether the store keeps the original. If not, it is released with the commit of the edit, unless another branch
    shares the message.
    """
    released: str = ""
    """Hash of the outline that the store keeps in place of the released original; "" if it keeps the original."""


class Hide(Struct, frozen=True, gc=False, tag="hide", omit_defaults=True):
    """Show nothing of a part, a message or a span."""

    target: Target | Span
    """The part, message or span to hide."""
    policy: str = ""
    """The policy that made the edit; "" for an edit by hand."""
    reason: str = ""
    """Why the edit was made."""
    tokens_before: int = 0
    """Tokens of the target before the edit."""
    tokens_after: int = 0
    """Tokens of the target after the edit."""
    keeps_original: bool = True
    """Whether the store keeps the original, as for `Replace`. Only of a message or a part, not of a span."""
    released: str = ""
    """Hash of the outline that the store keeps in place of the released original; "" if it keeps the original."""


class Summarize(Struct, frozen=True, gc=False, tag="summarize", omit_defaults=True):
    """Show one text in place of a span. Summaries inside the span disappear with it."""

    span: Span
    """The messages that the text replaces."""
    text: str
    """The summary."""
    policy: str = ""
    """The policy that made the edit; "" for an edit by hand."""
    reason: str = ""
    """Why the edit was made."""
    tokens_before: int = 0
    """Tokens of the span before the edit."""
    tokens_after: int = 0
    """Tokens of the span after the edit."""
    keep: tuple[str, ...] = ()
    """Ids of messages in the span that stay visible, such as a call that is still running."""
    by: str = ""
    """The author of the text, if a summarizer reported it."""
    refused: tuple[str, ...] = ()
    """Why earlier summarizers failed, each as `name: reason`."""
    erased: str = ""
    """Hash of text, reason and refusals, if these were erased together with a message of the span."""
    outlives: bool = False
    """Whether the summary stays although originals of its span are erased. True if it was made after the erasure, or if
    a view showed it when retention erased them.
    """
    role: SummaryRole = "user"
    """The role in which the text is shown. A provider that takes no `system` message there gets a user's."""


class Restore(Struct, frozen=True, gc=False, tag="restore", omit_defaults=True):
    """Show originals again: the named targets, or everything that the edits with these numbers changed."""

    targets: tuple[Target | Span, ...] = ()
    """The parts, messages and spans to restore."""
    edits: tuple[int, ...] = ()
    """Numbers of the edits to cancel."""
    policy: str = ""
    """The policy that made the edit; "" for an edit by hand."""
    reason: str = ""
    """Why the edit was made."""
    tokens_before: int = 0
    """Tokens before the edit."""
    tokens_after: int = 0
    """Tokens after the edit."""


class Pin(Struct, frozen=True, gc=False, tag="pin", omit_defaults=True):
    """Keep a message, or one part of it, as it is now: no policy may shrink or hide it."""

    target: Target
    """The message or part to keep."""
    policy: str = ""
    """The policy that made the edit; "" for an edit by hand."""
    reason: str = ""
    """Why the edit was made."""


class Unpin(Struct, frozen=True, gc=False, tag="unpin", omit_defaults=True):
    """Remove a pin."""

    target: Target
    """The pinned message or part."""
    policy: str = ""
    """The policy that made the edit; "" for an edit by hand."""
    reason: str = ""
    """Why the edit was made."""


class Task(Struct, frozen=True, gc=False, tag="task", omit_defaults=True):
    """The state of a compaction. It changes nothing in the view: it records attempts.

    `pending` is written before the summarizer is called, so an attempt counts even if the process dies. `done` is
    written together with the summary, `failed` with the reason, and `skipped` if there was nothing to compact.
    """

    policy: str
    """The policy that compacts."""
    state: Literal["pending", "done", "failed", "skipped"]
    """The state of the attempt."""
    attempt: int = 1
    """Number of this attempt since the last success, from 1."""
    turn: int = 0
    """The model call that the attempt belongs to."""
    span: Span | None = None
    """The messages to compact; None if they are unknown."""
    reason: str = ""
    """Why the attempt failed or was skipped."""
    seen: int = 0
    """Position of the newest visible message."""
    input_tokens: int = field(default=0, name="asked")
    """Tokens that the summarizer had to read. A further attempt requests no more."""


INTERRUPTED = "interrupted calls"
"""The policy of the Task that notes, at a model call, that calls were shown to it without their answers."""

NOT_OFFERED = "expand is not offered"
"""The policy of the Task that notes, at a model call, whether it got plain handles, because it has no tool `expand`:
`done` if it did, `skipped` if it is offered the tool again.
"""

MARKS = frozenset({INTERRUPTED, NOT_OFFERED})
"""The policies of Tasks that note a fact about a model call, and no compaction."""

CALLER = "caller"
"""The policy of edits that repeat what the program did to its own list of messages, such as withdrawing a reply. The
list decides what the model sees, so these edits may also change system prompts, the last user input, and pinned
messages.
"""
COMPACTED = "the caller's list begins with a summary of it"
"""The reason of the caller's edits that hide what its own summary stands for. The model may expand such originals."""


class Bill(Struct, frozen=True, gc=False, tag="bill", omit_defaults=True):
    """The usage of a model call that was reported after its reply was stored. It changes nothing in the view."""

    call: int
    """The number of the model call."""
    usage: Usage
    """The billed tokens."""
    message: str = ""
    """Id of the reply; "" if none is stored."""
    model: str = ""
    """The model that was called, if the program named it."""
    estimate: int = 0
    """The counter's estimate of the prompt, which calibrates later estimates; 0 if it is not known."""
    policy: str = ""
    """Always "": no policy makes this edit."""
    reason: str = ""
    """Why the edit was made."""
    replaces: Usage | None = None
    """The estimate in the stamp of an interrupted reply, which this usage replaces; None if there was none."""


Edit = Replace | Hide | Summarize | Restore | Pin | Unpin | Task | Bill
"""One change of the view."""


def named_messages(edits: Iterable[Edit]) -> list[str]:
    """Return the ids of all messages that these edits name, each once, in order."""
    ids: list[str] = []
    for edit in edits:
        match edit:
            case Restore(targets=targets):
                pass
            case Summarize(span=span):
                targets = (span, *map(Target, edit.keep))
            case Task() | Bill():
                targets = ()
            case Replace(target=target) | Hide(target=target) | Pin(target=target) | Unpin(target=target):
                targets = (target,)
        for target in targets:
            ids.extend(ends_of(target))
    return list(dict.fromkeys(ids))


def ends_of(named: Target | Span) -> tuple[str, str]:
    """Return the ids of the first and the last message that a target or a span names."""
    return (named.first, named.last) if isinstance(named, Span) else (named.message, named.message)


def target_of(edit: Replace | Hide | Summarize) -> Target | Span:
    """Return what an edit replaces, hides or summarizes."""
    return edit.span if isinstance(edit, Summarize) else edit.target


def paths_overlap(path: Path, other: Path) -> bool:
    """Return whether one path leads through the other, so that edits at both affect each other."""
    return path[: len(other)] == other or other[: len(path)] == path


def path_of(edit: Edit) -> Path:
    """Return the place in its message that an edit changes."""
    target = getattr(edit, "target", None)
    return target.path if isinstance(target, Target) else ()


def released_by(edit: Edit) -> str:
    """Return the id of the message whose original this edit released; "" if it released none."""
    if isinstance(edit, Replace | Hide) and edit.released and isinstance(edit.target, Target):
        return edit.target.message
    return ""


class Record(Struct, frozen=True, omit_defaults=True):
    """One commit to the journal."""

    first: int
    """Number of its first edit. The other edits follow."""
    edits: tuple[Edit, ...]
    """The edits, in order."""
    turn: int
    """The first model call that sees the change."""
    time: int
    """Milliseconds since 1970, by the conversation's clock."""
    tip: str
    """Id of the newest message when the record was planned. The record does not cover later messages."""
    position: int
    """Position of that message."""
    tokens_before: int = 0
    """Tokens of the view before the commit."""
    tokens_after: int = 0
    """Tokens of the view after the commit."""
    bytes_before: int = 0
    """Bytes of the view before the commit."""
    bytes_after: int = 0
    """Bytes of the view after the commit."""
    author: str = ""
    """`plan` for edits of policies, otherwise the call: `expand`, `pin`, `undo`, `edit`, ..."""

    @property
    def last(self) -> int:
        """Return the number of its last edit."""
        return self.first + len(self.edits) - 1

    def numbered(self) -> Iterator[tuple[int, Edit]]:
        """Return its edits, each with its number."""
        return enumerate(self.edits, self.first)

    def releases(self) -> Iterator[tuple[int, str, str]]:
        """Return the edits that released originals: each number, id of a message, and hash of the stored outline."""
        for number, edit in self.numbered():
            if isinstance(edit, Replace | Hide) and (id := released_by(edit)):
                yield number, id, edit.released
