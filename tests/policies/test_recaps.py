"""Recaps in batches: the scenarios of the document, then options and properties."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import Conversation, Message, Options, Policy, Text, assistant, open_conversation, user
from foveate.core.checker import check
from foveate.core.edits import Hide, Replace, Span, Summarize, Target
from foveate.core.legalize import NO_ANSWER
from foveate.core.messages import Opaque, Reasoning
from foveate.core.server_tools import server_blocks
from foveate.core.view import Entry, View
from foveate.errors import BadInput, BadSetting
from foveate.policies import filter_tool_results, load_policies, recap_batches, recap_settings
from foveate.policies.recap_environment import RecapSettings
from foveate.policies.recaps import format_ratio
from foveate.testing import answer, call, chat, say, system
from foveate.testing.bodies import check_body
from foveate.testing.strategies import histories

ENABLED = "LLM_COMPACTION_ENABLED"
MINIMUM = "LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES"
BATCH = "LLM_COMPACTION_BATCH_SIZE"


def asked(i: int) -> Message:
    return user(f"question {i}")


def reply(i: int) -> Message:
    return assistant(f"recap - step {i}\nplan…")


def pairs(count: int) -> list[Message]:
    return [message for i in range(1, count + 1) for message in (asked(i), reply(i))]


def opened(policy: Policy | str, messages: Iterable[Message] = (), *, format: str = "openai") -> Conversation:
    """Return a conversation with these messages, prepared before each call."""
    ticks = iter(range(1, 10**9))
    talk = open_conversation(
        "c", window=100_000, format=format, policy=policy, expand=True, options=Options(clock=lambda: next(ticks))
    )
    for message in messages:
        if message.role == "assistant" and len(talk):
            talk.prepare()
        talk.append(message)
    return talk


def outline(view: View) -> list[str]:
    """Return each entry in short: `a1` a recap, `A1` a whole reply, `U1` a question, others as their text."""
    known = {f"recap - step {i}": f"a{i}" for i in range(1, 30)}
    known |= {reply(i).text: f"A{i}" for i in range(1, 30)} | {asked(i).text: f"U{i}" for i in range(1, 30)}
    return [known.get(entry.message.text, entry.message.text) for entry in view]


def split(short: str) -> list[str]:
    return short.split()


def after(count: int, **options: object) -> str:
    return " ".join(outline(opened(recap_batches(**options), pairs(count)).prepare()))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ scenarios


def test_4_4_01_nothing_happens_while_switched_off():
    empty = opened(recap_batches())
    assert (bool(empty.plan()), outline(empty.plan().after)) == (False, [])
    assert after(20, enabled=False) == " ".join(f"U{i} A{i}" for i in range(1, 21))


def test_4_4_02_the_seventh_reply_shrinks_the_oldest_four():
    assert after(6) == "U1 A1 U2 A2 U3 A3 U4 A4 U5 A5 U6 A6"
    talk = opened(recap_batches(), pairs(7))
    assert outline(talk.prepare()) == split("a1 a2 a3 a4 U5 A5 U6 A6 U7 A7")
    assert [entry.message.role for entry in talk.view][:5] == ["assistant"] * 4 + ["user"]
    assert talk.prompt()["messages"][1] == {"role": "assistant", "content": "recap - step 1"}


def test_4_4_03_views_between_two_batches_share_their_prefix():
    views = [after(n) for n in (7, 8, 9, 10)]
    assert views[0] == "a1 a2 a3 a4 U5 A5 U6 A6 U7 A7"
    assert [view.count(" ") + 1 for view in views] == [10, 12, 14, 16]
    assert [later.startswith(earlier) for earlier, later in pairwise(views)] == [True] * 3


def test_4_4_04_the_eleventh_reply_shrinks_four_more():
    assert after(11) == "a1 a2 a3 a4 a5 a6 a7 a8 U9 A9 U10 A10 U11 A11"


def test_4_4_05_twelve_of_fifteen_replies_are_recaps():
    assert after(15) == " ".join(f"a{i}" for i in range(1, 13)) + " U13 A13 U14 A14 U15 A15"


def test_4_4_06_the_open_question_stays():
    assert outline(opened(recap_batches(), [*pairs(7), asked(8)]).prepare())[-3:] == ["U7", "A7", "U8"]


def test_4_4_07_the_system_prompt_and_derived_texts_stay():
    talk = opened(recap_batches(), [system("Be brief.")])
    talk.append(user("You are agent 7."), origin="plugin")
    for message in pairs(7):
        talk.append(message)
    assert outline(talk.prepare()) == ["Be brief.", "You are agent 7.", *split("a1 a2 a3 a4 U5 A5 U6 A6 U7 A7")]


def test_4_4_08_a_reply_without_a_recap_stays_whole():
    messages = pairs(7)
    messages[3] = say("nothing to sum up")
    expected = ["a1", "nothing to sum up", "a3", "a4", *split("U5 A5 U6 A6 U7 A7")]
    assert outline(opened(recap_batches(), messages).prepare()) == expected


def test_4_4_09_a_recap_is_found_on_any_line_and_stripped():
    messages = pairs(7)
    messages[1] = say("I looked.\nThen I wrote.\n   recap - step 1 \r\nplan…")
    assert outline(opened(recap_batches(), messages).prepare())[0] == "a1"


def test_4_4_10_the_first_of_two_recaps_is_used():
    messages = pairs(7)
    messages[1] = say("plan…\nrecap - step 1\nrecap - step 2")
    assert outline(opened(recap_batches(), messages).prepare())[:2] == ["a1", "a2"]


def test_4_4_11_batches_of_two_shrink_two_of_four():
    assert after(4, min_preserved_assistant_messages=2, batch_size=2) == "a1 a2 U3 A3 U4 A4"


def test_4_4_12_too_few_replies_change_nothing():
    assert after(2, min_preserved_assistant_messages=2, batch_size=2) == "U1 A1 U2 A2"


def test_4_4_13_with_none_preserved_the_last_question_stays():
    assert after(4, min_preserved_assistant_messages=0, batch_size=4) == "a1 a2 a3 U4 a4"


def test_4_4_14_a_batch_of_one_shrinks_one():
    assert after(4, batch_size=1) == "a1 U2 A2 U3 A3 U4 A4"


def test_4_4_15_small_numbers_are_refused_and_the_old_name_works():
    for wrong in ({"batch_size": 0}, {"min_preserved_assistant_messages": -1}, {"batch_size": True}):
        with pytest.raises(ValueError, match="to 0 or more, and batch_size to 1 or more"):
            recap_batches(**wrong)
    with pytest.raises(BadSetting, match="recap_prefix"):
        recap_batches(recap_prefix=" ")
    with pytest.raises(BadSetting, match=r"must contain \{recap\}"):
        recap_batches(note="[gone]")
    with pytest.warns(DeprecationWarning, match="is now called min_preserved_assistant_messages"):
        policy = recap_batches(min_preserved_pairs=2, batch_size=1)
    assert outline(opened(policy, pairs(4)).prepare()) == split("a1 a2 U3 A3 U4 A4")
    with pytest.warns(DeprecationWarning, match="is now"), pytest.raises(ValueError, match="are -1 and 4"):
        recap_batches(min_preserved_pairs=-1)


def test_4_4_16_the_environment_sets_the_arguments():
    def shown_under(environ: dict[str, str]) -> str:
        return after(7, **recap_settings(environ))

    assert recap_settings({}) == RecapSettings(enabled=True, min_preserved_assistant_messages=3, batch_size=4)
    assert shown_under({ENABLED: "false"}) == " ".join(f"U{i} A{i}" for i in range(1, 8))
    assert shown_under({MINIMUM: "5", BATCH: "2"}) == "a1 a2 U3 A3 U4 A4 U5 A5 U6 A6 U7 A7"
    for value, enabled in {
        "1": True,
        "Yes": True,
        " on": True,
        "TRUE": True,
        "0": False,
        "off": False,
        "": True,
    }.items():
        assert recap_settings({ENABLED: value})["enabled"] is enabled
    for name, value, says in (
        (MINIMUM, "-1", "0 or more"),
        (MINIMUM, "3.5", "0 or more"),
        (BATCH, "0", "1 or more"),
        (BATCH, "four", "1 or more"),
        (BATCH, "1_0", "1 or more"),
        (ENABLED, "maybe", "one of 1, true"),
    ):
        with pytest.raises(ValueError, match=says) as refused:
            recap_settings({name: value})
        assert str(refused.value).startswith(f"{name} is {value!r}; ")


def test_4_4_17_the_history_is_unchanged_and_plans_are_stable():
    messages = pairs(7)
    talk = opened(recap_batches(), messages)
    first = talk.prompt()
    assert first == talk.prompt()
    assert [row.message for row in talk.history()] == messages == pairs(7)
    policy, view = recap_batches(), opened("none", messages).prepare()
    entries = [entry.message for entry in view]
    assert policy(view) == policy(view) != ()
    assert [entry.message for entry in view] == entries


def test_4_4_18_a_reply_with_calls_goes_with_their_results():
    messages = pairs(7)
    looks = replace(call("t1", "look"), parts=(Text("recap - step 2\nplan…"), *call("t1", "look").parts))
    with_recap = chat(messages[:3], looks, answer("t1", "a result of some length, as results are"), messages[4:])
    talk = opened(recap_batches(), with_recap)
    expected = ["a1", '[Earlier: recap - step 2; expand("m4-m5")]', *split("a3 a4 U5 A5 U6 A6 U7 A7")]
    assert outline(talk.prepare()) == expected
    assert [entry.message.role for entry in talk.view][:3] == ["assistant", "user", "assistant"]
    without = chat(messages[:3], call("t1", "look"), answer("t1", "found"), messages[4:])
    assert outline(opened(recap_batches(), without).prepare())[:4] == ["a1", "", "found", "a3"]


def test_4_4_19_the_ratio_is_logged_when_something_shrinks(caplog):
    with caplog.at_level(logging.INFO, logger="foveate"):
        talk = opened(recap_batches(), pairs(6))
        assert caplog.messages == []
        for message in (asked(7), reply(7)):
            talk.append(message)
        before = sum(len(entry.message.text) for entry in talk.view)
        now = sum(len(entry.message.text) for entry in talk.prepare())
    assert caplog.messages == [f"LLM Context: {before} -> {now} chars ({now / before:.2%})"]
    assert format_ratio(0, 0) == "LLM Context: 0 -> 0 chars (100.00%)"


# ---------------------------------------------------------------------------------------------- options, other policies


def test_9_4_recaps_can_be_notes_of_role_user():
    talk = opened(recap_batches(as_note=True), pairs(7), format="anthropic")
    talk.prepare()
    assert [(entry.message.role, entry.message.text) for entry in talk.view][:4] == [
        ("user", f"recap - step {i}") for i in range(1, 5)
    ]
    assert [entry.kind for entry in talk.view] == ["summary"] * 4 + ["message"] * 6


def test_questions_can_be_kept():
    assert after(7, keep_first_user=True) == "U1 a1 a2 a3 a4 U5 A5 U6 A6 U7 A7"
    assert after(7, hide_users=False) == "U1 a1 U2 a2 U3 a3 U4 a4 U5 A5 U6 A6 U7 A7"
    (policy,), _ = load_policies("recap")  # The document hides it too.
    assert " ".join(outline(opened(policy, pairs(7)).prepare())) == after(7, keep_first_user=False)


def test_prefix_and_template_can_be_changed():
    messages = [message for i in range(1, 8) for message in (asked(i), say(f"# recap: step {i}\n" + "plan…" * 20))]
    policy = recap_batches(recap_prefix=" # recap:", template='{recap} (expand "{handle}")')
    assert outline(opened(policy, messages).prepare())[:2] == [
        '# recap: step 1 (expand "m2")',
        '# recap: step 2 (expand "m4")',
    ]


def test_nothing_is_hidden_without_a_recap():
    """An agent whose prompt asks for no recaps would lose its requests and gain nothing."""
    messages = [message for i in range(1, 20) for message in (asked(i), say(f"answer {i}"))]
    assert not opened(recap_batches(), messages).journal.records()


def test_no_recap_is_longer_than_its_turn():
    messages = pairs(7)
    messages[1], messages[3] = say("recap - step 1"), say("recap - step 2 ")
    talk = opened(recap_batches(), messages)
    assert outline(talk.prepare())[:4] == ["a1", "a2", "a3", "a4"]
    assert [type(edit) for edit in talk.journal.records()[0].edits] == [
        Hide,
        Hide,
        Replace,
        Hide,
        Replace,
        Hide,
        Replace,
    ]
    wordy = recap_batches(template="[An old turn of which this recap is left: {recap}]", hide_users=False)
    assert not opened(wordy, pairs(7)).journal.records()


def test_a_note_longer_than_its_turn_is_not_made():
    says = replace(call("t1", "look"), parts=(Text("recap - step 1"), *call("t1", "look").parts))
    talk = opened(recap_batches(), [asked(1), says, answer("t1"), *pairs(7)[2:]])
    assert outline(talk.prepare())[:3] == ["a1", "ok", "a2"]


def test_pinned_and_shrunk_messages_stay():
    talk = opened(recap_batches(), pairs(6))
    talk.pin("m3")
    talk.pin("m6")
    talk.edit(Replace(Target(talk.history()[3].id), (Text("recap - a secret was here\nplan…"),)))
    talk.append(asked(7))
    talk.append(reply(7))
    expected = ["a1", "U2", "recap - a secret was here\nplan…", "A3", "a4"]
    assert outline(talk.prepare())[:5] == expected
    talk.unpin("m6")
    assert outline(talk.prepare())[:5] == [*expected[:3], "a3", "a4"]


def test_a_question_after_the_newest_recap_stays():
    messages = pairs(11)
    messages[7] = say("no recap here")
    assert outline(opened(recap_batches(), messages[:14]).prepare())[:6] == [
        "a1",
        "a2",
        "a3",
        "U4",
        "no recap here",
        "U5",
    ]
    assert outline(opened(recap_batches(), messages).prepare())[:5] == ["a1", "a2", "a3", "no recap here", "a5"]


def test_the_answered_question_goes_with_the_next_batch():
    """Hidden as soon as another question came, it would have changed the cached prefix between two batches."""
    talk = opened(recap_batches(min_preserved_assistant_messages=1, batch_size=2), [asked(1), *map(reply, range(1, 4))])
    assert outline(talk.prepare()) == ["U1", "a1", "a2", "A3"]
    talk.append(asked(2))
    assert outline(talk.prepare()) == ["U1", "a1", "a2", "A3", "U2"]
    for i in (4, 5):
        talk.append(reply(i))
    assert outline(talk.prepare()) == ["a1", "a2", "a3", "U2", "a4", "A5"]


def test_unread_results_stay():
    says = replace(call("t1", "look"), parts=(Text("recap - step 1"), *call("t1", "look").parts))
    policy = recap_batches(min_preserved_assistant_messages=0, batch_size=1)
    talk = opened(policy, [asked(1), says, answer("t1", "found " * 20)])
    assert outline(talk.prepare()) == ["U1", "a1", "found " * 20]
    assert talk.journal.records() == []
    talk.append(reply(2))
    assert outline(talk.prepare()) == ["U1", '[Earlier: recap - step 1; expand("m2-m3")]', "a2"]


def test_a_turn_with_a_part_that_stays_is_whole():
    says = replace(call("t1", "look"), parts=(Text("recap - step 1\n" + "plan…" * 20), *call("t1", "look").parts))
    rest = pairs(9)[2:]
    unanswered = opened(recap_batches(), [asked(1), says, *rest])
    assert [call.call_id for call in unanswered.prepare().entries[0].message.calls] == ["t1"]
    pinned = opened(recap_batches(), [asked(1), says, answer("t1"), *rest[:4]])
    pinned.pin("m3")
    for message in rest[4:]:
        pinned.append(message)
    assert [call.call_id for call in pinned.prepare().entries[0].message.calls] == ["t1"]
    between = opened(recap_batches(), [asked(1), says])
    between.append(user("A hint."), origin="plugin")
    for message in [answer("t1"), *rest]:
        between.append(message)
    assert outline(between.prepare())[1:4] == ["ok", "A hint.", "a2"]


def test_shrunk_results_go_with_their_turn():
    says = replace(call("t1", "look"), parts=(Text("recap - step 1\n" + "plan…" * 20), *call("t1", "look").parts))
    messages = [asked(1), says, answer("t1", "found " * 50), call("t2"), answer("t2"), *pairs(9)[2:]]
    ticks = iter(range(1, 10**9))
    both = (recap_batches(), filter_tool_results(keep=1))
    talk = open_conversation("c", window=100_000, policy=both, expand=True, options=Options(clock=lambda: next(ticks)))
    for message in messages:
        talk.prepare() if message.role == "assistant" else None
        talk.append(message)
    assert outline(talk.prepare())[:3] == ['[Earlier: recap - step 1; expand("m2-m3")]', "", "ok"]


def test_an_expanded_turn_is_covered_again_later():
    says = replace(call("t1", "look"), parts=(Text("recap - step 1\n" + "plan…" * 20), *call("t1", "look").parts))
    messages = [asked(1), says, answer("t1", "found " * 50), *pairs(7)[2:]]
    note = '[Earlier: recap - step 1; expand("m2-m3")]'
    for handle, seen in (
        ("m2-m3", [says.text, "found " * 50, "a2"]),
        ("m3", [note, "[Result for call t1 of look, which is not shown]\n" + "found " * 50, "a2"]),
        ("m2", [note, says.text, NO_ANSWER]),
        ("m1", ["U1", note, "a2"]),
        ("m6", [note, "a2", "U3"]),
        ("m5", [note, "A2", "a3"]),
    ):
        talk = opened(recap_batches(), messages)
        before = outline(talk.prepare())
        assert before[:2] == [note, "a2"]
        talk.expand(handle)
        assert outline(talk.prepare())[:3] == seen
        talk.append(reply(8))
        assert outline(talk.prepare()) == [*before, "A8"]
        assert [edit.policy for edit in talk.journal.records()[-1].edits] == ["recap"]


def test_an_expanded_and_pinned_turn_stays():
    says = replace(call("t1", "look"), parts=(Text("recap - step 1\n" + "plan…" * 20), *call("t1", "look").parts))
    talk = opened(recap_batches(), [asked(1), says, answer("t1", "found " * 50), *pairs(7)[2:]])
    talk.prepare()
    talk.expand("m2-m3")
    talk.pin("m3")
    talk.append(reply(8))
    seen, number = outline(talk.prepare()), talk._agent.head.number
    assert seen[:3] == [says.text, "found " * 50, "a2"]
    talk.append(reply(9))
    assert (outline(talk.prepare()), talk._agent.head.number) == ([*seen, "A9"], number)


def test_only_messages_of_role_user_are_hidden_as_input():
    talk = opened(recap_batches(), [asked(1)])
    talk.append(say("I, the user, answer for the model."), origin="user")
    for message in pairs(7)[2:]:
        talk.append(message)
    assert outline(talk.prepare())[:2] == ["I, the user, answer for the model.", "a2"]


def test_a_kept_question_goes_with_a_batch_without_recaps():
    policy = recap_batches(min_preserved_assistant_messages=1, batch_size=2)
    messages = [asked(1), reply(1), reply(2), reply(3), asked(2), say("four"), say("five")]
    messages[3] = say("three")
    assert outline(opened(policy, messages).prepare()) == ["a1", "a2", "three", "U2", "four", "five"]


def test_reasoning_goes_with_its_turn():
    thinks = Message("assistant", (Reasoning("Hm.", "c2ln", format="anthropic"), Text("recap - step 1\nplan…")))
    talk = opened(recap_batches(), [asked(1), thinks, *pairs(7)[2:]], format="anthropic")
    assert talk.prepare().entries[1].message == assistant("recap - step 1")


# ----------------------------------------------------------------------------------------------------------- properties

OPENER = 14  # tokens of the stand-in for a first user message, which some providers need
CLOSING = 40
"""At most, tokens of the result that closes the use of a server tool when a user's note follows it."""
SHAPES = st.fixed_dictionaries(
    {
        "min_preserved_assistant_messages": st.integers(0, 3),
        "batch_size": st.integers(1, 4),
        "as_note": st.booleans(),
        "keep_first_user": st.booleans(),
        "hide_users": st.booleans(),
    }
)
MANY = settings(max_examples=settings.default.max_examples)


