"""`foveate db`: export, import, backup, head, verify, current and upgrade."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from pathlib import Path

import pytest

from foveate.cli.app import main
from foveate.cli.db import transfer
from foveate.core.catalog import Prompt
from foveate.core.messages import user
from foveate.core.runs import AgentRun
from foveate.errors import ConflictError
from foveate.ops.archive import files
from foveate.ports import append
from foveate.replay.numbers import count
from foveate.stores.sql.migrate import migrations
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after

NEWEST = migrations()[-1]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Create a database with a conversation of three messages, a fork of it, and one of another tenant."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    with SqliteStore("chat.db") as store:
        head = store.open("", "one")
        head = append(store, head, chain([user("a"), user("b"), user("c")], head))
        head = store.commit(head, *record_after(head))
        store.fork(head, "two", 2, 0)
        store.open("zeta", "theirs")
        store.put_prompt("", Prompt("short", "{{ text }}"))
    return tmp_path


def falsify(statement: str) -> None:
    connection = sqlite3.connect("chat.db")
    with connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


def test_export_and_import_move_conversations(db, here):
    assert db("export", "all.jsonl.gz", "--catalog") == "all.jsonl.gz: 2 conversations, 3 messages.\n"
    new = ("--store", "sqlite:///new.db")
    assert db("import", "all.jsonl.gz", *new) == "2 new conversations, 3 messages written.\n"
    again = "0 new conversations, 0 messages written. 2 conversations existed already.\n"
    assert db("import", "all.jsonl.gz", *new) == again
    assert db("export", "again.jsonl.gz", "--catalog", *new) == "again.jsonl.gz: 2 conversations, 3 messages.\n"
    assert Path("again.jsonl.gz").read_bytes() == Path("all.jsonl.gz").read_bytes()
    with SqliteStore("new.db") as store:
        assert (store.names(""), [prompt.name for prompt in store.prompts("")]) == (["one", "two"], ["short"])


@pytest.mark.parametrize("command", [("export", "all.jsonl"), ("backup", "copy.db")], ids=" ".join)
def test_sigterm_leaves_no_temporary_file(here, command, monkeypatch):
    name = {"export": "export_archive", "backup": "back_up"}[command[0]]
    write = getattr(transfer, name)

    def stopped(*arguments, **options):
        monkeypatch.setattr(files, "_sync", lambda path: signal.raise_signal(signal.SIGTERM))
        return write(*arguments, **options)

    monkeypatch.setattr(transfer, name, stopped)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        main(["db", *command])
    assert (ended.value.code, signal.getsignal(signal.SIGTERM)) == (143, before)
    assert [path.name for path in here.iterdir() if not path.name.startswith("chat.db")] == []


def test_export_writes_to_standard_output(db):
    lines = [json.loads(line) for line in db("export", "-", "two").splitlines()]
    kinds = ["archive", "tree", "branch", "message", "message", "message", "record", "branch", "end"]
    assert [line["is"] for line in lines] == kinds


def test_import_keeps_the_tenant_or_takes_the_named_one(db, here):
    db("export", "theirs.jsonl", "--tenant", "zeta")
    db("import", "theirs.jsonl", "--store", "sqlite:///new.db")
    db("import", "theirs.jsonl", "--store", "sqlite:///new.db", "--tenant", "mine")
    with SqliteStore("new.db") as store:
        assert [store.names(tenant) for tenant in ("zeta", "mine", "")] == [["theirs"], ["theirs"], []]


def test_import_refuses_or_renames_a_conflict(db, refused, here):
    db("export", "one.jsonl", "one")
    with SqliteStore("new.db") as store:
        head = store.open("", "one")
        append(store, head, chain([user("z")], head))
    new = ("--store", "sqlite:///new.db")
    assert refused("import", "one.jsonl", *new) == (
        "There is a conversation 'one' already, with another past: message 1 differs. Nothing was "
        "imported. Import it under another name (--on-conflict rename), or into another store."
    )
    assert db("import", "one.jsonl", "--on-conflict", "rename", *new) == (
        "2 new conversations, 3 messages written.\none is imported as one~imported.\ntwo is imported as two~imported.\n"
    )


def test_refused_import_leaves_no_new_database(refused, here):
    Path("x.jsonl").write_text("hello\n")
    assert refused("import", "x.jsonl", "--store", "sqlite:///new.db").startswith("x.jsonl, line 1: it is no line")
    assert refused("import", "none.jsonl", "--store", "sqlite:///new.db").startswith("none.jsonl cannot be read")
    assert not Path("new.db").exists()


def test_export_refuses_wrong_arguments(refused, here):
    assert refused("export", "a.jsonl", "nobody") == "There is no conversation 'nobody' in chat.db."
    Path("a.jsonl").write_text("precious")
    assert refused("export", "a.jsonl").startswith("There is a file a.jsonl already.")
    assert refused("export", "a.jsonl", "--store", "sqlite:///none.db") == "There is no database none.db."


def test_backup_is_a_database(db, refused, here):
    assert db("backup", "copy.db") == f"copy.db: {count(Path('copy.db').stat().st_size)} bytes.\n"
    assert refused("backup", "copy.db") == (
        "There is a file copy.db already. Name another one, or overwrite it: --overwrite, or overwrite=True."
    )
    assert db("verify", "--store", "sqlite:///copy.db") == "3 conversations of 2 tenants verified: all is well.\n"
    assert "pg_dump" in refused("backup", "copy.db", "--store", "postgresql://ann@db.example/chats")


def test_verify_of_a_sound_database_succeeds(db):
    assert db("verify") == "3 conversations of 2 tenants verified: all is well.\n"
    assert db("verify", "two", "--json") == ""
    assert db("verify", "--tenant", "zeta") == "1 conversation verified: all is well.\n"
    assert db("verify", "--tenant", "") == "2 conversations verified: all is well.\n"


def test_tenant_of_the_settings_limits_verify_and_head(db, monkeypatch):
    monkeypatch.setenv("FOVEATE_TENANT", "zeta")
    assert db("verify") == "1 conversation verified: all is well.\n"
    assert [json.loads(line)["name"] for line in db("head").splitlines()] == ["theirs"]


def test_words_of_all_conversations_are_indexed(db, here):
    lines = db("index")
    assert re.fullmatch(r"[1-9][0-9]* messages indexed\. The word index is up to date\.\n", lines)
    assert db("index") == "0 messages indexed. The word index is up to date.\n"


def test_tenants_are_listed(db, refused):
    assert db("tenants") == "tenant  conversations\n(none)              2\nzeta                1\n\n"
    assert db("tenants", "--json").splitlines() == [
        '{"tenant":"","conversations":2}',
        '{"tenant":"zeta","conversations":1}',
    ]
    assert refused("tenants", "--store", "sqlite:///none.db") == "There is no database none.db."
    SqliteStore("new.db").close()
    assert db("tenants", "--store", "sqlite:///new.db") == "There are no conversations.\n"
    assert db("verify", "--store", "sqlite:///new.db") == "0 conversations verified: all is well.\n"


def test_conversations_are_listed(db, refused):
    assert re.sub(" {2,}", "  ", db("list")) == (
        "tenant  conversation  newest message (UTC)  messages  edits\n"
        "(none)  one  2026-09-21 14:13  3  1\n"
        "(none)  two  2026-09-21 14:13  2  0\n"
        "zeta  theirs  -  0  0\n\n"
    )
    assert db("list", "--tenant", "zeta").splitlines()[1].split() == ["zeta", "theirs", "-", "0", "0"]
    first, *_, last = [json.loads(line) for line in db("list", "--json").splitlines()]
    assert (first["tenant"], first["name"], first["messages"], first["edits"]) == ("", "one", 3, 1)
    assert last == {"tenant": "zeta", "name": "theirs", "messages": 0, "edits": 0, "time": 0}
    assert refused("list", "--store", "none.db") == "There is no database none.db."
    Path("empty.db").touch()
    assert refused("list", "--store", "empty.db") == "empty.db is an empty file, and no database."
    assert Path("empty.db").read_bytes() == b""
    SqliteStore("new.db").close()
    assert db("list", "--store", "new.db") == "There are no conversations.\n"


def test_name_with_line_feeds_stays_on_its_line(db):
    with SqliteStore("odd.db") as store:
        head = store.open("a\ntenant", name := "line\nfeed\ttab")
        head = append(store, head, chain([user("a")], head))
        store.put_run(head, AgentRun("r1", "me", name, "task"))
    odd = ("--store", "odd.db")
    _, row, end = db("list", *odd).splitlines()
    assert (row.split()[:2], end) == (["a␊tenant", "line␊feed␉tab"], "")
    assert db("tenants", *odd).splitlines()[1:] == ["a␊tenant              1", ""]
    shown = db("run", "show", name, "r1", "--tenant", "a\ntenant", *odd)
    assert shown.splitlines()[0] == "run r1  me in line␊feed␉tab"
    with sqlite3.connect("odd.db") as connection:
        connection.execute("UPDATE message SET seal = x'00'")
    connection.close()
    assert db("verify", *odd, code=1).startswith("a␊tenant/line␊feed␉tab: ")


@pytest.mark.parametrize(
    "command",
    [
        ("verify",),
        ("head",),
        ("list",),
        ("tenants",),
        ("current",),
        ("export", "-"),
        ("unfinished",),
        ("run", "list", "one"),
        ("action", "list"),
        ("binding", "list"),
        ("prompt", "list"),
        ("prompt", "show", "short"),
    ],
    ids=" ".join,
)
def test_reading_commands_need_no_permission_to_write(db, here, command, monkeypatch):
    before = Path("chat.db").read_bytes()
    access = os.access
    monkeypatch.setattr("foveate.stores.os.access", lambda path, mode: mode != os.W_OK and access(path, mode))
    monkeypatch.setattr("foveate.stores.sqlite.file.SqliteFile.create", None)  # Opens a file for writing.
    db(*command)
    assert Path("chat.db").read_bytes() == before


def test_verify_reports_rows_without_a_conversation(db, here):
    falsify("DELETE FROM conversation WHERE name = 'theirs'")
    falsify("INSERT INTO record VALUES ('zeta', 5, 1, 1, 'id', 'body')")
    assert db("verify", code=1) == (
        "zeta/theirs: name: no row leads from the name 'theirs' to this conversation\n"
        "zeta/(no conversation): branch 1 of tree 5: there is no such branch, and a record of edits lies on it\n"
        "3 conversations of 2 tenants verified: something is wrong with 1 and 1 thing belongs to no conversation.\n"
    )
    lines = [json.loads(line) for line in db("verify", "--tenant", "zeta", "--json", code=1).splitlines()]
    assert [(line["tenant"], line["conversation"], line["where"]) for line in lines] == [
        ("zeta", "theirs", "name"),
        ("zeta", "", "branch 1 of tree 5"),
    ]
    assert db("verify", "--tenant", "") == "2 conversations verified: all is well.\n"


def test_verify_of_an_unknown_tenant_is_refused(refused):
    output = "This tenant has no conversations. foveate db tenants lists the tenants."
    assert refused("verify", "--tenant", "zetta") == output
    assert refused("verify", "--tenant", "zetta", "--json") == output


@pytest.mark.parametrize("command", [("verify",), ("head",), ("export", "a.jsonl"), ("run", "list", "one")])
def test_tenant_that_cannot_be_stored_is_refused(refused, here, command):
    """`verify` once took the option's value for a name in the database, and called it damaged."""
    output = refused(*command, "--tenant", "\udcff")
    assert output == "The tenant '\\udcff' holds a NUL or half of a surrogate pair. Choose another one."
    assert not (here / "a.jsonl").exists()


