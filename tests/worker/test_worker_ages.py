"""Retention as a job: its output, its effect, and its schedule. No database."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")
pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import msgspec
from procrastinate.testing import InMemoryConnector

from foveate import Options, open_conversation
from foveate.core.edits import Span, Summarize
from foveate.core.retention import Age, read_ages
from foveate.errors import BadSetting, NoSuchConversation
from foveate.ops.worker import Backoff, RetentionJob, Worker, enqueue
from foveate.ops.worker.jobs import TASKS, CompactionJob, OpenSettings, run_job, task_of
from foveate.ops.worker.worker import make_app
from foveate.stores.memory import MemoryStore

URL = "postgresql://nobody@127.0.0.1:1/nothing"


def stored() -> MemoryStore:
    """Two conversations of acme and one without a tenant, each with four of six messages summarized."""
    store = MemoryStore()
    ticks = iter(range(1, 10**9))
    for tenant, name in (("acme", "one"), ("acme", "two"), ("", "ours")):
        chat = open_conversation(
            name, store=store, format="openai", policy="off", options=Options(tenant=tenant, clock=lambda: next(ticks))
        )
        for n in range(6):
            chat.append(f"number {n}")
        rows = chat.history(1, 4)
        chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "Four of them."))
    return store


def erased(store: MemoryStore) -> dict[str, int]:
    """Return the number of messages of each conversation without content."""
    heads = [store.open(tenant, name) for tenant, name in (("acme", "one"), ("acme", "two"), ("", "ours"))]
    return {head.name: store.find_residue(head)[0] for head in heads}


def worked(store: MemoryStore, wanted: RetentionJob, *ages: Age) -> str:
    return run_job(store, wanted, OpenSettings("digest"), is_last=True, ages=ages)


def test_job_names_rules_and_conversations_and_nothing_else() -> None:
    rules = {"tool results:grep": "90 days and 200 turns, even pinned", "media": "2 weeks"}
    wanted = RetentionJob("one", "acme", tuple(map(str, read_ages(rules))), "ann")
    assert msgspec.to_builtins(wanted) == {
        "conversation": "one",
        "tenant": "acme",
        "ages": ("tool results:grep = 200 turns and 90 days, even pinned", "media = 2 weeks"),
        "who": "ann",
    }
    assert (task_of(wanted), TASKS["foveate.age"]) == ("foveate.age", RetentionJob)
    assert msgspec.convert({"timestamp": 7}, RetentionJob) == RetentionJob()  # A periodic job has a timestamp.


def test_retention_job_shares_the_lock_of_its_conversation() -> None:
    one = RetentionJob("one", "acme", ("all = 9 days",))
    assert one.lock == CompactionJob("one", "acme").lock
    assert len({RetentionJob().lock, RetentionJob(None, "").lock, RetentionJob(None, "acme").lock, one.lock}) == 4
    assert one.waiting_lock != RetentionJob("one", "acme", ("all = 8 days",)).waiting_lock


def test_retention_job_covers_conversation_tenant_and_database() -> None:
    rule = ("all = 1 day",)
    store = stored()
    assert worked(store, RetentionJob("one", "acme", rule)) == "4 messages erased, 1 conversation looked through"
    assert erased(store) == {"one": 4, "two": 0, "ours": 0}
    assert worked(store, RetentionJob(None, "acme", rule)) == "4 messages erased, 2 conversations looked through"
    assert erased(store) == {"one": 4, "two": 4, "ours": 0}
    assert worked(store, RetentionJob(), Age("all", None, 1)) == "4 messages erased, 3 conversations looked through"
    assert erased(store) == {"one": 4, "two": 4, "ours": 4}
    with pytest.raises(NoSuchConversation):
        worked(store, RetentionJob("nobody", "acme", rule))


def test_job_without_rules_uses_those_of_its_worker_or_fails() -> None:
    store = stored()
    with pytest.raises(BadSetting, match="this worker has none"):
        worked(store, RetentionJob("ours"))
    assert (
        worked(store, RetentionJob("ours"), Age("all", None, 1)) == "4 messages erased, 1 conversation looked through"
    )


def test_retention_job_runs_on_a_schedule() -> None:
    def work(*_: Any) -> str:
        return ""

    plain = make_app(InMemoryConnector(), work, Backoff(1, 0), work, work)
    timed = make_app(InMemoryConnector(), work, Backoff(1, 0), work, work, ages_at="17 3 * * *")
    assert plain.periodic_registry.periodic_tasks == {}
    ((name, _), task), *others = timed.periodic_registry.periodic_tasks.items()
    assert (name, task.cron, others) == ("foveate.age", "17 3 * * *", [])
    assert task.configure_kwargs["queueing_lock"] == RetentionJob().waiting_lock


def test_invalid_retention_job_is_refused() -> None:
    with pytest.raises(BadSetting, match="ages= is no argument of the job 'erase'"):
        enqueue(URL, "one", "erase", ages={"all": "9 days"})
    with pytest.raises(BadSetting, match="Write 90 days"):
        enqueue(URL, "one", "age", ages={"all": "soon"})
    with pytest.raises(BadSetting, match="Retention needs rules"):
        Worker(URL, summarizer="digest", ages_at="17 3 * * *")
    with pytest.raises(BadSetting, match="crontab line"):
        Worker(URL, summarizer="digest", ages={"all": "9 days"}, ages_at="at three")
