"""What was erased is in no object of the process any more: neither in a policy's memory nor in a summarizer's."""

from __future__ import annotations

import gc
import types
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import Conversation, Summary, SummaryRequest, ToolCall, assistant, tool_result, user
from foveate.digest import describe
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.summarizers import cached
from foveate.testing.rows import chain


def secret() -> str:
    """Made anew each time, so that no constant of this file holds it."""
    return "".join(reversed("edocsuoiretsym")) + str(7 * 11 * 13)


def summarize(request: SummaryRequest) -> Summary:
    told = any(secret() in message.text for message in request.messages)
    return Summary(f"They looked for {secret() if told else 'something'}, and found it.", "test")


def holding(word: str) -> list[str]:
    """Whatever holds a text with this word, as far as Python can reach it."""
    gc.collect()
    found, raw, here = [], word.encode(), gc.get_objects()
    todo, seen = list(here), {id(here), id(found)}
    seen.add(id(todo))
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, types.FrameType):
            continue
        seen.add(id(one))
        for part in gc.get_referents(one):
            if (type(part) is str and word in part) or (type(part) is bytes and raw in part):
                found.append(f"{type(one).__module__}.{type(one).__name__}: {one!r:.300}")
            elif not gc.is_tracked(part) and not isinstance(part, str | bytes | int | float | type):
                todo.append(part)  # What holds only plain values is not listed by itself.
    return found


def talk(chat: Conversation, turns: int = 20) -> None:
    for n in range(turns):
        word = secret() if n == 3 else f"part{n}"
        chat.append(user(f"Find {word} in file {n}."))
        chat.append(assistant("Looking.", ToolCall(f"c{n}", "read_file", f'{{"path":"src/{word}.py"}}')))
        chat.append(tool_result(f"c{n}", f"def {word}(): return '{word}'\n" * 150))
        chat.append(assistant(f"It is in {word}."))
        chat.settle()
        chat.prompt()
    chat.search("part7")
    chat.compact()
    chat.settle()


def opened(path: Path, policy: str, summarizer: Any) -> Conversation:
    store = f"sqlite:///{path}"
    return foveate.open_conversation(
        "one", store=store, window=9_000, policy=policy, summarizer=summarizer, format="anthropic", background=False
    )


@pytest.mark.slow  # All objects of a process that runs many tests are looked through, and so they are below.
@pytest.mark.parametrize("policy", ["balanced", "prune-and-compact", "browser", "expire"])
def test_what_was_erased_is_in_no_object_any_more(tmp_path: Path, policy: str) -> None:
    summarizer = cached(summarize)
    with opened(tmp_path / "chat.db", policy, summarizer) as chat:
        talk(chat)
        assert len(holding(secret())) > 2
        for handle in ("m13", "m14", "m15", "m16"):
            chat.erase(handle)
        chat.settle()
        assert holding(secret()) == []
        assert chat.leftovers() == (4, [])


@pytest.mark.slow
def test_who_learns_that_another_one_erased_forgets_it_too(tmp_path: Path) -> None:
    """By a store of its own, as another process would; and as soon as it looks at the store again."""
    summarizer = cached(summarize)
    with opened(tmp_path / "chat.db", "balanced", summarizer) as chat:
        talk(chat)
        with SqliteStore(tmp_path / "chat.db") as store:
            store.erase(store.open("", "one"), [(13, 16)])
        assert len(holding(secret())) > 2
        chat.append("And now?")
        chat.refresh()
        chat.settle()
        chat.prompt()
        assert holding(secret()) == []


@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_a_store_that_erases_empties_what_the_process_remembers(tmp_path: Path, kind: str) -> None:
    """Whoever tells the store alone leaves at least no cache of functions behind."""
    with MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("", "one")
        head = store.append(head, chain([user("something")], head))
        describe(f"def {secret()}(): pass\n" * 20)
        assert len(holding(secret())) > 0
        store.erase(head, [(1, 1)])
        assert holding(secret()) == []


def test_a_mapping_of_the_callers_own_is_left_alone(tmp_path: Path) -> None:
    mine: dict[str, bytes] = {}
    summarizer = cached(summarize, mine)
    with opened(tmp_path / "chat.db", "prune-and-compact", summarizer) as chat:
        talk(chat)
        kept = dict(mine)
        chat.erase("m13")
    assert mine == kept != {}
