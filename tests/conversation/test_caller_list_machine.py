"""State machine: a caller changes its own list of messages in any way, and the view follows it.

The caller appends, removes, edits, reorders, trims, goes back, and writes its list again in another form. The model
calls `expand`, plugins add content, processes restart, a second process takes turns with the first, and another one
appends messages of its own.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from foveate import Conversation, Message, ToolCall, assistant, plugin
from foveate.core.enrich import own_message
from foveate.core.message_keys import message_key
from foveate.expand.tool import TOOL
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, call, say, user
from foveate.types import Followed

from .shells import opened, refusals

TOOLS = {
    "anthropic": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
    "openai": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
}


@plugin(save=1, after_tools=True)
def noon(content: object) -> str:
    return "It is noon."


def rewritten(value: Any) -> Any:
    """Return JSON values as another program writes them: other order of keys, other white space in arguments."""
    if isinstance(value, dict):
        pairs = sorted(((key, rewritten(inner)) for key, inner in value.items()), reverse=True)
        return {key: _rewritten_json(inner) if key == "arguments" else inner for key, inner in pairs}
    return [rewritten(inner) for inner in value] if isinstance(value, list) else value


def _rewritten_json(text: str) -> str:
    return json.dumps(dict(sorted(json.loads(text).items(), reverse=True)), indent=1)


class ListMachine(RuleBasedStateMachine):
    """Each rule is one act of the caller, of the model, or of the machine below them."""

    def new_store(self) -> Database:
        return MemoryStore()

    @initialize(
        provider=st.sampled_from(["openai", "anthropic"]),
        policy=st.sampled_from(["none", "keep-last-1", "balanced"]),
        has_plugin=st.booleans(),
    )
    def begin(self, provider: str, policy: str, has_plugin: bool) -> None:
        self.store, self.provider, self.policy = self.new_store(), provider, policy
        self.plugins = [noon] if has_plugin else []
        self.count = 0
        self.list: list[dict[str, Any]] = []
        self.originals: set[bytes] = set()
        self.chats = [self.opened(), self.opened()]
        self.side = 0
        self.unread = 0
        """Steps until the process reads what another writer appended."""
        if provider == "openai":
            self.list.append({"role": "system", "content": "Be brief."})
        self.user_asks()

    def opened(self) -> Conversation:
        return opened(
            provider=self.provider,
            policy=self.policy,
            store=self.store,
            expand=True,
            plugins=self.plugins,
            window=20_000,
        )

    @property
    def chat(self) -> Conversation:
        return self.chats[self.side]

    def number(self) -> int:
        self.count += 1
        return self.count

    def add(self, *messages: Message) -> None:
        """Append messages to the caller's list in its own form."""
        self.list += json.loads(json.dumps(self.chat.format.render(messages)))

    def follow(self) -> None:
        if self.unread <= 0:
            self.chat.refresh()
        if any(item["role"] != "system" for item in self.list):
            self.chat.prepare(messages=self.list, tools=TOOLS[self.provider])

    # ------------------------------------------------------------------------------------------------------ the agent

    @rule()
    def user_asks(self) -> None:
        self.add(user(f"Question {self.number()}."))

    @rule(size=st.sampled_from([1, 200]), is_recorded=st.booleans())
    def model_calls(self, size: int, is_recorded: bool) -> None:
        self.follow()
        n = self.number()
        looks = ToolCall(f"a{n}", "look", f'{{"at":{n},"all":true}}'), ToolCall(f"b{n}", "look", "{}")
        reply = assistant(f"I look at {n}.", *looks)
        if is_recorded:
            self.chat.record(reply)
        self.add(reply, answer(f"a{n}", f"Line of {n}.\n" * size), answer(f"b{n}", f"Nothing at {n}."))

    @rule(is_recorded=st.booleans())
    def model_answers(self, is_recorded: bool) -> None:
        self.follow()
        reply = say(f"Answer {self.number()}.")
        if is_recorded:
            self.chat.record(reply)
        self.add(reply)

    @rule(handle=st.integers(1, 20), in_mixed_reply=st.booleans())
    def model_expands_unseen(self, handle: int, in_mixed_reply: bool) -> None:
        """The caller never sees the calls of `expand`."""
        self.follow()
        n = self.number()
        wanted = call(f"e{n}", TOOL, handle=f"m{handle}")
        if in_mixed_reply:
            other = ToolCall(f"c{n}", "look", f'{{"at":{n}}}')
            self.chat.record(Message("assistant", (*wanted.parts, other)))
            self.add(Message("assistant", (other,)), answer(f"c{n}", f"Saw {n}."))
            return
        self.chat.record(wanted)
        self.chat.prepare(tools=TOOLS[self.provider])
        self.chat.record(say(f"Answer {n}."))
        self.add(say(f"Answer {n}."))

    @rule(handle=st.integers(1, 20))
    def model_expands_in_a_loop(self, handle: int) -> None:
        """The caller runs every call, and has its own result for this one."""
        self.follow()
        n = self.number()
        wanted = call(f"e{n}", TOOL, handle=f"m{handle}")
        self.chat.record(wanted)
        self.add(wanted, answer(f"e{n}", "There is no such tool."))

    # ----------------------------------------------------------------------------------------------------- the caller

    def place(self, data: st.DataObject) -> int:
        return data.draw(st.integers(0, len(self.list) - 1))

    @rule(data=st.data(), length=st.integers(1, 4))
    def caller_removes(self, data: st.DataObject, length: int) -> None:
        at = self.place(data)
        kept = [*self.list[:at], *self.list[at + length :]]
        if any(item["role"] == "user" for item in kept):
            self.list = kept

    @rule(data=st.data())
    def caller_edits(self, data: st.DataObject) -> None:
        item = self.list[self.place(data)]
        text = f"Edited {self.number()}."
        match item["content"]:
            case str():
                item["content"] = text
            case [*blocks]:
                for block in blocks:
                    if "text" in block:
                        block["text"] = text
                    elif block["type"] == "tool_result":
                        block["content"] = text

    @rule(data=st.data())
    def caller_inserts(self, data: st.DataObject) -> None:
        made = self.chat.format.render([user(f"Inserted {self.number()}.")])
        at = self.place(data) + 1
        self.list[at:at] = json.loads(json.dumps(made))

    @rule(data=st.data())
    def caller_moves(self, data: st.DataObject) -> None:
        at = self.place(data)
        item = self.list.pop(at)
        self.list.insert(data.draw(st.integers(0, len(self.list))), item)

    @rule(size=st.integers(1, 8))
    def caller_keeps_a_window(self, size: int) -> None:
        kept = self.list[-size:]
        if any(item["role"] == "user" for item in kept):
            self.list = kept

    @rule(data=st.data())
    def caller_goes_back(self, data: st.DataObject) -> None:
        kept = self.list[: self.place(data) + 1]
        if any(item["role"] == "user" for item in kept):
            self.list = kept

    @rule()
    def caller_writes_its_list_again(self) -> None:
        self.list = rewritten(self.list)

    @rule()
    def caller_changes_the_system_prompt(self) -> None:
        if self.list and self.list[0]["role"] == "system":
            self.list[0]["content"] = f"It is {self.number()} o'clock."

    # ------------------------------------------------------------------------------------------------ the machine below

    @rule()
    def process_restarts(self) -> None:
        self.chats[self.side] = self.opened()

    @rule()
    def other_process_takes_over(self) -> None:
        self.side = 1 - self.side

    @rule(acts=st.integers(1, 3))
    def another_writer_appends(self, acts: int) -> None:
        """The process that follows the list meets this message when it writes, after the next acts."""
        self.opened().append(user(f"From outside {self.number()}."))
        self.unread = acts + 1

    @rule(data=st.data())
    def program_pins(self, data: st.DataObject) -> None:
        if len(self.chat):
            self.chat.refresh()
            self.chat.pin(f"m{data.draw(st.integers(1, len(self.chat)))}")

    # ------------------------------------------------------------------------------------------------------- what holds

    @invariant()
    def view_shows_the_list(self) -> None:
        if not hasattr(self, "list") or not any(item["role"] == "user" for item in self.list):
            return
        self.unread -= 1
        if self.unread > 0:
            return
        chat = self.chat
        if self.unread == 0:
            chat.follow(self.list)
        chat.refresh()
        view = chat.prepare(messages=self.list, tools=TOOLS[self.provider])
        assert refusals(chat, view) == []
        for row in chat.history():
            self.originals |= {message_key(own)} if (own := own_message(row.message, row.stamp)) else set()
        head = chat._agent.head
        assert chat.follow(self.list) == Followed()
        assert chat._agent.head == head
        said = [[message_key(message) for message in chat.format.parse(item)] for item in self.list]
        listed = {key for keys in said for key in keys}
        for items, entries in view.by_item():
            if items:  # The caller's own object says the same as what the view shows.
                assert [message_key(entry.message) for entry in entries] == said[items[0]]
        places = view.list_places
        for entry in view:
            if entry.source is None or entry.stamp.expanded or entry.stamp.origin == "plugin":
                continue
            if entry.position not in places:  # The list lacks its calls of `expand`.
                assert any(made.name == TOOL for made in entry.source.calls), entry
            elif not entry.shrunk and not entry.stamp.retention and not entry.legalized:
                assert message_key(entry.source) in listed
        shown = {(place.items[0], place.part) for position, place in places.items()}
        answered = {made.call_id for row in chat.history() for made in row.message.calls if made.name == TOOL}
        for number, item in enumerate(self.list):
            for part, message in enumerate(chat.format.parse(item)):
                is_cut = message.role == "assistant"  # Foveate's own calls are in it.
                is_answered = message.result is not None and message.result.call_id in answered
                assert (number, part) in shown or is_cut or is_answered or not message.parts
        reopened = self.opened()
        assert reopened.follow(self.list).added == ()
        assert reopened._agent.head == head

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        kept: set[bytes] = set()
        for name in self.store.names(""):
            chat = opened(name, provider=self.provider, policy="off", store=self.store)
            assert chat.journal.verify() == []
            for row in chat.history():
                own = own_message(row.message, row.stamp)
                kept |= {message_key(own)} if own else set()
        assert self.originals <= kept
        self.store.close()


class ListMachineOnSqlite(ListMachine):
    """The same on SQLite."""

    def new_store(self) -> Database:
        self.folder = tempfile.TemporaryDirectory()
        return SqliteStore(Path(self.folder.name) / "list.db", synchronous="normal")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


def test_a_reply_that_the_list_moves_is_the_callers_own_object() -> None:
    """The stored reply also calls `expand`, which no list shows. What the list adds in its place has no such call."""
    machine = ListMachine()
    machine.begin(provider="anthropic", policy="none", has_plugin=False)
    machine.model_expands_unseen(1, in_mixed_reply=True)
    machine.model_expands_unseen(1, in_mixed_reply=False)
    for _ in range(2):
        machine.list.insert(2, machine.list.pop(1))
        machine.view_shows_the_list()
    machine.teardown()


SETTINGS = settings(max_examples=max(12, settings.default.max_examples // 4), stateful_step_count=20, deadline=None)
ListMachine.TestCase.settings = ListMachineOnSqlite.TestCase.settings = SETTINGS
TestList = ListMachine.TestCase
TestListOnSqlite = pytest.mark.slow(ListMachineOnSqlite.TestCase)