@st.composite
def recap_histories(draw: st.DrawFn) -> list[Message]:
    """Return any history in which most replies have a recap line."""
    without = draw(st.sets(st.integers(0, 30), max_size=4))
    messages: list[Message] = []
    for i, message in enumerate(draw(histories())):
        if message.role == "assistant" and message.parts and i not in without:
            thought = [part for part in message.parts if isinstance(part, Reasoning)]
            rest = [part for part in message.parts if not isinstance(part, Reasoning)]
            recap = Text(f"plan…\nrecap - step {i}\n" + "more " * (i % 7))
            messages.append(replace(message, parts=(*thought, recap, *rest)))
        elif message.role != "tool" or message.result is not None:
            messages.append(message)
    return messages


def prepare_content(talk: Conversation) -> list[tuple[object, ...]]:
    """Return the content of the next call, which both checkers accept; nothing for an empty request."""
    try:
        view = talk.prepare()
    except BadInput:
        return []
    assert check(view, talk._agent.profile) == []
    assert check_body(talk.format.name, talk.format.body(view, profile=talk._agent.profile)) == []
    return content(view)


def count_recap_edits(talk: Conversation) -> int:
    """Count the edits of the policy. A conversation also records interrupted calls."""
    return sum(edit.policy == "recap" for record in talk.journal.records() for edit in record.edits)


