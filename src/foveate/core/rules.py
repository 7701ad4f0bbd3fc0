"""What makes a view legal. One small class a rule, each naming who needs it and what breaks without it.

`legalize.py` makes views legal; this file says, without looking at how, whether one is. A rule reads entries in
order and keeps what it must remember between them, so that a view that only grew is checked at the cost of its new
entries (`Checker`). `cut_points` tells where a view may be cut without parting what belongs together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from .messages import Opaque, Reasoning, Text
from .profiles import Profile
from .rendering import is_carried
from .view import Entry, View

__all__ = ["RULES", "Checker", "Rule", "Violation", "check", "cut_points"]


class Violation(msgspec.Struct, frozen=True):
    """One broken rule."""

    rule: str
    position: int
    """Of the message that breaks it."""
    says: str

    def __str__(self) -> str:
        return f"message {self.position}: {self.says} ({self.rule})"


class Rule(Protocol):
    """Reads the entries of one view in order."""

    provider: str
    """Who refuses a request that breaks it."""
    breaks: str
    """What happens without it."""

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        """What is wrong with this entry after those before it."""
        ...

    def end(self, newest_input: int) -> Iterator[str]:
        """What is wrong if the view ends here. Changes nothing: more entries may follow. `newest_input`: position of
        the last user input, also of one that was erased; 0: it is the last that is shown.
        """
        ...


class _Alone:
    """A rule about each entry by itself."""

    def end(self, newest_input: int) -> Iterator[str]:
        yield from ()


class CallsAreAnswered:
    """Every call is answered right behind its message, once, and every answer has its call there."""

    provider = "anthropic, openai"
    breaks = (
        "tool_use ids were found without tool_result blocks immediately after; the conversation is refused for ever"
    )

    def __init__(self) -> None:
        self._open: set[str] = set()

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        result = entry.message.result
        if result is not None:
            if result.call_id not in self._open:
                yield f"answers call {result.call_id!r}, which is not open here"
            self._open.discard(result.call_id)
            return
        yield from self._unanswered()
        self._open = {call.call_id for call in entry.message.calls}

    def end(self, newest_input: int) -> Iterator[str]:
        return self._unanswered()

    def _unanswered(self) -> Iterator[str]:
        if self._open:
            yield f"leaves calls unanswered before it: {', '.join(sorted(self._open))}"


class CallIdsAreOwn(_Alone):
    """No call id is empty, and none is used twice."""

    provider = "anthropic (twice), anthropic and openai (empty, twice in one message)"
    breaks = "`tool_use` ids must be unique"

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        for call in entry.message.calls:
            if not call.call_id:
                yield "has a call without an id"
            if call.call_id in self._seen:
                yield f"uses call id {call.call_id!r} a second time"
            self._seen.add(call.call_id)


class NothingIsEmpty(_Alone):
    """No message without content, no blank text, no error that says nothing."""

    provider = "anthropic"
    breaks = (
        "messages must have non-empty content; text content blocks must contain non-whitespace text; content cannot be "
        "empty if is_error is true"
    )

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        parts, result = entry.message.parts, entry.message.result
        if all(isinstance(part, Reasoning) for part in parts):
            yield "has no content"
        if any(isinstance(part, Text) and not part.text.strip() for part in (result.content if result else parts)):
            yield "has a blank text"
        if result is not None and result.state == "error" and not result.content:
            yield "is an error that says nothing"


class ArgumentsAreObjects(_Alone):
    """The arguments of every call are a JSON object."""

    provider = "anthropic; most servers that speak OpenAI's protocol"
    breaks = "tool_use.input: Input should be a valid dictionary; cut JSON is refused for ever"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        for call in entry.message.calls:
            try:
                whole = isinstance(msgspec.json.decode(call.arguments), dict)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                whole = False
            if not whole:
                yield f"calls {call.name} with arguments that are not a JSON object"


class UserSpeaksFirst:
    """The first message that is not a system prompt is a user's."""

    provider = "anthropic"
    breaks = "messages: first message must use the user role"

    def __init__(self) -> None:
        self._spoken = False

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        if profile.user_first and not self._spoken and entry.message.role in ("assistant", "tool"):
            yield "speaks before any user"
        self._spoken = self._spoken or entry.message.role != "system"

    def end(self, newest_input: int) -> Iterator[str]:
        if not self._spoken:
            yield "nobody speaks: there is nothing but system prompts"


class ReasoningIsWhole(_Alone):
    """Reasoning is of this provider, signed where it must be, and goes with the calls it led to."""

    provider = "anthropic; openai responses"
    breaks = "Expected `thinking` but found `tool_use`; Invalid `signature` in `thinking` block"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        shown = [part for part in entry.message.parts if isinstance(part, Reasoning)]
        for part in shown:
            if part.format != profile.format:
                yield f"carries reasoning of {part.format or 'an unknown provider'}"
            elif profile.signed_reasoning and not (part.signature or part.encrypted):
                yield "carries unsigned reasoning"
        if entry.source is None or profile.binds_reasoning or not entry.message.calls:
            return
        said = [part for part in entry.source.parts if isinstance(part, Reasoning) and part.format == profile.format]
        if profile.signed_reasoning:
            said = [part for part in said if part.signature or part.encrypted]
        said = [part for part in said if is_carried(part, profile)]
        if said != shown:
            yield "makes calls without all of the reasoning that led to them"