def test_export_does_not_overwrite_a_database(db, refused):
    output = refused("export", "chat.db", "--overwrite")
    assert output == "chat.db is a database, and must not be replaced by another kind of file. Name another file."
    assert db("verify") == "3 conversations of 2 tenants verified: all is well.\n"


@pytest.mark.parametrize("command", [("backup",), ("export",)])
def test_backup_and_export_refuse_a_folder(refused, command):
    for name in ("", "."):
        assert refused(*command, name) == ". is a folder; name a file in it."


def test_unfinished_imports_are_listed_and_deleted(db, here):
    assert db("unfinished") == "There are no unfinished imports.\n"
    with SqliteStore("chat.db") as store:
        head = store.open("zeta", "~importing ab-1")
        append(store, head, chain([user("a")], head))
    output = "zeta/~importing ab-1: 1 conversation, 1 message\n"
    assert db("unfinished") == output
    assert db("unfinished", "--tenant", "") == "There are no unfinished imports.\n"
    assert json.loads(db("unfinished", "--json")) == {"tenant": "zeta", "names": ["~importing ab-1"], "messages": 1}
    assert db("unfinished", "--drop") == output + "Deleted. Now run: foveate db vacuum\n"
    assert db("unfinished", "--drop") == "There are no unfinished imports.\n"
    assert db("verify") == "3 conversations of 2 tenants verified: all is well.\n"


