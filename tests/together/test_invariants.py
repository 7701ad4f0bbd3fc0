"""The invariants I1 to I17, for every mechanism alone and for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import BadInput, Conversation, DoesNotFit, Entry, Message, View, open_conversation
from foveate.core.checker import check
from foveate.core.wire import encode_message, encode_record
from foveate.edits import Summarize, Task
from foveate.stores.memory import MemoryStore
from foveate.summarizers import SummaryRequest
from foveate.testing.bodies import check_body
from foveate.testing.strategies import histories, runs

from .mechanisms import MECHANISMS, WINDOW, opened, story, told

ALONE = sorted(MECHANISMS)
SETS = [*[(name,) for name in ALONE], tuple(MECHANISMS)]
each = pytest.mark.parametrize("names", SETS, ids="+".join)
"""Every mechanism alone, and all together in the order in which they run."""
FEW = settings(max_examples=max(8, settings.default.max_examples // 5))


def wire(chat: Conversation, view: View) -> list[bytes]:
    return [item.body for item in chat.format.rendered(view, profile=chat._agent.profile)]


def appended(history: list[Message]) -> list[Message]:
    """Return the items of a generated history that are messages."""
    return [message for message in history if message.role != "tool" or message.result is not None]


def settled(chat: Conversation) -> View | None:
    """Return the view of the next call; None if there is nothing to send."""
    try:
        return chat.prepare()
    except BadInput:
        return None


def is_attempt_open(chat: Conversation) -> bool:
    """Return whether the newest attempt at a summary did not succeed: the next call makes another one."""
    newest = next(reversed(chat.journal.records()), None)
    return newest is not None and any(isinstance(edit, Task) and edit.state != "done" for edit in newest.edits)


def look(entries: Sequence[Entry]) -> list[tuple[object, ...]]:
    return [(entry.position, entry.kind, entry.message, entry.shrunk) for entry in entries]


@each
@FEW
@given(history=histories(), provider=st.sampled_from(["openai", "anthropic", "gemini"]))
def test_i01_views_never_separate_a_call_from_its_result(names: tuple[str, ...], history: list[Message], provider: str):
    chat = opened(*names, provider=provider)
    for message in appended(history):
        chat.append(message)
        view = settled(chat)
        if view:
            assert check(view, chat._agent.profile) == []
            assert check_body(provider, chat.format.body(view, profile=chat._agent.profile)) == []


@each
@FEW
@given(history=runs())
def test_i01_ids_of_calls_never_change(names: tuple[str, ...], history: list[Message]):
    view = told(opened(*names), history).prepare()
    made = {call.call_id for message in history for call in message.calls}
    shown = [call.call_id for entry in view for call in entry.message.calls]
    answered = [entry.message.result.call_id for entry in view if entry.message.result]
    assert (len(set(shown)), sorted(shown), set(shown) - made) == (len(shown), sorted(answered), set())


@each
@FEW
@given(history=histories())
def test_i02_applying_a_policy_twice_changes_nothing_more(names: tuple[str, ...], history: list[Message]):
    chat = opened(*names)
    for message in appended(history):
        chat.append(message)
        if settled(chat) and not is_attempt_open(chat):
            number, now = chat._agent.head.number, look(chat.view.entries)
            chat.prepare()
            assert (chat._agent.head.number, look(chat.view.entries)) == (number, now)


@pytest.mark.parametrize("name", [name for name in ALONE if name in ("filter", "recap", "expire", "retain")])
@FEW
@given(history=runs())
def test_i03_planning_often_or_once_gives_the_same_view(name: str, history: list[Message]):
    each_turn, at_the_end = told(opened(name), history), told(opened(name), history, every_turn=False)
    assert look(each_turn.prepare().entries) == look(at_the_end.prepare().entries)


@each
@FEW
@given(history=runs())
def test_i04_no_plan_makes_a_view_larger(names: tuple[str, ...], history: list[Message]):
    shrinking = [
        name for name in names if name != "retain"
    ]  # Content that was saved and not shown at first comes back.
    chat = told(opened(*shrinking), history)
    chat.prepare()
    for receipt in chat.journal.receipts():
        assert receipt.tokens_after <= receipt.tokens_before


@each
@FEW
@given(history=histories())
def test_i05_system_prompt_and_last_input_stay_unchanged(names: tuple[str, ...], history: list[Message]):
    chat, bare = opened(*names), opened()
    last = None
    for message in appended(history):
        chat.append(message)
        bare.append(message)
        last = message if message.role == "user" and message.has_content else last
        if view := settled(chat):
            unedited = {entry.position: entry.message for entry in settled(bare) or ()}
            kept = [entry for entry in view if entry.message.role == "system"]
            kept += [entry for entry in view if entry.position == view.last_input]
            assert [entry.message for entry in kept] == [unedited[entry.position] for entry in kept]
            assert [entry.source for entry in kept if entry.position == view.last_input] == ([last] if last else [])


@each
@FEW
@given(history=histories())
def test_i06_the_history_has_every_message_once_in_order(names: tuple[str, ...], history: list[Message]):
    said = appended(history)
    chat = opened(*names)
    for message in said:
        chat.append(message)
        settled(chat)
    assert [encode_message(row.message) for row in chat.history()] == [encode_message(message) for message in said]
    assert chat.journal.verify() == []


@each
@FEW
@given(history=runs())
def test_i07_views_keep_the_order_of_messages(names: tuple[str, ...], history: list[Message]):
    positions = [entry.position for entry in told(opened(*names), history).prepare()]
    assert positions == sorted(positions)


@each
def test_i08_views_do_not_alias(names: tuple[str, ...]):
    """Changing a returned value changes neither the history nor a later prompt."""
    said = story()
    before = [encode_message(message) for message in said]
    chat = told(opened(*names), said)
    tools = [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}]
    first = chat.prompt(tools=tools)
    kept = msgspec.json.encode(first)
    for message in first["messages"]:
        message.clear()
    first["messages"].clear()
    first["tools"][0]["function"]["name"] = "torn"
    assert tools[0]["function"]["name"] == "t"
    assert msgspec.json.encode(chat.prompt(tools=tools)) == kept
    assert [encode_message(message) for message in said] == before


@each
def test_i09_protected_messages_stay_unchanged(names: tuple[str, ...]):
    """Every protected window contains the newest unit."""
    chat = told(opened(*names), story())
    view = chat.prepare()
    newest = [entry for entry in view if entry.stamp.turn == view.turn - 1 and entry.kind == "message"]
    assert newest != []
    assert [entry.message for entry in newest] == [entry.source for entry in newest]


@each
def test_i10_an_expanded_message_is_the_original(names: tuple[str, ...]):
    chat = told(opened(*names), story())
    chat.prepare()
    shrunk = [entry for entry in chat.view if entry.shrunk or entry.kind == "summary"]
    assert shrunk != [] or names == ("pins",), "the mechanism did nothing in this story"
    for entry in shrunk[:6]:
        handle = entry.handle if entry.source else f"m{entry.position}-m{entry.last}"
        originals = chat.originals(handle)
        assert originals == tuple(story()[entry.position - 1 : (entry.last or entry.position)])
        fork = chat.fork(f"f{entry.position}")
        fork.expand(handle)
        shown = {item.position: item.message for item in fork.prepare()}
        texts = [shown[entry.position + n].text for n in range(len(originals)) if entry.position + n in shown]
        assert [original.text for original in originals] == texts


@each
def test_i11_a_failure_leaves_the_view_unchanged(names: tuple[str, ...]):
    def fails(*_: object) -> str:
        raise RuntimeError("down")

    quiet, loud = opened(*names, summarizer=fails), opened(*names, summarizer=fails, on_event=fails)
    for chat in (quiet, loud):
        told(chat, story())
    assert look(quiet.prepare().entries) == look(loud.prepare().entries)
    assert [record.edits for record in quiet.journal.records()] == [record.edits for record in loud.journal.records()]
    assert [row.message for row in quiet.history()] == story()
    assert check(quiet.view, quiet._agent.profile) == []


@each
@FEW
@given(history=runs())
def test_i12_prompts_extend_each_other_between_two_edits(names: tuple[str, ...], history: list[Message]):
    chat = opened(*names)
    last: list[bytes] = []
    number = 0
    for message in history:
        if message.role == "assistant":
            now = wire(chat, chat.prepare())
            if chat._agent.head.number == number:
                assert now[: len(last)] == last
            last, number = now, chat._agent.head.number
            chat.append(message)
        else:
            chat.append(message)


@pytest.mark.parametrize("failure", ["raises", "says nothing", "says too much", "never finishes"])
@pytest.mark.parametrize("names", [("checkpoint",), ("compact",), tuple(MECHANISMS)], ids="+".join)
def test_i13_retries_are_bounded(names: tuple[str, ...], failure: str):
    """F11: a full window gets three attempts in a row, until the next user input; a checkpoint is tried at growing
    distances. If a digest replaces the summary, the compaction has succeeded, and the count starts again.
    """
    asked: list[SummaryRequest] = []

    class Killed(BaseException):
        pass

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        match failure:
            case "raises":
                raise OSError("no quota")
            case "says nothing":
                return "  "
            case "says too much":
                return "blah " * 100_000
            case _:
                raise Killed

    said = story()
    chat = opened(*names, summarizer=summarizer, window=1_200)
    run = [message for message in said if message.role != "user"]
    chat.append(said[0])
    for message in run * 3:
        with suppress(Killed, DoesNotFit):
            chat.prepare()
        chat.append(message)
    attempts = [request.task for request in asked if request.task]
    assert {task.policy for task in attempts} <= set(names)
    assert attempts != []
    compactions = [task for task in attempts if task.policy == "compact"]
    assert all(task.attempt <= 3 for task in compactions)
    ends = [edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Task)]
    successes = sum(task.policy == "compact" and task.state == "done" for task in ends)
    assert len(compactions) <= 3 * (successes + 1)
    turns = [task.turn for task in attempts if task.policy == "checkpoint"]
    assert all(later - turn >= min(2**n, 32) for n, (turn, later) in enumerate(pairwise(turns)))


@each
@FEW
@given(history=histories())
def test_i14_handles_stay_valid_after_removals(names: tuple[str, ...], history: list[Message]):
    said = appended(history)
    chat = opened(*names)
    for message in said:
        chat.append(message)
        settled(chat)
    assert [chat.original(f"m{n}") for n in range(1, len(said) + 1)] == said


@each
@FEW
@given(history=histories())
def test_i15_the_same_input_and_clock_give_the_same_bytes(names: tuple[str, ...], history: list[Message]):
    one, other = opened(*names), opened(*names)
    for message in appended(history):
        views = []
        for chat in (one, other):
            chat.append(message)
            views.append(settled(chat))
        if views[0] and views[1]:
            assert wire(one, views[0]) == wire(other, views[1])
    assert [encode_record(record) for record in one.journal.records()] == [
        encode_record(record) for record in other.journal.records()
    ]


@each
@FEW
@given(history=runs())
def test_i16_every_message_is_shown_or_replaced_never_both(names: tuple[str, ...], history: list[Message]):
    chat = told(opened(*names), history)
    view = chat.prepare()
    shown = [entry.position for entry in view if entry.kind == "message"]
    assert len(shown) == len(set(shown))
    covered = {
        position for entry in view if entry.kind == "summary" for position in range(entry.position, entry.last + 1)
    }
    assert set(shown) & covered <= spared_by_summaries(chat, view)
    unsaid = {row.position for row in chat.history()} - set(shown) - covered
    hidden = hidden_by_edits(chat)
    assert {position for position in unsaid if history[position - 1].has_content} <= hidden


def spared_by_summaries(chat: Conversation, view: View) -> set[int]:
    """Return positions inside of summaries that are shown on purpose: kept by the edit, pinned, or never covered."""
    places = {row.id: row.position for row in chat.history()}
    edits = [edit for record in chat.journal.records() for edit in record.edits if isinstance(edit, Summarize)]
    kept = {places[id] for edit in edits for id in edit.keep}
    fixed = {entry.position for entry in view if entry.is_pinned() or entry.message.role == "system" or entry.is_input}
    return kept | fixed


def test_every_mechanism_acts_in_the_story():
    """The story has parts that are kept for some calls, so `retain` acts next to each of them."""

    def acted(*names: str) -> set[str]:
        chat = told(opened(*names), story())
        chat.prepare()
        return {policy for receipt in chat.journal.receipts() for policy in receipt.policies}

    alone = {name: acted(name) - ({"retain"} - {name}) for name in MECHANISMS}
    assert {name: policies for name, policies in alone.items() if len(policies) != 1} == {}
    together = acted(*MECHANISMS)
    assert together >= {"retain", "expire", "pins", "compact"}


def hidden_by_edits(chat: Conversation) -> set[int]:
    """Return positions that an edit hides on purpose: an expired message, or an input that a recap replaces."""
    places = {row.id: row.position for row in chat.history()}
    hidden: set[int] = set()
    for record in chat.journal.records():
        for edit in record.edits:
            target = None if isinstance(edit, Task) else getattr(edit, "target", None)
            if type(edit).__name__ == "Hide" and target is not None:
                ends = [target.message] * 2 if hasattr(target, "message") else [target.first, target.last]
                hidden |= set(range(places[ends[0]], places[ends[1]] + 1))
    return hidden


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        *[pytest.param("memory", names, id=f"memory-{'+'.join(names)}") for names in SETS],
        *[
            pytest.param("sqlite", names, id=f"sqlite-{'+'.join(names)}", marks=[pytest.mark.slow] * (len(names) == 1))
            for names in SETS
        ],
    ],
)
def test_i17_a_loaded_view_equals_the_saved_one(names: tuple[str, ...], kind: str, tmp_path: Path):
    store = MemoryStore() if kind == "memory" else f"sqlite:///{tmp_path}/c.db"
    chat = told(opened(*names, store=store), story())
    chat.prepare()
    chat._agent.save_snapshot()
    chat.append("And one more.")
    before = wire(chat, chat.prepare()), chat.view.tasks
    chat.close()
    again = open_conversation("c", store=store, policy="off", window=WINDOW)
    assert (wire(again, again.prepare()), again.view.tasks) == before
    anew = again.as_of(again.view.turn)
    assert wire(again, anew) == before[0]
