"""The view: the frozen entries that the model sees, with facts for policies.

`projection.py` computes a view from a history and its journal. Policies read it and return edits; formats render it for
a provider. Neither changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from .call_context import Budget, CallContext
from .edits import CALLER, Path, Span, Task, paths_overlap
from .enrich import own_message
from .growing import Marks
from .handles import Handle
from .messages import Message, ToolCall, ToolResult
from .metadata import read_metadata, read_metadata_as
from .originals import Original
from .results import action_result, is_action_result
from .stamps import Stamp
from .view_facts import INDEXES, SIZES

__all__ = [
    "OWN_ID",
    "Entry",
    "EntryKind",
    "ListPlace",
    "PinnedPart",
    "View",
]

T = TypeVar("T")

OWN_ID = "a call without an id has one in the view"
"""The reason of an entry that only differs in ids which a request leaves out (`Profile.calls_without_ids`)."""

EntryKind = Literal["message", "summary", "note", "stand-in", "continuation"]
"""`message`: as appended or edited; `summary`: stands for a span; `note`: shown as a user's note, because it is a late
tool result, or a system message that the provider does not take there; `stand-in`: a placeholder, such as the answer of
a call without a result; `continuation`: further calls of the message before it, if the provider limits the calls of one
message.
"""


class PinnedPart(Struct, frozen=True, gc=False, array_like=True):
    """One pin on a message."""

    path: Path = ()
    """The pinned part; `()` is the whole message."""
    policy: str = ""
    """The policy that pinned it; "" for a pin by hand."""


class Entry(Struct, frozen=True, eq=False, gc=False):
    """One message of a view. Entries compare by identity: an unchanged entry is the same object in every view."""

    position: int
    """Position in the history, from 1. For several messages: the position of the first."""
    id: str
    """Id of the visible message, or of the first message of a span."""
    message: Message
    """The message that the model sees."""
    appended: Message | Original | None
    """The appended message, or its outline with a way to read it; None for summaries and stand-ins."""
    stamp: Stamp
    """The stamp of the appended message."""
    kind: EntryKind = "message"
    """The kind of the entry."""
    tool: str = ""
    """For a result: the name of the tool or the action."""
    edits: tuple[int, ...] = ()
    """Numbers of the edits that shaped it, oldest first."""
    shrunk: tuple[Path, ...] = ()
    """Paths of the parts that do not show their original content."""
    shrunk_by: tuple[str, ...] = ()
    """For each of these parts: the policy that changed it; "" for an edit by hand."""
    expandable: bool = True
    """Whether the model may expand the originals of all its parts."""
    span: Span | None = None
    """For a summary: the span that it replaces."""
    last: int = 0
    """Position of the last message it stands for; `position` for a single one."""
    seen: int = 0
    """For a summary: position of the newest message when the summary was made."""
    pins: tuple[PinnedPart, ...] = ()
    """Its pins."""
    renewed: int = 0
    """Turn in which its content was last restored, or for which it was appended as an expansion; 0: never."""
    legalized: str = ""
    """Why the entry differs from the appended message without an edit: the rule that required it."""
    tokens: int = 0
    """Size in tokens, by the conversation's counter."""
    bytes: int = 0
    """Size in bytes of the canonical form."""
    images: int = 0
    """Number of images."""
    is_result: bool = False
    """Whether it shows a result of a tool or an action: in any role, whole or shrunk, in its own place or as a note."""
    _memo: tuple[Any, ...] = ()

    def __str__(self) -> str:
        """Return one short line, such as `m12 tool read_file: 1,203 tokens, shrunk by prune, pinned`."""
        subject = f"{self.message.role} {self.tool}".rstrip() if self.kind == "message" else self.kind
        by = ", ".join(dict.fromkeys(policy or "hand" for policy in self.shrunk_by))
        facts = [f"{self.tokens:,} tokens", *([f"shrunk by {by}"] if by else []), *(["pinned"] if self.pins else [])]
        return f"{Handle(self.position, self.last)} {subject}: {', '.join(facts)}".lstrip()

    def __repr__(self) -> str:
        return f"<Entry {self}>"  # Its message would fill the screen.

    @property
    def handle(self) -> str:
        """Return the short stable name that `expand` takes: `m12` is the twelfth message of the conversation."""
        return f"m{self.position}"

    def is_pinned(self, path: Path = ()) -> bool:
        """Return whether an edit at `path` would touch a pinned part. Without a path: whether any part is pinned."""
        return bool(self.pins) and any(paths_overlap(pin.path, path) for pin in self.pins)

    @property
    def is_input(self) -> bool:
        """Return whether this is user input with content."""
        return self.stamp.origin == "user" and self.outline is not None and self.outline.has_content

    @property
    def source(self) -> Message | None:
        """Return the appended message, regardless of the visible form; None for summaries and stand-ins.

        If the view does not show all of it, the store is read, and a StoreError raised if that fails. If `outline`
        suffices, use that.
        """
        return self.appended.message() if isinstance(self.appended, Original) else self.appended

    @property
    def outline(self) -> Message | None:
        """Return the appended message; parts that an edit replaced or hid may be empty. Never reads the store."""
        return self.appended.outline if isinstance(self.appended, Original) else self.appended

    @property
    def is_between(self) -> bool:
        """Return whether this is a stand-in between two messages. It belongs to neither, and has no position."""
        return not self.position

    @property
    def is_system(self) -> bool:
        """Return whether this is a system message of the conversation: a prompt or an instruction, not a summary."""
        return self.message.role == "system" and self.kind != "summary"

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the application's facts about the appended message as a new dict; empty if there are none."""
        return read_metadata(self.stamp.metadata)

    def metadata_as(self, kind: type[T]) -> T:
        """Return the application's facts as a value of this type: a dataclass, Struct, TypedDict or pydantic model.

        Raises BadInput if they are none, or were erased.
        """
        return read_metadata_as(self.stamp.metadata, kind)

    @property
    def result(self) -> ToolResult | None:
        """Return the appended result of a tool or an action, regardless of the visible form; None if it is no result.

        The result of an action has no call id, and its headline is left out. Like `source`, it may read the store.
        """
        if not isinstance(self.appended, Original):
            return self.outlined_result
        source = self.appended.message()
        return action_result(source, self.tool) if is_action_result(source, self.stamp) else source.result

    @property
    def outlined_result(self) -> ToolResult | None:
        """Return `result` as far as it is in memory: parts that an edit replaced or hid may be empty."""
        outline = self.outline
        if outline is None or not is_action_result(outline, self.stamp):
            return outline.result if outline else None
        result: ToolResult | None = self.recall("result")
        if result is None:
            self.remember("result", result := action_result(outline, self.tool))
        return result

    def __reduce__(self) -> tuple[type[Entry], tuple[Any, ...]]:
        """Pickle and copy the entry without the values that the library derived from it."""
        return type(self), tuple([getattr(self, name) for name in self.__struct_fields__ if name != "_memo"])

    def recall(self, key: object, default: Any = None) -> Any:
        """Return the value that `remember` stored under this key."""
        memo = self._memo
        if memo and memo[0] == id(self):  # Otherwise `replace` copied it from another entry.
            for index in range(1, len(memo), 2):
                if memo[index] == key:
                    return memo[index + 1]
        return default

    def remembered(self) -> Iterator[tuple[object, object]]:
        """Yield the keys and values that `remember` stored."""
        memo = self._memo
        if memo and memo[0] == id(self):
            yield from zip(memo[1::2], memo[2::2], strict=True)

    def remember(self, key: object, value: object) -> None:
        """Store a value that the library derives from this entry. It exists as long as the entry does."""
        # A tuple of keys and values: a dictionary takes three times as much memory, in each of many entries.
        memo = self._memo if self._memo and self._memo[0] == id(self) else (id(self),)
        others = [item for index in range(1, len(memo), 2) if memo[index] != key for item in memo[index : index + 2]]
        force_setattr(self, "_memo", (memo[0], *others, key, value))


