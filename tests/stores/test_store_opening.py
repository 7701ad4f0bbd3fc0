"""Unusable files and their errors, and migrations."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from pathlib import Path

import pytest
from make_golden import BOUND, LONG, OUTPUT
from msgspec import structs

from foveate import open_store
from foveate.core import wire
from foveate.core.catalog import Action
from foveate.core.messages import user
from foveate.core.runs import AgentRun
from foveate.errors import BadSetting, Damaged, StoreError
from foveate.ports import append
from foveate.stores import Place, place_of
from foveate.stores.sql import migrate
from foveate.stores.sql.migrate import Migration, bring_up_to_date, migrations
from foveate.stores.sqlite import SqliteDriver, SqliteStore
from foveate.stores.sqlite.file import SqliteFile
from foveate.testing.rows import chain

SCHEMAS = {
    "0001_conversations": "6f7194a313a5065d5cbd03b65f862eb1998193ac",
    "0002_words": "788e1ae906a47619bf5f3c3ef5bc19dfae2dcba5",
    "0003_runs": "f41cbf3e82cec50e40648ae3a502748105e568a7",
    "0004_catalog": "3650048cf53d74862a604d6d731fc80e51fe7422",
    "0005_erasures": "e97961a1a676efeb5b818f1d3d56c403d3ecf802",
    "0006_words_by_tree": "3a7fd06735af55ca620ce87efae3f55ac2af6c08",
    "0007_claims": "f3627129f1a41a153cc155450367af6484c7c55a",
    "0008_prompt_models": "2de95ae9797e8882fdbc296079903f37ec5fb092",
    "0009_last_activity": "acfd8331cedf6460f29b50b6a16d0b98ee2a20c5",
    "0010_word_runs": "d6ecabdbacd81b33211e934bc5d5eda317dcf3a1",
    "0011_saved_views": "b6dc15c03a4412991dbd7b9d2456d1c4212100cb",
}
"""Every migration and its checksum."""
IN_POSTGRES = {**SCHEMAS, "0006_words_by_tree": "455eea618b3b9d305c66891ebd8e66f4c8a0d866"}
"""The same where PostgreSQL has more to do."""
NEXT = len(SCHEMAS) + 1
NEXT_NAME = f"{NEXT:04}_more"


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"There is no folder .*nowhere.*Create it"):
        SqliteStore(tmp_path / "nowhere" / "chat.db")
    assert not (tmp_path / "nowhere").exists()


def test_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        SqliteStore(tmp_path)


def test_memory_is_not_a_file() -> None:
    with pytest.raises(StoreError, match="MemoryStore"):
        SqliteStore(":memory:")


def test_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk\n" * 100)
    with pytest.raises(StoreError, match="not a SQLite database"):
        SqliteStore(path)
    assert path.read_text() == "remember the milk\n" * 100


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write anywhere")
def test_folder_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        SqliteStore(folder / "chat.db")


def test_locked_file_is_waited_for_and_then_said_to_be_locked(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path, wait=0.05) as store:
        head = store.open("acme", "one")
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked: another process .* more than 0.05 s"):
            append(store, head, chain([user("hi")], head))
        assert store.messages(head, 1, 9) == []  # Reading goes on meanwhile.
        other.execute("ROLLBACK")
        assert append(store, head, chain([user("hi")], head)).position == 1
        other.close()
    with SqliteStore(path, wait=10) as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.05, lambda: other.execute("ROLLBACK")).start()
        head = store.open("acme", "one")
        assert append(store, head, chain([user("ho")], head)).position == 2
        other.close()


def test_file_deleted_under_a_running_store_takes_no_more_writes(tmp_path: Path) -> None:
    """SQLite continues to write to a deleted file and acknowledges everything."""
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
        path.unlink()
        for use in (lambda: append(store, head, chain([user("hi")], head)), lambda: store.names("acme")):
            with pytest.raises(StoreError, match="was deleted or replaced"):
                use()
        assert not path.exists()
        with pytest.raises(Damaged, match=r"is empty or gone, and its log .* to start a new file, move the log away"):
            SqliteStore(path)
        path.with_name("chat.db-wal").rename(tmp_path / "kept")
        SqliteStore(path).close()
        with pytest.raises(StoreError, match="was deleted or replaced"):
            store.names("acme")


def test_path_may_have_any_letters(tmp_path: Path) -> None:
    path = tmp_path / "a b%20c?d#é.db"
    with SqliteStore(str(path)) as store:
        assert store.names("acme") == []
    assert path.exists()


def test_settings_that_are_not_allowed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r'"full" or "normal"'):
        SqliteStore(tmp_path / "chat.db", synchronous="off")  # type: ignore[arg-type]
    assert not (tmp_path / "chat.db").exists()


@pytest.mark.parametrize(("synchronous", "level"), [("full", 2), ("normal", 1)])
def test_writes_are_as_durable_as_was_asked_for(tmp_path: Path, synchronous: str, level: int) -> None:
    with SqliteStore(tmp_path / "chat.db", synchronous=synchronous) as store:  # type: ignore[arg-type]
        settings = store._driver.write(
            lambda session: [session.rows(f"PRAGMA {name}")[0][0] for name in ("synchronous", "journal_mode")]
        )
    assert settings == [level, "wal"]


@pytest.mark.parametrize(("end", "level"), [("", 1), ("?wait=5", 1), ("?synchronous=full", 2)])
def test_url_of_a_store_decides_about_waiting_for_the_disk(tmp_path: Path, end: str, level: int) -> None:
    with open_store(f"sqlite:///{tmp_path}/chat.db{end}", synchronous="normal") as store:
        assert isinstance(store, SqliteStore)
        assert store._driver.write(lambda session: session.rows("PRAGMA synchronous")) == [(level,)]


@pytest.mark.parametrize(
    ("end", "path", "options"),
    [
        ("", "chat.db", (True, "full", 10.0)),
        ("?synchronous=normal", "chat.db", (True, "normal", 10.0)),
        ("?wait=0.5&search=off", "chat.db", (False, "full", 0.5)),
        ("?search=on&synchronous=full&wait=60", "chat.db", (True, "full", 60.0)),
        ("?today&wait=1", "chat.db?today&wait=1", (True, "full", 10.0)),
        ("?wait=1?search=off", "chat.db?wait=1", (False, "full", 10.0)),
    ],
)
def test_url_may_say_how_a_file_is_written(end: str, path: str, options: tuple[bool, str, float]) -> None:
    assert place_of(f"sqlite:///chat.db{end}") == Place("sqlite", path, *options)  # type: ignore[arg-type]


def test_store_is_opened_as_its_url_says(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'chat.db'}?synchronous=normal&wait=0.05") as store:
        (level,) = store._driver.write(lambda session: session.rows("PRAGMA synchronous"))[0]
        assert (level, store._driver._file.wait) == (1, 0.05)
    assert [file.name for file in tmp_path.iterdir()] == ["chat.db"]


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("?synchronous=off", "synchronous= in the URL of a store is full or normal, not 'off'"),
        ("?wait=soon", "wait= in the URL of a store is a number of seconds, not 'soon'"),
        ("?wait=-1", "wait= in the URL of a store is a number of seconds, not '-1'"),
        ("?wait=1&search=", "search= in the URL of a store is on or off, not ''"),
        ("?mode=ro", "mode= in the URL of a SQLite file is no option; there are search, read_only,"),
        ("?wait=1&mode=ro", "mode= in the URL of a SQLite file is no option"),
        ("?mode=ro&wait=1", "mode= in the URL of a SQLite file is no option"),
    ],
)
def test_unknown_url_option_for_a_file_is_refused(end: str, says: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(says)):
        place_of(f"sqlite:///chat.db{end}")


def test_driver_reads_without_being_able_to_write(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store, pytest.raises(StoreError, match="readonly"):
        store._driver.read(lambda session: session.rows("DELETE FROM tree"))


# -------------------------------------------------------------------------------------------------------- migrations


def driver(path: Path) -> SqliteDriver:
    return SqliteDriver(SqliteFile(path, synchronous="normal", wait=1, connection=sqlite3.Connection))


def another(*statements: str) -> Migration:
    """Return a migration after the newest one."""
    return Migration(NEXT, NEXT_NAME, statements, "ab")


def test_migrations_are_numbered_without_a_gap_and_do_not_change() -> None:
    """A published migration is never edited: databases that ran it would differ from those that run it now."""
    results = migrations()
    assert [migration.version for migration in results] == list(range(1, len(results) + 1))
    assert {migration.name: migration.checksum for migration in results} == SCHEMAS
    assert {migration.name: migration.checksum for migration in migrations("postgres")} == IN_POSTGRES


def test_migration_is_run_once_and_recorded(tmp_path: Path) -> None:
    opened = driver(tmp_path / "chat.db")
    more = [*migrations(), another("CREATE TABLE extra (a BIGINT)")]
    for _ in range(2):
        bring_up_to_date(opened, lambda: 77, more)
    assert opened.read(lambda session: session.rows("SELECT version, name, applied FROM migration")) == [
        *((number, name, 77) for number, name in enumerate(SCHEMAS, 1)),
        (NEXT, NEXT_NAME, 77),
    ]
    opened.close()


def test_older_database_is_brought_up_to_date_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
    opened = driver(path)
    bring_up_to_date(opened, lambda: 1, [*migrations(), another("ALTER TABLE branch ADD COLUMN note TEXT")])
    assert opened.read(lambda session: session.rows("SELECT name, note FROM branch")) == [("one", None)]
    opened.close()
    assert head.position == 0


@pytest.mark.parametrize("schema", range(1, NEXT))
def test_database_that_an_older_foveate_made_is_opened_and_goes_on(tmp_path: Path, schema: int) -> None:
    """Each file is a dump by the version of that schema (`make_golden.py`): two conversations, the second a fork of
    the first; a run with a step, and a catalog if that version had one.
    """
    path = tmp_path / "chat.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "golden" / f"schema_{schema}.sql").read_text("utf-8"))
    connection.close()
    with SqliteStore(path) as store:
        one, two = store.open("acme", "one", create=False), store.open("acme", "two", create=False)
        assert (store.verify(one), store.verify(two)) == ([], [])
        assert [wire.decode_message(row.body).text for row in store.messages(one, 1, 9)] == ["rain?", "No, wind.", LONG]
        assert wire.decode_message(store.messages(two, 3, 3)[0].body).text == "and here?"
        assert [record.first for _, record in store.records(one)] == [1]
        assert store.snapshot(one) == (2, 0, b"a view")
        assert [results.position for results in store.search(one, "wind")] == [2]
        assert [run.id for run in store.runs(two)] == (["r1"] if schema >= 3 else [])
        assert [step.output for step in store.steps(two, "r1")] == ([OUTPUT] if schema >= 3 else [])
        assert store.bindings("acme") == ([BOUND] if schema >= 4 else [])
        store.put_run(one, AgentRun("r2", "me", "one"))
        store.put_action("acme", Action("look"))
        one = append(store, one, chain([user("more")], one))
        assert store.verify(one) == []


def test_migration_that_fails_leaves_nothing(tmp_path: Path) -> None:
    opened = driver(tmp_path / "chat.db")
    broken = another("CREATE TABLE extra (a BIGINT)", "CREATE TABLE extra (a BIGINT)")
    with pytest.raises(StoreError, match="already exists"):
        bring_up_to_date(opened, lambda: 1, [*migrations(), broken])
    assert opened.read(lambda session: ("extra" in session.tables(), len(session.rows("SELECT * FROM migration")))) == (
        False,
        NEXT - 1,
    )
    opened.close()


def test_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    opened = driver(path)
    bring_up_to_date(opened, lambda: 1, [*migrations(), another("CREATE TABLE extra (a BIGINT)")])
    opened.close()
    with pytest.raises(
        StoreError, match=rf"newer foveate: its schema is {NEXT} \({NEXT_NAME}\), .* up to {NEXT - 1}. Upgrade"
    ):
        SqliteStore(path)


def test_store_that_was_open_before_an_upgrade_names_it_as_a_cause(tmp_path: Path) -> None:
    """The advice was to restore a backup, which would have lost all messages since."""
    path = tmp_path / "chat.db"
    opened = driver(path)
    with SqliteStore(path) as store:
        later = another("ALTER TABLE branch RENAME COLUMN time TO last_active")
        bring_up_to_date(opened, lambda: 1, [*migrations(), later])
        says = r"lacks a table or a column .* time\)\. If a newer foveate has upgraded it, restart this program"
        for work in (lambda: store.open("acme", "talk"), lambda: store.recent("acme")):
            with pytest.raises(Damaged, match=says):
                work()
    opened.close()


def test_database_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    SqliteStore(path).close()
    opened = driver(path)
    with pytest.raises(StoreError, match="another version of migration '0001_conversations'"):
        bring_up_to_date(opened, lambda: 1, [structs.replace(migrations()[0], checksum="00")])
    opened.close()


def test_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mail.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE message (subject TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"database of something else \(tables: message\)"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_comment_or_a_line_ending_is_no_other_schema() -> None:
    text = "-- why\nCREATE TABLE a (b TEXT);\nCREATE INDEX c ON a (b);\n"
    plain = migrate._read("0001_a.sql", text)
    assert plain.statements == ("CREATE TABLE a (b TEXT)", "CREATE INDEX c ON a (b)")
    same = "CREATE TABLE a\r\n(b TEXT);\r\n  -- because\r\nCREATE INDEX c ON a (b);"
    assert migrate._read("0001_a.sql", same).checksum == plain.checksum
    assert migrate._read("0001_a.sql", text.replace("TEXT", "BLOB")).checksum != plain.checksum


def test_concurrent_opening_creates_a_new_file_once(tmp_path: Path) -> None:
    path, start, results = tmp_path / "chat.db", threading.Barrier(6), []

    def work() -> None:
        start.wait()
        with SqliteStore(path) as store:
            results.append(store.open("acme", "one"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert len(set(results)) == 1
