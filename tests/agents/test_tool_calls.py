"""Calls of tools: each is a step, and is answered once and in order."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from foveate import (
    AsyncChatAgent,
    ChatAgent,
    Media,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool,
    tool_result,
)
from foveate.agents import ToolFailed
from foveate.agents.result_content import LARGEST, content_of, decode_content, encode_content
from foveate.errors import BadSetting
from foveate.testing import ScriptedModel, call, calls
from foveate.types import Lease

from .agents import agent, history_of, plain, requests, steps


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def answers(script: list[Any], **options: Any) -> list[tuple[str, str, str]]:
    """Return (tool, state, text) of each result in the order of the history. The model accepts the requests."""
    with agent([*script, "Done."], **options) as one:
        assert one.send("Go.").text == "Done."
        results = [row.message.result for row in one.conversation.history() if row.message.result]
        outputs = [(call, output) for name, call, _, output in steps(one.conversation) if call]
        assert outputs == [(result.call_id, encode_content(result.content)) for result in results]
        return [(result.name, result.state, result.text) for result in results]


def test_every_call_is_answered_once_and_in_order():
    script = calls(call("c1", "add", a=1), call("c2", "nope"), call("c3", "add", b=1), call("c4", "add", a=2, b=3))
    assert answers([script], tools=[add]) == [
        ("add", "ok", "2"),
        ("", "error", "There is no tool 'nope'. The tools you have: add."),
        (
            "add",
            "error",
            "add was not called, for its arguments are wrong: Object missing required field `a`. Call it again with a "
            "JSON object; it takes a, b (optional).",
        ),
        ("add", "ok", "5"),
    ]


def test_a_call_without_any_tools_is_answered_with_an_error():
    assert answers([call("c1", "add")]) == [("", "error", "There is no tool 'add'. The tools you have: none.")]


def test_names_that_no_database_can_store_do_no_harm():
    odd = "x\0" + "y" * 600
    assert answers([call("c1", odd)])[0][:2] == ("", "error")


def test_an_error_is_shown_without_and_stored_with_its_traceback():
    def fail() -> None:
        raise KeyError("missing")

    def say() -> None:
        raise ToolFailed("There is no such file. List the folder first.")

    def leave() -> None:
        raise SystemExit(2)

    with agent(
        [calls(call("c1", "fail"), call("c2", "say"), call("c3", "leave")), "Done."], tools=[fail, say, leave]
    ) as one:
        one.send("Go.")
        assert [text for role, text in history_of(one.conversation) if role == "tool"] == [
            "fail failed: KeyError: 'missing'",
            "There is no such file. List the folder first.",
            "leave failed: SystemExit: 2",
        ]
        kept_steps = one.conversation.journal.steps("r1")
        assert [step.state for step in kept_steps] == ["done", "failed", "failed", "failed", "done"]
        assert kept_steps[1].error.startswith("Traceback")
        assert 'raise KeyError("missing")' in kept_steps[1].error


def test_an_error_without_a_readable_text_is_a_result_too():
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise AttributeError("missing")

    def fail() -> None:
        raise Unreadable

    def say() -> None:
        raise ToolFailed

    assert answers([calls(call("c1", "fail"), call("c2", "say"))], tools=[fail, say]) == [
        ("fail", "error", "fail failed: Unreadable"),
        ("say", "error", "say failed"),
    ]


def test_message_with_a_result_is_the_result_of_a_tool():
    """Only the text beside the result was read, so the model received an empty result."""

    def read() -> object:
        return tool_result("c7", "12 files", state="error")

    def think() -> object:
        return assistant("", ToolCall("c8", "read"))

    assert answers([calls(call("c1", "read"), call("c2", "think"))], tools=[read, think]) == [
        ("read", "error", "12 files"),
        ("think", "ok", "Done. It returned nothing."),
    ]


def test_a_tool_that_exceeds_its_timeout_is_answered_with_an_error():
    never = threading.Event()

    def wait() -> None:
        never.wait(30)

    try:
        assert answers([calls(call("c1", "wait"), call("c2", "add", a=1))], tools=[tool(wait, timeout=0.02), add]) == [
            (
                "wait",
                "error",
                "wait did not end within 0.02 seconds and was given up; a part of its work may be done. Look what "
                "became of it, or ask it for less.",
            ),
            ("add", "ok", "2"),
        ]
    finally:
        never.set()


@dataclasses.dataclass
class Point:
    x: int


class Dumped:
    def model_dump(self) -> dict[str, int]:
        return {"y": 2}


IMAGE = Media("image/png", "base64", "aGk=")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (Text("text"),)),
        ("", (Text(""),)),
        (None, (Text("Done. It returned nothing."),)),
        (3.5, (Text("3.5"),)),
        ({"a": [1, None]}, (Text('{"a":[1,null]}'),)),
        ([], (Text("[]"),)),
        (["a", "b"], (Text('["a","b"]'),)),
        ([Point(1), Dumped(), Path("a/b")], (Text(f'[{{"x":1}},{{"y":2}},"a{os.sep}b"]'),)),
        (IMAGE, (IMAGE,)),
        (["See:", IMAGE], (Text("See:"), IMAGE)),
        (ToolResult("other", (Text("a"), IMAGE)), (Text("a"), IMAGE)),
        ("half \ud83d", (Text("half \\ud83d"),)),
        ({"names": ["caf\udce9", "ä"]}, (Text('{"names":["caf\\udce9","ä"]}'),)),
        ('{"content":["not parts"]}', (Text('{"content":["not parts"]}'),)),
    ],
)
def test_a_return_value_becomes_content_and_is_read_back_from_its_step(value: Any, content: Any):
    assert content_of(value)[0] == content
    assert decode_content(encode_content(content)) == content


def test_a_value_that_is_no_json_is_an_error_of_the_tool():
    def odd() -> object:
        return object()

    def cycle() -> list[Any]:
        loop: list[Any] = []
        loop.append(loop)
        return loop

    said = answers([calls(call("c1", "odd"), call("c2", "cycle"))], tools=[odd, cycle])
    assert said[0] == (
        "odd",
        "error",
        "odd: It was carried out, but what it returned (object) cannot be written as JSON: there is no JSON for "
        "object. Calling it again will not help.",
    )
    assert said[1][1] == "error"


class Unread:
    @property
    def content(self) -> bytes:
        raise RuntimeError("The response was not read")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            ToolResult("c1", cast(Any, "20 degrees")),
            "ToolResult) cannot be read: A Message has a field of the wrong kind",
        ),
        (ToolResult("c1", (Text("20"),), cast(Any, None)), "ToolResult) cannot be read: A Message has a field"),
        (Text(cast(Any, 20)), "Text) cannot be read: A Message has a field of the wrong kind"),
        (Text(cast(Any, b"20")), "Text) cannot be read: Text.text of a Message is bytes, not a text"),
        (["See:", Media(cast(Any, None), "base64", "aGk=")], "list) cannot be read: A Message has a field"),
        (Unread(), "Unread) cannot be read: The response was not read. Calling it again will not help."),
    ],
)
def test_a_result_with_a_wrong_field_is_an_error_of_the_tool(value: Any, problem: str):
    """It was stored, and could not be read back: every later input of the conversation failed too."""

    def weather() -> object:
        return value

    with agent([call("c1", "weather"), "Done.", "Hello."], tools=[weather]) as one:
        one.send("Go.")
        one.send("Hi.")
        history = history_of(one.conversation)
    assert f"weather: It was carried out, but what it returned ({problem}" in history[2][1]
    assert history[-1] == ("assistant", "Hello.")


def test_a_huge_result_is_stored_in_full_and_shown_as_an_error():
    size = LARGEST + 1

    def everything() -> str:
        return "x" * size

    with agent([call("c1", "everything"), "Done."], tools=[everything]) as one:
        one.send("Go.")
        assert history_of(one.conversation)[2][1] == (
            "everything returned 10,000,001 characters, more than can be read. Ask it for less, or for a part."
        )
        assert len(one.conversation.journal.steps("r1")[1].output) == size


def test_an_error_result_of_a_tool_stays_an_error():
    def broken() -> ToolResult:
        return ToolResult("", (Text("out of paper"),), "error")

    assert answers([call("c1", "broken")], tools=[broken]) == [("broken", "error", "out of paper")]


def test_tools_that_are_not_parallel_run_one_after_another():
    order: list[str] = []
    others_end = threading.Event()

    @tool(is_parallel=False)
    def alone(name: str) -> str:
        """Alone."""
        order.append(f"{name} begins")
        others_end.wait(0.01)
        order.append(f"{name} ends")
        return name

    script = calls(call("c1", "alone", name="a"), call("c2", "add", a=1), call("c3", "alone", name="b"))
    assert [text for _, _, text in answers([script], tools=[alone, add])] == ["a", "2", "b"]
    assert order == ["a begins", "a ends", "b begins", "b ends"]


def test_results_have_the_lease_of_their_tool():
    with agent([call("c1", "add", a=1), "Done."], tools=[tool(add, lease=Lease(2, "remove"))]) as one:
        one.send("Go.")
        assert [row.stamp.lease for row in one.conversation.history()] == [None, None, Lease(2, "remove"), None]


def test_messages_and_steps_name_each_other():
    with agent([call("c1", "add", a=1), "Done."], tools=[add]) as one:
        one.send("Go.")
        rows = one.conversation.history()
        assert [row.stamp.step for row in rows] == ["", "r1/1", "r1/2", "r1/3"]
        made = one.conversation.journal.steps("r1")
        assert [step.message for step in made] == [row.id for row in rows[1:]]
        assert [(step.kind, step.turn, step.input) for step in made] == [
            ("model", 1, ""),
            ("action", 1, '{"a":1}'),
            ("model", 2, ""),
        ]


# ------------------------------------------------------------------------------------------------------------ approval


def asked(answer: Any, script: Any, **options: Any) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return the calls that needed approval, and all results."""
    seen: list[str] = []

    def approve(one: ToolCall) -> Any:
        seen.append(one.call_id)
        return answer(one) if callable(answer) else answer

    return seen, answers(script, approve=approve, **options)


