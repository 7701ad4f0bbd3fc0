"""Replies that the caller stopped: what a gatherer has by then is recorded, and every later request is legal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate import Message, Reasoning, Text, ToolCall, Usage, assistant
from foveate.core.stamps import Stop
from foveate.formats import gather
from foveate.testing import ScriptedModel
from foveate.testing.responses import events

MODELS = {
    "claude-haiku-4-5": "anthropic",
    "claude-opus-5-5": "anthropic",
    "gpt-4.1-mini": "openai",
    "gpt-5.6": "openai_responses",
    "gemini-3.5-pro": "gemini",
}
EVERY = pytest.mark.parametrize("model", MODELS)

REPLY = Message(
    "assistant",
    (
        Reasoning("Let me think about it."),
        Text("I look at both files, one after the other."),
        ToolCall("c1", "look", '{"at": "the door"}'),
        ToolCall("c2", "delete", '{"path": "notes of May.txt", "really": true}'),
    ),
)


def reply_for(model: str, reply: Message) -> Message:
    """Return the reply with reasoning of the model's provider."""
    format = MODELS[model]
    parts = [Reasoning(part.text, format=format) if isinstance(part, Reasoning) else part for part in reply.parts]
    return Message("assistant", tuple(parts))


def scripted(model: str, *replies: Any) -> ScriptedModel:
    return ScriptedModel(replies, MODELS[model], binds_reasoning=model == "claude-opus-5-5")


def stop_after(model: str, count: int | None, *replies: Message) -> tuple[Any, ScriptedModel, str, str, str]:
    """Let the caller stop the first reply after `count` events. Return the conversation, the model, the texts that had
    arrived, those of the reasoning, and the id of the recorded reply.
    """
    server = scripted(model, *replies, "Fine.")
    chat = foveate.open_conversation("one", format=MODELS[model], model=model, window=100_000)
    chat.append("Look, please.")
    response = server.reply({**chat.prompt(), "model": model})
    gatherer = gather(MODELS[model])
    pieces = [piece for event in list(events(response, usage=False))[:count] for piece in gatherer.feed(event)]
    text, thought = ("".join(piece.text for piece in pieces if piece.kind == kind) for kind in ("text", "reasoning"))
    return chat, server, text, thought, chat.record(gatherer.partial(), interrupted=True)


def assert_goes_on(chat: Any, server: ScriptedModel, model: str) -> None:
    """Assert that the next requests are legal; the scripted model refuses others."""
    for question in ("Go on.", "And?"):
        chat.append(question)
        body = {**chat.prompt(), "model": model}
        if question == "Go on.":
            chat.record(server.reply(body))
    assert chat.open_calls() == ()
    assert chat.journal.verify() == []


