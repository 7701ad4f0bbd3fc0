"""Shrinking of old results, and of texts of the model, to digests."""

from __future__ import annotations

import json

import pytest
from conversation.shells import opened, texts
from core.story import ANTHROPIC, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.call_context import Budget
from foveate.core.checker import check
from foveate.core.edits import Pin, Replace, Restore, Target
from foveate.core.messages import Message, ToolCall, assistant
from foveate.core.planner import make_plan
from foveate.digest import digest
from foveate.digest.names import distinct_names
from foveate.errors import BadSetting
from foveate.policies import shrink_to_digest, supersede, when_it_pays
from foveate.policies.names import keep_naming_lines
from foveate.testing import answer, call, say, system, text_of, user
from foveate.testing.strategies import histories

PLENTY = Budget(10**9, 0, 10**12, 10**6)
ALL = {"protect": 0, "protect_reads": 0, "protect_said": 0}
CODE = "".join(f"def handler_{n}(request):\n\treturn request.items[{n}]\n\n" for n in range(60))


def shrunk(story: Story, **options: object) -> dict[tuple[str, tuple[int, ...]], str]:
    """Apply the plan. Return the new text of each shrunk part, by handle and path."""
    plan = make_plan(story.projection, story.frame(PLENTY), [shrink_to_digest(**options)], ())
    places = {story.id(row.position): f"m{row.position}" for row in story.rows}
    if plan.edits:
        story.edit(*plan.edits)
    forms = [edit for edit in plan.edits if isinstance(edit, Replace)]
    assert len(forms) == len(plan.edits)
    return {(places[edit.target.message], edit.target.path): edit.content[0].text for edit in forms}


# --------------------------------------------------------------------------------------------------------- tool results


