"""Server tools: a use and its result stay together, whatever is hidden, folded, forked or interrupted."""

from __future__ import annotations

import json
from sys import getrefcount

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import open_conversation
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Span, Target
from foveate.core.legalize import NO_ANSWER
from foveate.core.messages import Message, Opaque, Text, ToolCall
from foveate.core.server_tools import closing_result, server_block, server_blocks
from foveate.core.units import cut_points
from foveate.policies.span_selection import select_oldest_before
from foveate.testing import answer, call, user
from foveate.testing.bodies import check_body

from .story import ANTHROPIC, Story

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}
OTHER = {**SEARCH, "id": "srvtoolu_2"}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
TEXT = {"type": "text", "text": "It rains."}
ASK = {"role": "user", "content": "Does it rain?"}
PRESETS = ("balanced", "frugal", "coding", "prune", "keep-last-1", "recap", "prune-and-compact")


def opaque(block: dict) -> Opaque:
    return Opaque("anthropic", block["type"], json.dumps(block))


def test_a_long_block_is_held_by_no_cache():
    """A fetched document may have megabytes, and it must leave the memory with its conversation."""
    for kind, format, fields in (
        ("web_fetch_tool_result", "anthropic", {"tool_use_id": "srvtoolu_1"}),
        ("codeExecutionResult", "gemini", {}),
        ("program_output", "openai_responses", {"call_id": "c1"}),
    ):
        body = json.dumps({"type": kind, **fields, "content": "x" * 10_000})
        before = getrefcount(body)
        assert server_block(Opaque(format, kind, body)) is not None
        assert getrefcount(body) == before


def model(*blocks: dict) -> dict:
    return {"role": "assistant", "content": list(blocks)}


def sent(*messages: dict, policy: str = "none", **options) -> list[dict]:
    """Return the messages of the request after these, which the second checker accepts."""
    chat = open_conversation("c", format="anthropic", window=100_000, policy=policy, **options)
    chat.append(list(messages))
    body = json.loads(chat.body())
    assert check_body("anthropic", body) == []
    return body["messages"]


# ------------------------------------------------------------------------------------------------------------- pauses


PROGRAM = {"type": "program", "id": "prog_1", "call_id": "call_p", "code": "await look()", "fingerprint": "f"}
CALLED = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "look",
    "arguments": "{}",
    "caller": {"type": "program", "caller_id": "call_p"},
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain", "caller": CALLED["caller"]}
RAN = {"type": "program_output", "id": "prog_out_1", "call_id": "call_p", "result": "rain", "status": "completed"}


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        (None, [PROGRAM, CALLED, OUTPUT, RAN]),
        (2, []),
        (4, [PROGRAM, CALLED, OUTPUT, {**RAN, "id": "prog_out_call_p", "result": NO_ANSWER, "status": "incomplete"}]),
    ],
)
def test_program_and_its_output_are_paired_across_responses(hidden, shown):
    """OpenAI runs the program, which calls a tool of the client in between."""
    chat = open_conversation("c", format="openai_responses", window=100_000, policy="none", expand=False)
    chat.append(ASK)
    for output, answers in (([PROGRAM, CALLED], [OUTPUT]), ([RAN], [{"role": "user", "content": "Thanks."}])):
        chat.prompt()
        chat.record({"object": "response", "status": "completed", "output": output})
        chat.append(answers)
    if hidden is not None:
        chat.edit(Hide(Target(chat.history()[hidden - 1].id)))
    items = chat.prompt()["input"]
    assert [item for item in items if "type" in item] == shown
    assert check_body("openai_responses", chat.body()) == []


def test_call_of_another_agent_gets_a_stand_in_if_its_output_is_hidden():
    """OpenAI runs the agents: the output of a call that waits for one may be in a later response."""
    call = {"type": "multi_agent_call", "id": "mac_1", "call_id": "c", "action": "wait_agent", "arguments": "{}"}
    ran = {"type": "multi_agent_call_output", "id": "maco_1", "call_id": "c", "action": "wait_agent", "output": []}
    chat = open_conversation("c", format="openai_responses", window=100_000, policy="none", expand=False)
    chat.append([ASK, call, CALLED, OUTPUT, ran, {"role": "user", "content": "Thanks."}])
    assert chat.prompt()["input"][1:5] == [call, CALLED, OUTPUT, ran]
    chat.edit(Hide(Target(chat.history()[3].id)))
    output = [{"type": "output_text", "text": NO_ANSWER}]
    assert chat.prompt()["input"][4] == {"type": ran["type"], "call_id": "c", "action": "wait_agent", "output": output}


