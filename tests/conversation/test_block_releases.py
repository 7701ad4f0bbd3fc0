"""Blocks of plugins leave the store by their age, once their calls are over."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import Conversation, Media, StoreError, open_conversation
from foveate.conversation.plugins import AdditionalContent
from foveate.core.edits import Hide, Span, Summarize, Target
from foveate.core.messages import Message, Text
from foveate.core.originals import RELEASED
from foveate.core.retention import Age
from foveate.errors import BadSetting, NotExpandable
from foveate.open import grouped
from foveate.policies import PluginRetention, retain_blocks
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import say
from foveate.testing.faults import Countdown, failing_store
from foveate.types import PartRetention

from .shells import shown, wire

RULES = {"plugin blocks": "2 turns"}


class Screen:
    """A plugin that adds a picture and a word, for some later calls."""

    def __init__(self, save: int | bool = 0) -> None:
        self.name, self.count, self._save = "screen", 0, save

    def __call__(self, content: tuple[Any, ...]) -> Any:
        self.count += 1
        picture = Media("image/png", "base64", f"{self.count:04}" * 2_000)
        return [AdditionalContent((picture, Text(f"mango {self.count}")), True, self._save)]


def opened(store: Database, *plugins: Any, policy: Any = "none") -> Conversation:
    ticks = iter(range(1, 10**9))
    options = grouped({"clock": lambda: next(ticks), "store": store, "window": 10_000_000, "policy": policy})
    return open_conversation("c", format="openai", plugins=plugins, **options)


def talked(store: Database, turns: int = 6, save: int | bool = 0, policy: Any = "none") -> Conversation:
    chat = opened(store, Screen(save), policy=policy)
    for n in range(turns):
        chat.append(f"question {n}")
        chat.prepare()
        chat.record(say(f"answer {n}"))
    chat.append("and now?")
    chat.prepare()
    return chat


def released(chat: Conversation) -> list[str]:
    state = chat._session.state
    rows = state.store.messages(state.head, 1, state.head.position)
    return [f"m{row.position}" for row in rows if row.is_released]


def test_blocks_over_their_age_leave_the_store(tmp_path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        chat = talked(store)
        before = wire(chat, chat.view)
        size = sum(row.size for row in store.stamps(chat._session.state.head, 1, 99))
        tried = chat.privacy.apply_retention(RULES, dry_run=True)
        assert released(chat) == []
        done = chat.privacy.apply_retention(RULES)
        assert (done, [(one.kind, one.messages) for one in done.kinds]) == (tried, [("plugin_blocks", 5)])
        assert done.bytes > 5 * 8_000
        assert released(chat) == ["m1", "m3", "m5", "m7", "m9"]
        assert sum(row.size for row in store.stamps(chat._session.state.head, 1, 99)) < size - 5 * 40
        assert chat.original("m1").parts[0] == Text("question 0")
        assert not any(chat.original("m1").media())
        assert (chat.journal.verify(), chat.privacy.residue()) == ([], (0, []))
        assert wire(chat, chat.view) == wire(opened(store), opened(store).view) == before
        assert chat.privacy.apply_retention(RULES).messages == 0
        assert [hit.position for hit in store.search(chat._session.state.head, "mango")] == [13, 11]


RELEASING = (retain_blocks(plugins={"screen": PluginRetention(release=True)}),)


@pytest.mark.parametrize(("save", "gone"), [(0, 6), (2, 4), (True, 0)])
def test_plugin_may_release_its_blocks_as_soon_as_their_calls_are_over(save: int | bool, gone: int) -> None:
    store, control = MemoryStore(), MemoryStore()
    chat, kept = talked(store, save=save, policy=RELEASING), talked(control, save=save)
    assert released(chat) == [f"m{n}" for n in range(1, 2 * gone, 2)]
    assert wire(chat, chat.view) == wire(kept, kept.view) == wire(opened(store), opened(store).view)
    assert chat.original("m1").parts[0] == Text("question 0")
    assert chat.journal.verify() == []


def test_message_of_a_plugin_alone_is_released_whole() -> None:
    chat = opened(MemoryStore(), policy=RELEASING)
    kept = (PartRetention(calls=0, plugin="screen"), PartRetention(calls=0, plugin="other"))
    for parts in (kept[:1], kept):
        chat.append("Look.")
        chat.append(Message("user", (Text("mango"),) * len(parts)), kept=parts, origin="plugin")
        chat.prepare()
        chat.record(say("I see."))
    chat.append(Message("user", (Text("fig"),)), kept=kept[:1], origin="plugin")
    chat.append("go on")
    chat.prepare()
    assert [entry.handle for entry in chat.view] == ["m1", "m3", "m4", "m6", "m7", "m8"]
    assert released(chat) == ["m2"]  # The other plugin keeps its block.


def test_blocks_that_have_calls_left_stay() -> None:
    chat = talked(MemoryStore(), save=3)
    assert chat.privacy.apply_retention({"plugin blocks": "0 turns"}).messages == 3
    assert released(chat) == ["m1", "m3", "m5"]
    chat = talked(MemoryStore(), save=True)
    assert chat.privacy.apply_retention({"plugin blocks": "0 turns"}).messages == 0


def test_blocks_that_are_shown_again_or_pinned_stay() -> None:
    chat = talked(MemoryStore())
    chat.expand("m1.3")
    chat.expand("m3.3")
    chat.pin("m3.3")
    chat.privacy.apply_retention({"plugin blocks": "0 turns"})
    assert "mango" not in "".join(part.text for part in chat.original("m5").parts if isinstance(part, Text))
    assert any(chat.original("m3").media())
    assert any(chat.original("m1").media())


def test_a_released_block_is_not_expanded_and_the_rest_is() -> None:
    chat = talked(MemoryStore())
    chat.privacy.apply_retention(RULES)
    with pytest.raises(NotExpandable, match="its original was released"):
        chat.expand("m1.3")
    chat.edit(Hide(Target(chat.view.entries[0].id)))
    assert chat.expand("m1").parts[0] == Text("question 0")
    assert RELEASED not in chat.view.entries[0].message.text


def test_blocks_of_a_summarized_message_are_released() -> None:
    store = MemoryStore()
    chat = talked(store)
    first, last = chat.view.entries[0].id, chat.view.entries[3].id
    chat.edit(Summarize(Span(first, last), "Two questions."))
    chat.privacy.apply_retention(RULES)
    assert released(chat) == ["m1", "m3", "m5", "m7", "m9"]
    chat.undo()
    assert chat.view.entries[0].message.parts == (Text("question 0"),)
    assert shown(opened(store).view) == shown(chat.view)


def test_blocks_that_a_fork_shares_wait() -> None:
    chat = talked(MemoryStore())
    chat.fork("other", at="m4")
    done = chat.privacy.apply_retention(RULES)
    assert (released(chat), done.waiting) == (["m5", "m7", "m9"], (("forked", 2),))


def test_a_list_of_the_caller_agrees_after_a_release() -> None:
    store = MemoryStore()
    chat = talked(store)
    chat.privacy.apply_retention(RULES)
    mine = [entry.message for entry in chat.listed()]
    assert chat.follow(mine).added == ()
    followed = opened(store).follow([*mine, say("yes")])
    assert (len(followed.added), followed.edited, followed.hidden) == (1, 0, 0)


def test_a_rule_for_blocks_has_no_exceptions() -> None:
    assert str(Age("plugin_blocks", turns=2)) == "plugin blocks = 2 turns"
    with pytest.raises(BadSetting, match="Remove `even shown`"):
        Age("plugin_blocks", turns=2, even=("shown",))


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
def test_retry_after_any_failure_releases_all_blocks(after: bool) -> None:
    """F30."""
    n = 0
    while True:
        n += 1
        inner, countdown = MemoryStore(), Countdown(after=after)
        chat = talked(failing_store(inner, countdown))
        before = shown(chat.view)
        countdown.start(n)
        for _ in range(2):
            try:
                chat.privacy.apply_retention(RULES)
                break
            except StoreError:
                continue
        is_done = not countdown.is_used_up
        countdown.start(0)
        assert released(chat) == ["m1", "m3", "m5", "m7", "m9"]
        assert (shown(chat.view), chat.journal.verify()) == (before, [])
        if is_done:
            break
    assert n > 5
