"""A whole database is verified one conversation at a time, in little memory, while others write."""

from __future__ import annotations

import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import foveate
from foveate import Text, ToolCall, assistant, tool_result
from foveate.core import ids
from foveate.core.messages import user
from foveate.core.snapshots import Snapshot
from foveate.edits import Hide, Replace, Summarize, Target
from foveate.errors import Damaged
from foveate.ops.archive import Verified, verify_all, verify_view
from foveate.ports import Finding, Head, append
from foveate.stores.codec import pack
from foveate.stores.memory import MemoryStore
from foveate.stores.sql import census
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain


def test_verify_reports_each_conversation_with_its_counts() -> None:
    store = MemoryStore()
    for tenant, name, count in (("zeta", "one", 2), ("", "one", 3), ("acme", "two", 0)):
        head = store.open(tenant, name)
        append(store, head, chain([user(str(n)) for n in range(count)], head))
    expected = [Verified("", "one", 3), Verified("acme", "two", 0), Verified("zeta", "one", 2)]
    assert sorted(verify_all(store), key=lambda one: one.tenant) == expected
    assert list(verify_all(store, tenant="zeta")) == [Verified("zeta", "one", 2)]
    assert list(verify_all(store, tenant="nobody")) == []


def test_damage_in_the_middle_does_not_hide_earlier_messages(tmp_path: Path) -> None:
    class Broken(MemoryStore):
        def census(self, tenant=None):  # type: ignore[no-untyped-def]
            yield from super().census(tenant)
            raise Damaged("chat.db is damaged (malformed).")

    store = Broken()
    store.open("acme", "one")
    assert list(verify_all(store)) == [
        Verified("acme", "one"),
        Verified("", "", findings=(Finding("database", "chat.db is damaged (malformed)."),)),
    ]


@pytest.mark.slow
def test_ten_times_as_many_conversations_take_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "_PAGE", 50)
    peaks = []
    for count in (200, 2_000):
        with SqliteStore(tmp_path / f"{count}.db", synchronous="normal", search=False) as store:
            for number in range(count):
                head = store.open(f"tenant {number % 9}", f"conversation {number}")
                append(store, head, chain([user("said")], head))
            tracemalloc.start()
            assert sum(not one.findings for one in verify_all(store)) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 50_000, peaks


# ---------------------------------------------------------------------------------------------------------- saved views


def viewed(path: Path) -> None:
    """Return a conversation with a saved view that contains edits of several kinds."""
    with foveate.open_conversation("one", store=f"sqlite:///{path}", window=32_000) as chat:
        for n in range(40):
            chat.append([user(f"Question {n}?"), assistant(f"Answer {n}. " * 20)])
            chat.edit(Replace(Target(chat.tip), (Text(f"A{n}."),)) if n % 3 else Hide(Target(chat.tip)))
        chat._agent.save_snapshot()


def test_view_that_a_conversation_saved_is_as_the_journal_says(tmp_path: Path) -> None:
    viewed(tmp_path / "chat.db")
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("", "one")
        saved = store.snapshot(head)
        assert saved is not None
        snapshot = Snapshot.decode(saved[2])
        assert snapshot is not None
        assert len(snapshot.kept) + len(snapshot.covers) > 10
        assert verify_view(store, head) == []
        store.erase(head, [(1, 8)])
        assert verify_view(store, store.open("", "one")) == []
        assert [one for one in verify_all(store) if one.findings] == []


@pytest.mark.parametrize("policy", ["balanced", "keep-last-2", "prune-and-compact"])
def test_view_matches_the_journal_before_and_after_retention(policy: str) -> None:
    """Edits are measured after they are made. A view that was saved without their sizes, as earlier versions did, is
    accepted; one with other sizes is not.
    """
    store = MemoryStore()
    chat = foveate.open_conversation(
        "one",
        store=store,
        window=6_000,
        policy=policy,
        summarizer="digest",
        format="anthropic",
        options=foveate.Options(background=False),
    )
    for n in range(40):
        chat.append(user(f"Find {n}."))
        chat.record(assistant("Looking.", ToolCall(f"c{n}", "look", "{}")))
        chat.append(tool_result(f"c{n}", f"def found_{n}(): return {n}\n" * 60))
        chat.prepare()
        chat.record(assistant(f"It is {n}."))
    for ages in ((), {"tool results": "5 turns"}):
        if ages:
            chat.privacy.apply_retention(ages)
        chat._agent.save_snapshot()
        snapshot = Snapshot.decode((store.snapshot(chat._agent.head) or (0, 0, b""))[2])
        assert snapshot is not None
        edits = [edit for slot in snapshot.kept for _, edit in slot.edits] + [one.edit for one in snapshot.covers]
        assert len(edits) > 2
        assert all(edit.tokens_before for edit in edits if isinstance(edit, Replace | Hide | Summarize))
        assert [one for one in verify_all(store) if one.findings] == []
        save_with_sizes(store, chat._agent.head, snapshot, 0)
        assert verify_view(store, chat._agent.head) == []
        save_with_sizes(store, chat._agent.head, snapshot, 7)
        (finding,) = verify_view(store, chat._agent.head)
        assert "differs from the journal" in finding.problem


def save_with_sizes(store: MemoryStore, head: Head, snapshot: Snapshot, size: int) -> None:
    """Save a view as if each of its edits had this many tokens."""

    def sized(edit: Any) -> Any:
        return structs.replace(edit, tokens_before=size, tokens_after=size)

    kept = [structs.replace(one, edits=[(n, sized(edit)) for n, edit in one.edits]) for one in snapshot.kept]
    covers = [structs.replace(one, edit=sized(one.edit)) for one in snapshot.covers]
    body = structs.replace(snapshot, kept=kept, covers=covers).encode()
    store.save_snapshot(head, snapshot.position, snapshot.number, body)


def test_changed_text_in_a_snapshot_is_found(tmp_path: Path) -> None:
    viewed(tmp_path / "chat.db")
    with SqliteStore(tmp_path / "chat.db") as store:
        saved = store.snapshot(store.open("", "one"))
        assert saved is not None
        assert (b'"A' in saved[2], saved[2].count(b'"A1."')) == (True, 1)
        body = saved[2].replace(b'"A1."', b'"B1."')
        connection = sqlite3.connect(tmp_path / "chat.db")
        with connection:
            connection.execute(
                "UPDATE snapshot SET hash = ?, body = ?", (bytes.fromhex(ids.body_hash(body)), pack(body))
            )
        connection.close()
        (one,) = verify_all(store)
        assert one.findings == (Finding("snapshot", "its edit 2 differs from the journal"),)


def test_changed_text_in_a_saved_view_is_found() -> None:
    store = MemoryStore()
    with foveate.open_conversation("one", store=store, window=32_000) as chat:
        chat.append([user("Where is it?"), assistant("In Oslo."), user("Thanks.")])
        chat._agent.save_snapshot()
        head = chat._agent.head
    saved = store.snapshot(head)
    assert saved is not None
    pieces = list(store.saved_view(head, *saved[:2]))
    assert (verify_view(store, head), b"Oslo" in pieces[1]) == ([], True)
    store.save_snapshot(head, *saved, [piece.replace(b"Oslo", b"Rome") for piece in pieces])
    (one,) = verify_all(store)
    assert one.findings == (Finding("saved view", "its message 2 differs from the stored one"),)


def test_view_of_another_version_is_left_alone(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("", "one")
        store.save_snapshot(head, 0, 0, b"[99, 0, 0, [], [], [], []]")
        assert verify_view(store, head) == []
