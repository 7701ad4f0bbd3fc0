"""The exchange with the model: messages are read and appended, the view is prepared, and the reply is recorded.

It follows the caller's own list of messages, and lets plugins and the tool `expand` add their messages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from msgspec.structs import replace

from ..core.events import Event
from ..core.messages import Message
from ..core.needs import CACHE_KEY, Needs, needs_of
from ..core.partial_replies import partial_reply
from ..core.planner import Plan
from ..core.sizes import tokens_of
from ..core.stamps import Stop, Usage
from ..core.view import View
from ..core.wire import plain_message
from ..errors import BadInput, BadMessage, ConflictError, Refused, StoreError
from ..expand.expander import Expander
from ..expand.tool import NAMES
from ..policies.message_terms import Terms, questionable_terms
from . import validate
from .append import NO_FACTS, NO_OWN_FACTS, Appender, MessageFacts
from .caller_list import CallerList, Followed
from .calls import Caller
from .edit import Editor
from .instrumentation import Reporter
from .list_items import ReadMessage
from .message_reader import MessageReader, check_results
from .offer import Offer
from .plan import Planner
from .plugins import Plugin, PluginRunner
from .replies import Replies
from .request_items import ItemWriter, RequestItems
from .state import ATTEMPTS, State
from .weak_methods import weakly

__all__ = ["Exchange", "ModelChoice"]

ModelChoice = tuple[str | None, int | None]
"""The model and the window that a request names; None: as opened."""

_log = logging.getLogger("foveate")
T = TypeVar("T")


class Exchange:
    """The exchange of one conversation with its model."""

    expander: Expander
    """Set by the session, since it appends messages with this."""
    replies: Replies
    """Set by the session."""

    def __init__(
        self,
        state: State,
        appender: Appender,
        editor: Editor,
        planner: Planner,
        reporter: Reporter,
        offer: Offer,
        caller: Caller,
        plugins: Sequence[Plugin],
    ) -> None:
        self._state, self._appender, self._planner, self._reporter = state, appender, planner, reporter
        self._offer = offer
        self._plugins = PluginRunner(plugins, caller, weakly(self._report_failure)) if plugins else None
        self._owner = ""
        self._reader = MessageReader(state.format)
        self.caller_list = CallerList(state, editor, reporter, self._reader.read, weakly(self._append_new))
        """The list of messages that the caller keeps."""
        self._items = ItemWriter(state.format)
        self._choice: ModelChoice = (None, None)  # model and window of the last request
        self._warned: set[Terms] = set()  # Terms of messages without effect that were reported
        self.is_closed = False
        """Whether the conversation closed its store. Without edits, a request would not touch the store."""

    @contextmanager
    def owned_by(self, owner: str) -> Iterator[None]:
        """Append nothing in this block unless `owner` holds the lock of the conversation."""
        before, self._owner = self._owner, validate.text("owner=", owner)
        try:
            yield
        finally:
            self._owner = before

    # ----------------------------------------------------------------------------------------------------- appending

    def append(self, message: object, after: str | None = None, facts: MessageFacts = NO_FACTS) -> tuple[str, ...]:
        """Read messages in any accepted form, and add them."""
        if after is not None:
            after = validate.text("after= (the id of a message)", after)
        messages = self._reader.read(message)
        validate.retention_fits(facts.kept.get(0, ()), [message for message, _ in messages])
        if facts.kept or facts.lease:
            self._warn_of_terms(facts)
        if after is None and not self._owner and messages and messages[0].message.role == "user":
            # Replies and results belong to what is stored, so they go on there. An agent has locked its branch.
            self.caller_list.depart([message for message, _ in messages])
        return self._append(messages, after, facts)

    def _append(self, messages: Sequence[ReadMessage], after: str | None, facts: MessageFacts) -> tuple[str, ...]:
        check_results([message for message, _ in messages])

        def add(some: Sequence[ReadMessage]) -> tuple[str, ...]:
            some = self._with_expansions(some)
            own = {i: own_facts for i, (_, own_facts) in enumerate(some) if own_facts != NO_OWN_FACTS}
            return self._add([message for message, _ in some], after, replace(facts, own=own) if own else facts)

        answers = self.expander.answers() if any(message.result for message, _ in messages) else {}
        if not answers:
            return add(messages)
        # A loop that runs every call by itself answers those of `expand` too, which have their results already.
        known = [answers.get(message.result.call_id) if message.result else None for message, _ in messages]
        rest = [pair for pair, answer in zip(messages, known, strict=True) if answer is None]
        added = iter(add(rest) if rest else ())
        return tuple(next(added) if answer is None else answer.id for answer in known)

    def _with_expansions(self, messages: Sequence[ReadMessage]) -> Sequence[ReadMessage]:
        """Mark the results of calls of `expand` that the program answered: they are copies of other messages."""
        if not self._state.offers_expand or all(message.result is None for message, _ in messages):
            return messages
        newest = self._state.projection.newest_calls()
        if not any(call.name in NAMES for call in chain(newest, *(message.calls for message, _ in messages))):
            return messages  # As with most results.
        calls = {call.call_id: call for call in self.expander.open_calls() if call.name in NAMES}
        marked: list[ReadMessage] = []
        for message, facts in messages:
            calls.update((call.call_id, call) for call in message.calls if call.name in NAMES)
            call = calls.get(message.result.call_id) if message.result and message.result.state == "ok" else None
            expanded = self.expander.expansion_of(call) if call is not None else None
            if expanded:
                facts = replace(
                    facts, expanded=expanded, lease=facts.lease or self.expander.lease_of_copy(message, expanded)
                )
            marked.append(ReadMessage(message, facts))
        return marked

    def go_back(self, message: object = None) -> None:
        """Go back to where the caller's list ends, if that is still to be done. `message`: what follows there."""
        if self.caller_list.is_shorter:
            read = [] if message is None else self._reader.read(message)
            self.caller_list.depart([message for message, _ in read])

    def say(self, message: Message, facts: MessageFacts, after: str | None = None) -> None:
        """Append a message that the caller's own list lacks."""
        self._add([message], after, facts)

    def follow(
        self,
        messages: object,
        read: Callable[[Any], object] | None = None,
        *,
        ignore_removals: bool = False,
    ) -> Followed:
        """Make the history and the view what the caller's list shows."""
        return self.caller_list.follow(messages, read, ignore_removals=ignore_removals)

    def _append_new(self, messages: Sequence[ReadMessage]) -> tuple[str, ...]:
        return self._append(messages, self._state.head.tip, NO_FACTS)

    def _add(self, messages: Sequence[Message], after: str | None, facts: MessageFacts) -> tuple[str, ...]:
        before = self._state.head.position
        if self._owner != facts.owner:
            facts = replace(facts, owner=self._owner)
        addition = self._plugins.add_to if self._plugins else None
        ids = self._appender.append(messages, after=after, facts=facts, addition=addition)
        if self._reporter.is_active:
            self._reporter.appended(before, self._state.added[0])
        return ids

    def _warn_of_terms(self, facts: MessageFacts) -> None:
        """Log, once for each kind of terms, why the terms of a message are questionable here."""
        terms = questionable_terms(self._planner.policies, facts.lease, has_kept=bool(facts.kept))
        for kind in terms.keys() - self._warned:
            self._warned.add(kind)
            _log.warning("%s: %s", self._state.head.log_name, terms[kind])

    def _report_failure(self, plugin: str, reason: str) -> None:
        state = self._state
        _log.warning("%s: the plugin %s is left out: %s", state.head.log_name, plugin, reason)
        turn, now = state.projection.facts.turn, state.clock()
        self._reporter.emit([Event("plugin-failed", turn, now, "", policy=plugin, reason=reason)])

    # ----------------------------------------------------------------------------------------------------- preparing

    def prepare(
        self,
        system: object,
        tools: Sequence[Mapping[str, Any]],
        messages: object = None,
        choice: ModelChoice = (None, None),
        *,
        read: Callable[[Any], object] | None = None,
        may_expand: bool = True,
    ) -> View:
        """Append the new tail of a caller's list, plan, commit and check; return the view of the next request.

        `read`: as for `follow`. `may_expand`: False if this request does not offer the tool `expand`, although the
        conversation does. The view shows the list even if another writer changed the conversation meanwhile. Raises
        ConflictError if others keep doing that.
        """
        self.use_model(choice)
        self._choice, self._offer.may_expand = choice, may_expand
        system, tools = validate.system_prompt(system), validate.tools(tools)  # SDKs pass None for no tools.
        self._offer.weigh(system, tools)
        for _ in range(ATTEMPTS):
            if messages is not None:
                self.caller_list.follow(messages, read, is_request=True)
            if not self._owner:  # An agent goes back before it takes the lock of its branch.
                self.caller_list.depart()
            known = self._state.news
            self._offer.take(system, tools)
            self._answer_expand()  # For replies that were appended, or after a crash.
            self._add_to_results()
            view = self._planned()
            if messages is None or self._state.news == known:
                return view
        raise ConflictError(f"Other writers kept changing {self._state.head.label}. Send the list again later.")

    def prepare_again(self) -> View:
        """Prepare a request with the system prompt and tools of the last one."""
        offer = self._offer
        return self.prepare(offer.system, offer.tools, None, self._choice, may_expand=offer.may_expand)

    def use_model(self, choice: ModelChoice) -> None:
        """Use the model and the window that a request names."""
        if self.is_closed:
            raise StoreError("This conversation was closed. Open it again.")
        model, window = choice
        if model is not None:
            model = validate.text("model=", model)
        if window is not None:
            window = validate.window(window)
        self._state.use_model(model, window)

    def plan(self, system: object, tools: Sequence[Mapping[str, Any]], choice: ModelChoice) -> Plan:
        """Return the plan of the next request. Changes nothing."""
        with self._request(system, tools, choice):
            return self._planner.plan()

    def apply_plan(self, system: object, tools: Sequence[Mapping[str, Any]], choice: ModelChoice) -> None:
        """Commit the plan of the next request. The request itself is not prepared."""
        with self._request(system, tools, choice):
            self._planner.commit_now()

    @contextmanager
    def _request(self, system: object, tools: Sequence[Mapping[str, Any]], choice: ModelChoice) -> Iterator[None]:
        """Plan in this block for a request that is not sent."""
        own_offer = self._state.own_offer
        try:
            self.use_model(choice)
            self._offer.weigh(system, tools)
            yield
        finally:
            self._state.own_offer = own_offer
            self._state.use_model(*self._choice)

    def needs(self) -> Needs:
        """Return the needs of the newest request beyond its messages."""
        needs = needs_of(self._state.prepared, self._state.profile, self._state.marks)
        key = self._key_option()
        return Needs(needs.betas, {**needs.options, **key}) if key else needs

    @property
    def cache_key(self) -> str:
        """The key by which a provider that wants one finds the cache of this conversation and its forks."""
        return f"foveate-{self._state.head.root:016x}"

    def _key_option(self) -> dict[str, str]:
        """Return the option with the key of the cache, if the model wants one."""
        return {CACHE_KEY: self.cache_key} if self._state.profile.cache_key else {}

    def _planned(self) -> View:
        if not self._reporter.is_active:
            return self._planner.prepare()
        state, observer = self._state, self._reporter.observer
        before, places = state.head.number, self._reporter.places()
        if observer.is_behind(state.head.position):
            observer.resume(
                state.view(), [record for _, record in state.store.records(state.head)], state.head.position
            )
        with observer.planning() as facts:
            view = self._planner.prepare()
            records = self._reporter.commits(before, places)
            observer.prepared(view, records, facts)
        observer.count()
        return view

    def _answer_expand(self, refusal: str = "", reply: str | None = None) -> None:
        if self._offer.answers_expand:
            self.expander.answer_open(self._offer.taken, refusal, reply)

    def _add_to_results(self) -> None:
        """Append what plugins add to tool results that the coming call is the first to show."""
        if self._plugins is None:
            return
        enriched = self._plugins.after_results(self._state.projection, self._state.head.tip)
        if enriched is not None:
            self.say(enriched.message, MessageFacts(origin="plugin", kept={0: enriched.kept}))

    def prompt_of(self, view: View, *, shared: bool = False) -> dict[str, Any]:
        """Return the keyword arguments of an SDK call with this view. `shared`: do not copy unchanged messages."""
        prompt = self._written(partial(self._state.format.prompt, shared=shared), view)
        return {**prompt, **self._key_option()}

    def body_of(self, view: View) -> bytes:
        """Return the JSON bytes of a request with this view."""
        return self._written(self._state.format.body, view)

    def body_parts_of(self, view: View) -> list[bytes]:
        """Return the JSON bytes of a request with this view in pieces."""
        return self._written(self._state.format.body_parts, view)

    def _written(self, write: Callable[..., T], view: View) -> T:
        """Return a request with this view, as a method of the format writes it."""
        system, tools = self._offer.complete()
        try:
            return write(view, profile=self._state.profile, system=system, tools=tools)
        except RecursionError:
            raise BadInput("The system prompt or the tools are nested too deeply to be sent. Flatten them.") from None

    def request_items(self, view: View) -> RequestItems:
        """Return the messages of a request with this view: the caller's own items, and JSON for the rest."""
        state = self._state
        own = self.caller_list
        return RequestItems(self._items.items(view, state.profile), own.is_edited(), own.tokens())

    def retry_smaller(self, error: BaseException) -> View:
        """Learn the limit from a refused prompt, and prepare a smaller one."""
        validate.instance("The argument of retry_smaller()", error, BaseException, "the exception of the SDK")
        limits, refused = self._state.limits, self._state.view()
        before = limits.window
        limits.learn_from(error, refused)
        view = self.prepare_again()
        if not self._planner.floor and view.entries == refused.entries:  # It would be refused again.
            raise Refused(f"The provider refused the prompt, and no policy makes it smaller: {error}") from error
        if (now := limits.window) != before:
            # Not stored: the limit belongs to the model and its server, and a later opening may have other ones.
            duration = (
                "until the provider has accepted more requests near it, since the refusal names no limit. If you know "
                "the model's window, open the conversation with window=, or start the proxy with --window."
                if limits.is_guess
                else f"until the conversation is closed; open it with window={now}, or start the proxy with --window "
                f"{now}, to keep that."
            )
            _log.warning(
                "%s: the provider refused a prompt as too long. The window counts as %s tokens %s",
                self._state.head.log_name,
                f"{now:,}",
                duration,
            )
        return view

    # ----------------------------------------------------------------------------------------------------- recording

    def record(
        self,
        reply: object,
        usage: Usage | None,
        step: str = "",
        call: int = 0,
        *,
        interrupted: bool = False,
        refusal: str = "",
        after: str | None = None,
    ) -> str:
        """Add the model's reply and its usage, and let policies plan; return its id.

        `interrupted`: the caller stopped the reply, which may be None; "" is returned if nothing of it had arrived.
        `refusal`: the answer to each of its calls of `expand`, in place of an original. `after`: the message that it
        answers; other messages behind that raise ConflictError, and `after_reply` is left to the program.
        """
        validate.integer("call= (the number of a model call)", call)
        validate.instance("interrupted=", interrupted, bool, "True or False")
        if usage is not None:
            usage = validate.usage(usage)
        if interrupted and (reply is None or (isinstance(reply, Message) and not reply.parts)):
            return ""
        state = self._state
        stop: Stop | None = None
        if isinstance(reply, Message):
            message, billed = reply, usage
        elif isinstance(reply, str):
            raise BadMessage(
                f"record() takes the whole response of the SDK, not the text {reply!r:.60}. Pass the response, or "
                "foveate.assistant(text)."
            )
        else:
            read, parsed = state.format.parse_reply(reply)
            message = plain_message(read)
            stop = state.format.stop_of(reply)
            billed = usage or (parsed if parsed != Usage() else None)
        if message.role != "assistant":
            raise BadMessage(f"record() takes the model's answer, not a message of role {message.role}; use append().")
        # A reply that has its end, and asks for nothing, arrived whole before it was stopped.
        interrupted = interrupted and (stop is None or bool(message.calls))
        if interrupted:
            billed = self._filled_usage(usage, billed or Usage(), message)
            message, stop = partial_reply(message), Stop("interrupted", stop.raw if stop else "")
        known = self.replies.find_recorded(call, message)
        # The caller's list brought it already, or the step of an agent was stopped after its reply was stored.
        if known is not None and (not step or known.stamp.step == step):
            if billed is not None and not interrupted:
                before, places = state.head.number, self._reporter.places()
                self.replies.bill(known.id, billed)
                self._reporter.commits(before, places)
            state.limits.answered()
            return known.id
        facts = MessageFacts(
            usage=self.replies.unbilled(call, billed),
            step=validate.text("step=", step),
            call=call,
            stop=stop,
            model=state.model.name,
        )
        ids = self.append(message, after, facts)
        state.limits.answered()
        # Policies may call a model. If the caller wants to stop, the next prompt plans.
        if not interrupted and after is None:
            self.after_reply(refusal)
        self._reporter.observer.count()
        return ids[-1]

    def _filled_usage(self, known: Usage | None, reported: Usage, message: Message) -> Usage:
        """Return the usage of an interrupted reply, with estimates for the counts that are missing.

        `known`: by the program. `reported`: by the provider, before the end, so its output is only a part. All input of
        an estimate counts as uncached, so it is rather too high. The provider may have written more than arrived.
        """
        state = self._state
        scale = state.limits.budget().scale
        prompt, output = state.limits.estimate, round(tokens_of(message, state.counter) * scale)
        used = known or replace(reported, output=max(output, reported.output or 0))
        return replace(
            used,
            input=(round(prompt * scale) or None) if used.input is None else used.input,
            output=output if used.output is None else used.output,
        )

    def after_reply(self, refusal: str = "", reply: str | None = None) -> None:
        """Answer the calls of `expand`, and let policies plan. The reply is stored even if that fails.

        `refusal`: as for `record`. `reply`: its id, if the answers must stand directly behind it; other messages there
        raise ConflictError.
        """
        name = self._state.head.log_name
        try:
            self._answer_expand(refusal, reply)
        except StoreError as error:
            if reply is not None and isinstance(error, ConflictError):
                raise
            _log.warning("%s: the next prompt answers the calls of expand: %s", name, error)
        before, places = self._state.head.number, self._reporter.places()
        try:
            self._planner.plan_after_reply()
        except StoreError as error:
            _log.warning("%s: the next prompt plans, since the plan after the reply failed: %s", name, error)
        self._reporter.commits(before, places)

    def forget(self) -> None:
        """Drop what is kept of erased content only for speed."""
        self.caller_list.forget()
        self._items.forget()
        self._state.format.rendered(self._state.view(), profile=self._state.profile)
