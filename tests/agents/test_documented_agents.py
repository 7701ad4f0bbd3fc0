"""The documented tables and scenarios of checkpoints and tool filtering, with agents from the builder.

Each test checks the requests, the view and the history.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import AgentBuilder, ChatAgent, Conversation
from foveate.core.checker import check
from foveate.core.edits import Summarize
from foveate.core.messages import Message
from foveate.testing import ScriptedModel, call, calls
from foveate.testing.stubs import ScriptedSummarizer

PROVIDERS = ("openai", "anthropic")
each_provider = pytest.mark.parametrize("provider", ["openai", pytest.param("anthropic", marks=pytest.mark.slow)])


def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "there is much to see here. " * 40


def counting() -> ScriptedSummarizer:
    """Answers S1, S2, ..."""
    numbers = iter(range(1, 10**6))
    return ScriptedSummarizer([lambda _: f"S{next(numbers)}"])


class Mind:
    """A model that answers. For `look at 3 places` it first calls the tool three times at once."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: dict[str, Any]) -> Message | str:
        said = _last_user_text(request)
        if said.startswith("look at ") and not _is_answered(request):
            many = [f"tc_{self.calls + k + 1}" for k in range(int(said.split()[2]))]
            self.calls += len(many)
            return calls(*[call(id, "look", place=id) for id in many])
        return f"This is what I say to that: {said}"


def _last_user_text(request: dict[str, Any]) -> str:
    for message in reversed(request["messages"]):
        if message["role"] == "user":
            content = message["content"]
            texts = [content] if isinstance(content, str) else [b["text"] for b in content if b["type"] == "text"]
            if texts:
                return str(texts[-1])
    return ""


def _is_answered(request: dict[str, Any]) -> bool:
    last = request["messages"][-1]
    return last["role"] == "tool" or (
        last["role"] == "user" and any(isinstance(b, dict) and b["type"] == "tool_result" for b in last["content"])
    )


def built(provider: str = "openai", tool: Any = None, **more: Any) -> tuple[ChatAgent, ScriptedModel]:
    model = ScriptedModel(Mind(), provider)
    builder = AgentBuilder().use(model).with_window(1_000_000).add_tool(look).with_limits(turns=500)
    builder = builder.with_expanding(False)  # As documented: [Omitted], without a handle.
    builder = builder.with_summarization(100, 10, tool or counting(), template="[Summary up to {turn}] {summary}")
    return builder.with_keywords(**more).build_chat_agent(), model


def talk(agent: ChatAgent, until: int) -> None:
    """Add questions and answers up to this number of messages."""
    while len(agent.conversation) < until:
        agent.send(f"Question {len(agent.conversation) + 1}: and what about this?")


def memory(chat: Conversation) -> list[int]:
    return [entry.position for entry in chat.view if entry.source is not None]


def summaries(chat: Conversation) -> list[str]:
    return [entry.message.text for entry in chat.view if entry.kind == "summary"]


def covered(chat: Conversation) -> list[tuple[int, int]]:
    """Return the first and the last message of every checkpoint."""
    where = {row.id: row.position for row in chat.history()}
    made = (edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize))
    return [(where[edit.span.first], where[edit.span.last]) for edit in made]


