"""Types of the public API, as a user's program has them: mypy checks this file in `make types`, and pytest runs it.

`assert_type` compares what mypy infers. A comment `type: ignore` marks an error that mypy must report: it reports the
comment itself if there is no such error.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import pytest

import foveate
from foveate import (
    AgentBuilder,
    AsyncChatAgent,
    AsyncLoopAgent,
    ChatAgent,
    LoopAgent,
    Options,
    ReActAgent,
    open_conversation,
    open_model,
    open_store,
    types,
)
from foveate.agents import AgentRun, AgentRunStep, Approver, RunTotal, SubAgent, ToolSource
from foveate.digest import Digest, digest
from foveate.edits import Record
from foveate.errors import BadSetting
from foveate.inspector import Access
from foveate.ops.retention import RetentionReport
from foveate.ports import (
    Changes,
    Database,
    Delta,
    Finding,
    Head,
    Model,
    StoredMessage,
    StreamEnd,
    SyncModel,
    TokenCounter,
    complete,
)
from foveate.proxy import ProxySettings
from foveate.stores.memory import MemoryStore
from foveate.testing import ScriptedModel, say
from foveate.types import Part

WINDOW = 50_000
PATH = {"PYTHONPATH": str(Path(foveate.__file__).parent.parent)}


# ------------------------------------------------------------------------------------------------------- with blocks


class Guide(ChatAgent):
    """An agent of a user's own class."""

    def guide(self) -> str:
        return self.send("Where to?").text


def test_a_with_block_keeps_the_class_of_an_agent() -> None:
    with ChatAgent("demo") as chat:
        assert_type(chat, ChatAgent)
    with ReActAgent("demo") as react:
        assert_type(react, ReActAgent)
    with LoopAgent("demo") as loop:
        assert_type(loop, LoopAgent)
    with Guide(ScriptedModel(["North."]), window=WINDOW) as guide:
        assert assert_type(guide, Guide).guide() == "North."


def test_an_async_with_block_keeps_the_class_of_an_agent() -> None:
    async def talk() -> str:
        async with AsyncLoopAgent("demo") as loop:
            assert_type(loop, AsyncLoopAgent)
        async with AsyncChatAgent(ScriptedModel(["North."]), window=WINDOW) as chat:
            return (await assert_type(chat, AsyncChatAgent).send("Where to?")).text

    assert asyncio.run(talk()) == "North."


def test_a_with_block_closes_the_store_of_a_url() -> None:
    with open_store("memory:") as store:
        assert assert_type(store, Database).names("") == []
    with pytest.raises(foveate.StoreError):
        store.names("")


class OwnStore:
    """A store with the least that a conversation needs, in front of another one."""

    def __init__(self) -> None:
        self._inner = MemoryStore()
        self.is_closed = False

    def open(self, tenant: str, name: str, *, create: bool = True) -> Head:
        return self._inner.open(tenant, name, create=create)

    def extend(self, head: Head, make: Callable[[Changes], Sequence[StoredMessage]], *, owner: str = "") -> Changes:
        return self._inner.extend(head, make, owner=owner)

    def changes(self, head: Head) -> Changes:
        return self._inner.changes(head)

    def commit(self, head: Head, record: Record, record_id: str) -> Head:
        return self._inner.commit(head, record, record_id)

    def messages(self, head: Head, first: int, last: int) -> list[StoredMessage]:
        return self._inner.messages(head, first, last)

    def get_many(self, head: Head, positions: Sequence[int]) -> list[StoredMessage]:
        return self._inner.get_many(head, positions)

    def locate(self, head: Head, ids: Sequence[str]) -> dict[str, int]:
        return self._inner.locate(head, ids)

    def records(self, head: Head, after: int = 0) -> list[tuple[str, Record]]:
        return self._inner.records(head, after)

    def fork(self, head: Head, name: str, position: int, number: int) -> Head:
        return self._inner.fork(head, name, position, number)

    def names(self, tenant: str) -> list[str]:
        return self._inner.names(tenant)

    def verify(self, head: Head) -> list[Finding]:
        return self._inner.verify(head)

    def close(self) -> None:
        self.is_closed = True


def test_a_with_block_closes_a_completed_store() -> None:
    own = OwnStore()
    with complete(own) as store, open_conversation("a", store=store, window=WINDOW) as chat:
        chat.append("hi")
        assert [message.message.text for message in chat.history()] == ["hi"]
        assert not own.is_closed
    assert own.is_closed


# --------------------------------------------------------------------------------------------------- users' own parts


class SearchTool:
    """An object with `invoke`, as docs/guides/agents.md describes it."""

    name = "search"
    description = "Search the web."

    def invoke(self, query: str) -> str:
        return f"3 pages about {query}"


