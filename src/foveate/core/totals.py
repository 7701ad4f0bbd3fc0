"""What managing a conversation's context came to: tokens saved, and what saving them cost.

A `Tally` is told what happened, in order: messages, commits, and what each model call was shown. It sums; it knows no
store and no clock. Told the whole history and journal it gives the totals of the conversation, the same each time; told
only what happens from now on, it gives what has happened since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy

import msgspec
from msgspec import Struct

from .edits import Record, Replace, Restore, Summarize, Task
from .messages import Message, ToolCall
from .stamps import Stamp, Usage
from .view import Entry, Prices

__all__ = ["Tally", "Totals"]

_SHOWN = ("whole", "lines", "items", "pattern")
"""Forms of what the conversation says itself that show content again."""


class Totals(Struct, frozen=True):
    """Sums over all model calls of a conversation, those of a past it shares with others too.

    Tokens are the counter's estimates of messages; what travels beside them (system prompt, tools) is not in them.
    `msgspec.to_builtins(totals)` is plain JSON.
    """

    calls: int = 0
    """Model calls that were answered."""
    tokens_whole: int = 0
    """What they would have been sent if each were sent everything said before it."""
    tokens_sent: int = 0
    """What they were sent: their views."""
    tokens_rebilled: int = 0
    """Of what was sent: what stood behind the first change that an edit made, and took the place of what was in the
    request before. Without the edit a warm cache would have had it; so it had to be written again.
    """
    expansions: int = 0
    """How often an original, or a part of one, was shown again because somebody asked for it."""
    tokens_expanded: int = 0
    """What those added when they were shown."""
    refetches: int = 0
    """Calls made again, same tool and same arguments, whose earlier result was shrunk or hidden at that time. Some
    would have been made again anyway.
    """
    tokens_refetched: int = 0
    """Their results."""
    summaries: Mapping[str, int] = {}
    """Summaries that were accepted, by who wrote them. Under "": texts in place of spans whose writer did not say a
    name, be it a summarizer or a policy itself.
    """
    refused: Mapping[str, int] = {}
    """Answers that did not do, by who gave them."""
    failed: int = 0
    """Compactions that failed."""
    usage: Usage = Usage()
    """What providers said they billed. None where no call told."""
    calls_billed: int = 0
    """Calls for which they said so."""
    tokens_history: int = 0
    """What everything said so far takes, each once; so a coming call that is sent everything whole."""

    @property
    def tokens_saved(self) -> int:
        """Tokens that were not sent, summed over calls."""
        return self.tokens_whole - self.tokens_sent

    @property
    def asked(self) -> int:
        """How often somebody was asked for a summary and answered, as far as it is known by whom."""
        return sum(self.summaries.values()) - self.summaries.get("", 0) + sum(self.refused.values())

    def cost(self, prices: Prices) -> float:
        """What was billed, in tokens at the price of uncached input. Times that price, it is money.

        Only calls whose usage is known count.
        """
        used = self.usage
        cached = prices.read * (used.cache_read or 0) + prices.write * (used.cache_write or 0)
        return (used.input or 0) + cached + prices.output * (used.output or 0)

    def __str__(self) -> str:
        share = f" ({self.tokens_saved / self.tokens_whole:.0%})" if self.tokens_whole else ""
        lines = [
            f"{self.calls:,} calls: {self.tokens_sent:,} of {self.tokens_whole:,} tokens sent, "
            f"{self.tokens_saved:,} saved{share}",
            f"re-billed {self.tokens_rebilled:,}; expanded {self.tokens_expanded:,} ({self.expansions} times); "
            f"re-fetched {self.tokens_refetched:,} ({self.refetches} times)",
        ]
        if self.summaries or self.refused or self.failed:
            accepted, refused = _counted(self.summaries), _counted(self.refused)
            lines.append(f"summaries: {accepted or 'none'}; refused: {refused or 'none'}; failed: {self.failed}")
        if self.calls_billed:
            used = self.usage
            lines.append(
                f"billed for {self.calls_billed:,} calls: input {used.input or 0:,}, cache read "
                f"{used.cache_read or 0:,}, cache write {used.cache_write or 0:,}, output {used.output or 0:,}"
            )
        return "\n".join(lines)


class Tally:
    """Sums up what it is told, in the order in which it happened. Telling costs O(view) for each call, at most."""

    def __init__(self) -> None:
        self._whole = 0
        """Tokens of all messages so far, but for those that only repeat what was said before."""
        self._sums: Counter[str] = Counter()
        self._summaries: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._usage: dict[str, int] = {}
        self._before: tuple[Entry, ...] = ()
        """What the last call was shown."""
        self._sent = 0
        """Its tokens."""
        self._newest = 0
        """Position of the newest message when it was."""
        self._position = 0
        self._is_edited = False
        """Whether something was committed since."""
        self._waiting: dict[str, tuple[str, str]] = {}
        """Calls without a result, by id: tool and arguments."""
        self._results: dict[tuple[str, str], str] = {}
        """Tool and arguments to the id of the newest message that answered them."""
        self._again: set[str] = set()
        """Calls that were made again, and have no result yet."""

    def copy(self) -> Tally:
        """The same sums, to go on from apart."""
        made = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | set):
                setattr(made, name, value.copy())
        return made

    def add_call(self, entries: tuple[Entry, ...]) -> None:
        """A model call begins that is shown these entries."""
        self._sums["calls"] += 1
        self._sums["tokens_whole"] += self._whole
        before = self._before
        is_extended = before == entries[: len(before)]  # The same objects: a glance at each.
        known, new = (self._sent, entries[len(before) :]) if is_extended else (0, entries)
        self._sent = known + sum([entry.tokens for entry in new])
        self._sums["tokens_sent"] += self._sent
        if self._is_edited and not is_extended:
            pairs = zip(before, entries, strict=False)
            same = next((i for i, (old, new) in enumerate(pairs) if not _is_same(old, new)), len(entries))
            again = [entry.tokens for entry in entries[same:] if entry.position <= self._newest]
            self._sums["tokens_rebilled"] += sum(again)
        self._before, self._newest, self._is_edited = entries, self._position, False

    @property
    def position(self) -> int:
        """Position of the newest message it was told of, or that `resumes` names."""
        return self._position

    def resume_at(self, whole: int, position: int) -> None:
        """Go on from a past that it was not told of: up to this position, with so many tokens in all messages."""
        self._whole, self._position = whole, position

    def add_message(self, position: int, id: str, message: Message, stamp: Stamp) -> None:
        """A message was added."""
        self._position = position
        shown = stamp.expanded
        if shown is None:
            self._whole += stamp.tokens
        elif shown.form in _SHOWN:
            self._sums["expansions"] += 1
            self._sums["tokens_expanded"] += stamp.tokens
        if stamp.usage is not None:
            self._bill(stamp.usage)
        for call in message.calls:
            self._call(call)
        if message.result is not None:
            self._answer(message.result.call_id, id, stamp.tokens)

    def add_record(self, record: Record) -> None:
        """A commit was made."""
        restored = 0
        for edit in record.edits:
            match edit:
                case Task():
                    self._sums["failed"] += edit.state == "failed"
                    continue
                case Replace() | Summarize():
                    self._summaries[edit.by] += bool(edit.by or (edit.policy and isinstance(edit, Summarize)))
                    self._refused.update(who.partition(": ")[0] for who in edit.refused)
                case Restore(policy="") if record.author != "undo":
                    restored += 1
                case _:
                    pass
            self._is_edited = True
        if restored:  # Measured on the whole view: what is restored may take the place of a summary.
            self._sums["expansions"] += restored
            self._sums["tokens_expanded"] += record.tokens_after - record.tokens_before

    def totals(self) -> Totals:
        """The sums so far."""
        return Totals(
            **self._sums,
            summaries=dict(+self._summaries),
            refused=dict(self._refused),
            usage=Usage(**self._usage),
            tokens_history=self._whole,
        )

    def _bill(self, usage: Usage) -> None:
        self._sums["calls_billed"] += 1
        for name in Usage.__struct_fields__:
            tokens = getattr(usage, name)
            if tokens is not None:
                self._usage[name] = self._usage.get(name, 0) + tokens

    def _call(self, call: ToolCall) -> None:
        asked = call.name, _canonical(call.arguments)
        self._waiting[call.call_id] = asked
        earlier = self._results.get(asked)
        if earlier is not None and not _is_whole(earlier, self._before):
            self._again.add(call.call_id)

    def _answer(self, call_id: str, id: str, tokens: int) -> None:
        asked = self._waiting.pop(call_id, None)
        if asked is None:
            return
        self._results[asked] = id
        if call_id in self._again:
            self._again.discard(call_id)
            self._sums["refetches"] += 1
            self._sums["tokens_refetched"] += tokens


def _is_same(old: Entry, new: Entry) -> bool:
    """Whether two entries read the same; a pin, for example, changes an entry and not what it says."""
    return old is new or (old.id == new.id and old.message == new.message)


def _is_whole(id: str, entries: Iterable[Entry]) -> bool:
    """Whether these entries show the whole of the message with this id."""
    return any(entry.span is None and not entry.shrunk for entry in entries if entry.id == id)


def _canonical(arguments: str) -> str:
    """The same text for the same JSON, whatever its order and white space."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic").decode()
    except (msgspec.DecodeError, RecursionError):
        return arguments


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{who or 'unnamed'} {count}" for who, count in sorted(counts.items()))
