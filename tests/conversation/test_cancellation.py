"""Tasks that are cancelled during a store operation: written data is known, and late errors are not reported."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType
from typing import Any

import pytest

import foveate
from foveate import Conversation, Options, assistant, open_async_conversation, open_conversation
from foveate.core.edits import Hide, Target
from foveate.core.messages import Message
from foveate.errors import BadSetting
from foveate.stores.memory import MemoryStore
from foveate.testing import text_of

_VIEWS = ("core/projection.py", "core/slot_list.py", "conversation/state.py")
"""The code that changes views."""


class Slow(MemoryStore):
    """A store that waits in the next append until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def extend(self, *given: Any, **named: Any) -> Any:
        self.begun.set()
        assert self.go.wait(60)
        return super().extend(*given, **named)


def test_cancelled_append_is_settled_before_the_next_operation():
    async def story() -> None:
        store = Slow()
        chat = await open_async_conversation("c", store=store, window=10_000)
        store.go.clear()
        task = asyncio.ensure_future(chat.append("first"))
        await asyncio.to_thread(store.begun.wait, 60)
        task.cancel()
        after = asyncio.ensure_future(chat.append("second"))
        await asyncio.sleep(0)
        assert not task.done()
        store.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await after
        assert chat.tip == (await chat.history())[-1].id
        assert [entry.message.text for entry in chat.view] == ["first", "second"]

    asyncio.run(story())


def test_operation_that_fails_while_cancelled_is_cancelled():
    class Failing(Slow):
        def extend(self, *given: Any, **named: Any) -> Any:
            super().extend(*given, **named)
            raise OSError("the disk is gone")

    async def story() -> None:
        store = Failing()
        chat = await open_async_conversation("c", store=store, window=10_000)
        store.go.clear()
        reports: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        task = asyncio.ensure_future(chat.append("first"))
        await asyncio.to_thread(store.begun.wait, 60)
        task.cancel()
        store.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert reports == []

    asyncio.run(story())


def test_many_tasks_share_one_conversation():
    async def story() -> list[str]:
        chat = await open_async_conversation("c", window=100_000)

        async def turn(n: int) -> None:
            await chat.append(f"u{n}")
            await chat.prompt()
            await chat.record({"choices": [{"message": {"role": "assistant", "content": f"a{n}"}}]})

        await asyncio.gather(*(turn(n) for n in range(20)))
        assert await chat.journal.verify() == []
        return sorted(row.message.text for row in await chat.history())

    assert asyncio.run(story()) == sorted([f"{writer}{n}" for writer in "ua" for n in range(20)])


def test_operation_of_a_stopped_loop_does_not_block_another_loop():
    """A conversation that was used in another loop once waited for ever."""
    store = Slow()
    ended, loop = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        one = ended.run_until_complete(open_async_conversation("c", store=store, window=10_000))
        store.go.clear()
        task = ended.create_task(one.append("first"))
        ended.run_until_complete(asyncio.to_thread(store.begun.wait, 60))
        with pytest.raises(TimeoutError):
            loop.run_until_complete(asyncio.wait_for(one.append("never"), 0.1))
        store.go.set()
        ended.run_until_complete(task)
        loop.run_until_complete(asyncio.wait_for(one.append("second"), 60))
        assert [entry.message.text for entry in one.view] == ["first", "second"]
    finally:
        store.go.set()
        for each in (ended, loop):
            each.run_until_complete(each.shutdown_default_executor())
            each.close()


def test_conversation_works_in_a_new_loop_after_a_wait_in_the_old_one():
    async def both(one: Any, *texts: str) -> None:
        await asyncio.gather(*(one.append(text) for text in texts))

    one = asyncio.run(open_async_conversation("c", store=MemoryStore(), window=10_000))
    asyncio.run(both(one, "a", "b"))
    asyncio.run(both(one, "c", "d"))
    assert [entry.message.text for entry in one.view] == ["a", "b", "c", "d"]


