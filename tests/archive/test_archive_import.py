"""Checks of archives, and imports into stores with data."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from worlds import LONG, TENANT, build, contents, furnish

from foveate.core import ids, wire
from foveate.core.catalog import Prompt
from foveate.core.edits import Hide, Record, Target
from foveate.core.messages import user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.core.stamps import Stamp
from foveate.errors import BadSetting, BadTranscript, Damaged, MissingExtra, NoSuchConversation, StoreError
from foveate.ops.archive import Count, Imported, export_archive, import_archive, lines
from foveate.ops.archive.lines import Tally, decode, encode
from foveate.ports import Changes, Head, StoredMessage, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, erased, record_after

MADE = [(0, 0, 4), (3, 0, 2), (1, 0, 3), (2, 0, 0), (3, 1, 0), (4, 0, 5), (2, 1, 0), (3, 1, 1), (7, 1, 2)]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    build(store, MADE)
    return store


@pytest.fixture
def path(store: MemoryStore, tmp_path: Path) -> Path:
    export_archive(store, tmp_path / "all.jsonl", tenant=TENANT)
    return tmp_path / "all.jsonl"


def rewritten(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """Return the archive with changed lines, and with a last line that fits them."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()[:-1]]
    change(records)
    tally = Tally()
    raws = [json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for one in records]
    for raw in raws:
        try:
            tally.add(decode(raw), raw)
        except ValueError:
            tally.add(decode(b'{"is":"branch","branch":1}'), raw)
    path.write_bytes(b"".join([*raws, encode(tally.ending())]))
    return path


def first(records: list[dict[str, Any]], kind: str, nth: int = 0) -> int:
    return [index for index, one in enumerate(records) if one["is"] == kind][nth]


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("kind", "nth", "change", "problem"),
    [
        ("message", 2, {"message": {"role": "user", "parts": []}}, "the id of message 3 does not follow"),
        ("message", 2, {"id": "ab" * 20}, "the id of message 3 does not follow"),
        ("message", 2, {"seal": "ab" * 20}, "the stamp of message 3 does not match its seal"),
        ("message", 2, {"stamp": [7, 7, 7, "user"]}, "the stamp of message 3 does not match its seal"),
        ("message", 2, {"position": 4}, "message 3 is missing: the next is message 4"),
        ("message", 2, {"same": [1, 1], "message": None}, "Expected `object`, got `null`"),
        ("message", 2, {"message": json.loads("[" * 300 + "]" * 300)}, "Expected|deep|recursion"),
        ("message", 2, {"stamp": [2**70, 7, 7, "user"]}, "serialize ints"),
        ("message", 2, {"position": 2**70}, "no line of an archive|message 3 is missing"),
        ("message", 2, {"message": 7}, "Expected `object`|no line"),
        ("record", 0, {"id": "ab" * 20}, "the id of the record with edit 1 does not follow"),
        ("branch", 1, {"branch": 1}, "branch 1 comes after branch 1 of 2"),
        ("archive", 0, {"version": 2}, "has version 2; this foveate reads version 1. Upgrade"),
        ("archive", 0, {"format": "parquet"}, "it is a 'parquet', not a"),
        ("tree", 0, {"branches": []}, "a tree needs conversations"),
        ("step", 0, {"is": "stop"}, r"it is no line of an archive \(.*\)\. The file was damaged\.$"),
    ],
)
def test_line_that_was_changed_is_named(path: Path, kind: str, nth: int, change: dict[str, Any], problem: str) -> None:
    """Someone who changes a line can correct the hash of the file, but not the chains."""
    where = []

    def changing(records: list[dict[str, Any]]) -> None:
        where.append(first(records, kind, nth))
        records[where[0]].update(change)

    store = MemoryStore()
    with pytest.raises(BadTranscript, match=problem) as caught:
        import_archive(store, rewritten(path, changing))
    assert caught.value.line == where[0] + 1
    assert store.names(TENANT) == []


