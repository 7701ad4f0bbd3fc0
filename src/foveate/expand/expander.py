"""Expanding: originals shown again, parts of them, searches, and answers to a model's calls of `expand`.

An original comes back in its own place or in a message at the end. In its place, everything after it is written to the
provider's cache again; at the end nothing is, but the original stands next to its placeholder. While the cache is warm
the end is cheaper, unless little follows. A call that cannot be answered gets a result with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from ..core.economy import flush_cost, is_cold
from ..core.enrich import hides_lasting, lasting_message
from ..core.handles import Handle
from ..core.legalize import ANSWER_ERASED
from ..core.messages import Content, Message, Reasoning, ResultState, Text, ToolCall, ToolResult
from ..core.sizes import tokens_of
from ..core.stamps import Expansion, Lease
from ..core.view import Entry, View
from ..errors import BadInput, ConflictError, FoveateError, MissingExtra, NotExpandable, StoreError
from ..ports import StoredMessage
from .excerpts import Excerpt, Find, count_lines, items, lines, matches
from .items import items_of
from .originals import author_of, content_of, decoded, part_of, text_of_all
from .search import Hit, describe_hits, search
from .tool import NAMES, Items, Lines, Matches, Request, Search, ViewIndex, Whole, read_arguments

if TYPE_CHECKING:
    from ..conversation.append import MessageFacts
    from ..conversation.edit import Editor
    from ..conversation.state import State as ConversationState

__all__ = ["NOT_EXPANDING", "ExpandOptions", "Expander", "Place", "cheaper_place", "room_in", "tokens_to_rewrite"]

_log = logging.getLogger("foveate")
_MAX_REFUSAL = 800
"""Characters: a model may have asked with a megabyte, which errors quote."""

Place = Literal["view", "tail", "auto"]
"""`view`: in its place. `tail`: as the result of the call. `auto`: the one that costs less now."""

NOTE_TOKENS = 20
"""Tokens of the note that something is shown again in its place."""
LEAST_ROOM = 0.05
"""Share of the usable budget that an expansion may take even if the view is full: the next plan makes room."""


class ExpandOptions(Struct, frozen=True):
    """How a conversation expands."""

    offer: bool | None = False
    """Whether prompts offer the tool to the model, and its calls are answered. None: if the request has tools."""
    where: Place = "auto"
    """The place of a whole original that a model asked for."""
    find: Find | None = None
    """Finds patterns."""


NOT_EXPANDING = ExpandOptions()
"""No request offers the tool; programs expand as they like, except by patterns."""


class _Original(NamedTuple):
    """The messages that a handle names."""

    handle: Handle
    rows: list[StoredMessage]
    messages: list[tuple[str, str, Message]]

    @property
    def text(self) -> str:
        return text_of_all(self.messages)


class _Answer(NamedTuple):
    """The answer to a call."""

    content: tuple[Content, ...]
    expanded: Expansion


class Expander:
    """Expands for one conversation.

    `add` appends a message with facts behind a message (None: at the end, wherever that is), and `expand` shows an
    original in its place; both report their events. `lease_of` returns the lease of a copy of these messages, which is
    a result or not.
    `has_floor`: whether the conversation is kept within its window.
    """

    def __init__(
        self,
        state: ConversationState,
        editor: Editor,
        options: ExpandOptions,
        *,
        add: Callable[[Message, MessageFacts, str | None], None],
        expand: Callable[[str | int, str], Message],
        lease_of: Callable[[Sequence[StoredMessage], bool], Lease | None],
        has_floor: bool,
    ) -> None:
        self._state, self._editor, self._add, self._expand, self._lease_of = state, editor, add, expand, lease_of
        self._has_floor = has_floor
        self.options = options

    # ------------------------------------------------------------------------------------------------- for programs

    def part(self, request: Lines | Items | Matches) -> Excerpt:
        """Return a part of an original that is not shown whole. Changes nothing."""
        return self._part(request, self._expandable(self._handle(request)))

    def search(self, words: str, limit: int) -> list[Hit]:
        """Return messages that hold these words and are not shown whole, the best first."""
        return search(self._state, self._editor, words, limit)

    def show(self, handle: str | int, where: Place, reason: str) -> Message:
        """Show an original again, in its place or in a message at the end; return it."""
        original = self._expandable(handle)
        if self._place(original, where) == "view":
            return self._expand(handle, reason)
        why = " ".join(reason.split()).replace("]", ")")  # A model may give it. It must not end the line.
        head = f"[{original.handle}, as it was asked for{f': {why}' if why else ''}]"
        message = Message("user", (Text(head), *content_of(original.messages)))
        self._add_derived(message, _expansion("whole", original))
        return original.messages[0][2]

    def show_in_place(self, handle: str | int, reason: str) -> Message:
        """Show an original again in its place, for which the next plan makes room; return it.

        Raises NotExpandable if one message is larger than all the room there can be: the hard floor would hide
        everything else, and finally the message. Of a span it hides the oldest messages, as always.
        """
        original = self._expandable(handle)
        count = self._state.counter
        sizes = (tokens_of(message, count) for _, _, message in original.messages)
        tokens, room = max(sizes, default=0), _most_room_in(self._state.view())
        if self._has_floor and tokens > room:
            raise NotExpandable(str(original.handle), _advice(original.text, tokens, room))
        return self._expand(handle, reason)

    # --------------------------------------------------------------------------------------------------- for models

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the newest reply that have no result yet, in order."""
        answered: list[str] = []
        for entry in reversed(self._state.projection.entries()):
            if entry.outline is not None and entry.outline.result is not None:
                answered.append(entry.outline.result.call_id)
            elif entry.legalized == ANSWER_ERASED and (stand_in := entry.message.result):
                answered.append(stand_in.call_id)  # An answer existed; the call is not run again.
            elif entry.outline is not None and entry.outline.role == "assistant":
                if self._state.projection.is_summarized_after(entry.position):
                    return ()  # It is shown alone, such as a pinned one. Its results or later replies are summarized.
                # A result without an id has the tool's name in its place.
                return tuple(
                    call
                    for call in entry.outline.calls
                    if not (_take(answered, call.call_id) or _take(answered, call.name))
                )
        return ()

    def answers(self) -> dict[str, Entry]:
        """Return the results that were made here for calls of the newest reply, by the ids of the calls."""
        if not any(message.result and stamp.expanded for message, stamp in self._state.projection.since_reply()):
            return {}
        results: dict[str, Entry] = {}
        for entry in reversed(self._state.projection.entries()):
            if (result := entry.outlined_result) is not None and entry.stamp.expanded is not None:
                results.setdefault(result.call_id, entry)
            elif entry.outline is not None and entry.outline.role == "assistant":
                break
        return results

    def answer_open(self, own: Set[str], refusal: str, reply: str | None) -> None:
        """Answer the calls of the newest reply that are for this tool. `own`: names that the host's own tools have.

        `refusal`: the answer to all of them, in place of an original. `reply`: the id of the reply, if the answers must
        stand behind it; raises ConflictError if other messages do.
        """
        self._state.follow_head()
        if not any(call.name in NAMES for call in self._state.projection.newest_calls()):
            return  # As after most replies.
        if reply is not None and self._state.head.tip != reply:
            raise ConflictError(f"Another writer extended {self._state.head.label} first. Send the whole list again.")
        for call in self.open_calls():
            if call.name in NAMES and call.name not in own:
                self.answer(call, refusal, after=None if reply is None else self._state.head.tip)

    def answer(self, call: ToolCall, refusal: str = "", after: str | None = None) -> ToolResult:
        """Append the result of a call, and return it. `refusal`: its text, in place of an original.

        `after`: the message that it follows; other messages behind that raise ConflictError.
        """
        state: ResultState = "ok"
        try:
            if refusal:
                raise BadInput(refusal)
            content, expanded = self._answer(read_arguments(call.arguments), self.options.where)
        except StoreError:
            raise
        except Exception as error:  # The call must get a result, or no later prompt is legal.
            if not isinstance(error, FoveateError):
                _log.exception("%s: a call of %s failed", self._state.head.log_name, call.name)
            content, expanded, state = (Text(_refusal(error)),), Expansion("refused"), "error"
        result = ToolResult(call.call_id, content, state)
        self._add_derived(Message("tool", (result,)), expanded, after)
        return result

    def expansion(self, arguments: object) -> ToolResult:
        """Return the result of a call with these arguments, without the id of a call. Changes nothing."""
        try:
            request = read_arguments(arguments)
            self._state.refresh()  # The program that asks may not be the one that appends.
            return self._earlier_result(request) or ToolResult("", self._answer(request, "tail").content)
        except StoreError:
            _log.exception("%s: an expansion could not be read", self._state.head.log_name)
            text = "The original cannot be read for now. Try again later."
        except Exception as error:
            if not isinstance(error, FoveateError):
                _log.exception("%s: an expansion failed", self._state.head.log_name)
            text = _refusal(error)
        return ToolResult("", (Text(text),), "error")

    def expansion_of(self, call: ToolCall) -> Expansion | None:
        """Return what a call of the tool asks for, if the program answers it; None if that cannot be read."""
        try:
            request = read_arguments(call.arguments)
            if isinstance(request, Search):
                return Expansion("search", is_listed=True)
            parsed, rows = self._editor.rows_of(self._handle(request))
        except StoreError:
            raise
        except FoveateError:
            return None
        form = {Whole: "whole", Lines: "lines", Items: "items", Matches: "pattern"}[type(request)]
        return Expansion(cast(Any, form), str(parsed), rows[0].id, is_listed=True)

    def lease_of_copy(self, copy: Message, expanded: Expansion) -> Lease | None:
        """Return the lease of a message that shows originals again: theirs. None if it needs none of its own."""
        if not expanded.shows_original:
            return None
        return self._lease_of(self._editor.rows_of(expanded.handle)[1], copy.result is not None)

    def _earlier_result(self, request: Request) -> ToolResult | None:
        """Return the result that an equal call of the newest reply has here already."""
        if not (answers := self.answers()):
            return None
        entries = reversed(self._state.projection.entries())
        newest = next((entry for entry in entries if entry.outline and entry.outline.role == "assistant"), None)
        for call in newest.source.calls if newest and newest.source else ():
            result = answers[call.call_id].result if call.call_id in answers else None
            with suppress(BadInput):
                if result is not None and read_arguments(call.arguments) == request:
                    return replace(result, call_id="")
        return None

    def _answer(self, request: Request, where: Place) -> _Answer:
        match request:
            case Search(words, limit):
                try:
                    hits = self.search(words, limit)
                except StoreError as error:  # Some stores keep no index of words.
                    raise BadInput(f"Words cannot be searched for now: {error} Pass a handle instead.") from error
                if not hits:
                    raise BadInput(f"Nothing that is not shown whole holds {words[:80]!r}. Try fewer or other words.")
                return _Answer((Text(describe_hits(hits, words)),), Expansion("search"))
            case Whole(reason=reason):
                return self._whole(self._handle(request), reason, where)
            case Lines() | Items() | Matches():
                original = self._expandable(self._handle(request))
                self._require_no_copy(original)
                excerpt = self._part(request, original)
                text = Text(str(excerpt))
                room = room_in(self._state.view())
                if (tokens := self._state.counter(text.text)) > room:
                    raise BadInput(
                        f"That part of {original.handle} has {tokens:,} tokens, and there is room for {room:,}. Ask "
                        f"for less of its {excerpt.total:,} {excerpt.what}."
                    )
                return _Answer((text,), _expansion(excerpt.form, original))

    def _whole(self, handle: str | int, reason: str, where: Place) -> _Answer:
        parsed, rows = self._editor.rows_of(handle)
        note = Text(f"{parsed} {'is' if len(rows) == 1 else 'are'} shown in full again above.")
        if not self._was_restored(parsed):  # Another call of the same reply may have asked for it.
            original = self._expandable(handle)
            self._require_no_copy(original)
            if self._place(original, where) == "tail":
                content = content_of(original.messages) or (Text(f"[{parsed} is empty]"),)
                return _Answer(content, _expansion("whole", original))
            self._expand(handle, reason or "the model asked for it")
        return _Answer((note,), Expansion("view", str(parsed), rows[0].id))

    def _was_restored(self, handle: Handle) -> bool:
        """Return whether all of it is shown whole, and some of it since the last model call."""
        state = self._state
        inside = [entry for entry in state.projection.entries() if handle.first <= entry.position <= handle.last]
        originals = (entry for entry in inside if entry.outline is not None)
        whole = {entry.position: entry.renewed for entry in originals if not _hides(entry, handle)}
        return len(whole) > handle.last - handle.first and max(whole.values()) >= state.next_turn()

    def _require_no_copy(self, original: _Original) -> None:
        """Raise NotExpandable if all of it was appended before and is shown."""
        for entry in self._state.projection.entries():
            shown = entry.stamp.expanded
            is_copy = shown and shown.form == "whole" and shown.handle == str(original.handle)
            if is_copy and entry.outline is not None and not entry.shrunk:
                raise NotExpandable(str(original.handle), f"all of it stands in {entry.handle}, where it was asked for")

    # --------------------------------------------------------------------------------------------------------- both

    def _handle(self, request: Whole | Lines | Items | Matches) -> str | int:
        handle = request.handle
        return self._editor.handle_at(handle.index) if isinstance(handle, ViewIndex) else handle

    def _expandable(self, handle: str | int) -> _Original:
        parsed, rows = self._editor.rows_of(handle)
        if not any(row.body for row in rows):
            raise NotExpandable(str(parsed), "it was erased")
        messages = [(f"m{row.position}", author_of(row), _original_of(row, parsed)) for row in rows]
        self._editor.require_expandable(handle, parsed, rows)
        return _Original(parsed, rows, messages)

    def _part(self, request: Lines | Items | Matches, original: _Original) -> Excerpt:
        name, text = str(original.handle), original.text
        match request:
            case Lines(range=wanted):
                return lines(name, text, wanted)
            case Items(range=wanted):
                return items(name, text, wanted)
            case Matches(pattern=pattern):
                if self.options.find is None:
                    raise MissingExtra("Expanding by a pattern", "expand")
                return matches(name, text, pattern, self.options.find)

    def _place(self, original: _Original, where: Place) -> Place:
        """Return where to show an original. Raises NotExpandable if it is too large for every place."""
        state, handle = self._state, original.handle
        view = state.view()
        copy = Message("tool", (ToolResult("", content_of(original.messages)),))
        tokens, room = tokens_of(copy, state.counter), room_in(view)
        if tokens > room:
            raise NotExpandable(str(handle), _advice(original.text, tokens, room))
        if where != "auto":
            return where
        binds = state.profile.binds_reasoning
        return cheaper_place(view, state.prepared, handle.first, handle.last, binds_reasoning=binds)

    def _add_derived(self, message: Message, expanded: Expansion, after: str | None = None) -> None:
        from ..conversation.append import MessageFacts

        lease = self.lease_of_copy(message, expanded)
        self._add(message, MessageFacts(origin="derived", lease=lease, expanded=expanded), after)


