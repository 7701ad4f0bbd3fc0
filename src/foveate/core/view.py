"""What the model sees: a frozen view, its entries, and the facts a policy may use.

A view is what `projection.py` computes from a history and its journal. Policies read it and return edits; formats
write it down for a provider. Both only look: nothing in here changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from .edits import Path, Span, Task, paths_overlap
from .messages import Message, ToolResult
from .stamps import Stamp

__all__ = ["Budget", "CallContext", "Entry", "Kind", "PinnedPart", "Prices", "View"]

Kind = Literal["message", "summary", "note", "stand-in"]
"""`message`: as appended or edited; `summary`: stands for a span; `note`: a tool result that can no longer answer
its call, told as a user's note; `stand-in`: the answer that a call without one needs.
"""


class PinnedPart(Struct, frozen=True, gc=False, array_like=True):
    """One pin on a message."""

    path: Path = ()
    """The part it keeps; `()` the whole message."""
    policy: str = ""
    """Who pinned it; "" where it was done by hand."""


class Entry(Struct, frozen=True, eq=False, gc=False):
    """One message of a view. Entries are compared by identity: an unchanged entry is the same object from view to
    view.
    """

    position: int
    """Place in the history, from 1; of the first message where it stands for several."""
    id: str
    """Id of the message it shows; of the first one of a span."""
    message: Message
    """What the model sees."""
    source: Message | None
    """What was appended; None where the entry stands for a span or for nothing."""
    stamp: Stamp
    kind: Kind = "message"
    tool: str = ""
    """For a tool result: the name of the tool that was called."""
    edits: tuple[int, ...] = ()
    """Numbers of the edits that shaped it, oldest first."""
    shrunk: tuple[Path, ...] = ()
    """Parts that do not show their original content."""
    shrunk_by: tuple[str, ...] = ()
    """For each of these parts: the policy whose edit made it so; "" where it was an edit by hand."""
    expandable: bool = True
    """Whether the model may have the originals of all its parts back."""
    span: Span | None = None
    """What a summary stands for."""
    last: int = 0
    """Position of the last message it stands for."""
    seen: int = 0
    """For a summary: position of the newest message when it was made."""
    pins: tuple[PinnedPart, ...] = ()
    """What of it is pinned, each with who did it."""
    renewed: int = 0
    """Turn in which its content was last restored, or for which it was appended as an expansion; 0: never."""
    legalized: str = ""
    """Why it differs from what was appended without any edit: the rule that demanded it."""
    tokens: int = 0
    bytes: int = 0
    images: int = 0
    is_result: bool = False
    """Whether it shows what a tool answered, whole or shrunk, in its place or as a note."""

    @property
    def handle(self) -> str:
        """The short stable name that `expand` takes: `m12` is the twelfth message of the conversation."""
        return f"m{self.position}"

    def is_pinned(self, path: Path = ()) -> bool:
        """Return whether an edit at `path` would touch a pinned part. Without a path: whether any part is pinned."""
        return any(paths_overlap(pin.path, path) for pin in self.pins)

    @property
    def is_input(self) -> bool:
        """Whether the user said this, and said something."""
        return self.stamp.origin == "user" and self.source is not None and self.source.has_content

    @property
    def result(self) -> ToolResult | None:
        """The tool result that was appended, whatever is shown of it now."""
        return self.source.result if self.source else None


class Budget(Struct, frozen=True):
    """What a request may hold. Tokens are estimates of the conversation's counter, scaled by what the provider
    measured.
    """

    window: int
    """The model's window in tokens."""
    reserve: int
    """Kept free for the answer, in tokens."""
    max_bytes: int
    max_images: int
    overhead: int = 0
    """Tokens of what travels beside the view: system prompt and tool definitions of the last prompt."""
    overhead_bytes: int = 0
    scale: float = 1.0
    """Provider-measured tokens over estimated ones, from the last measured call."""

    @property
    def usable(self) -> int:
        """Tokens a view may hold by the counter's own estimate: window less reserve, corrected by scale, less
        overhead.
        """
        return int((self.window - self.reserve) / self.scale) - self.overhead

    @property
    def usable_bytes(self) -> int:
        return self.max_bytes - self.overhead_bytes


class Prices(Struct, frozen=True):
    """Prices of input as multiples of the base input price.

    Defaults: Anthropic's cache of five minutes (read 0.1, write 1.25).
    """

    read: float = 0.1
    write: float = 1.25
    output: float = 5.0
    cache_seconds: int = 300


class CallContext(Struct, frozen=True):
    """When a view is looked at."""

    now: int = 0
    """Milliseconds since 1970, by the conversation's clock."""
    idle: float | None = None
    """Seconds since the last request; None: there was none."""
    prices: Prices = Prices()


class View(Struct, frozen=True, eq=False):
    """What the model sees at one turn, and the facts that policies may use."""

    entries: tuple[Entry, ...]
    turn: int
    """Number of the model call this view is for."""
    budget: Budget
    call: CallContext = CallContext()
    tasks: tuple[Task, ...] = ()
    """How the newest compaction of each policy stands, as far as there was one."""
    retained: int = 0
    """Sequence number of the newest message with retention that has had its first call; 0: none has."""
    preparing: tuple[str, ...] = ()
    """Policies for which a summary is being written in the background, or lies ready: they need not ask ahead."""
    withheld: tuple[Entry, ...] = ()
    """Messages with retention of which nothing is shown: they may hold what is only for later calls."""
    newest_input: int = 0
    """Position of the last user input, also where nothing is shown of it because it was erased; 0: not told."""
    is_trial: bool = False
    """Whether what is planned for it is only looked at: nothing is to be told of it, to a log for example."""
    _sizes: tuple[int, int, int] | None = None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def last_input(self) -> int:
        """Position of the last user input that is shown, which no edit may touch; 0 if there is none."""
        inputs = (entry.position for entry in reversed(self.entries) if entry.is_input)
        return next(inputs, 0)

    def task_of(self, policy: str) -> Task | None:
        """How the newest compaction of this policy stands."""
        return next((task for task in self.tasks if task.policy == policy), None)

    @property
    def tokens(self) -> int:
        return self._measured()[0]

    @property
    def bytes(self) -> int:
        return self._measured()[1]

    @property
    def images(self) -> int:
        return self._measured()[2]

    def _measured(self) -> tuple[int, int, int]:
        sizes = self._sizes
        if sizes is None:
            entries = self.entries
            tokens = sum([entry.tokens for entry in entries])
            sizes = (tokens, sum([entry.bytes for entry in entries]), sum([entry.images for entry in entries]))
            force_setattr(self, "_sizes", sizes)  # a memo: the view stays the value it is
        return sizes
