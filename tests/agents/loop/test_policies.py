"""Policies treat the results of actions as they treat the results of tools."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import AgentBuilder, LoopAgent, ReActAgent, open_conversation
from foveate.core.messages import Message, Text
from foveate.testing import ScriptedModel, call, text_of
from foveate.types import Lease

from .scripts import act, done

_RESULTS = 20
_PRESETS = ["none", "balanced", "keep-last-2", "prune", "browser", "frugal", "coding", "expire"]
_PRESETS += ["retain", "recap", "checkpoint", "prune-and-compact"]


def fetch(number: int) -> str:
    """Fetch a page."""
    return text_of(1_500, number)


def loop_model(results: int = _RESULTS) -> ScriptedModel:
    return ScriptedModel([*(act(("fetch", {"number": n})) for n in range(results)), done("I read them.")])


def billed(model: ScriptedModel, agent: Any) -> int:
    """Return the tokens of all requests. The model refuses illegal requests, and those above its window."""
    with agent:
        assert str(agent.run("Read all pages.")) == "I read them."
    return sum(bill.total for bill in model.billed)


@pytest.mark.parametrize("window", [pytest.param(100_000, marks=pytest.mark.slow), 32_000])
@pytest.mark.parametrize("policy", _PRESETS)
def test_a_loop_agent_bills_about_what_a_react_agent_bills(policy: str, window: int):
    model = loop_model()
    options: dict[str, Any] = {"policy": policy, "window": window, "summarizer": "digest"}
    loop = billed(model, LoopAgent(model, actions=[fetch], **options))
    calls = [call(f"c{n}", "fetch", number=n) for n in range(_RESULTS)]
    model = ScriptedModel([*calls, "I read them."])
    react = billed(model, ReActAgent(model, tools=[fetch], **options))
    # The instructions of a loop agent are longer, which counts where little else is sent.
    assert loop <= (1.25 if policy == "keep-last-2" else 1.2) * react


def texts(request: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in request["messages"]]
    return [content if isinstance(content, str) else content[0]["text"] for content in contents]


def test_filtering_of_the_builder_keeps_the_newest_actions_whole():
    """The NovaCore document: tool result filtering is for all agents."""
    model = loop_model(8)
    builder = AgentBuilder().use(model).with_window(100_000).with_tool_result_filtering(2)
    agent = builder.with_expanding(False).with_keywords(actions=[fetch]).build_loop_agent()
    billed(model, agent)
    results = [text for text in texts(model.requests[-1]) if text.startswith("Result of fetch")]
    assert [text for text in results[:-2] if text != "Result of fetch:\n[Omitted]"] == []
    assert [len(text) > 1_000 for text in results] == [False] * 6 + [True] * 2


@pytest.mark.parametrize("policy", ["keep-last-2", "balanced", "frugal", "browser"])
@pytest.mark.parametrize("mark", ["lease", "origin"])
def test_results_that_a_host_sends_as_user_text_are_results(policy: str, mark: str):
    chat = open_conversation("marked", window=16_000, policy=policy)
    chat.append("Read all pages.")
    for number in range(20):
        chat.record(Message("assistant", (Text(f"I read page {number}."),)))
        result = Message("user", (Text(fetch(number)),))
        if mark == "lease":
            chat.append(result, lease=Lease(message_type="action-result", action_id="fetch"))
        else:
            chat.append(result, origin="tool")
        chat.prompt()
    entries = chat.prepare().entries
    assert [entry.handle for entry in entries if entry.is_input] == ["m1"]
    receipts = chat.journal.receipts()
    assert receipts
    assert "floor" not in {policy for receipt in receipts for policy in receipt.policies}
