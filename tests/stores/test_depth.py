"""Hidden history is not read: a resume, a turn and an edit need the same queries at any length.

The tests count statements, returned rows and bytes, and on PostgreSQL pages. The same forty messages follow eight
summaries, or ten times as many; both are more than a conversation keeps in memory, whose limits are low here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foveate import Conversation, Text, open_conversation, open_store
from foveate.core import snapshots
from foveate.core.messages import Message, ToolCall, assistant, tool_result, user
from foveate.edits import Replace, Span, Summarize, Target
from foveate.stores.sql import SqlStore
from foveate.stores.sql import statements as sql
from foveate.stores.sql.driver import Row, Session

SHOWN = 40
MOVES = 8
"""Of the summary behind which all else lies, in the shorter history. The longer one has ten times as many."""
GROWS = 1.1
"""How much more bytes there may be: the longer history has longer numbers in its snapshot."""


class Asked(NamedTuple):
    """The queries of a database."""

    statements: int
    rows: int
    bytes: int


class Counting:
    """A session that counts its queries."""

    def __init__(self, session: Session, said: list[list[Row]]) -> None:
        self._session, self._said = session, said

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.ask((statement, values))[0]

    def ask(self, *asked: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        answers = self._session.ask(*asked)
        self._said += answers
        return answers

    def change(self, *asked: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        changed, answers = self._session.change(*asked)
        self._said += [*answers, []]
        return changed, answers

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        self._said += [[] for _ in many]
        self._session.each(statement, many)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def counted(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], Asked]:
    """Return a function that runs an action and returns the queries of the store's database."""
    said: list[list[Row]] = []
    for name in ("read", "write"):
        run = getattr(store._driver, name)
        monkeypatch.setattr(store._driver, name, lambda work, run=run: run(lambda one: work(Counting(one, said))))

    def count(work: Callable[[], object]) -> Asked:
        said.clear()
        work()
        size = sum(len(value) for rows in said for row in rows for value in row if isinstance(value, bytes | str))
        return Asked(len(said), sum(map(len, said)), size)

    return count


def exchange(n: int) -> list[Message]:
    """Return four messages of the usual length."""
    id, told = f"c{n:05}", f"{n:05} " + "what a tool found out, word for word. " * 6
    return [user(f"{n:05} go on"), assistant("", ToolCall(id, "look", "{}")), tool_result(id, told), assistant("ok")]


def opened(store: SqlStore, name: str) -> Conversation:
    return open_conversation(name, store=store, policy="none", window=1_000_000)


def resume(store: SqlStore, name: str) -> None:
    with opened(store, name) as chat:
        assert len(chat.view) == SHOWN + 1  # The summary.


def turn(chat: Conversation) -> None:
    begin, answer, result_message, _ = exchange(99_999)
    chat.append(begin)
    chat.record(answer)
    chat.append(result_message)
    chat.prepare()


def lead(chat: Conversation, moves: int) -> None:
    """Return a history whose summary moved on this often, followed by a result that was shortened each time."""
    ids: list[str] = []
    for n in range(moves + SHOWN // 4):
        ids += chat.append(exchange(n))
        if len(ids) > SHOWN:
            shortened = Replace(Target(ids[-2], (0,)), (Text("[cleared]"),))
            chat.edit(Summarize(Span(ids[0], ids[-SHOWN - 1]), "A summary of the past."), shortened)
    chat._agent.save_snapshot()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/depth.db?search=off"
    else:
        url = str(request.getfixturevalue("postgres_url")) + "&search=off"
    with open_store(url) as store:  # type: ignore[attr-defined]
        yield store


def test_history_that_is_ten_times_as_long_asks_no_more_of_its_database(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "KEPT_MAX", MOVES // 4)
    names = {"near": MOVES, "far": 10 * MOVES}
    for name, moves in names.items():
        with opened(store, name) as chat:
            lead(chat, moves)
    count = counted(store, monkeypatch)
    asked: dict[str, dict[str, Asked]] = {}
    for name in names:
        asked[name] = {"resume": count(partial(resume, store, name))}
        with opened(store, name) as chat:
            rows = chat.history(len(chat) - SHOWN + 1, len(chat))
            old = next(row for row in rows if row.message.role == "tool")
            shorter = Replace(Target(old.id, (0,)), (Text("[gone]"),))
            asked[name]["turn"] = count(partial(turn, chat))
            asked[name]["edit"] = count(partial(chat.edit, shorter))
            asked[name]["refresh"] = count(chat.refresh)
    assert {name: {what: one[:2] for what, one in done.items()} for name, done in asked.items()} == {
        name: {what: one[:2] for what, one in asked["near"].items()} for name in names
    }
    for what, far in asked["far"].items():
        assert far.bytes <= GROWS * asked["near"][what].bytes, (what, asked)


def test_history_that_is_ten_times_as_long_has_no_more_pages_looked_at(postgres_url: str) -> None:
    from foveate.stores.postgres import PostgresStore

    pages: dict[str, dict[str, int]] = {}
    with PostgresStore(postgres_url + "&search=off") as store:
        for name, moves in (("near", MOVES // 2), ("far", 5 * MOVES)):
            with opened(store, name) as chat:
                lead(chat, moves)
                head = chat._agent.head
            branch = head.tenant, head.root, head.branch
            first = head.position - SHOWN
            wanted = {
                "link": (sql.LINK, (*branch, first, first)),
                "messages": (sql.MESSAGES, (*branch[:2], *branch, first + 1, head.position)),
                "records": (sql.RECORDS, (*branch, head.number - 1, head.number)),
            }

            def looked_at(session: Session, wanted: dict[str, Any] = wanted) -> dict[str, int]:
                session.rows("SET LOCAL enable_seqscan = off")  # Which is right for tables as small as these.
                return {what: pages_of(session, *one) for what, one in wanted.items()}

            pages[name] = store._driver.write(looked_at)
    for what, far in pages["far"].items():  # An index may be one page deeper, and rows lie on a page more.
        assert far <= pages["near"][what] + 4, pages


def pages_of(session: Session, statement: str, values: tuple[Any, ...]) -> int:
    """Return the number of pages that PostgreSQL reads for a statement."""
    asking = f"/* RETURNING */ EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"  # It gives back rows.
    session.rows(asking, values)  # The first time a connection asks, pages of the server's own catalog are counted too.
    ((told,),) = session.rows(asking, values)
    plan = (json.loads(told) if isinstance(told, str | bytes) else told)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
