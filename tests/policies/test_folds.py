"""Folds: finished steps become a few lines for each stretch, and user inputs stay."""

from __future__ import annotations

import json

import pytest
from conversation.shells import opened
from core.story import OPENAI, PLENTY, Story
from hypothesis import given
from hypothesis import strategies as st

from foveate import Options, open_conversation
from foveate.core.caches import clear_caches
from foveate.core.checker import check
from foveate.core.edits import CALLER, Pin, Replace, Restore, Span, Summarize, Target
from foveate.core.messages import Media, Message, Opaque, Text, ToolCall
from foveate.core.planner import Plan, Policy, make_plan
from foveate.digest import selection
from foveate.digest.names import distinct_names
from foveate.digest.selection import select_names
from foveate.errors import BadSetting
from foveate.policies import fold_text
from foveate.policies.deferral import when_it_pays
from foveate.policies.digests import shrink_to_digest
from foveate.policies.fold_text import fold_steps
from foveate.policies.folds import fold
from foveate.policies.names import names_of
from foveate.testing import answer, call, calls, say, text_of, user
from foveate.testing.strategies import histories

AT_ONCE = fold(protect=0, stretch=1)


def plan_of(story: Story, policy: Policy) -> Plan:
    return make_plan(story.projection, story.frame(PLENTY), [policy])


def run_of(steps: int, tokens: int = 300, first: int = 0) -> list[Message]:
    """Return steps of an agent, each a call and its answer of so many tokens."""
    text: list[Message] = []
    for n in range(first, first + steps):
        text += [call(f"c{n}", "Read", file_path=f"/src/part_{n}.py"), answer(f"c{n}", text_of(tokens, n))]
    return text


def shown_texts(plan: Plan) -> list[tuple[str, str]]:
    return [(entry.handle, entry.kind) for entry in plan.after]


def fold_edits(plan: Plan) -> list[str]:
    return [entry.message.text for entry in plan.after if entry.kind == "summary"]


# ------------------------------------------------------------------------------------------------------------ stretches


def test_old_stretches_fold_and_new_steps_stay():
    story = Story(user("Go."), *run_of(8))
    plan = plan_of(story, fold(protect=620, stretch=600))
    assert shown_texts(plan) == [
        ("m1", "message"), ("m2", "summary"), ("m6", "summary"),
        ("m10", "summary"), *((f"m{position}", "message") for position in range(14, 18)),
    ]  # fmt: skip
    assert [(edit.policy, edit.reason) for edit in plan.edits] == [("fold", "older than the newest 620 tokens")] * 3
    assert '[Steps m2-m5 in short. They are done, and ask for nothing; expand("m2-m5") shows' in fold_edits(plan)[0]
    assert "m4 Read(file_path=/src/part_1.py)" in fold_edits(plan)[0]


def test_a_stretch_is_folded_once():
    """Otherwise each call would write the whole view again."""
    story, policy = Story(user("Go.")), fold(protect=620, stretch=600)
    folds_made = []
    for n in range(20):
        story.say(*run_of(1, first=n))
        if edits := plan_of(story, policy).edits:
            story.edit(*edits)
            folds_made += [(edit.span.first, edit.span.last) for edit in edits if isinstance(edit, Summarize)]
    ids = [row.id for row in story.rows]
    assert [(ids.index(first) + 1, ids.index(last) + 1) for first, last in folds_made] == [
        (first, first + 3) for first in range(2, 38, 4)
    ]
    assert plan_of(story, policy).edits == ()


def test_folding_at_every_call_equals_folding_once():
    """I3."""
    policy = fold(protect=620, stretch=600)
    early, late = Story(user("Go.")), Story(user("Go."), *run_of(20))
    for n in range(20):
        early.say(*run_of(1, first=n))
        early.edit(*edits) if (edits := plan_of(early, policy).edits) else None
    text = [entry.message for entry in plan_of(early, policy).after]
    assert text == [entry.message for entry in plan_of(late, policy).after]


def test_a_fold_is_the_same_with_and_without_earlier_calls():
    """The paths of a listing are known to later folds by the text of its fold alone, so a restart changes nothing."""
    listing = "\n".join(f"/srv/{part}/{part}_{n}.py" for part in ("reader", "writer") for n in range(60))
    warm, story = fold(protect=0, stretch=1), Story(user("Go."))
    for step, text in (("a", listing), ("b", listing.replace("\n", " is read whole, and kept as it was.\n"))):
        story.say(call(step, "sh"), answer(step, text))
        known = plan_of(story, warm)
    assert len(fold_edits(known)) == 2
    assert fold_edits(known) == fold_edits(plan_of(story, fold(protect=0, stretch=1)))


