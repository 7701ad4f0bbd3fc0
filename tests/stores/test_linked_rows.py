"""Rows that were linked just now are not hashed a second time; all others are checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate import open_conversation
from foveate.core import ids
from foveate.core.messages import user
from foveate.errors import BadInput
from foveate.ports import LinkedRows, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

HASHES = ("body_hash", "message_id", "seal")


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/chat.db"])
def test_append_computes_each_hash_once(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., str]:
        hash: Callable[..., str] = getattr(ids, name)

        def count(*arguments: bytes | str) -> str:
            calls[name] += 1
            return hash(*arguments)

        return count

    with open_conversation("one", store=url.format(tmp_path), policy="off") as chat:
        chat.append("hello")
        for name in HASHES:
            monkeypatch.setattr(ids, name, counted(name))
        chat.append("hello again")
        assert calls == dict.fromkeys(HASHES, 1)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_linked_rows_of_another_end_are_refused(kind: str, tmp_path: Path) -> None:
    with MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "chat.db") as store:
        start = store.open("acme", "one")
        rows = LinkedRows(start)
        rows += chain([user("hello")], start)
        head = append(store, start, rows)
        with pytest.raises(BadInput, match="Message 2"):
            append(store, head, rows)
        assert store.messages(head, 1, 9) == rows
