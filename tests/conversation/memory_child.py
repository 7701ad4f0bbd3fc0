"""Child process that appends, erases, and then searches all objects of the process for the erased text.

Run it with the name of an act and a folder. It prints as JSON how many objects held the text before the erasure, and
which hold it afterwards. It is a separate process, because objects of other tests would make the search slow.
"""

from __future__ import annotations

import gc
import json
import sys
import types
from pathlib import Path
from typing import Any

import foveate
from foveate import Conversation, ToolCall, assistant, tool_result, user
from foveate.digest import describe
from foveate.ports import append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.summarizers import Summary, SummaryRequest, cached
from foveate.testing.rows import chain


def secret() -> str:
    """Return a word that no constant of this file contains."""
    return "".join(reversed("edocsuoiretsym")) + str(7 * 11 * 13)


def holding(word: str) -> list[str]:
    """Return every reachable object that holds a text with this word."""
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


def summarize(request: SummaryRequest) -> Summary:
    told = any(secret() in message.text for message in request.messages)
    return Summary(f"They looked for {secret() if told else 'something'}, and found it.", "test")


def talk(chat: Conversation, turns: int = 20) -> None:
    for n in range(turns):
        word = secret() if n == 3 else f"part{n}"
        chat.append(user(f"Find {word} in file {n}."))
        chat.append(assistant("Looking.", ToolCall(f"c{n}", "read_file", f'{{"path":"src/{word}.py"}}')))
        chat.append(tool_result(f"c{n}", f"def {word}(): return '{word}'\n" * 150))
        chat.append(assistant(f"It is in {word}."))
        chat.prepare()
        chat.prompt()
    chat.search("part7")
    for n in range(8):
        chat.append([user(f"And where is rest{n}? " * 20), assistant(f"It is in rest{n}. " * 40)])
    chat.compact()
    chat.prepare()


def opened(path: Path, policy: str, summarizer: Any) -> Conversation:
    store = f"sqlite:///{path}"
    return foveate.open_conversation(
        "one",
        store=store,
        window=9_000,
        policy=policy,
        summarizer=summarizer,
        format="anthropic",
        options=foveate.Options(background=False),
    )


def erased_here(path: Path, policy: str) -> tuple[int, list[str]]:
    """Erase through the conversation."""
    with opened(path, policy, cached(summarize)) as chat:
        talk(chat)
        before = len(holding(secret()))
        for handle in ("m13", "m14", "m15", "m16"):
            chat.privacy.erase(handle)
        chat.prepare()
        after = holding(secret())
        assert chat.privacy.residue() == (4, [])
        return before, after


def newest_erased(path: Path, policy: str) -> tuple[int, list[str]]:
    """Erase the message that was appended last."""
    with opened(path, policy, summarize) as chat:
        chat.append(f"Find {secret()}.")
        before = len(holding(secret()))
        chat.privacy.erase("m1")
        return before, holding(secret())


def erased_elsewhere(path: Path) -> tuple[int, list[str]]:
    """Erase through a second store, as another process does; the conversation then reads the store again."""
    with opened(path, "balanced", cached(summarize)) as chat:
        talk(chat)
        with SqliteStore(path) as store:
            store.erase(store.open("", "one"), [(13, 16)])
        before = len(holding(secret()))
        chat.append("And now?")
        chat.refresh()
        chat.prepare()
        chat.prompt()
        return before, holding(secret())


def erased_by_the_store(path: Path, kind: str) -> tuple[int, list[str]]:
    """Erase through the store alone; no function cache may hold the text afterwards."""
    with MemoryStore() if kind == "memory" else SqliteStore(path) as store:
        head = store.open("", "one")
        head = append(store, head, chain([user("something")], head))
        describe(f"def {secret()}(): pass\n" * 20)
        before = len(holding(secret()))
        store.erase(head, [(1, 1)])
        return before, holding(secret())


if __name__ == "__main__":
    do, folder, *how = sys.argv[1:]
    print(json.dumps(globals()[do](Path(folder) / "chat.db", *how)))