def test_a_stretch_that_grows_is_continued(monkeypatch: pytest.MonkeyPatch):
    """The newest result is worth its place, so the stretch before it grows by a step with each call."""
    read: list[str] = []
    describe_result = fold_text._describe_result
    monkeypatch.setattr(fold_text, "_describe_result", lambda text: read.append(text) or describe_result(text))
    options = {"protect": 0, "stretch": 100_000, "by_worth": True}
    policy, story = fold(**options), Story(user("Go."))
    for n in range(10):
        story.say(call(f"c{n}", "sh"), answer(f"c{n}", text_of(300, n)))
        plan = plan_of(story, policy)
    assert len(fold_edits(plan)) == 1
    assert len(read) == len(set(read)) == 9
    assert fold_edits(plan) == fold_edits(plan_of(story, fold(**options)))


def test_a_result_is_read_once_for_folds_that_are_made_again(monkeypatch: pytest.MonkeyPatch):
    """A change of the first fold changes the known names, so the folds after it are made again."""
    clear_caches()
    read: list[str] = []
    describe_text = fold_text.describe_text
    monkeypatch.setattr(fold_text, "describe_text", lambda text, most: read.append(text) or describe_text(text, most))
    story = Story(user("Go."))
    for n in range(6):
        story.say(call(f"c{n}", "sh"), answer(f"c{n}", text_of(300, n)))
    first = fold_edits(plan_of(story, fold(protect=0, stretch=600)))
    assert len(first) == len(fold_edits(plan_of(story, fold(protect=0, stretch=600)))) > 1
    assert len(read) == len(set(read)) == 6


@given(histories(), st.booleans())
def test_a_continued_stretch_equals_a_new_one(history, by_worth):
    continued, story = fold(protect=0, stretch=500, by_worth=by_worth), Story()
    for message in history:
        story.say(message)
        plan = plan_of(story, continued)
        assert plan.edits == plan_of(story, fold(protect=0, stretch=500, by_worth=by_worth)).edits


def test_a_user_input_stays_and_ends_a_stretch():
    story = Story(user("One."), *run_of(2), user("Two."), *run_of(2, first=2), user("Three."), say("Done."))
    plan = plan_of(story, AT_ONCE)
    texts = [entry.message.text for entry in plan.after if entry.kind == "message"]
    assert texts[:3] == ["One.", "Two.", "Three."]
    wide = plan_of(story, fold(protect=10, stretch=100_000))
    assert shown_texts(wide)[:4] == [("m1", "message"), ("m2", "summary"), ("m6", "message"), ("m7", "summary")]


def test_a_short_stretch_waits():
    story = Story(user("Go."), *run_of(4))
    assert plan_of(story, fold(protect=0, stretch=100_000)).edits == ()


def test_calls_and_their_answers_are_folded_together():
    story = Story(user("Go."), calls("a", "b"), answer("a", text_of(300)), answer("b", text_of(300, 1)), say("Done."))
    (text,) = fold_edits(plan_of(story, fold(protect=1, stretch=1)))
    assert [line.split(" ")[0] for line in text.split("\n")[1:] if line[0] == "m"] == ["m2"]
    assert "→ m3" in text
    assert "→ m4" in text


def test_an_open_call_is_never_folded():
    story = Story(user("Go."), call("open", "agent"), user("Meanwhile."), *run_of(3), say("Done."))
    plan = plan_of(story, fold(protect=0, stretch=100_000))
    assert ("m2", "message") in shown_texts(plan)


def test_pins_summaries_and_expanded_messages_stay():
    story = Story(user("Go."), *run_of(6), say("Done."))
    ids = [row.id for row in story.rows]
    story.edit(Pin(Target(ids[2])), Summarize(Span(ids[5], ids[6]), "The third, in short."))
    policy = fold(protect=8, stretch=100)
    plan = plan_of(story, policy)
    assert ("m3", "message") in shown_texts(plan)
    assert "The third, in short." in fold_edits(plan)
    story.edit(*plan.edits)
    story.edit(Restore((Span(ids[9], ids[10]),)))
    assert plan_of(story, policy).edits == ()
    story.say(user("And?"), say("So."))
    spans = [edit.span for edit in plan_of(story, policy).edits if isinstance(edit, Summarize)]
    assert Span(ids[9], ids[10]) in spans


def test_a_stretch_that_would_hardly_shrink_stays():
    story = Story(user("Go."), *(message for n in range(9) for message in (call(f"c{n}"), answer(f"c{n}"))), say("."))
    assert plan_of(story, fold(protect=1, stretch=1)).edits == ()