def test_verify_reports_a_changed_row_and_returns_1(db, here):
    falsify("DELETE FROM message WHERE position = 2")
    assert db("verify", code=1) == (
        "one: message 2: it is missing\ntwo: message 2: it is missing\n"
        "3 conversations of 2 tenants verified: something is wrong with 2.\n"
    )
    lines = db("verify", "two", "--json", code=1).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"tenant": "", "conversation": "two", "where": "message 2", "problem": "it is missing"}
    ]


def test_verify_continues_after_a_broken_name(db, here):
    falsify("DELETE FROM branch WHERE name = 'one'")
    out = db("verify", code=1)
    assert "(no conversation): name 'one': it leads to branch 1 of tree" in out
    assert out.endswith("2 conversations of 2 tenants verified: 4 things belong to no conversation.\n")


def test_stored_heads_prove_the_history(db, refused, here):
    heads = db("head")
    assert [json.loads(line)["name"] for line in heads.splitlines()] == ["one", "two", "theirs"]
    one = db("head", "one").rstrip("\n")
    output = json.loads(one)
    assert (output["position"], output["number"], output["time"] > 1_700_000_000_000) == (3, 1, True)
    Path("heads.jsonl").write_text(heads)
    assert db("verify", "--head", "heads.jsonl") == "3 conversations of 2 tenants and 3 heads verified: all is well.\n"
    with SqliteStore("chat.db") as store:
        head = store.open("", "one")
        append(store, head, chain([user("d")], head))
    assert db("verify", "--head", one) == (
        "one: 1 message added since the head was taken.\n"
        "3 conversations of 2 tenants and 1 head verified: all is well.\n"
    )
    assert db("verify", "one", "--head", one) == (
        "one: 1 message added since the head was taken.\n1 conversation and 1 head verified: all is well.\n"
    )
    falsify(
        "UPDATE branch SET position = 2, tip = (SELECT id FROM message WHERE position = 2), "
        "seal = (SELECT seal FROM message WHERE position = 2) WHERE name = 'one'"
    )
    falsify("DELETE FROM message WHERE position > 2")
    assert db("verify", "one") == "1 conversation verified: all is well.\n"
    assert db("verify", "--head", one, code=1) == (
        "one: head: the head given knows 3 messages and 1 edits; there are 2 and 1\n"
        "3 conversations of 2 tenants and 1 head verified: something is wrong with 1.\n"
    )


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("INSERT INTO conversation SELECT tenant, root + 1, 'twice', home, branch FROM conversation LIMIT 1", "twice"),
        ("INSERT INTO record SELECT tenant, root + 1, branch, first, id, body FROM record", "a record of edits lies"),
        ("CREATE VIEW history AS SELECT * FROM message", "view history: it is attached to history"),
        ("CREATE TRIGGER hook AFTER INSERT ON message BEGIN SELECT 1; END", "trigger hook: it is attached to message"),
    ],
)
def test_verify_with_heads_finds_the_same_damage(db, here, damage, expected):
    """Fault 2: with --head only the chains of the named conversations were verified."""
    Path("heads.jsonl").write_text(db("head"))
    connection = sqlite3.connect("chat.db")
    with connection:
        connection.execute(damage)
    connection.close()
    alone, with_heads = db("verify", code=1), db("verify", "--head", "heads.jsonl", code=1)
    assert expected in alone
    assert with_heads.splitlines()[:-1] == alone.splitlines()[:-1]


