"""Slots: the places of messages and summaries in a projection, and the entries that they show.

A slot is the working memory of `projection.py` and is never handed out. A trial projection (a plan) copies the slots
that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from .edits import Edit, Replace, Span, Summarize, path_of, released_by
from .messages import Message, Reasoning
from .originals import Original, ReadOriginal, outline_of, released_form
from .packed_messages import PackedMessage
from .profiles import Profile
from .rendering import EditedMessage, apply_edits, legalized
from .results import is_action_result
from .sizes import images_of, tokens_of
from .stamps import Stamp
from .view import Entry, EntryKind, PinnedPart
from .wire import encode_message

__all__ = ["Counter", "Slot", "reshape"]

Counter = Callable[[str], int]
"""Returns the tokens of a text."""

_BY_PROVIDER = PinnedPart((), "provider")
"""The pin that an active compaction has in a view: without it, everything that it stands for would come back."""


class Slot(Struct, eq=False):
    """The place of a message or a summary in a projection. `span` and `last` are set for a summary."""

    position: int
    id: str
    packed: Message | PackedMessage
    """The message, perhaps in a form that is decoded at its first use."""
    stamp: Stamp
    size: int
    span: Span | None = None
    last: int = 0
    seen: int = 0
    original: Original | None = None
    """A way to read the message, if `message` is only its outline."""
    edits: tuple[tuple[int, Edit], ...] = ()
    pins: tuple[PinnedPart, ...] = ()
    renewed: int = 0
    stale: bool = False
    compacts: bool = False
    """Whether its compaction stands for everything before it."""
    is_late: bool = False
    """Whether this is an answer that was appended after a request had shown a stand-in for it."""
    is_recounted: bool = False
    """Whether the stamp holds the count of another counter."""
    _base: Entry | bool | None = False  # False: not computed yet
    _forms: dict[tuple[str, ...], Entry] | None = None

    def __post_init__(self) -> None:
        self.last = self.last or self.position
        # An expansion is new to the coming call. Policies spare it until then, like restored content.
        if self.stamp.expanded:
            self.renewed = self.stamp.turn + 1

    @property
    def message(self) -> Message:
        """The message, or its outline."""
        message = self.packed
        if isinstance(message, PackedMessage):
            self.packed = message = message.message()
        return message

    @message.setter
    def message(self, message: Message) -> None:
        self.packed = message

    @property
    def order(self) -> tuple[int, int]:
        """Return the sorting key: a summary comes before the visible messages of its span, and before narrower
        summaries.
        """
        return (self.position, -self.last if self.span else 1)

    @property
    def is_input(self) -> bool:
        """Return whether this is user input with content, even if it is erased: its protection remains."""
        return self.stamp.origin == "user" and (not self.size or self.message.has_content)

    @property
    def is_erased_result(self) -> bool:
        """Return whether this is an erased answer to a call."""
        return not self.size and self.stamp.origin in ("tool", "derived")

    @property
    def has_reasoning(self) -> bool:
        """Return whether the message has reasoning, which may be bound to the messages before it."""
        return any(isinstance(part, Reasoning) for part in self.message.parts)

    def copy(self, *, changes: bool = True) -> Slot:
        """Return an independent copy. `changes`: whether the copy may show something else."""
        twin = Slot(self.position, self.id, self.packed, self.stamp, self.size, span=self.span, last=self.last)
        twin.edits, twin.pins, twin.renewed, twin.stale = self.edits, self.pins, self.renewed, self.stale
        twin.seen, twin.compacts, twin.is_recounted = self.seen, self.compacts, self.is_recounted
        twin.original = self.original
        twin.is_late = self.is_late
        if not changes:
            twin._base, twin._forms = self._base, self._forms
        return twin

    def released(self, read: ReadOriginal) -> Slot | None:
        """Return a copy that holds only the outline of the message; None if that would save too little."""
        if self.span is not None or not self.edits:
            return None
        outline = outline_of(self.message, self.stamp, apply_edits(self.message, self.edits).shrunk)
        if outline is None:
            return None
        twin = self.copy()
        twin.hold_outline(outline, read)
        return twin

    def hold_outline(self, outline: Message, read: ReadOriginal) -> None:
        """Hold only the outline of the message. Call it on a new slot."""
        self.message, self.original = outline, Original(outline, partial(read, self.position, self.id))

    def drop_released(self) -> None:
        """Hold of the message only what the store keeps. Call it on a new slot, after an edit that releases."""
        paths = {path_of(edit) for _, edit in self.edits if released_by(edit)}
        form = partial(released_form, stamp=self.stamp, paths=paths)
        self.message = form(self.message)
        self.original = self.original and self.original.converted(form)

    def reload(self) -> None:
        """Read the whole message again, before edits of it are cancelled."""
        if self.original is not None:
            self.message, self.original = self.original.message(), None

    def entry(self, profile: Profile, count: Counter) -> Entry | None:
        """Return the entry of this place alone, or None if nothing is left to show."""
        if isinstance(self._base, bool):
            self._base = self._shown(profile, count)
        return self._base

    def cached_entry(self, form: tuple[str, ...], make: Callable[[], Entry]) -> Entry:
        """Return the entry for this form, made only once: an equal form returns the same entry."""
        forms = self._forms = self._forms or {}
        if form not in forms:
            forms[form] = make()
        return forms[form]

    @property
    def own_entry(self) -> Entry | None:
        """Return the entry that `entry` made; None if it made none."""
        return None if isinstance(self._base, bool) else self._base

    @property
    def forms(self) -> Mapping[tuple[str, ...], Entry]:
        """Return the entries that `cached_entry` made."""
        return self._forms or {}

    def hold_entry(self, entry: Entry | None, form: tuple[str, ...] = ()) -> None:
        """Hold an entry that was made before, as the place's own entry, or as its entry of this form."""
        if form:
            self._forms = {**self.forms, form: entry} if entry else self._forms
        else:
            self._base = entry

    def withheld(self, profile: Profile, count: Counter) -> Entry | None:
        """Return an empty entry if the place shows nothing, so that policies know of it. Otherwise return None."""
        if self.entry(profile, count) is not None:
            return None
        empty = Message(self.message.role)
        entry = self._entry(empty, "a message without content is refused", self._edited(), count)
        return replace(entry, tokens=0, bytes=0)

    def erased_tokens(self, profile: Profile, count: Counter) -> int:
        """Return the tokens that the place had before its text was erased, without those that it shows now."""
        texts = [edit.tokens_after for _, edit in self.edits if isinstance(edit, Replace | Summarize) and edit.erased]
        if texts:
            before = texts[-1]
        elif self.size or self.edits or self.span:
            return 0
        else:
            before = self.stamp.tokens
        shown = self.entry(profile, count)
        return max(0, before - (shown.tokens if shown else 0))

    def _shown(self, profile: Profile, count: Counter) -> Entry | None:
        shown = self._edited()
        asked = _in_role(shown.message, self.edits[0][1], profile) if self.span else shown.message
        message, why = legalized(asked, profile, stale=self.stale, compacts=self.compacts)
        return None if message is None else self._entry(message, why, shown, count)

    def _edited(self) -> EditedMessage:
        return apply_edits(self.message, self.edits) if self.edits else EditedMessage(self.message)

    def _entry(self, message: Message, why: str, shown: EditedMessage, count: Counter) -> Entry:
        untouched = message is self.message
        is_result = self.message.role == "tool" or (not self.span and is_action_result(self.message, self.stamp))
        return Entry(
            position=self.position,
            id=self.id,
            message=message,
            appended=None if self.span else self.original or self.message,
            stamp=self.stamp,
            kind="summary" if self.span else "message",
            tool=self.stamp.tool if is_result else "",
            edits=shown.edits if not self.span else tuple(number for number, _ in self.edits),
            shrunk=shown.shrunk,
            shrunk_by=shown.by,
            expandable=shown.expandable,
            span=self.span,
            last=self.last,
            seen=self.seen,
            pins=(*self.pins, _BY_PROVIDER) if self.compacts else self.pins,
            renewed=self.renewed,
            legalized=why,
            tokens=self.stamp.tokens if untouched and not self.is_recounted else tokens_of(message, count),
            bytes=self.size if untouched else len(encode_message(message)),
            images=images_of(message),
            is_result=is_result,
        )


