"""Facts of messages: leases, parts kept for some calls, facts of the application, pins on parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foveate import BadInput, Message, Text, View, open_conversation
from foveate.core.view import PinnedPart
from foveate.edits import Hide, Pin, Replace, Restore, Span, Summarize, Target, Unpin
from foveate.errors import BadEdit, BadMessage, BadSetting, NotExpandable, UnknownHandle
from foveate.testing import answer, call, chat, say, user
from foveate.types import Lease, PartRetention

from .shells import opened, texts

TWO_PARTS = Message("user", (Text("Mine."), Text("A plugin's.")))


# ------------------------------------------------------------------------------------------------------ what is stamped


def test_facts_of_a_message_are_stamped_and_survive_reopening(tmp_path):
    url = f"sqlite:///{tmp_path}/c.db"
    lease = Lease(2, "compact", "first_chars", 500, message_type="action-result", action_id="weather")
    with open_conversation("c", store=url, policy="none", window=9_000) as chat:
        chat.append("Hi.", metadata={"ticket": "T-7", "tags": ["ä", 1]})
        chat.append({"role": "user", "content": "18 degrees"}, lease=lease)
        chat.append(TWO_PARTS, kept=[PartRetention(), PartRetention(False, 3)])
        chat.append(TWO_PARTS, kept=[PartRetention(), PartRetention(True, 0)])
        chat.append("Bye.")
    with open_conversation("c", store=url, policy="none", window=9_000) as again:
        stamps = [row.stamp for row in again.history()]
        assert again.journal.verify() == []
    assert [stamp.metadata for stamp in stamps] == ['{"ticket":"T-7","tags":["ä",1]}', "", "", "", ""]
    assert [stamp.lease for stamp in stamps] == [None, lease, None, None, None]
    assert [stamp.origin for stamp in stamps] == ["user", "tool", "user", "user", "user"]
    assert [stamp.retention and (stamp.retention.sequence, stamp.retention.parts) for stamp in stamps] == [
        None,
        None,
        (1, (PartRetention(), PartRetention(False, 3))),
        (2, (PartRetention(), PartRetention(True, 0))),
        None,
    ]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"lease": "soon"}, BadSetting, "lease= is 'soon'; allowed: a Lease"),
        ({"lease": Lease(expiration_turns=-1)}, BadSetting, "expiration_turns"),
        ({"lease": Lease(expiration_turns=True)}, BadSetting, "expiration_turns|wrong kind"),
        ({"lease": Lease(expiration_mode="vanish")}, BadSetting, "expiration_mode is 'vanish'; allowed: one of none"),  # type: ignore[arg-type]
        ({"lease": Lease(compact_length=0)}, BadSetting, "compact_length"),
        ({"kept": [PartRetention()]}, BadMessage, "1 entries for 2 parts"),
        ({"kept": [PartRetention(), 3]}, BadSetting, "must be a PartRetention"),
        ({"kept": [PartRetention(), PartRetention(calls=-1)]}, BadSetting, "0 or more"),
        ({"kept": [PartRetention(), PartRetention(calls=True)]}, BadSetting, "0 or more"),
        ({"kept": [PartRetention(), PartRetention(shown=1)]}, BadSetting, "True or False"),  # type: ignore[arg-type]
        ({"kept": PartRetention()}, BadSetting, "a list with a PartRetention for each part"),
        ({"metadata": ["a"]}, BadSetting, "a JSON object"),
        ({"metadata": {"a": {1, 2}}}, BadInput, "cannot be written as JSON"),
        ({"metadata": {"a": float("nan")}}, BadInput, "cannot be written as JSON"),
        ({"metadata": {"a": "\ud83d"}}, BadInput, "cannot be written as JSON"),
    ],
)
def test_invalid_stamp_values_are_named_and_nothing_is_appended(options: dict, error: type, says: str):
    chat = opened()
    with pytest.raises(error, match=says):
        chat.append(TWO_PARTS, **options)
    assert len(chat) == 0


def test_unknown_message_type_does_not_turn_input_into_a_result():
    chat = opened()
    chat.append({"role": "user", "content": "Please fix it."}, lease=Lease(message_type="user_input"))
    chat.append({"role": "user", "content": "Again."}, lease=Lease(message_type="retry-context"))
    assert [row.stamp.origin for row in chat.history()] == ["user", "derived"]


@pytest.mark.parametrize(("policy", "warned"), [("off", True), ("none", False), ("retain", False)])
def test_retention_of_parts_is_reported_if_it_is_switched_off(policy: str, warned: bool, caplog):
    chat = opened(policy=policy)
    chat.append(TWO_PARTS, kept=[PartRetention(), PartRetention(True, 0)])
    assert ("kept= has no effect" in caplog.text) is warned


def test_part_retention_is_for_one_message():
    chat = opened()
    with pytest.raises(BadMessage, match="describes one message, but 2"):
        chat.append([user("a"), user("b")], kept=[PartRetention()])


def test_view_knows_the_newest_retained_message_after_its_first_call():
    seen = []

    def looks(view: View) -> tuple[()]:
        seen.append((view.turn, view.retained))
        return ()

    chat = opened(policy=(looks,))
    for _ in range(3):
        chat.append(TWO_PARTS, kept=[PartRetention(), PartRetention(True, 2)])
        chat.prepare()
        chat.record(say("Yes."))
    assert seen == [(1, 0), (2, 1), (2, 1), (3, 2), (3, 2), (4, 3)]


def test_plugin_text_of_the_last_input_may_be_hidden():
    """I5: the user's words stay byte-identical; a plugin's text in the same message is not part of them."""
    chat = opened()
    (id,) = chat.append(TWO_PARTS, kept=[PartRetention(), PartRetention(True, 0)])
    chat.edit(Hide(Target(id, (1,))))
    assert texts(chat.prepare()) == ["Mine."]
    for target in (Target(id, (0,)), Target(id)):
        with pytest.raises(BadEdit, match="last user input"):
            chat.edit(Hide(target))


# ------------------------------------------------------------------------------------------------------- pins on parts


def shrinks(path: tuple[int, ...] = ()):
    def policy(view: View) -> Iterator[Replace | Hide]:
        for entry in view:
            if entry.position == 1 and path not in entry.shrunk:
                yield Replace(Target(entry.id, path), (Text("[short]"),), "shrinks", "too long")

    return policy


@pytest.mark.parametrize(("path", "shown"), [((0,), "Mine.\nA plugin's."), ((1,), "Mine.\n[short]"), ((), None)])
def test_pin_on_a_part_keeps_that_part_and_the_message(path: tuple, shown: str | None):
    chat = opened(policy=(shrinks(path),))
    chat.append([TWO_PARTS, say("Ok."), user("Go on.")])
    chat.pin("m1.1")
    assert texts(chat.prepare())[0] == (shown or "Mine.\nA plugin's.")
    assert chat.view.entries[0].pins == (PinnedPart((0,)),)
    chat.edit(Summarize(Span(chat.history()[0].id, chat.history()[1].id), "So far."))
    assert texts(chat.prepare())[:2] == ["So far.", shown or "Mine.\nA plugin's."]


def test_unpinning_a_message_unpins_its_parts_until_undone():
    chat = opened()
    chat.append([TWO_PARTS, user("Go on.")])
    for handle in ("m1.1", "m1.2"):
        chat.pin(handle)
    receipt = chat.unpin("m1")
    assert chat.view.entries[0].pins == ()
    chat.undo(receipt)
    assert chat.view.entries[0].pins == (PinnedPart((0,)), PinnedPart((1,)))
    chat.unpin("m1.2")
    assert chat.view.entries[0].pins == (PinnedPart((0,)),)
    with pytest.raises(UnknownHandle, match="2 parts"):
        chat.pin("m1.7")


def test_pin_records_its_author():
    chat = opened()
    (id, _) = chat.append([TWO_PARTS, user("Go on.")])
    chat.edit(Pin(Target(id), "todo"), Pin(Target(id, (1,))))
    assert chat.view.entries[0].pins == (PinnedPart((), "todo"), PinnedPart((1,), ""))
    assert "Pinned by todo: no policy may" in chat.explain("m1")
    assert "Part 2 is pinned: no policy may" in chat.explain("m1")
    chat.edit(Unpin(Target(id, (1,))))
    assert chat.view.entries[0].pins == (PinnedPart((), "todo"),)


# ----------------------------------------------------------------------------------------------------------- expanding


RESULT = "a long result " * 20


def shrunk(**edit: object):
    one = opened()
    ids = one.append(chat(user("Go."), call("a"), answer("a", RESULT), say("Done."), user("And now?")))
    one.edit(Replace(Target(ids[2]), (Text("[short]"),), **edit))  # type: ignore[arg-type]
    return one, ids


def test_message_is_expanded_by_handle_id_or_number():
    for named in ("m3", "by id", 3):
        one, ids = shrunk()
        one.prepare()
        assert one.expand(ids[2] if named == "by id" else named, reason="I need it").text == RESULT
        assert texts(one.view)[2] == RESULT
        assert one.journal.records()[-1].edits == (Restore((Target(ids[2]),), reason="I need it"),)


@pytest.mark.parametrize("named", [-1, 0, 6, 99, None, True, 2.0, "m99", "", "0" * 40, "m3-m1"])
def test_name_without_a_message_is_not_expanded(named: object):
    one, _ = shrunk()
    one.prepare()
    with pytest.raises(UnknownHandle):
        one.expand(named)  # type: ignore[arg-type]
    assert one._agent.head.number == 1


@pytest.mark.parametrize("named", ["m1", "m2", "m4-m5", "m3.1"])
def test_visible_message_is_not_expanded(named: str):
    one, _ = shrunk()
    if named == "m3.1":
        one.expand("m3.1")
    with pytest.raises(NotExpandable, match="shown whole"):
        one.expand(named)


def test_withheld_original_is_not_expanded_and_not_lost():
    one, _ = shrunk(expandable=False)
    for handle in ("m3", "m3.1", "m2-m4"):
        with pytest.raises(NotExpandable, match="kept from the model"):
            one.expand(handle)
    assert one.original("m3").text == RESULT
    one.undo(1)
    assert texts(one.view)[2] == RESULT


# ----------------------------------------------------------------------------------------------------------- explaining


def clears(name: str, why: str):
    def policy(view: View) -> Iterator[Replace]:
        for entry in view:
            if entry.is_result and (0,) not in entry.shrunk:
                yield Replace(Target(entry.id), (Text(f"[{name}]"),), name, why)

    return policy


def test_explain_names_the_acting_policy_and_why_others_did_not():
    one = opened(policy=(clears("early", "it is old"), clears("late", "it is long")))
    one.append(chat(user("Go."), call("a"), answer("a", RESULT), say("Done."), user("And now?")))
    one.prepare()
    assert texts(one.view)[2] == "[early]"
    assert one.view.entries[2].shrunk_by == ("early",)
    told = one.explain("m3")
    assert "early replaced it (74 -> 6 tokens): it is old." in told
    assert told.endswith("late would act on it too (it is long), but policies do not change shrunk content.")


def test_explain_names_what_a_pin_prevents():
    one = opened(policy=(clears("early", "it is old"),))
    one.append(chat(user("Go."), call("a"), answer("a", RESULT), say("Done."), user("And now?")))
    one.pin("m3")
    one.prepare()
    assert one.explain("m3").endswith("early would act on it too (it is old), but it is pinned.")
    assert "would act" not in one.explain("m2")