def test_an_old_result_becomes_a_digest_with_its_handle():
    story = Story(user("go"), call("a"), answer("a", CODE), call("b"), answer("b", CODE))
    forms = shrunk(story, protect=len(CODE) // 8, protect_reads=0, share=0.2)
    assert forms == {("m3", ()): digest(CODE, len(CODE) // 5, "m3").text}
    assert 'expand("m3")' in forms["m3", ()]
    assert len(forms["m3", ()]) <= len(CODE) * 0.2


def test_short_and_protected_results_stay():
    short = "x = 1\n" * 60
    story = Story(user("go"), call("a"), answer("a", short), call("b"), answer("b", CODE))
    assert shrunk(story, protect=100, protect_reads=100) == {}
    assert shrunk(story, **ALL, least=10_000) == {}
    dense = " ".join(f"id_{n:07}" for n in range(100))
    assert shrunk(Story(user("go"), call("a"), answer("a", dense), say("x")), **ALL, share=0.99) == {}


@pytest.mark.parametrize("how", ["pinned", "expanded", "unfinished", "a tool that is spared"])
def test_unfinished_pinned_and_expanded_results_stay(how: str):
    state = "interrupted" if how == "unfinished" else "ok"
    tool = "skill" if how == "a tool that is spared" else "grep"
    story = Story(user("go"), call("a", tool), answer("a", CODE, state=state), say("Done."))
    if how == "pinned":
        story.edit(Pin(Target(story.id(3))))
    if how == "expanded":
        story.edit(Restore((Target(story.id(3)),)))
    assert shrunk(story, **ALL) == {}


def test_read_files_stay_longer_than_listings():
    """An edit needs the lines that it replaces."""
    story = Story(user("go"), call("a", "read_file", path="a.py"), answer("a", CODE))
    story.say(call("b", "grep", pattern="x"), answer("b", CODE), say("Next."))
    assert [handle for handle, _ in shrunk(story, protect=1, protect_reads=5_000)] == ["m5"]
    assert [handle for handle, _ in shrunk(story, protect=1, protect_reads=100)] == ["m3"]


def test_windows_may_be_shares_of_the_usable_tokens():
    story = Story(user("go"), call("a"), answer("a", CODE), say("Next."))
    frame = story.frame(Budget(10_000, 0, 10**9, 9))
    for share, due in ((0.2, 0), (0.0, 1)):
        policy = shrink_to_digest(protect=share, protect_reads=share, protect_said=None)
        assert len(make_plan(story.projection, frame, [policy], ()).edits) == due


def test_a_recently_used_result_can_stay():
    story = Story(user("go"), call("a"), answer("a", CODE), call("b"), answer("b", CODE.replace("handler", "worker")))
    story.say(call("c", "edit", text="see worker_7"), answer("c", "ok"))
    assert [handle for handle, _ in shrunk(story, **ALL, stay_if_used=3)] == ["m3"]
    assert [handle for handle, _ in shrunk(story, **ALL)] == ["m5"]


# --------------------------------------------------------------------------------------------------- texts of the model


def test_long_arguments_shrink_string_by_string():
    arguments = json.dumps({"path": "src/a.py", "content": CODE, "flags": [1, None, {"deep": CODE}]})
    story = Story(user("go"), assistant("", ToolCall("a", "write", arguments)), answer("a", "ok"))
    ((where, forms),) = shrunk(story, **ALL).items()
    given = json.loads(forms)
    assert where == ("m2", (0,))
    assert (given["path"], given["flags"][:2]) == ("src/a.py", [1, None])
    assert given["content"] == given["flags"][2]["deep"] == keep_naming_lines(CODE, int(len(CODE) * 0.4), "m2")
    assert "\treturn request.items[0]" in given["content"] or "def handler_0(request):" in given["content"]


def test_only_long_texts_of_the_model_shrink():
    story = Story(system(CODE), user(CODE), say(CODE), user("go"), say("Done."))
    assert list(shrunk(story, **ALL)) == [("m3", (0,))]
    assert shrunk(Story(user(CODE), say(CODE), say("x")), protect=0, protect_said=None) == {}


def test_a_broken_call_and_a_pinned_part_stay():
    message = assistant(CODE, ToolCall("a", "t", '{"text": ' + json.dumps(CODE)), ToolCall("b", "t", "{}"))
    story = Story(user("go"), message, answer("a", "ok"), answer("b", "ok"))
    story.edit(Pin(Target(story.id(2), (0,))))
    assert [path for _, path in shrunk(story, **ALL)] in ([], [(1,)])


def test_keep_naming_lines_keeps_lines_with_new_names():
    text = "\timport os.path\n\timport os.path\nplain words only\n" + "x " * 100 + "sha_256f\n"
    assert (
        keep_naming_lines(text, 400, "m9")
        == f'[{len(text)} characters; expand("m9") shows all]\n\timport os.path\nsha_256f'
    )
    assert distinct_names("see src/a_b.py, src/a_b.py and HTTPServer, not this") == ("src/a_b.py", "HTTPServer")


@given(st.text(st.sampled_from("aB0_./-#@ (:\n")))
def test_a_text_has_the_same_names_if_a_word_with_an_accent_follows(text: str):
    assert distinct_names(text) == distinct_names(f"{text} été")


# -------------------------------------------------------------------------------------------------- with other policies


def test_a_second_run_changes_nothing():
    chat = opened(policy=(shrink_to_digest(**ALL),), window=100_000)
    chat.append([user("go"), call("a"), answer("a", CODE), say("Done.")])
    number = (chat.prepare(), chat._agent.head.number)[1]
    assert (chat.prepare(), chat._agent.head.number)[1] == number == 1
    assert chat.expand("m3") == answer("a", CODE)
    assert texts(chat.prepare())[2] == CODE


def test_superseded_results_are_not_shrunk_too():
    chat = opened(policy=(supersede(), shrink_to_digest(**ALL)), window=100_000, expand=True)
    chat.append([user("go"), call("a", "read", path="a.py"), answer("a", CODE)])
    chat.append([call("b", "read", path="a.py"), answer("b", CODE)])
    shown = texts(chat.prepare())
    assert shown[2].startswith("[Superseded by m5")
    assert 'expand("m5")' in shown[4]


def test_deferred_shrinking_acts_once_for_all():
    chat = opened(policy=(when_it_pays(shrink_to_digest(protect=600, protect_reads=600)),), window=100_000)
    chat.append(user("go"))
    for n in range(40):
        chat.prepare()
        chat.record(call(f"c{n}", "grep", pattern=f"{n}"))
        chat.append(answer(f"c{n}", text_of(300, n)))
    forms = [len(record.edits) for record in chat.journal.records()]
    assert 1 <= len(forms) <= 8
    assert max(forms) > 2


@settings(deadline=None)
@given(histories())
def test_every_view_is_legal_and_no_larger(history: list[Message]):
    story = Story(*history)
    before, faults = story.view().tokens, check(story.view(), ANTHROPIC)
    shrunk(story, **ALL, least=20, least_said=20)
    assert check(story.view(), ANTHROPIC) == faults
    assert story.view().tokens <= before


@pytest.mark.parametrize(
    "wrong",
    [
        {"protect": -1},
        {"protect_reads": 1.0},
        {"protect_said": 2.0},
        {"least": -1},
        {"share": 0.0},
        {"share_said": 1.0},
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, float]):
    with pytest.raises(BadSetting):
        shrink_to_digest(**wrong)


def test_protected_tools_must_be_a_list():
    with pytest.raises(BadSetting, match="list of names"):
        shrink_to_digest(protected_tools="skill")


def test_protected_tools_may_be_patterns():
    long = "\n".join(f"row {n} of the memory" for n in range(200))
    story = Story(user("Go."), call("a", "memory_read"), answer("a", long), say("On."))
    assert shrunk(story, protect=0)
    assert not shrunk(story, protect=0, protected_tools=["memory_*"])


def test_a_text_of_the_model_keeps_its_beginning():
    long = "The parser drops the last token, because next_line() returns early. " + "So src/parse/lines.py it is. " * 30
    story = Story(
        user("Go."), say("I look at src/parse/lines.py first, then at the tests. " * 5), say(long), say("On.")
    )
    forms = shrunk(story, **ALL)
    assert list(forms) == [("m3", (0,))]
    assert forms["m3", (0,)].startswith("The parser drops the last token, because next_line() returns early. So src/")
    assert f'… [{len(long)} characters; expand("m3") shows all]' in forms["m3", (0,)].replace(",", "")


def test_a_text_that_begins_with_space_shrinks_too():
    story = Story(user("Go."), say(" " * 900 + "\nsrc/parse/lines.py"), say("On."))
    assert 'expand("m2")' in shrunk(story, **ALL)["m2", (0,)]
