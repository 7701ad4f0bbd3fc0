"""Requests without the tool `expand` do not name it: under every preset and mechanism, and at every switch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation, Message, Options, View, open_conversation
from foveate.core.edits import Task
from foveate.expand import EXPAND_INSTRUCTION, expand_tool
from foveate.policies import PRESET_NAMES
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, user
from foveate.testing.bodies import check_body

from .mechanisms import MECHANISMS, story, told

TOOLS: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
NAMES = re.compile(r"expand\(|\"expand\"|`expand`|expand-message")
PRESETS = sorted({*(name.replace("-N", "-2") for name in PRESET_NAMES), "checkpoint"} - {"off"})
SMALL = {"checkpoint": {"checkpoint": {"trigger_at": 14, "keep_recent": 6}}}


def copies_handles(request: Any) -> str:
    """A scripted model that copies calls from the texts that it reads, as models do."""
    return 'They read expand("m3") and, in part, expand(\'m5\', lines="1-2"). See `expand("m4.1")` for the rest.'


def opened(policy: Any, *, window: int = 3_000, store: Any = "memory:", **options: Any) -> Conversation:
    ticks = iter(range(1, 10**9))
    return open_conversation(
        "c",
        store=store,
        format="anthropic",
        window=window,
        policy=policy,
        summarizer=copies_handles,
        options=Options(clock=lambda: next(ticks), settings=SMALL.get(policy) if isinstance(policy, str) else None),
        **options,
    )


def requests_of(chat: Conversation, messages: Sequence[Message], tools: Callable[[int], Any]) -> Iterator[Any]:
    """Yield the prompt before each reply. `tools`: returns the tools of a request by its number."""
    number = 0
    for message in messages:
        if message.role == "assistant":
            number += 1
            prompt = chat.prompt(tools=tools(number))
            assert check_body("anthropic", json.dumps(prompt)) == []
            yield prompt
            chat.record(message)
        else:
            chat.append(message)


def named_in(prompt: dict[str, Any]) -> list[str]:
    """Return where the messages and the system prompt name the tool."""
    return NAMES.findall(json.dumps([prompt.get("system"), prompt["messages"]]).replace('\\"', '"'))


def offers(prompt: dict[str, Any]) -> bool:
    return any(tool["name"] == "expand" for tool in prompt.get("tools", ()))


CASES = [*PRESETS, *((make(),) for make in MECHANISMS.values())]
IDS = [*PRESETS, *(f"mechanism {name}" for name in MECHANISMS)]


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, id=name, marks=[pytest.mark.slow] * (policy in PRESETS and policy != "balanced"))
        for policy, name in zip(CASES, IDS, strict=True)
    ],
)
def test_texts_name_the_tool_only_in_requests_that_offer_it(policy: Any):
    switches: dict[str, Callable[[int], Any]] = {
        "never": lambda number: (),
        "always": lambda number: TOOLS,
        "on at 9": lambda number: TOOLS if number >= 9 else (),
        "off at 9": lambda number: () if number >= 9 else TOOLS,
        "in turns": lambda number: TOOLS if number % 3 else (),
    }
    named = {}
    for switch, tools in switches.items():
        with opened(policy) as chat:
            prompts = list(requests_of(chat, story(14), tools))
            assert [offers(prompt) for prompt in prompts] == [bool(tools(n)) for n in range(1, len(prompts) + 1)]
            for prompt in prompts:
                if not offers(prompt):
                    assert named_in(prompt) == []
            named[switch] = sum(len(named_in(prompt)) for prompt in prompts if offers(prompt))
            assert chat.journal.verify() == []
    if policy != "retain":  # It shrinks nothing here.
        assert named["always"] > len(prompts)  # More than the instruction: placeholders name it.


@pytest.mark.parametrize("policy", ["balanced", "keep-last-2", "checkpoint", "prune-and-compact", "none"])
def test_each_kind_of_request_keeps_its_own_prefix(policy: str):
    """With a window that needs no edits after turn 20, later requests extend those of their kind."""
    with opened(policy, window=100_000) as chat:
        list(requests_of(chat, story(20), lambda number: TOOLS))
        newest: dict[bool, tuple[list[str], list[int]]] = {}
        for number in range(8):
            chat.append(f"And {number}?")
            with_tools = number % 3 != 1
            prompt = chat.prompt(tools=TOOLS if with_tools else ())
            chat.record({"role": "assistant", "content": [{"type": "text", "text": f"So {number}."}]})
            edits = [record.last for record in chat.journal.records() if not _is_mark(record)]
            messages = [_unmarked(one) for one in prompt["messages"]]
            before, known = newest.get(with_tools, ([], edits))
            if known == edits:
                assert messages[: len(before)] == before
            newest[with_tools] = messages, edits


def shown_by(chat: Conversation, view: View) -> list[str]:
    """Return the messages of a request with this view."""
    return [_unmarked(one) for one in chat.format.prompt(view, profile=chat._agent.profile)["messages"]]


def _is_mark(record: Any) -> bool:
    return all(isinstance(edit, Task) for edit in record.edits)


def _unmarked(message: Any) -> str:
    return json.dumps(message).replace(', "cache_control": {"type": "ephemeral"}', "")


def test_texts_made_without_the_tool_stay_when_it_comes_on():
    with opened("keep-last-2", window=100_000) as chat:
        list(requests_of(chat, story(9), lambda number: ()))
        chat.append("Go on.")
        plain = chat.prompt()
        offered = chat.prompt(tools=TOOLS)
        assert [_unmarked(one) for one in offered["messages"]] == [_unmarked(one) for one in plain["messages"]]
        assert "[Omitted: m" in json.dumps(plain["messages"])
        list(requests_of(chat, story(9), lambda number: TOOLS))
        texts = json.dumps(chat.prompt(tools=TOOLS)["messages"])
        assert "[Omitted: m" in texts
        assert '[Omitted: expand(\\"m' in texts


def test_reopened_conversation_shows_what_was_sent():
    store = MemoryStore()
    with opened("keep-last-2", window=100_000, store=store) as chat:
        list(requests_of(chat, story(9), lambda number: TOOLS))
        chat.append("Go on.")
        named = chat.prompt(tools=TOOLS)["messages"]
        turn = chat.view.turn
        chat.record({"role": "assistant", "content": "I do."})
        chat.append("And then?")
        plain = chat.prompt()["messages"]
        later = chat.view.turn
    with opened("keep-last-2", window=100_000, store=store) as again:
        assert shown_by(again, again.view) == [_unmarked(one) for one in plain]
        assert shown_by(again, again.as_of(turn)) == [_unmarked(one) for one in named]
        assert shown_by(again, again.as_of(later)) == [_unmarked(one) for one in plain]
        assert again.prompt()["messages"] == plain


@given(
    st.lists(st.booleans(), min_size=1, max_size=12),
    st.lists(st.sampled_from(sorted(MECHANISMS)), min_size=1, max_size=3, unique=True),
    st.integers(0, 3),
)
@settings(max_examples=settings.default.max_examples // 2)
def test_random_switches_and_mechanisms_are_honest(switches: list[bool], names: list[str], forget: int):
    """With any order of requests, also after the conversation is opened again: same bytes, and no call without tool."""
    store = MemoryStore()
    policy = tuple(MECHANISMS[name]() for name in names)
    chat = opened(policy, store=store)
    messages = story(14)
    number = 0
    for message in messages:
        if message.role == "assistant":
            on = switches[number % len(switches)]
            number += 1
            prompt = chat.prompt(tools=TOOLS if on else ())
            assert offers(prompt) == on
            assert on or named_in(prompt) == []
            if forget and number % (forget + 2) == 0:
                chat = opened(policy, store=store)
                assert shown_by(chat, chat.view) == [_unmarked(one) for one in prompt["messages"]]
                chat.prompt(tools=TOOLS if on else ())
            chat.record(message)
        else:
            told(chat, [message])


def test_expand_true_and_false_settle_it_for_every_request():
    for expand, tools, offered in ((True, (), True), (True, TOOLS, True), (False, TOOLS, False), (False, (), False)):
        with opened("keep-last-2", expand=expand) as chat:
            prompts = list(requests_of(chat, story(6), lambda number, tools=tools: tools))
            assert {offers(prompt) for prompt in prompts} == {offered}
            assert bool(named_in(prompts[-1])) == offered
            assert (EXPAND_INSTRUCTION in json.dumps(prompts[-1]).replace('\\"', '"')) == offered


def test_program_that_offers_the_tool_itself_gets_its_name():
    with opened("keep-last-2", expand=False) as chat:
        tools = [*TOOLS, expand_tool("anthropic")]
        *_, last = requests_of(chat, story(6), lambda number: tools)
        assert offers(last)
        assert named_in(last)


@pytest.mark.parametrize("expand", [None, False])
def test_tool_of_the_host_with_the_same_name_is_left_alone(expand: bool | None):
    own = [{"name": "expand", "description": "Expands an abbreviation.", "input_schema": {"type": "object"}}]
    with opened("keep-last-2", expand=expand) as chat:
        *_, last = requests_of(chat, story(6), lambda number: own)
        assert [tool["description"] for tool in last["tools"]] == ["Expands an abbreviation."]
        assert named_in(last) == []


def test_nothing_is_offered_where_nothing_is_automatic():
    with opened("off") as chat:
        chat.append("Go.")
        assert [tool["name"] for tool in chat.prompt(tools=TOOLS)["tools"]] == ["look"]


def test_plan_is_made_for_its_own_tools_and_changes_nothing():
    with opened("keep-last-2", window=100_000) as chat:
        list(requests_of(chat, story(6), lambda number: TOOLS))
        before = [entry.message for entry in chat.view]
        plan = chat.plan()
        assert "expand(" not in json.dumps([entry.message.text for entry in plan.after])
        assert [entry.message for entry in chat.view] == before
        assert "expand(" in json.dumps([message.text for message in before])


@pytest.mark.parametrize(
    ("provider", "look"),
    [
        ("openai", {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}),
        ("anthropic", TOOLS[0]),
        ("openai_responses", {"type": "function", "name": "look", "parameters": {"type": "object"}}),
        ("gemini", {"functionDeclarations": [{"name": "look", "parameters": {"type": "object"}}]}),
    ],
)
def test_tool_is_offered_and_answered_in_every_format(provider: str, look: Any):
    with open_conversation("c", format=provider, window=50_000, policy="keep-last-1") as chat:
        chat.append([user("Go."), call("a", "look"), answer("a", "one " * 300), call("b", "look"), answer("b", "two")])
        bare, offered = json.dumps(chat.prompt()), json.dumps(chat.prompt(tools=[look]))
        assert ('expand(\\"m3' in bare, '"expand"' in bare) == (False, False)
        assert '"name": "expand"' in offered
        chat.record(call("x", "expand", handle="m3", lines="1"))
        assert chat.open_calls() == ()
        own = json.loads(json.dumps(look).replace('"look"', '"expand"'))
        chat.append("And now?")
        assert "Show content of this conversation" not in json.dumps(chat.prompt(tools=[own]))