class ListPlace(Struct, frozen=True, gc=False):
    """The place of a message in the caller's own list."""

    items: range
    """Indices of the items of the list that the message comes from, from 0. Usually one; a format may need several
    items for one message, such as the items of a response.
    """
    part: int = 0
    """Index of the message among those of the item, from 0."""
    parts: int = 1
    """Number of messages in the item, such as the results in one message of Anthropic."""
    is_edited: bool = False
    """Whether the list shows other content than the message that was appended."""


class View(Struct, frozen=True, eq=False):
    """The entries that the model sees at one turn, and facts that policies may use.

    A view can be copied and pickled. Pickling reads the messages that the view does not hold from the store, and raises
    StoreError if that fails.
    """

    entries: tuple[Entry, ...]
    """The visible messages, in order."""
    turn: int
    """Number of the model call that this view is for."""
    budget: Budget
    """The limits of the request."""
    call: CallContext = CallContext()
    """The circumstances of the coming call."""
    tasks: tuple[Task, ...] = ()
    """The newest compaction attempt of each policy."""
    retained: int = 0
    """Sequence number of the newest message with retention that has had its first call; 0: none."""
    preparing: tuple[str, ...] = ()
    """Policies with a summary in progress or ready in the background. They need not request one ahead of time."""
    withheld: tuple[Entry, ...] = ()
    """Messages with retention that show nothing now. They may have parts for later calls only."""
    newest_input: int = 0
    """Position of the last user input, even if it was erased and shows nothing; 0: unknown."""
    is_trial: bool = False
    """Whether the plan for this view is only a trial. Policies then log nothing."""
    list_places: Mapping[int, ListPlace] = {}
    """The places of messages in the list that the caller passed last, by their positions in the history."""
    marks: Marks = field(default_factory=Marks)
    """Facts about earlier views of the conversation (`Growing`)."""
    _memo: tuple[tuple[Entry, ...], tuple[int, int, int, int]] | None = None

    def __str__(self) -> str:
        """Return one short line, such as `turn 7: 12 entries, 8,210 of 152,000 usable tokens`."""
        limit = f" of {self.budget.usable:,} usable" if self.budget.has_window else ""
        entries = "1 entry" if len(self.entries) == 1 else f"{len(self.entries)} entries"
        return f"turn {self.turn}: {entries}, {self.tokens:,}{limit} tokens"

    def __repr__(self) -> str:
        return f"<View of {self}>"  # Its messages would fill the screen.

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries."""
        return iter(self.entries)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.entries)

    def index_of(self, id: str) -> int | None:
        """Return the index of the entry that shows the message with this id, or of the summary that begins or ends with
        it; None if there is none.
        """
        index = INDEXES.of(self).by_id.get(id)
        if index is None or index >= len(self.entries):
            return None
        entry = self.entries[index]
        return index if entry.id == id or (entry.span is not None and entry.span.last == id) else None

    def given(self, entry: Entry) -> ListPlace | None:
        """Return the place in the caller's list of the item that shows the same as this entry; None if none does.

        A program that keeps a list of its own passes its own object on for such an entry.
        """
        place = self.list_places.get(entry.position)
        if place is None or entry.kind != "message":
            return None
        if entry.shrunk and not place.is_edited and not entry.stamp.retention:  # As most entries that are not given.
            return None
        source = entry.outline
        if source is None:
            return None
        if place.is_edited:
            is_same = not entry.legalized and all(policy == CALLER for policy in entry.shrunk_by)
            return place if is_same and entry.shrunk else None
        shown = own_message(source, entry.stamp) if entry.stamp.retention else source
        if entry.legalized == OWN_ID:
            return place if shown is not None and _with_ids_of(entry.message, shown) == shown else None
        return place if entry.message is shown or entry.message == shown else None

    def by_item(self) -> Iterator[tuple[range, tuple[Entry, ...]]]:
        """Yield the entries in order, with the indices of the caller's items to pass on in their place.

        The entries of an item come together if the view shows all of the item, unchanged. Any other entry comes alone,
        with an empty range: the program makes a message of it.
        """
        entries, places = self.entries, self.list_places
        at = 0
        while at < len(entries):
            entry = entries[at]
            place = places.get(entry.position)
            if (  # As most items.
                place is not None
                and entry.message is entry.appended
                and place.parts == 1
                and not place.is_edited
                and entry.kind == "message"
                and not entry.stamp.retention
            ):
                yield place.items, (entry,)
                at += 1
                continue
            place = self.given(entry)
            if place is not None and place.parts == 1:
                yield place.items, (entry,)
                at += 1
            elif (
                place is not None and place.part == 0 and self._shows_rest(place, run := entries[at : at + place.parts])
            ):
                yield place.items, run
                at += place.parts
            else:
                yield range(0), entries[at : at + 1]
                at += 1

    def _shows_rest(self, place: ListPlace, run: Sequence[Entry]) -> bool:
        """Return whether these entries, of which the first is the beginning of an item, are all of it, unchanged."""
        if len(run) < place.parts:
            return False
        others = map(self.given, run[1:])
        return all(
            other is not None and (other.items, other.part) == (place.items, part)
            for part, other in enumerate(others, 1)
        )

    @property
    def last_input(self) -> int:
        """Return the position of the last visible user input, which no edit may change; 0 if there is none."""
        return self._measured()[3]

    def task_of(self, policy: str) -> Task | None:
        """Return the newest compaction attempt of this policy, or None."""
        return next((task for task in self.tasks if task.policy == policy), None)

    @property
    def tokens(self) -> int:
        """Return the size of all entries in tokens."""
        return self._measured()[0]

    @property
    def bytes(self) -> int:
        """Return the size of all entries in bytes."""
        return self._measured()[1]

    @property
    def images(self) -> int:
        """Return the number of images in all entries."""
        return self._measured()[2]

    def _measured(self) -> tuple[int, int, int, int]:
        """Return tokens, bytes and images of all entries, and the position of the last input."""
        memo, entries = self._memo, self.entries
        if memo is None or memo[0] is not entries:
            tokens, bytes, images, last = SIZES.of(self)
            memo = entries, (tokens, bytes, images, last)
            force_setattr(self, "_memo", memo)  # The values do not change.
        return memo[1]


def _with_ids_of(message: Message, other: Message) -> Message:
    """Return a message with the ids of calls and results that another one has in the same places."""
    parts = [
        replace(part, call_id=own.call_id)
        if isinstance(part, ToolCall | ToolResult) and isinstance(own, ToolCall | ToolResult)
        else part
        for part, own in zip(message.parts, other.parts, strict=False)
    ]
    return Message(message.role, (*parts, *message.parts[len(parts) :]), message.name, message.extra)
