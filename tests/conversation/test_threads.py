"""One conversation in several threads, and two writers with a list of messages each."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from foveate import DoesNotFit, View
from foveate.stores.memory import MemoryStore
from foveate.testing import say, user

from .shells import opened, texts


class Waiting(MemoryStore):
    """A store that waits in an append until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def extend(self, *given: Any, **named: Any) -> Any:
        self.begun.set()
        assert self.go.wait(60)
        return super().extend(*given, **named)


def test_view_during_an_append_shows_all_or_nothing():
    store = Waiting()
    chat = opened(store=store)
    seen: list[View] = []
    appending = threading.Thread(target=lambda: chat.append([user("a"), say("b")]))
    looking = threading.Thread(target=lambda: seen.append(chat.view))
    appending.start()
    assert store.begun.wait(60)
    looking.start()
    looking.join(0.05)
    assert seen == []
    store.go.set()
    appending.join(60)
    looking.join(60)
    assert [texts(view) for view in seen] == [["a", "b"]]


def test_alternating_threads_lose_nothing():
    chat = opened(policy="keep-last-2")
    chat.append(user("go"))

    def talk(number: int) -> None:
        for n in range(30):
            chat.append(user(f"{number}.{n}"))
            assert len(chat.view) <= len(chat)
            chat.prepare()
            chat.record(say(f"re {number}.{n}"))

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown_texts = [row.message.text for row in chat.history()]
    for number in range(4):
        assert [text for text in shown_texts if text.startswith(f"{number}.")] == [f"{number}.{n}" for n in range(30)]
    assert texts(chat.view) == shown_texts
    assert chat.journal.verify() == []


def test_list_after_a_departure_of_another_departs_too():
    store = MemoryStore()
    one, other = opened(store=store), opened(store=store)
    mine = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    theirs = [{"role": "user", "content": "stay"}]
    one.prompt(messages=mine)
    other.prompt(messages=theirs)
    for n in range(3):
        mine.append({"role": "user", "content": f"mine {n}"})
        assert one.prompt(messages=mine)["messages"] == mine
        theirs.append({"role": "user", "content": f"theirs {n}"})
        assert other.prompt(messages=theirs)["messages"] == theirs
    one.refresh()
    assert texts(one.view) == ["stay", "theirs 0", "theirs 1", "theirs 2"]
    assert [one.journal.verify(), other.journal.verify()] == [[], []]
    assert len(store.names("")) == 8  # Each of the seven departures kept what it left.


def test_message_of_another_writer_is_not_adopted_by_a_list():
    store = MemoryStore()
    one, other = opened(store=store), opened(store=store)
    mine = [{"role": "user", "content": "go"}]
    one.prompt(messages=mine)
    other.append(user("aside"))
    mine.append({"role": "user", "content": "on"})
    assert one.prompt(messages=mine)["messages"] == mine
    assert [row.message.text for row in one.history()] == ["go", "aside", "on"]  # The view hides the other's.


FORK = """
import os, signal, sys, threading
import foveate

begun, go, threads = threading.Event(), threading.Event(), []

def summarize(request):
    begun.set()
    go.wait(60)
    return "They count."

chats = [
    foveate.open_conversation("one", store=store, window=8_000, policy="none", summarizer=summarize)
    for store in (sys.argv[1], "memory:")
]
for chat in chats:
    for number in range(10):
        chat.append(f"{number} " * 100)
        chat.record(foveate.assistant("Yes. " * 100))
    begun.clear()
    threads.append(threading.Thread(target=chat.compact))
    threads[-1].start()
    begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(60)
    for chat in chats:
        try:
            chat.append("From the child.")
            print(len(chat), flush=True)
        except foveate.StoreError as error:
            print("before this process was forked" in str(error), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
go.set()
for thread in threads:
    thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_process_does_not_wait_for_a_thread_of_its_parent(tmp_path: Path):
    """The thread that holds the lock of the conversation at the fork does not run in the child."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, f"sqlite:///{tmp_path / 'chat.db'}"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (child.returncode, child.stdout.splitlines(), child.stderr) == (0, ["True", "21"], "")


FORK_IN_USE = """
import os, signal, sys, threading
import foveate
from foveate.stores.memory import MemoryStore

begun, go = threading.Event(), threading.Event()

class Waiting(MemoryStore):
    def changes(self, head):
        with self._lock:
            begun.set()
            go.wait(60)
            return super().changes(head)

conversations = foveate.Conversations(Waiting(), window=8_000)
conversations.get("one").append("Before the fork.")
conversations.get("two")
os.register_at_fork(before=go.set)

def use():
    with conversations.use("one") as chat:
        chat.refresh()
        ended.wait(60)

ended = threading.Event()
thread = threading.Thread(target=use)
thread.start()
begun.wait(60)
with conversations.use("two"):
    child = os.fork()
if child == 0:
    signal.alarm(60)
    go.set()
    with conversations.use("one") as chat:
        chat.append("From the child.")
        print(len(chat), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
ended.set()
thread.join()
with conversations.use("one") as chat:
    print(len(chat))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_process_waits_for_no_use_and_no_memory_store_of_its_parent():
    """It hung if another thread used the name, or was in an operation of the store, at the fork."""
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_IN_USE], capture_output=True, text=True, timeout=300
    )
    assert (child.returncode, child.stdout.splitlines(), child.stderr) == (0, ["2", "1"], "")


@pytest.mark.parametrize("size", [400, 4_000])
def test_prompt_leaves_room_for_what_another_writer_appends_meanwhile(size: int):
    """The commit of the plan finds the other's message, which the plan did not count: the request was too large."""
    store = MemoryStore()
    chat, other = (opened(store=store, window=2_500, counter="characters") for _ in range(2))
    chat.append([user("First."), say("a word " * 2_000), user("Go on.")])
    other.refresh()
    other.append(user("b word " * size))
    if size > 400:  # The other's message is larger than the window: no request is sent with it.
        with pytest.raises(DoesNotFit):
            chat.prompt()
    else:
        chat.prompt()
        assert texts(chat.view)[-1] == "b word " * size
        assert chat.view.tokens <= chat.budget.usable
        assert chat.prompt() == other.prompt()
