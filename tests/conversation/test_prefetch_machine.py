"""State machine: one conversation with summaries in the background, under any order of events.

Summaries are good, empty, failing or never written; there are edits, forks, departures, another writer, and processes
that end. After each step the view is legal, no message is lost, and the journal holds no part of an unused summary.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from foveate import BadInput, Conversation, DoesNotFit
from foveate.core.budget import measure_excess
from foveate.core.messages import Message
from foveate.edits import Summarize, Task
from foveate.errors import BadEdit, NotExpandable
from foveate.policies import checkpoint, compact_on_overflow, prune_tool_outputs
from foveate.stores.memory import MemoryStore
from foveate.summarizers import SummaryRequest
from foveate.testing import answer, call, say, text_of, user
from foveate.testing.background import HandCranked
from foveate.testing.strategies import edits

from .shells import opened, refusals

ANSWERS = ("In short.", "", "word " * 400, "raise", '{"summary": "As JSON."}')
POLICIES = (
    (compact_on_overflow(ahead=0.4, keep_recent=0.25),),
    (prune_tool_outputs(protect=300, minimum=200), compact_on_overflow(threshold=0.8, ahead=0.5, keep_recent=200)),
    (checkpoint(trigger_at=8, keep_recent=5, ahead=3), compact_on_overflow(ahead=0.7)),
    (compact_on_overflow(threshold=0.6, keep_recent=0.2),),
)


class Prepares(RuleBasedStateMachine):
    """The conversation under test is `chat`; `said` holds the expected history."""

    @initialize(which=st.integers(0, len(POLICIES) - 1), eager=st.booleans())
    def begin(self, which: int, eager: bool) -> None:
        self.policy, self.eager = POLICIES[which], eager
        self.store = MemoryStore()
        self.said: dict[str, list[Message]] = {"c": []}
        self.count = 0
        self.answer = "In short."
        self.chat = self.opened("c")

    def opened(self, name: str) -> Conversation:
        self.background = HandCranked(eager=self.eager)
        return opened(
            name,
            policy=self.policy,
            summarizer=self.summarize,
            background=self.background,
            store=self.store,
            window=2_200,
            reserve=200,
        )

    def summarize(self, request: SummaryRequest) -> str:
        if self.answer == "raise":
            raise OSError("down")
        return self.answer

    @rule(answer=st.sampled_from(ANSWERS))
    def answer_from_now_on(self, answer: str) -> None:
        self.answer = answer

    @rule()
    def crank(self) -> None:
        self.background.crank()

    @rule(hangs=st.booleans())
    def hang(self, hangs: bool) -> None:
        self.background.hangs = hangs

    @rule(tokens=st.integers(5, 350), rounds=st.integers(1, 6))
    def turns(self, tokens: int, rounds: int) -> None:
        """Append a user input, a call with its result, and an answer."""
        for _ in range(rounds):
            self.count += 1
            id = f"c{self.count}"
            self.add("append", user(f"q{self.count} " + text_of(tokens, self.count)))
            self.prepare()
            self.add("record", call(id, "read", n=self.count))
            self.add("append", answer(id, text_of(tokens, self.count)))
            self.prepare()
            self.add("record", say(f"a{self.count}"))

    @rule()
    def ask(self) -> None:
        self.add("append", user("And?"))

    def add(self, act: str, message: Message) -> None:
        getattr(self.chat, act)(message)
        self.said[self.chat.name].append(message)

    @rule()
    def prepare(self) -> None:
        try:
            view = self.chat.prepare()
        except (BadInput, DoesNotFit):  # Nothing to send; or what was pinned by hand fills the window.
            return
        assert not measure_excess(view)
        assert refusals(self.chat, view) == []

    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        ids = [row.id for row in self.chat.history()]
        for wanted in data.draw(edits(ids, max_size=2)):
            if not isinstance(wanted, Task):
                with suppress(BadEdit):
                    self.chat.edit(wanted)

    @precondition(lambda self: len(self.chat) > 0)
    @rule(data=st.data())
    def expand(self, data: st.DataObject) -> None:
        with suppress(NotExpandable):
            self.chat.expand(f"m{data.draw(st.integers(1, len(self.chat)))}")

    @precondition(lambda self: self.chat._agent.head.number > 0)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        with suppress(BadEdit):
            self.chat.undo(data.draw(st.integers(1, self.chat._agent.head.number)))

    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        kept = self.said[self.chat.name][: data.draw(st.integers(0, len(self.chat)))]
        kept = [*kept, user(f"Otherwise {self.count}.")]
        names = set(self.store.names(""))
        old = self.said[self.chat.name]
        with suppress(DoesNotFit):
            self.chat.prepare(messages=kept)
        new = set(self.store.names("")) - names
        for name in new:
            self.said[name] = old
        history = [row.message for row in self.chat.history()]
        assert new or history[: len(old)] == old  # What the list leaves out is hidden.
        assert history[-1:] == kept[-1:]
        self.said[self.chat.name] = history

    @rule(data=st.data())
    def fork_and_go_on_there(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.chat)))
        name = f"fork{len(self.said)}"
        self.chat.fork(name, at=at)
        self.said[name] = self.said[self.chat.name][:at]
        self.chat = self.opened(name)

    @rule()
    def another_process_edits(self) -> None:
        other = opened(self.chat.name, policy="none", store=self.store)
        for entry in other.view.entries[:1]:
            if entry.source is not None and not entry.is_input:
                with suppress(BadEdit):
                    other.pin(entry.handle)

    @rule()
    def the_process_ends(self) -> None:
        """End the process without a close: only summaries in preparation are lost."""
        records = self.chat.journal.records()
        self.chat = self.opened(self.chat.name)
        assert self.chat.view.preparing == ()
        assert self.chat.journal.records()[: len(records)] == records

    @invariant()
    def nothing_that_was_said_is_lost(self) -> None:
        if hasattr(self, "chat"):
            assert [row.message for row in self.chat.history()] == self.said[self.chat.name]

    @invariant()
    def what_is_in_the_journal_was_taken_whole(self) -> None:
        known: set[Task] = set()  # The plan repeats the last task of a policy if its new attempt was not needed.
        for record in self.chat.journal.records() if hasattr(self, "chat") else ():
            tasks = {edit for edit in record.edits if isinstance(edit, Task) and edit.state == "done"}
            done = {task.policy for task in tasks - known}
            summed = {edit.policy for edit in record.edits if isinstance(edit, Summarize) and edit.policy != "floor"}
            if record.author == "plan":
                assert summed == done
            known |= tasks

    def teardown(self) -> None:
        if hasattr(self, "chat"):
            for name in self.store.names(""):
                chat: Any = opened(name, policy="none", store=self.store)
                assert chat.journal.verify() == []


Prepares.TestCase.settings = settings(
    max_examples=max(25, settings.default.max_examples // 2), stateful_step_count=20, deadline=None
)
TestPrepares = Prepares.TestCase
