"""Tools that Google runs: a use and its result are one unit, in one message or in consecutive ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foveate import Options, open_conversation
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Target
from foveate.core.messages import Text
from foveate.core.units import cut_points
from foveate.testing.bodies import check_body

SEARCH = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["rain"]}}}
SEARCH["thoughtSignature"] = "QQ=="
FOUND = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"links": ["a", "b"]}}}
CODE = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
OUTPUT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
TEXT = {"text": "It rains."}
ASK = {"role": "user", "parts": [{"text": "Does it rain?"}]}
WELL = {"role": "user", "parts": [{"text": "Well?"}]}
CALL = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "Qg=="}
ANSWER = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "ok"}}}]}
NO_RESULT = "[No result: the call was interrupted, or its result is not shown.]"

PAIRS = pytest.mark.parametrize(("use", "result"), [(SEARCH, FOUND), (CODE, OUTPUT)], ids=["search", "code"])


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def conversation(*contents: dict[str, Any], policy: str = "none", **options: Any):
    chat = open_conversation("c", format="gemini", model="gemini-3.1-pro", window=100_000, policy=policy, **options)
    chat.append(list(contents))
    return chat


def sent(chat: Any) -> list[dict[str, Any]]:
    """Return the contents of the next request, which both checkers accept."""
    body = json.loads(chat.body())
    assert check_body("gemini", {"model": "gemini-3.1-pro", **body}) == []
    assert check(chat.view, chat._session.state.profile) == []
    return body["contents"]


@PAIRS
def test_a_pair_is_sent_as_it_came(use, result):
    contents = [ASK, model(use, result, TEXT), WELL]
    assert sent(conversation(*contents)) == contents


@PAIRS
def test_a_pair_in_two_messages_is_sent_as_it_came(use, result):
    """The chats of Google's SDK keep each piece of a stream as a content."""
    contents = [ASK, model({"text": "I look."}, use), model(result, TEXT), WELL]
    assert sent(conversation(*contents)) == contents


def test_consecutive_pairs_without_ids_belong_together_in_order():
    again = {"executableCode": {"language": "PYTHON", "code": "print(2)"}}
    contents = [ASK, model(CODE, OUTPUT, again, OUTPUT), model(CODE), model(OUTPUT), WELL]
    assert sent(conversation(*contents)) == contents


@PAIRS
def test_a_use_without_a_result_gets_one(use, result):
    kind = next(iter(result))
    for after in ([], [WELL]):
        request = sent(conversation(ASK, model(use), *after))
        assert request[1] == model(use)
        (closing,) = request[2]["parts"]
        inner = closing[kind]
        assert NO_RESULT in (inner.get("output"), inner.get("response", {}).get("error"))
        assert inner.get("id") == next(iter(use.values())).get("id")


def test_a_user_message_after_an_open_use_leaves_what_was_sent():
    chat = conversation(ASK, model(SEARCH))
    before = sent(chat)
    chat.append(WELL)
    assert sent(chat)[:3] == before[:3]


@PAIRS
def test_a_result_without_its_use_is_left_out(use, result):
    assert sent(conversation(ASK, model(result, TEXT), WELL))[1] == model(TEXT)
    assert sent(conversation(ASK, model(use), WELL, model(result, TEXT)))[-1] == model(TEXT)


@PAIRS
def test_an_open_use_next_to_a_call_is_left_out(use, result):
    """The responses to calls must follow at once, so nothing can close the use."""
    assert sent(conversation(ASK, model(use, CALL), ANSWER))[1] == model(CALL)
    assert sent(conversation(ASK, model(use, result, CALL), ANSWER))[1] == model(use, result, CALL)


def test_a_result_with_a_call_joins_the_content_of_its_use():
    """A function call must follow the user's side, but a note of the user would part the pair."""
    assert sent(conversation(ASK, model(SEARCH), model(FOUND, CALL), ANSWER))[1] == model(SEARCH, FOUND, CALL)


@PAIRS
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("content", [None, (Text("[cleared]"),)], ids=["hide", "replace"])
def test_an_edit_of_one_half_hides_the_other(use, result, part, content):
    chat = conversation(ASK, model(use, result, TEXT), WELL)
    target = Target(chat.history()[1].id, (part,))
    chat.edit(Hide(target) if content is None else Replace(target, content))
    assert sent(chat)[1] == (model(TEXT) if content is None else model({"text": "[cleared]"}, TEXT))


@PAIRS
def test_a_hidden_message_takes_its_half_of_a_pair_along(use, result):
    chat = conversation(ASK, model({"text": "I look."}, use), model(result, TEXT), WELL)
    chat.edit(Hide(Target(chat.history()[1].id)))
    assert sent(chat) == [ASK, model(TEXT), WELL]
    chat.undo()
    chat.edit(Hide(Target(chat.history()[2].id)))
    assert [next(iter(part)) for part in sent(chat)[2]["parts"]] == [next(iter(result))]


@PAIRS
def test_a_view_is_not_cut_inside_a_pair(use, result):
    chat = conversation(ASK, model(use), model(result), model(TEXT), WELL)
    assert cut_points(chat.view) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("policy", ["balanced", "frugal", "coding", "keep-last-1", "recap", "prune-and-compact"])
def test_no_preset_parts_a_pair(policy):
    chat = conversation(policy=policy, options=Options(background=False), summarizer=lambda request: "They looked.")
    for turn in range(30):
        chat.append(f"Step {turn}. " + "Look carefully. " * 60)
        sent(chat)
        code = {"executableCode": {"language": "PYTHON", "code": f"print({turn})\n" * 60}}
        output = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": f"{turn}\n" * 400}}
        if turn % 2:
            chat.append([model(code), model(output, {"text": "Done. " * 40})])
        else:
            chat.record({"candidates": [{"content": model(code, output, CALL)}]})
            chat.append({"functionResponse": {"name": "look", "response": {"output": f"row {turn}\n" * 300}}})
            sent(chat)
            chat.record({"candidates": [{"content": model({"text": f"Step {turn} is done."})}]})
    sent(chat)


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ([ASK, model(SEARCH)], "toolCall t1 has no result"),
        ([ASK, model(CODE, TEXT), WELL], "executableCode  has no result"),
        ([ASK, model(FOUND, TEXT), WELL], "toolResponse t1 has no toolCall before it"),
        ([ASK, model(FOUND, SEARCH), WELL], "toolResponse t1 has no toolCall before it"),
        ([ASK, model(SEARCH), WELL, model(FOUND), WELL], "toolCall t1 has no result"),
        ([{"role": "user", "parts": [SEARCH]}], "toolCall in a content of the user"),
    ],
)
def test_the_second_checker_finds_halves_of_pairs(contents, problem):
    refusals = check_body("gemini", {"model": "gemini-2.5-flash", "contents": contents})
    assert any(problem in str(refusal) for refusal in refusals), refusals
