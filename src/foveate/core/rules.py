"""Rules that make a view legal: one small class a rule, with the provider that needs it.

`legalize.py` makes views legal; `checker.py` checks them independently by these rules. A rule reads entries in order
and keeps its own state, so a view that only grew is checked at the cost of its new entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from .alternation import Side, last_side, side_of
from .edits import CALLER, Path
from .fallbacks import void_parts
from .messages import Opaque, Reasoning, Text
from .profiles import Profile
from .rendering import is_carried, is_directive
from .server_tools import ServerBlock, pair_key, server_blocks
from .system_messages import ends_in_server_result, sent_role
from .view import Entry

__all__ = ["RULES", "Alone", "Rule"]


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


class Alone(_Inside):
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
    """No call id is empty or of a wrong length, and none is used twice."""

    provider = (
        "anthropic (twice), anthropic and openai (empty, twice in one message), openai (too long), mistral (length)"
    )
    breaks = (
        "`tool_use` ids must be unique; Invalid 'messages[1].tool_calls[0].id': string too long; Tool call id must be "
        "a-z, A-Z, 0-9, with a length of 9"
    )

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        for call in entry.message.calls:
            if not call.call_id:
                yield "has a call without an id"
            if len(call.call_id) > profile.max_call_id:
                yield f"has a call id of more than {profile.max_call_id} characters"
            if not profile.takes_id(call.call_id):
                yield f"has a call id that is not {profile.call_id_size} letters and digits"
            if call.call_id in self._seen:
                yield f"uses call id {call.call_id!r} a second time"
            self._seen.add(call.call_id)


class CallsAreLimited(Alone):
    """No message makes more calls than the provider takes."""

    provider = "openai"
    breaks = "Invalid 'messages[1].tool_calls': array too long. Expected an array with maximum length 128"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        if profile.max_calls and len(entry.message.calls) > profile.max_calls:
            yield f"makes more than {profile.max_calls} calls"


class ServerToolsArePaired:
    """A server tool's result follows its use, and another message than a call's result ends the wait for it."""

    provider = "anthropic, gemini, openai responses"
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


class NothingIsEmpty(Alone):
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


class ArgumentsAreObjects(Alone):
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

    provider = "anthropic, gemini, some open models"
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
        self._spoken = self._spoken or sent_role(entry) != "system"

    def end(self, newest_input: int) -> Iterator[str]:
        if not self._spoken:
            yield "is the end of a view with only system prompts"


class RolesAlternate(_Inside):
    """The user's messages and the assistant's without calls alternate, and calls follow a user's message."""

    provider = "mistral, gemma"
    breaks = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."

    def __init__(self) -> None:
        self._last: Side = "assistant"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        side = side_of(entry)
        if profile.alternates and side == self._last:
            yield f"follows another message of the {side}"
        self._last = last_side(entry, self._last)


class SystemsHavePlaces(_Inside):
    """A system message after the beginning is where the provider takes one.

    Consecutive ones count as one. Those without content, which only change settings, may be anywhere.
    """

    provider = "anthropic; most open models (only at the beginning)"
    breaks = (
        "role 'system' must follow a 'user' message; role 'system' must precede an 'assistant' message; System message "
        "must be at the beginning"
    )

    def __init__(self) -> None:
        self._begun = False  # whether there was an entry that is not a system message
        self._may_follow = False  # whether an instruction may follow the newest one of these
        self._is_instructed = False  # whether a system message with content follows it

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        is_system = sent_role(entry) == "system"
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


class ReasoningIsWhole(Alone):
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
        void = void_parts(entry.outline.parts)
        expected = [
            part
            for index, part in enumerate(entry.outline.parts)
            if isinstance(part, Reasoning) and part.format == profile.format and index not in void
        ]
        if profile.signed_reasoning:
            expected = [part for part in expected if part.signature or part.encrypted]
        expected = [part for part in expected if is_carried(part, profile)]
        if expected != shown:
            yield "makes calls without all of the reasoning that led to them"


class VoidBlocksStayAway(Alone):
    """The thinking and the calls before the place where another model continued a reply are left out."""

    provider = "anthropic"
    breaks = "the API asks to leave out thinking, calls and unpaired uses before the last `fallback` block"

    def read(self, entry: Entry, profile: Profile) -> Iterator[str]:
        if void := void_parts(entry.message.parts):
            yield f"holds {len(void)} void blocks before the place where another model went on"


class ForeignBlocksStayAway(Alone):
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
    RolesAlternate,
    SystemsHavePlaces,
    ReasoningIsWhole,
    VoidBlocksStayAway,
    ForeignBlocksStayAway,
    CompactionsComeFirst,
    PromptsAreIntact,
)
