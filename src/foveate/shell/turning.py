"""A turn: what is said is read and appended, the view is made to fit, shown, and the reply recorded.

Steps that both shells perform in their own way. Here it is known how a host's own list of messages is followed, and
when plugins and the tool `expand` have something to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from .. import given
from ..core.enrich import own_message
from ..core.events import Event, events_of_message
from ..core.messages import Message
from ..core.stamps import Lease, Origin, PartRetention, Stop, Usage
from ..core.view import View
from ..engine import NOTHING_SAID, About, Engine, Step
from ..errors import BadInput, BadMessage, ConflictError, StoreError
from ..expansion.originals import decoded
from ..mirror import Mirror
from ..plugins import Panel, Plugin
from ..ports import StoredMessage
from .reading import Reading

__all__ = ["Turning"]

T = TypeVar("T")

_log = logging.getLogger("foveate")
_NESTED = "The system prompt or the tools are nested too deeply to be sent. Flatten them."
_ATTEMPTS = 5
"""How often a list is compared anew after another writer came first."""
_DEPTH = 2
"""Lists in lists that are still taken for messages: tools often return a list each."""


class Turning(Reading):
    """From one request to the next."""

    def __init__(self, engine: Engine, on_event: Callable[[Event], object] | None, plugins: Sequence[Plugin]) -> None:
        super().__init__(engine, on_event)
        self._panel = Panel(plugins, self._left_out)
        self._owner = ""

    def _for(self, owner: str, step: Step[T]) -> Step[T]:
        """The same step, in which nothing is appended unless `owner` has the claim on this conversation."""
        before, self._owner = self._owner, given.text("owner=", owner)
        try:
            return (yield from step)
        finally:
            self._owner = before

    def _about(
        self,
        time: int | None,
        origin: Origin | None,
        lease: Lease | None,
        kept: Sequence[PartRetention],
        metadata: Mapping[str, Any] | None,
        step: str = "",
    ) -> About:
        """What is said of a message beside it, looked at before anything is done."""
        if time is not None:
            given.whole("time= (milliseconds since 1970)", time)
        if origin is not None:
            given.origin(origin)
        if lease is not None:
            given.lease(lease)
        times = given.kept(kept)
        return About(
            time,
            origin,
            None,
            lease,
            {0: times} if times else {},
            given.metadata(metadata),
            step=given.text("step=", step),
        )

    def _read(self, said: object, depth: int = 0) -> list[Message]:
        if isinstance(said, Message):
            return [given.message(said)]
        if isinstance(said, list | tuple) and not _is_blocks(said):
            if depth > _DEPTH:
                raise BadMessage("The messages are lists in lists in lists. Hand in one list of messages.")
            return [message for item in said for message in self._read(item, depth + 1)]
        return list(self._engine.format.parse(said))

    def _append(self, said: object, after: str | None = None, about: About = NOTHING_SAID) -> Step[tuple[str, ...]]:
        if after is not None:
            given.text("after= (the id of a message)", after)
        messages = self._read(said)
        _check_results(messages)
        given.retention(about.kept.get(0, ()), messages)
        if about.kept:
            self._warn_without_retention()
        return (yield from self._add(messages, after, about))

    def _warn_without_retention(self) -> None:
        from ..policies.block_retention import BlockRetention  # Few conversations have such messages.

        if not any(isinstance(policy, BlockRetention) for policy in self._engine.policies):
            _log.warning(
                "%s: kept= is recorded, but no policy here acts on it: choose the preset `retain`, say [retain] in a "
                "file of settings, or name retain_blocks() among the policies.",
                self.name,
            )

    def _add(self, messages: Sequence[Message], after: str | None, about: About) -> Step[tuple[str, ...]]:
        before = self._engine.head.position
        about = replace(about, owner=self._owner)
        ids = yield from self._engine.append(messages, after=after, about=about, addition=self._panel.add_to)
        if (self._on_event or self._watching) and self._engine.head.position > before:
            rows = yield from self._rows_since(before)
            self._watching.appended(rows)
            places = self._places()
            told = (events_of_message(row.position, row.id, row.stamp, places.get(row.id)) for row in rows)
            self._tell(event for events in told for event in events)
        return ids

    def _rows_since(self, before: int) -> Step[Sequence[StoredMessage]]:
        """What was appended behind position `before`, by others too; at least what was appended here."""
        own = self._engine.appended
        if own and own[0].position == before + 1 and own[-1].position == self.head.position:
            return own
        try:
            rows: list[StoredMessage] = yield lambda: self._engine.store.messages(
                self.head, before + 1, self.head.position
            )
        except StoreError as error:  # The messages are stored all the same.
            _log.warning("%s: the messages of others are not reported: %s", self.name, error)
            return own
        return rows

    def _prepare(self, system: object, tools: Sequence[Mapping[str, Any]], messages: object) -> Step[View]:
        self._weigh(system, tools)
        if messages is not None:
            yield from self._follow(messages)
        self._asked_with = (system, tools or ())  # An SDK's caller may say None for no tools.
        yield from self._expander.answer_open(self._asked_with[1])  # A reply that was appended, or an end in between.
        yield from self._add_to_results()
        before, places = self._engine.head.number, self._places()
        if self._watching.is_behind(self.head.position):
            self._watching.resumes(self._engine.view(), (yield from self._records()), self.head.position)
        with self._watching.planning() as facts:
            view = yield from self._engine.prepare()
            records = yield from self._tell_edits(before, places)
            self._watching.settled(view, records, facts)
        self._watching.count()
        return view

    def _add_to_results(self) -> Step[None]:
        """Append what plugins add to tool results that the coming call is the first to show."""
        made = yield from self._panel.after_results(self._engine.projection, self.tip)
        if made is not None:
            yield from self._say(made.message, About(origin="plugin", kept={0: made.kept}))

    def _say(self, message: Message, about: About) -> Step[None]:
        """Append what nobody handed in. A host's own list of messages goes along without it."""
        is_mirrored = self._mirror is not None and self._mirror.tip == self.tip
        yield from self._add([message], None, about)
        if self._mirror is not None and is_mirrored:
            self._mirror.settled(self.tip, len(self))

    def _weigh(self, system: object, tools: Sequence[Mapping[str, Any]]) -> None:
        self._engine.limits.weigh(*self._offered(system, tools or ()), self._engine.counter)

    def _left_out(self, plugin: str, why: str) -> None:
        _log.warning("%s: the plugin %s is left out: %s", self.name, plugin, why)
        turn, now = self._engine.projection.facts.turn, self._engine.clock()
        self._tell([Event("plugin-failed", turn, now, "", policy=plugin, reason=why)])

    def _follow(self, said: object) -> Step[None]:
        """Make the history hold the whole list `said`: append its new tail, fork where it departs."""
        if not isinstance(said, list | tuple):
            raise BadMessage(f"messages= takes the whole list of messages, not {type(said).__name__}.")
        for _ in range(_ATTEMPTS):
            try:
                return (yield from self._follow_once(said))
            except ConflictError:  # Another writer came first: what is shared with the list is found out anew.
                yield from self._engine.refresh()
                self._mirror = None
        raise ConflictError(f"Other writers kept changing {self.name!r}; {_ATTEMPTS} attempts did not get through.")

    def _follow_once(self, said: Sequence[object]) -> Step[None]:
        if self._mirror is None or self._mirror.tip != self.tip:
            rows = yield lambda: self._engine.store.messages(self.head, 1, self.head.position)
            self._mirror = Mirror([own_message(decoded(row), row.stamp) for row in rows], self.tip)
        mirror, self._mirror = self._mirror, None  # Read anew if anything below fails.
        shared, tail = mirror.compare(said, self._read)
        if shared < self._engine.head.position:
            kept = yield from self._engine.depart(shared)
            _log.debug("%s departs from its past after m%d; the former course is kept as %s", self.name, shared, kept)
        yield from self._append(tail, self.tip)
        mirror.settled(self.tip, len(self))
        self._mirror = mirror

    def _record(self, reply: object, usage: Usage | None, step: str = "", call: int = 0) -> Step[str]:
        given.whole("call= (the number of a model call)", call)
        if usage is not None:
            given.instance("usage=", usage, Usage, "a Usage")
        stop: Stop | None = None
        if isinstance(reply, Message):
            message, billed = reply, usage
        else:
            message, parsed = self._engine.format.parse_reply(reply)
            stop = self._engine.format.stop_of(reply)
            billed = usage or (parsed if parsed != Usage() else None)
        if message.role != "assistant":
            raise BadMessage(f"record() takes the model's answer, not a message of role {message.role}; use append().")
        mirrored = self._mirror is not None and self._mirror.tip == self.tip
        ids = yield from self._append(
            message, about=About(usage=billed, step=given.text("step=", step), call=call, stop=stop)
        )
        if self._mirror is not None and mirrored:
            self._mirror.recorded(message, self.tip, len(self))
        self._engine.limits.answered()
        try:
            yield from self._expander.answer_open(self._asked_with[1])
        except StoreError as error:  # The reply is recorded all the same; the next prompt answers what is open.
            _log.warning("%s: the calls of expand are answered later: %s", self.name, error)
        before, places = self._engine.head.number, self._places()
        try:
            yield from self._engine.plan_after_reply()
        except StoreError as error:  # The next prompt plans again.
            _log.warning("%s: the plan after the reply is made later: %s", self.name, error)
        yield from self._tell_edits(before, places)
        self._watching.count()
        return ids[-1]

    def _prompted(self, view: View) -> dict[str, Any]:
        system, tools = self._offered(*self._asked_with)
        try:
            return self._engine.format.prompt(view, profile=self.profile, system=system, tools=tools)
        except RecursionError:
            raise BadInput(_NESTED) from None

    def _bodied(self, view: View) -> bytes:
        system, tools = self._offered(*self._asked_with)
        try:
            return self._engine.format.body(view, profile=self.profile, system=system, tools=tools)
        except RecursionError:
            raise BadInput(_NESTED) from None

    def _refused(self, error: BaseException) -> Step[View]:
        given.instance("What refused() takes", error, BaseException, "the exception that the SDK raised")
        self._engine.limits.refused(error, self.view)
        return (yield from self._prepare(*self._asked_with, None))


def _is_blocks(given: Sequence[object]) -> bool:
    """Whether a list is the blocks of one message (tool results), not a list of messages."""
    return bool(given) and all(isinstance(item, Mapping) and "role" not in item and "type" in item for item in given)


def _check_results(messages: Sequence[Message]) -> None:
    for message in messages:
        if message.role == "tool" and (len(message.parts) != 1 or message.result is None):
            raise BadMessage("A message of role tool holds exactly one ToolResult; append one message per result.")
        if message.role != "tool" and any(type(part).__name__ == "ToolResult" for part in message.parts):
            raise BadMessage(f"A ToolResult belongs in a message of role tool, not {message.role}.")