def _in_role(message: Message, edit: Edit, profile: Profile) -> Message:
    """Return a summary in the role of its edit, or as a user's message if the provider has no place for the role.

    Anthropic takes a system message only behind the user's, and Gemini takes none among the messages. There a summary
    would stand behind the request that it precedes, or become a part of the system prompt.
    """
    role = edit.role if isinstance(edit, Summarize) else "user"
    if role == "system" and (profile.system_places != "any" or profile.user_first):
        role = "user"
    return message if role == "user" else Message(role, message.parts)


def reshape(entry: Entry, message: Message, why: str, count: Counter, *, kind: EntryKind | None = None) -> Entry:
    """Return the same entry with another form of its message, for the reason `why`."""
    return Entry(
        position=entry.position,
        id=entry.id,
        message=message,
        appended=entry.appended,
        stamp=entry.stamp,
        kind=kind or entry.kind,
        tool=entry.tool,
        edits=entry.edits,
        shrunk=entry.shrunk,
        shrunk_by=entry.shrunk_by,
        expandable=entry.expandable,
        span=entry.span,
        last=entry.last,
        seen=entry.seen,
        pins=entry.pins,
        renewed=entry.renewed,
        legalized=why,
        tokens=tokens_of(message, count),
        bytes=len(encode_message(message)),
        images=images_of(message),
        is_result=entry.is_result,
    )