def test_paused_turn_is_sent_back_as_it_came():
    assert sent(ASK, model(SEARCH))[1:] == [model(SEARCH)]


def test_user_message_after_a_pause_follows_a_stand_in():
    request = sent(ASK, model(SEARCH), {"role": "user", "content": "Never mind."})
    assert [message["role"] for message in request] == ["user", "assistant", "assistant", "user"]
    error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    assert request[2]["content"] == [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": error}]


def test_user_message_after_a_pause_leaves_what_was_sent():
    chat = open_conversation("c", format="anthropic", window=100_000, policy="none")
    chat.append([ASK, model(SEARCH)])
    paused = json.loads(chat.body())["messages"]
    chat.append("Never mind.")
    assert json.loads(chat.body())["messages"][: len(paused)] == paused


def test_result_after_the_user_spoke_is_left_out():
    request = sent(ASK, model(SEARCH), {"role": "user", "content": "Well?"}, model(FOUND, TEXT))
    assert request[-1] == model(TEXT)


def test_server_tool_may_wait_while_the_clients_tools_run():
    """Code of the provider calls the client's tools: its result comes after theirs."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}
    request = sent(ASK, model(SEARCH, use), result)
    assert [len(message["content"]) for message in request] == [1, 2, 1]
    request = sent(ASK, model(SEARCH, use), result, model(FOUND, TEXT))
    assert request[-1] == model(FOUND, TEXT)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("web_fetch", "web_fetch_tool_result"),
        ("bash_code_execution", "bash_code_execution_tool_result"),
        ("tool_search_tool_bm25", "tool_search_tool_result"),
        ("advisor", "advisor_tool_result"),
    ],
)
def test_stand_in_has_the_kind_of_its_tool(name: str, kind: str):
    use = server_block(opaque({**SEARCH, "name": name}))
    assert use is not None
    made = json.loads(closing_result(use, "").body)
    assert (made["type"], made["content"]["type"]) == (kind, f"{kind}_error")


def test_stand_in_for_an_mcp_tool_is_a_failed_result():
    request = sent(ASK, model({**SEARCH, "type": "mcp_tool_use", "server_name": "s"}), {"role": "user", "content": "?"})
    assert (request[2]["content"][0]["type"], request[2]["content"][0]["is_error"]) == ("mcp_tool_result", True)


# -------------------------------------------------------------------------------------------------------------- edits


@pytest.mark.parametrize("path", [0, 1])
def test_hiding_half_of_a_pair_hides_both(path: int):
    story = Story(user("go"), Message("assistant", (opaque(SEARCH), opaque(FOUND), Text("Rain."))), profile=ANTHROPIC)
    story.edit(Hide(Target(story.id(2), (path,))))
    (_, entry) = story.projection.entries()
    assert entry.message.parts == (Text("Rain."),)
    assert sorted(entry.shrunk) == [(0,), (1,)]
    assert check(story.projection.entries(), ANTHROPIC) == []


@pytest.mark.parametrize("path", [0, 1])
def test_replacing_half_of_a_pair_replaces_both(path: int):
    story = Story(user("go"), Message("assistant", (opaque(SEARCH), opaque(FOUND), Text("Rain."))), profile=ANTHROPIC)
    story.edit(Replace(Target(story.id(2), (path,)), (Text("[Searched.]"),)))
    assert story.projection.entries()[1].message.parts == (Text("[Searched.]"), Text("Rain."))


def test_hiding_the_message_with_the_use_leaves_out_the_result():
    paused, resumed = Message("assistant", (opaque(SEARCH),)), Message("assistant", (opaque(FOUND), Text("Rain.")))
    story = Story(user("go"), paused, resumed, user("more"), profile=ANTHROPIC)
    story.edit(Hide(Target(story.id(2))))
    (_, entry, _) = story.projection.entries()
    assert entry.message.parts == (Text("Rain."),)
    assert entry.legalized.startswith("a server tool's result without its use")
    story.edit(Hide(Target(story.id(3))))
    assert [entry.message.role for entry in story.projection.entries()] == ["user", "user"]


def test_hiding_the_message_with_the_result_closes_the_use():
    paused, resumed = Message("assistant", (opaque(SEARCH),)), Message("assistant", (opaque(FOUND),))
    story = Story(user("go"), paused, resumed, user("more"), profile=ANTHROPIC)
    story.edit(Hide(Target(story.id(3))))
    assert [entry.kind for entry in story.projection.entries()] == ["message", "message", "stand-in", "message"]
    assert check(story.projection.entries(), ANTHROPIC) == []


def test_no_view_is_cut_between_a_use_and_its_result():
    paused = Message("assistant", (opaque(SEARCH), ToolCall("a", "t")))
    resumed = Message("assistant", (opaque(FOUND), Text("Rain.")))
    story = Story(user("go"), paused, answer("a"), resumed, call("b"), answer("b"), profile=ANTHROPIC)
    assert cut_points(story.projection.entries()) == [0, 1, 4, 6]


def test_no_summary_covers_a_use_that_waits():
    done, paused = Message("assistant", (opaque(SEARCH), opaque(FOUND))), Message("assistant", (opaque(OTHER),))
    waiting = Story(user("go"), user("on"), done, paused, call("a"), answer("a"), profile=ANTHROPIC).view()
    oldest = select_oldest_before(waiting, len(waiting))
    assert oldest is not None
    assert [entry.position for entry in oldest.covered] == [1, 3]


def test_summary_over_the_use_leaves_out_the_result():
    paused, resumed = Message("assistant", (opaque(SEARCH),)), Message("assistant", (opaque(FOUND), Text("Rain.")))
    story = Story(user("go"), user("on"), paused, resumed, user("more"), profile=ANTHROPIC)
    story.edit(Hide(Span(story.id(1), story.id(3))))
    assert [entry.message.parts[-1] for entry in story.projection.entries()][-2:] == [Text("Rain."), Text("more")]
    assert check(story.projection.entries(), ANTHROPIC) == []


def test_fork_between_use_and_result_can_go_on():
    chat = open_conversation("c", format="anthropic", window=100_000, policy="none")
    chat.append([ASK, model(SEARCH), model(FOUND, TEXT)])
    fork = chat.fork("d", at=2)
    fork.append("Something else.")
    assert check_body("anthropic", fork.body()) == []


def test_repair_of_a_broken_conversation_is_legal():
    chat = open_conversation("c", format="anthropic", window=100_000, policy="off")
    chat.append([ASK, model(FOUND, TEXT), {"role": "user", "content": "?"}, model(SEARCH), ASK])
    assert check_body("anthropic", chat.journal.repair().body) == []


@pytest.mark.parametrize("policy", PRESETS)
def test_no_preset_parts_searches_that_paused(policy: str):
    chat = open_conversation("c", format="anthropic", window=12_000, policy=policy, summarizer="digest")
    for turn in range(20):
        chat.append(f"Question {turn}: {'rain ' * 200}")
        use = {**SEARCH, "id": f"srvtoolu_{turn}"}
        assert check_body("anthropic", chat.body()) == []
        chat.record(model({"type": "text", "text": "I search. " * 40}, use))
        assert check_body("anthropic", chat.body()) == []
        chat.record(model({**FOUND, "tool_use_id": f"srvtoolu_{turn}"}, {"type": "text", "text": "Found. " * 40}))
        call_id = f"toolu_{turn}"
        chat.record(model({"type": "tool_use", "id": call_id, "name": "read", "input": {}}))
        chat.append([{"type": "tool_result", "tool_use_id": call_id, "content": "line\n" * 400}])
        assert check_body("anthropic", chat.body()) == []


@given(st.lists(st.tuples(st.sampled_from("urpct"), st.integers(0, 2)), max_size=14))
def test_every_order_of_uses_and_results_is_legal(moves: list[tuple[str, int]]):
    """u: a use, r: a result, p: both in one message, c: a call with its answer, t: the user's text."""
    story = Story(user("go"), profile=ANTHROPIC)
    for number, (kind, id) in enumerate(moves):
        use, result = opaque({**SEARCH, "id": f"srvtoolu_{id}"}), opaque({**FOUND, "tool_use_id": f"srvtoolu_{id}"})
        match kind:
            case "u":
                story.say(Message("assistant", (use,)))
            case "r":
                story.say(Message("assistant", (result,)))
            case "p":
                story.say(Message("assistant", (use, result)))
            case "c":
                story.say(call(f"c{number}"), answer(f"c{number}"))
            case _:
                story.say(user("more"))
        before = story.projection.entries()
        assert check(before, ANTHROPIC) == []
        assert [block for entry in before for _, block in server_blocks(entry.message) if not block.id] == []
    assert story.folded().entries()[-1].message == story.projection.entries()[-1].message