@pytest.mark.parametrize("command", [("verify",), ("head",), ("export", "a.jsonl")])
def test_url_as_a_name_is_refused_without_its_password(refused, command):
    output = "{0} is not a conversation. Name a database with --store {0}"
    assert refused(*command, "sqlite:///chat.db") == output.format("sqlite:///chat.db")
    found = refused(*command, "postgresql://ann:secret@db.example/chats")
    assert found == output.format("postgresql://ann:***@db.example/chats")


def test_stopped_import_keeps_its_rows(db, run, here, monkeypatch):
    """The new database stays too, although the command created it and failed."""
    with SqliteStore("chat.db") as store:
        head = store.open("", "zz")
        append(store, head, chain([user("z")], head))
    db("export", "all.jsonl")
    monkeypatch.setattr(SqliteStore, "rename", stopping(SqliteStore.rename, at=2))
    code, out, err = run("db", "import", "all.jsonl", "--store", "sqlite:///new.db")
    assert (code, out, err) == (130, "", "Stopped.\n")
    assert db("tenants", "--store", "sqlite:///new.db") == "tenant  conversations\n(none)              3\n\n"
    monkeypatch.undo()
    monkeypatch.chdir(here)
    again = db("import", "all.jsonl", "--store", "sqlite:///new.db")
    assert again == "1 new conversation, 0 messages written. 2 conversations existed already.\n"


