"""Rules that make a view legal: one small class a rule, with the provider that needs it.

`legalize.py` makes views legal; this module checks them independently. A rule reads entries in order and keeps its own
state, so `Checker` checks a view that only grew at the cost of its new entries.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from .edits import CALLER, Path
from .growing import STEP, mark_places, shared_length
from .messages import Opaque, Reasoning, Text
from .profiles import Profile
from .rendering import is_carried, is_directive
from .saved_views import SavedRules
from .server_tools import ServerBlock, pair_key, server_blocks
from .system_messages import ends_in_server_result
from .view import Entry, View

__all__ = ["RULES", "Checker", "Rule", "Violation", "check"]


class Violation(msgspec.Struct, frozen=True):
    """One broken rule."""

    rule: str
    """Name of the rule."""
    position: int
    """Position of the message that breaks it."""
    problem: str
    """The problem, as the rest of a sentence about the message."""

    def __str__(self) -> str:
        return f"message {self.position}: {self.problem} ({self.rule})"


class Rule(Protocol):
    """A rule that reads the entries of one view in order."""

    provider: str
    """The providers that refuse a request that breaks the rule."""
    breaks: str
    """The provider's error, or the damage, without the rule."""

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        """Yield the problems of this entry after the entries before it."""
        ...

    def end(self, newest_input: int) -> Iterator[str]:
        """Yield the problems if the view ends here. Changes no state: more entries may follow.

        `newest_input`: position of the last user input, even if it is erased; 0: the last visible input is the last
        one.
        """
        ...


class _Inside:
    """A rule that no end of a view breaks."""

    def end(self, newest_input: int) -> Iterator[str]:
        yield from ()


class _Alone(_Inside):
    """A rule about each entry alone, which keeps no state of the entries before it."""


class CallsAreAnswered:
    """Every call is answered once, directly after its message, and every answer follows its call."""

    provider = "anthropic, openai, gemini"
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


class CallIdsAreOwn(_Inside):
    """No call id is empty or too long, and none is used twice."""

    provider = "anthropic (twice), anthropic and openai (empty, twice in one message), openai (too long)"
    breaks = "`tool_use` ids must be unique; Invalid 'messages[1].tool_calls[0].id': string too long"

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        for call in entry.message.calls:
            if not call.call_id:
                yield "has a call without an id"
            if len(call.call_id) > profile.max_call_id:
                yield f"has a call id of more than {profile.max_call_id} characters"
            if call.call_id in self._seen:
                yield f"uses call id {call.call_id!r} a second time"
            self._seen.add(call.call_id)


class CallsAreLimited(_Alone):
    """No message makes more calls than the provider takes."""

    provider = "openai"
    breaks = "Invalid 'messages[1].tool_calls': array too long. Expected an array with maximum length 128"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        if profile.max_calls and len(entry.message.calls) > profile.max_calls:
            yield f"makes more than {profile.max_calls} calls"


class ServerToolsArePaired:
    """A server tool's result follows its use, and another message than a call's result ends the wait for it."""

    provider = "anthropic, gemini"
    breaks = (
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks; `web_search` tool use was found without a "
        "corresponding `web_search_tool_result` block; the conversation is refused for ever"
    )

    def __init__(self) -> None:
        self._open: dict[str, ServerBlock] = {}
        self._seen: set[str] = set()

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        role = entry.message.role
        if role == "assistant":
            for index, block in server_blocks(entry.message):
                key = pair_key(block, f"{entry.position}.{index}", self._open)
                if not block.is_use:
                    if not key:
                        yield f"holds the result of server tool use {block.id!r}, which is not open here"
                    self._open.pop(key, None)
                    continue
                if key in self._seen or not key:
                    yield f"uses a server tool under the id {block.id!r}, which is not its own"
                self._seen.add(key)
                self._open[key] = block
            return
        ended = sorted(key for key, block in self._open.items() if role != "tool" or not block.may_wait)
        if ended:
            yield f"leaves server tools without a result before it: {', '.join(ended)}"
        for key in ended:
            del self._open[key]

    def end(self, newest_input: int) -> Iterator[str]:
        if unfinished := sorted(key for key, block in self._open.items() if not block.may_wait):
            yield f"is the end of a view that leaves server tools without a result: {', '.join(unfinished)}"


class NothingIsEmpty(_Alone):
    """No message without content, no blank text, no error without content."""

    provider = "anthropic, gemini"
    breaks = (
        "messages must have non-empty content; text content blocks must contain non-whitespace text; content cannot be "
        "empty if is_error is true"
    )

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        parts, result = entry.message.parts, entry.message.result
        if all(isinstance(part, Reasoning) for part in parts) and not is_directive(entry.message, profile):
            yield "has no content"
        if any(isinstance(part, Text) and not part.text.strip() for part in (result.content if result else parts)):
            yield "has a blank text"
        if result is not None and result.state == "error" and not result.content:
            yield "is an error without content"


