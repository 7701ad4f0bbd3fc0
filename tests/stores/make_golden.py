"""Writes `golden/schema_N.sql`: a small database of this version, which later versions must open.

Run it once when a migration is added, before the release, and never again for the same schema:

    PYTHONPATH=src python make_golden.py
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from foveate.core.catalog import Action, Binding, Prompt
from foveate.core.messages import assistant, user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.ports import Database, append
from foveate.stores.sql.migrate import migrations
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after

LONG = "long: " + " ".join(str(k * k % 7919) for k in range(2000))
OUTPUT = "it is there " * 400
BOUND = Binding("me", "look", 3, "compact", "summary", 80, "short")


def fill(store: Database) -> None:
    """Write rows of every kind, except the word index, which depends on the database."""
    head = store.open("acme", "one")
    head = append(store, head, chain([user("rain?"), assistant("No, wind."), user(LONG)], head))
    head = store.commit(head, *record_after(head))
    fork = store.fork(head, "two", 2, 0)
    append(store, fork, chain([user("and here?")], fork))
    store.save_snapshot(head, 2, 0, b"a view")
    store.put_run(head, AgentRun("r1", "me", "one", "the task", state="done", result="done", turns=1, begun=1, ended=2))
    step = AgentRunStep("r1", 1, "action", "look", "call_1", "{}", OUTPUT, state="done", turn=1, begun=1, ended=2)
    store.put_step(head, step)
    store.put_prompt("acme", Prompt("short", "{{ text }}"))
    store.put_action("acme", Action("look", "Looks.", "{}", "short"))
    store.put_binding("acme", BOUND)


def main() -> None:
    target = Path(__file__).parent / "golden" / f"schema_{len(migrations())}.sql"
    if target.exists():
        raise SystemExit(f"{target} exists already: a released schema is never changed.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.db"
        with SqliteStore(path, search=False, clock=lambda: 1_790_000_000_000) as store:
            fill(store)
        connection = sqlite3.connect(path)
        target.write_text("\n".join(connection.iterdump()) + "\n", "utf-8")
        connection.close()


if __name__ == "__main__":
    main()
