"""Prompts for summaries in the store count for every summarizer that is a model's name. They are read each time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from foveate import ChatAgent, Conversation, Options, open_conversation
from foveate.core.catalog import Prompt, validated
from foveate.errors import BadSetting
from foveate.formats import get_format
from foveate.models.anthropic import AnthropicModel
from foveate.open import open_summarizer
from foveate.stores.memory import MemoryStore
from foveate.summarizers import SummaryRequest, cached, model_summarizer
from foveate.testing import ScriptedModel, StubAnthropic, say, text_of, user

pytest.importorskip("anthropic")

HAIKU, SONNET = "anthropic:claude-haiku-4-5", "anthropic:claude-sonnet-4-5"
REQUEST = SummaryRequest("compact", (user("Mend the login. " * 30),), 200)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> StubAnthropic:
    """The client of every model; it answers with `Answer 1.`, `Answer 2.`, ..."""
    numbers = itertools.count(1)
    stub = StubAnthropic(lambda request: f"Answer {next(numbers)}.")
    monkeypatch.setattr(AnthropicModel, "_new_client", lambda self: stub)
    return stub


def prompts_sent(client: StubAnthropic) -> list[str]:
    """Return the first line of each prompt."""
    lines = []
    for request in client.requests:
        content = request["messages"][0]["content"]
        lines.append((content if isinstance(content, str) else content[0]["text"]).splitlines()[0])
    return lines


def opened(store: Any, **options: Any) -> Conversation:
    return open_conversation("tale", store=store, window=8_000, policy="balanced", **{"summarizer": HAIKU, **options})


def compacted(chat: Conversation) -> Any:
    """Add two messages, and return the receipt of their compaction."""
    number = len(chat)
    chat.append([user(f"Question {number}?"), say(text_of(900, number)), user("And now?")])
    return chat.compact()


def test_changed_prompt_counts_for_the_next_summary_of_an_open_conversation(client: StubAnthropic):
    store = MemoryStore()
    with opened(store) as chat:
        compacted(chat)
        store.put_prompt("", Prompt("History", "First of all: {{ text }}"))
        compacted(chat)
        store.put_prompt("", Prompt("History", "Above all: {{ text }}"))
        compacted(chat)
        store.drop_prompt("", "History")
        compacted(chat)
    assert [line.partition(":")[0][:31] for line in prompts_sent(client)] == [
        "Sum up the conversation below. ",
        "First of all",
        "Above all",
        "Sum up the conversation below. ",
    ]


def test_prompt_of_another_tenant_does_not_count(client: StubAnthropic):
    store = MemoryStore()
    store.put_prompt("acme", Prompt("history", "For acme: {{ text }}"))
    for tenant in ("", "acme"):
        with opened(store, options=Options(tenant=tenant)) as chat:
            compacted(chat)
    assert [line.startswith("For acme:") for line in prompts_sent(client)] == [False, True]


def test_models_of_a_prompt_are_asked_in_order(client: StubAnthropic, monkeypatch: pytest.MonkeyPatch, caplog):
    store = MemoryStore()
    store.put_prompt(
        "", Prompt("history", "Briefly: {{ text }}", models=f"cohere:x, anthropic:claude-3-opus, {SONNET}")
    )

    def answer(request: Any) -> str:
        if request["model"] == "claude-3-opus":
            raise OSError("no quota")
        return "They compared printers."

    stub = StubAnthropic(answer)
    monkeypatch.setattr(AnthropicModel, "_new_client", lambda self: stub)
    with opened(store) as chat:
        receipt = compacted(chat)
    assert receipt.by == (SONNET,)
    assert [why.partition(": ")[0] for why in receipt.refused] == ["cohere:x", "anthropic:claude-3-opus"]
    assert "cohere:x" in caplog.text


def test_prompt_without_models_uses_those_of_the_summarizer(client: StubAnthropic):
    store = MemoryStore()
    store.put_prompt("", Prompt("compact-agent-message", "Briefly: {{ text }}", models=SONNET))
    with opened(store) as chat:
        assert compacted(chat).by == (HAIKU,)


def test_conversation_tenant_and_user_reach_prompts_and_summarizers(client: StubAnthropic):
    store = MemoryStore()
    store.put_prompt("acme", Prompt("history", "{{ conversation }} of {{ tenant }} for {{ user }}.\n\n{{ text }}"))
    with opened(store, options=Options(tenant="acme", user="Ann Lee")) as chat:
        compacted(chat)
    assert prompts_sent(client) == ["tale of acme for Ann Lee."]
    requests: list[SummaryRequest] = []
    with opened(store, summarizer=lambda request: requests.append(request) or "So far.") as chat:
        compacted(chat)
    assert [(request.conversation, request.tenant, request.user) for request in requests] == [("tale", "", "")]


def test_prompts_of_the_options_come_before_those_of_the_store(client: StubAnthropic):
    store = MemoryStore()
    store.put_prompt("", Prompt("history", "Stored: {{ text }}"))
    with opened(store, options=Options(prompts={"history": "Passed: {{ text }}"})) as chat:
        compacted(chat)
    assert prompts_sent(client)[0].startswith("Passed:")
    with pytest.raises(BadSetting, match="lacks"):
        opened(store, options=Options(prompts={"history": "Nothing."}))


def test_agent_uses_the_prompts_of_its_own_catalog(client: StubAnthropic):
    catalog = MemoryStore()
    catalog.put_prompt("", Prompt("history", "From the catalog: {{ text }}"))
    model = ScriptedModel(["Hello."], "anthropic")
    with ChatAgent(model, conversation="tale", window=8_000, summarizer=HAIKU, catalog=catalog) as agent:
        agent.send("Hi.")
        compacted(agent.conversation)
    assert prompts_sent(client)[0].startswith("From the catalog:")


def test_stored_prompt_with_a_fault_leaves_the_summary_to_the_digest(client: StubAnthropic, caplog):
    """Another program may have written the row."""

    class Store(MemoryStore):
        def prompts(self, tenant: str) -> list[Prompt]:
            return [Prompt("history", "Nothing.")]

    with opened(Store()) as chat:
        assert compacted(chat).by == ("digest",)
    assert "the stored prompts: BadSetting: The prompt 'history' lacks {{ text }}." in caplog.text


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        (Prompt("a", "{{ text }}", models="gpt-4.1"), "hold 'gpt-4.1'; allowed: names such as openai:gpt-4.1-mini"),
        (Prompt("system", "Be brief.", models=HAIKU), "only precedes the others"),
        (Prompt("a", "{{ text }}", models=7), "allowed: a str"),  # type: ignore[arg-type]
    ],
)
def test_models_that_no_prompt_can_have_are_refused(prompt: Prompt, why: str):
    with pytest.raises(BadSetting, match=why):
        validated(prompt)


def test_cache_asks_again_after_the_text_of_a_prompt_changed():
    shelf: dict[str, bytes] = {}
    model = ScriptedModel(["One.", "Two."], "openai")

    def summarizer(text: str) -> Callable[[SummaryRequest], Any]:
        return cached(model_summarizer(model, get_format("openai"), prompts={"history": text}), shelf)

    texts = ("Now {{ text }}", "Now {{ text }}", "Then {{ text }}", "Now {{ text }}")
    assert [summarizer(text)(REQUEST).text for text in texts] == ["One.", "One.", "Two.", "One."]


def test_one_set_of_prompts_is_cached_for_each_tenant(client: StubAnthropic):
    store = MemoryStore()
    store.put_prompt("acme", Prompt("history", "For acme: {{ text }}"))
    summarize: Any = open_summarizer(HAIKU, prompts=store.prompts)
    acme = SummaryRequest("compact", REQUEST.messages, 200, tenant="acme")
    assert [summarize(request).text for request in (REQUEST, acme, REQUEST, acme)] == ["Answer 1.", "Answer 2."] * 2