class ArgumentsAreObjects(_Alone):
    """The arguments of every call are a JSON object."""

    provider = "anthropic, gemini; most servers that speak OpenAI's protocol"
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

    provider = "anthropic, gemini"
    breaks = "messages: first message must use the user role"

    def __init__(self) -> None:
        self._spoken = False

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        head = entry.message.parts[0] if entry.message.parts else None
        is_compaction = isinstance(head, Opaque) and head.is_compaction
        if (
            profile.user_first
            and not self._spoken
            and entry.message.role in ("assistant", "tool")
            and not is_compaction
        ):
            yield "comes before any user"
        self._spoken = self._spoken or entry.message.role != "system" or entry.kind == "note"

    def end(self, newest_input: int) -> Iterator[str]:
        if not self._spoken:
            yield "is the end of a view with only system prompts"


class SystemsHavePlaces(_Inside):
    """A system message after the beginning is where the provider takes one.

    Consecutive ones count as one. Those without content, which only change settings, may be anywhere.
    """

    provider = "anthropic"
    breaks = "role 'system' must follow a 'user' message; role 'system' must precede an 'assistant' message"

    def __init__(self) -> None:
        self._begun = False  # whether there was an entry that is not a system message
        self._may_follow = False  # whether an instruction may follow the newest one of these
        self._is_instructed = False  # whether a system message with content follows it

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        is_system = entry.message.role == "system" and entry.kind != "note"
        if not is_system:
            if self._is_instructed and self._begun and entry.message.role != "assistant":
                yield "follows a system message, which must come before a reply or at the end"
            self._begun, self._is_instructed = True, False
            self._may_follow = entry.message.role != "assistant" or ends_in_server_result(entry.message)
            return
        if profile.system_places == "any" or not self._begun or is_directive(entry.message, profile):
            return
        if profile.system_places == "first":
            yield "is a system message after the beginning"
            return
        self._is_instructed = True
        if not self._may_follow:
            yield "is a system message that follows neither a user's message nor the result of a server tool"


class ReasoningIsWhole(_Alone):
    """Reasoning is from this provider, signed if required, and stays with the calls it led to."""

    provider = "anthropic; openai responses"
    breaks = "Expected `thinking` but found `tool_use`; Invalid `signature` in `thinking` block"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        shown = [part for part in entry.message.parts if isinstance(part, Reasoning)]
        for part in shown:
            if part.format != profile.format:
                yield f"carries reasoning of {part.format or 'an unknown provider'}"
            elif profile.signed_reasoning and not (part.signature or part.encrypted):
                yield "carries unsigned reasoning"
        if entry.outline is None or profile.binds_reasoning or not entry.message.calls:
            return
        expected = [
            part for part in entry.outline.parts if isinstance(part, Reasoning) and part.format == profile.format
        ]
        if profile.signed_reasoning:
            expected = [part for part in expected if part.signature or part.encrypted]
        expected = [part for part in expected if is_carried(part, profile)]
        if expected != shown:
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


class CompactionsComeFirst(_Inside):
    """A compaction by the provider comes before everything but system prompts at the beginning."""

    provider = "anthropic, openai"
    breaks = "compaction_block_misplaced; the provider ignores everything before it"

    def __init__(self) -> None:
        self._is_first = True

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        parts = entry.message.parts
        if not self._is_first and any(isinstance(part, Opaque) and part.is_compaction for part in parts):
            yield "holds a compaction after messages that it replaces"
        self._is_first = self._is_first and (entry.is_system or entry.kind == "stand-in")


class PromptsAreIntact:
    """System prompts and the last user input are shown unchanged.

    An erased input shows nothing, and the inputs before it do not become the last one.
    """

    provider = "no provider; without it the agent forgets its rules or its task"
    breaks = "a rule or the pending request is lost"

    def __init__(self) -> None:
        self._problem = ""
        self._position = 0

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        if entry.outline is None or entry.is_result:
            return
        if entry.stamp.origin == "user" and entry.outline.has_content:
            is_intact = all(entry.stamp.is_added(path) for path in _changed_paths(entry))
            self._position = entry.position
            self._problem = "" if is_intact else f"the last user input, {entry.handle}, is not shown unchanged"
        if entry.is_system and _changed_paths(entry):
            yield "is a system prompt that is not shown unchanged"

    def end(self, newest_input: int) -> Iterator[str]:
        if self._problem and self._position >= newest_input:
            yield self._problem


