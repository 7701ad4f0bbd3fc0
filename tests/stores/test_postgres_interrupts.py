"""Ctrl-C, and time limits that raise in the middle of a call, while the program waits for PostgreSQL."""

from __future__ import annotations

import select
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
import psycopg_pool.pool

from foveate import assistant, open_conversation
from foveate.stores.postgres import PostgresStore

pytestmark = pytest.mark.slow

_READ, _WRITE = 1, 2
"""psycopg's events: the socket may be read, or written."""


class TimeLimit(Exception):
    """Raised by a signal handler, like the soft time limit of a task queue."""


class KilledGreenlet(BaseException):
    """Raised by a scheduler of greenlets, like that of gevent."""


class Interruption:
    """Waits for the server as psycopg does; the n-th wait ends with an error, outside or inside of psycopg's steps."""

    def __init__(self, is_inside: bool) -> None:
        self.left, self.error = 0, BaseException()
        self._is_inside = is_inside

    def wait(self, generator: Any, socket: int, *_: Any, **__: Any) -> Any:
        try:
            wanted = next(generator)
            while True:
                self.left -= 1
                if self.left == 0:
                    if self._is_inside:
                        generator.throw(self.error)
                    raise self.error
                readable = [socket] if wanted & _READ else []
                ready = select.select(readable, [socket] if wanted & _WRITE else [], [], 60)
                wanted = generator.send((_READ if ready[0] else 0) | (_WRITE if ready[1] else 0))
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        TimeLimit,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (KeyboardInterrupt, SystemExit, KilledGreenlet)),
    ],
)
def test_interrupt_while_waiting_is_raised_as_it_is(
    error: type[BaseException], is_inside: bool, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg replaced it with an error of its own, and a write that was being committed counted as not written."""
    interruption = Interruption(is_inside)
    monkeypatch.setattr(psycopg.waiting, "wait", interruption.wait)
    with PostgresStore(postgres_url + "&pool=2") as store:
        chat = open_conversation("trip", store=store, window=32_000)
        for n in range(1, 1_000):
            interruption.left, interruption.error = n, error()
            try:
                chat.append(f"question {n}")
                chat.prompt()
                chat.record(assistant(f"answer {n}"))
            except BaseException as raised:
                assert raised is interruption.error  # noqa: PT017 - what is raised differs.
            if interruption.left > 0:
                break
            chat.append(f"after {n}")
            with open_conversation("trip", store=store, window=32_000) as reopened:
                texts = [row.message.text for row in reopened.history()]
                assert texts == [row.message.text for row in chat.history()]
                assert len(set(texts)) == len(texts)
                assert reopened.journal.verify() == []
    assert n > 10


def test_interrupt_while_waiting_for_a_connection_takes_none_away(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool gave the next connection to the thread that was interrupted, and had none left."""

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with PostgresStore(postgres_url + "&pool=1&wait=5") as store:
        for _ in range(3):
            store._driver._connections.give_up()  # So that the next one waits for a new connection.
            with monkeypatch.context() as patch:
                patch.setattr(psycopg_pool.pool.WaitingClient, "wait", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    store.names("acme")
            assert store.names("acme") == []
