"""Handles, events, receipts and explanations."""

from __future__ import annotations

import pytest

from foveate.core.edits import Hide, Pin, Record, Replace, Restore, Span, Summarize, Target, Task, Unpin
from foveate.core.events import EXPIRED, Event, added_event, events_of_record
from foveate.core.explain import explain
from foveate.core.handles import Handle, parse_handle
from foveate.core.messages import Text
from foveate.core.receipts import Receipt, receipt_of
from foveate.core.stamps import Lease, Stamp
from foveate.errors import UnknownHandle
from foveate.policies.placeholders import handle_of
from foveate.testing import answer, call, say, user

from .story import Story

ONE, TWO = "1" * 40, "2" * 40


# ------------------------------------------------------------------------------------------------------------- handles


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("m12", Handle(12, 12)),
        (" m1 \n", Handle(1, 1)),
        ("m12.1", Handle(12, 12, (0,))),
        ("m12.1.20", Handle(12, 12, (0, 19))),
        ("m3-m17", Handle(3, 17)),
        ("m3-m3", Handle(3, 3)),
        ("m999999999999", Handle(999_999_999_999, 999_999_999_999)),
    ],
)
def test_a_handle_names_a_message_a_part_or_a_span(text, named):
    assert parse_handle(text) == named


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "12", "M12", "m0", "m12.0", "m12.1.0", "m12.1.1.1", "m5-m3", "m3-7", "m3.1-m7", "m1-m2-m3", "m 1"),
        *("m-1", "m1.", "m1234567890123", 'expand("m1")', "m1 m2", "m1.5.x", "\x00", "m" * 10_000, None, 12, ["m1"]),
    ],
)
def test_an_invalid_handle_is_refused_with_an_example(text):
    with pytest.raises(UnknownHandle, match=r"m12, m12\.1 or m3-m17"):
        parse_handle(text)


@pytest.mark.parametrize(("first", "last", "text"), [(3, 17, "m3-m17"), (3, 3, "m3"), (3, 0, "m3"), (0, 0, "")])
def test_a_handle_is_written_as_short_as_possible(first: int, last: int, text: str):
    """A stand-in between two messages was called m0, which nothing takes."""
    assert str(Handle(first, last)) == text


def test_a_summary_of_one_message_has_its_handle():
    story = Story(user("a"), say("b " * 400), user("c"))
    story.edit(Summarize(Span(story.id(2), story.id(2)), "It said b.", "fold", "old"))
    entry = story.projection.entries()[1]
    assert str(entry).startswith("m2 summary: ")
    assert explain(entry, {}).startswith("m2 is shown as one text, ")


def test_the_handle_in_a_placeholder_names_its_part():
    entry = Story(user("a"), say("b")).projection.entries()[1]
    assert [handle_of(entry), handle_of(entry, (0,)), handle_of(entry, (0, 2))] == ["m2", "m2.1", "m2.1.3"]
    assert parse_handle(handle_of(entry, (0, 2))) == Handle(2, 2, (0, 2))


# ------------------------------------------------------------------------------------------------- events and receipts

RECORD = Record(
    4,
    (
        Replace(Target(ONE, (0,)), (Text("x"),), "prune", "old", 90, 10),
        Hide(Span(ONE, TWO), "prune", "older", 50, 0),
        Hide(Target(TWO), "other"),
        Summarize(Span(ONE, TWO), "told", "floor", "full", 900, 30),
        Restore((Span(TWO, ONE), Target(ONE)), (1,)),
        Restore((), (2,)),
        Pin(Target(ONE), reason="asked"),
        Unpin(Target(TWO)),
    ),
    turn=7,
    time=5,
    tip=TWO,
    position=9,
    tokens_before=1_500,
    tokens_after=500,
    bytes_before=6_000,
    bytes_after=2_000,
    author="plan",
)


def test_each_edit_of_a_commit_is_an_event_with_its_number():
    assert list(events_of_record(RECORD)) == [
        Event("message-compacted", 7, 5, ONE, 0, 4, "prune", "old", 80),
        Event("message-removed", 7, 5, ONE, 0, 5, "prune", "older", 50),
        Event("message-removed", 7, 5, TWO, 0, 6, "other"),
        Event("messages-summarized", 7, 5, ONE, 0, 7, "floor", "full", 870),
        Event("message-expanded", 7, 5, TWO, 0, 8, "plan"),
        Event("message-expanded", 7, 5, "", 0, 9, "plan"),
        Event("message-pinned", 7, 5, ONE, 0, 10, "plan", "asked"),
        Event("message-unpinned", 7, 5, TWO, 0, 11, "plan"),
    ]
    assert [event.index for event in events_of_record(RECORD, {TWO: 3})] == [None, None, 3, None, 3, None, None, 3]
    assert added_event(3, ONE, Stamp(2, 8, 9, "user")) == Event("message-added", 2, 8, ONE, 3)


def test_an_event_carries_lease_action_and_metadata_of_its_message():
    lease = Lease(2, "compact", action_id="search")
    stamp = Stamp(1, 2, 3, "tool", "web", lease=lease, metadata='{"run": 7}')
    edits = (Replace(Target(ONE), (Text("x"),)), Hide(Target(ONE)), Summarize(Span(ONE, TWO), "s"))
    events = list(events_of_record(Record(1, edits, 7, 5, TWO, 9, author="plan"), {}, {ONE: stamp}))
    facts = [(event.kind, event.lease, event.action_id, event.metadata) for event in events]
    assert facts == [
        ("message-compacted", lease, "search", {"run": 7}),
        ("message-removed", lease, "search", {"run": 7}),
        ("messages-summarized", None, "", {}),
    ]
    assert added_event(3, ONE, Stamp(1, 2, 3, "tool", "web")).action_id == "web"


