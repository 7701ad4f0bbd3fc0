"""State machine: one conversation on SQLite and one in memory stay equal under the same operations in any order.

The memory store is the oracle. A crash is a process that never returned: the file is opened again without a close.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from foveate import BadInput, Conversation, DoesNotFit, Options, open_conversation
from foveate.core.edits import Span, Summarize
from foveate.errors import BadEdit, BadMessage
from foveate.policies import prune_tool_outputs
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.strategies import edits, histories

from .shells import shown

POLICY = (prune_tool_outputs(protect=60, minimum=30),)


class TwoStores(RuleBasedStateMachine):
    """Every rule is applied to both conversations."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "chat.db"
        self.crashed: list[Database] = []
        self.stores: list[Database] = [MemoryStore(), SqliteStore(self.file, synchronous="normal")]
        self.names = ["c"]
        self.now = 0

    @initialize()
    def begin(self) -> None:
        self.chats = [self.opened(0, "c"), self.opened(1, "c")]

    def opened(self, which: int, name: str) -> Conversation:
        store = self.stores[which]
        return open_conversation(
            name, store=store, window=3_000, policy=POLICY, options=Options(clock=lambda: self.now)
        )

    def both(self, act: str, *given: object, **named: object) -> None:
        self.now += 1  # At each act, not whenever somebody asks: a store may have rows made more than once.
        outcomes = []
        for chat in self.chats:
            try:
                attrgetter(act)(chat)(*given, **named)
                outcomes.append("done")
            except (BadInput, BadMessage, BadEdit, DoesNotFit) as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]

    @rule(history=histories(max_size=6))
    def append(self, history: list) -> None:
        self.both("append", history)

    @rule()
    def settle(self) -> None:
        self.both("prepare")

    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        ids = [row.id for row in self.chats[0].history()]
        for wanted in data.draw(edits(ids, max_size=2)):
            self.both("edit", wanted)

    @precondition(lambda self: len(self.chats[0]) > 0)
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        self.both("privacy.erase", f"m{data.draw(st.integers(1, len(self.chats[0])))}")
        for chat in self.chats:
            assert chat.privacy.residue()[1] == []

    @precondition(lambda self: len(self.chats[0]) > 2)
    @rule(data=st.data())
    def summarize(self, data: st.DataObject) -> None:
        ids = [row.id for row in self.chats[0].history()]
        first = data.draw(st.integers(0, len(ids) - 2))
        last = data.draw(st.integers(first, len(ids) - 2))
        self.both("edit", Summarize(Span(ids[first], ids[last]), "earlier"))

    @precondition(lambda self: self.chats[0]._agent.head.number > 0)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        self.both("undo", data.draw(st.integers(1, self.chats[0]._agent.head.number)))

    @precondition(lambda self: len(self.chats[0]) > 0)
    @rule(data=st.data())
    def expand(self, data: st.DataObject) -> None:
        self.both("expand", f"m{data.draw(st.integers(1, len(self.chats[0])))}")

    @rule(data=st.data())
    def fork_and_go_on_there(self, data: st.DataObject) -> None:
        name = f"fork{len(self.names)}"
        at = data.draw(st.integers(0, len(self.chats[0])))
        for chat in self.chats:
            chat.fork(name, at=at)
        self.names.append(name)
        self.chats = [self.opened(0, name), self.opened(1, name)]

    @rule(data=st.data())
    def turn_to_another(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names))
        self.chats = [self.opened(0, name), self.opened(1, name)]

    @rule()
    def close_and_reopen(self) -> None:
        self.stores[1].close()
        self.stores[1] = SqliteStore(self.file, synchronous="normal")
        name = self.chats[0].name
        self.chats = [self.opened(0, name), self.opened(1, name)]

    @rule()
    def crash_and_reopen(self) -> None:
        self.crashed.append(self.stores[1])
        self.stores[1] = SqliteStore(self.file, synchronous="normal")
        name = self.chats[0].name
        self.chats = [self.opened(0, name), self.opened(1, name)]

    @rule()
    def save_snapshots(self) -> None:
        for chat in self.chats:
            chat._agent.save_snapshot()

    @invariant()
    def they_are_the_same(self) -> None:
        memory, sqlite = self.chats
        assert memory._agent.head == sqlite._agent.head
        assert shown(memory.view) == shown(sqlite.view)
        assert memory.journal.records() == sqlite.journal.records()
        assert memory.history() == sqlite.history()

    def teardown(self) -> None:
        if hasattr(self, "chats"):
            assert self.chats[1].journal.verify() == []
            assert self.chats[0].journal.verify() == []
        for store in [*self.crashed, self.stores[1]]:
            with suppress(Exception):
                store.close()
        self.folder.cleanup()


TwoStores.TestCase.settings = settings(
    max_examples=max(20, settings.default.max_examples // 5), stateful_step_count=20, deadline=None
)
TestTwoStores = TwoStores.TestCase