@pytest.mark.parametrize("kind", ["message", "record", "branch"])
def test_lines_that_are_dropped_doubled_or_exchanged_are_found(path: Path, kind: str) -> None:
    archive = path.read_bytes()

    def drop(records: list[dict[str, Any]]) -> None:
        del records[first(records, kind, 1)]

    def double(records: list[dict[str, Any]]) -> None:
        index = first(records, kind, 1)
        records.insert(index, records[index])

    def exchange(records: list[dict[str, Any]]) -> None:
        one, two = first(records, kind), first(records, kind, 1)
        records[one], records[two] = records[two], records[one]

    for change in (drop, double, exchange):
        path.write_bytes(archive)
        store = MemoryStore()
        with pytest.raises(BadTranscript):
            import_archive(store, rewritten(path, change))
        assert store.names(TENANT) == []


def test_changed_byte_is_found_wherever_it_is(path: Path) -> None:
    archive = path.read_bytes()
    for at in range(0, len(archive), len(archive) // 60):
        path.write_bytes(archive[:at] + bytes([archive[at] ^ 1]) + archive[at + 1 :])
        store = MemoryStore()
        with pytest.raises(BadTranscript):
            import_archive(store, path)
        assert store.names(TENANT) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b"{}\n", b'[{"role":"user"}]', b"SQLite format 3\0"])
def test_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(BadTranscript, match=r"x\.jsonl.* no archive of foveate"):
        import_archive(MemoryStore(), tmp_path / "x.jsonl")


def test_lines_after_the_end_are_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(BadTranscript, match="there are lines after the end"):
        import_archive(MemoryStore(), path)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"none\.jsonl cannot be read: No such file"):
        import_archive(MemoryStore(), tmp_path / "none.jsonl")


# --------------------------------------------------------------------------------------------- what is there already


def test_import_reports_its_result(store: MemoryStore, path: Path) -> None:
    other = MemoryStore()
    assert import_archive(other, path) == Imported(2, 2, 12, 3)
    assert import_archive(other, path) == Imported(2, 0, 0, 0)


def test_import_can_assign_another_tenant(store: MemoryStore, path: Path) -> None:
    import_archive(store, path, tenant="zeta")
    assert contents(store, "zeta") == contents(store, TENANT)


def test_conversation_that_grew_meanwhile_stays(store: MemoryStore, path: Path) -> None:
    head = store.open(TENANT, "begun")
    head = append(store, head, chain([user("later")], head))
    head = store.commit(head, *record_after(head))
    before = contents(store)
    assert import_archive(store, path).messages == 0
    assert contents(store) == before


def test_import_over_another_past_is_refused(path: Path) -> None:
    store = MemoryStore()
    head = store.open(TENANT, "begun")
    append(store, head, chain([user("something else")], head))
    before = contents(store)
    with pytest.raises(BadSetting, match="'begun' already, with another past: message 1 differs"):
        import_archive(store, path)
    assert contents(store) == before


def test_another_past_of_edits_is_refused(store: MemoryStore, path: Path, tmp_path: Path) -> None:
    other = MemoryStore()
    head = other.open(TENANT, "begun")
    here = store.open(TENANT, "begun")
    head = append(other, head, store.messages(here, 1, here.position))
    other.commit(head, *record_after(head, Hide(Target(head.tip), reason="for another reason")))
    with pytest.raises(BadSetting, match="edit 1 differs"):
        import_archive(other, path)


def test_fork_that_ends_before_it_forked_is_another_one(store: MemoryStore, path: Path) -> None:
    """Its missing messages are in the lines of another conversation, so it cannot be continued."""
    other = MemoryStore()
    head = other.open(TENANT, "fork 5")
    append(other, head, store.messages(store.open(TENANT, "begun"), 1, 2))
    before = contents(other)
    with pytest.raises(BadSetting, match=r"'fork 5' already, .* it ends before its fork point"):
        import_archive(other, path)
    assert contents(other) == before
    assert import_archive(other, path, on_conflict="rename").new == 2


def test_import_continues_an_existing_conversation(store: MemoryStore, path: Path) -> None:
    """The same past was appended again, and is not shared."""
    other = MemoryStore()
    for name in ("begun", "fork 5"):
        here, head = store.open(TENANT, name), other.open(TENANT, name)
        append(other, head, store.messages(here, 1, here.position - 1))
        if name == "fork 5":
            head = other.open(TENANT, name)
            branch = store.branches(here)[1]
            for id, record in store.records(here):
                if record.last <= branch.number:
                    head = other.commit(head, record, id)
    assert import_archive(other, path).new == 0
    there, here = contents(other), contents(store)
    assert {name: what[:3] for name, what in there.items()} == {name: what[:3] for name, what in here.items()}