def test_approval_is_asked_only_for_tools_that_need_it():
    done: list[str] = []

    @tool(needs_approval=True)
    def remove(path: str) -> str:
        """Remove."""
        done.append(path)
        return "gone"

    script = [calls(call("c1", "remove", path="a"), call("c2", "add", a=1), call("c3", "remove", path="b"))]

    def says(one: ToolCall) -> bool | str:
        return True if one.call_id == "c1" else "not that one"

    assert asked(says, script, tools=[remove, add]) == (
        ["c1", "c3"],
        [
            ("remove", "ok", "gone"),
            ("add", "ok", "2"),
            ("remove", "error", "The user did not allow this call of remove: not that one"),
        ],
    )
    assert done == ["a"]
    assert asked(False, [call("c1", "add", a=1)], tools=[add], approve_all=True) == (
        ["c1"],
        [("add", "error", "The user did not allow this call of add. Do not make it again.")],
    )


def test_approval_is_not_asked_for_calls_with_wrong_arguments():
    assert asked(True, [calls(call("c1", "add"), call("c2", "nope"))], tools=[add], approve_all=True)[0] == []


def test_a_wrong_answer_of_approve_carries_nothing_out():
    done: list[int] = []
    says: list[Any] = [None, RuntimeError("no terminal"), True]

    def write(a: int) -> str:
        done.append(a)
        return "written"

    def approve(_: ToolCall) -> Any:
        said = says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    options = {"tools": [tool(write, needs_approval=True), add], "approve": approve}
    with agent([calls(call("c1", "add", a=1), call("c2", "write", a=1)), "Done."], **options) as one:
        with pytest.raises(BadSetting, match="approve= returned None for write"):
            one.send("Go.")
        assert one.conversation.journal.runs()[0].state == "failed"
        assert len(one.conversation) == 2
        with pytest.raises(RuntimeError, match="no terminal"):
            one.resume()
        assert one.resume().text == "Done."
    assert done == [1]


