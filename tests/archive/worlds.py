"""Stores with generated conversations: forks, edits, repetitions, erased messages, runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core import ids
from foveate.core.catalog import Action, Binding, Prompt
from foveate.core.edits import Replace, Span, Target, Task
from foveate.core.ids import erased_edit, erased_stamp, redacted_stamp
from foveate.core.messages import Text, user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.core.stamps import Expansion, Lease, PartRetention, Retention, Stamp, Stop, Usage
from foveate.ports import Database, Head, StoredMessage, append
from foveate.testing.moves import TEXTS, edit_of, history_of
from foveate.testing.rows import chain, erased, record_after

LONG = "All work and no play makes the model a dull one. " * 200
TENANT = "acme"

STAMPS = (
    Stamp(1, 2, 3, "user"),
    Stamp(1, 2**40, 3, "tool", "bash", lease=Lease(3, "compact", "first_chars", 80, "short", message_type="result")),
    Stamp(2, 9, 1, "assistant", usage=Usage(1, 2, None, 4, 0), estimate=5, step="run 1/1", stop=Stop("length", "why")),
    Stamp(3, 1, 0, "plugin", retention=Retention(4, (PartRetention(), PartRetention(False, 2, "todo")))),
    Stamp(4, 5, 6, "derived", expanded=Expansion("lines", "m3", "ab" * 20)),
)
"""Facts of each kind."""

moves = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40), st.integers(0, 40)), max_size=25)
"""The moves from which `build` makes conversations."""


def build(store: Database, actions: Iterable[tuple[int, int, int]], tenant: str = TENANT, tag: str = "") -> None:
    """Create conversations from moves: each a kind and two numbers that vary it."""
    names = ["begun"]
    store.open(tenant, "begun")
    for step, (kind, a, b) in enumerate(actions):
        head = store.open(tenant, names[a % len(names)])
        match kind:
            case 0 | 1:
                messages = history_of([(n % 23, a + n, b + n) for n in range(b % 5 + 1)])
                append(store, head, chain(messages, head))
            case 2:
                append(store, head, [erased(row) if n % 2 else row for n, row in enumerate(_long(head, a % 3 + 1))])
            case 3:
                ids = [row.id for row in store.get_many(head, range(1, head.position + 1))] or ["00" * 20]
                edits = [edit_of(ids, b + n, a % len(ids), b % len(ids), a + n) for n in range(b % 3 + 1)]
                if a % 3 == 0:
                    edits = [erased_edit(Replace(Target(ids[-1]), (Text(TEXTS[b % len(TEXTS)]),)))]
                elif a % 3 == 1:
                    edits += [Task("checkpoint", "failed", 2, 3, Span(ids[0], ids[-1]), "half a summary", 1, 1)]
                store.commit(head, *record_after(head, *edits))
            case 4 | 5:
                at = b % (head.position + 1), _edit(store, head, a)
                name = f"{'fork' if kind == 4 else 'kept'} {step}{tag}"
                store.fork(head, name, *at) if kind == 4 else store.repoint(head, *at, name)
                names.append(name)
            case 6:
                names.append(f"new {step}{tag}")
                store.open(tenant, names[-1])
            case 7:
                run = AgentRun(f"run {b % 4}", "me", head.name, task="half \ud83d" if a % 5 == 0 else LONG, cost=a / 7)
                store.put_run(head, run)
                for number in range(1, b % 3 + 1):
                    store.put_step(head, AgentRunStep(run.id, number, "action", output=TEXTS[a % len(TEXTS)]))
            case 9 if head.position:
                first = a % head.position + 1
                store.erase(head, [(first, min(first + b % 3, head.position))], runs=bool(b % 2), reason="made up")
            case _:
                stamp = replace(STAMPS[b % len(STAMPS)], metadata=f'{{"ticket":{a}}}' if a % 4 else "")
                append(store, head, _stamped(head, stamp, gone=bool(b % 2)))


def furnish(store: Database, tenant: str = TENANT) -> None:
    """Write a catalog."""
    store.put_prompt(tenant, Prompt("short", "{{ text }}", "Cuts."))
    store.put_action(tenant, Action("look", "Looks.", default_compact_prompt="short"))
    store.put_binding(tenant, Binding("me", "look", 3, "compact", "summary", None, "short"))


def contents(store: Database, tenant: str = TENANT) -> dict[str, Any]:
    """Return all readable data of a tenant, except its place in the store."""
    contents_by_name: dict[str, Any] = {}
    for name in store.names(tenant):
        head = store.open(tenant, name)
        assert store.verify(head) == []
        ends = head.position, head.tip, head.seal, head.number, head.record
        runs = [(run, store.steps(head, run.id)) for run in store.runs(head)]
        rows = store.messages(head, 1, head.position)
        contents_by_name[name] = ends, rows, store.records(head), runs, store.erasures(head)
    return contents_by_name


def _edit(store: Database, head: Head, choice: int) -> int:
    ends = [0, *(record.last for _, record in store.records(head))]
    return ends[choice % len(ends)]


def _long(head: Head, count: int) -> list[StoredMessage]:
    return chain([user(LONG)] * count, head)


def _stamped(head: Head, stamp: Stamp, *, gone: bool) -> list[StoredMessage]:
    """Return a message with these facts; facts of the application may have been erased."""
    (row,) = chain([user("noted")], head)
    seal = ids.seal(head.seal, row.id, redacted_stamp(stamp))
    return [replace(row, stamp=erased_stamp(stamp) if gone else stamp, seal=seal)]