def test_another_name_is_found_for_it_and_found_again(path: Path) -> None:
    store = MemoryStore()
    for name in ("begun", "begun~imported"):
        head = store.open(TENANT, name)
        append(store, head, chain([user(f"something else in {name}")], head))
    names = {"begun": "begun~imported2", "fork 5": "fork 5~imported2"}
    assert import_archive(store, path, on_conflict="rename") == Imported(2, 2, 12, 3, names)
    assert import_archive(store, path, on_conflict="rename") == Imported(2, 0, 0, 0, names)
    assert store.names(TENANT) == ["begun", "begun~imported", "begun~imported2", "fork 5~imported2"]


def test_erased_messages_stay_erased_on_import(tmp_path: Path) -> None:
    first, second = MemoryStore(), MemoryStore()
    head = first.open(TENANT, "one")
    rows = chain([user("a secret"), user("plain")], head)
    append(first, head, rows)
    head = second.open(TENANT, "one")
    append(second, head, [erased(rows[0]), rows[1]])
    export_archive(first, tmp_path / "a.jsonl", tenant=TENANT)
    import_archive(second, tmp_path / "a.jsonl")
    assert second.messages(second.open(TENANT, "one"), 1, 1) == [erased(rows[0])]


def test_run_that_went_on_there_is_not_set_back(tmp_path: Path) -> None:
    first, second = MemoryStore(), MemoryStore()
    for store, state in ((first, "running"), (second, "done")):
        head = store.open(TENANT, "one")
        store.put_run(head, AgentRun("r", "me", "one", state=state))
        store.put_step(head, AgentRunStep("r", 1, "action", state=state, output=state))
    first.put_step(first.open(TENANT, "one"), AgentRunStep("r", 2, "action"))
    for store, name in ((first, "first"), (second, "second")):
        export_archive(store, tmp_path / f"{name}.jsonl", tenant=TENANT)
    import_archive(second, tmp_path / "first.jsonl")
    import_archive(first, tmp_path / "second.jsonl")
    for store in (first, second):
        head = store.open(TENANT, "one")
        assert [run.state for run in store.runs(head)] == ["done"]
        assert [(step.number, step.state) for step in store.steps(head, "r")] == [(1, "done"), (2, "running")]


def test_catalog_comes_along_where_it_was_asked_for(tmp_path: Path) -> None:
    first, second, third = MemoryStore(), MemoryStore(), MemoryStore()
    furnish(first)
    export_archive(first, tmp_path / "a.jsonl", tenant=TENANT, catalog=True)
    import_archive(second, tmp_path / "a.jsonl")
    assert second.bindings(TENANT) == first.bindings(TENANT)
    third.put_prompt(TENANT, Prompt("short", "Another {{ text }}"))
    with pytest.raises(BadSetting, match="There is a prompt 'short' already, and it differs"):
        import_archive(third, tmp_path / "a.jsonl")
    assert third.actions(TENANT) == []
    export_archive(first, tmp_path / "b.jsonl", tenant=TENANT)
    import_archive(third, tmp_path / "b.jsonl")


# -------------------------------------------------------------------------------------------------- what is exported


def test_chains_from_before_there_were_outlines_come_along(tmp_path: Path) -> None:
    first, second = MemoryStore(), MemoryStore()
    head = first.open(TENANT, "one")
    stamp = Stamp(1, 2, 3, "user", metadata='{"ticket":7}')
    (row,) = chain([user("said")], head)
    head = append(first, head, [replace(row, stamp=stamp, seal=ids.seal("", row.id, wire.encode_stamp(stamp)))])
    record = Record(1, (Hide(Target(head.tip), reason="why"),), 1, 1, head.tip, 1)
    first.commit(head, record, ids.legacy_record_id("", wire.encode_record(record)))
    export_archive(first, tmp_path / "a.jsonl", tenant=TENANT)
    import_archive(second, tmp_path / "a.jsonl")
    assert contents(second) == contents(first)


