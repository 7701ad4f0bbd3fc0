"""Messages become rows of a chain: stamped, hashed and sealed, behind whatever the tip is by then.

What others append meanwhile decides little of it: the turn, the sequence of retention, the name of a tool that they
called. What does not depend on them is made once. Pure, but for the clock that it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ..core import ids, wire
from ..core.messages import Message
from ..core.projection import Projection
from ..core.redacted_form import redacted_stamp
from ..core.sizes import tokens_of
from ..core.stamps import Expansion, Lease, Origin, PartRetention, Retention, Stamp, Stop, Usage
from ..errors import ConflictError
from ..ports import Changes, Clock, Head, StoredMessage, TokenCounter

__all__ = ["NOTHING_SAID", "About", "Batch"]

_ORIGINS: dict[str, Origin] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_TYPES: dict[str, Origin] = {
    **dict.fromkeys(
        ["action-result", "sub-agent-result", "loop-result", "tool-result", "client-tool-result"],
        "tool",
    ),
    "retry-context": "derived",
}
"""What an application's own types of messages are, if they are not what their role says."""


class About(Struct, frozen=True):
    """What is said of messages when they are appended, beside the messages."""

    time: int | None = None
    """Milliseconds since 1970; None: now."""
    origin: Origin | None = None
    usage: Usage | None = None
    lease: Lease | None = None
    kept: Mapping[int, tuple[PartRetention, ...]] = {}
    """How long each part is shown, for messages with retention, by their place in what is appended, from 0."""
    metadata: str = ""
    expanded: Expansion | None = None
    """For what the conversation itself says."""
    step: str = ""
    """The step of an agent's run that it comes from."""
    call: int = 0
    """On a reply: the number of the model call that it answers, where only one reply may; 0: nobody asks."""
    stop: Stop | None = None
    """On a reply: why it ended."""
    owner: str = ""
    """Who has to have the claim on the conversation, else nothing is appended; "": nobody."""

    def origin_of(self, message: Message) -> Origin:
        """Where a message came from: as was said, else by its type, else by its role."""
        kind = self.lease.message_type if self.lease and message.role == "user" else ""
        return self.origin or _TYPES.get(kind) or _ORIGINS[message.role]


NOTHING_SAID = About()
"""Messages that speak for themselves."""


class Batch:
    """Messages that are to be appended together.

    `past`: what is known of what came before. `begun`: number of the model call that was begun and not answered yet, or
    0. `estimate`: what the counter had estimated for its prompt.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        about: About,
        past: Projection,
        *,
        clock: Clock,
        counter: TokenCounter,
        begun: int = 0,
        estimate: int = 0,
    ) -> None:
        self.bodies = [wire.encode_message(message) for message in messages]
        """Canonical bytes."""
        self.messages, self._about, self._past, self._begun = messages, about, past, begun
        self._clock, self._estimate = clock, estimate
        self._hashes = [ids.body_hash(body) for body in self.bodies]
        self._tokens = [tokens_of(message, counter) for message in messages]
        self.made: list[StoredMessage] = []
        """The rows that were made last: those that are stored, once a store has taken them."""

    def rows(self, head: Head) -> list[StoredMessage]:
        """As rows that follow a head which ends with what is known."""
        facts = self._past.facts
        return self._rows(head, facts.turn, self._begun, facts.sequence, self._past.tool_of)

    def behind(self, tail: Changes) -> list[StoredMessage]:
        """As rows that follow a head which others have moved on since.

        Raises ConflictError where what they said may be what this is, or answer what this answers: somebody has to
        look.
        """
        newest = tail.newest()
        if newest is None:
            return self.rows(tail.head)
        facts, about, begun = self._past.facts, self._about, self._begun
        turn, sequence = max(facts.turn, newest.turn), facts.sequence
        if begun or about.kept or about.call or about.step:
            stamps = [row.stamp for row in tail.rows()]
            is_answered = any(stamp.origin == "assistant" for stamp in stamps)
            if (about.call and is_answered) or (about.step and any(stamp.step == about.step for stamp in stamps)):
                raise ConflictError(f"Others extended {tail.head.name!r} first, and may have said this.")
            begun = 0 if is_answered else begun
            sequence = max([sequence, *(stamp.retention.sequence for stamp in stamps if stamp.retention)])

        def tool_of(call_id: str) -> str:
            return self._past.tool_of(call_id) or _tool_in(tail.rows(), call_id)

        return self._rows(tail.head, turn, max(begun, turn) if begun else 0, sequence, tool_of)

    def _rows(
        self, head: Head, turn: int, begun: int, sequence: int, tool_of: Callable[[str], str]
    ) -> list[StoredMessage]:
        about = self._about
        now = self._clock() if about.time is None else about.time
        parent, link = head.tip, head.seal
        turn, is_asked = begun or turn, bool(begun)
        rows: list[StoredMessage] = []
        tools: dict[str, str] = {}
        made = zip(self.messages, self.bodies, self._hashes, self._tokens, strict=True)
        for i, (message, body, digest, tokens) in enumerate(made):
            source, kept = "", about.kept.get(i)
            sequence += 1 if kept else 0
            if message.role == "assistant":
                turn, is_asked = (turn if is_asked else turn + 1), False
                tools.update((call.call_id, call.name) for call in message.calls)
            elif (result := message.result) is not None:
                source = result.name or tools.get(result.call_id) or tool_of(result.call_id)
            is_reply = about.usage is not None and message.role == "assistant"
            stamp = Stamp(
                turn,
                now,
                tokens,
                about.origin_of(message),
                source,
                about.usage if is_reply else None,
                self._estimate if is_reply else 0,
                about.lease,
                Retention(sequence, kept) if kept else None,
                about.metadata,
                about.expanded,
                about.step,
                about.stop if message.role == "assistant" else None,
            )
            parent = ids.message_id(parent, digest)
            link = ids.seal(link, parent, redacted_stamp(stamp))
            rows.append(StoredMessage(head.position + len(rows) + 1, parent, link, stamp, body, digest))
        self.made = rows
        return rows


def _tool_in(rows: Sequence[StoredMessage], call_id: str) -> str:
    """The name of the tool behind the newest call with this id."""
    for row in reversed(rows):
        message = wire.decode_message(row.body) if row.body else None
        for call in message.calls if message else ():
            if call.call_id == call_id:
                return call.name
    return ""