def test_leases_and_compactions_have_their_own_events():
    why = EXPIRED.format(turns=3, limit=2)
    edits = (
        Hide(Target(ONE), "expire", why, 50, 0),
        Replace(Target(TWO, (0,)), (Text("x"),), "expire", why + "; stubbed", 90, 10),
        Hide(Target(TWO, (1,)), "retain", "seen", 7, 0),
        Restore((Target(TWO, (1,)),), policy="retain", reason="its turn"),
        Task("compact", "pending", 2, 7, Span(ONE, TWO)),
        Task("compact", "failed", 2, 7, reason="no answer"),
    )
    assert list(events_of_record(Record(1, edits, 7, 5, TWO, 9, author="plan"))) == [
        Event("message-expired", 7, 5, ONE, 0, 1, "expire", "Expired after 3 turns (limit: 2)"),
        Event("message-removed", 7, 5, ONE, 0, 1, "expire", "Removed due to expiration", 50),
        Event("message-expired", 7, 5, TWO, 0, 2, "expire", "Expired after 3 turns (limit: 2); stubbed", 80),
        Event("message-compacted", 7, 5, TWO, 0, 3, "retain", "seen", 7),
        Event("message-shown", 7, 5, TWO, 0, 4, "retain", "its turn"),
        Event("compaction-pending", 7, 5, ONE, 0, 5, "compact"),
        Event("compaction-failed", 7, 5, "", 0, 6, "compact", "no answer"),
    ]


def test_a_receipt_names_the_changes_and_the_undo():
    receipt = receipt_of(RECORD)
    assert receipt == Receipt(4, 11, 7, 5, "plan", ("prune", "other", "floor"), RECORD.edits, 1_500, 500, 6_000, 2_000)
    assert receipt.tokens_saved == 1_000
    assert str(receipt) == ("turn 7: prune, other, floor made 8 edits, 1,500 -> 500 tokens (undo: edits 4-11)")
    assert repr(receipt) == f"<Receipt of {receipt}>"
    by_hand = receipt_of(Record(1, (Pin(Target(ONE)),), 2, 3, ONE, 1, author="pin"))
    assert str(by_hand) == "turn 2: pin made 1 edit, 0 -> 0 tokens (undo: edits 1-1)"


def test_a_receipt_names_the_authors_of_summaries():
    edits = (
        Summarize(Span(ONE, TWO), "told", "compact", by="digest", refused=("a model: down", "another: it is empty")),
        Replace(Target(ONE), (Text("x"),), "expire", by="digest", refused=("a model: down",)),
        Summarize(Span(ONE, TWO), "told", "floor"),
    )
    receipt = receipt_of(Record(1, edits, 2, 5, ONE, 1, 90, 9))
    assert (receipt.by, receipt.refused) == (("digest",), ("a model: down", "another: it is empty"))
    assert str(receipt) == (
        "turn 2: compact, expire, floor made 3 edits, 90 -> 9 tokens, written by digest, since a model: down; "
        "another: it is empty (undo: edits 1-3)"
    )


# ------------------------------------------------------------------------------------------------------------- explain


def explained(story: Story) -> list[str]:
    records = {number: record for record in story.records for number, _ in record.numbered()}
    return [explain(entry, records) for entry in story.projection.entries()]


def test_an_unchanged_entry_is_explained_as_appended():
    assert explained(Story(user("hi"))) == [
        "m1 is a message of role user, 5 tokens, recorded in turn 0.\nIt is shown as it was appended."
    ]


def test_an_explanation_names_each_edit_with_reason_and_sizes():
    story = Story(user("go"), call("a"), answer("a", "long " * 40), user("on"))
    story.edit(Replace(Target(story.id(3), (0, 0)), (Text("short"),), "prune", "too old", 54, 6))
    story.edit(Hide(Target(story.id(3), (0, 0))))
    story.edit(Pin(Target(story.id(3))))
    assert explained(story)[2] == (
        "m3 is a message of role tool, 4 tokens, recorded in turn 1.\n"
        "Edit 1, turn 2: prune replaced it (54 -> 6 tokens): too old.\n"
        "Edit 2, turn 2: an edit hid a part of it.\n"
        "Pinned: no policy may shrink or hide it."
    )


def test_summaries_notes_and_stand_ins_are_explained():
    story = Story(user("go"), say("a"), say("b"), call("c"))
    story.say(user("hurry"), answer("c", "late"), turn=9)
    story.edit(Summarize(Span(story.id(2), story.id(3)), "told", "by hand", "to save room"))
    assert explained(story)[1:] == [
        "m2-m3 are shown as one text, 5 tokens, recorded in turn 10.\n"
        "Edit 1, turn 10: by hand summarised it: to save room.",
        "m4 is a message of role assistant, 6 tokens, recorded in turn 3.\nIt is shown as it was appended.",
        "m4 has a stand-in answer, 21 tokens, recorded in turn 3.\n"
        "Changed for its provider: a call without an answer is refused.",
        "m5 is a message of role user, 6 tokens, recorded in turn 9.\nIt is shown as it was appended.",
        "m6 is shown as a note, 16 tokens, recorded in turn 9.\n"
        "Changed for its provider: it came late, or its call was answered already.",
    ]


def test_an_edit_without_its_record_is_named_by_number():
    story = Story(user("go"), say("a"), user("on"))
    story.edit(Replace(Target(story.id(2)), (Text("b"),)))
    assert explain(story.projection.entries()[1], {}).endswith("recorded in turn 1.\nEdit 1 changed it.")
