"""Block retention: the scenarios of the document, then settings and properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import Conversation, Media, Message, Reasoning, Text, ToolResult, View, open_conversation, tool_result
from foveate.conversation.plugins import AdditionalContent, enrich
from foveate.core.enrich import retained_parts
from foveate.core.stamps import Retention, Stamp
from foveate.core.view import Entry
from foveate.edits import Hide, Pin, Replace, Restore, Target
from foveate.errors import BadEdit, BadMessage, BadSetting
from foveate.open import grouped
from foveate.policies import PluginRetention, filter_tool_results, retain_blocks
from foveate.stores.memory import MemoryStore
from foveate.testing import answer, call, say, user
from foveate.testing.bodies import check_body
from foveate.types import PartRetention

PROVIDERS = ("openai", "anthropic")
HEADER = "\n### PLUGIN p CONTEXT ###\n"
SHOT = Media("image/png", "base64", "iVBORw0KGgo=")
NOT_KEPT = '[No longer kept: expand("{}")]'


def opened(*policies: Any, provider: str = "openai", **options: Any) -> Conversation:
    ticks = iter(range(1, 10**9))
    policy = (retain_blocks(), *policies) if "policy" not in options else options.pop("policy")
    return open_conversation(
        "c", format=provider, window=200_000, policy=policy, **grouped({"clock": lambda: next(ticks), **options})
    )


def says(chat: Conversation, text: str, *added: tuple[str, int | bool, bool]) -> str:
    """Return a user input to which plugin p adds blocks: (text, save, display) each."""
    enriched = enrich(
        user(text), [("p", [AdditionalContent(retention, display, save) for retention, save, display in added])]
    )
    return chat.append(enriched.message, kept=enriched.kept)[0]


def notes(chat: Conversation, *kept: PartRetention) -> str:
    """Return a message with only blocks of a plugin, each named after its retention."""
    parts = tuple(Text(f"{conversation.shown} {conversation.calls}") for conversation in kept)
    return chat.append(Message("user", parts), kept=kept, origin="plugin")[0]


def calls(chat: Conversation) -> list[list[str]]:
    """Make one call. Return the texts that the model sees, by message, without its own, and record a reply."""
    view = chat.prepare()
    assert check_body(chat.format.name, chat.format.body(view, profile=chat._agent.profile)) == []
    chat.record(say("Yes."))
    return [texts for entry in view if entry.message.role != "assistant" and (texts := shown_in(entry))]


def shown_in(entry: Entry) -> list[str]:
    parts = entry.message.result.content if entry.message.result else entry.message.parts
    return [part.text for part in parts if isinstance(part, Text)]


def what_came_of(chat: Conversation) -> list[tuple[str, str]]:
    return [(type(edit).__name__, edit.reason) for record in chat.journal.records() for edit in record.edits]


# ------------------------------------------------------------------------------------------------------------ scenarios


def test_3_4_07_a_block_for_two_later_calls_is_gone_at_the_third():
    chat = opened()
    says(chat, "One.", ("block", 2, True))
    seen = [calls(chat)]
    for text in ("Two.", "Three.", "Four."):
        says(chat, text)
        seen.append(calls(chat))
    assert [view[0] for view in seen] == [["One.", HEADER, "block"]] * 3 + [["One."]]
    assert what_came_of(chat) == [("Hide", "kept for 2 later calls")] * 2


def test_3_4_08_the_users_block_stays_in_a_mixed_message():
    chat = opened()
    says(chat, "One.", ("block", 2, True))
    for _ in range(4):
        calls(chat)
        says(chat, "And?")
    entry = next(iter(chat.prepare()))
    retention, hidden = entry.stamp.retention, {path[0] for path in entry.shrunk}
    assert entry.message.parts == (Text("One."),)
    assert retention is not None
    left = [kept.calls for i, kept in enumerate(retention.parts) if i not in hidden and i != 3]  # 3 is blank spacing
    assert left == [None]


def test_3_4_09_a_message_without_blocks_is_hidden():
    chat = opened()
    chat.append("Go.")
    id = notes(chat, *[PartRetention(True, 1, "p")] * 3)
    seen = [calls(chat)]
    for _ in range(2):
        notes(chat, PartRetention(True, 0, "p"))
        seen.append(calls(chat))
    assert seen == [
        [["Go."], ["True 1"] * 3],
        [["Go."], ["True 1"] * 3, ["True 0"]],
        [["Go."], ["True 0"]],
    ]
    assert Hide(Target(id), "retain", "all its parts had their calls") in [
        Hide(edit.target, edit.policy, edit.reason)
        for record in chat.journal.records()
        for edit in record.edits
        if isinstance(edit, Hide)
    ]


def test_3_4_10_hidden_messages_still_count():
    """The document counts the survivors: behind eight messages that each leave after one call, A was third for ever."""
    chat = opened()
    says(chat, "One.", ("A", 3, True))
    seen = []
    for _ in range(9):
        seen.append("A" in calls(chat)[0])
        notes(chat, PartRetention(True, 1, "p"))
    assert seen == [True, True, True, True, False, False, False, False, False]


def test_3_4_14_replies_have_no_retention():
    chat = opened(provider="anthropic")
    says(chat, "One.", ("now", False, True), ("later", 1, False))
    thought = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "it"}},
        ],
    }
    chat.prepare()
    chat.append(thought)
    chat.append(answer("t1", "seen"))
    for _ in range(4):
        body = chat.prompt()
        chat.append(say("Go on."))
        says(chat, "And?", ("more", 1, True))
        assert body["messages"][1]["content"] == thought["content"]
    with pytest.raises(BadMessage, match="not for the role assistant"):
        chat.append(Message("assistant", (Reasoning("Hm."), Text("a"))), kept=[PartRetention(), PartRetention(True, 1)])


def test_3_4_15_messages_without_retention_do_not_count():
    chat = opened()
    says(chat, "One.", ("A", 1, True))
    for _ in range(5):
        assert calls(chat)[0] == ["One.", HEADER, "A"]
        chat.append("And?")
    says(chat, "Two.")
    assert [len(calls(chat)[0]), len(calls(chat)[0])] == [3, 1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_3_4_16_an_empty_tool_result_still_answers_its_call(provider: str):
    chat = opened(provider=provider, expand=True)
    chat.append([user("Look."), call("t1", "look")])
    (id,) = chat.append(tool_result("t1", "a", SHOT), kept=[PartRetention(True, 1, "p"), PartRetention(True, 0, "p")])
    seen = []
    for _ in range(4):
        seen.append(calls(chat)[1])
        says(chat, "And?")
    assert seen == [["a"], ["a"], [NOT_KEPT.format("m3")], [NOT_KEPT.format("m3")]]
    assert chat.original("m3") == tool_result("t1", "a", SHOT)
    assert [edit.target for record in chat.journal.records() for edit in record.edits if isinstance(edit, Replace)] == [
        Target(id, (0,))
    ]


def test_3_4_18_a_wrong_number_of_retentions_changes_nothing():
    chat = opened()
    enriched = enrich(user("One."), [("p", [AdditionalContent("a", True, 2)])])
    with pytest.raises(BadMessage, match="3 entries for 4 parts"):
        chat.append(enriched.message, kept=enriched.kept[:-1])
    assert len(chat) == 0
    stamp = Stamp(0, 0, 0, "user", retention=Retention(1, enriched.kept[:-1]))
    entry = Entry(1, "id", enriched.message, enriched.message, stamp)
    view = View((entry,), 9, chat.budget, retained=1)
    with pytest.raises(BadMessage, match="m1 has times for 3 of its 4 parts"):
        list(retain_blocks()(view))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_3_4_19_an_image_goes_after_two_calls_and_its_text_stays(provider: str):
    chat = opened(provider=provider)
    enriched = enrich(
        user("One."), [("p", [AdditionalContent((SHOT,), True, 2), AdditionalContent("title", True, True)])]
    )
    chat.append(enriched.message, kept=enriched.kept)
    seen = []
    for _ in range(4):
        view = chat.prepare()
        seen.append((view.images, view.entries[0].message.text.split("\n")[-1]))
        chat.record(say("Ok."))
        says(chat, "And?")
    assert seen == [(1, "title"), (1, "title"), (1, "title"), (0, "title")]


# ------------------------------------------------------------------------------------------------ first and later calls


def test_blocks_are_hidden_before_and_after_their_calls():
    chat = opened()
    says(chat, "One.", ("now", False, True), ("later", True, False))
    assert [calls(chat)[0], calls(chat)[0]] == [["One.", HEADER, "now"], ["One.", HEADER, "later"]]
    assert what_came_of(chat) == [
        ("Hide", "not for its first call"),
        ("Restore", "kept for later calls"),
        ("Hide", "for its first call only"),
    ]


def test_a_message_for_later_calls_appears_later():
    """A message without shown parts is no entry of a view: the policy could not know that it exists."""
    chat = opened()
    chat.append("Go.")
    notes(chat, PartRetention(False, 2, "p"), PartRetention(False, 1, "p"))
    seen = [calls(chat)]
    for _ in range(3):
        notes(chat, PartRetention(True, 0, "p"))
        seen.append(calls(chat)[:2])
    assert seen == [
        [["Go."]],
        [["Go."], ["False 2", "False 1"]],
        [["Go."], ["False 2"]],
        [["Go."], ["True 0"]],
    ]


def test_a_message_for_later_calls_appears_after_reopening(tmp_path):
    url = f"sqlite:///{tmp_path}/c.db"
    with opened(store=url) as chat:
        chat.append("Go.")
        notes(chat, PartRetention(False, 2, "p"))
        assert [entry.position for entry in chat.prepare()] == [1]
    with opened(store=url) as again:
        again.append(say("Yes."))
        assert [entry.position for entry in again.prepare()] == [1, 2, 3]
        assert again.journal.verify() == []


def test_a_result_for_later_calls_has_a_placeholder_at_first():
    chat = opened(expand=True)
    chat.append([user("Look."), call("t1", "look")])
    result = Message("tool", (ToolResult("t1", (Text("a"), Text("b"))),))
    chat.append(result, kept=[PartRetention(False, 2, "p"), PartRetention(False, 0, "p")])
    assert [calls(chat)[1], calls(chat)[1]] == [[NOT_KEPT.format("m3")], ["a"]]


def test_a_repeated_prompt_shows_the_same():
    chat = opened()
    says(chat, "One.", ("now", False, True), ("later", True, False))
    first = chat.prompt()
    number = chat._agent.head.number
    assert chat.prompt() == first
    assert (
        chat.retry_smaller(RuntimeError("prompt is too long: 9000 tokens > 8000 maximum"))["messages"]
        == first["messages"]
    )
    assert chat._agent.head.number == number


def test_two_messages_before_one_call_share_their_first_call():
    chat = opened()
    says(chat, "One.", ("a", 1, True))
    says(chat, "Two.", ("b", 1, True))
    assert calls(chat) == [["One.", HEADER, "a"], ["Two.", HEADER, "b"]]
    assert calls(chat) == [["One."], ["Two.", HEADER, "b"]]


# --------------------------------------------------------------------------------------------------------------- limits


def test_the_last_input_always_shows_something():
    chat = opened()
    (id,) = chat.append("Do it.", kept=[PartRetention(True, 0)])
    for _ in range(3):
        calls(chat)
        notes(chat, PartRetention(True, 0, "p"))
    assert calls(chat)[0] == ["Do it."]
    with pytest.raises(BadEdit, match="last user input"):
        chat.edit(Hide(Target(id, (0,))))
    chat.append("Now this.")
    assert calls(chat) == [["Now this."]]


def test_an_input_for_later_calls_is_whole_while_it_is_the_last():
    chat = opened()
    chat.append(Message("user", (Text("a"), Text("b"))), kept=[PartRetention(False, 2), PartRetention(False, 2)])
    assert calls(chat) == [["a", "b"]]


def test_the_last_input_keeps_its_last_part():
    chat = opened(policy="none")
    (id,) = chat.append(Message("user", (Text("a"), Text("b"))), kept=[PartRetention(True, 1), PartRetention(True, 1)])
    with pytest.raises(BadEdit, match="last user input"):
        chat.edit(Replace(Target(id, (0,)), ()), Replace(Target(id, (1,)), (Text(" "),)), Hide(Target(id)))
    chat.edit(Hide(Target(id, (0,))), Hide(Target(id, (1,))))
    assert [entry.message.text for entry in chat.prepare()] == ["b"]


def test_expanded_blocks_stay_for_the_coming_call():
    chat = opened()
    says(chat, "One.", ("A", 1, True))
    for _ in range(3):
        calls(chat)
        says(chat, "And?")
    for handle in ("m1.2", "m1.3"):
        chat.expand(handle, where="view")
    assert [calls(chat)[0], calls(chat)[0]] == [["One.", HEADER, "A"], ["One."]]


def test_undoing_a_restore_hides_the_block_for_good():
    chat = opened()
    says(chat, "One.", ("later", True, False))
    calls(chat)
    (number,) = [n for r in chat.journal.records() for n, edit in r.numbered() if isinstance(edit, Restore)]
    chat.undo(number)
    assert [calls(chat)[0], calls(chat)[0]] == [["One."], ["One."]]


def test_pinned_and_shrunk_blocks_stay():
    chat = opened(filter_tool_results(keep=1), expand=True)
    id = says(chat, "One.", ("A", 1, True))
    chat.edit(Pin(Target(id, (2,))))
    chat.append(call("t1", "look"))
    chat.append(answer("t1", "a" * 99), kept=[PartRetention(True, 3, "p")])
    chat.append([call("t2", "look"), answer("t2", "b")])
    for _ in range(4):
        says(chat, "And?")
        calls(chat)
    conversation, result = list(chat.prepare())[:4:2]
    assert shown_in(conversation) == ["One.", "A"]
    assert result.shrunk_by == ("keep-last-1",)
    assert ("Restore", "kept for later calls") not in what_came_of(chat)
    assert calls(chat)[1] == ['[Omitted: expand("m3")]']


def test_a_pin_keeps_a_hidden_block_hidden():
    chat = opened()
    id = says(chat, "One.", ("later", True, False))
    chat.prepare()
    chat.edit(Pin(Target(id)))
    assert [calls(chat)[0], calls(chat)[0]] == [["One."], ["One."]]


# ------------------------------------------------------------------------------------------------------------- settings


def test_settings_override_the_retention_of_a_plugin():
    retention = {"p": PluginRetention(save=1)}
    chat = opened(policy=(retain_blocks(plugins=retention),))
    says(chat, "One.", ("forever", True, True), ("now", False, True))
    seen = [calls(chat)[0]]
    for _ in range(2):
        says(chat, "And?")
        seen.append(calls(chat)[0])
    assert seen == [["One.", HEADER, "forever", "now"]] * 2 + [["One."]]


@pytest.mark.parametrize(
    ("retention", "first", "later"),
    [
        (PluginRetention(display=False), ["One."], ["One.", HEADER, "both"]),
        (PluginRetention(display=True, save=True), ["One.", HEADER, "both"], ["One.", HEADER, "both"]),
        (PluginRetention(save=False), ["One.", HEADER, "both"], ["One."]),
        (PluginRetention(display=False, save=False), ["One."], ["One."]),
        (PluginRetention(), ["One.", HEADER, "both"], ["One.", HEADER, "both"]),
    ],
)
def test_each_plugin_setting_works_alone(retention: PluginRetention, first: list[str], later: list[str]):
    chat = opened(policy=(retain_blocks(plugins={"p": retention}),))
    says(chat, "One.", ("both", True, True))
    assert [calls(chat)[0], calls(chat)[0]] == [first, later]


def test_a_negative_save_is_refused():
    with pytest.raises(BadSetting, match="save of plugin 'p' is -1"):
        retain_blocks(plugins={"p": PluginRetention(save=-1)})


def test_the_placeholder_can_be_changed():
    chat = opened(policy=(retain_blocks(placeholder="[gone]"),))
    chat.append([user("Look."), call("t1", "look")])
    chat.append(answer("t1", "a"), kept=[PartRetention(True, 0, "p")])
    assert [calls(chat)[1], calls(chat)[1]] == [["a"], ["[gone]"]]


# ----------------------------------------------------------------------------------------------------------- properties

ADDED = st.lists(
    st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from([False, True, 0, 1, 2, 3, -1]), st.booleans()),
    max_size=3,
)
ROUNDS = st.lists(st.tuples(st.sampled_from(["user", "plugin", "none"]), ADDED), max_size=10)
Round = tuple[str, list[tuple[str, int | bool, bool]]]


def play(chat: Conversation, rounds: Sequence[Round]) -> list[list[list[str]]]:
    """Append a message and call the model, in each round. Return the views of all rounds."""
    chat.append("Begin.")
    seen = [calls(chat)]
    for i, (who, added) in enumerate(rounds):
        if who == "user":
            says(chat, f"Round {i}.", *added)
        elif who == "plugin":
            enriched = enrich(Message("user"), [("p", [AdditionalContent(t, d, s) for t, s, d in added])])
            if enriched.kept:
                chat.append(enriched.message, kept=enriched.kept, origin="plugin")
        seen.append(calls(chat))
    return seen


def expected(rounds: Sequence[Round]) -> list[list[list[str]]]:
    """Return the expected views by the rule of the document."""
    retention: list[list[tuple[str, bool, int | None]]] = []
    seen = [[["Begin."]]]
    for i, (who, added) in enumerate(rounds):
        retention.append([(f"Round {i}.", True, None)] if who == "user" else [])
        contents = [AdditionalContent(*conversation) for conversation in ((t, d, s) for t, s, d in added)]
        lasting = [c for c in contents if c.blocks and (c.display_on_current_message or c.calls != 0)]
        if who != "none" and lasting:
            times = [c.calls for c in lasting]
            longest = None if None in times else max(time or 0 for time in times)
            retention[-1].append((HEADER, any(c.display_on_current_message for c in lasting), longest))
            retention[-1] += [(str(c.content), c.display_on_current_message, c.calls) for c in lasting]
        now = len(retention) - 1
        views = []
        for j, parts in enumerate(retention):
            age = len([later for later in retention[j + 1 : now] if later])
            keeps = [text for text, shown, time in parts if (shown if j == now else time is None or time > age)]
            views.append(keeps)
        seen.append([["Begin."], *[view for view in views if view]])
    return seen


@pytest.mark.parametrize("provider", PROVIDERS)
@given(rounds=ROUNDS)
def test_views_follow_the_document(provider: str, rounds: list[Round]):
    chat = opened(provider=provider)
    assert play(chat, rounds) == expected(rounds)
    assert chat.journal.verify() == []
    for row in chat.history():
        if row.stamp.retention:
            assert len(row.stamp.retention.parts) == len(retained_parts(row.message))


@settings(max_examples=settings.default.max_examples // 2)
@pytest.mark.parametrize("provider", PROVIDERS)
@given(rounds=ROUNDS)
def test_3_4_11_planning_after_each_call_equals_planning_once(provider: str, rounds: list[Round]):
    each, once = opened(provider=provider), opened(provider=provider, policy="none", store=(store := MemoryStore()))
    play(each, rounds)
    play(once, rounds)
    late = opened(provider=provider, store=store)
    assert [entry.message for entry in late.prepare()] == [entry.message for entry in each.prepare()]
    number = late._agent.head.number
    late.prepare()
    assert late._agent.head.number == number


@given(rounds=ROUNDS)
def test_a_reopened_conversation_shows_the_same(rounds: list[Round]):
    """I17."""
    store = MemoryStore()
    chat = opened(store=store)
    play(chat, rounds)
    again = opened(store=store)
    assert [entry.message for entry in again.prepare()] == [entry.message for entry in chat.prepare()]