async def later() -> None: ...


async def approve_later(_: ToolCall) -> bool:
    return True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": [tool(add, needs_approval=True)]}, "add needs approval. Pass approve="),
        ({"tools": [add], "approve_all": True}, "add needs approval. Pass approve="),
        ({"tools": [later]}, "later must be awaited, and only an async agent can do that"),
        ({"approve": approve_later}, "approve= must be awaited"),
        ({"approve": 3}, "approve= must be something that can be called"),
        ({"max_parallel": 0}, "max_parallel= "),
        ({"tools": [add, add]}, "Two tools have the name add"),
        ({"tools": 3}, "tools= must be a list of functions and Tools"),
        ({"tools": [add, None]}, "Tool 1 of the list is None"),
        ({"tools": [tool(add, name="expand")]}, "A tool is named expand, as the one that expand=True adds"),
    ],
)
def test_wrong_options_are_refused_before_anything_begins(options: dict[str, Any], said: str):
    with pytest.raises(BadSetting, match=said):
        agent([], **options)


def test_an_async_agent_accepts_sync_and_async_tools():
    import asyncio

    async def double(a: int) -> int:
        await asyncio.sleep(0)
        return 2 * a

    async def play() -> list[tuple[str, str]]:
        model = ScriptedModel([calls(call("c1", "double", a=2), call("c2", "add", a=1)), "Done."], asynchronous=True)
        options = plain(tools=[double, tool(add, needs_approval=True)], approve=approve_later)
        async with AsyncChatAgent(model, **options) as agent:
            await agent.send("Go.")
            return [(row.message.role, row.message.text) for row in await agent.conversation.history()]

    assert asyncio.run(play())[2:] == [("tool", "4"), ("tool", "2"), ("assistant", "Done.")]