def test_an_object_with_invoke_is_a_tool() -> None:
    with ChatAgent("demo", tools=[SearchTool()]), LoopAgent("demo", actions=[SearchTool()]):
        pass
    tools = AgentBuilder().add_tool(SearchTool()).tools + AgentBuilder().add_tools([SearchTool()]).tools
    assert [tool.name for tool in tools] == ["search", "search"]


def test_a_function_counts_tokens_under_any_parameter_name() -> None:
    def count(words: str) -> int:
        return len(words.split())

    counter: TokenCounter = count
    with open_conversation("a", window=WINDOW, options=Options(counter=counter)) as chat:
        chat.append("one two three")
        few = chat.view.tokens
        chat.append("four " * 100)
        assert chat.view.tokens - few >= 100


@dataclass(frozen=True)
class FrozenModel:
    name: str
    format: str = "openai"

    def complete(self, body: Mapping[str, Any]) -> object:
        return {"choices": [{"message": {"role": "assistant", "content": "North."}}]}


class ModelOfProperties:
    @property
    def name(self) -> str:
        return "own"

    @property
    def format(self) -> str:
        return "openai"

    def complete(self, body: Mapping[str, Any]) -> object:
        return FrozenModel("own").complete(body)


@pytest.mark.parametrize("model", [FrozenModel("own"), ModelOfProperties()])
def test_a_model_with_fields_that_cannot_be_set_answers(model: Model) -> None:
    models: list[Model] = [FrozenModel("own"), ModelOfProperties()]
    assert {each.name for each in models} == {"own"}
    with ChatAgent(model, window=WINDOW) as agent:
        assert agent.send("Where to?").text == "North."


@dataclass(frozen=True)
class FrozenPlugin:
    name: str

    def __call__(self, content: Sequence[Part]) -> str:
        return f"{len(content)} part"


def test_a_plugin_with_a_name_that_cannot_be_set_adds_content() -> None:
    with open_conversation("a", window=WINDOW, plugins=[FrozenPlugin("counter")]) as chat:
        chat.append("hi")
        assert "1 part" in chat.view.entries[0].message.text


def test_a_function_becomes_a_plugin_with_options_in_one_call() -> None:
    notes = foveate.plugin(lambda content: "a note", name="notes", save=True)
    assert assert_type(notes, foveate.Plugin).name == "notes"


# ------------------------------------------------------------------------------------------------------------- models


def test_every_asynchronous_model_is_awaited() -> None:
    async def ask() -> object:
        model = open_model("demo", asynchronous=True)
        body = {"messages": [{"role": "user", "content": "hi"}]}
        reply = await model.complete(body)
        pieces = [assert_type(piece, Delta | StreamEnd) async for piece in model.stream(body)]
        texts = "".join(piece.text for piece in pieces if isinstance(piece, Delta))
        end = pieces[-1]
        assert isinstance(end, StreamEnd)
        assert texts == reply["choices"][0]["message"]["content"]
        await model.close()
        return reply

    assert asyncio.run(ask())


def test_a_model_that_is_called_streams_pieces_and_can_be_stopped() -> None:
    model = open_model("demo")
    assert_type(model, SyncModel)
    stream = model.stream({"messages": [{"role": "user", "content": "hi"}]})
    assert isinstance(assert_type(next(stream), Delta | StreamEnd), Delta)
    stream.close()
    model.close()


# -------------------------------------------------------------------------------------------------- annotated variables


def test_values_that_calls_return_have_types_with_public_names() -> None:
    with open_conversation("a", window=WINDOW) as chat:
        chat.append("words " * 1_000)
        journal: types.Journal = chat.journal
        privacy: types.Privacy = chat.privacy
        needs: types.Needs = chat.needs
        items: types.RequestItems = chat.request_items(chat.prepare())
        pins: list[types.PinnedPart] = [pin for entry in chat.view for pin in entry.pins]
        kinds: set[types.EntryKind] = {entry.kind for entry in chat.view}
        tokens: Mapping[types.ContextKind, int] = chat.context().kinds
        stops: list[types.Stop | None] = [message.stamp.stop for message in chat.history()]
        events: list[types.EventKind] = [event.kind for event in journal.events()]
        requests: tuple[types.OpenRequest, ...] = chat.plan().open_requests
        records: list[Record] = journal.records()
        report: RetentionReport = privacy.apply_retention({"all": "30 days"}, dry_run=True)
    assert (bool(needs), len(items.items), pins, kinds, stops) == (False, 1, [], {"message"}, [None])
    assert (tokens["user"] > 900, events, requests, report.messages) == (True, ["message-added"], (), 0)
    assert [record.edits for record in records if record.edits] == []