def test_large_message_is_written_once(tmp_path: Path) -> None:
    store = MemoryStore()
    head = store.open(TENANT, "one")
    head = append(store, head, chain([user(LONG)] * 5, head))
    fork = store.fork(head, "two", 2, 0)
    append(store, fork, chain([user(LONG)] * 5, fork))
    assert export_archive(store, tmp_path / "a.jsonl", tenant=TENANT) == Count(14, 2, 10)
    assert (tmp_path / "a.jsonl").stat().st_size < 2 * len(LONG)


def test_export_is_one_moment_of_a_tree_that_others_write_to(tmp_path: Path) -> None:
    class Busy(MemoryStore):
        def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
            for branch in self.branches(head):
                now = append(self, branch.head, chain([user("meanwhile")], branch.head))
                now = self.commit(now, *record_after(now))
                if len(self.names(TENANT)) < 5:
                    self.fork(now, f"meanwhile {len(self.names(TENANT))}", now.position, now.number)
            return super().messages(head, first, last)

    busy, other = Busy(), MemoryStore()
    build(busy, MADE)
    before = {name: busy.open(TENANT, name) for name in busy.names(TENANT)}
    export_archive(busy, tmp_path / "a.jsonl", tenant=TENANT)
    import_archive(other, tmp_path / "a.jsonl")
    assert set(other.names(TENANT)) == set(before)
    for name, head in before.items():
        now = other.open(TENANT, name)
        assert (now.tip, now.record) == (head.tip, head.record)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_size(tmp_path: Path) -> None:
    """Exporting and importing thirty megabytes needs a few megabytes of memory."""
    with SqliteStore(tmp_path / "a.db", synchronous="normal", search=False) as store:
        head = store.open(TENANT, "one")
        for batch in range(30):
            head = append(store, head, chain([user(f"{batch} {n} " * 1250) for n in range(100)], head))
        tracemalloc.start()
        export_archive(store, tmp_path / "a.jsonl", tenant=TENANT)
        with SqliteStore(tmp_path / "b.db", synchronous="normal", search=False) as other:
            import_archive(other, tmp_path / "a.jsonl")
            assert other.open(TENANT, "one").tip == head.tip
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = (tmp_path / "a.jsonl").stat().st_size
    assert (size > 20_000_000, peak < 10_000_000) == (True, True), (size, peak)