def content(view: View) -> list[tuple[object, ...]]:
    """Return the content of a view, independent of the format. A late answer names its tool only if it is known."""
    return [(entry.id, entry.kind, entry.kind == "note" or entry.message) for entry in view]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@MANY
@given(messages=recap_histories(), shape=SHAPES)
def test_planning_before_every_call_equals_planning_once(format, messages, shape):
    """I2, I3, I5, I6, I12: nothing changes between two batches."""
    policy = recap_batches(**shape)
    keep, batch = shape["min_preserved_assistant_messages"], shape["batch_size"]
    always, once, plain = (opened(one, format=format) for one in (policy, policy, "off"))
    last: list[tuple[object, ...]] = []
    due = 0
    for message in messages:
        once.append(message)
        if message.role == "assistant":
            number = count_recap_edits(always)
            now = prepare_content(always)
            replies = [entry for entry in plain.view if entry.message.role == "assistant" and entry.kind == "message"]
            now_due = (len(replies) - keep) // batch
            if now_due == due:
                assert count_recap_edits(always) == number
                assert now[: len(last)] == last
            last, due = now, now_due
        always.append(message)
        plain.append(message)
    assert prepare_content(always) == prepare_content(always) == prepare_content(once)
    assert [row.message for row in always.history()] == [row.message for row in once.history()]
    legal = OPENER + CLOSING * count_open_uses(messages) if format == "anthropic" else 0
    for record in (*always.journal.records(), *once.journal.records()):
        assert record.tokens_after <= record.tokens_before + legal