def _original_of(row: StoredMessage, handle: Handle) -> Message:
    """Return the part that a handle names, or the message without blocks of plugins for a limited number of calls."""
    message = decoded(row)
    return part_of(message, handle.path, str(handle)) if handle.path else lasting_message(message, row.stamp)


def _hides(entry: Entry, handle: Handle) -> bool:
    return bool(entry.shrunk) if handle.path else hides_lasting(entry)


def _expansion(form: Any, original: _Original) -> Expansion:
    return Expansion(form, str(original.handle), original.rows[0].id)


def _refusal(error: Exception) -> str:
    """Return why a call is not answered, for the model."""
    if isinstance(error, MissingExtra):
        return "Patterns cannot be used here. Ask for lines or items, or search for words."
    text = str(error) if isinstance(error, FoveateError) else f"It failed: {type(error).__name__}."
    return text.encode("utf-8", "backslashreplace").decode()[:_MAX_REFUSAL]


def _take(answered: list[str], call_id: str) -> bool:
    """Return whether an answer has this call's id, and remove it: an answer is for one call."""
    if call_id in answered:
        answered.remove(call_id)
        return True
    return False


# ---------------------------------------------------------------------------------------------------------- the place


def tokens_to_rewrite(view: View, shown: tuple[Entry, ...], first: int) -> int:
    """Return the tokens after position `first` that the last request (`shown`) put into the provider's cache.

    An edit at `first` would write them again.
    """
    sent = {id(entry) for entry in shown}
    return sum(entry.tokens for entry in view.entries if entry.position > first and id(entry) in sent)


