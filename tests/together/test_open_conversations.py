"""Open conversations share the connections, files and threads of their store, and each takes little memory."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from foveate import Conversation, open_async_conversation, open_conversation, open_store

FILES = Path("/proc/self/fd")


def take_turn(chat: Conversation) -> None:
    chat.append("Where is my order?")
    chat.prompt()
    chat.record({"role": "assistant", "content": "It is on its way. " * 20})


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """Open a store, with what the first conversations start and import."""
    with open_store(url) as store:
        for number in range(4):
            take_turn(open_conversation(f"first {number}", store=store, window=100_000))
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_open_conversations_hold_no_file_connection_or_thread(kind: str, tmp_path: Path, request: Any) -> None:
    url = f"sqlite:///{tmp_path}/chat.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with opened(url) as store:
        files, threads = asyncio.run(open_eighty(store))
    assert files < 20  # Eighty were opened. The pool of a store may open some more on a busy machine.
    assert threads < 20


async def open_eighty(store: Any) -> tuple[int, int]:
    """Open forty sync and forty async conversations; return how many files and threads were added."""
    waiting = await open_async_conversation("first async", store=store, window=100_000)
    await waiting.append("Where is my order?")
    files, threads = count_files(), threading.active_count()
    chats = [open_conversation(f"chat {number}", store=store, window=100_000) for number in range(40)]
    tasks = [await open_async_conversation(f"task {number}", store=store, window=100_000) for number in range(40)]
    for chat in chats:
        take_turn(chat)
    for task in tasks:
        await task.append("Where is my order?")
        await task.prompt()
    return count_files() - files, threading.active_count() - threads


def count_files() -> int:
    """Return the number of open files and connections, or 0 where the system does not list them."""
    return len(list(FILES.iterdir())) if FILES.is_dir() else 0


@pytest.mark.slow
def test_an_open_conversation_of_four_messages_takes_at_most_55_kb(tmp_path: Path) -> None:
    """Ten thousand of them fit into half a gigabyte."""
    with opened(f"sqlite:///{tmp_path}/chat.db") as store:
        gc.collect()
        tracemalloc.start()
        try:
            chats = [open_conversation(f"chat {number}", store=store, window=100_000) for number in range(50)]
            for _ in range(2):
                for chat in chats:
                    take_turn(chat)
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] / len(chats)
        finally:
            tracemalloc.stop()
    assert 1_000 < held < 55_000