def test_a_stretch_and_a_step_expand_by_their_handles():
    chat = opened(policy=(AT_ONCE,))
    chat.append([user("Go."), *run_of(3)])
    chat.append(user("And?"))
    before = chat.history()
    assert [entry.kind for entry in chat.prepare()][1] == "summary"
    assert chat.expand("m5").text == before[4].message.text
    chat.expand("m2-m7")
    assert [entry.message for entry in chat.prepare()] == [row.message for row in before]


# ------------------------------------------------------------------------------------------------------------- the text


def entries_of(*text: Message):
    return plan_of(Story(*text), lambda view: ()).after.entries


def text_of_fold(*given, **options) -> str:
    text, names = fold_steps(*given, **options)
    assert names_of(text) <= names | options.get("named", set())
    return text


def test_a_fold_shows_what_the_caller_edited():
    secret = [call("k", "Read", file_path=".env"), answer("k", "KEY=abc_123_def")]
    story = Story(user("Go."), *run_of(1), *secret, *run_of(2, first=1))
    story.edit(Replace(Target(story.id(5), (0, 0)), (Text("Removed."),), CALLER))
    (_, text) = fold_edits(plan_of(story, fold(protect=310, stretch=300)))
    assert "→ m5 Removed." in text
    assert "abc_123_def" not in text


def test_images_and_results_of_server_tools_are_told():
    """Their steps were empty lines, which named nothing that the model could ask for again."""
    image = Media("image/png", "url", "https://x/a.png")
    blocks = (
        Opaque("anthropic", "mcp_tool_use", '{"id":"m","name":"ask","input":{"q":"kites"}}'),
        Opaque("anthropic", "mcp_tool_result", '{"tool_use_id":"m","content":[{"type":"text","text":"They fly."}]}'),
    )
    entries = entries_of(
        call("a", "look"), answer("a", "", image), Message("assistant", (Text("I ask."), *blocks, Text("Good.")))
    )
    assert text_of_fold(entries).split("\n") == [
        "m1 look()",
        "  → m2 [image png at https://x/a.png]",
        "m3 I ask.",
        "  ask(q=kites)",
        "  → m3 They fly.",
        "  Good.",
    ]


def test_a_name_is_written_once():
    listing = "\n".join(f"src/part_{n}.py" for n in range(200))
    short = text_of_fold(entries_of(call("a", "ls"), answer("a", listing), call("b", "ls"), answer("b", listing)))
    again = text_of_fold(entries_of(call("a", "ls"), answer("a", listing)), named=names_of(listing))
    kept = names_of(short)
    assert len(kept) > 20
    assert all(short.count(f"{name}\n") <= 2 for name in kept)  # Once, in the line that describes the result.
    assert len(again) < 200


def test_calls_with_one_id_get_their_own_results():
    """Some servers count the calls of each reply from 0."""
    entries = entries_of(call("call_0", "ls"), answer("call_0", "a.py"), call("call_0", "ls"), answer("call_0", "b.py"))
    assert text_of_fold(entries).split("\n") == ["m1 ls()", "  → m2 a.py", "m3 ls()", "  → m4 b.py"]


def test_a_fold_lists_the_new_names_of_results():
    code = "\n".join(
        f"def part_{n}(reader):\n    return load_part_{n}(reader.field_{n}, keep_{n}=old_{n}_value)\n"
        for n in range(40)
    )
    assert {"load_part_2", "part_9"} <= set(select_names(distinct_names(code), 2_000))
    short = text_of_fold(
        entries_of(call("a", "Read"), answer("a", code)), named=names_of(code) - {"load_part_2", "part_9"}
    )
    assert short.split("\n")[2:] == ["    … load_part_2 part_9"]


def test_a_fold_names_the_file_with_the_whole_output_of_a_result():
    cut = f"{text_of(300)}\n\nThe output was truncated. Full output saved to: /home/me/out/tool_ceea1"
    text, names = fold_steps(Story(user("Go."), call("a"), answer("a", cut)).view().entries[1:])
    assert "(whole output in /home/me/out/tool_ceea1)" in text
    assert "home/me/out/tool_ceea1" in names


def test_a_fold_shows_what_a_client_kept_of_an_output():
    above = "<persisted-output>\nOutput too large (42.3KB). Full output saved to: /out/1.txt\n\nPreview (first 2KB):"
    result = "\n".join((above, *["def load():\n    return 1"] * 40))
    shown = text_of_fold(entries_of(call("a"), answer("a", result)))
    assert "40 definitions: def load" in shown
    assert "(whole output in /out/1.txt)" in shown


