"""A message's, or a summary's, place in a projection: what was appended, which edits touch it, what it shows.

Slots are the working memory of `projection.py`. They are never handed out; a projection that is tried out (a plan)
copies the ones it changes.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from .edits import Edit, Span
from .messages import Message, Reasoning
from .profiles import Profile
from .rendering import Shown, edited, mended
from .sizes import images_of, tokens_of
from .stamps import Stamp
from .view import Entry, Kind, Pinned
from .wire import encode_message

__all__ = ["Counter", "Slot", "reshaped"]

Counter = Callable[[str], int]


class Slot:
    """One place. `span` and `last` are set where it holds a summary."""

    __slots__ = (
        "_base",
        "_forms",
        "edits",
        "id",
        "last",
        "message",
        "pins",
        "position",
        "renewed",
        "seen",
        "size",
        "span",
        "stale",
        "stamp",
    )

    def __init__(
        self,
        position: int,
        id: str,
        message: Message,
        stamp: Stamp,
        size: int,
        *,
        span: Span | None = None,
        last: int = 0,
    ) -> None:
        self.position, self.id, self.message, self.stamp, self.size = position, id, message, stamp, size
        self.span, self.last, self.seen = span, last or position, 0
        self.edits: tuple[tuple[int, Edit], ...] = ()
        self.pins: tuple[Pinned, ...] = ()
        # What somebody asked for is new to the coming call, and spared until then as what was restored for it.
        self.renewed = stamp.turn + 1 if stamp.expanded else 0
        self.stale = False
        self._base: Entry | bool | None = False  # False: not worked out yet
        self._forms: dict[tuple[str, ...], Entry] | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Sorting key: a summary stands before what is shown of its own span, and a wider one before a narrower."""
        return (self.position, -self.last if self.span else 1)

    @property
    def is_input(self) -> bool:
        """Whether the user said this, and said something, even if that is erased: what it protected stays protected."""
        return self.stamp.origin == "user" and (not self.size or self.message.says_something)

    @property
    def is_erased_result(self) -> bool:
        """Whether an answer to a call was said here, and erased."""
        return not self.size and self.stamp.origin in ("tool", "derived")

    @property
    def thinks(self) -> bool:
        """Whether there is reasoning in it, which may be bound to what came before."""
        return any(isinstance(part, Reasoning) for part in self.message.parts)

    def copy(self, *, changes: bool = True) -> Slot:
        """A slot that may be changed without changing this one. `changes`: so that it may show something else."""
        twin = Slot(self.position, self.id, self.message, self.stamp, self.size, span=self.span, last=self.last)
        twin.edits, twin.pins, twin.renewed, twin.stale = self.edits, self.pins, self.renewed, self.stale
        twin.seen = self.seen
        if not changes:
            twin._base, twin._forms = self._base, self._forms
        return twin

    def entry(self, profile: Profile, count: Counter) -> Entry | None:
        """What this place shows, before its neighbours have a say; None where nothing is left to show."""
        if isinstance(self._base, bool):
            self._base = self._shown(profile, count)
        return self._base

    def once(self, form: tuple[str, ...], make: Callable[[], Entry]) -> Entry:
        """What its neighbours made of this place, made only once for each form: the same form is the same entry."""
        forms = self._forms = self._forms or {}
        if form not in forms:
            forms[form] = make()
        return forms[form]

    def withheld(self, profile: Profile, count: Counter) -> Entry | None:
        """What a policy may know of a place that shows nothing; None where it shows something."""
        if self.entry(profile, count) is not None:
            return None
        empty = Message(self.message.role)
        entry = self._entry(empty, "a message without content is refused", self._edited(), count)
        return replace(entry, tokens=0, bytes=0)

    def _shown(self, profile: Profile, count: Counter) -> Entry | None:
        shown = self._edited()
        message, why = mended(shown.message, profile, stale=self.stale)
        return None if message is None else self._entry(message, why, shown, count)

    def _edited(self) -> Shown:
        return edited(self.message, self.edits) if self.edits else Shown(self.message)

    def _entry(self, message: Message, why: str, shown: Shown, count: Counter) -> Entry:
        untouched = message is self.message
        return Entry(
            position=self.position,
            id=self.id,
            message=message,
            source=None if self.span else self.message,
            stamp=self.stamp,
            kind="summary" if self.span else "message",
            tool=self.stamp.source if message.role == "tool" else "",
            edits=shown.edits if not self.span else tuple(number for number, _ in self.edits),
            shrunk=shown.shrunk,
            shrunk_by=shown.by,
            expandable=shown.expandable,
            span=self.span,
            last=self.last,
            seen=self.seen,
            pins=self.pins,
            renewed=self.renewed,
            mended=why,
            tokens=self.stamp.tokens if untouched else tokens_of(message, count),
            bytes=self.size if untouched else len(encode_message(message)),
            images=images_of(message),
            is_result=self.message.role == "tool",
        )


def reshaped(entry: Entry, message: Message, why: str, count: Counter, *, kind: Kind | None = None) -> Entry:
    """The same entry showing another form of its message, for the reason given."""
    return Entry(
        position=entry.position,
        id=entry.id,
        message=message,
        source=entry.source,
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
        mended=why,
        tokens=tokens_of(message, count),
        bytes=len(encode_message(message)),
        images=images_of(message),
        is_result=entry.is_result,
    )
