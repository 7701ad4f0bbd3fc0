"""Manual edits, expansions and their undo, through an open conversation; and two writers of one conversation."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import Conversation, Media, Text, View
from foveate.core.profiles import PROFILES
from foveate.edits import Hide, Pin, Replace, Restore, Span, Summarize, Target, Unpin
from foveate.errors import BadEdit, BadInput
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing import answer, call, chat, say, system, thought, user

from .shells import opened, shown, texts

BINDING = replace(PROFILES["anthropic"], binds_reasoning=True)
PIXEL = Media("image/png", "base64", "AAAA")


def talk(count: int, **options: object) -> tuple[Conversation, tuple[str, ...]]:
    chat = opened(**options)
    return chat, chat.append([(user if n % 2 else say)(f"m{n}") for n in range(1, count + 1)])


# ------------------------------------------------------------------------------------------------------ refused edits


@pytest.mark.parametrize(
    ("new_edit", "cause"),
    [
        (lambda ids: Replace(Target(ids[2], (7,)), (Text("x"),)), "m3 cannot be edited like this"),
        (lambda ids: Replace(Target(ids[1], (1,)), (Text("not json"),)), "m2 cannot be edited like this"),
        (lambda ids: Replace(Target(ids[1], (0,)), (Text("thoughts"),)), "m2 cannot be edited like this"),
        (lambda ids: Hide(Target(ids[1], (1,))), "hidden only with its message"),
        (lambda ids: Hide(Target(ids[3])), "m4 is pinned; unpin it first"),
        (lambda ids: Summarize(Span(ids[1], ids[2]), " \n"), "needs a text"),
        (lambda ids: Summarize(Span(ids[2], ids[1]), "x"), "ends before it begins"),
        (lambda ids: Restore((), (9,)), "edits 1 to 1"),
        (lambda ids: Pin(Target("0" * 40)), "has no message"),
        (lambda ids: Pin(Target(ids[1]), reason="\ud800"), "surrogate"),
        (lambda ids: Replace(Target(ids[0]), (Text("x"),)), "m1 is a system prompt"),
        (lambda ids: Hide(Span(ids[0], ids[0])), "m1 has nothing to hide"),
        (lambda ids: Hide(Span(ids[3], ids[4])), "m4-m5 has nothing to hide"),
    ],
)
def test_inapplicable_edit_is_refused_with_the_reason(new_edit, cause):
    chat = opened(provider="anthropic")
    ids = chat.append([system("rules"), thought("hm", call("a")), answer("a", "1"), say("ok"), user("go")])
    chat.edit(Pin(Target(ids[3])))
    before, head = shown(chat.view), chat._agent.head
    with pytest.raises(BadEdit, match=cause):
        chat.edit(Pin(Target(ids[2])), new_edit(ids))
    assert (shown(chat.view), chat._agent.head) == (before, head)


def test_unpin_and_a_hidden_span_may_be_one_commit():
    """A span that stays in view is refused: the edit had no effect, and undo() undid the pin before it."""
    chat, ids = talk(4)
    chat.pin("m2")
    with pytest.raises(BadEdit, match="m2 has nothing to hide"):
        chat.edit(Hide(Span(ids[1], ids[1])))
    chat.edit(Unpin(Target(ids[1])), Hide(Span(ids[1], ids[1])))
    assert texts(chat.view) == ["m1", "m3", "m4"]
    chat.edit(Hide(Span(ids[0], ids[2])))
    assert texts(chat.view) == ["m3", "m4"]


def test_unpin_and_a_replacement_may_be_one_commit():
    chat, ids = talk(4)
    chat.pin("m2")
    chat.edit(Unpin(Target(ids[1])), Hide(Target(ids[1])))
    assert texts(chat.view) == ["m1", "m3", "m4"]


def test_hidden_message_accepts_edits_of_its_parts_only():
    chat, ids = talk(5)
    chat.edit(Hide(Span(ids[0], ids[2])))
    chat.edit(Replace(Target(ids[1]), (Text("changed"),)))
    with pytest.raises(BadEdit):
        chat.edit(Replace(Target(ids[1], (4,)), (Text("x"),)))
    chat.undo(1)
    assert texts(chat.view) == ["m1", "changed", "m3", "m4", "m5"]


# ---------------------------------------------------------------------------------------------------------- expanding


@pytest.mark.parametrize("handle", ["m3-m9", "m1-m5", "m4-m5", "m1-m10", "m5", "m6-m6"])
@pytest.mark.parametrize("sqlite", [False, True])
def test_expanding_any_run_shows_all_of_it(handle, sqlite, tmp_path):
    """With one end visible, the hidden part of the run was once neither shown nor mentioned."""
    store = SqliteStore(tmp_path / "a.db") if sqlite else MemoryStore()
    chat, ids = talk(10, store=store)
    chat.edit(Summarize(Span(ids[2], ids[5]), "told"))
    chat.expand(handle)
    first, last = (int(end[1:]) for end in (handle.split("-") * 2)[:2])
    assert {f"m{n}" for n in range(first, last + 1)} <= {entry.handle for entry in chat.view if entry.kind == "message"}
    assert shown(opened(store=store, policy="off").view) == shown(chat.view)
    store.close()


def test_part_of_a_cleared_result_expands_by_its_own_handle():
    one = opened()
    ids = one.append(chat(user("go"), call("a"), answer("a", "long " * 9, PIXEL), user("on")))
    for handle in ("m3.1", "m3.1.1", "m3.1.2", "m3"):
        one.edit(Replace(Target(ids[2]), (Text("[cleared]"),)))
        one.expand(handle)
        assert one.view.entries[2].message == answer("a", "long " * 9, PIXEL)


# ------------------------------------------------------------------------------------------------------------- undoing


def test_expansion_of_a_summary_or_its_message_can_be_undone():
    chat, ids = talk(8)
    chat.edit(Summarize(Span(ids[1], ids[5]), "told"))
    before = shown(chat.view)
    for handle in ("m2-m6", "m1-m4", "m3", "m5-m8", "m6"):
        chat.expand(handle)
        assert shown(chat.view) != before
        chat.undo(chat.journal.receipts()[-1])
        assert shown(chat.view) == before
    again = opened(policy="off", store=chat._agent.store)
    assert shown(again.view) == before


def test_undo_without_an_argument_undoes_the_newest_change():
    chat, ids = talk(8)
    whole = shown(chat.view)
    chat.edit(Summarize(Span(ids[1], ids[3]), "summary"))
    short = shown(chat.view)
    chat.pin("m6")
    chat.expand("m2-m4")
    chat.undo()
    assert shown(chat.view) == short
    chat.undo()
    assert not any(entry.is_pinned() for entry in chat.view)
    assert shown(chat.view) == short
    chat.undo()
    assert shown(chat.view) == whole
    with pytest.raises(BadInput, match="There is nothing to undo"):
        chat.undo()


def test_undoing_a_redundant_expansion_hides_nothing():
    one = opened()
    ids = one.append(chat(user("go"), call("a"), answer("a", "long " * 9), user("on")))
    one.edit(Replace(Target(ids[2]), (Text("[cleared]"),)))
    one.expand("m3")
    one.edit(Restore((Target(ids[2]),)))
    with pytest.raises(BadEdit, match="changed nothing"):
        one.undo(3)
    assert texts(one.view)[2] == "long " * 9


def test_undoing_an_old_expansion_keeps_a_newer_edit():
    one = opened()
    ids = one.append(chat(user("go"), call("a"), answer("a", "long " * 9), user("on")))
    one.edit(Replace(Target(ids[2]), (Text("[first]"),)))
    one.expand("m3")
    one.edit(Replace(Target(ids[2]), (Text("[second]"),)))
    with pytest.raises(BadEdit, match="changed nothing"):
        one.undo(2)
    assert texts(one.view)[2] == "[second]"
    one.undo(3)
    assert texts(one.view)[2] == "long " * 9


def test_undoing_a_pin_leaves_an_older_pin():
    chat, _ = talk(3)
    chat.pin("m2")
    chat.undo(chat.pin("m3"))
    assert [entry.is_pinned() for entry in chat.view] == [False, True, False]
    chat.undo(1)
    assert not any(entry.is_pinned() for entry in chat.view)
    with pytest.raises(BadEdit):
        chat.undo(1)


@pytest.mark.parametrize("is_summary", [True, False])
def test_undoing_an_undo_keeps_an_input_that_stayed_visible(is_summary: bool):
    """The input was the newest one when the range was hidden, and m2 was pinned."""
    chat, ids = talk(6)
    chat.pin("m2")
    span = Span(ids[0], ids[5])
    made = chat.edit(Summarize(span, "A summary.") if is_summary else Hide(span))
    chat.append([user("m7"), say("m8")])
    chat.unpin("m2")
    before = texts(chat.view)
    assert before == ["A summary."] * is_summary + ["m2", "m5", "m7", "m8"]
    undone = chat.undo(made)
    assert texts(chat.view) == [f"m{n}" for n in range(1, 9)]
    chat.undo(undone)
    assert texts(chat.view) == before
    chat.refresh()
    assert texts(opened(name=chat.name, store=chat._agent.store).view) == before


def test_several_edits_are_undone_together():
    chat, ids = talk(8)
    before = shown(chat.view)
    receipt = chat.edit(
        Hide(Target(ids[1])), Summarize(Span(ids[3], ids[4]), "told"), Pin(Target(ids[5])), Restore((Target(ids[1]),))
    )
    assert texts(chat.view) == ["m1", "m2", "m3", "told", "m6", "m7", "m8"]
    back = chat.undo(receipt)
    assert shown(chat.view) == before
    assert back.author == "undo"
    assert {edit.reason for edit in back.edits} == {"undoes edits 1 to 4"}
    with pytest.raises(BadEdit, match="The journal has edits 1 to"):
        chat.undo(99)


@settings(max_examples=settings.default.max_examples * 2)
@given(data=st.data())
def test_undoing_the_last_manual_edit_restores_the_view(data):
    store = MemoryStore()
    chat, ids = talk(9, store=store)
    for n in range(data.draw(st.integers(1, 6))):
        first = data.draw(st.integers(0, 7))
        last = data.draw(st.integers(first, 7))
        target, span = Target(ids[first]), Span(ids[first], ids[last])
        edit = data.draw(
            st.sampled_from(
                [
                    Replace(target, (Text(f"e{n}"),)),
                    Hide(target),
                    Hide(span),
                    Summarize(span, f"s{n}"),
                    Restore((target,)),
                    Restore((span,)),
                    Restore((), (max(1, n),)),
                ]
            )
        )
        before = texts(chat.view)
        try:
            receipt = chat.edit(edit)
        except BadEdit:
            continue
        after = texts(chat.view)
        try:
            back = chat.undo(receipt)
        except BadEdit:
            assert after == before
            continue
        assert texts(chat.view) == before
        chat.undo(back)
        assert texts(chat.view) == after
    assert texts(opened(policy="off", store=store).view) == texts(chat.view)


# ---------------------------------------------------------------------------------------------- policies, and others


def test_policy_that_restores_hidden_messages_is_left_out():
    """Only the store has hidden messages; a plan once showed less than the same journal did after a reopening."""
    store, ids = MemoryStore(), []

    def restores(view: View) -> list[Restore]:
        return [Restore((Target(ids[1]),))] if view.turn > 1 else []

    chat = opened(store=store, policy=restores)
    ids += chat.append([user("a"), say("b"), user("c")])
    chat.edit(Hide(Target(ids[1])))
    assert texts(chat.prepare()) == ["a", "c"]
    assert texts(opened(store=store, policy="off").view) == ["a", "c"]
    assert len(chat.journal.records()) == 1


def test_departure_by_another_process_is_followed():
    """The new past may be longer than the old one: the ends of both were once joined."""
    store = MemoryStore()
    one, other = opened(store=store), opened(store=store)
    one.append([user(f"old {n}") for n in range(5)])
    other.refresh()
    one.prompt(messages=[{"role": "user", "content": f"new {n}"} for n in range(9)])
    other.refresh()
    assert texts(other.view) == texts(one.view) == [f"new {n}" for n in range(9)]
    other.append(user("and on"))
    assert one.journal.verify() == []


def test_reply_to_an_edited_view_loses_its_bound_reasoning():
    """F05."""
    chat = opened(provider="anthropic", profile=BINDING)
    ids = chat.append([user("go"), call("a"), answer("a", "long " * 9)])
    chat.prepare()
    chat.edit(Replace(Target(ids[2]), (Text("[cleared]"),)))  # while the model is thinking
    chat.record(thought("about the long one", say("done")))
    chat.append(user("on"))
    assert chat.prepare().entries[3].message == say("done")
    chat.record(thought("about the cleared one", say("again")))
    assert chat.view.entries[5].message == thought("about the cleared one", say("again"))


def test_summary_has_the_same_stamp_after_reopening():
    store = MemoryStore()
    chat, ids = talk(5, store=store)
    chat.edit(Summarize(Span(ids[1], ids[2]), "told"))
    again = opened(store=store, policy="off")
    assert again.view.entries[1].stamp == chat.view.entries[1].stamp
    assert chat.view.entries[1].stamp.time == chat.journal.records()[0].time > 0


def test_undoing_all_receipts_restores_the_history():
    """F33: undoing an undo makes the edit again under a new number; undoing the old number reverts it too."""
    one = opened()
    ids = one.append(chat(user("go"), call("a"), answer("a", "long " * 9), user("on")))
    before = shown(one.prepare())
    one.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    one.expand("m3")
    one.edit(Hide(Target(ids[1])), Restore((Target(ids[1]),)))
    for receipt in reversed(one.journal.receipts()):
        with suppress(BadEdit):  # What another undo has taken back already.
            one.undo(receipt)
    assert shown(one.prepare()) == before
