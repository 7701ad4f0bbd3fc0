"""State machine: the PostgreSQL store and the memory store are equal after any sequence of calls and searches."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from postgres_schemas import emptied
from test_store_machine import Machine

from foveate.stores.postgres import PostgresStore


def check(url: str, examples: int) -> None:
    PostgresStore(url).close()

    class PostgresMachine(Machine):
        def opened(self) -> PostgresStore:  # type: ignore[override]
            return PostgresStore(url)

        def teardown(self) -> None:
            super().teardown()
            emptied(url)

    run_state_machine_as_test(
        PostgresMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_postgres_does_as_memory_does(postgres_url: str) -> None:
    check(postgres_url, 5)


@pytest.mark.slow
def test_postgres_does_as_memory_does_over_and_over(postgres_url: str) -> None:
    check(postgres_url, 50)


@pytest.mark.slow
def test_postgres_does_so_on_tables_in_partitions_too(postgres_url: str) -> None:
    check(f"{postgres_url}&partitions=3", 10)
