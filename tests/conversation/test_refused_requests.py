"""Requests and edits that cannot be made: the error says what to pass, and the conversation stays as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import foveate
from foveate import BadInput, Conversation, Options, Text, assistant, tool_result
from foveate.core.events import Event
from foveate.core.stamps import Lease
from foveate.edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target
from foveate.errors import BadEdit, BadSetting, StoreError, UnknownHandle
from foveate.testing import call

FORMATS = ("openai", "anthropic", "openai_responses", "gemini")


def shortened(**options: Any) -> Conversation:
    """Return a conversation whose next plan shortens m3."""
    chat = foveate.open_conversation("steps", window=8_000, policy="keep-last-1", **options)
    chat.append("Read both pages.")
    for number in (1, 2):
        chat.record(call(f"c{number}", "read", page=number))
        chat.append(tool_result(f"c{number}", "Rye and wheat are in the barn.\n" * 40))
    assert chat.plan()
    return chat


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"system": 5}, r"^system= must be a text, or a list of texts and blocks; it holds 5\.$"),
        ({"system": b"Be brief."}, r"it holds b'Be brief.'\.$"),
        ({"system": ["Be brief.", 5]}, r"it holds 5\.$"),
        ({"system": foveate.system("Be brief.")}, r"a list of texts and blocks; it holds Message\("),
        ({"system": {"Be brief."}}, r"it holds {'Be brief.'}\.$"),
        ({"tools": [5]}, r"^tools\[0\] must be the definition of a tool, an object, not 5\.$"),
        ({"tools": [{"name": "read"}, None]}, r"^tools\[1\] must be the definition of a tool, an object, not None\.$"),
    ],
)
def test_a_request_that_no_format_writes_plans_nothing(format: str, arguments: dict[str, Any], problem: str):
    """A prompt committed its edits, and then failed; a plan took the values."""
    chat = shortened(format=format)
    for ask in (chat.plan, chat.prompt, chat.body, chat.prepare, chat.apply_plan):
        with pytest.raises(BadSetting, match=problem):
            ask(**arguments)
    assert chat.journal.records() == []


@pytest.mark.parametrize("ask", ["prompt", "body", "prepare", "plan", "apply_plan"])
def test_a_closed_conversation_prepares_no_request(ask: str, tmp_path: Any):
    """Without edits to commit, it did not notice, and the reply could not be recorded."""
    chat = foveate.open_conversation("closed", store=f"sqlite:///{tmp_path}/chat.db", window=8_000)
    chat.append("Are you there?")
    chat.close()
    with pytest.raises(StoreError, match=r"^This conversation was closed\. Open it again\.$"):
        getattr(chat, ask)()
    chat.close()


@pytest.mark.parametrize("ask", ["prompt", "body", "prepare", "plan", "apply_plan"])
def test_a_closed_async_conversation_prepares_no_request(ask: str, tmp_path: Any):
    async def play() -> None:
        chat = await foveate.open_async_conversation("closed", store=f"sqlite:///{tmp_path}/chat.db", window=8_000)
        await chat.append("Are you there?")
        await chat.close()
        with pytest.raises(StoreError, match=r"^This conversation was closed\. Open it again\.$"):
            await getattr(chat, ask)()
        await chat.close()

    asyncio.run(play())


def test_a_conversation_in_a_shared_store_goes_on_after_close():
    store = foveate.open_store("memory:")
    chat = foveate.open_conversation("shared", store=store, window=8_000)
    chat.append("Are you there?")
    chat.close()
    assert len(chat.prompt()["messages"]) == 1


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (Hide("m3"), r"^Hide\(target=...\) must be Target\(id\) or Span\(first, last\) with ids of messages, not 'm3'"),
        (Pin("m3"), r"^Pin\(target=...\) must be Target\(id\) with ids of messages, not 'm3'\. The id of m3 is chat"),
        (Restore("m3"), r"^Restore\(targets=...\) must be Target\(id\) or Span"),
        (Restore(("m3",)), r"not \('m3',\)"),
        (Summarize("m1-m3", "Short."), r"^Summarize\(span=...\) must be Span\(first, last\) with ids of messages"),
        (
            Replace(Target("0" * 40), "x"),
            r"^Replace\(content=...\) must be a tuple of Text and Media values, not 'x'\.$",
        ),
        (Replace("m3", (Text("x"),)), r"^Replace\(target=...\) must be Target\(id\)"),
        (Hide(Span("m1", "m3")), r"^This conversation has no message with the id 'm1'\.$"),
    ],
)
def test_an_edit_with_a_handle_is_refused_with_what_to_write(edit: Edit, problem: str):
    chat = shortened()
    with pytest.raises(BadEdit, match=problem):
        chat.edit(edit)
    assert chat.journal.records() == []


def test_explain_answers_for_each_message_of_a_span():
    """It answered for the first one alone; if that one was hidden, it called the whole span hidden."""
    chat = shortened()
    chat.append("And now?")
    chat.edit(Hide(Target(chat.history()[0].id)))
    lines = chat.explain("m1-m3").splitlines()
    assert [line.partition(" ")[0] for line in lines if " is a message of role " in line] == ["m2", "m3"]
    assert chat.explain("m1") == "m1 is not shown.\nEdit 1, turn 3: edit hid it."


def test_a_placeholder_for_a_missing_answer_is_no_visible_message():
    """A meter said `3 of 2 messages visible`."""
    chat = foveate.open_conversation("open", window=8_000)
    chat.append("Read both pages.")
    chat.append(assistant("", foveate.ToolCall("c1", "read", "{}"), foveate.ToolCall("c2", "read", "{}")))
    chat.append("Never mind.")
    chat.prepare()
    assert [entry.kind for entry in chat.view] == ["message", "message", "stand-in", "stand-in", "message"]
    assert (chat.context().entries, chat.context().messages) == (3, 3)
    assert str(chat.context()).endswith(", 3 of 3 messages visible")


@pytest.mark.parametrize("field", ["expiration_turns", "compact_length"])
def test_a_lease_that_no_stamp_can_hold_is_refused(field: str):
    chat = foveate.open_conversation("lease", window=8_000)
    chat.append("The largest.", lease=Lease(**{field: 2**64 - 1}))
    with pytest.raises(
        BadSetting, match=rf"^lease=: {field} is {2**64}; allowed: a whole number of . or more, below 2\*\*64, or None"
    ):
        chat.append("Too large.", lease=Lease(**{field: 2**64}))
    assert len(chat) == 1


@pytest.mark.parametrize(
    ("keywords", "problem"),
    [
        ({"window": 5}, "Window must be at least 1,000 tokens, not 5. Pass the window of your model."),
        ({"window": 2**63}, "window= (tokens) must be at most 2**63 - 1, not 9223372036854775808."),
        ({"window": "8000"}, "window= (tokens) must be a whole number of 1 or more, not '8000'."),
        ({"options": Options(reserve=-1)}, "reserve= (tokens) must be a whole number of 0 or more, not -1."),
        ({"model": 5}, "model= must be a string, not 5."),
        ({"expand": "yes"}, "expand= must be True or False, not 'yes'."),
    ],
)
@pytest.mark.parametrize("variable", ["", "FOVEATE_POLICY"])
def test_an_error_about_a_keyword_is_the_same_with_other_settings(
    keywords: dict[str, Any], problem: str, variable: str, monkeypatch: pytest.MonkeyPatch
):
    if variable:
        monkeypatch.setenv(variable, "balanced")
    opening: Callable[..., Any] = foveate.open_conversation
    with pytest.raises(BadSetting) as raised:
        opening("keywords", **{"window": 8_000, **keywords})
    assert str(raised.value) == problem


def test_an_error_quotes_only_the_beginning_of_a_long_handle():
    """Programs pass a text where a handle belongs."""
    with pytest.raises(UnknownHandle) as caught:
        shortened().expand("Rye and wheat are in the barn. " * 1_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["", "  "])
def test_a_request_without_visible_messages_says_why(text: str):
    chat = foveate.open_conversation("blank", window=8_000)
    with pytest.raises(BadInput, match=r"^There is nothing to send\. Append a message first\.$"):
        chat.prompt()
    chat.append(text)
    with pytest.raises(
        BadInput, match=r"^There is nothing to send: all messages are blank, hidden, or of the system\. "
    ):
        chat.prompt()


def test_an_async_listener_is_refused():
    """It received nothing, since events are not awaited."""

    async def listen(event: Event) -> None: ...

    with pytest.raises(BadSetting, match=r"^on_event= is called and not awaited\. Pass a plain function"):
        foveate.open_conversation("heard", window=8_000, options=Options(on_event=listen))
    with pytest.raises(BadSetting, match=r"^on_event= is called and not awaited"):
        asyncio.run(foveate.open_async_conversation("heard", window=8_000, options=Options(on_event=listen)))
