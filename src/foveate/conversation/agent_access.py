"""Internal: what agents, integrations, workers and telemetry need from a conversation beyond its public methods.

`chat._agent` is an `AgentAccess`: runs, steps, the lock, and messages that are written only while an agent holds the
lock. It may change in any release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.edits import Record
from ..core.messages import Message
from ..core.profiles import Profile, window_of
from ..core.runs import AgentRun, AgentRunStep, LockHolder
from ..core.stamps import Lease, Usage
from ..core.view import View
from ..expand.excerpts import Excerpt
from ..ports import Database, Head, Observer
from . import validate
from .append import facts_of
from .calls import SessionLock
from .exchange import ModelChoice

if TYPE_CHECKING:
    from .session import Session

__all__ = ["AgentAccess"]


class AgentAccess:
    """The internal side of one conversation. `owner`: the owner of the lock; without the lock, ConversationBusy."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def head(self) -> Head:
        """The newest message and edit."""
        return self.session.head

    @property
    def store(self) -> Database:
        """The store of the conversation."""
        return self.session.state.store

    @property
    def profile(self) -> Profile:
        """The demands of the provider."""
        return self.session.state.profile

    @property
    def window(self) -> int | None:
        """The window of the model in tokens, if it is known."""
        return self.session.state.limits.window

    @property
    def cache_key(self) -> str:
        """The key by which a provider that wants one finds the cache of the conversation."""
        with self.session.lock:
            return self.session.exchange.cache_key

    @property
    def lock(self) -> SessionLock:
        """The lock of the conversation, for operations that belong together."""
        return self.session.lock

    def is_newest(self, call: int) -> bool:
        """Return whether no model call began after this one."""
        with self.session.lock:
            return self.session.state.begun() <= call

    def go_back(self, message: object = None, *, owner: str = "") -> bool:
        """Go back to where the caller's list ends, which otherwise waits for the next request. Return whether it did.

        `message`: what follows there; if it cannot be stored, BadMessage is raised, and nothing changes. `owner`: of
        the lock, which the branch that is left keeps no longer: acquire the lock again.
        """
        with self.session.lock:
            left = self.head
            self.session.exchange.go_back(message)
            if self.head.branch == left.branch:
                return False
            if owner:
                self.store.release_lock(left, owner)
            return True

    @property
    def answers_expand(self) -> bool:
        """Return whether the model is offered the tool `expand`, and the conversation answers its calls."""
        return self.session.offer.answers_expand

    def observe(self, observer: Observer) -> None:
        """Report to this observer from now on; only the newest one gets reports."""
        validate.has_methods(
            "observer", observer, ("begin", "end", "report", "count"), "an Observer, such as `instrument` makes"
        )
        self.session.reporter.attach(observer)

    # ------------------------------------------------------------------------------------------------------ messages

    def append(
        self, message: object, *, after: str | None = None, step: str = "", owner: str = "", **facts: Any
    ) -> tuple[str, ...]:
        """Append messages. `facts`: the other keywords of `Conversation.append`. `step`: of an agent's run."""
        checked = facts_of(**facts, step=step)
        with self.session.lock, self.session.exchange.owned_by(owner):
            return self.session.exchange.append(message, after, checked)

    def prepare(
        self,
        messages: Sequence[Any],
        read: Callable[[Any], object] | None,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        model: str | None = None,
        window: int | None = None,
    ) -> View:
        """Return the view of the next request, as `Conversation.prepare` does. `read`: as for `Conversation.follow`."""
        with self.session.lock:
            return self.session.exchange.prepare(system, tools, messages, (model, window), read=read)

    def prompt(
        self,
        *,
        system: object = None,
        tools: Sequence[Mapping[str, Any]] = (),
        messages: object = None,
        model: str | None = None,
        window: int | None = None,
        owner: str = "",
    ) -> dict[str, Any]:
        """Return the keyword arguments of the next SDK call, with shared messages. `model`, `window`: of this request;
        None: as opened.
        """
        exchange = self.session.exchange
        with self.session.lock, exchange.owned_by(owner):
            return exchange.prompt_of(exchange.prepare(system, tools, messages, (model, window)), shared=True)

    def choice_for(self, model: str, window: int | None) -> ModelChoice:
        """Return what `prompt` takes for requests to a model whose window is `window`, if it states one.

        A conversation that was opened for another model uses the model's own window, if that is known. One that was
        opened without a model keeps the window of its opening.
        """
        opened = self.session.state.opened_model
        if opened.name == model:
            return None, None
        return model, window or (window_of(model) if opened.name else None) or opened.window

    def record(
        self,
        reply: object,
        *,
        usage: Usage | None = None,
        interrupted: bool = False,
        step: str = "",
        call: int = 0,
        owner: str = "",
    ) -> str:
        """Add the model's reply, as `Conversation.record` does. `step`: of an agent's run.

        `call`: the number of the model call it answers; ConflictError if another process has answered that first.
        """
        with self.session.lock, self.session.exchange.owned_by(owner):
            return self.session.exchange.record(reply, usage, step, call, interrupted=interrupted)

    def retry_smaller(self, error: BaseException, *, owner: str = "") -> dict[str, Any]:
        """Return a smaller prompt after the provider refused one."""
        exchange = self.session.exchange
        with self.session.lock, exchange.owned_by(owner):
            return exchange.prompt_of(exchange.retry_smaller(error))

    def expand(self, message: str | int, *, reason: str = "", **part: Any) -> Message | Excerpt:
        """Expand a message as a model names it: by handle, id, or its index, from 0, in the last view."""
        parts = {name: part.get(name) for name in ("lines", "items", "pattern")}
        with self.session.lock:
            handle = self.session.editor.handle_at(message) if isinstance(message, int) else message
            return self.session.expand(handle, parts, "view", reason)

    def lease_that_counts(self, own: Lease) -> Lease:
        """Return the lease of an action's result with what the policies add to it."""
        with self.session.lock:
            return self.session.lease_that_counts(own, own.action_id, is_result=True)

    # --------------------------------------------------------------------------------------------------- runs, lock

    def keep_run(self, run: AgentRun, *, owner: str = "") -> None:
        """Store a run of an agent, in place of an earlier version."""
        validate.instance("The argument of keep_run()", run, AgentRun, "an AgentRun")
        validate.text("owner=", owner)
        with self.session.lock:
            self.store.put_run(self.head, run, owner=owner)

    def keep_step(self, step: AgentRunStep, *, owner: str = "") -> None:
        """Store a step of a run, in place of an earlier version."""
        validate.instance("The argument of keep_step()", step, AgentRunStep, "an AgentRunStep")
        validate.text("owner=", owner)
        with self.session.lock:
            self.store.put_step(self.head, step, owner=owner)

    def acquire_lock(self, owner: str, replaces: LockHolder | None = None) -> LockHolder:
        """Take the lock for an agent if it is free, and return who holds it now (`Database.acquire_lock`).

        The lock binds only writers that name an owner.
        """
        validate.text("The owner of a lock", owner)
        with self.session.lock:
            return self.store.acquire_lock(self.head, owner, replaces)

    def release_lock(self, owner: str) -> None:
        """Release the lock, if `owner` holds it."""
        validate.text("The owner of a lock", owner)
        with self.session.lock:
            self.store.release_lock(self.head, owner)

    def heartbeat(self, owner: str) -> tuple[Database, Callable[[], bool]]:
        """Return the store, and a function for another thread that sends a heartbeat for the lock.

        The function returns whether `owner` still holds the lock. It may raise StoreError.
        """
        store, head = self.session.state.store, self.head
        return store, lambda: store.heartbeat(head, owner)

    # ---------------------------------------------------------------------------------------------------- compaction

    def compact_detached(self, *, since: int | None, is_wanted: bool, focus: str = "") -> Record | None:
        """Compact the conversation for another process that uses it, see `Compactor.compact_detached`."""
        with self.session.lock:
            return self.session.planner.compactor.compact_detached(since=since, is_wanted=is_wanted, focus=focus)

    def save_snapshot(self) -> None:
        """Save what the view shows now, so that opening reads only that."""
        with self.session.lock:
            self.session.state.save_snapshot()
