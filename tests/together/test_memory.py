"""What an open conversation holds: the view, and no original that the view does not show."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc

import pytest

import foveate
from foveate import ToolCall, assistant, tool_result, user
from foveate.core.caches import clear_caches
from foveate.edits import Replace, Target

pytestmark = pytest.mark.slow

ROUNDS = 20
SIZE = 50_000


def log(number: int) -> str:
    draw = random.Random(number)
    lines = [f"src/pkg{draw.randrange(900)}/mod_{draw.randrange(10**6)}.py: {draw.random()}" for _ in range(1_300)]
    return "\n".join(lines)[:SIZE]


def work(chat: foveate.Conversation, rounds: range) -> None:
    for number in rounds:
        chat.append(user(f"Read file {number}."))
        chat.prompt()
        arguments = json.dumps({"path": f"src/f{number}.py"})
        chat.record(assistant(f"Looking at {number}.", ToolCall(f"c{number}", "read_file", arguments)))
        chat.append(tool_result(f"c{number}", log(number)))
        chat.prompt()
        chat.record(assistant(f"File {number} is a log."))


def open_chat(folder, policy: str) -> foveate.Conversation:
    settings = (
        {"window": 60_000, "summarizer": "digest"} if policy not in ("keep-last-1", "none") else {"window": 1_000_000}
    )
    store = f"sqlite:///{folder}/a.db?search=off"
    return foveate.open_conversation("a", store=store, format="anthropic", policy=policy, **settings)


@pytest.mark.parametrize(
    "policy",
    [
        "keep-last-1",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("balanced", "prune", "checkpoint")),
    ],
)
def test_originals_that_no_view_shows_leave_the_memory(tmp_path, policy):
    chat = open_chat(tmp_path, policy)
    work(chat, range(4))  # Imports, and caches of words.
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(chat, range(4, ROUNDS))
        clear_caches()  # Of limited size: digests and names of the newest texts of all conversations.
        gc.collect()
        running = tracemalloc.get_traced_memory()[0] - before
        chat.close()
        del chat
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        chat = open_chat(tmp_path, policy)
        shown = sum(entry.bytes for entry in chat.prepare())
        clear_caches()
        gc.collect()
        reopened = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Otherwise the entries, the requests and their bytes hold all originals: more than two copies.
    assert shown < SIZE * ROUNDS / 10
    assert running < SIZE * ROUNDS, (running, shown)
    assert reopened < SIZE * ROUNDS * 3 // 4, (reopened, shown)
    assert chat.original("m3").parts[0].content[0].text == log(0)


def test_the_source_of_a_shrunk_entry_is_read_from_the_store(tmp_path):
    chat = open_chat(tmp_path, "keep-last-1")
    work(chat, range(3))
    chat.prepare()
    for entries in (chat.view.entries, open_chat(tmp_path, "keep-last-1").view.entries):
        entry = entries[2]
        assert entry.shrunk
        assert entry.message.text != log(0)
        assert entry.outline is not None
        assert len(entry.outline.text) < 10
        assert entry.source is not None
        assert entry.source.text == log(0)
        assert entry.result is not None
        assert entry.result.text == log(0)
        assert entry.outlined_result is not None
        assert entry.outlined_result.call_id == "c0"


def test_undoing_shows_an_original_that_left_the_memory(tmp_path):
    chat = open_chat(tmp_path, "none")
    work(chat, range(2))
    before = chat.body()
    result = chat.view.entries[2]
    chat.edit(Replace(Target(result.id, (0,)), (foveate.Text("short"),)))
    assert chat.view.entries[2].outline != result.source
    chat.undo()
    assert chat.view.entries[2].source == chat.view.entries[2].message == result.message
    assert chat.body() == before