def test_a_plan_consists_of_hides_and_summaries():
    talk = opened(recap_batches(min_preserved_assistant_messages=1, batch_size=1, as_note=True), pairs(2))
    one, two = (row.id for row in talk.history()[:2])
    plan = talk.plan()
    assert [(type(edit), edit.policy) for edit in plan.edits] == [(Hide, "recap"), (Summarize, "recap")]
    hides, sums_up = plan.edits
    assert isinstance(hides, Hide)
    assert isinstance(sums_up, Summarize)
    assert (hides.target, sums_up.span, sums_up.text) == (Target(one), Span(two, two), "recap - step 1")


def count_open_uses(messages: Iterable[Message]) -> int:
    """Return the number of uses of server tools without a result."""
    blocks = [block for message in messages for _, block in server_blocks(message)]
    return len({block.id for block in blocks if block.is_use} - {block.id for block in blocks if not block.is_use})


def test_turn_with_half_of_a_server_tool_is_no_recap():
    """The result would be lost, and the use closed by a stand-in, which is longer than the turn."""
    use = Opaque("anthropic", "server_tool_use", '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}')
    result = Opaque(
        "anthropic", "web_search_tool_result", '{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'
    )
    policy = recap_batches(min_preserved_assistant_messages=0, batch_size=1)
    chat = opened(policy, format="anthropic")
    chat.append([user("Find it."), Message("assistant", (use,))])
    chat.append([Message("assistant", (result, Text("recap - found\n" + "At length. " * 40))), user("And now?")])
    assert "found" in chat.prepare().entries[2].message.text
    assert count_recap_edits(chat) == 0


