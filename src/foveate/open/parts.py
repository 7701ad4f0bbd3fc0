"""The parts of a conversation, checked, and the engine that they make up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..background.threads import Threads
from ..conversation import Session, validate
from ..conversation.calls import Caller
from ..conversation.model_calls import RequestModel
from ..conversation.plan import Planner
from ..conversation.plugins import Plugin
from ..conversation.prefetch import SummaryPrefetch
from ..conversation.state import State
from ..conversation.summary_fetcher import SummaryFetcher
from ..core.call_context import Prices
from ..core.catalog import Prompt
from ..core.profiles import Profile, adjusted_to_model, profile_for, window_of
from ..counters import counter_for, counter_named
from ..errors import UnknownWindow
from ..expand.expander import ExpandOptions
from ..expand.patterns import find as find_pattern
from ..models.known import check_model, prices_of_model
from ..policies import check_compatible, idle_notes, select_active
from ..policies.message_terms import with_terms
from ..ports import Background, Clock, Database, RemoteBackground, Summarizer, complete, wall_clock
from .options import Options, ResolvedOptions
from .registry import check_summarizer, format_of, open_store, open_summarizer, summarize_without_model, summarizer_of

if TYPE_CHECKING:
    from ..background.tasks import Tasks

__all__ = ["Parts"]


class Parts(NamedTuple):
    """The parts of a conversation. A fork is made of the same ones."""

    resolved: ResolvedOptions
    options: Options
    plugins: tuple[Plugin, ...]
    needs_window: bool = True
    """Whether to refuse an unknown window when opening."""

    def session(self, background: type[Threads] | type[Tasks]) -> Session:
        """Return a session of these parts. `background` runs summaries if the program passed nothing that does.

        Raises BadSetting, before the store is opened, for values that are not allowed.
        """
        self.check()
        resolved, options = self.resolved, self.options

        def stored_prompts(tenant: str) -> list[Prompt]:
            return state.store.prompts(tenant)  # Read for each summary, when the store is open.

        has_summarizer = resolved.summarizer != ""
        policies = select_active(resolved.policies, has_summarizer=has_summarizer)
        check_compatible(policies, has_summarizer=has_summarizer)
        format = format_of(resolved.format)
        model = self._model(format.name, resolved.model, resolved.window)
        summarizer = summarizer_of(resolved.summarizer, options.prompts or stored_prompts)
        caller = Caller()
        prefetch = SummaryPrefetch(self._background(background) if summarizer else None, caller)
        state = State(
            open_store(resolved.store) if isinstance(resolved.store, str) else complete(resolved.store),
            format,
            model,
            _checked_clock(options.clock) if options.clock else wall_clock,
            reserve=resolved.reserve,
            lookup=partial(self._model, format.name),
            caller=caller,
            prefetch=prefetch,
        )
        planner = Planner(
            state,
            SummaryFetcher(state, caller, summarizer, summarize_without_model, options.user or ""),
            prefetch,
            caller,
            policies=with_terms(policies, resolved.switched_off),
            floor=resolved.floor,
        )
        expand = ExpandOptions(resolved.expand, resolved.expand_where, find_pattern)
        return Session(state, planner, prefetch, caller, on_event=options.on_event, plugins=self.plugins, expand=expand)

    def idle_notes(self, session: Session) -> list[str]:
        """Return a sentence for each policy that cannot act in this session."""
        budget = session.state.limits.budget()
        has_summarizer = self.resolved.summarizer != ""
        return idle_notes(self.resolved.policies, usable=budget.usable, has_summarizer=has_summarizer)

    def sharing_store(self, session: Session) -> Parts:
        """Return the same parts for another conversation in the store that `session` has open."""
        state = session.state
        format = self.resolved.format if isinstance(self.resolved.format, str) else state.format
        return self._replace(resolved=self.resolved._replace(store=state.store, format=format))

    def in_store(self, store: Database) -> Parts:
        """Return the same parts for conversations in a store that is open."""
        return self._replace(resolved=self.resolved._replace(store=store))

    def with_open_model(self) -> Parts:
        """Return the same parts with one client for all summaries, if a model writes them."""
        summarizer = self.resolved.summarizer
        if not isinstance(summarizer, str) or _needs_no_model(summarizer):
            return self
        store = self.resolved.store
        prompts = self.options.prompts or (None if isinstance(store, str) else complete(store).prompts)
        return self._replace(resolved=self.resolved._replace(summarizer=open_summarizer(summarizer, prompts=prompts)))

    def require_window(self, model: str) -> None:
        """Raise UnknownWindow if the policies need a window, and none is known for this model of the opening."""
        if self.resolved.floor and self.resolved.window is None and window_of(model) is None:
            raise UnknownWindow(model, remedy='; only policy="off" needs no window')

    def _model(self, format: str, name: str, window: int | None) -> RequestModel:
        """Return a model of this format. Window and prices of the opening count for the model that was named then.

        `window`: in tokens; None: that of the model, or of the opening if it is not known. A window of an opening that
        named no model is the largest one for every model. Raises BadSetting if format or window cannot be the model's,
        and if no window is known and the hard floor needs it.
        """
        resolved, options = self.resolved, self.options
        is_opened = name == resolved.model
        if window is None and is_opened:
            window = resolved.window
        elif window is None and resolved.window is not None and not resolved.model:
            window = min(resolved.window, window_of(name) or resolved.window)
        check_model(name, format, window)
        profile = options.profile or profile_for(format, name)
        if not is_opened:
            profile = adjusted_to_model(profile, name)
        if window is None:
            window = window_of(name) or resolved.window or window_of(resolved.model)
        if window is None and self.needs_window:
            self.require_window(name)
        prices = options.prices if options.prices is not None and is_opened else prices_of_model(name)
        counter = options.counter or counter_for(name, format)
        if isinstance(counter, str):
            counter = counter_named(counter, name)
        return RequestModel(name, profile, window, prices, counter)

    def _background(self, default: type[Threads] | type[Tasks]) -> Background | RemoteBackground | None:
        background = self.options.background
        if isinstance(background, bool):
            return default(eager=True) if background else None
        if background is None:  # A summary without a model is written faster than a thread starts.
            return None if _needs_no_model(self.resolved.summarizer) else default()
        return background

    def check(self) -> None:
        """Raise BadSetting for values that are not allowed."""
        resolved, options = self.resolved, self.options
        if not isinstance(resolved.store, str):
            methods = ("open", "extend", "commit")
            validate.has_methods("store=", resolved.store, methods, "a URL such as sqlite:///chat.db or a Store")
        if not isinstance(resolved.format, str):
            validate.has_methods("format=", resolved.format, ("parse", "prompt"), "the name of a format or a Format")
        if options.profile is not None:
            validate.instance("profile=", options.profile, Profile, "a Profile")
        if options.prices is not None:
            validate.instance("prices=", options.prices, Prices, "a Prices")
        if options.clock is not None:
            validate.function("clock=", options.clock)
        if options.prompts is not None and not isinstance(options.prompts, Mapping):
            validate.function("prompts=, if it is no mapping of names to texts,", options.prompts)
        if options.user is not None:
            validate.text("user=", options.user)
        if isinstance(resolved.summarizer, str):
            check_summarizer(resolved.summarizer)
        else:
            validate.function("summarizer=", resolved.summarizer)
        is_own = options.background is not None and not isinstance(options.background, bool)
        if is_own and not hasattr(options.background, "request_compaction"):
            validate.function("background=, if not True or False,", options.background)
        if options.counter is not None and not isinstance(options.counter, str):
            validate.function("counter=", options.counter)
            validate.integer("The result of counter= (tokens)", options.counter("four"))


def _needs_no_model(summarizer: str | Summarizer) -> bool:
    from ..models import is_model_name

    return isinstance(summarizer, str) and not is_model_name(summarizer)


def _checked_clock(clock: Clock) -> Clock:
    """Refuse times that are no whole numbers: they could not be read again."""
    return lambda: validate.integer("The result of clock= (milliseconds since 1970)", clock())
