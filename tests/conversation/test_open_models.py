"""Views for open models: servers write the prompt by a chat template, which refuses more than OpenAI does.

Sources of the rules: the chat templates that llama.cpp ships (`models/templates`), the validators and tokenizers of
`mistral-common` 1.13, and the reports "System message must be at the beginning" (vLLM, issue 41114) and "Conversation
roles must alternate" (vLLM, issue 6862).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from together.mechanisms import MECHANISMS, summarizer

from foveate import Conversation, Media, Message, Options, Text, open_conversation
from foveate.core.edits import Span, Summarize
from foveate.core.messages import tool_result
from foveate.core.system_messages import NO_REPLY, OPENING, SYSTEM_NOTE
from foveate.errors import BadEdit, BadInput, DoesNotFit
from foveate.expand import EXPAND_INSTRUCTION
from foveate.policies import fold
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, calls, check_body, say, system, user
from foveate.testing.strategies import edits, histories, runs

from .test_every_view import POLICIES, kept_messages, shown_messages

QWEN, MISTRAL, GEMMA = "Qwen/Qwen3.6-27B", "mistral:mistral-small-2506", "ollama:gemma3:27b"
MODELS = (QWEN, MISTRAL, GEMMA)
PIXEL = Media(
    "image/png",
    "base64",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)
ALL = {**POLICIES, "all": tuple(MECHANISMS[name]() for name in MECHANISMS)}


def refusals(model: str, messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what a chat template of this model's family refuses or leaves out.

    Qwen since 3.5: a system message after the first message. Mistral and Gemma: sides that do not alternate, where
    messages with calls do not count. Mistral: call ids that are not nine letters and digits. Many others join contents
    to texts, and fail on null and on lists.
    """
    for number, message in enumerate(messages):
        if message["role"] in ("system", "developer") and number:
            yield f"message {number} is a second system message"
        content = message["content"]
        if content is None or (
            isinstance(content, list) and all(part["type"] in ("text", "refusal") for part in content)
        ):
            yield f"message {number} has no text as content"
    rest = [message for message in messages if message["role"] not in ("system", "developer")]
    if rest and rest[0]["role"] != "user":
        yield f"the {rest[0]['role']} begins"
    if model == QWEN:
        return
    sides = [message["role"] for message in rest if message["role"] != "tool" and not message.get("tool_calls")]
    if any(side != ("assistant" if number % 2 else "user") for number, side in enumerate(sides)):
        yield f"the sides do not alternate: {sides}"
    if model == MISTRAL:
        ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        ids += [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        yield from (f"call id {call_id!r}" for call_id in ids if len(call_id) != 9 or not call_id.isalnum())


def opened(model: str, policy: Any = "none", *, store: Any = "memory:", **options: Any) -> Conversation:
    ticks = iter(range(1, 10**9))
    options = {"window": 100_000, "expand": True, "summarizer": summarizer, **options}
    own = Options(background=False, clock=lambda: next(ticks))
    return open_conversation("c", store=store, format="openai", model=model, policy=policy, options=own, **options)


def sent(chat: Conversation, **options: Any) -> list[dict[str, Any]]:
    """Return the messages of the next request; an empty list if there is nothing to send."""
    try:
        body = chat.body(**options)
    except (BadInput, DoesNotFit):
        return []
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    assert check_body("openai", body) == []
    assert list(refusals(chat.view.call.model, messages)) == []
    assert chat.prompt(**options)["messages"] == messages
    return messages


def roles(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


@pytest.mark.parametrize("model", MODELS)
@given(history=histories() | runs(), policy=st.sampled_from(sorted(ALL)), data=st.data())
def test_every_view_of_any_history_is_one_that_templates_take(
    model: str, history: list[Message], policy: str, data: st.DataObject
) -> None:
    chat = opened(model, ALL[policy], window=3_000 if policy == "all" else 100_000)
    for _ in shown_messages(chat, history):
        if data.draw(st.integers(0, 3)) == 0:
            sent(chat, system=data.draw(st.sampled_from([None, "Be brief.", ["Be brief.", "Be kind."]])))
        if data.draw(st.integers(0, 5)) == 0:
            for edit in data.draw(edits([row.id for row in chat.history()], max_size=3)):
                with suppress(BadEdit):
                    chat.edit(edit)
    sent(chat)
    assert [row.message for row in chat.history()] == kept_messages(history)


@pytest.mark.parametrize("model", MODELS)
@given(history=histories(), policy=st.sampled_from(sorted(POLICIES)), data=st.data())
def test_views_for_templates_grow_byte_for_byte(
    model: str, history: list[Message], policy: str, data: st.DataObject
) -> None:
    """Stand-ins stay in their places, so that the server's cache stays valid."""
    store = MemoryStore()
    chat = opened(model, POLICIES[policy], store=store)
    last: list[dict[str, Any]] = []
    number = 0
    for message in shown_messages(chat, history):
        if message.role == "assistant" or data.draw(st.booleans()):
            now = sent(chat)
            if chat._agent.head.number == number:
                assert now[: len(last)] == last
            last, number = now, chat._agent.head.number
        if data.draw(st.integers(0, 7)) == 0:
            chat._agent.save_snapshot()
    now = sent(chat)  # Its plan may edit once more.
    assert sent(opened(model, "none", store=store)) == now
    assert sent(chat) == now


@pytest.mark.parametrize("model", ["", "gpt-6", *MODELS])
def test_instruction_of_expand_and_system_prompt_are_one_message(model: str) -> None:
    """Two of them were refused by Qwen, and several other templates left the second one out: the program's own."""
    chat = opened(model)
    chat.append([system("RULES"), user("go")])
    assert sent(chat)[0] == {"role": "system", "content": f"{EXPAND_INSTRUCTION}\n\nRULES"}
    assert roles(sent(chat)) == ["system", "user"]
    other = opened(model)
    other.append("go")
    assert sent(other, system=["RULES", {"type": "text", "text": "MORE"}]) == [
        {"role": "system", "content": f"RULES\n\nMORE\n\n{EXPAND_INSTRUCTION}"},
        {"role": "user", "content": "go"},
    ]


def test_parts_of_a_system_prompt_stay_parts_for_openai() -> None:
    parts = [{"type": "text", "text": "RULES"}, {"type": "text", "text": "MORE"}]
    chat = opened("gpt-6")
    chat.append([{"role": "developer", "content": parts}, user("go")])
    first = chat.prompt()["messages"][0]
    assert first == {"role": "developer", "content": [{"type": "text", "text": EXPAND_INSTRUCTION}, *parts]}


@pytest.mark.parametrize("content", ["RULES", [{"type": "text", "text": "RULES"}, {"type": "text", "text": "MORE"}]])
@pytest.mark.parametrize("model", ["gpt-6", QWEN])
def test_instruction_does_not_grow_in_lists_that_repeat_the_prompt(model: str, content: Any) -> None:
    """Some programs go on with the messages of the last prompt as their list."""
    chat = opened(model)
    messages: list[dict[str, Any]] = [{"role": "system", "content": content}, {"role": "user", "content": "go"}]
    first = None
    for number in range(3):
        shown = chat.prompt(messages=messages)["messages"]
        assert shown[0] == (first or shown[0])
        assert json.dumps(shown).count(json.dumps(EXPAND_INSTRUCTION)[1:-1]) == 1
        first = shown[0]
        reply = {"role": "assistant", "content": f"reply {number}"}
        chat.record(reply)
        messages = [*shown, reply, {"role": "user", "content": f"question {number}"}]
        assert roles(shown) == ["system", "user", *["assistant", "user"] * number]


@pytest.mark.parametrize("model", MODELS)
def test_later_system_messages_are_notes_for_open_models(model: str) -> None:
    chat = opened(model, expand=False)
    chat.append([system("RULES"), system("MORE"), user("go"), say("ok"), {"role": "developer", "content": "Be brief."}])
    messages = sent(chat)
    assert messages[0] == {"role": "system", "content": "RULES\n\nMORE"}
    assert messages[-1] == {"role": "user", "content": f"{SYSTEM_NOTE}Be brief."}


def test_openai_takes_later_system_messages_as_they_are() -> None:
    for model in ("", "gpt-6", "openrouter:openai/o4-mini", "ft:gpt-4o-mini:org::1", "xai:grok-4"):
        chat = opened(model, expand=False)
        chat.append([system("RULES"), system("MORE"), user("go"), call("c" * 30, "look"), answer("c" * 30, "ok")])
        chat.append([system("Be brief.")])
        messages = json.loads(chat.body())["messages"]
        assert roles(messages) == ["system", "system", "user", "assistant", "tool", "system"]
        assert messages[3]["content"] is None
        assert messages[3]["tool_calls"][0]["id"] == "c" * 30


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize("model", MODELS)
def test_summaries_in_any_role_are_taken(model: str, role: Any) -> None:
    chat = opened(model, expand=False)
    chat.append([system("RULES"), user("one"), say("two"), user("three"), say("four"), user("five")])
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[1], ids[4]), "They counted.", role=role))
    texts = [message["content"] for message in sent(chat)]
    if role == "assistant":
        assert texts == ["RULES", OPENING, "They counted.", "five"]
    else:
        assert texts == ["RULES", "They counted.", *([NO_REPLY] if model != QWEN else []), "five"]