@pytest.mark.parametrize("as_note", [False, True])
def test_turn_inside_a_server_tool_unit_stays_whole(as_note):
    """A note of role user there would end the turn, so that the result could not be sent."""
    use = Opaque("anthropic", "server_tool_use", '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}')
    result = Opaque(
        "anthropic", "web_search_tool_result", '{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'
    )
    text = Text("recap - step\n" + "At length." * 40)
    policy = recap_batches(min_preserved_assistant_messages=0, batch_size=1, as_note=as_note, hide_users=False)
    inside = Message("assistant", (text, *call("c1", "look").parts))
    messages = [user("Find it."), Message("assistant", (text, use)), inside, answer("c1", "seen " * 50)]
    talk = opened(policy, [*messages, Message("assistant", (result, text)), asked(2), reply(2)], format="anthropic")
    view = talk.prepare()
    assert [entry.message for entry in view][:5] == [row.message for row in talk.history()][:5]
    assert outline(view)[5:] == ["U2", "a2"]


# ---------------------------------------------------------------------------------------------------- texts of your own


def first_words(entry: Entry) -> str | None:
    """Return the first three words of a reply, and of a message that begins with `[note]`."""
    text = entry.message.text
    if entry.message.role == "assistant" or text.startswith("[note]"):
        return "Short: " + " ".join(text.split()[:3])
    return None


