"""Agents with any answers and tools: legal requests, one result per call, and complete steps.

The scripted model refuses illegal requests. Sync and async agents have the same requests and records.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import AsyncChatAgent, ChatAgent, Limits, Media, Text, ToolCall, tool
from foveate.agents.result_content import encode_content
from foveate.core.messages import Message, assistant
from foveate.testing import ScriptedModel

from .agents import plain


def good(text: str = "x", times: int = 1) -> str:
    """Say it."""
    return text * times


def fails(text: str = "x") -> None:
    raise ValueError(text)


def odd(kind: int = 0) -> object:
    """Return something odd."""
    return [object(), None, "", {"a": {1}}, [Text("see"), Media("image/png", "base64", "aGk=")], "\ud83d", b"\xff"][
        kind % 7
    ]


def hanging(over: threading.Event) -> Any:
    @tool(timeout=0.001)
    def hangs() -> None:
        """Take too long."""
        over.wait(600)

    return hangs


def long(words: int = 1) -> str:
    """Say much."""
    return "word " * min(words, 3_000)


ARGUMENTS = [
    "{}",
    "",
    '{"text":"hi","times":"2"}',
    '{"times":"x"}',
    "{",
    "[]",
    '{"kind":4}',
    '{"kind":5}',
    '{"words":2999}',
    '{"a":1}',
]
NAMES = ["good", "fails", "odd", "long", "hangs", "nope", "expand", "", "a b"]
one_call = st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS))
one_reply = st.tuples(st.sampled_from(["", "Well.", "  "]), st.lists(one_call, max_size=4))
scripts = st.lists(one_reply, max_size=6)


def script_of(replies: list[tuple[str, list[tuple[str, str]]]], provider: str) -> list[Message]:
    said = []
    for place, (text, asked) in enumerate(replies):
        calls = [
            ToolCall(f"c{place}_{n}", name or "x", said_by(provider, arguments))
            for n, (name, arguments) in enumerate(asked)
        ]
        said.append(assistant(text if calls else text or "Hm.", *calls))
    return [*said, assistant("Done.")]


def said_by(provider: str, arguments: str) -> str:
    """Arguments of Anthropic's models are always JSON objects."""
    return arguments if provider == "openai" or arguments.endswith("}") else "{}"


def approve(call: ToolCall) -> bool | str:
    return len(call.arguments) % 3 == 0 or (len(call.arguments) % 3 == 1 and "Not now.")


@contextmanager
def options_of(together: bool, expand: bool, turns: int) -> Iterator[dict[str, Any]]:
    """Yield the options of an agent with a tool that hangs until the block ends."""
    over = threading.Event()
    odd_one, long_one = tool(odd, needs_approval=True), tool(long, is_repeatable=True)
    try:
        yield plain(
            tools=[tool(good, is_parallel=together), fails, odd_one, hanging(over), long_one],
            approve=approve,
            expand=expand,
            limits=Limits(turns=turns),
            policy="keep-last-2",
            window=12_000,
            clock=lambda: 1,
            max_parallel=3,
        )
    finally:
        over.set()


Facts = tuple[list[dict[str, Any]], list[Any], list[Any], list[Any]]


def played(script: list[Message], provider: str, options: dict[str, Any]) -> Facts:
    """Return the requests and all records of three inputs."""
    model = ScriptedModel([*script, *[assistant("Yes.")] * 3], provider)
    with ChatAgent(model, **options) as agent:
        for text in ("Go.", "Go on.", "And?"):
            if len(model.requests) < len(script) + 2:
                agent.send(text)
        chat = agent.conversation
        runs = chat.journal.runs()
        return model.requests, chat.history(), runs, [step for run in runs for step in chat.journal.steps(run.id)]


def played_async(script: list[Message], provider: str, options: dict[str, Any]) -> Facts:
    async def play() -> Facts:
        model = ScriptedModel([*script, *[assistant("Yes.")] * 3], provider, asynchronous=True)
        async with AsyncChatAgent(model, **options) as agent:
            for text in ("Go.", "Go on.", "And?"):
                if len(model.requests) < len(script) + 2:
                    await agent.send(text)
            chat = agent.conversation
            runs = await chat.journal.runs()
            return (
                model.requests,
                await chat.history(),
                runs,
                [s for run in runs for s in await chat.journal.steps(run.id)],
            )

    return asyncio.run(play())


@settings(max_examples=settings.default.max_examples // 2)
@given(scripts, st.sampled_from(["anthropic", "openai"]), st.booleans(), st.booleans(), st.sampled_from([2, 50]))
def test_any_script_gives_legal_requests_and_complete_records(
    replies: Any, provider: str, together: bool, expand: bool, turns: int
):
    script = script_of(replies, provider)
    with options_of(together, expand, turns) as options:
        requests, history, runs, steps = played(script, provider, options)

    asked = [call.call_id for row in history for call in row.message.calls]
    results = [row.message.result for row in history if row.message.result]
    assert Counter(result.call_id for result in results) == Counter(asked)
    answers = {f"{step.run}/{step.number}": step for step in steps}
    for row in history:
        if row.message.result and row.stamp.step:
            step = answers[row.stamp.step]
            assert step.output == encode_content(row.message.result.content)
            assert (step.call, step.message) == (row.message.result.call_id, row.id)
            assert (step.state == "failed") == (row.message.result.state == "error")
    own = [row.message.result.call_id for row in history if row.message.result and row.stamp.expanded]
    assert [step.call for step in steps if step.kind == "action"] == [id for id in asked if id not in own]
    assert {step.state for step in steps} <= {"done", "failed"}
    assert {run.state for run in runs} <= {"done", "stopped"}
    assert sum(run.turns for run in runs) == len(requests)

    with options_of(together, expand, turns) as options:
        same = played_async(script, provider, options)
    assert same[0] == requests
    assert [row.message for row in same[1]] == [row.message for row in history]
    assert same[2] == runs
    assert [without_traces(step) for step in same[3]] == [without_traces(step) for step in steps]


def without_traces(step: Any) -> Any:
    """A traceback has other lines in asyncio."""
    return (
        step.run,
        step.number,
        step.kind,
        step.name,
        step.call,
        step.input,
        step.output,
        bool(step.error),
        step.state,
        step.message,
    )