def run(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


def sent(model: ScriptedModel) -> list[str]:
    """Return the texts of the last request without the system prompt."""
    texts = []
    for message in model.requests[-1]["messages"]:
        content = message["content"]
        if message["role"] != "system":
            texts.append(content if isinstance(content, str) else "".join(b.get("text", "") for b in content or ()))
    return texts


# -------------------------------------------------------------------------------------------------------- checkpoints


@each_provider
def test_5_4_01_to_05_checkpoints_follow_the_documented_table(provider: str):
    agent, model = built(provider)
    chat = agent.conversation
    talk(agent, 98)
    assert (memory(chat), covered(chat)) == (run(1, 98), [])
    agent.send("Question 99.")  # The 50th request holds 99 messages, all unchanged.
    assert len(sent(model)) == 99
    table = {}
    for messages in (100, 110, 120, 200):
        talk(agent, messages)
        table[messages] = (memory(chat), len(covered(chat)), len(chat.history()))
    assert table == {
        100: (run(91, 100), 1, 100),
        110: (run(101, 110), 2, 110),
        120: (run(111, 120), 3, 120),
        200: (run(191, 200), 11, 200),
    }
    assert covered(chat)[:3] == [(1, 90), (1, 100), (1, 110)]
    assert max(len(request["messages"]) for request in model.requests) == 99


def test_5_4_03_and_06_a_request_has_one_summary_and_the_newest_messages():
    asked = counting()
    agent, model = built(tool=asked)
    talk(agent, 104)
    agent.send("Question 105.")
    said = sent(model)
    assert (len(said), said[0]) == (16, "[Summary up to 89] S1")
    assert said[1].startswith("Question 91")
    assert said[-1] == "Question 105."
    talk(agent, 112)
    said = sent(model)
    assert (len(said), said[0]) == (12, "[Summary up to 99] S2")
    assert said[1].startswith("Question 101")
    assert asked.requests[1].previous == "S1"
    rows = agent.conversation.history(91, 100)
    assert [message.text for message in asked.requests[1].messages] == [row.message.text for row in rows]


@each_provider
def test_5_4_07_the_system_prompt_is_first_and_not_counted(provider: str, tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    systems: set[str] = set()
    for until in (100, 120):
        agent, model = built(provider, store=store, system="Be brief.")
        with agent:
            talk(agent, until)
            assert memory(agent.conversation) == run(until - 9, until)
        for request in model.requests:
            first = request["system"] if provider == "anthropic" else request["messages"][0]["content"]
            systems.add(first if isinstance(first, str) else first[0]["text"])
    assert systems == {"Be brief."}


@each_provider
def test_5_4_08_a_jump_past_100_messages_keeps_the_newest_10(provider: str):
    agent, _ = built(provider)
    chat = agent.conversation
    talk(agent, 80)
    agent.send("look at 2 places")  # Five messages.
    talk(agent, 95)
    agent.send("look at 6 places")  # 96 and 97, then six answers at once: 103.
    assert (covered(chat), len(chat)) == ([(1, 93)], 104)
    assert memory(chat) == run(94, 104)
    talk(agent, 112)
    assert covered(chat) == [(1, 93)]
    agent.send("And?")  # 113, seen before the request for it.
    assert covered(chat) == [(1, 93), (1, 103)]


@each_provider
def test_5_4_09_a_summary_never_separates_a_call_from_its_results(provider: str):
    agent, _ = built(provider)
    chat = agent.conversation
    talk(agent, 88)
    agent.send("look at 2 places")  # 90 calls, 91 and 92 answer.
    assert [row.message.role for row in chat.history(89, 93)] == ["user", "assistant", "tool", "tool", "assistant"]
    talk(agent, 101)
    assert covered(chat) == [(1, 89)]
    assert memory(chat) == run(90, 101)
    assert check(chat.view, profile=chat._agent.profile) == []


@pytest.mark.parametrize("pairs", [60, 110, pytest.param(200, marks=pytest.mark.slow)])
def test_5_4_10_the_store_has_every_message_once_and_in_order(pairs: int, tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    agent, _ = built(store=store)
    with agent:
        for n in range(pairs):
            agent.send(f"Question {n}")
    agent, _ = built(store=store)
    with agent:
        said = [row.message.text for row in agent.conversation.history()]
        assert said == [
            text for n in range(pairs) for text in (f"Question {n}", f"This is what I say to that: Question {n}")
        ]
        assert agent.conversation.journal.verify() == []


@each_provider
def test_5_4_11_a_resumed_agent_has_the_summary_and_the_newest(provider: str, tmp_path):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    agent, _ = built(provider, store=store)
    with agent:
        talk(agent, 104)
        agent.send("look at 3 places")
        assert len(agent.conversation) == 110
    agent, model = built(provider, store=store)
    with agent:
        chat = agent.conversation
        # The calls at 106 and their results cannot be separated; the second checkpoint was due at 110.
        assert (memory(chat), len(covered(chat))) == (run(101, 110), 2)
        assert [row.message.result.call_id for row in chat.history(107, 109) if row.message.result] == [
            "tc_1",
            "tc_2",
            "tc_3",
        ]
        talk(agent, 118)
        assert len(covered(chat)) == 2
        talk(agent, 120)
        assert len(covered(chat)) == 3
        assert sent(model)[0].startswith("[Summary up to 99] S")


def test_5_4_12_a_failed_summary_changes_nothing_and_is_tried_again():
    asked = ScriptedSummarizer([ConnectionError("no route"), lambda _: "S1"])
    agent, model = built(tool=asked)
    chat = agent.conversation
    talk(agent, 100)
    assert (memory(chat), covered(chat), len(asked.requests)) == (run(1, 100), [], 1)
    assert [event.kind for event in chat.journal.events()][-1] == "compaction-failed"
    talk(agent, 102)
    assert (len(sent(model)), covered(chat)) in [(101, [(1, 92)]), (11, [(1, 91)])]
    talk(agent, 104)
    assert (len(covered(chat)), summaries(chat)[0][-2:]) == (1, "S1")


# -------------------------------------------------------------------------------------------------- tool result filter


def searching(keep: int, count: int, provider: str) -> tuple[Any, ScriptedModel]:
    """Run an agent that searches several times in a row, and then answers."""

    def search(query: str) -> str:
        """Search."""
        return f"{query}: " + "x" * (6_000 - 220 * int(query[3:]))

    script = [*[call(f"tc_{n}", "search", query=f"tc_{n}") for n in range(1, count + 1)], "Done."]
    model = ScriptedModel(script, provider)
    builder = AgentBuilder().use(model).with_window(1_000_000).add_tool(search).with_expanding(False)
    agent = builder.with_tool_result_filtering(keep).build_react_agent()
    agent.run("Search for visa information")
    return agent, model


def results(request: dict[str, Any]) -> dict[str, str]:
    """Return the texts of the tool results of a request by call id."""
    found = {}
    for message in request["messages"]:
        if message["role"] == "tool":
            found[message["tool_call_id"]] = message["content"]
        for block in message["content"] if isinstance(message["content"], list) else ():
            if isinstance(block, dict) and block["type"] == "tool_result":
                content = block["content"]
                found[block["tool_use_id"]] = content if isinstance(content, str) else content[0]["text"]
    return found


@each_provider
def test_5_4_14_of_ten_results_the_last_two_stay(provider: str):
    agent, model = searching(2, 10, provider)
    chat = agent.conversation
    seen = results(model.requests[-1])
    assert {id: text for id, text in seen.items() if text == "[Omitted]"} == {
        f"tc_{n}": "[Omitted]" for n in range(1, 9)
    }
    assert [id for id, text in seen.items() if text != "[Omitted]"] == ["tc_9", "tc_10"]
    assert (len(chat.history(1, 21)), len(chat.as_of(11))) == (21, 21)
    kept = [row.message for row in chat.history() if row.message.role == "assistant"]
    assert [entry.message for entry in chat.view if entry.message.role == "assistant"] == kept
    assert "[Omitted]" not in "".join(row.message.text for row in chat.history())  # 5.4.18
    agent.close()


@pytest.mark.parametrize(
    ("keep", "count", "placeholders"), [(1, 3, 2), (4, 10, 6), (0, 10, 0), (10, 10, 0), (5, 10, 5), (1, 10, 9)]
)
def test_5_4_15_older_results_become_placeholders(keep: int, count: int, placeholders: int):
    agent, model = searching(keep, count, "openai")
    seen = results(model.requests[-1])
    assert (len(seen), sum(text == "[Omitted]" for text in seen.values())) == (count, placeholders)
    agent.close()


def test_5_4_16_of_parallel_calls_the_last_results_stay():
    model = ScriptedModel(Mind())
    builder = AgentBuilder().use(model).with_window(1_000_000).add_tool(look).with_tool_result_filtering(2)
    with builder.with_expanding(False).build_react_agent() as agent:
        agent.run("look at 3 places")
    assert [text[:9] for text in results(model.requests[-1]).values()] == ["[Omitted]", "tc_2: the", "tc_3: the"]


def test_the_tokens_of_a_request_shrink_as_documented():
    """By about 80 to 90 %, with two of ten results kept, or one."""
    whole, two, one = (searching(keep, 10, "anthropic")[1].billed[-1].total for keep in (0, 2, 1))
    assert (round(1 - two / whole, 2), round(1 - one / whole, 2)) == (0.82, 0.9)


# ------------------------------------------------------------------------------------------------ whatever is said


@settings(max_examples=settings.default.max_examples // 4)
@given(st.lists(st.integers(0, 4), min_size=10, max_size=30), st.sampled_from(PROVIDERS), st.integers(0, 3))
def test_every_request_is_legal_and_complete_for_any_script(places: list[int], provider: str, keep: int):
    """The scripted model refuses illegal requests. Each message is shown or summarized, never both."""
    model = ScriptedModel(Mind(), provider)
    builder = AgentBuilder().use(model).with_window(1_000_000).add_tool(look)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = builder.with_summarization(12, 4, counting(), tool_results_keep_recent=keep).build_chat_agent()
    said = 0
    with agent:
        for many in places:
            agent.send(f"look at {many} places" if many else "Tell me of it, in as many words as it takes.")
            said += 2 + many + bool(many)
            chat = agent.conversation
            assert len(chat) == said
            last = max((last for _, last in covered(chat)), default=0)
            assert [n for n in memory(chat) if n > last] == run(last + 1, said)
            assert len(summaries(chat)) == (last > 0)
            assert len(memory(chat)) < 12 + 4 + 6