class ForeignBlocksStayAway(_Alone):
    """A block that only another provider knows is not sent."""

    provider = "all"
    breaks = "an unknown block type is refused"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        result = entry.message.result
        for part in result.content if result else entry.message.parts:
            if isinstance(part, Opaque) and part.format != profile.format:
                yield f"holds a block of kind {part.kind!r} that {profile.format} does not know"


class PromptsAreIntact:
    """System prompts and the last user input are shown as they were said.

    Of an input that was erased there is nothing to show, and those before it are still not the last one.
    """

    provider = "nobody refuses; the agent forgets its rules or its task"
    breaks = "a rule or the pending request is lost"

    def __init__(self) -> None:
        self._problem = ""
        self._position = 0

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        if entry.source is None or entry.is_result:
            return
        if entry.stamp.origin == "user" and entry.source.has_content:
            is_intact = all(entry.stamp.is_added(path) for path in entry.shrunk)
            self._position = entry.position
            self._problem = "" if is_intact else f"the last user input, {entry.handle}, is not shown as it was said"
        if entry.message.role == "system" and entry.shrunk:
            yield "is a system prompt that is not shown as it was said"

    def end(self, newest_input: int) -> Iterator[str]:
        if self._problem and self._position >= newest_input:
            yield self._problem


RULES: tuple[Callable[[], Rule], ...] = (
    CallsAreAnswered,
    CallIdsAreOwn,
    NothingIsEmpty,
    ArgumentsAreObjects,
    UserSpeaksFirst,
    ReasoningIsWhole,
    ForeignBlocksStayAway,
    PromptsAreIntact,
)


class _Mark(msgspec.Struct, frozen=True):
    """What the rules knew after the first `read` entries."""

    read: int
    rules: list[Rule]
    found: list[Violation]


class Checker:
    """Checks the views of one conversation, one after the other, at the cost of what is new in each.

    It remembers what the rules knew at a few marks along the last view, so that an edit near the end, the usual kind,
    does not mean reading everything again.
    """

    _STEP = 32
    _MARKS = 16

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._read: tuple[Entry, ...] = ()
        self._rules: list[Rule] = [rule() for rule in RULES]
        self._found: list[Violation] = []
        self._marks: list[_Mark] = []

    def check(self, entries: Sequence[Entry], newest_input: int = 0) -> list[Violation]:
        """All violations in these entries, in their order. `newest_input`: as for `Rule.end`."""
        view = tuple(entries)
        known = self._return_to(view)
        for index in range(known, len(view)):
            if index % self._STEP == 0:
                self._marks.append(_Mark(index, _copies(self._rules), list(self._found)))
                del self._marks[: -self._MARKS]
            for rule in self._rules:
                for says in rule.read(view[index], self._profile):
                    self._found.append(Violation(type(rule).__name__, view[index].position, says))
        self._read = view
        last = view[-1].position if view else 0
        at_end = [Violation(type(rule).__name__, last, says) for rule in self._rules for says in rule.end(newest_input)]
        return self._found + at_end

    def _return_to(self, view: tuple[Entry, ...]) -> int:
        """Go back to what was known at the newest mark before `view` differs from the last one; how much that was."""
        known = len(self._read)
        if view[:known] == self._read:  # Entries compare by identity: one pass over pointers.
            return known
        same = _shared(self._read, view)
        while self._marks and self._marks[-1].read > same:
            self._marks.pop()
        mark = self._marks.pop() if self._marks else _Mark(0, [rule() for rule in RULES], [])
        self._rules, self._found = mark.rules, mark.found
        return mark.read


def _shared(old: tuple[Entry, ...], new: tuple[Entry, ...]) -> int:
    """How many entries two views have in common at their beginning, found by halving: comparing slices is cheap."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _copies(rules: Sequence[Rule]) -> list[Rule]:
    copies = [copy.copy(rule) for rule in rules]
    for rule in copies:
        for name, value in vars(rule).items():
            if isinstance(value, set):
                setattr(rule, name, set(value))
    return copies


def check(view: View | Sequence[Entry], profile: Profile) -> list[Violation]:
    """What is wrong with this view for this provider; nothing wrong: an empty list."""
    if isinstance(view, View):
        return Checker(profile).check(view.entries, view.newest_input)
    return Checker(profile).check(view)


def cut_points(view: View | Sequence[Entry]) -> list[int]:
    """Indices of entries before which a view may be cut: never inside a unit, never right behind a stand-in's call.

    Both ends (0 and the number of entries) are among them.
    """
    entries = view.entries if isinstance(view, View) else view
    points: list[int] = []
    waiting: set[str] = set()
    for index, entry in enumerate(entries):
        result = entry.message.result
        if result is not None:
            waiting.discard(result.call_id)
            continue
        if not waiting:
            points.append(index)
        waiting = {call.call_id for call in entry.message.calls}
    return [*points, len(entries)]