def test_ctrl_c_between_two_store_calls_leaves_nothing_locked():
    chat = open_conversation("c", window=10_000, options=Options(clock=lambda: 0))
    chat.append(["a first word", "a second one"])
    chat.edit(Hide(Target(chat.history(1)[0].id)))
    chat._agent.acquire_lock("agent")
    with pytest.raises(KeyboardInterrupt) as kept, _interrupted("_batch"):
        chat._agent.append("never said", owner="agent")
    chat._agent.release_lock("agent")
    chat._agent.acquire_lock("another")
    chat.expand("m1", where="tail")
    assert len(chat) == 3
    assert kept.tb is not None  # As long as a traceback is there, so is what was under way.


def test_ctrl_c_at_any_line_of_an_append_leaves_a_usable_conversation():
    """A message that was half added to the view stayed so in memory: later views differed from what is stored."""
    for place in count():
        store = MemoryStore()
        chat = _conversation(store)
        with suppress(KeyboardInterrupt), _interrupted_at(place):
            chat.append("Go on.")
            break
        for _ in range(2):
            with open_conversation("c", store=store, window=4_000) as reopened:
                assert _shown(chat) == _shown(reopened)
            chat.append("And then?")
            chat.prompt()
    assert place > 20


def test_ctrl_c_at_the_acquisition_of_the_lock_leaves_it_free():
    """The signal may arrive between the acquisition and its result. Other threads waited for ever."""
    chat = open_conversation("c", window=10_000)

    def look(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_return" and function.__name__ == "acquire" and frame.f_code.co_filename.endswith("calls.py"):
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        with pytest.raises(KeyboardInterrupt):
            chat.append("Go on.")
    finally:
        sys.setprofile(None)
    other = threading.Thread(target=chat.append, args=("From another thread.",), daemon=True)
    other.start()
    other.join(60)
    assert len(chat) == 1


STOPPED_LOOP = """
import asyncio
import foveate

async def never(request):
    print("asked", flush=True)
    loop.stop()
    await asyncio.sleep(1_000)

async def compact():
    global chat
    chat = await foveate.open_async_conversation("c", window=8_000, policy="none", summarizer=never)
    for number in range(10):
        await chat.append(f"{number} " * 100)
        await chat.record(foveate.assistant("Yes. " * 100))
    await chat.compact()

loop = asyncio.new_event_loop()
try:
    loop.run_until_complete(compact())
except RuntimeError as error:
    print(error)
"""


@pytest.mark.slow
def test_python_ends_while_an_operation_waits_for_a_stopped_loop():
    """The thread of the operation waited for a loop that was stopped, such as by Ctrl-C, and never closed."""
    child = subprocess.run([sys.executable, "-c", STOPPED_LOOP], capture_output=True, text=True, timeout=120)
    assert (child.returncode, child.stdout.splitlines()) == (
        0,
        ["asked", "Event loop stopped before Future completed."],
    )


def test_async_side_without_a_loop_of_asyncio_names_what_to_do():
    """Without the check, coroutines were never awaited."""
    chat = open_conversation("c", window=10_000)
    conversations = foveate.Conversations(window=10_000)
    for begun in (
        open_async_conversation("c", window=10_000),
        chat.aio.append("Never."),
        conversations.get_async("c"),
        conversations.use("c").__aenter__(),
    ):
        with pytest.raises(BadSetting, match=r"No event loop of asyncio runs in this thread.*trio\.to_thread"):
            begun.send(None)
    assert len(chat) == 0
    with conversations.use("c") as free:
        assert len(free) == 0


def _conversation(store: MemoryStore) -> Conversation:
    chat = open_conversation("c", store=store, window=4_000, policy="balanced", summarizer="digest")
    chat.append(f"Which way? {text_of(900)}")
    chat.prompt()
    chat.record(assistant("To the left."))
    return chat


def _shown(chat: Conversation) -> list[tuple[str, Message]]:
    return [(entry.handle, entry.message) for entry in chat.view]


@contextmanager
def _traced(look: Any) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _interrupted_at(place: int) -> Iterator[None]:
    """Raise KeyboardInterrupt after this many lines of the code that changes views."""
    left = place

    def look(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(_VIEWS):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return look

    with _traced(look):
        yield


@contextmanager
def _interrupted(name: str) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first line of the next function of this name."""

    def look(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name != name:
            return None
        if event == "line":
            sys.settrace(None)
            raise KeyboardInterrupt
        return look

    with _traced(look):
        yield