def long_replies(count: int) -> list[Message]:
    return [m for i in range(1, count + 1) for m in (asked(i), say(f"I did {i}, " + "and this is how I did it. " * 9))]


def test_compact_replaces_turns_without_recap_lines():
    talk = opened(recap_batches(compact=first_words), long_replies(7))
    shown = [entry.message.text[:20] for entry in talk.prepare()]
    assert shown[:6] == [
        "Short: I did 1,",
        "Short: I did 2,",
        "Short: I did 3,",
        "Short: I did 4,",
        "question 5",
        shown[5],
    ]
    roles = [entry.message.role for entry in talk.prepare()]
    assert roles[:5] == ["assistant"] * 4 + ["user"]


def test_compact_replaces_other_messages_in_place_of_hiding_them():
    messages = long_replies(7)
    messages.insert(2, user("[note] The build is " + "red again. " * 20))
    view = opened(recap_batches(compact=first_words), messages).prepare()
    assert [entry.message.text[:23] for entry in view][:3] == [
        "Short: I did 1,",
        "Short: [note] The build",
        "Short: I did 2,",
    ]


def test_none_of_compact_leaves_an_entry_to_the_rules():
    plain = opened(recap_batches(), pairs(8)).prepare()
    asked_for: list[Entry] = []
    own = opened(recap_batches(compact=lambda entry: asked_for.append(entry)), pairs(8)).prepare()  # type: ignore[func-returns-value]
    assert [entry.message for entry in own] == [entry.message for entry in plain]
    assert asked_for