def test_a_fold_behind_a_result_follows_a_stand_in_for_the_reply() -> None:
    chat = opened(MISTRAL, (fold(protect=20, stretch=40, min_share=0),), expand=False)
    chat.append("go")
    for number in range(4):
        chat.prepare()
        chat.record(call(f"{number}" * 9, "look", path=f"src/file_{number}.py"))
        chat.append(answer(f"{number}" * 9, f"result {number} " * 40))
    messages = sent(chat)
    assert "[Steps" in messages[2]["content"]
    assert roles(messages)[:3] == ["user", "assistant", "user"]
    assert messages[1]["content"] == NO_REPLY


def test_call_ids_for_mistral_have_nine_letters_and_digits() -> None:
    """A call that repeats an id of Mistral's got one of another form, which its server refuses."""
    chat = opened(MISTRAL, expand=False)
    chat.append(["go", call("AbCdEf123", "look"), answer("AbCdEf123", "one")])
    chat.append([calls("AbCdEf123", "call_0123456789"), answer("call_0123456789", "three"), answer("AbCdEf123", "two")])
    messages = sent(chat)
    first, second = messages[1]["tool_calls"], messages[3]["tool_calls"]
    assert [each["id"] for each in first] == ["AbCdEf123"]
    results = {message["tool_call_id"]: message["content"] for message in messages[4:]}
    assert [results[each["id"]] for each in second] == ["two", "three"]


