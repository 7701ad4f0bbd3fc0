"""Errors name the tenant of their conversation, so that a log of a service with many tenants is enough to find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate import ConflictError, Conversation, Options, open_conversation
from foveate.errors import BadInput, BadSetting, NoSuchConversation, StoreError
from foveate.ports import Database
from foveate.stores.checks import append_conflict, commit_conflict, lock_lost, rolled_back
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore


def stored(kind: str, folder: Path) -> Database:
    return MemoryStore() if kind == "memory" else SqliteStore(folder / "a.db")


def opened(store: Database, name: str = "trip") -> Conversation:
    return open_conversation(name, store=store, format="openai", window=8_000, options=Options(tenant="acme"))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_unknown_conversation_is_named_with_its_tenant(kind: str, tmp_path: Path):
    with stored(kind, tmp_path) as store:
        with pytest.raises(
            NoSuchConversation, match=r"There is no conversation 'trip' of the tenant 'acme' in"
        ) as caught:
            store.open("acme", "trip", create=False)
        assert (caught.value.name, caught.value.tenant) == ("trip", "acme")
        with pytest.raises(NoSuchConversation, match=r"no conversation 'trip' in"):
            store.open("", "trip", create=False)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_errors_of_a_conversation_name_its_tenant(kind: str, tmp_path: Path):
    with stored(kind, tmp_path) as store:
        chat = opened(store)
        chat.append("Hello.")
        chat.fork("other")
        with pytest.raises(BadSetting, match=r"already is a conversation 'other' of the tenant 'acme'\."):
            chat.fork("other")
        chat.append("More.")
        with pytest.raises(ConflictError, match=r"in 'trip' of the tenant 'acme': its tip is"):
            chat.append("Again.", after=chat.history()[0].id)
        with pytest.raises(BadInput, match=r"The conversation 'trip' of the tenant 'acme' has no message"):
            chat.append("Again.", after="0" * 64)
        with pytest.raises(BadInput, match=r"'trip' of the tenant 'acme' has turns 1 to 1"):
            chat.as_of(7)


def test_conflicts_and_losses_name_the_tenant(tmp_path: Path):
    with stored("memory", tmp_path) as store:
        head = opened(store)._agent.head
    for error in (append_conflict, commit_conflict, rolled_back):
        assert "'trip' of the tenant 'acme'" in str(error(head, head))
    lost: StoreError = lock_lost(head, None)
    assert "'trip' of the tenant 'acme'" in str(lost)


def test_the_log_names_the_tenant(caplog: pytest.LogCaptureFixture):
    chat = opened(MemoryStore())
    chat.append("Hello.")
    chat.prompt()
    chat.retry_smaller(RuntimeError("prompt is too long: 9000 tokens > 6000 maximum"))
    (record,) = [record for record in caplog.records if "too long" in record.message]
    assert record.message.startswith("trip of the tenant 'acme': the provider refused")
