"""The documented examples of message expiration, with their texts and numbers, in a real agent."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from foveate import LoopAgent, open_store
from foveate.agents import Tool, ToolCalled, tool
from foveate.agents.events import MessageLifecycleEvent
from foveate.core.catalog import Action, Binding, Prompt
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel
from foveate.types import Lease

from . import scripts
from .documented import DOCUMENTED_TEXTS
from .scripts import act, done, expand, texts, think

options = partial(scripts.options, settings={"expire": DOCUMENTED_TEXTS})
scripted_agent = partial(scripts.scripted_agent, settings={"expire": DOCUMENTED_TEXTS})
run_both = partial(scripts.run_both, settings={"expire": DOCUMENTED_TEXTS})

HEAD = "Result of search:\n"
NOTE = "...\n\n[Compacted: showing first 500 of 5000 characters. Agent can request expansion if needed.]"


def result_of(characters: int) -> str:
    """Return a text that gives the whole message this length."""
    return "".join(f"hit {n:03}: a page on agents\n" for n in range(400))[: characters - len(HEAD)]


def search(query: str = "") -> str:
    """Search the web."""
    return result_of(5_000)


def configured(*bindings: Binding, prompts: tuple[Prompt, ...] = (), default_prompt: str = "") -> MemoryStore:
    store = open_store("memory:")
    assert isinstance(store, MemoryStore)
    for prompt in prompts:
        store.put_prompt("", prompt)
    store.put_action("", Action("search", default_compact_prompt=default_prompt))
    for binding in bindings:
        store.put_binding("", binding)
    return store


COMPACT = Binding("sage", "search", 2, "compact", "first_chars", 500)
REMOVE = Binding("sage", "search", 1, "remove")


def lengths(model: ScriptedModel, place: int = 2) -> list[int]:
    """Return the length of the result in each request from turn 2 on."""
    return [len(texts(request)[place]) for request in model.requests[1:]]


def test_example_1_a_search_result_is_compacted_in_the_fourth_turn():
    script = [act("search"), *[think()] * 5, done()]
    agent, model = scripted_agent(script, actions=[search], store=configured(COMPACT))
    with agent:
        agent.run("What is there on agents?")
    assert lengths(model) == [5000, 5000, 594, 594, 594, 594]
    assert texts(model.requests[3])[2] == (HEAD + result_of(5_000))[:500] + NOTE


def test_example_2_an_expanded_message_gets_a_new_lease():
    script = [act("search"), *[think()] * 4, expand(2, "hit 47"), *[think()] * 3, done()]
    outcome, model = run_both(script, actions=[search], store=lambda: configured(COMPACT))
    assert outcome.is_done
    #                          2     3     4    5    6    7     8     9     10
    assert lengths(model) == [5000, 5000, 594, 594, 594, 5000, 5000, 5000, 594]
    assert len(texts(model.requests[6])) == len(texts(model.requests[5]))  # The step left no trace.


def test_example_2_with_the_documented_spelling():
    step = '{"step": "ExpandMessage", "messageIndex": 2, "reason": "User asked about search result #47"}'
    _, model = run_both(
        [act("search"), *[think()] * 3, step, done()], actions=[search], store=lambda: configured(COMPACT)
    )
    assert lengths(model) == [5000, 5000, 594, 594, 5000]


def test_example_3_an_override_has_priority():
    override = Lease(1, "compact", "first_chars", 200, preserve_original=True)
    never = tool(lambda: result_of(3_000), name="search", lease=Lease(expiration_mode="none"))
    for store in (lambda: configured(Binding("sage", "search")), None):
        script = [act("search"), think(), expand("m3"), think(), done()]
        _, model = run_both(script, actions=[never], store=store, message_expiration_override=override)
        assert lengths(model) == [3000, 294, 3000, 3000]


def test_example_4_a_summary_uses_the_prompt_of_the_action():
    asked: list[tuple[str, dict[str, Any]]] = []

    def summarize(request: Any) -> str:
        asked.append((request.prompt, dict(request.facts)))
        return '{"summary": "200 pages; hit 47 is the newest."}'

    summed_up = Binding("sage", "search", 3, "compact", "summary")
    store = configured(
        summed_up, prompts=(Prompt("database-query-summary", "{{ text }}"),), default_prompt="database-query-summary"
    )
    script = [act("search"), *[think()] * 5, done()]
    agent, model = scripted_agent(script, actions=[search], store=store, summarizer=summarize)
    with agent:
        agent.run("Which page is the newest?")
    facts = {"originalLength": 5000, "targetLength": 500, "messageType": "action-result", "turnAdded": 1}
    assert asked == [("database-query-summary", facts)]
    told = "[AI Summary of 5000 chars. Agent can request full expansion if needed.]\n\n200 pages; hit 47 is the newest."
    assert [texts(request)[2] == told for request in model.requests[1:]] == [False] * 3 + [True] * 3


def test_example_5_lifecycle_events_are_sent():
    events: list[MessageLifecycleEvent] = []
    script = [act("search"), *[think()] * 3, expand(2, "hit 47"), *[think()] * 3, done()]
    agent, _ = scripted_agent(script, actions=[search], store=configured(COMPACT), on_message_lifecycle=events.append)
    with agent:
        agent.run("What is there on agents?")
    changed = [event for event in events if event.type != "message-added"]
    assert [(event.turn, event.type, event.reason, event.tokens_saved, event.can_expand) for event in changed] == [
        (4, "message-compacted", "Compacted using First N Chars (saved 1101 tokens)", 1101, True),
        (6, "message-expanded", "hit 47", 0, False),
        (9, "message-compacted", "Compacted using First N Chars (saved 1101 tokens)", 1101, True),
    ]
    assert [event.message_index for event in changed] == [2, 2, 2]
    assert [len(event.message.text) for event in changed if event.message] == [594, 5000, 594]
    added = [event for event in events if event.type == "message-added" and event.reason == "action-result of search"]
    assert [(event.turn, event.message_index) for event in added] == [(1, 2)]


def test_1_4_04_a_removed_message_has_two_events():
    events: list[MessageLifecycleEvent] = []
    script = [think(), think(), act("search"), think(), think(), done()]
    agent, model = scripted_agent(
        script, actions=[search], store=configured(REMOVE), on_message_lifecycle=events.append
    )
    with agent:
        agent.run("Go.")
    told = [(event.turn, event.type, event.reason) for event in events if event.type != "message-added"]
    assert told == [
        (5, "message-expired", "Expired after 2 turns (limit: 1)"),
        (5, "message-removed", "Removed due to expiration"),
    ]
    assert [len(event.message.text) for event in events if event.type == "message-removed" and event.message] == [5000]
    assert [sum(text.startswith(HEAD) for text in texts(request)) for request in model.requests] == [0, 0, 0, 1, 0, 0]


def test_1_4_07_disabled_expiration_has_priority():
    _, model = run_both(
        [act("search"), *[think()] * 4, done()],
        actions=[search],
        store=lambda: configured(REMOVE),
        message_expiration_override=Lease(disable_expiration=True),
    )
    assert lengths(model) == [5000] * 5


def test_1_4_08_an_original_that_is_not_preserved_is_refused():
    script = [act("search"), think(), expand(2), done()]
    outcome, model = run_both(
        script, actions=[search], message_expiration_override=Lease(1, "compact", preserve_original=False)
    )
    assert outcome.is_done
    assert texts(model.requests[3])[2].endswith("...\n\n[Compacted: showing first 500 of 5000 characters.]")
    assert texts(model.requests[3])[-1] == (
        "Your answer could not be carried out: m3 cannot be expanded: its original was released, and the store has "
        "only an outline of it. Answer again, with one JSON object as your instructions describe it."
    )


@pytest.mark.parametrize("asked", [-1, 99, 0, 1, "m99", "none", "m3"])
def test_1_4_13_an_impossible_expansion_changes_nothing(asked: str | int):
    outcome, model = run_both([act("search"), expand(asked), done()], actions=[search])
    assert outcome.is_done
    assert texts(model.requests[2])[:3] == texts(model.requests[1])
    assert texts(model.requests[2])[-1].startswith("Your answer could not be carried out: ")


def test_1_4_15_a_hundred_actions_are_one_turn():
    begun = []

    def look(item: int) -> str:
        """Look at an item."""
        begun.append(item)
        return f"item {item}"

    script = [act("search"), act(*(("look", {"item": n}) for n in range(100))), think(), think(), done()]
    agent, model = scripted_agent(script, actions=[search, look], store=configured(COMPACT))
    with agent:
        called = sum(isinstance(event, ToolCalled) for event in agent.stream("Look at all."))
    assert (called, sorted(begun)) == (101, list(range(100)))
    assert lengths(model) == [5000, 5000, 594, 594]
    shown = texts(model.requests[2])
    assert shown[4:104] == [f"Result of look ({n + 1} of 100):\nitem {n}" for n in range(100)]


def test_1_4_17_records_keep_every_output_whole():
    store = configured(REMOVE)
    agent, _ = scripted_agent([act("search"), *[think()] * 4, done()], actions=[search], store=store)
    with agent:
        run = agent.run("Go.").run
        steps = agent.conversation.journal.steps(run.id)
        rows = {row.stamp.step: row for row in agent.conversation.history()}
        assert [entry.handle for entry in agent.conversation.view if "search:" in entry.message.text] == []
    (step,) = [step for step in steps if step.kind == "action"]
    assert (step.name, step.input, step.output, step.state) == ("search", "{}", result_of(5_000), "done")
    linked = rows["r1/2"]
    assert (linked.id, linked.message.text, linked.stamp.origin) == (step.message, HEAD + step.output, "tool")
    assert linked.stamp.lease == Lease(
        1, "remove", message_type="action-result", action_id="search", agent_action_id="sage/search"
    )


def test_1_4_18_merged_results_have_the_strictest_lease():
    one = tool(lambda: "a" * 900, name="one", lease=Lease(2, "compact", "first_chars", 500))
    other = tool(lambda: "b" * 900, name="other", lease=Lease(5, "remove"))
    agent, model = scripted_agent(
        [act("one", "other"), *[think()] * 3, done()], actions=[one, other], merge_results=True
    )
    with agent:
        run = agent.run("Go.").run
        (result,) = [row for row in agent.conversation.history() if row.stamp.lease and row.stamp.lease.action_id]
        linked = [step.message for step in agent.conversation.journal.steps(run.id) if step.kind == "action"]
    assert result.message.text == (
        f"Action results:\n\nResult of one (1 of 2):\n{'a' * 900}\n\nResult of other (2 of 2):\n{'b' * 900}"
    )
    assert (result.stamp.lease.expiration_turns, result.stamp.lease.expiration_mode) == (2, "remove")
    assert linked == [result.id, result.id]
    assert [len(texts(request)) for request in model.requests] == [1, 3, 5, 6, 8]


def test_1_4_19_a_callback_that_raises_changes_nothing():
    def failing(event: MessageLifecycleEvent) -> None:
        raise RuntimeError("mine")

    script = [act("search"), *[think()] * 3, expand(2), think(), done()]
    requests, told = [], []
    for listener in (failing, None):
        kinds: list[str] = []
        agent, model = scripted_agent(
            script,
            actions=[search],
            store=configured(COMPACT),
            on_message_lifecycle=listener,
            on_event=lambda event, kinds=kinds: kinds.append(event.kind),
        )
        with agent:
            assert agent.run("Go.").is_done
        requests.append(model.requests)
        told.append(kinds)
    assert requests[0] == requests[1]
    assert told[0] == told[1]
    assert "message-compacted" in told[0]


def test_1_4_20_saved_tokens_are_the_difference():
    saved: list[int] = []

    def count(event: MessageLifecycleEvent) -> None:
        if event.type == "message-compacted":
            saved.append(event.tokens_saved)

    def looking(size: int) -> Tool:
        return tool(lambda: "x" * size, name=f"look{size}", lease=Lease(1, "compact", "first_chars", 500))

    looks = [looking(size) for size in (400, 530, 2_000, 5_000)]
    model = ScriptedModel([act(*(item.name for item in looks)), think(), done()])
    with LoopAgent(model, actions=looks, on_message_lifecycle=count, **options()) as agent:
        agent.run("Go.")
    before, after = texts(model.requests[1])[2:6], texts(model.requests[2])[2:6]

    def tokens(text: str) -> int:
        return -(-len(text) // 4)

    assert sum(saved) == sum(map(tokens, before)) - sum(map(tokens, after))
    assert [len(text) for text in after] == [len(before[0]), len(before[1]), 594, 594]