def test_a_fold_lists_the_names_of_long_texts_and_arguments():
    plan = "I change things in order. " * 12 + "First comes run_all in src/main.py."
    code = "x = 1\n" * 60 + "def run_all(): return load_rows(run_all)\n"
    text = Message("assistant", (Text(plan), ToolCall("a", "write", json.dumps({"path": "b.txt", "content": code}))))
    first, names, called, *_ = text_of_fold(entries_of(text, answer("a"))).split("\n")
    assert first.startswith("m1 I change things in order.")
    assert names == "    … run_all src/main.py"
    assert called.startswith("  write(path=b.txt, content=x = 1")
    assert called.endswith("… load_rows)")


def test_a_fold_makes_no_digest(monkeypatch: pytest.MonkeyPatch):
    """A cold list of 400 kB has hundreds of results to fold at once: each is read for its names only."""
    made: list[str] = []
    monkeypatch.setattr(selection, "_Selection", lambda lines, *_: made.append(str(lines)))
    plan = plan_of(Story(user("Go."), *run_of(40, tokens=2_000)), AT_ONCE)
    assert len(fold_edits(plan)) > 10
    assert made == []


def lines_of_calls(*asked: dict[str, object]) -> list[str]:
    """Return the lines of calls of one tool."""
    steps = [
        part for n, arguments in enumerate(asked) for part in (call(f"c{n}", "read", **arguments), answer(f"c{n}"))
    ]
    return [line for line in text_of_fold(entries_of(*steps)).split("\n") if "(" in line]


def test_arguments_of_the_call_before_are_not_repeated():
    first = {"path": "src/reader.py", "folder": "/srv/app", "limit": 40}
    assert lines_of_calls(first, first, first | {"limit": 20}, {"path": "src/writer.py", "folder": "/srv/app"}) == [
        "m1 read(path=src/reader.py, folder=/srv/app, limit=40)",
        "m3 read(as before, limit=40)",  # Shorter than the words that would stand for it.
        "m5 read(as before, limit=20)",
        "m7 read(path=src/writer.py, as before)",
    ]


def test_long_arguments_are_repeated():
    """They are not compared, and an empty one is not taken for one of them."""
    text = "all of this is new " * 40
    lines = lines_of_calls({"description": text}, {"description": text}, {"description": ""})
    assert "as before" not in "".join(lines)


def test_the_beginning_of_a_long_argument_is_shown_once():
    """Agents that run programs begin each script with the same words."""
    script = 'const result = await tools.exec_command({{"cmd": "{0}", "workdir": "/srv/shop", "timeout_ms": 10000}});'
    commands = ("git status --short", "go test ./internal/auth", "git log --oneline -5")
    lines = lines_of_calls(*({"input": script.format(command)} for command in commands))
    assert lines[0].startswith("m1 read(input=const result = await tools.exec_command")
    assert lines[1].startswith("m3 read(input=…go test ./internal/auth")
    assert lines[2].startswith("m5 read(input=…git log --oneline -5")


def test_a_patch_names_its_files():
    files = ("src/shop/cart.py", "src/shop/order.py", "tests/test_cart.py", "tests/test_order.py", "README.md")
    patch = "".join(f"*** Update File: {file}\n@@\n-one line of it\n+another line of it\n" for file in files)
    line = lines_of_calls({"input": f"*** Begin Patch\n{patch}*** End Patch"})[0]
    listed = "src/shop/order.py tests/test_cart.py tests/test_order.py README.md"
    assert line == f"m1 read(input=patch of src/shop/cart.py and 4 more… {listed})"


@pytest.mark.parametrize(
    "result",
    [
        "The file /srv/shop/cart.py has been updated successfully.",
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM src/cart.py\n",
    ],
)
def test_a_short_result_of_an_edit_says_no_more_than_that(result: str):
    assert text_of_fold(entries_of(call("c1"), answer("c1", result))).splitlines()[1] == "  → m2 edited"


def test_a_path_at_the_beginning_of_an_argument_is_not_cut():
    ask = "Please look into /srv/shop/reader_of_{0}.py, and tell me which of the functions reads the file twice."
    lines = lines_of_calls({"question": ask.format("orders")}, {"question": ask.format("returns")})
    assert lines[1].startswith("m3 read(question=…/srv/shop/reader_of_returns.py")


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        (
            "Chunk ID: c2e613\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 3",
            "M src/shop.py",
        ),
        ("Exit code: 1\nWall time: 0.1 seconds", "exit code 1: M src/shop.py"),
    ],
)
def test_a_result_is_shown_without_the_header_of_its_client(header: str, shown: str):
    text = text_of_fold(entries_of(call("c1", "sh"), answer("c1", f"{header}\nOutput:\nM src/shop.py\n")))
    assert text.splitlines()[-1] == f"  → m2 {shown}"


