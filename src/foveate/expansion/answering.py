"""Expanding, step by step: parts and searches for whoever asks, and answers to the calls of a model.

What is asked for is looked up in the history, cut to what was wanted, and returned. A model's call gets it as its
result; an original as a whole may come back in its own place instead, where that costs less. A call that cannot be
answered gets a result that says why, and changes nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from ..core.handles import Handle
from ..core.legalize import ANSWER_ERASED
from ..core.messages import Content, Message, State, Text, ToolCall, ToolResult
from ..core.sizes import tokens_of
from ..core.stamps import Expansion
from ..engine import About, Engine, Step
from ..errors import BadInput, FoveateError, MissingExtra, NotExpandable, StoreError
from ..ports import StoredMessage
from .asking import Ask, Items, Lines, Matches, Search, Whole, read_arguments
from .excerpts import Excerpt, Find, items, lines, matches
from .hits import Hit, told
from .originals import content_of, decoded, part_of, text_of_all, who_said
from .placing import Where, advice, cheaper, most_room_in, room_in
from .searching import searched
from .tool import NAMES, is_called

__all__ = ["Expander", "Expanding"]

_log = logging.getLogger("foveate")
_LONGEST_REFUSAL = 800
"""Characters: a model may have asked with a megabyte, which errors quote."""


class Expanding(Struct, frozen=True):
    """How a conversation expands."""

    is_on: bool = False
    """Whether prompts offer the tool to the model, and its calls are answered."""
    where: Where = "auto"
    """Where an original comes back that a model asked for as a whole."""
    find: Find | None = None
    """Looks for patterns."""


class _Named(NamedTuple):
    """What a handle names."""

    handle: Handle
    rows: list[StoredMessage]
    messages: list[tuple[str, str, Message]]

    @property
    def text(self) -> str:
        return text_of_all(self.messages)


class _Made(NamedTuple):
    """What a call is answered."""

    content: tuple[Content, ...]
    expanded: Expansion


class Expander:
    """Expands for one conversation.

    `add` appends a message, `expand` shows an original in its place; both tell their events.
    """

    def __init__(
        self,
        engine: Engine,
        how: Expanding,
        add: Callable[[Message, About], Step[None]],
        expand: Callable[[str | int, str], Step[Message]],
    ) -> None:
        self._engine, self._add, self._expand = engine, add, expand
        self.how = how

    # ------------------------------------------------------------------------------------------------------- for hosts

    def part(self, ask: Lines | Items | Matches) -> Step[Excerpt]:
        """A part of an original that is not shown whole. Changes nothing."""
        return (yield from self._part(ask, (yield from self._expandable(ask.handle))))

    def search(self, words: str, limit: int) -> Step[list[Hit]]:
        """Where these words stand in what is not shown whole, best first."""
        return (yield from searched(self._engine, words, limit))

    def show(self, handle: str | int, where: Where, reason: str) -> Step[Message]:
        """Show an original again, in its place or in a message of its own at the tail. Returns the original."""
        named = yield from self._expandable(handle)
        place = yield from self._place(named, where)
        if place == "view":
            return (yield from self._expand(handle, reason))
        head = f"[{named.handle}, as it was asked for{f': {reason}' if reason else ''}]"
        message = Message("user", (Text(head), *content_of(named.messages)))
        yield from self._add(message, _about(_expanded("whole", named)))
        return named.messages[0][2]

    def show_in_place(self, handle: str | int, reason: str) -> Step[Message]:
        """Show an original again in its place, the next plan makes room for it. Returns the original.

        Raises NotExpandable where all room there is would not do for one message: the hard floor would hide all else,
        and it at last. Of a span it hides the oldest, as always.
        """
        named = yield from self._expandable(handle)
        tokens, room = max(map(self._size, named.messages), default=0), most_room_in(self._engine.view())
        if self._engine.floor and tokens > room:
            raise NotExpandable(str(named.handle), (yield partial(advice, named.text, tokens, room)))
        return (yield from self._expand(handle, reason))

    # ------------------------------------------------------------------------------------------------------- for models

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the newest reply that have no result yet, in their order."""
        answered: list[str] = []
        for entry in reversed(self._engine.projection.entries()):
            if entry.result is not None:
                answered.append(entry.result.call_id)
            elif entry.legalized == ANSWER_ERASED and (stand_in := entry.message.result):
                answered.append(stand_in.call_id)  # What was answered is not done once more.
            elif entry.source is not None and entry.source.role == "assistant":
                return tuple(call for call in entry.source.calls if not _taken(answered, call.call_id))
        return ()

    def answer_open(self, tools: Sequence[Any]) -> Step[None]:
        """Answer the calls of the newest reply that are for this tool. `tools`: those of the host."""
        if not self.how.is_on:
            return
        yield from self._engine.followed()
        for call in self.open_calls():
            if call.name in NAMES and not is_called(call.name, tools):
                yield from self.answer(call)

    def answer(self, call: ToolCall) -> Step[ToolResult]:
        """Append the result of a call, and return it."""
        state: State = "ok"
        try:
            content, expanded = yield from self._made(read_arguments(call.arguments))
        except StoreError:
            raise
        except Exception as error:  # The call must get a result, or no later prompt could be made.
            if not isinstance(error, FoveateError):
                _log.exception("%s: a call of %s failed", self._engine.head.name, call.name)
            content, expanded, state = (Text(_told(error)),), Expansion("refused"), "error"
        result = ToolResult(call.call_id, content, state)
        yield from self._add(Message("tool", (result,)), _about(expanded))
        return result

    def _made(self, ask: Ask) -> Step[_Made]:
        match ask:
            case Search(words, limit):
                try:
                    hits = yield from self.search(words, limit)
                except StoreError as error:  # Some stores keep no index of words.
                    raise BadInput(f"Words cannot be searched for now: {error} Expand a handle instead.") from error
                if not hits:
                    raise BadInput(f"Nothing that is not shown whole holds {words[:80]!r}. Try fewer or other words.")
                return _Made((Text(told(hits, words)),), Expansion("search"))
            case Whole(handle, reason):
                return (yield from self._whole(handle, reason))
            case Lines(handle) | Items(handle) | Matches(handle):
                named = yield from self._expandable(handle)
                self._require_no_copy(named)
                excerpt = yield from self._part(ask, named)
                text = Text(str(excerpt))
                room = room_in(self._engine.view())
                if (tokens := self._engine.counter(text.text)) > room:
                    raise BadInput(
                        f"That part of {named.handle} has {tokens:,} tokens, and there is room for {room:,}. Ask for "
                        f"less of its {excerpt.total:,} {excerpt.what}."
                    )
                return _Made((text,), _expanded(excerpt.form, named))

    def _whole(self, handle: str | int, reason: str) -> Step[_Made]:
        parsed, rows = yield from self._engine.named(handle)
        note = Text(f"{parsed} {'is' if len(rows) == 1 else 'are'} shown in full again above.")
        if not self._was_restored(parsed):  # Another call of the same reply may have asked for it.
            named = yield from self._expandable(handle)
            self._require_no_copy(named)
            if (yield from self._place(named, self.how.where)) == "tail":
                content = content_of(named.messages) or (Text(f"[{parsed} is empty]"),)
                return _Made(content, _expanded("whole", named))
            yield from self._expand(handle, reason or "the model asked for it")
        return _Made((note,), Expansion("view", str(parsed), rows[0].id))

    def _was_restored(self, handle: Handle) -> bool:
        """Whether all of it is shown whole, and some of it since the last call."""
        engine = self._engine
        inside = [one for one in engine.projection.entries() if handle.first <= one.position <= handle.last]
        whole = {one.position: one.renewed for one in inside if one.source is not None and not one.shrunk}
        return len(whole) > handle.last - handle.first and max(whole.values()) >= engine.next_turn()

    def _require_no_copy(self, named: _Named) -> None:
        """Raise NotExpandable where all of it was appended already, and stands there."""
        for entry in self._engine.projection.entries():
            shown = entry.stamp.expanded
            is_copy = shown and shown.form == "whole" and shown.handle == str(named.handle)
            if is_copy and entry.source is not None and not entry.shrunk:
                raise NotExpandable(str(named.handle), f"all of it stands in {entry.handle}, where it was asked for")

    # ----------------------------------------------------------------------------------------------------------- both

    def _expandable(self, handle: str | int) -> Step[_Named]:
        parsed, rows = yield from self._engine.named(handle)
        if not any(row.body for row in rows):
            raise NotExpandable(str(parsed), "it was erased")
        messages = [
            (f"m{row.position}", who_said(row), part_of(decoded(row), parsed.path, str(parsed))) for row in rows
        ]
        yield from self._engine.require_expandable(handle, parsed, rows)
        return _Named(parsed, rows, messages)

    def _part(self, ask: Lines | Items | Matches, named: _Named) -> Step[Excerpt]:
        name, text = str(named.handle), named.text
        match ask:
            case Lines(range=wanted):
                excerpt: Excerpt = yield partial(lines, name, text, wanted)
            case Items(range=wanted):
                excerpt = yield partial(items, name, text, wanted)
            case Matches(pattern=pattern):
                if self.how.find is None:
                    raise MissingExtra("Expanding by a pattern", "expand")
                excerpt = yield partial(matches, name, text, pattern, self.how.find)
        return excerpt

    def _place(self, named: _Named, where: Where) -> Step[Where]:
        """Where to show an original. Raises NotExpandable where it is too large to be shown anywhere."""
        engine, handle = self._engine, named.handle
        view = engine.view()
        tokens, room = self._tokens(named), room_in(view)
        if tokens > room:
            raise NotExpandable(str(handle), (yield partial(advice, named.text, tokens, room)))
        if where != "auto":
            return where
        binds = engine.profile.binds_reasoning
        return cheaper(view, engine.shown, handle.first, handle.last, binds_reasoning=binds)

    def _tokens(self, named: _Named) -> int:
        copy = Message("tool", (ToolResult("", content_of(named.messages)),))
        return tokens_of(copy, self._engine.counter)

    def _size(self, one: tuple[str, str, Message]) -> int:
        return tokens_of(one[2], self._engine.counter)


def _about(expanded: Expansion) -> About:
    return About(origin="derived", expanded=expanded)


def _expanded(form: Any, named: _Named) -> Expansion:
    return Expansion(form, str(named.handle), named.rows[0].id)


def _told(error: Exception) -> str:
    """Why a call is not answered, for the model."""
    said = str(error) if isinstance(error, FoveateError) else f"It failed: {type(error).__name__}."
    return said.encode("utf-8", "backslashreplace").decode()[:_LONGEST_REFUSAL]


def _taken(answered: list[str], call_id: str) -> bool:
    """Whether an answer has this call's id; an answer is for one call."""
    if call_id in answered:
        answered.remove(call_id)
        return True
    return False
