"""The open conversations of one store, for servers and middleware: each is opened once and shared."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary

from ..conversation import Conversation, validate
from ..conversation.plugins import Plugin
from ..errors import BadSetting
from ..policies import PolicyChoice
from ..ports import Store, Summarizer
from .conversations import Opener
from .options import Options

if TYPE_CHECKING:
    from ..conversation import AsyncConversation

__all__ = ["ConversationUse", "Conversations"]

_NO_OPTIONS = Options()


class Conversations:
    """Open conversations of one store. May be used from several threads and event loops at the same time.

    Two calls with one name get the same object, as long as the program holds it or it was used lately.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        format: str | None = None,
        model: str | None = None,
        window: int | None = None,
        policy: PolicyChoice | None = None,
        summarizer: str | Summarizer | None = None,
        expand: bool | None = None,
        plugins: Sequence[Plugin] = (),
        options: Options = _NO_OPTIONS,
        max_open: int = 200,
    ) -> None:
        """The keywords are those of `open_conversation`, and count for every conversation.

        `store`: a URL, which is opened at once and closed by `close`, or a Store, which stays open. `max_open`:
        conversations in memory; above it, those that were not used for longest are dropped. One that is in use, or
        writes a summary in the background, is never dropped. Without `window` and `model`, each request names its model
        or its window. Raises BadSetting for values that are not allowed.
        """
        self._max_open = validate.integer("max_open=", max_open, 1)
        if format is not None:
            validate.text("format=, for several conversations,", format)
        self._opener = Opener(
            store=store,
            format=format,
            model=model,
            window=window,
            policy=policy,
            summarizer=summarizer,
            expand=expand,
            plugins=plugins,
            options=options,
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._recent: OrderedDict[str, Conversation] = OrderedDict()
        """The conversations that stay in memory, the one that was used last at the end."""
        self._known: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        """All conversations that still exist, so that no name has two of them."""
        self._opening: dict[str, threading.Lock] = {}
        self._uses: dict[str, deque[Future[None]]] = {}
        """The names that are in use, each with the uses that wait for it."""
        _pools.add(self)

    def get(self, name: str) -> Conversation:
        """Return the conversation `name`; open it, or create it, if it is not in memory.

        Several callers share the object, which is safe: each operation takes its lock. Use `use` where a request, the
        model call and its reply belong together. In asyncio, call `get_async`. Raises what `open_conversation` raises.
        """
        name = validate.conversation_name("The name of a conversation", name)
        with self._lock:
            self._require_open()
            if (known := self._get_known(name)) is not None:
                return known
            opening = self._opening.setdefault(name, threading.Lock())
        try:
            with opening:
                with self._lock:
                    if (known := self._get_known(name)) is not None:
                        return known
                opened = self._opener.open(name)
                with self._lock:
                    self._require_open()
                    return self._get_known(name, opened) or opened
        finally:
            with self._lock:
                self._opening.pop(name, None)

    async def get_async(self, name: str) -> AsyncConversation:
        """Return the async side of the conversation `name` (`get`), opened in a thread."""
        import asyncio

        from ..background.tasks import running_loop

        running_loop()
        with self._lock:
            known = None if self._is_closed else self._get_known(name)
        if known is None:
            known = await asyncio.to_thread(self.get, name)
        return known.aio

    def use(self, name: str) -> ConversationUse:
        """Use the conversation `name` alone, in a `with` or an `async with` block; other uses of it wait their turn.

        `with conversations.use("t1") as chat` gives a Conversation, `async with` an AsyncConversation. A use within a
        use of the same name waits for ever. Uses in other processes do not wait; the store detects their writes.
        """
        name = validate.conversation_name("The name of a conversation", name)
        return ConversationUse(self, name)

    def close(self) -> None:
        """Close the store, if this object opened it, and give up summaries that are being written.

        Later calls raise BadSetting. End the uses first.
        """
        with self._lock:
            self._is_closed = True
            known = list(self._known.values())
            self._recent.clear()
        for conversation in known:
            conversation.close()
        self._opener.close()

    def __len__(self) -> int:
        """Number of conversations that are kept in memory."""
        return len(self._recent)

    def __enter__(self) -> Conversations:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Conversations:
        return self

    async def __aexit__(self, *exc: object) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def _reset_after_fork(self) -> None:
        """End the uses and openings of the parent's threads, which do not run in a forked process."""
        self._lock = threading.Lock()
        self._opening, self._uses = {}, {}

    # ------------------------------------------------------------------------------------------- with the lock taken

    def _require_open(self) -> None:
        if self._is_closed:
            raise BadSetting("The store is closed: close() was called on the object that holds it. Create that again.")

    def _get_known(self, name: str, opened: Conversation | None = None) -> Conversation | None:
        """Return the conversation that exists under a name, else `opened`, and note that it is used."""
        known = self._known.get(name)
        if known is None:
            if opened is None:
                return None
            known = self._known[name] = opened
        self._recent[name] = known
        self._recent.move_to_end(name)
        if len(self._recent) > self._max_open:
            self._drop_idle()
        return known

    def _drop_idle(self) -> None:
        """Drop the conversations that were not used for longest."""
        for name in list(self._recent)[:-1]:
            if len(self._recent) <= self._max_open:
                return
            if name not in self._uses and not self._recent[name]._session.is_busy():
                del self._recent[name]

    # --------------------------------------------------------------------------------------------------------- uses

    def begin_use(self, name: str) -> Future[None] | None:
        """Take the name, and return None; if it is taken, return a future that ends when it is this use's turn."""
        with self._lock:
            self._require_open()
            if name not in self._uses:
                self._uses[name] = deque()
                return None
            turn: Future[None] = Future()
            self._uses[name].append(turn)
            return turn

    def end_use(self, name: str) -> None:
        """Pass the name on to the use that waits for longest."""
        with self._lock:
            waiting = self._uses.get(name) or deque()
            while waiting:
                turn = waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    break
            else:
                self._uses.pop(name, None)  # None: the process was forked in the middle of the use.
                return
        turn.set_result(None)


class ConversationUse:
    """One use of a conversation, as a context manager. Made by `Conversations.use`."""

    def __init__(self, conversations: Conversations, name: str) -> None:
        self._conversations, self._name = conversations, name

    def __enter__(self) -> Conversation:
        turn = self._conversations.begin_use(self._name)
        if turn is not None:
            try:
                turn.result()
            except BaseException:  # Such as Ctrl-C.
                self._give_up(turn)
                raise
        try:
            return self._conversations.get(self._name)
        except BaseException:
            self._conversations.end_use(self._name)
            raise

    def __exit__(self, *exc: object) -> None:
        self._conversations.end_use(self._name)

    async def __aenter__(self) -> AsyncConversation:
        import asyncio

        turn = self._conversations.begin_use(self._name)
        if turn is not None:
            try:
                await asyncio.wrap_future(turn)
            except BaseException:
                self._give_up(turn)
                raise
        try:
            return await self._conversations.get_async(self._name)
        except BaseException:
            self._conversations.end_use(self._name)
            raise

    async def __aexit__(self, *exc: object) -> None:
        self._conversations.end_use(self._name)

    def _give_up(self, turn: Future[None]) -> None:
        """Leave the queue; if it is this use's turn already, pass the name on."""
        if not turn.cancel() and not turn.cancelled():
            self._conversations.end_use(self._name)


_pools: WeakSet[Conversations] = WeakSet()


def _reset_after_fork() -> None:
    for pool in list(_pools):
        pool._reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
