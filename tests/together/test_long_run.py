"""A conversation of more than three million tokens, in windows of 32,000 and 200,000, under the default preset.

A scripted model works through many requests: it calls tools, expands shortened messages and searches for hidden ones.
Its requests are checked as a provider checks them. Summaries are prepared in the background by a summarizer that fails
at random. Three times the process ends in the middle, and another one continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from foveate import Conversation, Message, Options, open_conversation, tool_result
from foveate.core.budget import measure_excess
from foveate.edits import Task
from foveate.summarizers import SummaryRequest, digest_history
from foveate.testing import StubAnthropic, StubOpenAI, agent_run, call, text_of
from foveate.testing.background import HandCranked

RUNS = 6
"""Requests of the user, each worked on for 60 calls."""
RULES = "You mend programs. Read before you write."
TOOLS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}],
    "openai": [
        {
            "type": "function",
            "function": {"name": "read_file", "description": "Reads.", "parameters": {"type": "object"}},
        }
    ],
}
HANDLE = re.compile(r"expand\(\\*\"(m\d+(?:\.\d+)*(?:-m\d+)?)\\*\"\)")


@cache
def script() -> tuple[Message, ...]:
    """Return the messages of the whole run, without calls of `expand`."""
    random = Random(1)
    runs = [agent_run(60, seed, result_chars=(4_000, 40_000)) for seed in range(RUNS)]
    return tuple(longer(message, random) for run in runs for message in run)


def longer(message: Message, random: Random) -> Message:
    """Return a tool result with more text, and any other message unchanged."""
    result = message.result
    if result is None:
        return message
    more = text_of(random.choice((500, 2_000, 10_000)), random.randrange(10**6))
    return tool_result(result.call_id, f"{result.text}\n{more}", state=result.state)


class Model:
    """Answers with the next message of the script, and sometimes expands a message first."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.next: Message | None = None
        self.asked = 0
        self.expanded = False
        """Whether the last reply was a call of `expand`."""

    def __call__(self, request: dict[str, Any]) -> Message:
        assert self.next is not None
        self.expanded = False
        handles = HANDLE.findall(str(request["messages"])) if self.random.random() < 0.08 else []
        if not handles:
            return self.next
        self.asked += 1
        self.expanded = True
        handle = self.random.choice(handles)
        what: dict[str, object] = self.random.choice(
            [
                {"handle": handle},
                {"handle": handle, "lines": "1-30"},
                {"handle": handle, "items": "-5"},
                {"search": "error in the session"},
                {"handle": "m999999"},
            ]
        )
        return call(f"expand_{self.asked}", "expand", **what)


class Unreliable:
    """A summarizer that often fails in one of the ways of models."""

    def __init__(self, random: Random) -> None:
        self.random, self.calls = random, 0

    def __call__(self, request: SummaryRequest) -> str:
        self.calls += 1
        match self.random.randrange(8):
            case 0:
                raise TimeoutError("no answer")
            case 1:
                return ""
            case 2:
                return "I'm sorry, but I can't help with that."
            case 3:
                return "and so on, " * 20_000
            case _:
                return str(digest_history()(request))


class LongRun:
    """A program that runs the agent."""

    def __init__(self, provider: str, window: int, path: Path) -> None:
        self.provider, self.window, self.path = provider, window, path
        self.random = Random(window)
        self.model, self.summarizer = Model(self.random), Unreliable(self.random)
        stub = StubAnthropic if provider == "anthropic" else StubOpenAI
        self.client: Any = stub(self.model, window=window)
        self.now = 0
        self.backgrounds: list[HandCranked] = []
        self.said: list[Message | None] = []
        """What was appended; None for what the conversation itself said to its model."""
        self.chat = self.opened()

    def opened(self) -> Conversation:
        self.background = HandCranked()
        self.backgrounds.append(self.background)
        return open_conversation(
            "long",
            store=f"sqlite:///{self.path}",
            format=self.provider,
            window=self.window,
            summarizer=self.summarizer,
            expand=True,
            options=Options(settings={"compact": {"ahead": 0.6}}, background=self.background, clock=self.clock),
        )

    @property
    def begun(self) -> int:
        """Return the number of summaries that were started in the background."""
        return sum(len(background.jobs) for background in self.backgrounds)

    def clock(self) -> int:
        return self.now

    def create(self, **request: Any) -> Any:
        if self.provider == "anthropic":
            return self.client.messages.create(model="m", max_tokens=1_000, **request)
        return self.client.chat.completions.create(model="m", **request)

    def ask(self) -> dict[str, Any]:
        prompt: dict[str, Any] = self.chat.prompt(system=RULES, tools=TOOLS[self.provider])
        return prompt

    def begins_anew(self) -> None:
        """End the process and continue in another one, which sends the same bytes."""
        system: dict[str, Any] = {"system": RULES, "tools": TOOLS[self.provider]}
        before = self.chat.body(**system)
        self.chat.close()
        self.chat = self.opened()
        assert self.chat.body(**system) == before

    def turn(self, reply: Message) -> None:
        """Call the model until it answers with the next message of the script."""
        self.model.next, self.model.expanded = reply, True
        while self.model.expanded:
            self.now += self.random.choice((5_000, 20_000, 400_000))
            prompt = self.ask()
            assert not measure_excess(self.chat.view)
            answered = self.create(**prompt)
            self.client.requests.clear()  # Kept for tests that read them.
            known = len(self.chat)
            self.chat.record(answered)
            self.said += [None if self.model.expanded else reply, *([None] * (len(self.chat) - known - 1))]
            if self.random.random() < 0.3:
                self.background.crank()

    def go(self) -> Iterator[int]:
        """Run the script, and yield the number of messages so far."""
        for n, message in enumerate(script()):
            if message.role == "assistant":
                self.turn(message)
            else:
                self.chat.append(message)
                self.said.append(message)
            yield n


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "window"), [("openai", 32_000), ("anthropic", 200_000)])
def test_three_million_tokens_give_legal_requests_and_lose_nothing(provider: str, window: int, tmp_path: Path):
    run = LongRun(provider, window, tmp_path / "long.db")
    restarts = [len(script()) * part // 4 for part in (3, 2, 1)]
    for n in run.go():
        is_due = n + 1 < len(script()) and script()[n + 1].role == "assistant"
        if restarts and n >= restarts[-1] and is_due:
            restarts.pop()
            run.begins_anew()
    chat = run.chat
    assert restarts == []
    assert sum(row.stamp.tokens for row in chat.history()) > 3_000_000
    check_originals(chat, run.said)
    assert chat.journal.verify() == []
    tasks = [edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Task)]
    assert {"done", "failed"} <= {task.state for task in tasks}  # Everything was used.
    assert min(run.model.asked, run.begun, len(chat.journal.receipts()) // 10) > 3
    chat.close()


def check_originals(chat: Conversation, said: list[Message | None]) -> None:
    """Check that the history has every original message."""
    rows = chat.history()
    assert len(rows) == len(said)
    for row, message in zip(rows, said, strict=True):
        if message is None:
            continue
        assert row.message.role == message.role
        assert row.message.text == message.text
        assert [item.call_id for item in row.message.calls] == [item.call_id for item in message.calls]
    for row in rows[:: len(rows) // 50]:
        assert chat.original(row.handle) == row.message