def test_a_process_that_wrote_nothing_names_its_session():
    header = "Wall time: 5.0 seconds\nProcess running with session ID 77271\nOutput:\n"
    text = text_of_fold(entries_of(call("c1", "sh"), answer("c1", header)))
    assert text.endswith("still running, session 77271, no output")


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (f"The file /srv/app/{'part/' * 30}main.py has been updated successfully.", "edited"),
        (f"Your proposed edit has introduced new errors: {'E999, ' * 20}", "edit: Your proposed edit has introduced"),
        ("".join(f"src/part_{n}.py:{n}: def read_part_{n}\n" for n in range(9)), "9 matches in part_0.py, part_1.py"),
        ("".join(f"src/part_{n}.py\n" for n in range(9)), "9 entries: src/part_0.py … src/part_8.py"),
        (f"All is well here.\n{'Nothing else was found in it, and it ends. ' * 9}", "All is well here. …"),
    ],
)  # fmt: skip
def test_a_long_result_becomes_a_few_words(result, line):
    assert text_of_fold(entries_of(call("a"), answer("a", result))).split("\n")[1].startswith(f"  → m2 {line}")


def test_short_texts_are_whole_and_failures_are_marked():
    text = [
        Message("assistant", (Text("I look."), *calls("a", "b").parts)),
        answer("a", "ok"),
        answer("b", "no", state="error"),
    ]
    assert text_of_fold(entries_of(*text)) == ("m1 I look.\n  tool()\n  → m2 ok\n  tool()\n  → m3 failed no")


def test_a_long_text_keeps_its_beginning():
    long = "The parser fails on empty input. " + "It then goes on as if nothing were wrong. " * 40
    assert text_of_fold(entries_of(say(long))).startswith("m1 ")
    assert "The parser fails on empty input." in text_of_fold(entries_of(say(long)))


@pytest.mark.parametrize("arguments", ["[1, 2]", "not JSON", '{"a": ' * 3_000, '{"text": "\\ud800 lone"}', ""])
def test_any_arguments_are_written(arguments):
    text = Message("assistant", (ToolCall("a", "tool", arguments),))
    assert text_of_fold(entries_of(text, answer("a"))).startswith("m1 tool(")


# -------------------------------------------------------------------------------------------------- with other policies


def test_folding_waits_until_it_pays():
    policy = when_it_pays([fold(protect=600, stretch=600), shrink_to_digest(protect=600, protect_reads=600, least=200)])
    clock = iter(range(1, 10**9))
    chat = open_conversation("c", window=100_000, policy=policy, options=Options(clock=lambda: next(clock)))
    chat.append(user("Go."))
    commits = []
    for n in range(40):
        chat.prepare()
        for message in run_of(1, first=n):
            (chat.record if message.role == "assistant" else chat.append)(message)
    for receipt in chat.journal.receipts():
        named = [edit.span.first if isinstance(edit, Summarize) else edit.target.message for edit in receipt.edits]
        assert len(named) == len(set(named))
        commits.append(receipt.policies)
    assert ("fold",) in commits or ("fold", "shrink") in commits
    assert len(commits) < 20


@given(histories(), st.integers(0, 400), st.integers(1, 400))
def test_folding_is_pure_idempotent_and_legal(history, protect, stretch):
    policy = fold(protect=protect, stretch=stretch)
    story = Story(*history)
    plan = plan_of(story, policy)
    assert plan_of(story, policy).edits == plan.edits
    if plan.edits:
        story.edit(*plan.edits)
        assert plan.after.tokens < plan.before.tokens
    assert check(plan.after, OPENAI) == check(plan.before, OPENAI)
    assert plan_of(story, policy).edits == ()


@pytest.mark.parametrize(
    "wrong", [{"protect": -1}, {"protect": 1.0}, {"stretch": 0}, {"min_share": 1.0}, {"framing": "[folded]"}]
)
def test_wrong_numbers_and_a_framing_without_steps_are_refused(wrong):
    with pytest.raises(BadSetting):
        fold(**wrong)


def test_fold_of_one_message_names_it_once():
    chat = open_conversation("one", window=100_000, policy=fold(protect=50, stretch=10, min_share=0.1))
    chat.append(
        [user("Why?"), say("This is a long answer. " * 200), user("And then?"), say("Well. " * 300), user("Go.")]
    )
    (note,) = [entry.message.text for entry in chat.prepare() if entry.kind == "summary" and entry.position == 2]
    assert note.startswith("[Steps m2 in short. ")
