"""A store that lost acknowledged writes: an open conversation reports it, and writes nothing on top."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Conversation, Options, open_conversation
from foveate.edits import Hide, Target
from foveate.errors import StoreRolledBack
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore


class FailedOver:
    """A store that is one server first, and then another one that was behind."""

    def __init__(self, now: Any = None) -> None:
        self.now = now or MemoryStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


def talking(store: Any, name: str = "one") -> Conversation:
    return open_conversation(
        name, store=store, window=32_000, policy="off", options=Options(clock=lambda: 1_790_000_000_000)
    )


def talk_about(chat: Conversation, *texts: str) -> None:
    for text in texts:
        if text == "pin":
            chat.pin("m1")
        elif text == "unpin":
            chat.unpin("m1")
        elif text == "-":
            chat.edit(Hide(Target(chat.history(1, 1)[0].id)))
        else:
            chat.append(text)


def behind(*texts: str, store: Any = None) -> Any:
    """Return the other server, with the writes that reached it."""
    store = store or MemoryStore()
    talk_about(talking(store), *texts)
    return store


@pytest.mark.parametrize("others", [(), ("e",), ("e", "f"), ("e", "f", "g", "-"), ("-",)])
@pytest.mark.parametrize("do", ["append", "append after", "record", "edit", "refresh", "history", "fork", "erase"])
def test_reader_of_lost_data_gets_store_rolled_back(others: tuple[str, ...], do: str) -> None:
    store = FailedOver()
    chat = talking(store)
    talk_about(chat, "a", "b", "-", "c", "d")
    first, last = chat.history(1, 1)[0].id, chat.history(4, 4)[0].id
    work = {
        "append": lambda: chat.append("next"),
        "append after": lambda: chat.append("next", after=last),
        "record": lambda: chat.record({"role": "assistant", "content": "yes"}),
        "edit": lambda: chat.edit(Hide(Target(first))),
        "refresh": chat.refresh,
        "history": chat.history,
        "fork": lambda: chat.fork("two"),
        "erase": lambda: chat.privacy.erase("m1"),
    }[do]
    store.now = behind("a", "b", *others)
    before = [row.body for row in everything(store.now)]
    is_short = len(before) < 4 or "-" not in others
    if do == "history" and not is_short:
        return  # It reads what the store has, up to where this conversation ends.
    with pytest.raises(StoreRolledBack, match="'one', 4 messages and 1 edits were acknowledged") as caught:
        work()
    assert caught.value.known == (4, 1)
    with pytest.raises(StoreRolledBack):
        chat.append("again")  # It goes on refusing until it is opened again.
    again = talking(store)
    assert ([row.body for row in everything(store.now)], again.journal.verify()) == (before, [])
    assert len(again.append("on from what is there")) == 1


def everything(store: Any) -> Any:
    head = store.open("", "one", create=False)
    return store.messages(head, 1, head.position)


@pytest.fixture(params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Yield a function that makes servers; they are closed at the end."""
    stores: list[Any] = []

    def make() -> Any:
        is_file = request.param == "sqlite"
        stores.append(SqliteStore(tmp_path / f"{len(stores)}.db") if is_file else MemoryStore())
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.mark.parametrize("there", [(), ("pin",), ("pin", "unpin")])
@pytest.mark.parametrize("after", [False, True])
def test_lost_edits_block_appends(server: Callable[[], Any], there: tuple[str, ...], after: bool) -> None:
    """The tip is unchanged, so the message would fit."""
    store = FailedOver(server())
    chat = talking(store)
    talk_about(chat, "a", "b", "-")
    store.now = behind("a", "b", *there, store=server())
    before = store.now.open("", "one")
    assert before.tip == chat.tip
    with pytest.raises(StoreRolledBack, match="'one', 2 messages and 1 edits were acknowledged"):
        chat.append("next", after=chat.tip if after else None)
    assert store.now.open("", "one") == before


@pytest.mark.parametrize("after", [False, True])
def test_lost_erasure_blocks_appends(server: Callable[[], Any], after: bool) -> None:
    store = FailedOver(server())
    chat = talking(store)
    talk_about(chat, "a", "secret", "c")
    chat.privacy.erase("m2")
    store.now = behind("a", "secret", "c", store=server())
    before = store.now.open("", "one")
    with pytest.raises(StoreRolledBack):
        chat.append("next", after=chat.tip if after else None)
    assert store.now.open("", "one") == before


@pytest.mark.parametrize("there", [(), ("d",), ("d", "e")])
def test_lost_messages_block_edits(server: Callable[[], Any], there: tuple[str, ...]) -> None:
    """The journal is unchanged, so the edit would fit."""
    store = FailedOver(server())
    chat = talking(store)
    talk_about(chat, "a", "b", "-", "c")
    store.now = behind("a", "b", "-", *there, store=server())
    before = store.now.open("", "one")
    with pytest.raises(StoreRolledBack, match="'one', 3 messages and 1 edits were acknowledged"):
        chat.pin("m2")
    assert store.now.open("", "one") == before


@given(
    kept=st.integers(0, 4),
    lost=st.integers(1, 4),
    others=st.lists(st.sampled_from(["p", "q", "-"]), max_size=7),
    do=st.sampled_from(["append", "refresh", "fork"]),
)
def test_no_message_is_appended_after_lost_data(kept: int, lost: int, others: list[str], do: str) -> None:
    common = ["a", "b", *(f"kept {n}" for n in range(kept))]
    store = FailedOver()
    chat = talking(store)
    talk_about(chat, *common, *(f"lost {n}" for n in range(lost)))
    store.now = behind(*common, *others)
    before = everything(store.now)
    with pytest.raises(StoreRolledBack):
        {"append": lambda: chat.append("next"), "fork": lambda: chat.fork("two")}.get(do, chat.refresh)()
    with pytest.raises(StoreRolledBack):
        chat.append("next")
    assert everything(store.now) == before
    assert talking(store).journal.verify() == []


@pytest.mark.parametrize("others", [["pin"], ["pin", "unpin"], ["pin", "c", "d"]])
def test_lost_edit_raises_though_others_committed_another(others: list[str]) -> None:
    store = FailedOver()
    chat = talking(store)
    talk_about(chat, "a", "b", "-")
    store.now = behind("a", "b", *others)
    with pytest.raises(StoreRolledBack, match="it holds others"):
        chat.refresh()


def test_reader_that_saw_nothing_lost_continues() -> None:
    store = FailedOver()
    chat = talking(store)
    talk_about(chat, "a", "b", "-")
    talk_about(talking(store), "lost")
    store.now = behind("a", "b", "-", "c")
    talk_about(chat, "d", "-")
    assert ([row.message.text for row in chat.history()], chat.journal.verify()) == (["a", "b", "c", "d"], [])


def test_rollback_of_a_departure_raises_store_rolled_back() -> None:
    """The server lost the departure, and the conversation has its old name again."""
    store = FailedOver()
    chat = talking(store)
    talk_about(chat, "a", "b", "c")
    (chat._session.exchange.caller_list.go_back(2))
    talk_about(chat, "d")
    store.now = behind("a", "b", "c")
    with pytest.raises(StoreRolledBack):
        chat.refresh()
    with pytest.raises(StoreRolledBack):
        chat.append("e")


def test_lost_erasure_raises() -> None:
    """The erased content is there again, so the owner must know."""
    store = FailedOver()
    chat = talking(store)
    talk_about(chat, "a", "secret", "c")
    chat.privacy.erase("m2")
    store.now = behind("a", "secret", "c")
    with pytest.raises(StoreRolledBack, match="it holds others"):
        chat.refresh()