def test_contents_for_templates_are_texts() -> None:
    image = Message("user", (Text("Look."), PIXEL))
    chat = opened(QWEN, expand=False)
    chat.append([Message("user", (Text("a"), Text("b"))), call("c1", "look")])
    chat.prepare()
    chat.record(say("I wait."))
    chat.append([answer("c1", "late"), image])
    contents = [message["content"] for message in sent(chat)]
    assert contents[0] == "a\nb"
    assert contents[1] == ""
    assert contents[4] == "[Result for call c1 of look, which came late]\nlate"
    assert [part["type"] for part in contents[5]] == ["text", "image_url"]


@pytest.mark.parametrize("model", [MISTRAL, GEMMA])
def test_images_of_results_follow_a_stand_in_for_the_reply(model: str) -> None:
    """The images stand in a user's message after the results, and the messages before the calls are a user's too."""
    chat = opened(model, expand=False)
    chat.append(["go", call("AbCdEf123", "look"), tool_result("AbCdEf123", "seen", PIXEL), say("I see."), user("So?")])
    assert roles(sent(chat)) == ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    chat.append("Well?")
    assert [message["content"] for message in sent(chat)[-3:]] == ["So?", NO_REPLY, "Well?"]


@pytest.mark.parametrize("model", MODELS)
def test_a_late_answer_is_late_in_other_processes_too(model: str) -> None:
    """It moved into the place of its stand-in, because a stand-in for a reply stood behind that one."""
    store = MemoryStore()
    chat = opened(model, store=store, expand=False)
    chat.append("go")
    chat.prepare()
    chat.record(call("AbCdEf123", "look"))
    chat.append("Hurry.")
    shown = sent(chat)
    other = opened(model, store=store, expand=False)
    other.append(answer("AbCdEf123", "done"))
    messages = sent(other)
    assert messages[: len(shown)] == shown
    assert "which came late" in messages[-1]["content"]


def test_refusal_of_another_model_stays_as_text() -> None:
    chat = opened(QWEN, expand=False)
    chat.append(["go", {"role": "assistant", "content": None, "refusal": "I must not."}, user("Why?")])
    assert [message["content"] for message in sent(chat)] == ["go", "I must not.", "Why?"]


def test_fix_names_the_message_behind_a_stand_in() -> None:
    chat = opened("mistral-small")
    chat.append([user("Look."), user("And there?")])
    chat.prepare()
    assert [fix.handle for fix in chat.fixes()] == ["m2"]
