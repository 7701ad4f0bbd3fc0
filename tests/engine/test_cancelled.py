"""Tasks cancelled while the store works: what was written is known, and nobody hears of errors they gave up on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from foveate import open_async_conversation
from foveate.stores.memory import MemoryStore


class Slow(MemoryStore):
    """Waits in the next append until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def extend(self, *given: Any) -> Any:
        self.begun.set()
        assert self.go.wait(60)
        return super().extend(*given)


def test_a_cancelled_append_is_known_before_the_next_step_begins():
    async def story() -> None:
        store = Slow()
        one = await open_async_conversation("c", store=store, window=10_000)
        store.go.clear()
        task = asyncio.ensure_future(one.append("first"))
        await asyncio.to_thread(store.begun.wait)
        task.cancel()
        after = asyncio.ensure_future(one.append("second"))
        await asyncio.sleep(0)
        assert not task.done()
        store.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await after
        assert one.tip == (await one.history())[-1].id
        assert [entry.message.text for entry in one.view] == ["first", "second"]

    asyncio.run(story())


def test_a_step_that_fails_while_it_is_cancelled_is_cancelled():
    class Failing(Slow):
        def extend(self, *given: Any) -> Any:
            super().extend(*given)
            raise OSError("the disk is gone")

    async def story() -> None:
        store = Failing()
        one = await open_async_conversation("c", store=store, window=10_000)
        store.go.clear()
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        task = asyncio.ensure_future(one.append("first"))
        await asyncio.to_thread(store.begun.wait)
        task.cancel()
        store.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == []

    asyncio.run(story())


def test_many_tasks_share_one_conversation():
    async def story() -> list[str]:
        one = await open_async_conversation("c", window=100_000)

        async def turn(n: int) -> None:
            await one.append(f"u{n}")
            await one.prompt()
            await one.record({"choices": [{"message": {"role": "assistant", "content": f"a{n}"}}]})

        await asyncio.gather(*(turn(n) for n in range(20)))
        assert await one.verify() == []
        return sorted(row.message.text for row in await one.history())

    assert asyncio.run(story()) == sorted([f"{who}{n}" for who in "ua" for n in range(20)])
