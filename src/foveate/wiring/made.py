"""What a conversation is made of: checked, and put together as an engine, for it and for each fork of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, get_args

from .. import given
from ..background.threads import Threads
from ..core.profiles import Profile, profile_for, window_of
from ..core.view import Prices
from ..counters import EstimatingCounter
from ..engine import Engine
from ..errors import BadSetting
from ..expansion.answering import Expanding
from ..expansion.placing import Where
from ..limits import Limits
from ..patterns import find as find_pattern
from ..plugins import Plugin
from ..policies import check_compatible, select_active
from ..ports import Background, Clock, Elsewhere, Summarizer, TokenCounter
from .leaves import by_code, format_of, open_store, summarizer_of
from .told import Told

if TYPE_CHECKING:
    from ..background.tasks import Tasks

__all__ = ["Made"]


class Made(NamedTuple):
    """What a conversation is made of, so that a fork of it is made of the same."""

    told: Told
    profile: Profile | None
    prices: Prices | None
    counter: TokenCounter | None
    clock: Clock | None
    plugins: tuple[Plugin, ...]
    background: bool | Background | Elsewhere | None

    def engine(self, own: type[Threads] | type[Tasks]) -> Engine:
        """An engine of these parts. `own`: makes what runs in the background where nothing is handed in for it.

        Raises BadSetting, before the store is opened, for values that are not allowed.
        """
        self._check()
        told = self.told
        has_summarizer = told.summarizer != ""
        policies = select_active(told.policies, has_summarizer=has_summarizer)
        check_compatible(policies, has_summarizer=has_summarizer)
        format = format_of(told.format)
        profile = self.profile or profile_for(format.name, told.model)
        return Engine(
            open_store(told.store) if isinstance(told.store, str) else told.store,
            format,
            profile,
            self.counter or EstimatingCounter(),
            _whole(self.clock) if self.clock else _wall_clock,
            policies=policies,
            floor=told.floor,
            limits=Limits(told.window if told.window is not None else window_of(told.model), told.reserve, profile),
            prices=self.prices or Prices(),
            summarizer=summarizer_of(told.summarizer),
            spare=by_code,
            background=self._beside(own),
        )

    def expanding(self) -> Expanding:
        """How the conversation expands."""
        return Expanding(self.told.expand, self.told.expand_where, find_pattern)

    def _beside(self, own: type[Threads] | type[Tasks]) -> Background | Elsewhere | None:
        if isinstance(self.background, bool):
            return own(eager=True) if self.background else None
        if self.background is None:  # Without a model a summary is done before a thread has begun.
            return None if _needs_no_model(self.told.summarizer) else own()
        return self.background

    def _check(self) -> None:
        told = self.told
        if not isinstance(told.store, str):
            given.like("store=", told.store, ("open", "append", "commit"), "a URL such as sqlite:///chat.db or a Store")
        if not isinstance(told.format, str):
            given.like("format=", told.format, ("parse", "prompt"), "the name of a format or a Format")
        given.text("model=", told.model)
        given.instance("expand=", told.expand, bool, "True or False")
        if told.expand_where not in get_args(Where):
            raise BadSetting(f"expand_where= is {', '.join(get_args(Where))}, not {told.expand_where!r:.60}.")
        if told.window is not None:
            given.whole("window= (tokens)", told.window, 1)
        if told.reserve is not None:
            given.whole("reserve= (tokens)", told.reserve)
        if self.profile is not None:
            given.instance("profile=", self.profile, Profile, "a Profile")
        if self.prices is not None:
            given.instance("prices=", self.prices, Prices, "a Prices")
        if self.clock is not None:
            given.callable_("clock=", self.clock)
        if not isinstance(told.summarizer, str):
            given.callable_("summarizer=", told.summarizer)
        is_own = self.background is not None and not isinstance(self.background, bool)
        if is_own and not hasattr(self.background, "hand_on"):
            given.callable_("background=, if not True or False,", self.background)
        if self.counter is not None:
            given.callable_("counter=", self.counter)
            given.whole("What counter= returns (tokens)", self.counter("four"))

    def beside(self, engine: Engine) -> Made:
        """The same parts for another conversation in the store that `engine` has open."""
        format = self.told.format if isinstance(self.told.format, str) else engine.format
        return self._replace(told=self.told._replace(store=engine.store, format=format))


def _needs_no_model(summarizer: str | Summarizer) -> bool:
    from ..models import is_model_name

    return isinstance(summarizer, str) and not is_model_name(summarizer)


def _whole(clock: Clock) -> Clock:
    """A clock whose wrong answers are refused, since a time that is no whole number could not be read again."""
    return lambda: given.whole("What clock= returns (milliseconds since 1970)", clock())


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