@pytest.mark.parametrize("error", [ConflictError])
def test_two_imports_of_one_file_are_explained(db, run, monkeypatch, error):
    """The message once named a temporary conversation: "Another writer changed the view ... Plan again."."""

    def beaten(*given, **named):
        raise error("Another writer was first. Plan again.")

    db("export", "all.jsonl")
    monkeypatch.setattr(SqliteStore, "rename", beaten)
    code, out, err = run("db", "import", "all.jsonl", "--store", "sqlite:///new.db")
    assert (code, out) == (2, "")
    assert err.startswith("foveate: Another process imports the same file, or wrote to the conversations being")


def stopping(method, at):
    """Return the method with Ctrl-C at one of its calls."""
    calls = []

    def stopped(*given):
        calls.append(given)
        if len(calls) == at:
            raise KeyboardInterrupt
        return method(*given)

    return stopped


def test_wrong_heads_are_refused(refused, here):
    assert refused("verify", "--head", "chat.db").startswith("chat.db is not text in UTF-8")
    assert refused("verify", "--head", "{}").startswith("Line 1 is no head")
    assert refused("head", "nobody") == "There is no conversation 'nobody' in chat.db."
    assert refused("verify", "nobody") == "There is no conversation 'nobody' in chat.db."


def test_schema_is_printed_and_upgraded(db, refused, here):
    golden = Path(__file__).resolve().parent.parent / "stores" / "golden" / "schema_1.sql"
    connection = sqlite3.connect("old.db")
    connection.executescript(golden.read_text("utf-8"))
    connection.close()
    old = ("--store", "sqlite:///old.db")
    missing = [migration.name for migration in migrations()[1:]]
    first = "sqlite:///old.db has schema 1 (0001_conversations).\n"
    assert db("current", *old) == first + "".join(f"Needed upgrade: {name}\n" for name in missing)
    assert db("current", *old).startswith(first)
    newest = f"sqlite:///old.db has schema {NEWEST.version} ({NEWEST.name}).\n"
    assert db("upgrade", *old) == newest + "".join(f"Upgraded: {name}\n" for name in missing)
    assert db("upgrade", *old) == db("current", *old) == newest + "The schema is up to date.\n"
    assert refused("current", "--store", "sqlite:///none.db") == "There is no database none.db."


def test_postgres_without_a_schema_is_upgraded(db, postgres_url):
    at = ("--store", postgres_url)
    assert "has no schema yet.\nNeeded upgrade: 0001_conversations\n" in db("current", *at)
    assert f"has schema {NEWEST.version} ({NEWEST.name}).\nUpgraded: 0001" in db("upgrade", *at)
    assert db("current", *at).endswith("The schema is up to date.\n")


def test_database_of_a_newer_foveate_is_refused(refused, here):
    falsify("INSERT INTO migration VALUES (99, '0099_later', 'ab', 0)")
    assert "Upgrade foveate." in refused("current")
