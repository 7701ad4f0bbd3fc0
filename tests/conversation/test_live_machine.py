"""State machine: an open conversation equals a reopened one after each step, in any order.

Two writers act on the same conversation in turns. A writer that is up to date is compared, value by value, with a
conversation opened from the newest snapshot; while nothing is erased, that one is compared with one folded from the
beginning.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from together.mechanisms import MECHANISMS, summarizer

from foveate import Conversation, FoveateError, Message, Options, Text, Usage, open_conversation
from foveate.core.edits import Hide, Span, Summarize
from foveate.ops.archive.verify import verify_all
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, calls, say
from foveate.testing.strategies import edits, histories
from foveate.types import PartRetention

from .memory_state import Unsaved, differences, fields_in_memory, known

POLICIES: dict[str, tuple[Any, int]] = {
    "none": ("none", 1_500),
    "balanced": ("balanced", 2_000),
    "prune": ("prune", 3_000),
    "prune-and-compact": ("prune-and-compact", 2_000),
    "checkpoint": (("checkpoint", "filter"), 2_000),
    "compact": (("compact",), 20_000),
    "all": (tuple(MECHANISMS), 3_000),
}


AGES = ("", ", even short", ", even shown")


class Live(RuleBasedStateMachine):
    """Every rule is one act of one of two writers."""

    def made_store(self) -> Database:
        return MemoryStore()

    def let_go(self) -> None:
        self.store.close()

    @initialize(policy=st.sampled_from(sorted(POLICIES)), provider=st.sampled_from(["openai", "anthropic"]))
    def begin(self, policy: str, provider: str) -> None:
        self.store = self.made_store()
        self.policy, self.provider, self.names = policy, provider, ["c"]
        self.now = self.count = 0
        self.chats = [self.opened("c"), self.opened("c")]

    def opened(self, name: str, store: Any = None) -> Conversation:
        told, window = POLICIES[self.policy]
        return open_conversation(
            name,
            store=store or self.store,
            format=self.provider,
            window=window,
            policy=told if isinstance(told, str) else tuple(MECHANISMS[one]() for one in told),
            summarizer=summarizer,
            options=Options(background=False, clock=lambda: self.now),
        )

    def does(self, side: int, act: str, *given: Any, **named: Any) -> Any:
        self.now += 50  # At each act, not whenever somebody asks.
        with suppress(FoveateError):  # What is refused, as it may be where another came first, changes nothing.
            return attrgetter(act)(self.chats[side])(*given, **named)

    def some(self, data: st.DataObject) -> str:
        return f"m{data.draw(st.integers(1, max(1, len(self.chats[0]))))}"

    # ---------------------------------------------------------------------------------------------------- what is said

    @rule(side=st.integers(0, 1), history=histories(max_size=5))
    def says(self, side: int, history: list[Message]) -> None:
        self.does(side, "append", history)

    @rule(side=st.integers(0, 1), kept=st.booleans())
    def asks(self, side: int, kept: bool) -> None:
        self.count += 1
        said = (Text(f"Part {self.count}."), Text("It is noon."), Text("The tests were red."))
        self.does(
            side,
            "append",
            Message("user", said),
            kept=[PartRetention(), PartRetention(True, 0), PartRetention(False, 2)] if kept else None,
        )

    @rule(side=st.integers(0, 1), size=st.sampled_from([5, 80, 400]), is_measured=st.booleans())
    def answers_and_calls(self, side: int, size: int, is_measured: bool) -> None:
        self.count += 1
        name = f"a{self.count}"
        self.does(side, "prepare")
        usage = Usage(100 + 7 * self.count, 0, 0, 20) if is_measured else None
        self.does(side, "record", calls(name, f"b{self.count}", text=f"recap - looked at {name}"), usage=usage)
        found = [answer(name, f"{name} has a line.\n" * size), answer(f"b{self.count}", "Nothing. " * 9)]
        self.does(side, "append", found)

    @rule(side=st.integers(0, 1))
    def answers(self, side: int) -> None:
        self.does(side, "prepare")
        self.does(side, "record", say("recap - done\n" + "At length. " * 20))

    @rule(side=st.integers(0, 1))
    def settles(self, side: int) -> None:
        self.does(side, "prepare")

    # ----------------------------------------------------------------------------------------------------- what is done

    @rule(side=st.integers(0, 1), data=st.data())
    def edits(self, side: int, data: st.DataObject) -> None:
        ids = [row.id for row in self.chats[side].history()]
        for edit in data.draw(edits(ids, max_size=2)):
            self.does(side, "edit", edit)

    @precondition(lambda self: len(self.chats[0]) > 2)
    @rule(side=st.integers(0, 1), data=st.data(), is_summary=st.booleans())
    def covers(self, side: int, data: st.DataObject, is_summary: bool) -> None:
        ids = [row.id for row in self.chats[0].history()]
        first = data.draw(st.integers(0, len(ids) - 2))
        span = Span(ids[first], ids[data.draw(st.integers(first, len(ids) - 2))])
        self.does(side, "edit", Summarize(span, "earlier") if is_summary else Hide(span))

    @precondition(lambda self: len(self.chats[0]) > 0)
    @rule(
        side=st.integers(0, 1),
        data=st.data(),
        act=st.sampled_from(["pin", "unpin", "expand", "expand", "privacy.erase"]),
    )
    def does_to_a_message(self, side: int, data: st.DataObject, act: str) -> None:
        self.does(side, act, self.some(data))

    @precondition(lambda self: self.chats[0]._agent.head.number > 0)
    @rule(side=st.integers(0, 1), data=st.data())
    def undoes(self, side: int, data: st.DataObject) -> None:
        self.does(side, "undo", data.draw(st.integers(1, self.chats[0]._agent.head.number)))

    @rule(side=st.integers(0, 1))
    def compacts(self, side: int) -> None:
        self.does(side, "compact")

    @rule(side=st.integers(0, 1), even=st.sampled_from(AGES))
    def lets_go(self, side: int, even: str) -> None:
        self.does(side, "privacy.apply_retention", {"all": f"2 turns{even}"})

    @rule(side=st.integers(0, 1))
    def takes_in(self, side: int) -> None:
        self.does(side, "refresh")

    @rule(side=st.integers(0, 1))
    def is_saved(self, side: int) -> None:
        with suppress(FoveateError):
            self.chats[side]._agent.save_snapshot()

    @precondition(lambda self: len(self.chats[0]) > 1)
    @rule(side=st.integers(0, 1), data=st.data())
    def departs(self, side: int, data: st.DataObject) -> None:
        chat = self.chats[side]
        chat.refresh()
        (chat._session.exchange.caller_list.go_back(data.draw(st.integers(1, len(chat)))))

    @rule(data=st.data())
    def is_forked(self, data: st.DataObject) -> None:
        name = f"fork{len(self.names)}"
        self.chats[0].refresh()  # The other writer may have departed from what it would be forked at.
        self.chats[0].fork(name, at=data.draw(st.integers(0, len(self.chats[0]))))
        self.names.append(name)
        self.chats = [self.opened(name), self.opened(name)]

    @rule(data=st.data())
    def another_is_gone_on_with(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names))
        self.chats = [self.opened(name), self.opened(name)]

    # ------------------------------------------------------------------------------------------------------- what holds

    @invariant()
    def whoever_is_there_knows_what_is_known_anew(self) -> None:
        if not hasattr(self, "chats"):
            return
        fresh, folded = (known(self.opened(self.chats[0].name, store)) for store in (self.store, Unsaved(self.store)))
        if not fresh["head"].erased:  # Else a saved view knows what edits had changed of messages that are gone.
            assert differences(fresh, folded) == {}
        for chat in self.chats:
            if chat._agent.head == fresh["head"]:
                assert differences(known(chat), fresh, without=fields_in_memory(chat)) == {}

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.chats[0].journal.verify() == []
            assert [finding for one in verify_all(self.store) for finding in one.findings] == []
            self.let_go()


class LiveOnSqlite(Live):
    """The same machine on a SQLite file."""

    def made_store(self) -> Database:
        self.folder = tempfile.TemporaryDirectory()
        return SqliteStore(Path(self.folder.name) / "chat.db", synchronous="normal")

    def let_go(self) -> None:
        super().let_go()
        self.folder.cleanup()


SETTINGS = settings(max_examples=max(6, settings.default.max_examples // 8), stateful_step_count=20, deadline=None)
Live.TestCase.settings = LiveOnSqlite.TestCase.settings = SETTINGS
TestLive = Live.TestCase
TestLiveOnSqlite = pytest.mark.slow(LiveOnSqlite.TestCase)
