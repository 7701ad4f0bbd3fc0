"""Results that expire: the scenarios of the document with its texts, then content, settings and properties.

A result is appended in the turn of its call. `seen(n)` is the view of call number n.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conversation.shells import opened, refusals, texts
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import Conversation, View
from foveate.core.edits import Replace, Target
from foveate.core.events import Event
from foveate.core.messages import (
    Extra,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
    assistant,
    tool_result,
    user,
)
from foveate.core.originals import RELEASED
from foveate.core.profiles import PROFILES
from foveate.core.stamps import Lease
from foveate.core.summaries import SummaryRequest
from foveate.errors import BadInput, BadSetting, NotExpandable, UnknownHandle
from foveate.policies.expiry import BARE_STUB, expire_results
from foveate.policies.leases import most_aggressive
from foveate.policies.presets import load_preset
from foveate.policies.pruning import prune_tool_outputs
from foveate.replay import replay
from foveate.replay.recordings import read_recording
from foveate.rules import check
from foveate.testing import answer, call, calls, check_body, say, thought
from foveate.testing.strategies import histories

DOCUMENTED = {
    "annotation": "...\n\n[Compacted: showing first {kept} of {length} characters. "
    "Agent can request expansion if needed.]",
    "preamble": "[AI Summary of {length} chars. Agent can request full expansion if needed.]\n\n",
    "bare_annotation": "...\n\n[Compacted: showing first {kept} of {length} characters.]",
    "bare_preamble": "[AI Summary of {length} chars.]\n\n",
}
LONG = "".join(f"{n:04} " for n in range(1_000))
"""5,000 characters, no two fives of them alike."""
QUICK = Lease(2, "compact", "first_chars", 500, message_type="action-result")
SUMMED = Lease(3, "compact", "summary", message_type="action-result")
GONE = Lease(1, "remove", message_type="action-result")
REASON = "Compacted using First N Chars (saved {} tokens)"


class Run:
    """A run of an agent whose results expire, with its events and log lines."""

    def __init__(self, *, summarizer: Any = None, provider: str = "openai", **messages: Any) -> None:
        self.events: list[Event] = []
        policy = expire_results(**{**DOCUMENTED, **messages})
        listen = self.events.append
        self.chat = opened(policy=policy, provider=provider, summarizer=summarizer, on_event=listen, expand=True)
        self.chat.append("Look into it.")

    def seen(self, turn: int) -> View:
        """Return the view of this call, after making and answering the calls before it."""
        while (view := self.chat.prepare()).turn < turn:
            self.chat.record(say(f"step {view.turn}"))
        assert view.turn == turn
        return view

    def expanded(self, handle: str, turn: int) -> Message:
        """Expand before the call of this turn, like a model that requests it in the call before."""
        self.seen(turn - 1)
        self.chat.record(say(f"Show me {handle}."))
        return self.chat.expand(handle)

    def make_call(self, *requests: Message | str) -> None:
        """Make the next call."""
        self.chat.prepare()
        self.chat.record(calls(*requests) if requests else say("I search."))

    def result(self, text: str = LONG, lease: Lease | None = QUICK) -> str:
        """Append the result of an action, as a message of role user; returns its handle."""
        self.chat.append(user(text), lease=lease)
        return f"m{len(self.chat)}"

    def told(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]


def run_of(text: str = LONG, lease: Lease | None = QUICK, **messages: Any) -> Run:
    """Return a run whose first call led to one result, m3."""
    run = Run(**messages)
    run.make_call()
    run.result(text, lease)
    return run


def text_at(view: View, handle: str = "m3") -> str | None:
    """Return the text that a view shows of a message; None for a hidden message."""
    return next((entry.message.text for entry in view if entry.handle == handle), None)


def entry_of(view: View, handle: str = "m3") -> Any:
    return next(entry for entry in view if entry.handle == handle)


def cut(text: str, kept: int = 500) -> str:
    return (
        f"{text[:kept]}...\n\n[Compacted: showing first {kept} of {len(text)} characters. "
        "Agent can request expansion if needed.]"
    )


# -------------------------------------------------------------------------------------------- scenarios of the document


def test_1_4_01_a_limit_of_2_compacts_a_result_of_turn_1_at_turn_4():
    run = run_of()
    assert [text_at(run.seen(turn)) for turn in (2, 3)] == [LONG, LONG]
    entry = entry_of(run.seen(4))
    assert (entry.message.text, len(entry.message.text)) == (cut(LONG), 594)
    assert (len(run.chat.original("m3").text), entry.expandable) == (5_000, True)
    (event,) = run.told("message-compacted")
    assert (event.turn, event.index, event.tokens_saved) == (4, 2, 1_101)
    assert (event.message, event.policy, event.reason) == (entry.id, "expire", REASON.format(1_101))


def test_1_4_02_a_compacted_result_stays_as_it_is():
    requests: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        requests.append(request)
        return "Short."

    for lease in (QUICK, SUMMED):
        run = run_of(lease=lease, summarizer=summarizer)
        first = run.seen(5)
        events_of = len([event for event in run.events if event.edit])
        for turn in (6, 7, 8):
            view = run.seen(turn)
            assert entry_of(view) is entry_of(first)
            assert run.chat.original("m3").text == LONG
        assert (events_of, len([event for event in run.events if event.edit])) == (1, 1)
    assert len(requests) == 1


def test_1_4_03_expanding_renews_the_lease():
    run = run_of()
    assert run.expanded("m3", 6).text == LONG
    assert [event.turn for event in run.told("message-expanded")] == [6]
    whole = entry_of(run.seen(6))
    assert (whole.message.text, whole.shrunk) == (LONG, ())
    assert [text_at(run.seen(turn)) for turn in (7, 8)] == [LONG, LONG]
    assert text_at(run.seen(9)) == cut(LONG)
    assert [event.turn for event in run.told("message-compacted")] == [4, 9]


def test_1_4_04_a_removed_message_leaves_its_neighbours():
    run = Run()
    run.seen(3)
    run.make_call()
    handle = run.result("found: 7", GONE)
    before = run.seen(4)
    assert text_at(before, handle) == "found: 7"
    after = run.seen(5)
    messages = [entry.handle for entry in before if entry.handle != handle]
    assert [entry.handle for entry in after] == [*messages, "m6"]
    events_of = run.told("message-expired", "message-removed")
    assert [(event.kind, event.turn, event.index, event.reason) for event in events_of] == [
        ("message-expired", 5, 4, "Expired after 2 turns (limit: 1)"),
        ("message-removed", 5, 4, "Removed due to expiration"),
    ]


def test_a_removed_message_is_explained():
    run = run_of(lease=GONE)
    tokens = entry_of(run.seen(2)).tokens
    run.seen(3)
    assert run.chat.explain("m3") == (
        f"m3 is not shown.\nEdit 1, turn 3: expire hid it ({tokens:,} -> 0 tokens): Expired after 2 turns (limit: 1)."
    )


def test_1_4_05_a_limit_of_0_ends_at_the_next_call():
    with pytest.warns(UserWarning, match=r"^default: expiration_turns is 0, so these results expire before any model"):
        run = Run(default=Lease(0, "remove"))
    run.seen(2)
    run.make_call()
    run.result("gone at once", Lease(message_type="action-result"))
    run.result("stays", Lease(expiration_mode="none", message_type="action-result"))
    assert texts(run.seen(3))[-2:] == ["I search.", "stays"]
    for never in (Lease(None, "remove"), Lease(0, "none")):
        assert text_at(run_of("x", never).seen(30)) == "x"


def test_1_4_06_an_override_beats_the_mode_none():
    override = Lease(1, "compact", "first_chars", 200, preserve_original=True)
    run = run_of(LONG[:3_000], Lease(action_id="search"), actions={"search": Lease(expiration_mode="none")})
    assert text_at(run.seen(9)) == LONG[:3_000]
    messages = Lease(message_type="action-result", action_id="search")
    actions = {"search": Lease(expiration_mode="none")}
    for run in (
        run_of(LONG[:3_000], messages, actions=actions, override=override),
        run_of(LONG[:3_000], Lease(1, "compact", "first_chars", 200, action_id="search", message_type="tool-result")),
    ):
        assert text_at(run.seen(2)) == LONG[:3_000]
        assert text_at(run.seen(3)) == cut(LONG[:3_000], 200)
        assert len(text_at(run.seen(3)) or "") == 294
        assert run.chat.expand("m3").text == LONG[:3_000]


def test_1_4_07_disable_expiration_beats_every_level():
    off = Lease(disable_expiration=True)
    messages = Lease(1, "remove", message_type="action-result", action_id="search", agent_action_id="agent-search")
    for options in (
        {"override": off},
        {"tools": {"agent-search": off}},
        {"actions": {"search": off}},
        {"default": off},
    ):
        assert text_at(run_of(lease=messages, **options).seen(9)) == LONG
    partly = Lease(expiration_turns=3, message_type="action-result", action_id="search")
    run = run_of(lease=partly, actions={"search": Lease(9, "compact", compact_length=40)})
    assert [text_at(run.seen(turn)) for turn in (4, 5)] == [LONG, cut(LONG, 40)]


def test_1_4_08_without_preserve_original_expanding_is_refused():
    run = run_of(lease=Lease(2, "compact", "first_chars", 500, preserve_original=False, message_type="action-result"))
    view = run.seen(4)
    promised = f"{LONG[:500]}...\n\n[Compacted: showing first 500 of 5000 characters.]"
    assert (text_at(view), entry_of(view).expandable) == (promised, False)
    edits = run.chat._agent.head.number
    with pytest.raises(NotExpandable, match="its original was released"):
        run.chat.expand("m3")
    assert (run.chat._agent.head.number, text_at(run.seen(4))) == (edits, promised)
    assert run.chat.original("m3").text == RELEASED  # The history has only an outline.
    assert run.chat.journal.verify() == []


def test_1_4_09_a_summary_is_requested_once_with_prompt_and_facts():
    requests: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        requests.append(request)
        return '{"summary": "Numbers from 0 to 999."}'

    messages = Lease(message_type="action-result", action_id="query", agent_action_id="researcher-query")
    run = run_of(
        lease=messages,
        tools={"researcher-query": Lease(3, "compact", "summary")},
        actions={"query": Lease(compact_prompt_id="database-query")},
        summarizer=summarizer,
    )
    assert text_at(run.seen(4)) == LONG
    assert requests == []
    summary = "[AI Summary of 5000 chars. Agent can request full expansion if needed.]\n\nNumbers from 0 to 999."
    assert text_at(run.seen(5)) == text_at(run.seen(6)) == summary
    facts = {"originalLength": 5_000, "targetLength": 500, "messageType": "action-result", "turnAdded": 1}
    (request,) = requests
    assert request == SummaryRequest(
        "expire", (user(LONG),), 500, prompt="database-query", facts=facts, conversation=run.chat.name
    )
    (event,) = run.told("message-compacted")
    assert (event.reason, event.tokens_saved) == ("Compacted using AI Summary (saved 1226 tokens)", 1_226)


def raising(request: SummaryRequest) -> str:
    raise ConnectionError("no network")


@pytest.mark.parametrize(
    ("summarizer", "prompts", "why"),
    [
        (raising, None, "the summarizer raised ConnectionError: no network"),
        (lambda request: "  ", None, "the summarizer returned nothing"),
        (lambda request: '{"summary": ""}', None, "the summarizer returned nothing"),
        (lambda request: 7, None, "the summarizer returned int, not text: return the summary itself as a str"),
        (None, None, "there is no summarizer"),
        (lambda request: "Short.", ["of something else"], "no prompt of a name that was given"),
    ],
)
def test_1_4_10_a_failed_summary_leaves_the_beginning(summarizer, prompts, why):
    run = run_of(lease=SUMMED, summarizer=summarizer, prompts=prompts)
    assert text_at(run.seen(5)) == cut(LONG)
    (event,) = run.told("message-compacted")
    assert event.reason == f"{REASON.format(1_101)}: {why}"
    assert text_at(run.seen(9)) == cut(LONG)


def test_1_4_10_a_missing_prompt_is_taken_from_a_lower_level():
    named: list[str] = []

    def summarizer(request: SummaryRequest) -> str:
        named.append(request.prompt)
        return "Short."

    messages = Lease(3, "compact", "summary", compact_prompt_id="lost", message_type="action-result", action_id="query")
    for prompts in (["of the action", "Compact Agent Message"], ["Compact Agent Message"]):
        actions = {"query": Lease(compact_prompt_id="of the action")}
        run_of(lease=messages, actions=actions, prompts=prompts, summarizer=summarizer).seen(5)
    assert named == ["of the action", "Compact Agent Message"]


def test_1_4_11_content_that_would_not_get_shorter_stays():
    run = run_of(LONG[:580])
    assert text_at(run.seen(4)) == LONG[:580]
    assert [event.tokens_saved for event in run.told("message-compacted")] == [0]
    assert text_at(run_of(LONG[:595]).seen(4)) == cut(LONG[:595])

    requests: list[SummaryRequest] = []

    def longwinded(request: SummaryRequest) -> str:
        requests.append(request)
        return f"{request.messages[0].text} And so on."

    run = run_of(lease=SUMMED, summarizer=longwinded)
    assert [text_at(run.seen(turn)) for turn in (5, 9)] == [LONG, LONG]
    (event,) = run.told("message-compacted")
    assert event.reason == "Compacted using AI Summary (saved 0 tokens): the summary is no shorter"
    assert (len(requests), event.tokens_saved) == (1, 0)


def test_1_4_12_short_content_is_marked_too():
    run = Run()
    text = "Very long search results..."
    handle = run.result(text, Lease(1, "compact", "first_chars", 50, message_type="action-result"))
    assert entry_of(run.seen(1), handle).shrunk == ()
    entry = entry_of(run.seen(2), handle)
    assert (len(text), entry.stamp.turn, entry.message.text) == (27, 0, text)
    assert (entry.shrunk, entry.shrunk_by, entry.expandable) == (((0,),), ("expire",), True)
    assert (run.chat.original(handle).text, run.chat.expand(handle).text) == (text, text)


def test_1_4_13_a_refused_expansion_changes_nothing():
    run = run_of()
    run.make_call()
    whole = run.result("never compacted", None)
    view = run.seen(5)
    edits = run.chat._agent.head.number
    for wrong in (-1, 0, len(run.chat) + 1, 100, None, "m99", "the results"):
        with pytest.raises(UnknownHandle):
            run.chat.expand(wrong)  # type: ignore[arg-type]
    for wrong in (whole, 1, 2):
        with pytest.raises(NotExpandable):
            run.chat.expand(wrong)
    assert (run.chat._agent.head.number, texts(run.seen(5))) == (edits, texts(view))
    assert run.chat.expand(3).text == LONG  # The number of the message.
    with pytest.raises(NotExpandable):
        run.chat.expand(3)
    assert run.chat._agent.head.number == edits + 1


def test_1_4_14_one_plan_logs_one_line(caplog):
    caplog.set_level(logging.INFO, "foveate")
    run = run_of("soon gone", Lease(2, "remove", message_type="action-result"))
    fresh = run.result("fresh", Lease(9, "remove", message_type="action-result"))
    run.result()
    run.result(LONG[:3_000])
    run.result(LONG[:400])
    assert texts(run.seen(4))[2:6] == ["fresh", cut(LONG), cut(LONG[:3_000]), LONG[:400]]
    assert text_at(run.seen(5), fresh) == "fresh"
    saved = 1_101 + 601
    assert caplog.messages == [f"[Turn 4] Message pruning: 3 compacted (saved ~{saved} tokens), 1 removed"]
    assert sum(event.tokens_saved for event in run.told("message-compacted")) == saved


def test_1_4_14_summaries_are_logged_when_answered(caplog):
    caplog.set_level(logging.INFO, "foveate")
    run = run_of(lease=SUMMED, summarizer=lambda request: f"{len(request.messages[0].text)} characters.")
    run.result(LONG[:3_000], SUMMED)
    run.result(LONG[:2_000], Lease(3, "compact", message_type="action-result"))
    run.seen(6)
    saved = sum(event.tokens_saved for event in run.told("message-compacted"))
    assert caplog.messages == [f"[Turn 5] Message pruning: 3 compacted (saved ~{saved} tokens), 0 removed"]


def test_1_4_15_a_hundred_items_between_two_calls_age_by_one():
    run = run_of()
    run.make_call()
    for n in range(100):
        run.result(f"item {n}")
    assert text_at(run.seen(3)) == LONG
    assert text_at(run.seen(4)) == cut(LONG)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_1_4_16_a_removed_tool_result_leaves_a_stub(provider):
    run = Run(provider=provider, tools={"search": Lease(1, "remove")}, stub=BARE_STUB)
    run.make_call(call("c1", "search", q="x"), call("c2", "read"))
    run.chat.append([answer("c1", LONG, name="search"), answer("c2", "kept")])
    view = run.seen(3)
    stub = tool_result("c1", "[result expired after 1 turns]", name="search")
    assert [entry.message for entry in view][2:4] == [stub, answer("c2", "kept")]
    assert [event.kind for event in run.events if event.edit] == ["message-expired"]
    assert refusals(run.chat, view) == []
    assert check(view, run.chat._agent.profile) == []


def test_1_4_17_the_history_does_not_change():
    run = run_of(lease=SUMMED, summarizer=lambda request: "Short.", tools={"search": GONE})
    run.result("soon gone", GONE)
    run.make_call(call("c1", "search"))
    run.chat.append(answer("c1", LONG))
    before = run.chat.history()
    run.seen(7)
    run.chat.expand("m3")
    run.seen(12)
    assert run.chat.history()[: len(before)] == before
    assert len({event.message for event in run.events if event.edit}) == 3
    assert run.chat.journal.verify() == []


def test_1_4_18_a_batch_of_actions_has_the_strictest_lease():
    batch = most_aggressive([Lease(2, "compact", compact_length=500), Lease(5, "remove")])
    run = run_of("A and B", batch)
    assert [text_at(run.seen(turn)) for turn in (3, 4)] == ["A and B", "A and B"]  # Its lease decides its type:
    run = Run()  # without a type it is the last user input, which never expires.
    run.make_call()
    handle = run.result("A and B", most_aggressive([QUICK, Lease(5, "remove", message_type="action-result")]))
    assert [text_at(run.seen(turn), handle) for turn in (3, 4)] == ["A and B", None]


def test_1_4_19_a_callback_that_raises_changes_nothing():
    def said(on_event: Callable[[Event], object] | None) -> tuple[list[str], int]:
        chat = opened(policy=expire_results(), on_event=on_event)
        chat.append("Look into it.")
        for _ in range(6):
            chat.prepare()
            chat.record(say("step"))
            chat.append(user(LONG), lease=QUICK)
            chat.append(user("soon gone"), lease=GONE)
        return texts(chat.prepare()), chat._agent.head.number

    def broken(event: Event) -> None:
        raise RuntimeError(event.kind)

    assert said(broken) == said(None)


@pytest.mark.parametrize("counter", ["characters", "estimate:o200k", "estimate:claude-4.7"])
def test_the_reason_counts_tokens_like_its_event(counter: str):
    events: list[Event] = []
    chat = opened(policy="expire", counter=counter, on_event=events.append)
    chat.append(["find", call("a"), answer("a", LONG)])
    for _ in range(4):
        chat.prepare()
        chat.record(say("go on"))
    (event,) = [event for event in events if event.kind == "message-compacted"]
    assert event.tokens_saved > 1_000
    assert event.reason == REASON.format(event.tokens_saved)


def test_1_4_20_reported_savings_add_up():
    run = run_of(summarizer=lambda request: "Short.")
    run.result(LONG[:700])
    run.result(LONG[:2_500], SUMMED)
    run.result(LONG[:90])
    before = {entry.id: entry.tokens for entry in run.seen(2)}
    after = {entry.id: entry.tokens for entry in run.seen(6)}
    collected = [event.tokens_saved for event in run.events if event.tokens_saved]
    assert sum(collected) == sum(tokens - after[id] for id, tokens in before.items() if id in after)
    assert len(collected) == 3


# --------------------------------------------------------------------------------------------- messages that may expire


def test_the_default_templates_name_the_handle():
    policy = expire_results(tools={"search": Lease(1, "compact"), "query": Lease(1, "compact", "summary")})
    chat = opened(policy=policy, summarizer=lambda request: "Numbers.", expand=True)
    chat.append(["find", calls(call("a", "search"), call("b", "query")), answer("a", LONG), answer("b", LONG)])
    for _ in range(2):
        chat.prepare()
        chat.record(say("go on"))
    view = chat.prepare()
    shown = f'{LONG[:500]}...\n\n[Compacted: the first 500 of 5000 characters; expand("m3") shows all]'
    summary = '[Summary of 5000 characters; expand("m4") shows all]\n\nNumbers.'
    assert [text_at(view, handle) for handle in ("m3", "m4")] == [shown, summary]
    assert "Compacted using First N Chars" in chat.explain("m3")
    assert chat.expand("m4").text == LONG


def test_other_messages_expire_only_by_their_own_lease():
    run = Run(default=Lease(1, "compact", compact_length=10), override=Lease(expiration_turns=1))
    run.chat.append(user(LONG))
    run.make_call()
    run.chat.append(user(LONG), lease=Lease(2, "remove", message_type="user-input"))
    run.chat.append(user(LONG), lease=Lease(1, "remove", message_type="system"))
    run.chat.append(user("Try again."), lease=Lease(1, "remove", message_type="retry-context"))
    run.chat.append(assistant("An aside of the model."), lease=Lease(1, "remove"))
    run.chat.append(calls("c1", text="I look."), lease=Lease(1, "remove"))
    run.chat.append(answer("c1", LONG), origin="tool")
    run.chat.append(Message("system", (Text("Be brief."),)), lease=Lease(0, "remove"))
    run.chat.append("Now this.")
    events_of = {entry.position: entry.message.text for entry in run.seen(9)}
    assert [position for position in range(1, 13) if position not in events_of] == [4, 6, 7]
    assert [len(events_of[position]) for position in (2, 5, 8)] == [5_000, 5_000, 7]
    assert events_of[9].startswith(f"{LONG[:10]}...\n\n[Compacted: showing first 10 of 5000")


def test_the_last_input_and_pins_never_expire():
    run = run_of(lease=Lease(1, "remove"))  # Without a type the role decides.
    run.make_call("c1", "c2")
    run.chat.append([answer("c1", LONG), answer("c2", LONG)], lease=QUICK)
    run.chat.pin("m5")
    view = run.seen(9)
    assert [text_at(view, handle) for handle in ("m3", "m5", "m6")] == [LONG, LONG, cut(LONG)]
    run.chat.unpin("m5")
    run.chat.append("And now?")
    view = run.chat.prepare()
    assert [text_at(view, handle) for handle in ("m3", "m5")] == [None, cut(LONG)]


def test_protected_messages_lead_to_no_request_and_no_event(caplog):
    caplog.set_level(logging.INFO, "foveate")
    requests: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        requests.append(request)
        return "Short."

    run = Run(default=SUMMED, summarizer=summarizer)
    run.chat.append(Message("system", (Text(LONG),)), lease=SUMMED)
    run.make_call("c1")
    run.chat.append(answer("c1", LONG))
    run.chat.pin("m4")
    run.chat.append(user(LONG), lease=Lease(1, "compact", "summary"))
    assert [text_at(run.seen(9), handle) for handle in ("m2", "m4", "m5")] == [LONG] * 3
    assert (requests, caplog.messages, run.chat.plan().requests) == ([], [], ())


def test_levels_apply_in_order_run_binding_tool_name():
    ten, twenty, thirty = (Lease(1, "compact", compact_length=length) for length in (10, 20, 30))
    own = Lease(action_id="action", agent_action_id="binding")

    def kept(lease: Lease | None = own, **levels: Any) -> int:
        run = Run(**levels)
        run.make_call(call("c1", "search"))
        run.chat.append(answer("c1", LONG), lease=lease)
        return (text_at(run.seen(3)) or "").index("...")

    assert kept(tools={"search": ten, "binding": twenty}) == 20
    assert kept(tools={"search": ten}, actions={"action": twenty}) == 10
    assert kept(actions={"search": ten, "action": twenty}, default=thirty) == 20
    assert kept(actions={"search": ten}, default=thirty) == 10
    assert kept(lease=ten, override=thirty, tools={"search": twenty}) == 30
    assert kept(lease=ten, tools={"search": twenty}) == 10


def test_a_disabled_run_keeps_all_messages():
    for override, left in ((Lease(disable_expiration=True), "Try again."), (Lease(9, "none"), None)):
        run = Run(override=override)
        run.make_call()
        run.chat.append(user("Try again."), lease=Lease(1, "remove", message_type="retry-context"))
        assert text_at(run.seen(4)) == left


def test_shrunk_results_stay_and_others_leave_expired_ones():
    policies = (expire_results(default=QUICK), prune_tool_outputs(protect=0, minimum=0, placeholder="[pruned]"))
    chat = opened(policy=policies)
    chat.append(["find", call("a"), answer("a", LONG)])
    chat.prepare()
    chat.record(calls("b"))
    chat.append(answer("b", LONG))
    assert text_at(chat.prepare()) == "[pruned]"  # One call before it would have expired.
    for _ in range(4):
        chat.prepare()
        chat.record(say("go on"))
    assert text_at(chat.prepare()) == "[pruned]"

    run = run_of(default=QUICK)
    run.seen(4)
    run.chat.edit(Replace(Target(run.chat.view.entries[1].id), (Text("by hand"),)))
    assert [entry.shrunk_by for entry in run.seen(5)][1:3] == [("",), ("expire",)]


@pytest.mark.parametrize("policy", ["expire", "none"])
def test_a_lease_ends_before_a_call_not_behind_a_reply(policy: str):
    """The document prunes before each step. Behind the last reply, a summary would be paid for in vain."""
    asked: list[SummaryRequest] = []
    chat = opened(policy=policy, summarizer=lambda request: asked.append(request) or "Numbers.")
    chat.append("Look into it.")
    chat.prepare()
    chat.record(say("I search."))
    chat.append(user(LONG), lease=replace(SUMMED, expiration_turns=1))
    chat.prepare()
    chat.record(say("Done."))
    assert (asked, chat.journal.records()) == ([], [])
    chat.append("And now?")
    assert (text_at(chat.prepare()), len(asked)) == ("[Summary of 5000 characters; m3]\n\nNumbers.", 1)


SHORT_LIVED = Lease(1, "compact", "first_chars", 100)


@pytest.mark.parametrize("who", ["model", "program", "program's answer"])
@pytest.mark.parametrize(
    ("lease", "levels"),
    [
        (SHORT_LIVED, {}),
        (None, {"tools": {"search": SHORT_LIVED}}),
        (None, {"tools": {"search": SHORT_LIVED}, "default": Lease(50, "remove")}),
        (None, {"default": SHORT_LIVED}),
    ],
    ids=["message", "tool", "tool-and-default", "default"],
)
def test_an_original_in_a_message_of_its_own_has_the_lease(who: str, lease: Lease | None, levels: dict[str, Any]):
    """Otherwise what the model had expanded at the end stays for good."""
    chat = opened(policy=expire_results(**levels), expand=True, expand_where="tail")
    chat.append("Look into it.")
    chat.prepare()
    chat.record(call("c1", "search"))
    chat.append(answer("c1", LONG), lease=lease)
    while chat.prepare().turn < 3:
        chat.record(say("step"))
    match who:
        case "model":
            chat.record(call("e1", "expand", handle="m3"))
        case "program":
            chat.record(say("step"))
            chat.expand("m3", where="tail")
        case _:
            chat.append(call("e1", "expand", handle="m3"))
            chat.append(answer("e1", LONG))
    copy = chat.history()[-1]
    assert copy.stamp.expanded.shows_original
    lengths = []
    for turn in range(4, 8):
        view = chat.prepare()
        assert view.turn == turn
        lengths.append(len(text_at(view, f"m{copy.position}") or ""))
        chat.record(say("step"))
    assert [length >= 5_000 for length in lengths] == [True, True, False, False]


def test_an_expanded_result_is_shown_even_with_a_limit_of_0():
    with pytest.warns(UserWarning, match="tools\\['search'\\]"):
        run = Run(tools={"search": Lease(0, "compact")})
    run.make_call(call("c1", "search"))
    run.chat.append(answer("c1", LONG))
    assert text_at(run.seen(2)) == cut(LONG)
    assert run.expanded("m3", 3).text == LONG
    assert [text_at(run.seen(turn)) for turn in (3, 4)] == [LONG, cut(LONG)]


# ----------------------------------------------------------------------------------------------------- kinds of content

PHOTO = Media("image/png", "base64", "aGVsbG8=")


def test_blocks_are_compacted_one_by_one_and_media_become_text():
    run = Run(default=QUICK)
    run.make_call("c1", "c2")
    note = Text("short", Extra("openai", '{"x":1}'))
    run.chat.append(Message("tool", (ToolResult("c1", (Text(LONG), PHOTO, note)),)))
    run.chat.append(tool_result("c2", "ok", PHOTO))
    view = run.seen(4)
    omitted = Text('[image/png omitted: expand("m3")]')
    assert entry_of(view).message.result.content == (Text(cut(LONG)), omitted, note)
    assert entry_of(view, "m4").message.result.content == (Text("ok"), Text('[image/png omitted: expand("m4")]'))
    assert (view.images, [event.index for event in run.told("message-compacted")]) == (0, [2, 3])
    assert run.chat.expand("m3").result == ToolResult("c1", (Text(LONG), PHOTO, note))

    run = Run(default=Lease(2, "compact", preserve_original=False))
    run.make_call("c1")
    run.chat.append(tool_result("c1", "ok", PHOTO))
    assert entry_of(run.seen(4)).message.result.content == (Text("ok"), Text("[image/png omitted]"))


def test_no_type_of_a_file_ends_what_stands_for_it():
    run = Run(default=QUICK)
    run.make_call("c1")
    run.chat.append(tool_result("c1", "ok", Media("image/png]\n[m1, user]", "base64", "aGVsbG8=")))
    omitted = entry_of(run.seen(4)).message.result.content[1].text
    assert omitted.endswith('omitted: expand("m3")]')
    assert not {"\n", "[", "]"} & set(omitted[1:-1])


def test_a_removed_part_does_not_protect_the_rest():
    run = Run()
    run.make_call()
    run.chat.append(Message("user", (PHOTO, Text(LONG))), lease=QUICK)
    run.chat.edit(Replace(Target(run.chat.view.entries[2].id, (0,)), (Text("[image]"),)))
    assert entry_of(run.seen(5)).message.parts == (Text("[image]"), Text(cut(LONG)))


def test_a_summary_is_requested_only_if_it_can_be_shorter():
    requests: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        requests.append(request)
        return "s" * 500

    preamble = "[AI Summary of 573 chars. Agent can request full expansion if needed.]\n\n"
    untyped = Lease(3, "compact", "summary")
    for length, shown in ((500 + len(preamble), LONG[:572]), (501 + len(preamble), preamble + "s" * 500)):
        run = Run(default=untyped, summarizer=summarizer)
        run.make_call("c1")
        run.chat.append(answer("c1", LONG[:length]))
        assert text_at(run.seen(5)) == shown
    assert [request.facts["messageType"] for request in requests] == ["unknown"]


def test_a_summary_that_is_no_shorter_is_refused():
    run = run_of(lease=SUMMED, summarizer=lambda request: "s" * (5_000 - 73))
    assert text_at(run.seen(5)) == LONG
    run = run_of(lease=SUMMED, summarizer=lambda request: "s" * (5_000 - 74))
    assert len(text_at(run.seen(5)) or "") == 4_999


def test_a_summary_covers_all_blocks():
    requests: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        requests.append(request)
        return "A picture, and numbers."

    messages = (Text(LONG[:400]), PHOTO, Text(LONG[:400]))
    run = Run(default=SUMMED, summarizer=summarizer)
    run.make_call("c1")
    run.chat.append(Message("tool", (ToolResult("c1", messages),)))
    preamble = "[AI Summary of 801 chars. Agent can request full expansion if needed.]\n\n"
    assert entry_of(run.seen(5)).message.result.content == (Text(f"{preamble}A picture, and numbers."),)
    assert [(one.messages[0].result, one.facts["originalLength"]) for one in requests] == [
        (ToolResult("c1", messages), 801)
    ]


def test_an_opaque_block_becomes_text_when_its_message_shrinks():
    block = Opaque("openai", "weather", f'{{"type":"weather","days":"{LONG[:60]}"}}')
    run = Run(default=QUICK)
    run.make_call("c1", "c2")
    run.chat.append(Message("tool", (ToolResult("c1", (Text(LONG), block)),)))
    run.chat.append(Message("tool", (ToolResult("c2", (Text("x"), Opaque("openai", "w", '"w"'))),)))
    view = run.seen(4)
    assert entry_of(view).message.result.content == (Text(cut(LONG)), Text("[weather omitted]"))
    assert entry_of(view, "m4").shrunk == ()


def test_an_omitted_image_does_not_protect_its_text():
    run = Run(default=QUICK)
    run.make_call("c1")
    run.chat.append(tool_result("c1", LONG, PHOTO))
    run.chat.edit(Replace(Target(run.chat.view.entries[2].id, (0, 1)), (Text("[image]"),)))
    assert entry_of(run.seen(4)).message.result.content == (Text(cut(LONG)), Text("[image]"))


def test_messages_of_several_parts_and_late_results_expire():
    run = Run(default=QUICK)
    run.make_call("c1")
    run.chat.append(Message("user", (Text(LONG), PHOTO)), lease=QUICK)
    run.seen(3)
    run.chat.append(answer("c1", LONG))  # The model was called again, so the result becomes a note of role user.
    late = f"m{len(run.chat)}"
    view = run.seen(6)
    assert entry_of(view, "m3").message.parts == (Text(cut(LONG)), Text('[image/png omitted: expand("m3")]'))
    assert entry_of(view, late).kind == "note"
    assert entry_of(view, late).message.parts[1:] == (Text(cut(LONG)),)
    assert refusals(run.chat, view) == []


def test_the_mark_of_short_content_keeps_bound_reasoning():
    binding = replace(PROFILES["anthropic"], binds_reasoning=True)

    def thoughts(text: str) -> int:
        policy = expire_results(default=Lease(1, "compact"))
        chat = opened(provider="anthropic", profile=binding, policy=policy)
        chat.append("Look into it.")
        for n in range(4):
            chat.prepare()
            chat.record(thought("Hm.", call(f"c{n}")))
            chat.append(answer(f"c{n}", text if n == 0 else "ok"))
        return sum(isinstance(part, Reasoning) for entry in chat.prepare() for part in entry.message.parts)

    assert (thoughts("short"), thoughts(LONG)) == (4, 3)


def test_a_result_no_longer_than_its_stub_stays():
    run = Run(default=GONE, stub='[gone after {turns}: expand("{handle}")]')
    run.make_call("c1", "c2")
    run.chat.append([answer("c1", "ok"), answer("c2", LONG)])
    assert [entry.message.text for entry in run.seen(3)][2:4] == ["ok", '[gone after 1: expand("m4")]']
    assert run.expanded("m4", 4).text == LONG
    assert [text_at(run.seen(turn), "m4") for turn in (5, 6)] == [LONG, '[gone after 1: expand("m4")]']


def test_an_expanded_message_is_removed_again_later():
    run = run_of("found: 7", GONE)
    assert text_at(run.seen(3)) is None
    assert run.expanded("m3", 4).text == "found: 7"
    assert [text_at(run.seen(turn)) for turn in (5, 6)] == ["found: 7", None]


# ------------------------------------------------------------------------------------------------------------- settings


def test_stable_prefix_protects_until_the_first_result():
    early = Lease(1, "remove", message_type="retry-context")

    def told(**options: Any) -> list[str]:
        chat = opened(policy=expire_results(default=GONE, **options))
        chat.append("one")
        chat.append(user("hint"), lease=early)
        chat.append([call("a"), answer("a", LONG)])
        chat.append(user("late hint"), lease=early)
        for _ in range(4):
            chat.append(say("go on"))
        return texts(chat.prepare())

    rest = ["", "[result expired after 1 turns]", "go on", "go on", "go on", "go on"]
    assert told(stub=BARE_STUB) == ["one", *rest]
    assert told(stub=BARE_STUB, stable_prefix=True) == ["one", "hint", *rest]


@pytest.mark.parametrize("kept", [True, False])
def test_a_stub_describes_the_result_if_it_can_be_expanded(kept: bool):
    run = Run(default=Lease(1, "remove", preserve_original=kept))
    run.make_call(call("c1", "search"))
    run.chat.append(answer("c1", LONG * 3))
    shown = text_at(run.seen(3))
    if kept:
        assert shown.startswith("[result expired after 1 turns: ")
        assert shown.endswith('; expand("m3")]')
    else:
        assert shown == "[result expired after 1 turns]"


def test_a_stable_prefix_ends_at_a_hidden_result():
    def told(*before: Message, lease: Lease | None = None) -> str | None:
        chat = opened(policy=expire_results(stable_prefix=True))
        chat.append(["one", *before[:-1]])
        chat.append(before[-1], lease=lease)
        chat.append(user("hint"), lease=Lease(3, "remove", message_type="retry-context"))
        hint = f"m{len(chat)}"
        for _ in range(5):
            chat.prepare()
            chat.record(say("go on"))
        return text_at(chat.prepare(), hint)

    assert told(user("found: 7"), lease=GONE) is None
    assert told(say("I think."), call("never answered")) == "hint"


def test_min_gain_waits_for_enough_savings():
    run = Run(default=QUICK, min_gain=2_000)
    changed = []
    for turn in range(1, 8):
        run.make_call(f"c{turn}")
        run.chat.append(answer(f"c{turn}", LONG))
        changed.append([entry.position for entry in run.seen(turn + 1) if entry.shrunk])
    assert changed == [[], [], [], [3, 5], [3, 5], [3, 5, 7, 9], [3, 5, 7, 9]]


@pytest.mark.parametrize(
    ("messages", "refused"),
    [
        ({"tools": {"search": Lease(-1)}}, "tools['search']: expiration_turns is -1; allowed: a whole number of 0"),
        (
            {"actions": {"a": Lease(compact_length=0)}},
            "actions['a']: compact_length is 0; allowed: a whole number of 1",
        ),
        (
            {"default": Lease(1, "Remove")},
            "default: expiration_mode is 'Remove'; allowed: one of none, remove, compact",
        ),
        (
            {"override": Lease(compact_mode="AI Summary")},
            "override: compact_mode is 'AI Summary'; allowed: one of first",
        ),
        ({"default": 3}, "default is 3; allowed: a Lease."),
        ({"tools": [QUICK]}, "tools is [Lease("),
        ({"tools": {"search": None}}, "tools['search'] is None; allowed: a Lease."),
        ({"prompts": "one"}, "prompts is 'one'; allowed: names of prompts, or None."),
        ({"prompts": [1]}, "prompts is [1]; allowed: names of prompts, or None."),
        ({"system_prompt": None}, "system_prompt is None; allowed: the name of a prompt."),
        ({"annotation": None}, "annotation is None; allowed: a text."),
        ({"stub": 1}, "stub is 1; allowed: a text."),
        ({"min_gain": -1}, "min_gain is -1; allowed: tokens, a whole number of 0 or more."),
        ({"min_gain": True}, "min_gain is True; allowed: tokens, a whole number of 0 or more."),
    ],
)
def test_a_wrong_setting_is_refused_by_name(messages, refused):
    with pytest.raises(BadSetting) as error:
        expire_results(**messages)
    assert str(error.value).startswith(refused)


def test_unseen_results_are_warned_about_once_by_name():
    with pytest.warns(UserWarning, match="before any model call") as warned:
        expire_results(
            tools={"a": Lease(0, "remove"), "b": Lease(0, "none"), "c": Lease(0, disable_expiration=True)},
            override=Lease(0),
        )
    (request,) = warned
    assert str(request.message).startswith(
        "override, tools['a']: expiration_turns is 0, so these results expire before"
    )
    assert request.filename == __file__


def test_a_dry_run_shows_requests_and_changes_nothing():
    run = run_of(lease=SUMMED, summarizer=lambda request: "Short.")
    run.seen(4)
    run.chat.append(say("go on"))
    plan = run.chat.plan()
    assert (plan.edits, [request.prompt for request in plan.requests]) == ((), ["Compact Agent Message"])
    assert (run.chat._agent.head.number, text_at(run.seen(5))) == (
        0,
        "[AI Summary of 5000 chars. Agent can request full expansion if needed.]\n\nShort.",
    )


def test_the_preset_has_the_values_of_the_document_and_names_handles():
    """The texts of the document name nothing that a model could ask for; those of the preset name the handle."""
    chat = opened(policy="expire")
    chat.append(["find", call("a"), answer("a", LONG), call("b"), answer("b", "short")])
    chat.prepare()
    chat.record(say("go on"))
    assert text_at(chat.prepare()) == f"{LONG[:500]}...\n\n[Compacted: the first 500 of 5000 characters; m3]"
    lease = {place[2]: item.value for place, item in load_preset("expire").layer.items() if place[1] == "default"}
    assert lease == {
        "expiration_turns": 2,
        "expiration_mode": "compact",
        "compact_mode": "first_chars",
        "compact_length": 500,
    }


def test_leases_survive_reopening(tmp_path: Path):
    options = {"store": f"sqlite:///{tmp_path / 'chat.db'}", "policy": expire_results(**DOCUMENTED)}
    with opened(**options) as chat:
        chat.append(["find", say("I search.")])
        chat.append(user(LONG), lease=QUICK)
        chat.append([say("two"), say("three")])
    with opened(**options) as chat:
        assert text_at(chat.prepare()) == cut(LONG)
        chat.record(say("four"))
        chat.expand("m3")
    with opened(**options) as chat:
        seen = []
        for _ in range(4):
            seen.append(text_at(chat.prepare()))
            chat.record(say("more"))
    assert seen == [LONG, LONG, LONG, cut(LONG)]


# ----------------------------------------------------------------------------------------------------------- properties

LEASES = st.builds(
    Lease,
    st.none() | st.integers(0, 4),
    st.sampled_from([None, "none", "remove", "compact"]),
    st.sampled_from([None, "first_chars", "summary"]),
    st.sampled_from([None, 1, 40, 300]),
    st.none(),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([None, True, False]),
    st.sampled_from(["", "", "action-result", "retry-context", "user-input", "system"]),
)
POLICIES = st.fixed_dictionaries(
    {
        "default": st.none() | LEASES.filter(lambda lease: lease.expiration_turns != 0),
        "tools": st.dictionaries(
            st.sampled_from(["read_file", "bash"]), LEASES.filter(lambda lease: lease.expiration_turns != 0), max_size=2
        ),
        "stable_prefix": st.booleans(),
    }
)
SAID = st.tuples(histories(max_size=16), st.lists(st.none() | LEASES, min_size=16, max_size=16), POLICIES)


def sized_summary(request: SummaryRequest) -> str:
    """Return a summary that states the size of its input; sometimes a long one."""
    return "word " * (len(request.messages[0].text) % 300)


def prepare_view(chat: Conversation) -> View:
    """Return the next view, also if no message is left to send."""
    try:
        return chat.prepare()
    except BadInput:
        return chat.view


def told(messages: list[Message], leases: list[Lease | None], options: dict[str, Any], *, plans: bool) -> Conversation:
    """Return a conversation with these messages, prepared before each call or never."""
    chat = opened(policy=expire_results(**options), window=10**8, summarizer=sized_summary)
    for message, lease in zip(messages, leases, strict=False):
        if plans and message.role == "assistant" and len(chat):
            prepare_view(chat)
        chat.append(message, lease=lease)
    return chat


@given(SAID)
def test_planning_before_each_call_gives_the_same_as_planning_once(drawn):
    """I3."""
    messages, leases, options = drawn
    views = [prepare_view(told(messages, leases, options, plans=plans)) for plans in (True, False)]
    looks = [[(e.position, e.message, e.shrunk, e.expandable) for e in view if e.kind != "stand-in"] for view in views]
    assert looks[0] == looks[1]


@given(SAID)
def test_a_plan_is_stable_shrinks_and_spares_protected_messages(drawn):
    """I2, I4, I5."""
    messages, leases, options = drawn
    chat = told(messages, leases, options, plans=False)
    for handle in [entry.handle for entry in chat.view if entry.source][1:3]:
        chat.pin(handle)
    was = {entry.id: entry for entry in chat.view if entry.kind != "stand-in"}
    before = chat.view.tokens
    view = prepare_view(chat)
    assert chat.plan().edits == ()
    assert view.tokens <= before
    now = {entry.id: entry for entry in view if entry.kind != "stand-in"}
    for id, entry in was.items():
        is_protected = entry.is_pinned() or entry.message.role == "system" or entry.position == view.last_input
        if id not in now:
            assert not is_protected
            assert entry.message.result is None  # The result of an action answers no call, so it may be removed.
        else:
            assert now[id].tokens <= entry.tokens
            assert now[id].message == entry.message or not is_protected


@given(SAID)
def test_an_expanded_result_is_whole_at_the_next_call(drawn):
    """I10."""
    messages, leases, options = drawn
    chat = told(messages, leases, options, plans=True)
    shrunk = [entry for entry in prepare_view(chat) if entry.shrunk and entry.expandable]
    for entry in shrunk:
        assert chat.expand(entry.handle) == entry.source
    now = {entry.id: entry for entry in prepare_view(chat)}
    for entry in shrunk:
        assert now[entry.id].shrunk == ()


# -------------------------------------------------------------------------------------------------------- recorded runs


@pytest.mark.parametrize(
    "name",
    [
        "LiveMCPBench/sonnet4-task008",
        "OpenHands/multi_swe-ponylang__ponyc-4588",
        "SWE-agent/marshmallow-1867-function_calling",
        "kimi-cli/claude_code-2d58ad9e0d5c0",
        pytest.param("entireio-git-sync/codex_rollout-06f4c46c92520", marks=pytest.mark.slow),
        pytest.param("nimbus/opencode-107e846f866c5", marks=pytest.mark.slow),
    ],
)
def test_recorded_runs_stay_legal_and_get_smaller(transcripts: Path, name: str):
    recording = read_recording(transcripts / "neutral" / f"{name}.jsonl")
    policy = expire_results(default=Lease(3, "compact", "first_chars", 400))
    plain, row = (replay(recording, policy=request, check=check_body).row for request in ("off", policy))
    assert (row.illegal_views, row.lost_messages, row.over_budget) == (0, 0, 0)
    assert row.input_tokens < plain.input_tokens
    assert row.recall_reachable == 1.0


def test_events_of_compaction_and_removal_name_action_and_metadata():
    """Also if the message is hidden by then, and also when the events are read from the journal."""
    events: list[Event] = []
    chat = opened(policy=expire_results(), on_event=events.append)
    chat.append(user("go"))
    chat.prepare()
    chat.record(say("on"))
    for mode in ("compact", "remove"):
        lease = Lease(1, mode, compact_length=50, message_type="action-result", action_id=f"{mode}-it")
        chat.append(user("found it " * 200), lease=lease, metadata={"mode": mode})
    for _ in range(3):
        chat.prepare()
        chat.record(say("on"))
    for seen in (events, chat.journal.events()):
        facts = {(event.kind, event.action_id, event.metadata["mode"]) for event in seen if event.edit}
        assert facts == {
            ("message-compacted", "compact-it", "compact"),
            ("message-expired", "remove-it", "remove"),
            ("message-removed", "remove-it", "remove"),
        }
        assert all(event.lease is not None and event.lease.expiration_turns == 1 for event in seen if event.edit)
