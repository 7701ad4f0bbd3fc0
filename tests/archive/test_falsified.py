"""Falsifications of a database, and their detection: by `verify`, only by an earlier head, or not at all.

Each is done as well as possible by someone who may write to the file and knows its format. docs/guides/export.md has
the same table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from foveate import Text
from foveate.core import ids, wire
from foveate.core.catalog import Action, Prompt
from foveate.core.edits import Hide
from foveate.core.messages import user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.core.snapshots import Facts, SlotState, Snapshot
from foveate.core.stamps import Lease
from foveate.edits import Replace, Target
from foveate.ops.archive import head_text, heads_in, verify_all, verify_head
from foveate.ports import Head, append
from foveate.stores.codec import pack
from foveate.stores.lineage import root_of
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after

Falsify = Callable[[sqlite3.Connection], object]


def run(*statements: str) -> Falsify:
    def falsify(connection: sqlite3.Connection) -> None:
        for statement in statements:
            assert connection.execute(statement.format(**ROOTS)).rowcount != 0

    return falsify


ROOTS = {"one": root_of("acme", "one"), "other": root_of("acme", "other"), "theirs": root_of("zeta", "one")}


def restamped(**changes: Any) -> Falsify:
    """Return the stamp of the third message, which was sealed with other facts."""

    def falsify(connection: sqlite3.Connection) -> None:
        where = f"WHERE root = {ROOTS['one']} AND branch = 1 AND position = 3"
        ((stamp,),) = connection.execute(f"SELECT stamp FROM message {where}").fetchall()
        changed = wire.encode_stamp(replace(wire.decode_stamp(stamp), **changes))
        connection.execute(f"UPDATE message SET stamp = ? {where}", (changed,))

    return falsify


def viewed(edit: Any, number: int = 2) -> Falsify:
    """Return the saved view with this edit in place of one in the journal, and with a correct hash."""

    def falsify(connection: sqlite3.Connection) -> None:
        snapshot = Snapshot(3, 10, 4, [(1, 10)], [SlotState(2, [(number, edit)])], [], Facts())
        body = snapshot.encode()
        row = bytes.fromhex(ids.body_hash(body)), pack(body)
        assert connection.execute("UPDATE snapshot SET hash = ?, body = ?", row).rowcount > 0

    return falsify


def exchanged(table: str, one: str, other: str, column: str = "root") -> list[str]:
    """Exchange the trees of rows."""
    return [
        f"UPDATE {table} SET {column} = -1 WHERE {column} = {one}",
        f"UPDATE {table} SET {column} = {one} WHERE {column} = {other}",
        f"UPDATE {table} SET {column} = {other} WHERE {column} = -1",
    ]


ROWS_EXCHANGED = [statement for table in ("message", "record") for statement in exchanged(table, "{one}", "{other}")]
AT = "root = {one} AND branch = 1 AND position"
SECOND = "FROM message m WHERE m.position = 2 AND m.branch = 1 AND m.root = {one}"
REPLAYED = f"UPDATE message SET (body, body_hash) = (SELECT m.body, m.body_hash {SECOND}) WHERE {AT} = 5"

BY_VERIFY: dict[str, Falsify] = {
    "a message changed": run("UPDATE message SET body = x'00' || 'x' WHERE position = 4"),
    "a message replayed in the place of another": run(REPLAYED),
    "a message dropped": run("DELETE FROM message WHERE position = 4 AND root = {one}"),
    "a lease made longer": restamped(lease=Lease(99)),
    "an application's facts changed": restamped(metadata='{{"paid":true}}'),
    "a moment changed": restamped(time=7),
    "a step named that was not": restamped(step="r/2"),
    "an edit dropped": run("DELETE FROM record WHERE first = 2 AND root = {one}"),
    "a saved view with another text": viewed(Replace(Target("ab" * 20), (Text("never said"),))),
    "a saved view with an edit more": viewed(Hide(Target("ab" * 20)), 5),
    "messages and edits exchanged with another conversation's": run(*ROWS_EXCHANGED),
    "messages given to another tenant": run("UPDATE message SET tenant = 'zeta' WHERE root = {other}"),
    "a conversation given to another tenant": run(
        *(f"UPDATE {table} SET tenant = 'zeta' WHERE root = {{other}}" for table in ("branch", "tree", "message")),
    ),
    "a fork's messages in the place of the first's": run(
        "DELETE FROM message WHERE root = {one} AND branch = 1 AND position > 6",
        "UPDATE message SET branch = 1 WHERE root = {one} AND branch = 2 AND position > 6",
    ),
    "a fork that left elsewhere": run("UPDATE branch SET lineage = '[[1,5,0]]' WHERE name = 'fork'"),
    "the end of a branch cut off, and its fork left": run(
        "UPDATE branch SET position = 5, (tip, seal) = (SELECT m.id, m.seal FROM message m WHERE m.root = {one} AND "
        "m.branch = 1 AND m.position = 5) WHERE root = {one} AND branch = 1",
        "DELETE FROM message WHERE root = {one} AND branch = 1 AND position > 5",
        "DELETE FROM snapshot",
    ),
    "a trigger planted": run("CREATE TRIGGER hook AFTER INSERT ON message BEGIN SELECT 1; END"),
    "a name dropped": run("DELETE FROM conversation WHERE name = 'other'"),
    "a name led to another conversation": run("UPDATE conversation SET home = {other} WHERE name = 'one'"),
    "a conversation dropped, but for its name": run("DELETE FROM branch WHERE root = {other}"),
    "the record of an erasure dropped": run("DELETE FROM erasure WHERE number = 2"),
    "the number of an erasure changed": run("UPDATE erasure SET number = 3 WHERE number = 2"),
    "a run dropped": run("DELETE FROM run"),
}
BY_A_HEAD: dict[str, Falsify] = {
    "the end cut off": run(
        "UPDATE branch SET position = 7, (tip, seal) = (SELECT m.id, m.seal FROM message m WHERE m.root = {one} AND "
        "m.branch = 1 AND m.position = 7) WHERE root = {one} AND branch = 1",
        "DELETE FROM message WHERE root = {one} AND branch = 1 AND position > 7",
        "DELETE FROM snapshot",
    ),
    "the newest edits cut off": run(
        "UPDATE branch SET number = 2, record = (SELECT id FROM record r WHERE r.root = {one} AND r.first = 2) "
        "WHERE root = {one} AND branch = 1",
        "DELETE FROM record WHERE root = {one} AND first > 2",
        "DELETE FROM snapshot",
    ),
    "two conversations exchanged, names and all": run(
        "UPDATE conversation SET home = {other} WHERE name = 'one' AND tenant = 'acme'",
        "UPDATE conversation SET home = {one} WHERE name = 'other'",
        "UPDATE branch SET name = '-' WHERE name = 'one' AND root = {one}",
        "UPDATE branch SET name = 'one' WHERE name = 'other'",
        "UPDATE branch SET name = 'other' WHERE name = '-'",
    ),
    "conversations of two tenants exchanged": run(
        *(
            f"UPDATE {table} SET tenant = CASE tenant WHEN 'acme' THEN 'zeta' ELSE 'acme' END "
            "WHERE root IN ({other}, {theirs})"
            for table in ("branch", "tree", "message", "record")
        ),
        "UPDATE branch SET name = CASE name WHEN 'other' THEN 'one' ELSE 'other' END WHERE root IN ({other}, {theirs})",
        *exchanged("conversation", "{other}", "{theirs}", "home"),
    ),
    "a conversation dropped whole": run(
        *(f"DELETE FROM {table} WHERE root = {{theirs}}" for table in ("message", "branch", "tree")),
        "DELETE FROM conversation WHERE tenant = 'zeta'",
    ),
    "who erased something": run("UPDATE erasure SET who = 'nobody' WHERE number = 1"),
}
BY_NOTHING: dict[str, Falsify] = {
    "the names of two forks of one tree exchanged": run(
        "UPDATE branch SET name = '-' WHERE name = 'one' AND root = {one}",
        "UPDATE branch SET name = 'one' WHERE name = 'fork'",
        "UPDATE branch SET name = 'fork' WHERE name = '-'",
        "UPDATE conversation SET branch = 3 - branch WHERE home = {one}",
    ),
    "a message emptied as an erasure does it": run(
        f"UPDATE message SET body_hash = (SELECT hash FROM hashes), body = x'' WHERE {AT} = 9"
    ),
    "which messages a saved view shows": run(
        "UPDATE snapshot SET body = (SELECT body FROM views), hash = (SELECT hash FROM views)"
    ),
    "what a tool is said to have answered": run("UPDATE step SET output = (SELECT task FROM run)"),
    "what an agent was asked": run("UPDATE run SET task = (SELECT output FROM step)"),
    "a prompt of the catalog": run("UPDATE prompt SET text = 'Lie. {{{{ text }}}}'"),
}


def filled(path: Path) -> list[Head]:
    """Create two conversations and a fork for acme, one for zeta, and rows of all other tables."""
    with SqliteStore(path, synchronous="normal") as store:
        heads = []
        for tenant, name in (("acme", "one"), ("acme", "other"), ("zeta", "one")):
            head = store.open(tenant, name)
            head = append(store, head, chain([user(f"{name} of {tenant}, {n}") for n in range(10)], head))
            for number in range(4 if tenant == "acme" else 0):
                head = store.commit(head, *record_after(head, Hide(Target(head.tip), reason=f"{name} {number}")))
            heads.append(head)
        one = heads[0]
        fork = store.fork(one, "fork", 6, 2)
        append(store, fork, chain([user(f"otherwise, {n}") for n in range(4)], fork))
        store.put_run(one, AgentRun("r", "me", "one", task="look it up"))
        store.put_step(one, AgentRunStep("r", 1, "action", output="it is blue"))
        store.put_prompt("acme", Prompt("short", "{{ text }}"))
        store.put_action("acme", Action("look", "Looks."))
        for position in (1, 2):
            store.erase(store.open("acme", "one"), [(position, position)], who="ann", time=position)
        one = store.open("acme", "one")
        store.save_snapshot(one, 10, 4, Snapshot(3, 10, 4, [(1, 10)], [], [], Facts()).encode())
        return [one, *heads[1:]]


def falsified(path: Path, falsify: Falsify) -> None:
    connection = sqlite3.connect(path)
    with connection:
        body = Snapshot(3, 10, 4, [(1, 1)], [], [], Facts()).encode()
        connection.execute("CREATE TEMP TABLE hashes (hash)")
        connection.execute("CREATE TEMP TABLE views (hash, body)")
        digest = ids.body_hash(wire.encode_message(user("one of acme, 8")))
        connection.execute("INSERT INTO hashes VALUES (?)", (bytes.fromhex(digest),))
        connection.execute("INSERT INTO views VALUES (?, ?)", (bytes.fromhex(ids.body_hash(body)), pack(body)))
        falsify(connection)
    connection.close()


def findings(path: Path, kept: str) -> tuple[list[str], list[str]]:
    """Return the findings of verify alone, and those of the heads."""
    with SqliteStore(path, synchronous="normal") as store:
        alone = [f"{one.name}: {finding.problem}" for one in verify_all(store) for finding in one.findings]
        return alone, [finding.problem for head in heads_in(kept) for finding in verify_head(store, head)]


@pytest.mark.slow
@pytest.mark.parametrize("what", [*BY_VERIFY, *BY_A_HEAD, *BY_NOTHING])
def test_falsification_is_found_as_the_table_says(tmp_path: Path, what: str) -> None:
    path = tmp_path / "chat.db"
    heads = filled(path)
    with SqliteStore(path, synchronous="normal") as store:
        kept = "\n".join(head_text(head, erasures=store.erasures(head)) for head in heads)
    assert findings(path, kept) == ([], [])
    falsified(path, {**BY_VERIFY, **BY_A_HEAD, **BY_NOTHING}[what])
    alone, by_head = findings(path, kept)
    assert (bool(alone), bool(by_head)) == {
        what in BY_VERIFY: (True, bool(by_head)),
        what in BY_A_HEAD: (False, True),
        what in BY_NOTHING: (False, False),
    }[True], (alone, by_head)