def cheaper_place(view: View, shown: tuple[Entry, ...], first: int, last: int, *, binds_reasoning: bool) -> Place:
    """Return `view` or `tail`: where the originals of these positions cost less in the next request.

    Both write the original once. In its place: a note, and everything after it is written again. At the end: what
    stands for the original now is sent, and read, once more. A tie goes to `view`. If an edit of the past voids the
    reasoning after it (`binds_reasoning`) and there is some, the result is `tail`.
    """
    after = [entry for entry in view.entries if entry.position > first]
    if binds_reasoning and any(isinstance(part, Reasoning) for entry in after for part in entry.message.parts):
        return "tail"
    prices = view.call.prices
    if is_cold(view, prices):
        return "view"
    standing = sum(entry.tokens for entry in view.entries if first <= entry.position <= last)
    in_place = flush_cost(tokens_to_rewrite(view, shown, first), prices) + prices.write * NOTE_TOKENS
    return "view" if in_place <= prices.read * standing else "tail"


def room_in(view: View) -> int:
    """Return the tokens that an expansion may take."""
    usable = view.budget.usable
    return max(usable - view.tokens, int(usable * LEAST_ROOM))


def _most_room_in(view: View) -> int:
    """Return the tokens that an original may take in its place if everything else that may shrink does."""
    newest = view.last_input
    stays = [entry for entry in view.entries if entry.is_pinned() or entry.is_system or entry.position == newest]
    return max(0, view.budget.usable - sum(entry.tokens for entry in stays))


def _advice(text: str, tokens: int, room: int) -> str:
    """Return what to ask for instead of an original that is too large."""
    count, all_items = count_lines(text), items_of(text)
    number = max(1, int(0.8 * room * count / tokens))
    parts = [f'lines, such as "1-{number}" of its {count:,}'] if count > 1 else []
    if (total := all_items.count()) > 1 and all_items.what != "lines":
        share = max(1, int(0.8 * room * total / tokens))
        parts.append(f'items, such as "1-{share}" of its {total:,} {all_items.what}')
    asked = "; ".join([*parts, "or a pattern" if parts else "what a pattern matches"])
    return f"it has {tokens:,} tokens, and there is room for {room:,}. Ask for a part of it: {asked}"
