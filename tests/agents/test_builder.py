"""AgentBuilder: the keywords of each method, identical agents, and refused values."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate import AgentBuilder, ChatAgent, Limits, ReActAgent, tool
from foveate.agents import LoopAgent, TodoList, WorkingDirectory
from foveate.agents.shrink_settings import summarizer_from
from foveate.conversation.plugins import AdditionalContent
from foveate.core.messages import ToolResult
from foveate.core.summaries import SummaryRequest
from foveate.errors import BadSetting
from foveate.models.openai import OpenAIModel
from foveate.policies import checkpoint
from foveate.testing import ScriptedModel, answer, call, say, user
from foveate.testing.server import StubServer
from foveate.types import Event

MODEL = "anthropic:claude-haiku-4-5"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ADD = tool(add)
SCOUT = foveate.ReActAgent(name="scout")


def written(request: SummaryRequest) -> str:
    return f"{request.previous} up to {request.facts['to_turn']}"


def approve(call: object) -> bool:
    return True


def heard(event: Event) -> None:
    pass


clock = foveate.plugin(name="clock")(lambda content: "noon")

STEPS: dict[str, tuple[Callable[[AgentBuilder], AgentBuilder], dict[str, Any]]] = {
    "model": (lambda b: b.use(MODEL), {"model": MODEL}),
    "history": (lambda b: b.with_history("sqlite:///chat.db"), {"store": "sqlite:///chat.db"}),
    "conversation": (lambda b: b.for_conversation("support-456"), {"conversation": "support-456"}),
    "system": (lambda b: b.with_system("Be brief."), {"system": "Be brief."}),
    "window": (lambda b: b.with_window(50_000, reserve=2_000), {"window": 50_000, "reserve": 2_000}),
    "tool": (lambda b: b.add_tool(ADD), {"tools": [ADD]}),
    "limits": (lambda b: b.with_limits(turns=9, money=0.5), {"limits": Limits(turns=9, money=0.5)}),
    "approval": (lambda b: b.with_approval(approve, all=True), {"approve": approve, "approve_all": True}),
    "event": (lambda b: b.on_event(heard), {"on_event": heard}),
    "plugin": (lambda b: b.with_plugin(clock), {"plugins": [clock]}),
    "expanding": (lambda b: b.with_expanding(where="tail"), {"expand": True, "expand_where": "tail"}),
    "more": (lambda b: b.with_keywords(tenant="t"), {"tenant": "t"}),
    "sub-agents": (lambda b: b.with_sub_agents(SCOUT).with_sub_agents(SCOUT), {"sub_agents": [SCOUT, SCOUT]}),
}


@given(st.permutations(list(STEPS)), st.integers(0, len(STEPS)))
def test_every_method_sets_a_keyword_in_any_order(order: list[str], count: int):
    names = ["model", *[name for name in order[:count] if name != "model"]]
    builders = [AgentBuilder()]
    for name in names:
        builders.append(STEPS[name][0](builders[-1]))
    expected: dict[str, Any] = {}
    for builder, name in zip(builders[1:], names, strict=True):
        expected = expected | STEPS[name][1]
        assert builder.keywords() == expected


def test_the_documented_example_has_these_keywords():
    builder = (
        AgentBuilder()
        .use(MODEL)
        .with_summarization(trigger_at=100, keep_recent=10, tool=written)
        .with_tool_result_filtering(keep_recent=5)
        .with_history("sqlite:///chat.db")
        .for_conversation("support-456")
        .with_plugin(clock)
        .add_tool(ADD)
    )
    assert builder.keywords() == {
        "model": MODEL,
        "store": "sqlite:///chat.db",
        "conversation": "support-456",
        "tools": [ADD],
        "plugins": [clock],
        "policy": "none",
        "settings": {
            "checkpoint": {"trigger_at": 100, "keep_recent": 10},
            "filter": {"keep": 5},
        },
        "summarizer": written,
    }


@pytest.mark.parametrize(
    ("use", "name"),
    [
        ("use_openai", "openai:m"),
        ("use_anthropic", "anthropic:m"),
        ("use_google", "google:m"),
        ("use_xai", "xai:m"),
    ],
)
def test_a_key_comes_from_the_environment_or_is_never_shown(use: str, name: str):
    pytest.importorskip("anthropic" if use == "use_anthropic" else "openai")
    plain = getattr(AgentBuilder(), use)("m")
    assert plain.keywords() == {"model": name}
    keyed = getattr(AgentBuilder(), use)("m", "s3cret")
    model = keyed.keywords()["model"]
    assert (model.name, model.asynchronous) == (name, False)
    assert keyed.keywords(asynchronous=True)["model"].asynchronous
    assert model._client().api_key == "s3cret"
    assert "s3cret" not in f"{keyed!r} {keyed} {model!r} {keyed.keywords()}"
    model.close()


def test_the_text_of_a_builder_shows_no_password():
    builder = AgentBuilder().use(MODEL).with_window(9_000).add_tool(ADD).with_tool_result_filtering(3)
    assert repr(builder.with_history("postgresql://ada:s3cret@db/chats")) == (
        "AgentBuilder('anthropic:claude-haiku-4-5', window=9000, store='postgresql:...', filter={}, "
        "tool results kept=3, tools=['add'])"
    )
    assert "store='sqlite:///chat.db'" in repr(builder.with_history("sqlite:///chat.db"))


def test_google_and_xai_use_their_openai_compatible_addresses(monkeypatch):
    pytest.importorskip("openai")
    for use, host in (("use_google", "generativelanguage.googleapis.com"), ("use_xai", "api.x.ai")):
        model = getattr(AgentBuilder(), use)("m", "k").keywords()["model"]
        assert isinstance(model, OpenAIModel)
        assert model._client().base_url.host == host
        model.close()


# ------------------------------------------------------------------------------------------- both ways make the same


def script() -> list[Any]:
    return [call("c1", "add", a=2, b=3), "It is 5.", *[f"Answer {n}." for n in range(12)]]


def talked(agent: Any) -> tuple[Any, ...]:
    """Return requests, history and view after a conversation with tools and checkpoints."""
    with agent:
        said = agent.run if hasattr(agent, "run") else agent.send
        outcomes = [said("What is 2 + 3?"), *[said(f"Question {n}?") for n in range(12)]]
        chat = agent.conversation
        texts = [(row.message, row.stamp.origin, row.stamp.turn, row.stamp.step) for row in chat.history()]
        return [str(item) for item in outcomes], texts, chat.journal.records(), [entry.message for entry in chat.view]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_builder_and_keywords_create_identical_agents(provider: str):
    ids = {"clock": lambda: 7, "new_id": lambda: "run"}
    told: list[Any] = []
    for kind, made in (
        ("chat", "built"),
        ("chat", "plain"),
        ("react", "built"),
        ("react", "plain"),
    ):
        model = ScriptedModel(script(), provider)
        if made == "built":
            builder = (
                AgentBuilder()
                .use(model)
                .with_system("Be brief.")
                .with_window(100_000)
                .with_summarization(trigger_at=12, keep_recent=5, tool=written, tool_results_keep_recent=1)
                .with_plugin(clock)
                .add_tool(add)
                .with_limits(turns=9)
                .with_keywords(name="one", **ids)
            )
            agent: Any = builder.build_chat_agent() if kind == "chat" else builder.build_react_agent()
        else:
            agent = (ChatAgent if kind == "chat" else ReActAgent)(
                model,
                name="one",
                system="Be brief.",
                window=100_000,
                policy="none",
                settings={
                    "checkpoint": {"trigger_at": 12, "keep_recent": 5},
                    "filter": {"keep": 1},
                },
                summarizer=written,
                plugins=[clock],
                tools=[add],
                limits=Limits(turns=9),
                **ids,  # type: ignore[arg-type]
            )
        told.append((talked(agent), model.requests))
    assert told[0] == told[1]
    assert told[2] == told[3]
    assert len(told[0][0][2]) > 3


def test_async_agents_are_built():
    async def main() -> list[str]:
        said = []
        builder = AgentBuilder().with_window(100_000).add_tool(add)
        for build, begin in (("build_async_chat_agent", "send"), ("build_async_react_agent", "run")):
            built = getattr(builder.use(ScriptedModel(script())), build)()
            async with built as agent:
                said.append(str(await getattr(agent, begin)("What is 2 + 3?")))
        return said

    assert asyncio.run(main()) == ["It is 5.", "It is 5."]


def test_a_loop_agent_has_instructions_actions_and_expiry():
    builder = AgentBuilder().use(MODEL).with_system("Add.").add_tool(ADD).with_tool_result_filtering(3)
    assert builder.keywords("loop") == {
        "model": MODEL,
        "instructions": "Add.",
        "actions": [ADD],
        "policy": "none",
        "settings": {"filter": {"keep": 3}},
    }
    assert isinstance(builder.use(ScriptedModel([])).with_window(9_000).build_loop_agent(), LoopAgent)
    with pytest.raises(BadSetting, match="only where an action needs it"):
        builder.with_approval(approve, all=True).keywords("loop")


def test_a_plugin_class_is_called_for_each_agent(tmp_path):
    builder = AgentBuilder().use(MODEL).with_plugin(TodoList).with_plugin(partial(WorkingDirectory, tmp_path, save=2))
    one, other = builder.keywords()["plugins"], builder.keywords()["plugins"]
    assert [type(plugin) for plugin in one] == [TodoList, WorkingDirectory]
    assert all(a is not b for a, b in zip(one, other, strict=True))


def test_the_tool_of_a_plugin_is_offered():
    todos = [{"text": "add", "state": "doing"}]
    model = ScriptedModel([call("c1", "update_todos", todos=todos), "Begun."])
    with AgentBuilder().use(model).with_window(9_000).with_plugin(TodoList()).build_chat_agent() as agent:
        agent.send("Add things.")
        assert "update_todos" in [one["name"] for one in model.requests[0]["tools"]]
        assert agent.conversation.history()[2].message.text == "0 of 1 done. Now: add"
        assert [entry.handle for entry in agent.conversation.prepare() if entry.is_pinned()] == ["m2", "m3"]


def test_every_listener_receives_every_event_even_if_one_fails():
    seen: list[list[str]] = [[], []]

    def failing(event: Event) -> None:
        seen[0].append(event.kind)
        raise ValueError("deaf")

    builder = AgentBuilder().use(ScriptedModel(["Yes."])).with_window(9_000)
    with builder.on_event(failing).on_event(lambda event: seen[1].append(event.kind)).build_chat_agent() as agent:
        agent.send("Hello?")
    assert seen == [["message-added", "message-added"]] * 2


# ----------------------------------------------------------------------------------------------------- what is refused


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(BadSetting) as caught:
        make()
    return str(caught.value)


def test_5_4_13_impossible_summarization_is_refused():
    assert refused(lambda: AgentBuilder().with_summarization(trigger_at=10, keep_recent=10)) == (
        "keep_recent=10 must be less than trigger_at=10. Otherwise there is nothing to summarize."
    )
    assert "keep_recent= (messages) must be a whole number of 1" in refused(
        lambda: AgentBuilder().with_summarization(keep_recent=0)
    )
    assert "unexpected keyword argument 'every'" in refused(lambda: AgentBuilder().with_summarization(every=3))
    low = AgentBuilder().use(ScriptedModel([])).with_window(9_000).with_summarization(keep_recent=3)
    with pytest.warns(UserWarning, match="keep_recent=3 is very low"):
        low.build_chat_agent().close()


def test_5_4_13_the_default_summarizer_is_the_digest():
    builder = AgentBuilder().use(MODEL).with_summarization()
    assert builder.keywords()["summarizer"] == "digest"
    assert builder.with_summarization(enabled=False).keywords() == {"model": MODEL}


@pytest.mark.parametrize("nested_first", [True, False])
def test_5_3_f_two_different_numbers_of_kept_results_are_refused(nested_first: bool):
    def both(inside: int, outside: int) -> AgentBuilder:
        builder = AgentBuilder().use(MODEL)
        if nested_first:
            return builder.with_summarization(tool_results_keep_recent=inside).with_tool_result_filtering(outside)
        return builder.with_tool_result_filtering(outside).with_summarization(tool_results_keep_recent=inside)

    assert refused(lambda: both(3, 5)) == (
        "with_summarization(tool_results_keep_recent=3) and with_tool_result_filtering(keep_recent=5) set two numbers "
        "for one thing. Set it once."
    )
    alone = AgentBuilder().use(MODEL).with_summarization().with_tool_result_filtering(5)
    assert both(5, 5).keywords() == alone.keywords()
    inside = AgentBuilder().use(MODEL).with_summarization(tool_results_keep_recent=5)
    assert inside.keywords() == alone.keywords()


def test_a_later_call_replaces_an_earlier_one():
    builder = AgentBuilder().use(MODEL).with_tool_result_filtering(5).with_window(9_000)
    again = builder.with_tool_result_filtering(1).with_window(10_000).use("demo")
    assert again.keywords() == {
        "model": "demo",
        "window": 10_000,
        "policy": "none",
        "settings": {"filter": {"keep": 1}},
    }
    assert builder.keywords()["settings"]["filter"]["keep"] == 5


def test_placeholders_name_no_handle_without_expanding():
    builder = AgentBuilder().use(MODEL).with_max_multimodal_messages(1)
    assert builder.keywords()["settings"]["filter"] == {"keep": 0, "max_multimodal": 1}
    assert builder.with_expanding(False).keywords()["settings"]["filter"] == {
        "keep": 0,
        "placeholder": "[Omitted]",
        "media_placeholder": "[Image omitted]",
        "max_multimodal": 1,
    }
    assert "with_expanding() must be True or False" in refused(lambda: builder.with_expanding("tail"))  # type: ignore[arg-type]


async def awaited(event: Event) -> None: ...


def test_a_preset_can_be_combined_and_own_policies_cannot():
    builder = AgentBuilder().use(ScriptedModel([])).with_window(9_000).with_tool_result_filtering(5)
    assert builder.with_policy("balanced").keywords()["policy"] == "balanced"
    builder.with_policy("balanced").build_chat_agent().close()
    assert refused(lambda: builder.with_policy(checkpoint()).build_chat_agent()).startswith("Policies of your own")


def test_a_removed_method_names_its_replacement():
    said = refused(lambda: AgentBuilder().with_history_retention(lambda config: None))
    assert "with_summarization(" in said
    assert "with_tool_result_filtering(" in said


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda b: b.build_chat_agent(), "The model is missing. Call .use("),
        (lambda b: b.use(3), "The model must be a name such as"),
        (lambda b: b.use(" "), "blank"),
        (lambda b: b.use(ScriptedModel([]), key="k"), "A Model already has its key"),
        (lambda b: b.use_openai("gpt-4.1-mini", " "), "key= must be a text that is not blank"),
        (lambda b: b.use("gpt-4.1-mini").build_chat_agent(), "Write PROVIDER:MODEL"),
        (lambda b: b.with_tool_result_filtering(-1), "keep_recent= (tool results) must be a whole number of 0"),
        (lambda b: b.with_tool_result_filtering(True), "keep_recent= (tool results) must be a whole number of 0"),
        (lambda b: b.with_max_multimodal_messages(-1), "max_messages= (messages) must be a whole number of 0"),
        (lambda b: b.with_summarization(tool=3).use(MODEL).keywords(), "A tool for summaries must be a function"),
        (lambda b: b.with_limits(turn=3), "Limits have the fields turns, tokens, money, seconds"),
        (lambda b: b.with_limits(turns=0), "The limit turns must be a number above 0"),
        (lambda b: b.add_tools(add, add), "Two tools have the name add"),
        (lambda b: b.with_window("9k"), "The window (tokens) must be a whole number"),
        (lambda b: b.with_system(None), "The system prompt must be a string"),
        (lambda b: b.for_conversation(3), "The name of a conversation must be a string"),
        (lambda b: b.on_event(3), "on_event() must be something that can be called"),
        (lambda b: b.on_event(awaited), "on_event() is called and not awaited"),
        (lambda b: b.use("demo").with_plugin(lambda c: None).build_chat_agent(), "A plugin has a name"),
    ],
)
def test_a_wrong_value_is_refused_with_advice(make: Callable[[AgentBuilder], object], said: str):
    assert said in refused(lambda: make(AgentBuilder()))


@pytest.mark.parametrize("key", ["sk-proj-12345", "xai-12345", "AIza12345"])
def test_a_key_in_the_place_of_the_model_is_not_shown(key: str):
    """The documented order is key, model, so users pass the key first."""
    for use in ("use_openai", "use_anthropic", "use_google", "use_xai", "use"):
        said = refused(lambda use=use: getattr(AgentBuilder(), use)(key))  # type: ignore[misc]
        assert "The model comes first" in said
        assert key not in said


# ------------------------------------------------------------------------------------------- who writes the summaries


def request(**more: Any) -> SummaryRequest:
    messages = (user("Look."), call("c1", "look"), answer("c1", "A cat."), say("It is a cat."))
    return SummaryRequest("checkpoint", messages, 400, **more)


FACTS = {
    "from_turn": 0,
    "to_turn": 3,
    "original_message_count": 4,
    "filtered_message_count": 4,
    "messages": [
        {"role": "user", "text": "Look.", "has_tool_calls": False, "is_tool_result": False},
        {"role": "assistant", "text": "", "has_tool_calls": True, "is_tool_result": False},
        {"role": "tool", "text": "A cat.", "has_tool_calls": False, "is_tool_result": True},
        {"role": "assistant", "text": "It is a cat.", "has_tool_calls": False, "is_tool_result": False},
    ],
}


def test_an_object_with_invoke_receives_and_returns_json():
    asked: list[Any] = []

    class SummaryTool:
        name = "my_summaries"

        def invoke(self, arguments: str) -> Any:
            asked.append(json.loads(arguments))
            return {"summary": "They saw a cat."}

    made: Any = summarizer_from(SummaryTool(), "support-456")
    assert (made.name, made(request(previous="Before."))) == ("my_summaries", '{"summary": "They saw a cat."}')
    assert asked == [{"conversation_id": "support-456", **FACTS, "previous_summary": "Before."}]


def test_the_facts_of_a_summary_request_are_passed_on():
    facts = {**FACTS, "from_turn": 90, "to_turn": 99, "original_message_count": 10}

    class SummaryTool:
        def invoke(self, arguments: str) -> Any:
            return arguments

    made: Any = summarizer_from(SummaryTool(), "c")
    assert json.loads(made(request(facts=facts))) == {"conversation_id": "c", **facts, "previous_summary": ""}


def test_a_summary_tool_receives_the_values_it_names():
    def summarize(conversation_id: str, messages: list[dict[str, Any]], style: str = "short") -> str:
        return f"{style}: {len(messages)} messages of {conversation_id}"

    made: Any = summarizer_from(tool(summarize), "c")
    assert (made.name, made(request())) == ("summarize", "short: 4 messages of c")


def test_a_function_and_a_name_are_summarizers_and_a_class_is_not():
    assert summarizer_from(written, "c") is written
    assert summarizer_from("digest", "c") == "digest"
    for wrong in (3, "", AdditionalContent, None, ToolResult):
        with pytest.raises(BadSetting, match="A tool for summaries"):
            summarizer_from(wrong, "c")


@pytest.mark.parametrize("said", ["S", '{"summary": "S"}', {"summary": "S"}])
def test_5_4_19_an_async_tool_writes_the_checkpoints(said: Any):
    class SummaryTool:
        async def invoke(self, arguments: str) -> Any:
            await asyncio.sleep(0)
            return said

    async def main() -> str:
        model = ScriptedModel(lambda request: "It is as you say, and there is more to it than that.")
        builder = AgentBuilder().use(model).with_window(100_000).with_summarization(8, 5, SummaryTool())
        async with builder.build_async_chat_agent() as agent:
            for n in range(4):
                await agent.send(f"Tell me all that there is to know of the number {n}, please, in many words.")
            return str(agent.conversation.view.entries[0].message.text)

    assert asyncio.run(main()).endswith("\n\nS")


def test_usual_settings_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AgentBuilder().use("demo").with_summarization().build_chat_agent().close()


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_sdk_sends_the_builders_settings_with_its_key(provider: str, monkeypatch):
    pytest.importorskip(provider)
    model = ScriptedModel([call("c1", "add", a=2, b=3), "It is 5."], provider)
    with StubServer(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        builder = getattr(AgentBuilder(), f"use_{provider}")("m", "s3cret")
        builder = builder.with_system("Be brief.").with_window(9_000).add_tool(ADD).with_tool_result_filtering(1)
        made = builder.keywords("react")
        with ReActAgent(**made) as agent:
            assert str(agent.run("What is 2 + 3?")) == "It is 5."
            assert made["model"]._own is not None
        assert made["model"]._own is None  # The agent opened it, so the agent closes it.
        for received in server.received:
            assert "s3cret" in (received.headers.get("authorization", "") + received.headers.get("x-api-key", ""))
            assert (received.values["model"], b"s3cret" in received.body) == ("m", False)
        assert server.illegal == []
