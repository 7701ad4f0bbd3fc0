"""Pydantic AI: 100 calls in a small window, with the real framework, its models, and a server on loopback."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.capabilities", reason="pydantic-ai is not installed")

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pages import run_example, run_page
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CachePoint,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits
from recorded import recorded_lists
from scenario import ANSWER, CALLS, QUESTION, WINDOW, largest, log_text, marks, reader

import foveate
from foveate import Message, Reasoning, Text, ToolCall, ToolResult
from foveate.hosts.pydantic_ai import FoveateCapability
from foveate.hosts.pydantic_ai_messages import messages_of, request_part, response_of
from foveate.testing import CutReply, ScriptedModel, call, say
from foveate.testing.server import StubServer
from foveate.testing.usage import unmarked

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LIMITS = UsageLimits(request_limit=None)


def model_of(api: str, url: str, name: str = "") -> Any:
    if api == "anthropic":
        return AnthropicModel(name or "claude-haiku-4-5", provider=AnthropicProvider(base_url=url, api_key="k"))
    kind = OpenAIResponsesModel if api == "openai_responses" else OpenAIChatModel
    return kind(name or "gpt-5", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k"))


def agent_of(api: str, server: StubServer, capability: Any, **options: Any) -> Any:
    capabilities = [] if capability is None else [capability]
    agent = Agent(model_of(api, server.url), instructions="Be brief.", capabilities=capabilities, **options)

    @agent.tool_plain
    def read_log(number: int) -> str:
        """Return the log with a number."""
        return log_text(number)

    return agent


async def ask(agent: Any, text: str = QUESTION, *, streamed: bool = False, **options: Any) -> Any:
    keywords = {"conversation_id": "t1", "usage_limits": LIMITS, **options}
    if not streamed:
        return await agent.run(text, **keywords)
    async with agent.run_stream(text, **keywords) as stream:
        await stream.get_output()
        return stream


def run(agent: Any, text: str = QUESTION, **options: Any) -> Any:
    return asyncio.run(ask(agent, text, **options))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["anthropic", "openai", "openai_responses"])
def test_a_hundred_calls_stay_in_the_window(api: str, streamed: bool):
    model = ScriptedModel(reader(), api)
    capability = FoveateCapability(window=WINDOW)
    with StubServer(model) as server:
        result = run(agent_of(api, server, capability), streamed=streamed)
        assert server.illegal == []
    assert len(model.requests) == CALLS + 1
    assert largest(model) <= WINDOW
    returns = [p.content for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)]
    assert returns == [log_text(number) for number in range(CALLS)]


def test_without_the_capability_the_requests_outgrow_the_window():
    model = ScriptedModel(reader(30), "openai")
    with StubServer(model) as server:
        run(agent_of("openai", server, None))
    assert largest(model) > 2 * WINDOW


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_the_model_expands_what_was_shortened(api: str):
    model = ScriptedModel(reader(40, expand="m3"), api)
    with StubServer(model) as server:
        result = run(agent_of(api, server, FoveateCapability(window=WINDOW)))
        assert server.illegal == []
    returns = [p for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)]
    (expansion,) = [part for part in returns if part.tool_name == "expand"]
    assert "m3" in str(expansion.content)
    assert len({str(unmarked(request["tools"])) for request in model.requests}) == 1


def test_the_history_holds_every_message_once_and_every_bill(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(reader(12), "anthropic")
    capability = FoveateCapability(url, window=WINDOW)
    with StubServer(model) as server:
        run(agent_of("anthropic", server, capability))
    capability.close()
    with foveate.open_conversation("t1", store=url, window=WINDOW, format="anthropic") as chat:
        assert [row.message.role for row in chat.history()] == ["user", *["assistant", "tool"] * 12, "assistant"]
        usage = chat.totals().usage
        billed = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        assert (chat.totals().calls, billed) == (13, sum(bill.total for bill in model.billed))


def test_a_conversation_goes_on_after_a_restart(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    history: list[Any] = []
    for _ in range(2):
        model = ScriptedModel(reader(25), "openai")
        capability = FoveateCapability(url, window=WINDOW)
        with StubServer(model) as server:
            history = run(agent_of("openai", server, capability), message_history=history).all_messages()
            assert server.illegal == []
        capability.close()
        assert largest(model) <= WINDOW
    with foveate.open_store(url) as store:
        assert store.names("") == ["t1"]


def test_a_cut_stream_leaves_a_conversation_that_goes_on():
    replies = iter([CutReply(say("A long answer that is cut off.")), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "anthropic")
    capability = FoveateCapability(window=WINDOW)
    with StubServer(model) as server:
        with pytest.raises(Exception):  # noqa: B017, PT011 - the framework's error, by version
            run(agent_of("anthropic", server, capability), streamed=True)
        assert run(agent_of("anthropic", server, capability), "Go on.").output == ANSWER
        assert server.illegal == []


def test_a_cancelled_run_leaves_a_conversation_that_goes_on():
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    capability = FoveateCapability(window=WINDOW)

    async def main(server: StubServer) -> str:
        agent = agent_of("openai", server, capability)
        task = asyncio.create_task(ask(agent))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return str((await ask(agent, "Go on.")).output)

    with StubServer(model) as server:
        assert asyncio.run(main(server)) == ANSWER
        assert server.illegal == []


def test_a_retry_prompt_is_a_result():
    replies = iter([call("c0", "divide", by=0), call("c1", "divide", by=2), say(ANSWER)])
    model = ScriptedModel(lambda request: next(replies), "anthropic")
    with StubServer(model) as server:
        agent = agent_of("anthropic", server, FoveateCapability(window=WINDOW))

        @agent.tool_plain
        def divide(by: int) -> float:
            """Divide."""
            if by == 0:
                raise ModelRetry("Not by zero.")
            return 1 / by

        assert run(agent).output == ANSWER
        assert server.illegal == []


def test_a_rejected_output_is_asked_again():
    class Verdict(BaseModel):
        """The verdict."""

        number: int

    replies = iter([call("v0", "final_result", number="none"), call("v1", "final_result", number=57)])
    model = ScriptedModel(lambda request: next(replies), "openai")
    with StubServer(model) as server:
        agent = agent_of("openai", server, FoveateCapability(window=WINDOW), output_type=Verdict, retries=2)
        assert run(agent).output == Verdict(number=57)
        assert server.illegal == []


@pytest.mark.parametrize("policy", ["balanced", "none", "keep-last-1"])
def test_signed_thinking_goes_back_as_it_was(policy: str):
    def reply(number: int) -> Message:
        thought = Reasoning(f"Log {number} is next.", f"signature-{number}", format="anthropic")
        return Message("assistant", (thought, *call(f"c{number}", "read_log", number=number).parts))

    model = ScriptedModel([*map(reply, range(30)), say(ANSWER)], "anthropic")
    with StubServer(model) as server:
        settings: Any = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
        capability = FoveateCapability(window=WINDOW, policy=policy)
        agent = agent_of("anthropic", server, capability, model_settings=settings)
        assert run(agent).output == ANSWER
        assert server.illegal == []
    assert "signature-29" in str(model.requests[-1])
    assert largest(model) <= WINDOW


def test_messages_that_the_program_removes_are_not_sent():
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    capability = FoveateCapability(window=WINDOW)
    with StubServer(model) as server:
        agent = agent_of("openai", server, capability)
        history = run(agent, "My password is hunter2.").all_messages()
        history += run(agent, "Hello.", message_history=history).new_messages()
        run(agent_of("openai", server, capability), "And now?", message_history=history[2:])
        assert server.illegal == []
        assert "hunter2" not in server.received[-1].body.decode()
    assert capability.conversation("t1").name == "t1"


def test_the_conversation_is_that_of_the_newest_run():
    model = ScriptedModel(lambda request: say(ANSWER), "anthropic")
    capability = FoveateCapability(window=WINDOW)
    history: Any = None
    sizes = []
    with StubServer(model) as server:
        agent = agent_of("anthropic", server, capability)
        for _ in range(2):
            history = run(agent, message_history=history).all_messages()
            sizes.append((len(capability.conversation("t1").view), capability.conversation("t1").totals().calls))
    assert sizes == [(2, 1), (4, 2)]


def test_the_model_may_change_in_a_conversation():
    capability, history = FoveateCapability(window=WINDOW), []
    for number, api in enumerate(("anthropic", "openai", "openai_responses", "anthropic")):
        model = ScriptedModel(reader(15, first=15 * number), api)
        with StubServer(model) as server:
            result = run(agent_of(api, server, capability), message_history=history)
            history = result.all_messages()
            assert result.output == ANSWER
            assert server.illegal == []
        assert largest(model) <= WINDOW


@pytest.mark.parametrize(("name", "own"), [("gpt-5.6", ""), ("gpt-5.6", "mine"), ("gpt-5.5", "")])
@pytest.mark.parametrize("api", ["openai", "openai_responses"])
def test_newer_gpt_gets_a_key_for_its_cache(api: str, name: str, own: str):
    settings: Any = {"openai_prompt_cache_key": own} if own else None
    with StubServer(ScriptedModel([say("One."), say("Two.")], api)) as server:
        agent = Agent(model_of(api, server.url, name), capabilities=[FoveateCapability(window=WINDOW)])
        history = agent.run_sync(QUESTION, model_settings=settings, conversation_id="c").all_messages()
        agent.run_sync("And?", message_history=history, model_settings=settings, conversation_id="c")
        keys = {request.values.get("prompt_cache_key") for request in server.received}
    (key,) = keys
    assert key == own if own else (key is None) == (name == "gpt-5.5")


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({}, [0, 3, 3, 3]),
        ({"cache": False}, [0] * 4),
        ({"anthropic_cache_instructions": True}, [1] * 4),
        ({"anthropic_cache": "1h"}, [1] * 4),
    ],
    ids=["none", "off", "instructions", "an hour"],
)
def test_claude_gets_marks_for_its_cache_unless_a_setting_says_more(settings: Any, counts: list[int]):
    with StubServer(ScriptedModel(reader(3), "anthropic")) as server:
        run(agent_of("anthropic", server, FoveateCapability(window=WINDOW)), model_settings=settings)
        assert [marks(request.values) for request in server.received] == counts


def test_own_cache_points_win():
    with StubServer(ScriptedModel(reader(3), "anthropic")) as server:
        run(agent_of("anthropic", server, FoveateCapability(window=WINDOW)), [QUESTION, CachePoint()])
        assert [marks(request.values) for request in server.received] == [1] * 4


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_a_changed_instruction_outlives_a_compaction(api: str):
    """The framework keeps the first instructions, and appends a part with the new ones to the history."""
    model = ScriptedModel(lambda request: say("Yes. " * 400), api)
    capability, history = FoveateCapability(window=4_000, policy="prune-and-compact"), []
    with StubServer(model) as server:
        agent = Agent(model_of(api, server.url), capabilities=[capability])

        @agent.instructions(name="language", on_change="append")
        def language() -> str:
            return "Answer in French." if history else "Answer in German."

        for number in range(8):
            history = run(agent, f"Question {number}. " + "Why? " * 400, message_history=history).all_messages()
        assert server.illegal == []
    assert any(entry.kind == "summary" for entry in capability.conversation("t1").view)
    assert ["Answer in French." in json.dumps(request) for request in model.requests] == [False] + [True] * 7


def test_a_fault_sends_the_messages_as_they_are(full_disk: None):
    model = ScriptedModel(lambda request: say(ANSWER), "openai")
    with StubServer(model) as server, pytest.warns(RuntimeWarning, match="are sent as they are"):
        agent = Agent(model_of("openai", server.url, "nobody-knows-me"), capabilities=[FoveateCapability()])
        assert run(agent).output == ANSWER


def test_a_version_without_the_hook_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(AbstractCapability, "prepare_model_request")
    with pytest.raises(ImportError, match="prepare_model_request"):
        importlib.reload(sys.modules[FoveateCapability.__module__])


# --------------------------------------------------------------------------------------------------------- conversion

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
FILES = st.sampled_from(
    [
        BinaryContent(b"\x89PNG", media_type="image/png", vendor_metadata={"detail": "high"}),
        ImageUrl("https://example.org/a.png", force_download=True),
        DocumentUrl("https://example.org/a.pdf"),
        AudioUrl("https://example.org/a.mp3"),
        VideoUrl("https://example.org/a.mp4"),
        TextContent("Text.", metadata={"a": 1}),
        UploadedFile("file-1", "openai"),
        CachePoint(ttl="1h"),
    ]
)
CONTENT = st.one_of(TEXTS, st.lists(st.one_of(TEXTS, FILES), min_size=1, max_size=3))
PLAIN_FILES = FILES.filter(lambda file: not isinstance(file, TextContent | CachePoint))
RETURNS = st.one_of(TEXTS, st.dictionaries(TEXTS, st.integers()), st.lists(st.one_of(TEXTS, PLAIN_FILES), max_size=3))
OUTCOMES = st.sampled_from(["success", "retried", "denied"])
REQUEST_PARTS = st.one_of(
    st.builds(SystemPromptPart, TEXTS, dynamic_ref=st.sampled_from([None, "prompt"])),
    st.builds(UserPromptPart, CONTENT),
    st.builds(
        lambda id, content, outcome: ToolReturnPart("read_log", content, id, metadata={"a": 1}, outcome=outcome),
        TEXTS,
        RETURNS,
        OUTCOMES,
    ),
    st.builds(lambda text: RetryFeedbackPart(text, retry=RetryInfo(cause="no_output")), TEXTS),
    st.builds(lambda name: ToolAvailabilityDeltaPart(tools_added=[name]), TEXTS),
)
ARGUMENTS = st.one_of(st.dictionaries(TEXTS, TEXTS), st.just('{"a": 1}'))
RESPONSE_PARTS = st.one_of(
    st.builds(TextPart, TEXTS, id=st.sampled_from([None, "msg_1"])),
    st.builds(lambda text: ThinkingPart(text, signature="signed", provider_name="anthropic"), TEXTS),
    st.builds(lambda id, args: ToolCallPart("read_log", args, id, provider_details={"a": 1}), TEXTS, ARGUMENTS),
    st.builds(lambda id: NativeToolCallPart("web_search", {"query": "a"}, id, provider_name="openai"), TEXTS),
    st.builds(lambda id: NativeToolReturnPart("web_search", {"found": 1}, id, provider_name="openai"), TEXTS),
    st.just(FilePart(BinaryContent(b"\x89PNG", media_type="image/png"))),
    st.just(CompactionPart("A summary.", provider_name="anthropic")),
)


@given(REQUEST_PARTS)
def test_a_part_of_a_request_is_equal_after_conversion(part: Any):
    (there,) = messages_of(ModelRequest([part]), "openai")
    assert request_part(there, part) is part
    back = request_part(there)
    assert messages_of(ModelRequest([back]), "openai") == [there]
    if not isinstance(part, ToolReturnPart | SystemPromptPart | UserPromptPart):
        assert back == part


@given(TEXTS, st.lists(FILES, min_size=1, max_size=3))
def test_files_of_a_changed_prompt_keep_their_kind(text: str, files: list[Any]):
    (there,) = messages_of(ModelRequest([UserPromptPart([text, *files])]), "openai")
    back: Any = request_part(there)
    kinds = [str if isinstance(piece, TextContent) else type(piece) for piece in files]
    assert [type(piece) for piece in back.content] == [str, *kinds]


def test_a_shortened_result_keeps_its_uploaded_files():
    own = ToolReturnPart("read_log", ["A long text.", UploadedFile("file-1", "openai")], "c0")
    (there,) = messages_of(ModelRequest([own]), "openai")
    assert there.result is not None
    short = replace(there.result, content=(Text("A text."), *there.result.content[1:]))
    back = request_part(Message("tool", (short,)), own)
    assert back.content == ["A text.", UploadedFile("file-1", "openai")]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("success", "ok"), ("denied", "ok"), ("interrupted", "ok"), ("failed", "error"), ("retried", "error")],
)
def test_only_outcomes_that_the_model_reads_as_errors_are_errors(outcome: Any, state: str):
    """The framework wraps the texts of errors itself, when it sends them."""
    own = ToolReturnPart("read_log", [{"loc": ["number"]}], "c0", outcome=outcome)
    (there,) = messages_of(ModelRequest([own]), "openai")
    assert there.parts == (ToolResult("c0", (Text('[{"loc":["number"]}]'),), state, "read_log"),)  # type: ignore[arg-type]


@given(st.lists(RESPONSE_PARTS, min_size=1, max_size=4))
def test_a_response_is_equal_after_conversion(parts: list[Any]):
    own = ModelResponse(parts, model_name="gpt-5", provider_response_id="resp_1")
    (there,) = messages_of(own, "openai")
    assert response_of(there, own) == own
    back = response_of(there)
    plain = [type(part) for part in parts if not isinstance(part, ThinkingPart)]
    assert [type(part) for part in back.parts] == plain


def test_a_changed_call_leaves_the_other_parts_as_they_are():
    search = NativeToolCallPart("web_search", {"query": "a"}, "s0", provider_name="openai")
    thought = ThinkingPart("Search.", signature="signed", provider_name="openai")
    own = ModelResponse([thought, search, ToolCallPart("write", {"text": "long"}, "c0")], model_name="gpt-5")
    (there,) = messages_of(own, "openai")
    changed = Message("assistant", (*there.parts[:2], ToolCall("c0", "write", '{"text":"short"}')))
    back = response_of(changed, own)
    assert back.parts[:2] == [thought, search]
    assert (back.parts[2].args, back.model_name) == ('{"text":"short"}', "gpt-5")  # type: ignore[union-attr]


def test_recorded_messages_are_equal_after_conversion(transcripts: Path):
    count = 0
    for recorded in recorded_lists(transcripts):
        for message in recorded:
            if message.role == "assistant":
                own = response_of(message)
                (there,) = messages_of(own, "openai")
                assert response_of(there, own) == own
                calls = [(call.name, json.loads(call.arguments)) for call in message.calls]
                assert [(call.name, json.loads(call.arguments)) for call in there.calls] == calls
            else:
                part = request_part(message)
                (there,) = messages_of(ModelRequest([part]), "openai")
                assert request_part(there, part) is part
            assert (there.role, there.text) == (message.role, message.text)
            count += 1
    assert count > 1_000


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run_page("pydantic-ai.md", tmp_path, monkeypatch)


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    run_example("pydantic_ai_agent.py", tmp_path, monkeypatch)
    answer, whole, totals = capsys.readouterr().out.splitlines()[:3]
    assert answer == "It keeps the books of a mill."
    assert whole.startswith("130 messages in the ")
    assert totals.startswith("65 calls: ")
    assert int(totals.split("(")[1].split("%")[0]) >= 40