@pytest.mark.slow
def test_ten_times_as_much_takes_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All messages are large and different, and there are edits."""
    monkeypatch.setattr("foveate.ops.archive.lines._LARGE_MAX", 500)
    peaks = []
    for count in (2_000, 20_000):
        path = tmp_path / f"{count}.jsonl"
        with SqliteStore(tmp_path / f"{count}.db", synchronous="normal", search=False) as store:
            head = store.open(TENANT, "one")
            for begin in range(0, count, 500):
                records = [user(f"{begin + n} " * 1000) for n in range(500)]
                head = append(store, head, chain(records, head))
                head = store.commit(head, *record_after(head))
            del records
            tracemalloc.start()
            export_archive(store, path, tenant=TENANT)
            with SqliteStore(tmp_path / f"{count} too.db", synchronous="normal", search=False) as other:
                import_archive(other, path)
                assert other.open(TENANT, "one").tip == head.tip
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0], peaks


def test_large_message_far_back_is_written_in_full_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.ops.archive.lines._LARGE_MAX", 3)
    store, other = MemoryStore(), MemoryStore()
    head = store.open(TENANT, "one")
    order = [0, 0, 1, 2, 0, 3, 4, 0, 4, 5, 6, 7, 0, 4]
    append(store, head, chain([user(f"{n} {LONG}") for n in order], head))
    export_archive(store, tmp_path / "a.jsonl", tenant=TENANT)
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()]
    assert [line.get("same") for line in lines if line["is"] == "message"] == [
        *(None, [1, 1], None, None, [1, 1], None, None, None, [1, 7], None, None, None, None, None)
    ]
    import_archive(other, tmp_path / "a.jsonl")
    assert contents(other) == contents(store)
    export_archive(other, tmp_path / "b.jsonl", tenant=TENANT)
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_half_an_import_is_not_exported(store: MemoryStore, tmp_path: Path) -> None:
    store.open(TENANT, "~importing 7-1")
    assert export_archive(store, tmp_path / "a.jsonl", tenant=TENANT).conversations == 2


def test_damage_stops_an_export_and_leaves_no_file(tmp_path: Path) -> None:
    import sqlite3

    with SqliteStore(tmp_path / "chat.db") as store:
        build(store, MADE)
        connection = sqlite3.connect(tmp_path / "chat.db")
        with connection:
            connection.execute("DELETE FROM message WHERE position = 3")
        connection.close()
        with pytest.raises(Damaged, match="Message 3"):
            export_archive(store, tmp_path / "a.jsonl", tenant=TENANT)
    assert [file.name for file in tmp_path.iterdir() if "jsonl" in file.name] == []


def test_missing_conversation_is_reported(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(NoSuchConversation):
        export_archive(store, tmp_path / "a.jsonl", tenant=TENANT, conversation="nobody")
    assert list(tmp_path.iterdir()) == []


def test_file_that_is_there_is_only_overwritten_on_purpose(store: MemoryStore, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(BadSetting, match="There is a file"):
        export_archive(store, path, tenant="nobody")
    assert path.read_bytes() == before
    export_archive(store, path, tenant="nobody", overwrite=True)
    assert path.read_bytes().count(b"\n") == 2


def test_file_may_be_read_by_whom_the_user_lets_read(store: MemoryStore, path: Path) -> None:
    plain = path.with_name("plain")
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    export_archive(store, path, overwrite=True)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["no/such/a.jsonl", "."])
def test_unwritable_place_is_reported(store: MemoryStore, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSetting):
        export_archive(store, tmp_path / name, tenant=TENANT)


# -------------------------------------------------------------------------------------------------------- compression


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_name_says_how_it_is_compressed(store: MemoryStore, path: Path, ending: str) -> None:
    packed = path.with_name(path.name + ending)
    try:
        export_archive(store, packed, tenant=TENANT)
    except MissingExtra as error:
        pytest.skip(str(error))
    assert packed.stat().st_size < path.stat().st_size / 4
    other = MemoryStore()
    import_archive(other, packed)
    assert contents(other) == contents(store)
    again = packed.read_bytes()
    export_archive(store, packed, tenant=TENANT, overwrite=True)
    assert packed.read_bytes() == again
    for damaged in (again[:-20], again[: len(again) // 2], again[:200] + b"\xff" * 20 + again[220:], b"plain\n"):
        packed.write_bytes(damaged)
        with pytest.raises(BadTranscript):
            import_archive(MemoryStore(), packed)


def test_packed_archive_is_the_plain_one_packed(store: MemoryStore, path: Path) -> None:
    packed = path.with_name("all.jsonl.gz")
    export_archive(store, packed, tenant=TENANT)
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()


def test_write_by_another_during_an_import_is_reported(store: MemoryStore, path: Path) -> None:
    class Meddled(MemoryStore):
        def extend(self, head: Head, make: Any, *, owner: str = "") -> Changes:
            changes = super().extend(head, make)
            if head.name.startswith("~importing ") and changes.head.position > 8:
                return super().extend(changes.head, lambda tail: chain([user("me too")], tail.head))
            return changes

    with pytest.raises(StoreError):
        import_archive(Meddled(), path)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl"])
def test_line_that_is_too_long_is_refused_without_reading_it_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 11: a compressed file of 256 kB took 2 GB of memory."""
    limit = "_UNPACKED_MAX" if name.endswith(".gz") else "_LINE_MAX"
    monkeypatch.setattr(lines, limit, 4 << 20)
    with gzip.open(tmp_path / name, "wb") if name.endswith(".gz") else open(tmp_path / name, "wb") as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    with pytest.raises(BadTranscript, match="line 1: the line is longer than 4 MiB") as refused:
        import_archive(MemoryStore(), tmp_path / name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert ("unpack it" in str(refused.value)) == name.endswith(".gz")


def test_line_of_several_pieces_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PIECE", 64)
    first, second = MemoryStore(), MemoryStore()
    build(first, [(2, 0, 0), (3, 1, 5), (7, 2, 3)])
    export_archive(first, tmp_path / "a.jsonl.gz", tenant=TENANT)
    import_archive(second, tmp_path / "a.jsonl.gz")
    assert contents(second) == contents(first)