def test_compact_gives_the_text_of_a_turn_with_calls():
    steps = [
        [asked(i), call(f"c{i}", "look", at=i), answer(f"c{i}", "seen " * 40), say(f"Done {i}.")] for i in range(9)
    ]
    policy = recap_batches(compact=lambda entry: f"looked {entry.handle}" if entry.message.calls else None)
    talk = opened(policy, [message for step in steps for message in step], format="anthropic")
    texts = [entry.message.text for entry in talk.prepare()]
    assert '[Earlier: looked m2; expand("m2-m3")]' in texts
    assert check_body("anthropic", talk.format.body(talk.prepare(), profile=talk._agent.profile)) == []


def test_view_with_compact_is_the_same_however_often_it_is_planned():
    often = opened(recap_batches(compact=first_words), long_replies(12)).prepare()
    once = opened("none")
    once.append(long_replies(12))
    policy = recap_batches(compact=first_words)
    ticks = iter(range(1, 10**9))
    late = open_conversation(
        "c", window=100_000, policy=policy, expand=True, options=Options(clock=lambda: next(ticks))
    )
    late.append(long_replies(12))
    assert [entry.message for entry in late.prepare()] == [entry.message for entry in often]


def test_compact_must_return_a_text():
    with pytest.raises(BadSetting, match="returned 7"):
        opened(recap_batches(compact=lambda entry: 7), pairs(8)).prepare()  # type: ignore[arg-type,return-value]


def test_missing_recap_lines_are_reported_once(caplog):
    talk = opened("recap", long_replies(12))
    talk.prepare()
    assert [message[:62] for message in caplog.messages] == [
        "recap is due for 4 turns, and none has a line that begins with"
    ]
    assert "RECAP_INSTRUCTION" in caplog.text


@pytest.mark.parametrize("messages", [long_replies(6), [*long_replies(3), *pairs(9)], pairs(20)])
def test_recap_lines_in_some_turns_are_not_reported_as_missing(messages: list[Message], caplog):
    opened("recap", messages).prepare()
    assert not caplog.messages
