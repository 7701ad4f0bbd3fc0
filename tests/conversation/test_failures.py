"""The failures of failures.md that the engine prevents, each with its number."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from foveate import DoesNotFit, Media, StoreError, ToolCall, View, assistant, open_conversation, tool_result, user
from foveate.core.legalize import NO_ANSWER
from foveate.core.messages import Extra
from foveate.core.profiles import PROFILES
from foveate.edits import Hide, Span, Summarize, Target
from foveate.errors import BadEdit, BadSetting
from foveate.policies import prune_tool_outputs
from foveate.rules import cut_points
from foveate.stores.memory import MemoryStore
from foveate.testing import StubAnthropic, agent_run, answer, call, calls, chat, say, text_of
from foveate.testing.faults import Countdown, failing_store

from .shells import opened, refusals, shown, texts, wire

PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
PIXEL = Media(
    "image/png",
    "base64",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)


# ------------------------------------------------------------------------------------------- A. refused views


@PROVIDERS
def test_cut_anywhere_leaves_no_orphan(provider):
    """F01."""
    history = chat(user("go"), calls("a", "b"), answer("a"), answer("b"), call("c"), answer("c"), user("and now?"))
    for first in range(1, len(history)):
        for last in range(first, len(history)):
            one = opened(provider=provider)
            ids = one.append(history)
            one.edit(Summarize(Span(ids[first - 1], ids[last - 1]), "[earlier]"))
            assert refusals(one) == []


def test_cut_points_never_separate_a_call_from_its_result():
    """F01."""
    one = opened()
    one.append(chat(user("go"), calls("a", "b"), answer("b"), answer("a"), say("done"), user("more"), call("c")))
    # Before: user, calls, [answers], say, user, call; the stand-in of call c belongs to it.
    assert cut_points(one.view) == [0, 1, 4, 5, 6, 8]


@PROVIDERS
def test_parallel_answers_follow_their_calls_in_any_order(provider):
    """F02."""
    one = opened(provider=provider)
    one.append(
        chat(user("go"), calls("a", "b", "c"), answer("c", "3"), user("hurry"), answer("a", "1"), answer("b", "2"))
    )
    view = one.prepare()
    assert texts(view) == ["go", "", "3", "1", "2", "hurry"]
    assert refusals(one, view) == []


@PROVIDERS
def test_missing_answer_reads_as_interrupted_and_late_one_as_a_note(provider):
    """F02."""
    one = opened(provider=provider)
    one.append(chat(user("go"), call("a", "read_file", path="x.py")))
    before = one.prepare()
    assert texts(before) == ["go", "", NO_ANSWER]
    one.append(answer("a", "print(1)"))
    after = one.prepare()
    assert texts(after)[3:] == ["[Result for call a of read_file, which came late]\nprint(1)"]
    assert wire(one, after)[: len(wire(one, before))] == wire(one, before)
    assert refusals(one, after) == []


@PROVIDERS
def test_second_answer_becomes_a_note(provider):
    """F02."""
    one = opened(provider=provider)
    one.append(chat(user("go"), call("a"), answer("a", "first"), answer("a", "second")))
    assert texts(one.prepare())[2:] == ["first", "[Result for call a of tool, which came late]\nsecond"]
    assert refusals(one) == []


@PROVIDERS
def test_marker_inside_a_pair_survives_the_next_compaction(provider):
    """F03."""
    one = opened(provider=provider)
    ids = one.append(
        chat(user("go"), call("a"), answer("a"), call("b"), answer("b"), call("c"), answer("c"), user("on"))
    )
    one.edit(Summarize(Span(ids[1], ids[3]), "[first half]"))  # ends between call b and its answer
    assert refusals(one) == []
    one.edit(Summarize(Span(ids[0], ids[2]), "[less]"))  # ends inside the first one
    assert refusals(one) == []
    one.undo(1)
    assert refusals(one) == []


def test_interrupted_plan_leaves_nothing_and_commits_once_on_retry():
    """F04."""
    for n in range(1, 4):
        countdown = Countdown()
        one = opened(policy="keep-last-1", store=failing_store(MemoryStore(), countdown))
        one.append(chat(user("go"), call("a"), answer("a", text_of(50)), call("b"), answer("b", text_of(50))))
        countdown.start(n)
        try:
            one.prepare()
        except Exception:
            assert one._agent.head.number == 0
            assert all(entry.shrunk == () for entry in one.view)
        countdown.start(0)
        one.prepare()
        one.prepare()
        assert [receipt.first for receipt in one.journal.receipts()] == [1]


@PROVIDERS
def test_excess_images_become_placeholders(provider):
    """F06."""
    profile = replace(PROFILES[provider], max_images=20)
    one = opened(provider=provider, profile=profile, window=200_000, expand=True)
    one.append(user("look at these"))
    for i in range(25):
        one.append([call(f"c{i}", "screenshot"), tool_result(f"c{i}", f"screen {i}", PIXEL)])
        view = one.prepare()
        assert view.images <= 20
        assert refusals(one, view) == []
    assert 'expand("m3.1.2")' in texts(view)[2]
    assert one.expand("m3.1.2").parts == (PIXEL,)


@PROVIDERS
def test_body_bytes_trigger_before_tokens(provider):
    """F07."""
    one = opened(provider=provider, profile=replace(PROFILES[provider], max_bytes=20_000), window=1_000_000)
    one.append(user("go"))
    for i in range(20):
        one.append([call(f"c{i}"), answer(f"c{i}", "é" * 1_500)])
        view = one.prepare()
        assert len(one.format.body(view, profile=one._agent.profile)) <= 20_000
    assert view.tokens < 20_000


@PROVIDERS
def test_shrunk_arguments_stay_valid_json(provider):
    """F08."""
    one = opened(provider=provider, window=4_000, expand=True)
    one.append(user("write it"))
    for i in range(6):
        arguments = json.dumps({"path": f"f{i}.py", "content": text_of(1_500, i), "mode": {"flags": [1, 2]}})
        one.append([assistant("", ToolCall(f"c{i}", "write_file", arguments)), answer(f"c{i}", "written")])
        one.prepare()
    shrunk = [c for entry in one.view for c in entry.message.calls if (0,) in entry.shrunk]
    assert shrunk
    for c in shrunk:
        given = json.loads(c.arguments)
        assert set(given) == {"path", "content", "mode"}
        assert given["mode"] == {"flags": [1, 2]}
        assert "[cut: 400 of 6,000 characters; expand(" in given["content"]


@PROVIDERS
def test_broken_arguments_are_wrapped_without_loss(provider):
    """F08."""
    one = opened(provider=provider)
    one.append(chat(user("go"), assistant("", ToolCall("a", "write", '{"path": "x", "text": "cut o')), answer("a")))
    arguments = one.prepare().entries[1].message.calls[0].arguments
    assert json.loads(arguments) == {"invalid_arguments": '{"path": "x", "text": "cut o'}
    assert refusals(one) == []


@PROVIDERS
def test_unknown_keys_stay_and_are_sent_only_to_servers_that_take_them(provider):
    """F09."""
    given = {"role": "user", "content": "hi", "x_trace": {"id": 7}}
    one = opened(provider=provider)
    one.append(given)
    assert "x_trace" not in one.prompt()["messages"][0]
    assert refusals(one) == []
    assert one.history()[0].message.extra == Extra(provider, '{"x_trace":{"id":7}}')
    takes = opened(provider=provider, profile=replace(PROFILES[provider], unknown_keys=True))
    takes.append(given)
    assert takes.prompt()["messages"][0]["x_trace"] == {"id": 7}


@PROVIDERS
def test_metadata_of_a_message_becomes_its_stamp_and_is_not_sent(provider):
    """F09."""
    one = opened(provider=provider)
    first = {"role": "user", "content": "hi", "metadata": {"id": "u1"}}
    one.append([first, {"role": "assistant", "content": "hello"}], metadata={"all": 1})
    assert [entry.stamp.metadata for entry in one.history()] == ['{"id":"u1"}', '{"all":1}']
    messages = [
        first,
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "go", "metadata": {"n": 2}},
    ]
    one.prompt(messages=messages)
    assert [entry.stamp.metadata for entry in one.history()] == ['{"id":"u1"}', '{"all":1}', '{"n":2}']
    assert b"metadata" not in one.body()
    messages[0] = {**first, "metadata": {"id": "other"}}
    one.prompt(messages=messages)
    assert len(one.history()) == 3


@PROVIDERS
def test_strict_profile_drops_unknown_keys_of_blocks_too(provider):
    """F09."""
    one = opened(provider=provider, profile=replace(PROFILES[provider], strict=True))
    one.append({"role": "user", "content": [{"type": "text", "text": "hi", "x_trace": 7}], "x_trace": 7})
    assert b"x_trace" not in one.body()


# ------------------------------------------------------------------------------------------- B. loops


def test_long_tool_loop_stays_within_its_window():
    """F15."""
    one = opened(window=8_000)
    one.append(user("one request, many calls"))
    for i in range(60):
        one.append([call(f"c{i}"), answer(f"c{i}", text_of(700, i))])
        view = one.prepare()
        assert view.tokens <= view.budget.usable


def test_off_disables_everything_automatic():
    """F17."""
    one = opened(policy="off", window=1_000)
    one.append(chat(user("go"), *(m for i in range(9) for m in (call(f"c{i}"), answer(f"c{i}", text_of(500, i))))))
    view = one.prepare()
    one.record(say("done"))
    assert view.tokens > 4_000
    assert one.journal.receipts() == []


# ------------------------------------------------------------------------------------------- D. money


@PROVIDERS
def test_repeated_prompt_has_the_same_bytes(provider):
    """F27."""
    one = opened(provider=provider)
    last: list[bytes] = []
    for message in agent_run(30, seed=3):
        if message.role == "assistant":
            now = wire(one, one.prepare())
            assert wire(one, one.prepare()) == now
            assert now[: len(last)] == last
            last = now
        one.append(message)


def test_frontier_moves_in_batches():
    """F34."""

    def edited_turns(policy):
        one = opened(policy=policy)
        for message in agent_run(80, seed=5, result_chars=(2_000, 4_000)):
            if message.role == "assistant":
                one.prepare()
            one.append(message)
        return len(one.journal.receipts()), len(one.history())

    sliding, messages = edited_turns("keep-last-5")
    batched, _ = edited_turns(prune_tool_outputs(protect=10_000, minimum=10_000))
    assert sliding > messages // 4
    assert 1 <= batched <= 10


# ------------------------------------------------------------------------------------------- E. durability


def test_summarized_messages_can_be_read_and_restored():
    """F29."""
    history = agent_run(20, seed=1)
    one = opened()
    ids = one.append(history)
    one.edit(Summarize(Span(ids[0], ids[-2]), "all of it"))
    one.append(user("next"))
    assert len(one.view) <= 4
    assert [row.message for row in one.history()] == [*history, user("next")]
    assert list(one.originals(f"m1-m{len(history)}")) == history
    one.expand(f"m1-m{len(history) - 1}")
    assert [entry.message for entry in one.view] == [*history, user("next")]


def test_uncommitted_summary_hides_nothing():
    """F29."""
    countdown = Countdown()
    one = opened(store=failing_store(MemoryStore(), countdown))
    ids = one.append(chat(user("go"), say("a"), user("b"), say("c"), user("d")))
    before = shown(one.view)
    for n in range(1, 9):
        countdown.start(n)
        try:
            one.edit(Summarize(Span(ids[0], ids[3]), "short"))
        except StoreError:
            assert shown(one.view) == before
        else:
            break
    else:
        pytest.fail("the edit never got through")


def test_message_during_planning_is_not_covered():
    """F31."""
    store = MemoryStore()
    one = opened(store=store)
    one.append(chat(user("go"), say("a"), user("b")))
    plan_for = one.view.entries
    other = opened(store=store)
    other.append(user("wait, also this"))
    one.edit(Summarize(Span(plan_for[0].id, plan_for[1].id), "earlier"))
    assert texts(one.view) == ["earlier", "b", "wait, also this"]
    assert texts(one.prepare()) == ["earlier", "b", "wait, also this"]


def test_retry_with_after_adds_nothing_twice():
    """F32."""
    one = opened()
    (first,) = one.append(user("go"))
    ids = one.append([say("a"), user("b")], after=first)
    assert one.append([say("a"), user("b")], after=first) == ids
    assert one.append([say("a"), user("b"), say("c")], after=first)[:2] == ids
    assert [row.message.text for row in one.history()] == ["go", "a", "b", "c"]


def test_repeated_list_adds_its_tail_and_a_departure_forks():
    """F32."""
    store = MemoryStore()
    one = opened(store=store)
    mine = [{"role": "user", "content": "go"}]
    one.prompt(messages=mine)
    one.record({"choices": [{"message": {"role": "assistant", "content": "a", "refusal": None}}]})
    mine += [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    assert one.prompt(messages=mine)["messages"] == mine
    assert len(one) == 3
    mine[2] = {"role": "user", "content": "rather this"}
    assert one.prompt(messages=mine)["messages"] == mine
    assert [row.message.text for row in one.history()] == ["go", "a", "b", "rather this"]
    assert store.names("") == ["c"]  # The question that was asked otherwise is hidden.
    other = [{"role": "user", "content": "begin"}]
    assert one.prompt(messages=other)["messages"] == other
    assert store.names("") == ["c", "c~1"]
    assert texts(opened("c~1", store=store).view) == ["go", "a", "rather this"]


# ------------------------------------------------------------------------------------------- F. control


def test_plan_is_a_dry_run_of_prepare():
    """F33."""
    one = opened(policy="keep-last-1", expand=True)
    one.append(chat(user("go"), call("a"), answer("a", text_of(90)), call("b"), answer("b", text_of(80))))
    plan = one.plan()
    assert one._agent.head.number == 0
    assert shown(one.view) == shown(plan.before)
    view = one.prepare()
    assert shown(view) == shown(plan.after)
    (receipt,) = one.journal.receipts()
    assert (receipt.edits, receipt.policies, receipt.tokens_saved) == (plan.edits, ("keep-last-1",), plan.tokens_saved)
    assert receipt.tokens_saved > 80


def test_every_edit_can_be_undone_and_every_turn_viewed():
    """F33."""
    one = opened(policy="keep-last-1")
    seen: list[View] = []
    for message in agent_run(12, seed=2):
        if message.role == "assistant":
            seen.append(one.prepare())
        one.append(message)
    for turn, view in enumerate(seen, 1):
        assert shown(one.as_of(turn)) == shown(view)
    whole = [row.message.text for row in one.history()]
    for receipt in reversed(one.journal.receipts()):
        one.undo(receipt)
    assert texts(one.view) == whole


def test_undoing_an_undo_or_an_expansion_restores_the_edit():
    """F33."""
    one = opened(policy="keep-last-1")
    one.append(chat(user("go"), call("a"), answer("a", text_of(90)), call("b"), answer("b")))
    shrunk = shown(one.prepare())
    one.expand("m3")
    whole = shown(one.view)
    assert whole != shrunk
    back = one.undo(one.journal.receipts()[-1])
    assert shown(one.view) == shrunk
    again = one.undo(back)
    assert shown(one.view) == whole
    one.undo(again)
    assert shown(one.view) == shrunk


def test_edit_of_a_protected_message_is_refused():
    one = opened()
    ids = one.append([*chat(user("go"), say("a"), user("b"))])
    with pytest.raises(BadEdit, match="m3 is a system prompt or the last user input"):
        one.edit(Hide(Target(ids[2])))
    assert one.journal.receipts() == []


def test_budget_below_the_request_alone_raises_does_not_fit():
    one = opened(window=1_000)
    one.append(user(text_of(2_000)))
    with pytest.raises(DoesNotFit) as caught:
        one.prepare()
    assert (caught.value.needed, caught.value.usable, caught.value.unit) == (2_004, 900, "tokens")
    assert one.journal.receipts() == []


def test_missing_window_error_names_model_and_window():
    with pytest.raises(BadSetting, match=r"window=200_000.*model="):
        open_conversation("c", format="openai")


def test_conversation_learns_the_limit_from_the_stub():
    client = StubAnthropic([{"role": "assistant", "content": "ok"}], window=3_000)
    one = opened(provider="anthropic", window=200_000)
    one.append(chat(user("go"), *(m for i in range(9) for m in (call(f"c{i}"), answer(f"c{i}", text_of(600, i))))))
    prompt = one.prompt()
    try:
        client.messages.create(model="m", max_tokens=10, **prompt)
    except Exception as error:
        prompt = one.retry_smaller(error)
    one.record(client.messages.create(model="m", max_tokens=10, **prompt))
    assert one.budget.window == 3_000


def test_text_may_contain_nul_but_no_lone_surrogate():
    one = opened()
    one.append(user("a\0b"))
    with pytest.raises(Exception, match="surrogate"):
        one.append([user("fine"), user("\ud800")])
    assert [row.message for row in one.history()] == [user("a\0b")]