def test_runs_of_an_agent_have_types_with_public_names() -> None:
    def approve(call: foveate.ToolCall) -> bool:
        return call.name == "search"

    tools: Sequence[foveate.Tool | ToolSource] = [SearchTool()]
    decide: Approver = approve
    with ChatAgent("demo", tools=tools, approve=decide) as agent:
        outcome = agent.send("hi")
        run: AgentRun = outcome.run
        total: RunTotal = outcome.total
        steps: list[AgentRunStep] = agent.conversation.journal.steps(run.id)
        inner: list[SubAgent] = [agent]
    assert (total.turns, [step.kind for step in steps], len(inner)) == (run.turns, ["model"], 1)


# -------------------------------------------------------------------------------------------------------- module names


def test_names_that_no_module_has_are_errors_for_type_checkers() -> None:
    import foveate.agents
    import foveate.conversation
    import foveate.inspector
    import foveate.mcp
    import foveate.replay
    import foveate.telemetry

    with pytest.raises(AttributeError):
        _ = foveate.open_conversatoin  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.agents.ChatAgnet  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.conversation.AsyncConversatoin  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.inspector.biuld_app  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.mcp.biuld_server  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.ops.retentoin  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.policies.folds_all  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.replay.reply  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.summarizers.chached  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = foveate.telemetry.instrumnet  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("foveate", "ChatAgent"),
        ("foveate", "policies"),
        ("foveate.agents", "ToolFailed"),
        ("foveate.conversation", "AsyncConversation"),
        ("foveate.inspector", "build_app"),
        ("foveate.mcp", "build_server"),
        ("foveate.ops", "worker"),
        ("foveate.replay", "replay"),
        ("foveate.summarizers", "cached"),
        ("foveate.telemetry", "instrument"),
    ],
)
def test_dir_lists_names_that_are_imported_on_first_use(module: str, name: str) -> None:
    code = f"import {module} as module; print({name!r} in dir(module))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **PATH})
    assert done.stdout == "True\n"


def test_each_module_of_ops_is_reached_from_the_package() -> None:
    with open_store("memory:") as store:
        assert list(foveate.ops.retention.age_tenant(store, {"all": "30 days"})) == []


def test_a_scripted_reply_is_a_message() -> None:
    assert_type(say("hi"), foveate.Message)
    with pytest.raises(BadSetting):
        open_model("nonsense")


# ------------------------------------------------------------------------------------------------------ printed values


def test_an_entry_prints_one_line_in_a_list() -> None:
    with open_conversation("a", window=WINDOW) as chat:
        chat.append("words " * 1_000)
        (entry,) = chat.view
        assert repr([entry]) == f"[<Entry {entry}>]"
        assert len(repr(entry)) < 80


def test_agents_and_models_print_their_names_and_no_key() -> None:
    model = open_model("openai:gpt-5", api_key="secret key")
    assert [repr(model)] == ["<OpenAIModel 'openai:gpt-5'>"]
    agents = [ChatAgent("demo", name="ann"), Guide("demo"), ReActAgent(name="reader"), LoopAgent("demo", name="steps")]
    assert repr(agents) == "[<ChatAgent 'ann'>, <Guide 'chat'>, <ReActAgent 'reader'>, <LoopAgent 'steps'>]"


def test_printed_settings_of_servers_hold_no_keys_and_no_password() -> None:
    access = Access(tokens={"key of a token": "ann"}, secret="secret key")
    proxy = ProxySettings(
        store="postgresql://ann:hunter2@db/chats", tokens={"key of a token": "ann"}, secret="secret key"
    )
    assert repr(access) == "<Access: 1 tokens, tenant='', is_read_only=False>"
    for text in (repr(access), repr(proxy), str(proxy)):
        assert [word for word in ("secret key", "hunter2", "key of a token") if word in text] == []
    assert "postgresql://ann:***@db/chats" in repr(proxy)


# --------------------------------------------------------------------------------------------------------- signatures


def test_the_async_side_has_the_signatures_of_the_sync_side() -> None:
    for sync, other in (
        (foveate.Conversation, foveate.AsyncConversation),
        (foveate.ChatAgent, foveate.AsyncChatAgent),
        (foveate.ReActAgent, foveate.AsyncReActAgent),
        (foveate.LoopAgent, foveate.AsyncLoopAgent),
    ):
        methods = {name for name in vars(sync) if callable(getattr(sync, name)) and not name.startswith("_")}
        assert {name: parameters(sync, name) for name in methods} == {name: parameters(other, name) for name in methods}


def parameters(kind: type, name: str) -> list[tuple[str, object, object]]:
    found = inspect.signature(getattr(kind, name)).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in found]


def test_a_cached_function_keeps_its_signature() -> None:
    assert_type(digest(text="a short text", room=100), Digest)
    with pytest.raises(TypeError):
        digest("a short text", rooms=100)  # type: ignore[call-arg]


def test_a_text_in_place_of_a_list_of_tools_is_named() -> None:
    with pytest.raises(BadSetting, match="tools= must be a list of functions and Tools, not 'read'"):
        ChatAgent("demo", tools="read")  # type: ignore[arg-type]
