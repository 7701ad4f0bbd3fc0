"""Whole turns of conversations and agents, and a driver that records their statements.

Each statement is recorded with its values and its transaction, so that a test can run it again with EXPLAIN, or look
for anything that a database on several servers would refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from foveate import ChatAgent, ReActAgent, open_conversation, tool
from foveate.core.messages import assistant, user
from foveate.edits import Span, Summarize
from foveate.open import grouped
from foveate.policies import compact_on_overflow
from foveate.ports import append
from foveate.stores.sql import SqlStore
from foveate.stores.sql.driver import Driver, Row, Session
from foveate.testing import ScriptedModel, call
from foveate.testing.rows import chain
from foveate.testing.store_contract import talk

__all__ = ["Asked", "Recording", "other_work", "turns"]

T = TypeVar("T")


class Asked(NamedTuple):
    """One statement with its values, and the number of its transaction."""

    transaction: int
    statement: str
    values: tuple[Any, ...]


class Recording:
    """A driver that records its statements and passes them on."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._numbers, self._lock = driver, count(1), Lock()
        self.asked: list[Asked] = []
        self.dialect, self.place, self.has_index = driver.dialect, driver.place, driver.has_index

    def read(self, work: Callable[[Session], T]) -> T:
        return self._driver.read(self._heard(work))

    def write(self, work: Callable[[Session], T]) -> T:
        return self._driver.write(self._heard(work))

    def vacuum(self) -> None:
        self._driver.vacuum()

    def close(self) -> None:
        self._driver.close()

    @contextmanager
    def hearing(self) -> Iterator[list[Asked]]:
        """Yield the list of statements that are run meanwhile."""
        self.asked = []
        yield self.asked

    def _heard(self, work: Callable[[Session], T]) -> Callable[[Session], T]:
        with self._lock:
            number = next(self._numbers)
        return lambda session: work(_Listening(session, lambda *asked: self.asked.append(Asked(number, *asked))))


class _Listening:
    def __init__(self, session: Session, tell: Callable[[str, tuple[Any, ...]], None]) -> None:
        self._session, self._tell = session, tell

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        self._tell(statement, tuple(values))
        return self._session.rows(statement, values)

    def ask(self, *asked: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        for statement, values in asked:
            self._tell(statement, tuple(values))
        return self._session.ask(*asked)

    def change(self, *asked: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        for statement, values in asked:
            self._tell(statement, tuple(values))
        return self._session.change(*asked)

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        for values in many:
            self._tell(statement, tuple(values))
        self._session.each(statement, many)

    def scrub(self) -> None:
        self._session.scrub()

    def tables(self) -> set[str]:
        return self._session.tables()

    def define(self, statement: str) -> None:
        self._session.define(statement)


def turns(store: SqlStore) -> None:
    """Typical turns: append, plan, compact in the background, search, expand, resume; and agents."""
    talking(store)
    agents(store)


def talking(store: SqlStore) -> None:
    options: dict[str, Any] = {"store": store, "tenant": "acme", "window": 3_000, "expand": True}
    with open_conversation(
        "talk", policy=compact_on_overflow(ahead=0.5), summarizer=short, **grouped({"background": True, **options})
    ) as chat:
        for message in talk(24):
            chat.append(message) if message.role != "assistant" else chat.record(message)
            chat.prepare()
        chat.record(assistant("long " + " ".join(str(n * n) for n in range(3_000))))  # Which lies in a row of its own.
        chat.append("I see.")
        chat.prepare()
        first = chat.history(1, 1)[0]
        chat.undo(chat.pin(first.handle))
        chat.search("weather question")
        chat.search('"question 3"')
        chat.expand("m6")
        chat.expand("m3", pattern="weather")
        chat.history(2, 9)
        chat.journal.receipts()
        chat.prepare()
    with open_conversation("talk", policy="keep-last-5", **grouped(options)) as chat:
        chat.append("And now?")
        chat.edit(Summarize(Span(chat.history(2, 2)[0].id, chat.history(4, 4)[0].id), "Much was said."))
        chat.refresh()
        chat.prepare()
        chat.journal.verify()


def agents(store: SqlStore) -> None:
    @tool
    def look(word: str) -> str:
        """Search for a word."""
        return f"{word}: found"

    script = [call("c1", "look", word="tram"), "On page 3.", call("c2", "look", word="bus"), "Nowhere."]
    with ChatAgent(
        ScriptedModel(script), tools=[look], store=store, conversation="agent", tenant="acme", window=50_000
    ) as agent:
        agent.send("Where is the tram?")
        agent.send("And the bus?")
        agent.conversation.journal.runs()
        agent.conversation.context()
        agent.conversation.totals()
    with ReActAgent(
        ScriptedModel([call("c1", "look", word="tram"), "Done."]),
        tools=[look],
        store=store,
        conversation="task",
        tenant="acme",
        window=50_000,
    ) as worker:
        worker.run("Find the tram.")


def other_work(store: SqlStore) -> dict[str, Callable[[], object]]:
    """Rare operations by name, each on one of the conversations of `turns`."""
    head = store.open("acme", "talk")

    def forking() -> None:
        fork = store.fork(head, "talk, again", 9, 0)
        fork = append(store, fork, chain([user("here?")], fork))
        store.search(fork, "here")

    def compact_detached() -> None:
        store.save_snapshot(head, 4, 0, b"a view")
        store.steps(store.open("acme", "agent"), store.runs(store.open("acme", "agent"))[0].id)

    return {
        "beside": compact_detached,
        "fork": forking,
        "branches": lambda: store.branches(head),
        "repoint": lambda: store.repoint(store.open("acme", "task"), 1, 0, "task, before"),
        "rename": lambda: store.rename("acme", {"talk, again": "talk, anew"}),
        "erase": lambda: store.erase(store.open("acme", "talk"), [(2, 3)], runs=True, who="ann", reason="asked to"),
        "erasures": lambda: (store.erasures(head), store.find_residue(store.open("acme", "talk"))),
    }


def short(request: Any) -> str:
    return "In short. " + ", ".join(request.required)