# ------------------------------------------------------------------------------------------------------------- expand


def test_calls_of_expand_are_answered_by_the_conversation():
    def long() -> str:
        return "word " * 3_000

    script = [
        call("c1", "long"),
        "Read.",
        calls(call("c2", "expand", handle="m3", lines="1"), call("c3", "add", a=1)),
        call("c4", "expand", search="word"),
        "Done.",
    ]
    options: dict[str, Any] = {"tools": [long, add], "expand": True, "policy": "keep-last-1"}
    with agent(script, **options) as one:
        one.send("Go.")
        assert one.send("Again.").text == "Done."
        chat = one.conversation
        answered = [row.message.result.call_id for row in chat.history() if row.message.result]
        assert sorted(answered) == ["c1", "c2", "c3", "c4"]
        assert [name for name, call, _, _ in steps(chat) if call] == ["long", "add"]
        assert [tool["name"] for tool in requests(one)[0]["tools"]] == ["long", "add", "expand"]


def test_a_call_of_expand_is_an_unknown_tool_without_expand():
    assert answers([call("c1", "expand", handle="m1")], tools=[add], expand=False)[0][1] == "error"


def test_an_agent_closes_what_it_opened_as_a_context_manager(tmp_path: Path):
    path = f"sqlite:///{tmp_path}/chat.db"
    with ChatAgent(ScriptedModel(["Hi."]), **plain(store=path)) as agent:
        agent.send("Hello.")
    with ChatAgent(ScriptedModel([]), **plain(store=path)) as two:
        assert history_of(two.conversation) == [("user", "Hello."), ("assistant", "Hi.")]