def said(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def event_count(model: str, *replies: Message) -> int:
    response = scripted(model, *replies).reply({**request(model), "model": model})
    return len(list(events(response, usage=False)))


def request(model: str) -> dict[str, Any]:
    chat = foveate.open_conversation("count", format=MODELS[model], model=model, window=100_000)
    chat.append("Look, please.")
    return chat.prompt()


@EVERY
def test_a_reply_can_be_stopped_after_every_event(model: str):
    reply = reply_for(model, REPLY)
    kept = []
    for count in range(event_count(model, reply) + 1):
        chat, server, text, thought, id = stop_after(model, count, reply)
        rows = chat.history()
        if not id:
            assert (len(rows), text, thought) == (1, "", "")
        else:
            row = rows[1]
            reasoning = "".join(part.text for part in row.message.parts if isinstance(part, Reasoning))
            assert (row.id, said(row.message).strip(), reasoning) == (id, text.strip(), thought)
            assert row.message.calls == ()
            assert row.stamp.stop is not None
            assert row.stamp.stop.kind == "interrupted"
            assert row.stamp.estimate == 0
            assert row.stamp.usage is not None
            assert row.stamp.usage.input is not None
            assert row.stamp.usage.output is not None
            kept.append(text)
        assert_goes_on(chat, server, model)
        totals = chat.totals()
        assert (totals.calls_billed, totals.calls_estimated) == ((2, 1) if id else (1, 0))
        usages = [row.stamp.usage for row in chat.history() if row.stamp.usage]
        assert totals.usage.output == sum(usage.output or 0 for usage in usages)
    assert len(set(kept)) > 5


parts = st.one_of(
    st.builds(Reasoning, st.sampled_from(["", "Hm.", "First this, then that. "])),
    st.builds(Text, st.sampled_from(["One two three. ", " ", "\n", "Four five"])),
    st.builds(ToolCall, st.sampled_from(["a", "b"]), st.just("look"), st.just('{"at": "the old door"}')),
)


@EVERY
@given(drawn=st.lists(parts, min_size=1, max_size=6), share=st.floats(0, 1))
def test_any_stopped_reply_leaves_legal_requests(model: str, drawn: Sequence[Any], share: float):
    reply = reply_for(model, Message("assistant", tuple(drawn)))
    if MODELS[model] in ("anthropic", "openai"):  # Their responses hold thoughts first and calls last.
        kinds = (Reasoning, Text, ToolCall)
        reply = Message("assistant", tuple(part for kind in kinds for part in reply.parts if isinstance(part, kind)))
    calls = {call.call_id: call for call in reply.calls}
    reply = Message("assistant", tuple(part for part in reply.parts if part not in reply.calls) + tuple(calls.values()))
    count = int(share * event_count(model, reply))
    chat, server, text, _, id = stop_after(model, count, reply)
    if id:
        assert "".join(said(chat.history()[1].message).split()) == "".join(text.split())
    assert_goes_on(chat, server, model)


@EVERY
def test_a_reply_that_was_whole_is_recorded_as_it_is(model: str):
    chat, server, text, _, _ = stop_after(model, None, assistant("All of it."))
    stop = chat.history()[1].stamp.stop
    assert (text, said(chat.history()[1].message)) == ("All of it.", "All of it.")
    assert stop is not None
    assert stop.kind == "end"
    assert chat.totals().calls_estimated == 0
    assert_goes_on(chat, server, model)


def test_items_of_a_stopped_response_go_without_ids():
    """OpenAI compares items with ids with what it has stored, and it stored the whole response."""
    chat, _, text, thought, _ = stop_after("gpt-5.6", 16, reply_for("gpt-5.6", REPLY))
    assert text
    assert thought
    chat.append("Go on.")
    _, reasoning, message, _ = chat.prompt()["input"]
    assert (reasoning["type"], message["role"]) == ("reasoning", "assistant")
    assert reasoning["encrypted_content"]
    assert "id" not in reasoning
    assert "id" not in message


def test_counts_that_the_provider_reported_are_kept():
    """Anthropic reports the input at the beginning."""
    reply = assistant("word " * 40)
    chat, server, text, _, _ = stop_after("claude-haiku-4-5", 20, reply)
    usage = chat.history()[1].stamp.usage
    assert usage is not None
    assert usage.prompt_tokens == server.billed[0].total
    assert usage.output is not None
    assert len(text) / 10 < usage.output < len(text)


def test_counts_that_the_program_passes_are_not_replaced():
    chat = foveate.open_conversation("known", format="openai", window=100_000)
    for usage in (Usage(100, 20, output=3), Usage(100)):
        chat.append("Count.")
        chat.prompt()
        chat.record(assistant("1, 2, 3, 4, 5, 6"), usage=usage, interrupted=True)
    first, second = (row.stamp.usage for row in chat.history() if row.stamp.usage)
    assert first == Usage(100, 20, output=3)
    assert second.input == 100
    assert second.output is not None
    assert second.output > 5


def test_the_end_of_a_session_with_two_stops_adds_up():
    chat = foveate.open_conversation("sum", format="openai", window=100_000)
    for _ in range(2):
        chat.append("Count.")
        chat.prompt()
        chat.record(assistant("1, 2, 3"), interrupted=True)
    totals = chat.totals()
    usages = [row.stamp.usage for row in chat.history() if row.stamp.usage]
    assert (totals.calls, totals.calls_billed, totals.calls_estimated) == (2, 2, 2)
    assert totals.usage == Usage(
        sum(usage.input or 0 for usage in usages), output=sum(usage.output or 0 for usage in usages)
    )


@pytest.mark.parametrize("nothing", [None, Message("assistant", ())])
def test_nothing_is_recorded_if_nothing_arrived(nothing: Any):
    chat = foveate.open_conversation("none", format="openai", window=100_000)
    chat.append("Hi.")
    assert chat.record(nothing, interrupted=True) == ""
    assert len(chat) == 1


def test_a_response_that_only_began_is_recorded_for_its_bill():
    chat, server, _, _, id = stop_after("claude-haiku-4-5", 1, assistant("Hello."))
    row = chat.history()[1]
    assert (row.id, row.message.parts, row.stamp.stop) == (id, (), Stop("interrupted"))
    assert [entry.message.role for entry in chat.view] == ["user"]
    assert chat.totals().usage.prompt_tokens == server.billed[0].total


def test_a_server_tool_without_its_result_is_left_out():
    gatherer = gather("anthropic")
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    pieces: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"role": "assistant", "type": "message", "content": []}},
        *(
            {"type": "content_block_start", "index": index, "content_block": block}
            for index, block in enumerate([{"type": "text", "text": "I search."}, use, result])
        ),
    ]
    kept = []
    ends = [{"type": "content_block_stop", "index": index} for index in range(3)]
    for count in range(4):
        chat = foveate.open_conversation(f"tool {count}", format="anthropic", window=100_000)
        chat.append("Search.")
        gatherer = gather("anthropic")
        for event in [*pieces, *ends[:count]]:
            gatherer.feed(event)
        chat.record(gatherer.partial(), interrupted=True)
        kept.append([type(part).__name__ for part in chat.history()[1].message.parts])
        chat.append("Go on.")
        ScriptedModel(["Fine."], "anthropic").reply(chat.prompt())
    assert kept == [["Text"], ["Text"], ["Text"], ["Text", "Opaque", "Opaque"]]


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql"}}]},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {}}]},
        {"tool_calls": [{"index": 0, "id": "a"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 0}]},
    ],
)
def test_the_first_piece_of_a_call_or_a_thought_can_be_the_last(delta: dict[str, Any]):
    chat = foveate.open_conversation("first", format="openai", window=100_000)
    chat.append("Look.")
    chat.prompt()
    gatherer = gather("openai")
    gatherer.feed({"id": "c1", "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]})
    assert chat.record(gatherer.partial(), interrupted=True)
    assert chat.history()[1].message.parts == ()


def test_an_unfinished_compaction_of_the_provider_is_left_out():
    """Half of a summary would replace the whole past."""
    gatherer = gather("anthropic")
    gatherer.feed({"type": "message_start", "message": {"role": "assistant", "type": "message", "content": []}})
    block = {"type": "compaction", "content": "The user wants"}
    gatherer.feed({"type": "content_block_start", "index": 0, "content_block": block})
    partial = gatherer.partial()
    assert partial is not None
    assert partial["content"] == []
    gatherer.feed({"type": "content_block_stop", "index": 0})
    partial = gatherer.partial()
    assert partial is not None
    assert partial["content"] == [block]