def _changed_paths(entry: Entry) -> list[Path]:
    """Return the places that show other content, except by the caller's own list."""
    return [path for path, policy in zip(entry.shrunk, entry.shrunk_by, strict=True) if policy != CALLER]


RULES: tuple[Callable[[], Rule], ...] = (
    CallsAreAnswered,
    CallIdsAreOwn,
    CallsAreLimited,
    ServerToolsArePaired,
    NothingIsEmpty,
    ArgumentsAreObjects,
    UserSpeaksFirst,
    SystemsHavePlaces,
    ReasoningIsWhole,
    ForeignBlocksStayAway,
    CompactionsComeFirst,
    PromptsAreIntact,
)


class _Mark(msgspec.Struct, frozen=True):
    """The state of the rules after the first `read` entries."""

    read: int
    rules: list[Rule]
    violations: list[Violation]


class Checker:
    """Check the views of one conversation, one after the other, at the cost of their new entries.

    The checker keeps the state of the rules at a few marks along the last view. So after an edit it reads the entries
    from a mark before the edited place on.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        """The profile that this checker was made for."""
        self._read: tuple[Entry, ...] = ()
        self._rules: list[Rule] = [rule() for rule in RULES]
        self._violations: list[Violation] = []
        self._marks: list[_Mark] = []

    def check(self, entries: Sequence[Entry], newest_input: int = 0) -> list[Violation]:
        """Return all violations in these entries, in order. `newest_input`: as for `Rule.end`."""
        view = tuple(entries)
        before, is_legal = self._read, not self._violations
        known = self._return_to(view)
        # After an edit, most entries after it were checked before. Alone they are as legal as they were.
        legal = set(map(id, before)) if is_legal and known < len(before) else set()
        placed = [rule for rule in self._rules if not isinstance(rule, _Alone)]
        places = mark_places(len(view))
        self._marks = [mark for mark in self._marks if mark.read in places]
        marked = self._marks[-1].read if self._marks else 0
        for index in range(known, len(view)):
            if index > marked and index in places:
                self._marks.append(_Mark(index, _copies(self._rules), list(self._violations)))
            entry = view[index]
            for rule in placed if id(entry) in legal else self._rules:
                for problem in rule.read(entry, self.profile):
                    self._violations.append(Violation(type(rule).__name__, entry.position, problem))
        self._read = view
        last = view[-1].position if view else 0
        at_end = [
            Violation(type(rule).__name__, last, problem) for rule in self._rules for problem in rule.end(newest_input)
        ]
        return self._violations + at_end

    def saved(self, entries: tuple[Entry, ...]) -> SavedRules | None:
        """Return the state of the rules at a mark in these entries, to be saved; None if they broke a rule before it.

        The mark is some entries before the first one that was not checked, since edits mostly change newer entries.
        """
        known = shared_length(self._read, entries)
        marks = [mark for mark in self._marks if mark.read <= known - STEP and not mark.violations]
        if not marks:
            return None
        states = tuple(
            {name: sorted(value) if isinstance(value, set) else value for name, value in vars(rule).items()}
            for rule in marks[-1].rules
        )
        return SavedRules(marks[-1].read, states)

    def restore(self, saved: SavedRules, entries: tuple[Entry, ...]) -> None:
        """Continue with the state that was saved after the first of these entries."""
        rules = [rule() for rule in RULES]
        for rule, state in zip(rules, saved.states, strict=True):
            for name, value in state.items():
                setattr(rule, name, set(value) if isinstance(value, list) else value)
        self._read, self._rules = entries[: saved.read], rules
        self._violations, self._marks = [], []

    def _return_to(self, view: tuple[Entry, ...]) -> int:
        """Return to the newest mark before the first difference. Return the number of entries read there."""
        known = len(self._read)
        if view[:known] == self._read:  # Entries compare by identity: one pass over pointers.
            return known
        same = shared_length(self._read, view)
        while self._marks and self._marks[-1].read > same:
            self._marks.pop()
        if not self._marks:
            self._rules, self._violations = [rule() for rule in RULES], []
            return 0
        mark = self._marks[-1]
        self._rules, self._violations = _copies(mark.rules), list(mark.violations)
        return mark.read


def _copies(rules: Sequence[Rule]) -> list[Rule]:
    copies = [copy.copy(rule) for rule in rules]
    for rule in copies:
        for name, value in vars(rule).items():
            if isinstance(value, set | dict):
                setattr(rule, name, value.copy())
    return copies


def check(view: View | Sequence[Entry], profile: Profile) -> list[Violation]:
    """Return all violations of the provider's rules in this view."""
    if isinstance(view, View):
        return Checker(profile).check(view.entries, view.newest_input)
    return Checker(profile).check(view)
