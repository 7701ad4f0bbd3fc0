"""Rows of views: each kind is told apart, on generated and recorded agents, and what is left out is shown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from foveate import Text, assistant, open_conversation, system, user
from foveate.conversation.sync import Conversation
from foveate.core.messages import Media, Message, ToolCall
from foveate.core.stamps import Lease
from foveate.edits import Hide, Replace, Span, Summarize, Target
from foveate.inspector.views.entries import EntryRow, GapRow, index_at, places_of, readable, row_kind
from foveate.inspector.views.moments import moments_of
from foveate.open import Options, open_store
from foveate.replay.lookup import content_kind
from foveate.replay.recordings import read_recording
from foveate.replay.run import replay
from foveate.stores.memory import MemoryStore
from foveate.testing import agent_run
from foveate.testing.builders import answer, call

SHRINKING = {"prune": "placeholder", "keep-last-5": "placeholder", "supersede": "placeholder", "dedupe": "placeholder"}
"""Policies whose texts for single messages are always of one kind."""
SPANS = {"fold": "fold", "recap": "fold", "compact": "summary", "checkpoint": "summary", "floor": "summary"}
"""What the texts of policies for spans are. A note of the floor without a digest is a placeholder."""


def opened(*messages: Message, **options) -> Conversation:
    chat = open_conversation(
        "c", store=MemoryStore(), format="openai", window=100_000, policy="off", expand=True, **options
    )
    for message in messages:
        chat.append(message)
    return chat


def rows(chat: Conversation, turn: int | None = None) -> list[EntryRow | GapRow]:
    moment = moments_of(chat).at(turn)
    assert moment is not None
    return moments_of(chat).rows(moment, moment.places)


def kinds(chat: Conversation) -> dict[str, str]:
    return {row.handle: row.kind for row in rows(chat) if isinstance(row, EntryRow)}


def agent(results: int = 3) -> list[Message]:
    messages = [system("Be brief."), user("Look at it.")]
    for number in range(results):
        messages += [call(f"c{number}", "read", path=f"f{number}.py"), answer(f"c{number}", f"line {number}\n" * 200)]
    return messages


def test_messages_without_edits_are_whole():
    chat = opened(*agent())
    assert set(kinds(chat).values()) == {"whole"}
    first, _, third, fourth, *_ = rows(chat)
    assert (first.role, first.tokens, first.policy, first.receipts, first.is_changed) == (
        "system",
        first.original_tokens,
        "",
        (),
        False,
    )
    assert fourth.call == ToolCall("c0", "read", third.parts[0].arguments)
    assert (fourth.is_result, third.is_result) == (True, False)


def test_texts_for_one_result_are_placeholders_or_digests():
    chat = opened(*agent())
    ids = [entry.id for entry in chat.view]
    chat.edit(
        Replace(Target(ids[3]), (Text('[Old tool result content cleared: expand("m4")]'),), "prune", "older"),
        Replace(Target(ids[5]), (Text('[log, 200 lines; expand("m6")]\nline 1\nline 2'),), "shrink", "older"),
        Replace(Target(ids[7]), (Text("line 2\n" * 200),), "expire", "marked"),
    )
    assert {handle: kind for handle, kind in kinds(chat).items() if kind != "whole"} == {
        "m4": "placeholder",
        "m6": "digest",
    }
    by_handle = {row.handle: row for row in rows(chat)}
    fourth = by_handle["m4"]
    assert (fourth.policy, fourth.reason, fourth.is_changed) == ("prune", "older", True)
    assert fourth.tokens < 30 < fourth.original_tokens
    assert fourth.receipts[0][:2] == (1, 3)
    assert "3 edits" in fourth.receipts[0][2]
    assert len(fourth.sentences) == 1
    assert (by_handle["m8"].kind, by_handle["m8"].is_changed) == ("whole", False)


def test_expanded_results_say_so_again():
    chat = opened(*agent())
    chat.edit(Replace(Target(chat.view.entries[3].id), (Text("[gone]"),)))
    assert kinds(chat)["m4"] == "placeholder"
    chat.expand("m4", reason="needed")
    row = next(row for row in rows(chat) if row.position == 4)
    assert (row.kind, row.is_changed) == ("expanded", False)


def test_pinned_messages_are_marked_whatever_else_they_are():
    chat = opened(*agent())
    chat.edit(Replace(Target(chat.view.entries[3].id), (Text("[gone]"),)))
    chat.pin("m4")
    chat.pin("m6")
    marked = {row.handle: row.kind for row in rows(chat) if row.is_pinned}
    assert marked == {"m4": "placeholder", "m6": "whole"}


def test_texts_for_spans_are_folds_summaries_or_placeholders():
    for policy, kind in (*SPANS.items(), ("", "summary")):
        chat = opened(*agent(4))
        ids = [entry.id for entry in chat.view]
        chat.edit(Summarize(Span(ids[2], ids[5]), "What was done.", policy, "older", by="digest"))
        row = next(row for row in rows(chat) if row.last > row.position)
        assert (row.handle, row.kind, row.covered, row.author) == ("m3-m6", kind, 4, "digest"), policy
        assert row.policy == (policy or "by hand")
        assert row.original_tokens > row.tokens


def test_missing_and_late_answers_are_stand_ins_and_notes():
    chat = opened(user("go"), call("a", "read", path="x"), call("b", "read", path="y"), answer("b", "found"))
    chat.append(user("and now?"))
    chat.append(answer("a", "late"))
    found = Counter(row.kind for row in rows(chat))
    assert found["stand-in"] >= 1
    assert found["stand-in"] + found["note"] >= 2


def test_hidden_messages_are_a_gap_with_its_reason():
    chat = opened(*agent(4))
    ids = [entry.id for entry in chat.view]
    chat.edit(Hide(Span(ids[4], ids[7]), "mine", "not needed"))
    gap = next(row for row in rows(chat) if isinstance(row, GapRow))
    assert (gap.first, gap.last, gap.count, gap.policy, gap.reason) == (5, 8, 4, "mine", "not needed")
    assert gap.receipts[0][:2] == (1, 1)
    positions = [row.position for row in rows(chat) if isinstance(row, EntryRow)]
    assert positions == [1, 2, 3, 4, 9, 10]


def test_places_are_found_by_position():
    chat = opened(*agent(4))
    ids = [entry.id for entry in chat.view]
    chat.edit(Hide(Span(ids[4], ids[7])))
    moment = moments_of(chat).at()
    assert moment.places == [0, 1, 2, 3, (5, 8), 4, 5]
    assert [index_at(moment.view, moment.places, position) for position in (1, 4, 5, 8, 9, 10, 99)] == [
        0,
        3,
        4,
        4,
        5,
        6,
        7,
    ]


def test_places_are_found_next_to_stand_ins_for_open_calls():
    """A stand-in has the position of its call, and stands after the answers of the other calls."""
    calls = [part for number in range(5) for part in call(f"c{number}", "read").parts]
    chat = opened(user("Read"), Message("assistant", tuple(calls)), answer("c0", "found"))
    moment = moments_of(chat).at()
    assert [(entry.position, entry.kind) for entry in moment.view] == [
        (1, "message"),
        (2, "message"),
        (3, "message"),
        *[(2, "stand-in")] * 4,
    ]
    assert [index_at(moment.view, moment.places, position) for position in (1, 2, 3, 4)] == [0, 1, 2, 7]


def test_stand_ins_between_messages_have_the_place_of_the_next_one():
    """Such a stand-in has no position of its own, and a live page asks for the rows of new positions only."""
    chat = opened(*[user(f"Part {number}") for number in range(5)], model="mistral-small")
    ids = [entry.id for entry in chat.view if entry.id]
    chat.edit(Hide(Span(ids[1], ids[2])))
    moment = moments_of(chat).at()
    assert moment.places == [0, (2, 3), 1, 2, 3, 4]
    assert [index_at(moment.view, moment.places, position) for position in range(1, 7)] == [0, 1, 1, 2, 4, 6]
    shown = [(row.key, row.handle, row.position, row.last) for row in rows(chat) if isinstance(row, EntryRow)]
    assert shown == [
        ("m1", "m1", 1, 1),
        ("s4", "", 4, 4),
        ("m4", "m4", 4, 4),
        ("s5", "", 5, 5),
        ("m5", "m5", 5, 5),
    ]
    assert [row.key for row in moments_of(chat).rows(moment, moment.places[4:])] == ["s5", "m5"]


def test_views_of_earlier_calls_are_kept_until_something_changes():
    store = MemoryStore()
    replay(agent_run(20, seed=1), policy="prune", store=store, name="run")
    chat = open_conversation("run", store=store, format="openai", policy="off", window=50_000, options=Options())
    moments = moments_of(chat)
    first = moments.at(5)
    assert moments.at(5) is first
    assert first.view.turn == 5
    chat.append(user("more"))
    assert moments.at(5) is not first
    assert [entry.id for entry in moments.at(5).view] == [entry.id for entry in first.view]


def test_a_message_as_text_has_all_of_its_parts():
    message = Message("user", (Text("look"), Media("image/png", "base64", "QUJD")))
    assert readable(message) == "look\n\n(image/png, 4 characters)"
    assert readable(call("a", "read", path="x")) == 'read {"path":"x"}'
    assert readable(answer("a", "found")) == "found"
    assert readable(assistant("yes")) == "yes"


def check_rows(chat: Conversation, turn: int) -> Counter[str]:
    """Check the rows of a call against its view, and count their kinds."""
    moment = moments_of(chat).at(turn)
    found = moments_of(chat).rows(moment, moment.places)
    history = {entry.position: entry for entry in chat.history()}
    shown = [row for row in found if isinstance(row, EntryRow)]
    assert len({row.key for row in found}) == len(found)
    assert sum(row.tokens for row in shown) == moment.view.tokens
    records = {number: record for record in chat.journal.records() for number, _ in record.numbered()}
    for index, (entry, row) in enumerate(zip(moment.view, shown, strict=True)):
        # A stand-in that has no position gets that of the message behind it.
        position = next((one.position for one in moment.view.entries[index:] if one.position), 0)
        assert (row.position, row.parts, row.content) == (position, entry.message.parts, content_kind(entry))
        original = history[entry.position].message if entry.position else None  # A stand-in at the beginning.
        match row.kind:
            case "whole" | "expanded":
                if not entry.legalized:
                    assert entry.message == original
            case "digest" | "placeholder" | "fold" | "summary":
                assert row.reason
                assert row.receipts
                edit = records[entry.edits[-1]].edits[entry.edits[-1] - records[entry.edits[-1]].first]
                assert (row.policy, row.reason) == (edit.policy, edit.reason)
                expected = SPANS if row.last > row.position or entry.span else SHRINKING
                if entry.kind == "summary" and edit.policy == "floor" and "\n" not in readable(entry.message):
                    assert row.kind == "placeholder"
                elif edit.policy in expected:
                    assert row.kind == expected[edit.policy], (row.handle, readable(entry.message)[:100])
                assert entry.message != original
            case "stand-in" | "note":
                assert row.reason
        if row.kind == "placeholder":
            assert "\n" not in readable(entry.message).strip()
    covered = {p for row in shown for p in range(row.position or 1, row.last + 1)}
    gaps = {p for row in found if isinstance(row, GapRow) for p in range(row.first, row.last + 1)}
    assert not covered & gaps
    assert covered | gaps == set(range(1, max(covered) + 1))
    return Counter(row.kind for row in shown)


WINDOWS = {"prune-and-compact": 60_000, "checkpoint": 60_000}

PRESETS = {
    "balanced": {"fold", "digest"},
    "prune": {"placeholder"},
    "keep-last-5": {"placeholder"},
    "prune-and-compact": {"summary"},
    "checkpoint": {"summary", "placeholder"},
}


@pytest.mark.parametrize("policy", PRESETS)
def test_kinds_of_a_generated_run_are_right(policy):
    window = WINDOWS.get(policy, 120_000)
    store = open_store("memory:")
    replay(agent_run(80, seed=3, result_chars=(400, 8_000)), policy=policy, window=window, store=store, name="run")
    chat = open_conversation("run", store=store, format="openai", policy="off", window=window, expand=True)
    found: Counter[str] = Counter()
    for turn in range(5, chat.view.turn, 12):
        found += check_rows(chat, turn)
    assert set(found) >= PRESETS[policy] | {"whole"}


@pytest.mark.slow
@pytest.mark.parametrize("policy", PRESETS)
def test_kinds_of_recorded_sessions_are_right(policy, transcripts: Path):
    files = sorted((transcripts / "neutral").rglob("*.jsonl"))
    for path in files[:: max(1, len(files) // 6)]:
        store = open_store("memory:")
        replay(read_recording(path), policy=policy, window=40_000, provider="anthropic", store=store, name="run")
        chat = open_conversation("run", store=store, format="anthropic", policy="off", window=40_000, expand=True)
        for turn in range(3, chat.view.turn, max(1, chat.view.turn // 6)):
            check_rows(chat, turn)


def test_leases_that_shorten_nothing_leave_a_result_whole():
    chat = open_conversation("c", store=MemoryStore(), format="openai", window=100_000, policy="expire")
    chat.append(user("go"))
    chat.prepare()
    chat.record(call("a", "read", path="x"))
    chat.append(answer("a", "short"), lease=Lease(expiration_turns=0, expiration_mode="compact", compact_length=500))
    for number in range(3):
        chat.prepare()
        chat.record(assistant(f"ok {number}"))
        chat.append(user("next"))
    entry = next(entry for entry in chat.view if entry.is_result)
    assert row_kind(entry) == "whole"
    assert places_of(chat.view) == list(range(len(chat.view)))


def test_erased_message_is_a_row_with_the_role_of_its_stamp():
    chat = opened(*agent(2))
    chat.append(assistant("Both are read."))
    chat.privacy.erase("m3-m4")
    chat.privacy.erase("m7")
    appended = moments_of(chat).appended(1, 7)
    assert [row.kind for row in appended] == ["whole", "whole", "erased", "erased", "whole", "whole", "erased"]
    assert [row.role for row in appended[2:4]] == ["assistant", "tool"]
    assert appended[3].tool == "read"


def test_message_without_parts_is_not_called_erased():
    chat = opened(user("Look at it."), Message("user", ()), assistant("I will."))
    chat.privacy.erase("m3")
    assert [row.kind for row in moments_of(chat).appended(1, 3)] == ["whole", "whole", "erased"]
