"""Superseded results become placeholders with the handle of the newer result."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conversation.shells import opened, refusals
from core.story import PLENTY, Story
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate.core.edits import Pin, Replace, Restore, Target
from foveate.core.messages import Media, Message, Part, ToolCall
from foveate.core.planner import Plan, Policy, make_plan
from foveate.errors import BadSetting
from foveate.policies import superseded_results
from foveate.policies.pruning import prune_tool_outputs
from foveate.policies.superseded_results import ResultTracker, TrackedResult, supersede
from foveate.policies.tool_kinds import (
    ASKS,
    LOOKS,
    READS,
    WRITES,
    CallKind,
    _question,
    create_classifier,
    is_same_file,
)
from foveate.replay.recordings import read_recording
from foveate.testing import answer, call, calls, chat, say, text_of, user
from foveate.testing.strategies import histories

AT_ONCE = supersede(grace=None)
SCREEN = Media("image/png", "base64", "AAAA")


class Run:
    """A conversation of an agent: each step a call and its answer."""

    def __init__(self) -> None:
        self.said: list[Message] = [user("u")]
        self._number = 0

    def do(
        self, tool: str, text: str = "", state: str = "ok", media: tuple[Media, ...] = (), **arguments: object
    ) -> Run:
        self._number += 1
        self.said += [
            call(f"c{self._number}", tool, **arguments),
            answer(f"c{self._number}", text or text_of(100, self._number), *media, state=state),  # type: ignore[arg-type]
        ]
        return self

    def read(self, file: str = "/src/a.py", tokens: int = 100, **arguments: object) -> Run:
        return self.do("Read", text_of(tokens, self._number), file_path=file, **arguments)

    def edit(self, file: str = "/src/a.py", state: str = "ok") -> Run:
        return self.do("Edit", "Done.", state, file_path=file, old_string="a", new_string="b")


def plan_of(story: Story, policy: Policy) -> Plan:
    return make_plan(story.projection, story.frame(PLENTY), [policy])


def replace_superseded(run: Run | list[Message], policy: Policy = AT_ONCE) -> dict[str, str]:
    """Return the text that replaces each superseded result, by handle."""
    plan = plan_of(Story(*(run.said if isinstance(run, Run) else run)), policy)
    return {entry.handle: entry.message.text for entry in plan.after if entry.shrunk}


def gone(run: Run | list[Message], policy: Policy = AT_ONCE) -> list[str]:
    return list(replace_superseded(run, policy))


# ---------------------------------------------------------------------------------------------------------------- reads


def test_a_repeated_read_replaces_the_older_one():
    run = Run().read().read("/src/b.py").read()
    assert replace_superseded(run) == {"m3": '[Superseded by m7: expand("m3")]'}
    plan = plan_of(Story(*run.said), AT_ONCE)
    assert [(edit.policy, edit.reason) for edit in plan.edits] == [("supersede", "read again")]


def test_other_lines_of_a_file_are_another_read():
    run = Run().read(offset=1, limit=50).read(offset=51, limit=50).read().read(offset=51, limit=50)
    assert gone(run) == ["m5"]


@pytest.mark.parametrize(
    "lines", [{"limit": 50}, {"offset": 51, "limit": 50}, {"view_range": [1, 50]}, {"end_line": 9}]
)
def test_a_partial_read_does_not_replace_a_whole_one(lines: dict[str, object]):
    """A tool that shows "all" of a file may stop at its own limit."""
    assert gone(Run().read().read(**lines)) == gone(Run().read(**lines).read()) == []
    assert gone(Run().read(**lines).read(**lines)) == ["m3"]


def test_an_unchanged_note_replaces_nothing():
    """Some tools answer a second read with a note that points to the first one."""
    unchanged = "File unchanged since last read; refer to the earlier result."
    run = Run().read().do("Read", unchanged, file_path="/src/a.py")
    assert gone(run) == gone(run, supersede(grace=0)) == []
    assert gone(run.read()) == ["m3"]


def test_a_superseded_result_counts_by_its_original_size():
    """I2. Otherwise the tiny result after a placeholder could replace it next time."""
    story = Story(*Run().read(tokens=500).do("Read", "No change.", file_path="/src/a.py").read(tokens=500).said)
    plan = plan_of(story, supersede(grace=None, placeholder="[]"))
    story.edit(*plan.edits)
    assert [entry.handle for entry in plan.after if entry.shrunk] == ["m3"]
    assert plan_of(story, supersede(grace=None, placeholder="[]")).edits == ()


def test_a_failed_read_replaces_nothing_and_stays():
    assert gone(Run().read().do("Read", state="error", file_path="/src/a.py")) == []
    assert gone(Run().do("Read", state="error", file_path="/src/a.py").read()) == []
    assert gone(Run().read().do("Read", state="interrupted", file_path="/src/a.py")) == []


def test_a_read_stays_after_a_change_until_it_is_repeated():
    assert gone(Run().read().edit()) == []
    run = Run().read().edit().read(offset=10, limit=5)
    assert gone(Run().read(offset=1, limit=9).edit().read(offset=10, limit=5)) == []
    assert gone(Run().read(offset=1, limit=9).edit().read(offset=9, limit=5)) == ["m3"]
    assert replace_superseded(run) == {"m3": '[Superseded by m7: expand("m3")]'}
    (edit,) = AT_ONCE(Story(*run.said).view())
    assert edit.reason == "read again after a change"
    (edit,) = AT_ONCE(Story(*Run().read().edit().read().said).view())


def test_a_read_before_a_change_goes_after_the_grace_period():
    """The call that made the edit is the second one; the next edit of the file is the third."""
    run = Run().read().edit().edit().do("Bash", command="make")
    assert [replace_superseded(run, supersede(grace=grace)) for grace in (0, 2, 3)] == [
        {"m3": '[Superseded by m7: expand("m3")]'},
        {"m3": '[Superseded by m7: expand("m3")]'},
        {},
    ]
    assert gone(run.do("Bash", command="ls"), supersede(grace=3)) == ["m3"]


def test_a_failed_edit_changes_nothing():
    assert gone(Run().read().edit(state="error"), supersede(grace=0)) == []


def test_a_read_after_the_change_stays():
    assert gone(Run().read().edit().read(), supersede(grace=0)) == ["m3"]
    assert gone(Run().edit().read(), supersede(grace=0)) == []


@pytest.mark.parametrize(
    ("read", "changed", "is_it"),
    [
        ("/home/me/src/a.py", "src/a.py", True),
        ("src/a.py", "/home/me/src/a.py", True),
        ("src/./a.py", "src/a.py", True),
        ("/home/me/src/a.py", "/home/you/src/a.py", False),
        ("/home/me/src/ba.py", "a.py", False),
        ("src/a.py", "lib/a.py", False),
    ],
)
def test_a_patch_may_name_a_file_from_another_folder(read: str, changed: str, is_it: bool):
    patch = f"*** Begin Patch\n*** Update File: {changed}\n@@\n-a\n+b\n*** End Patch"
    assert gone(Run().read(read).do("apply_patch", input=patch), supersede(grace=0)) == (["m3"] if is_it else [])


def test_reads_match_only_if_they_surely_name_one_file():
    """A placeholder that names the text of another file would mislead; one read too many does not."""
    assert gone(Run().read("a.py").read("/src/a.py")) == []
    assert gone(Run().read("/src/lib/../a.py").read("/src/a.py")) == ["m3"]


# ------------------------------------------------------------------------------------------------------- asks and looks


def test_the_newest_answer_of_a_command_stays():
    run = Run().do("Bash", state="error", command="make test", description="Run").do("Bash", command="make test")
    assert replace_superseded(run) == {"m3": '[Superseded by m5: expand("m3")]'}
    assert gone(run.do("Bash", "ok", command="make test", description="Once more", timeout=9)) == ["m3", "m5"]
    assert gone(Run().do("Bash", command="make").do("Bash", command="make test")) == []


def test_the_order_of_arguments_does_not_change_a_search():
    assert gone(Run().do("Grep", pattern="x", path="src").do("Grep", path="src", pattern="x")) == ["m3"]
    assert gone(Run().do("Grep", pattern="x", path="src").do("Glob", pattern="x", path="src")) == []


def test_unknown_tools_supersede_nothing():
    """Two reads of a terminal give two parts of one output; a page turned twice gives two pages."""
    assert gone(Run().do("write_stdin", session_id=1, chars="").do("write_stdin", session_id=1, chars="")) == []
    assert gone(Run().do("next_page").do("next_page")) == []


def test_the_newest_page_and_screenshot_stay():
    run = Run().do("mcp__playwright__browser_navigate", url="a").do("browser_click", ref="1")
    run = run.do("computer", "shot", media=(SCREEN,), action="screenshot").do("browser_snapshot")
    run = run.do("computer", "shot", media=(SCREEN,), action="screenshot")
    assert replace_superseded(run) == {
        "m3": '[Superseded by m5: expand("m3")]',
        "m5": '[Superseded by m9: expand("m5")]',
        "m7": '[Superseded by m11: expand("m7")]',
    }
    assert gone(run, supersede(keep=2)) == ["m3"]


def test_a_look_without_a_page_replaces_none():
    assert gone(Run().do("browser_snapshot").do("browser_click", "Clicked.", ref="1")) == []
    assert gone(Run().do("browser_snapshot").do("browser_snapshot", state="error")) == []


# ---------------------------------------------------------------------------------------------------- untouched results


def test_pinned_and_expanded_results_stay():
    story = Story(*Run().read().read().read().said)
    story.edit(Pin(Target(story.id(3))), Replace(Target(story.id(5)), ()), Restore((Target(story.id(5)),)))
    assert list(AT_ONCE(story.view())) == []
    story.say(say("Seen."))
    assert [edit.target.message for edit in plan_of(story, AT_ONCE).edits] == [story.id(5)]


def test_shrunk_results_stay_and_count_as_reads():
    story = Story(*Run().read(tokens=9_000).read(tokens=9_000).read().said)
    plan = plan_of(story, prune_tool_outputs(protect=50, minimum=0))
    assert [edit.target.message for edit in plan.edits] == [story.id(3), story.id(5)]
    story.edit(*plan.edits)
    assert plan_of(story, AT_ONCE).edits == ()


def test_a_result_shorter_than_its_placeholder_stays():
    assert gone(Run().do("Bash", "ok", command="make").do("Bash", "ok", command="make")) == []


def test_a_call_with_cut_arguments_is_still_recognized():
    story = Story(*Run().read().read().said)
    story.edit(Replace(Target(story.id(4), (0,)), (answer("x", '{"cut":1}').result.content[0],)))
    assert [edit.target.message for edit in plan_of(story, AT_ONCE).edits] == [story.id(3)]


def test_a_parallel_call_may_supersede_another():
    both = calls(call("a", "Read", file_path="x.py"), call("b", "Read", file_path="x.py"))
    messages = chat(user("u"), both, answer("a", text_of(90)), answer("b", text_of(90)))
    assert gone(messages) == ["m3"]


def test_a_repeated_call_id_names_the_newer_call():
    messages = chat(user("u"), call("a", "Read", file_path="x"), answer("a", text_of(90)))
    assert gone([*messages, call("a", "Read", file_path="y"), answer("a", text_of(90))]) == []
    assert gone([*messages, call("a", "Read", file_path="x"), answer("a", text_of(90))]) == ["m3"]


# ------------------------------------------------------------------------------------------------------------- settings


def test_only_named_tools_are_known():
    own = supersede(reads=["Fetch"], writes=["Put"], looks=["peek"], asks=["query"], grace=0)
    run = Run().do("x__fetch", path="a").do("put", path="a").do("PEEK").do("peek").do("query", q="1").do("query", q="1")
    assert gone(run, own) == ["m3", "m7", "m11"]
    assert gone(run) == []
    assert gone(Run().read().read().do("Bash", command="x").do("Bash", command="x"), own) == []


def test_a_placeholder_without_handles_is_used_as_it_is():
    assert replace_superseded(Run().read().read(), supersede(placeholder="[old]")) == {"m3": "[old]"}


@pytest.mark.parametrize("wrong", [{"keep": 0}, {"grace": -1}])
def test_wrong_numbers_are_refused(wrong: dict[str, int]):
    with pytest.raises(BadSetting, match="keep and grace of supersede are"):
        supersede(**wrong)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- kinds of calls


@pytest.mark.parametrize(
    ("tool", "arguments", "deed"),
    [
        ("read_file", {"path": "a.py", "start_line": 5, "end_line": 9}, CallKind("read", ("a.py",), (5, 9))),
        ("view", {"path": "a.py", "view_range": [5, -1]}, CallKind("read", ("a.py",), (5, 10**9))),
        ("str_replace_editor", {"command": "view", "path": "/a"}, CallKind("read", ("/a",))),
        ("str_replace_editor", {"command": "str_replace", "path": "/a"}, CallKind("write", ("/a",))),
        ("bash", {"command": "cat src/a.py"}, CallKind("read", ("src/a.py",))),
        ("exec_command", {"cmd": "sed -n '5,9p' a.py", "workdir": "/w"}, CallKind("read", ("/w/a.py",), (5, 9))),
        ("exec_command", {"cmd": "cat /a.py", "workdir": "/w"}, CallKind("read", ("/a.py",))),
        ("exec_command", {"cmd": "nl -ba a.py | sed -n '5,9p'"}, CallKind("read", ("a.py",), (5, 9))),
        ("shell", {"command": ["bash", "-lc", "cd /w && cat a.py"]}, CallKind("read", ("/w/a.py",))),
        ("shell", {"command": ["ls"]}, CallKind("ask", question=_question("shell", {"command": ["ls"]}))),
        ("bash", {"command": "cat *.py"}, CallKind("ask", question=_question("bash", {"command": "cat *.py"}))),
        (
            "bash",
            {"command": "cat a.py > b.py"},
            CallKind("ask", question=_question("bash", {"command": "cat a.py > b.py"})),
        ),
        ("bash", {"command": "apply_patch <<'E'\n*** Add File: b.py\n"}, CallKind("write", ("b.py",))),
        ("Write", {"file_path": "C:\\w\\a.py", "content": ""}, CallKind("write", ("C:/w/a.py",))),
        ("Read", {}, CallKind("other")),
        ("Agent", {"prompt": "*** Update File: a.py"}, CallKind("other")),
    ],
    ids=str,
)
def test_a_call_is_classified_by_name_and_arguments(tool: str, arguments: dict[str, object], deed: CallKind):
    assert create_classifier()(tool, json.dumps(arguments)) == deed


def test_no_text_is_made_for_a_message_that_another_policy_edits(monkeypatch: pytest.MonkeyPatch):
    """Of a cold list most superseded results are folded in the same plan."""
    story, made = Story(*Run().read().read().read("/src/b.py").read("/src/b.py").said), list[str]()
    view = plan_of(story, lambda view: ()).after
    monkeypatch.setattr(superseded_results, "fill", lambda template, entry: made.append(entry.handle) or "[x]")
    (edit,) = AT_ONCE.edits_besides(view, {view.entries[2].id})
    assert edit.target.message == view.entries[6].id
    assert made == [view.entries[6].handle]
    assert [edit.target.message for edit in AT_ONCE(view)] == [view.entries[2].id, view.entries[6].id]
    assert made == [view.entries[6].handle, view.entries[2].handle]


def test_edits_of_superseded_results_are_made_once_for_later_calls():
    view = plan_of(Story(*Run().read().read().said), lambda view: ()).after
    (first,), (second,) = AT_ONCE(view), AT_ONCE(replace(view, turn=view.turn + 1))
    assert second is first


@given(st.sampled_from([*READS, *WRITES, *LOOKS, *ASKS, "x"]), st.text() | st.from_type(dict).map(repr))
def test_any_arguments_are_classified(tool: str, arguments: str):
    assert create_classifier()(tool, arguments).kind in ("read", "write", "look", "ask", "other")


@pytest.mark.parametrize("value", [None, 5, "", [], {}, True, [[]], [1, "2"], -1, 10**30, 1.5, "\ud800"], ids=repr)
def test_arguments_of_odd_types_do_no_harm(value: object):
    deed_of = create_classifier()
    for key in ("file_path", "offset", "limit", "view_range", "end_line", "command", "cmd", "workdir"):
        for tool in ("Read", "Edit", "Bash", "str_replace_editor"):
            assert deed_of(tool, json.dumps({"file_path": "a", key: value})).kind in ("read", "write", "ask", "other")


def test_is_same_file_compares_paths():
    assert is_same_file("/a/b.py", "b.py")
    assert not is_same_file("/a/bb.py", "b.py")


# ----------------------------------------------------------------------------------------------------------- properties


def agent_messages(messages: list[Message]) -> list[Message]:
    """Return a conversation of an agent that reads, changes, asks and looks."""
    doings = [("Read", "a.py"), ("Edit", "a.py"), ("Read", "b.py"), ("ls", "src"), ("computer", "click")]

    def doing(part: Part, index: int) -> Part:
        if not isinstance(part, ToolCall):
            return part
        tool, file = doings[(len(part.call_id) + index) % len(doings)]
        return ToolCall(part.call_id, tool, json.dumps({"path": file}))

    return [
        replace(message, parts=tuple(doing(part, index) for part in message.parts))
        for index, message in enumerate(messages)
    ]


@given(histories(), st.sampled_from((None, 0, 2)))
def test_views_stay_legal_and_stable(messages: list[Message], grace: int | None):
    """I1, I2, I6."""
    policy = supersede(grace=grace, placeholder="{by}{handle}")
    chat = opened(policy=(policy,))
    chat.append(agent_messages(messages))
    if any(entry.message.role != "system" for entry in chat.view):
        view = chat.prepare()
        assert refusals(chat, view) == []
        assert list(policy(view)) == []
        assert [row.message for row in chat.history()] == agent_messages(messages)


def test_the_same_view_gives_the_same_edits():
    """I8."""
    story = Story(*Run().read().read().edit().do("Bash", command="x").do("Bash", command="x").said)
    view = story.view()
    before = [(entry.handle, entry.message) for entry in view]
    assert list(AT_ONCE(view)) == list(AT_ONCE(view)) == list(supersede(grace=None)(view)) != []
    assert [(entry.handle, entry.message) for entry in view] == before


def test_many_reads_and_namesakes_take_linear_work(monkeypatch: pytest.MonkeyPatch):
    """Counts work, not time: two absolute paths are never compared."""
    compared: list[str] = []
    monkeypatch.setattr("foveate.policies.superseded_results.is_same_file", lambda *paths: compared.extend(paths))
    run = Run()
    for n in range(150):
        run.read(f"/p{n}/index.ts").edit(f"/p{n}/index.ts")
    assert len(gone(run, supersede(grace=0))) == 150
    assert compared == []


def test_a_growing_view_copies_only_the_files_that_change(monkeypatch: pytest.MonkeyPatch):
    """Facts about views copy their state for their marks. The copies share the reads of each file."""
    copied = list[object]()
    copy = superseded_results._File.copy
    monkeypatch.setattr(superseded_results._File, "copy", lambda file: copied.append(file) or copy(file))
    run = Run()
    for n in range(300):
        run.read(f"/p{n}/index.ts")
    assert len(gone(run.read("/p7/index.ts").read("/p9/index.ts"), supersede(grace=None))) == 2
    assert 1 <= len(copied) <= 4


def test_copies_of_a_tracker_do_not_see_each_others_changes():
    tracker, classify = ResultTracker(), create_classifier()
    reads = [classify("read_file", json.dumps({"path": path})) for path in ("/a.py", "/b.py")]
    write = CallKind("write", ("/a.py",))

    def add(one: ResultTracker, place: int, call: CallKind) -> None:
        one.add(TrackedResult(place, 100, 1), call, is_error=False, has_image=False)

    add(tracker, 2, reads[0])
    add(tracker, 4, reads[1])
    twin = tracker.copy()
    add(twin, 6, write)
    assert list(tracker.outdated_reads(99)) == []
    assert [item.old for item in twin.outdated_reads(99)] == [2]
    add(tracker, 6, write)
    add(twin, 8, reads[0])
    assert [item.old for item in tracker.outdated_reads(99)] == [2]
    assert list(twin.outdated_reads(99)) == []


def test_the_oldest_of_many_reads_of_one_file_go():
    run = Run()
    for n in range(70):
        run.read(offset=n, limit=1)
    assert gone(run.edit().read(offset=500, limit=1)) == [f"m{2 * n + 3}" for n in range(6)]


# -------------------------------------------------------------------------------------------- pruning that spares reads


def test_reads_can_be_protected_longer():
    run = (
        Run()
        .read("/a", 500)
        .do("Bash", text_of(500), command="a")
        .read("/b", 500)
        .do("Bash", text_of(500), command="b")
    )
    run = run.do("Bash", text_of(500), command="c")
    assert gone(run, prune_tool_outputs(protect=400, minimum=0)) == ["m3", "m5", "m7", "m9"]
    assert gone(run, prune_tool_outputs(protect=400, minimum=0, protect_reads=10_000)) == ["m5", "m9"]
    assert gone(run, prune_tool_outputs(protect=400, minimum=0, protect_reads=1_400)) == ["m3", "m5", "m9"]
    assert gone(run, prune_tool_outputs(protect=400, minimum=0, protect_reads=0)) == ["m3", "m5", "m7", "m9"]
    with pytest.raises(BadSetting, match="protect_reads"):
        prune_tool_outputs(protect_reads=-1)


@pytest.mark.slow
def test_recorded_placeholders_lead_to_shown_results(transcripts: Path):
    """The newest read of a file stays too, unless the file was changed after it."""
    superseded = 0
    for path in sorted((transcripts / "neutral" / "entireio-cli").glob("*.jsonl")):
        story = Story(*[row.message for row in read_recording(path).messages])
        plan = plan_of(story, AT_ONCE)
        shown = {entry.handle: entry for entry in plan.after}
        for entry in plan.after:
            if entry.shrunk:
                superseded += 1
                calls_of = rf'\[Superseded by (m\d+): (?:.*; )?expand\("{entry.handle}"\)\]'
                newer = re.fullmatch(calls_of, entry.message.text)
                assert newer is not None
                assert shown[newer[1]].position > entry.position
                assert shown[newer[1]].is_result
    assert superseded > 100
