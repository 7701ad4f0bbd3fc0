"""The plugins WorkingDirectory and TodoList."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from foveate import Conversation, Options, Text, ToolResult, open_conversation
from foveate.agents.plugins import Todo, TodoList, WorkingDirectory
from foveate.agents.plugins.directory import git_state
from foveate.agents.toolbox import ToolFailed
from foveate.conversation.plugins import AdditionalContent
from foveate.errors import BadSetting
from foveate.open import grouped
from foveate.policies import checkpoint, filter_tool_results
from foveate.testing import answer, call, say, user
from foveate.testing.bodies import check_body

ASKED = (Text("Go."),)
ANSWERED = (ToolResult("c"),)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "src").mkdir(parents=True)
    (home / "src" / "a.py").write_text("pass\n")
    (home / "README.md").write_text("# Home\n")
    (home / "node_modules" / "x").mkdir(parents=True)
    return home


def told(plugin: WorkingDirectory, content: Any = ASKED) -> str | None:
    """Return the plugin's text, with the folder's name instead of its path."""
    said = plugin(content)
    if said is None:
        return None
    assert isinstance(said.content, str)
    first, _, rest = said.content.partition("\n")
    return f"{os.path.basename(first)}\n{rest}"


WHOLE = "home\nREADME.md 7\nsrc/\nsrc/a.py 5"


# -------------------------------------------------------------------------------------------------- working directory


def test_a_folder_is_shown_once_and_then_only_its_changes(home: Path):
    plugin = WorkingDirectory(home)
    assert told(plugin) == WHOLE
    assert told(plugin) is None
    (home / "src" / "b.py").write_text("x = 1\n")
    (home / "src" / "a.py").write_text("passed\n")
    (home / "README.md").unlink()
    os.utime(home / "src" / "b.py", ns=(1, 1))
    assert told(plugin, ANSWERED) is None  # Without after_tools, results of tools show no changes.
    assert (
        told(plugin) == "Changed since you were last told:\nchanged: src/a.py 5 -> 7\nnew: src/b.py 6\ngone: README.md"
    )
    os.utime(home / "src" / "b.py", ns=(2, 2))
    assert told(plugin) == "Changed since you were last told:\nchanged: src/b.py 6"
    assert told(plugin) is None


def test_the_whole_folder_is_shown_again_after_many_inputs(home: Path):
    plugin = WorkingDirectory(home, whole_every=3, after_tools=True)
    told_now = [[told(plugin), told(plugin, ANSWERED)] for _ in range(7)]
    assert told_now == [[WHOLE if n % 3 == 0 else None, None] for n in range(7)]


def test_changes_by_tools_are_shown_before_the_next_call_with_after_tools(home: Path):
    plugin = WorkingDirectory(home, after_tools=True)
    assert told(plugin) == WHOLE
    assert told(plugin, ANSWERED) is None
    (home / "new").mkdir()
    assert told(plugin, ANSWERED) == "Changed since you were last told:\nnew: new/"


def test_without_saving_the_folder_is_shown_with_every_input(home: Path):
    plugin = WorkingDirectory(home, save=False)
    assert [told(plugin) for _ in range(3)] == [WHOLE] * 3
    said = plugin(ASKED)
    assert isinstance(said, AdditionalContent)
    assert (said.display_on_current_message, said.save_to_history) == (True, False)


def test_a_folder_kept_for_some_calls_is_shown_again_after_them(home: Path):
    plugin = WorkingDirectory(home, save=2)
    assert [told(plugin) for _ in range(5)] == [WHOLE, None, None, WHOLE, None]
    (home / "z").touch()
    whole = "home\nREADME.md 7\nsrc/\nz 0\nsrc/a.py 5"
    assert [told(plugin) for _ in range(4)] == [whole, None, None, whole]


@pytest.mark.parametrize("save", [1, 2, 3])
def test_a_folder_kept_for_some_calls_is_in_every_request_once(home: Path, save: int):
    chat = open_conversation("c", window=100_000, policy="none", plugins=[WorkingDirectory(home, save=save)])
    for n in range(12):
        chat.append(f"Question {n}")
        view = chat.prepare()
        assert sum(entry.message.text.count("README.md 7") for entry in view) == 1, n
        chat.record(say("Yes."))


def test_a_folder_kept_for_good_never_changes_sent_messages(home: Path):
    chat = open_conversation("c", window=100_000, policy="none", plugins=[WorkingDirectory(home)])
    before: list[bytes] = []
    for n in range(8):
        if n % 3 == 1:
            (home / f"{n}.txt").write_text("x" * n)
        chat.append(f"Question {n}")
        now = [item.body for item in chat.format.rendered(chat.prepare(), profile=chat._agent.profile)]
        assert now[: len(before)] == before
        before = now
        chat.record(say("Yes."))
    assert chat.journal.receipts() == []


def test_lines_are_limited_and_a_huge_folder_is_read_from_the_top(home: Path, monkeypatch):
    monkeypatch.setattr("foveate.agents.plugins.directory._ENTRIES_MAX", 40)
    for n in range(100):
        (home / "src" / f"{n:03}.py").touch()
        os.utime(home / "src" / f"{n:03}.py", ns=(1, 1))
    plugin = WorkingDirectory(home, max_lines=3)
    assert told(plugin) == "home\nREADME.md 7\nsrc/\nsrc/000.py 0\n[and 37 or more others]"
    (home / "src" / "000.py").unlink()  # Entries that move up within the limit are not new.
    assert told(plugin) == "Changed since you were last told:\ngone: src/000.py"
    for n in range(20):
        (home / f"{n:03}.new").touch()
    assert told(plugin) == (
        "Changed since you were last told:\nnew: 000.new 0\nnew: 001.new 0\nnew: 002.new 0\n[and 17 others]"
    )


def test_gitignore_and_files_of_programs_are_left_out(home: Path):
    left_out = ["chat.db", "chat.db-wal", "a.pyc", "x.log", "dist/b.py", "o.tmp"]
    for name in [*left_out, "keep.log", "src/dist", "src/deep/o.tmp"]:
        (home / name).parent.mkdir(exist_ok=True, parents=True)
        (home / name).touch()
    (home / ".gitignore").write_text("# made\n\n*.log\n!keep.log\ndist/\n/o.tmp\nsrc/*.py\n")
    assert told(WorkingDirectory(home, ignore=["*.db"])) == (
        "home\n.gitignore 46\nREADME.md 7\nkeep.log 0\nsrc/\nsrc/deep/\nsrc/dist 0\nsrc/deep/o.tmp 0"
    )


def test_writing_the_store_in_the_folder_is_no_change(home: Path):
    plugin = WorkingDirectory(home, after_tools=True)
    with open_conversation("c", store=f"sqlite:///{home / 'chat.db'}", window=9_000, plugins=[plugin]) as chat:
        for n in range(3):
            chat.append([user(f"Question {n}"), call(f"c{n}", "look"), answer(f"c{n}", "x" * 5_000)])
            chat.prepare()
            chat.record(say("Yes."))
        assert [row.stamp.origin for row in chat.history()].count("plugin") == 1


def test_wrong_arguments_are_refused(home: Path):
    with pytest.raises(BadSetting, match="There is no folder"):
        WorkingDirectory(home / "gone")
    with pytest.raises(BadSetting, match="save_to_history="):
        WorkingDirectory(home, save="2")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="ignore="):
        WorkingDirectory(home, ignore="*.log")
    with pytest.raises(BadSetting, match="max_lines="):
        WorkingDirectory(home, max_lines=0)
    with pytest.raises(BadSetting, match="whole_every="):
        WorkingDirectory(home, whole_every=0)


def test_an_empty_or_removed_folder_does_not_break_a_call(tmp_path: Path):
    (tmp_path / "home").mkdir()
    plugin = WorkingDirectory(tmp_path / "home")
    assert told(plugin) == "home\n(empty)"
    (tmp_path / "home").rmdir()
    assert told(plugin) is None


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_state_of_git_is_what_git_reports(home: Path):
    assert git_state(home) == ""
    git(home, "init")
    assert git_state(home) == "git branch main, no commit"
    git(home, "add", "README.md")
    git(home, "commit", "-m", "one")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=home, check=True, capture_output=True, text=True).stdout
    assert git_state(home / "src") == f"git branch main at {commit[:7]}"
    git(home, "checkout", "-q", "-b", "fix/it")
    git(home, "pack-refs", "--all")
    assert git_state(home) == f"git branch fix/it at {commit[:7]}"
    git(home, "worktree", "add", "../other", "-b", "aside")
    assert git_state(home.parent / "other") == f"git branch aside at {commit[:7]}"
    git(home, "checkout", "-q", "--detach")
    (home / ".git" / "MERGE_HEAD").write_text(commit)
    assert git_state(home) == f"git at {commit[:7]}, no branch, merging"


def test_a_commit_is_a_change(home: Path):
    git(home, "init")
    plugin = WorkingDirectory(home)
    assert told(plugin) == WHOLE.replace("home", "home, git branch main, no commit", 1)
    git(home, "commit", "--allow-empty", "-m", "one")
    said = told(plugin)
    assert said is not None
    assert said.startswith("Changed since you were last told:\ngit branch main, no commit -> git branch main at ")


# ---------------------------------------------------------------------------------------------------------------- todos


def todos(*pairs: str) -> list[dict[str, str]]:
    """Return a list, for example `todos("done parse", "doing test")`."""
    return [{"state": pair.split()[0], "text": pair.split(maxsplit=1)[1]} for pair in pairs]


def updated(*pairs: str) -> str:
    (made,) = TodoList().tools
    arguments = made.arguments(f'{{"todos": {todos(*pairs)!r}}}'.replace("'", '"'))
    return str(made.call(**arguments))


def test_the_result_of_a_todo_call_is_short():
    assert updated("done parse", "doing test", "open ship") == "1 of 3 done. Now: test"
    assert updated("done parse", "open test") == "1 of 2 done. Now: test"
    assert updated("done parse") == "1 of 1 done."
    assert updated() == "The list is empty."


def test_a_todo_list_that_is_too_long_is_refused():
    with pytest.raises(ToolFailed, match="it has 5,000 characters, and 4,000 is the most"):
        updated(f"open {'x' * 5_000}")
    (made,) = TodoList().tools
    with pytest.raises(ToolFailed, match="has no text"):
        made.call(todos=[Todo(" ")])


def worked(chat: Conversation, plugin: TodoList, turns: int, since: int = 0) -> None:
    """Return the turns of an agent, of which every tenth writes the list."""
    (update,) = plugin.tools
    for n in range(since, turns):
        if n % 10 == 0:
            said = todos(*[f"{'done' if k < n // 10 else 'open'} step {k}" for k in range(4)])
            chat.record(call(f"t{n}", "update_todos", todos=said))
            done = update.call(todos=[Todo(one["text"], one["state"]) for one in said])  # type: ignore[arg-type]
            chat.append(answer(f"t{n}", str(done)))
        else:
            chat.record(call(f"r{n}", "run", n=n))
            chat.append(answer(f"r{n}", f"{n}: " + "tests/test_parser.py: . . F . " * 30))
        view = chat.prepare()
        assert check_body(chat.format.name, chat.format.body(view, profile=chat._agent.profile)) == []


@pytest.mark.parametrize(
    "policy",
    ["balanced", "frugal", "none", [filter_tool_results(keep=1), checkpoint(trigger_at=12, keep_recent=5)]],
    ids=str,
)
def test_the_newest_todo_list_stays_in_the_view_after_a_restart(policy: Any, tmp_path: Path):
    """F22: without the pin, the first compaction loses the list, and work is repeated."""
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    options: Any = {"store": store, "format": "anthropic", "window": 6_000, "policy": policy, "summarizer": "digest"}
    plugin = TodoList()
    with open_conversation("c", plugins=[plugin], **grouped(options)) as chat:
        chat.append("Mend the parser.")
        worked(chat, plugin, 18)
    plugin = TodoList()
    with open_conversation("c", plugins=[plugin], **grouped(options)) as chat:
        worked(chat, plugin, 40, 18)
        view = chat.prepare()
        assert len(chat.history()) == 81
        assert view.tokens < 6_000
        shown = [part for entry in view for part in entry.message.calls if part.name == "update_todos"]
        assert shown[-1].call_id == "t30"
        assert '"step 3"' in shown[-1].arguments
        pinned = [entry.handle for entry in view if entry.is_pinned()]
        assert pinned == ["m62", "m63"]
        assert plugin.newest(chat.history()) == tuple(Todo(f"step {k}", "done" if k < 3 else "open") for k in range(4))


def test_a_refused_or_unanswered_todo_list_does_not_count():
    plugin = TodoList()
    chat = open_conversation("c", window=100_000, plugins=[plugin])
    assert plugin.newest(chat.history()) == ()
    chat.append("Go.")
    chat.append([call("a", "update_todos", todos=todos("open one")), answer("a", "0 of 1 done. Now: one")])
    chat.append([call("b", "update_todos", todos=todos("open two")), answer("b", "not taken", state="error")])
    chat.append(call("c", "update_todos", todos=todos("open three")))
    assert plugin.newest(chat.history()) == (Todo("one"),)
    assert [entry.handle for entry in chat.prepare() if entry.is_pinned()] == ["m2", "m3"]


def test_todo_pins_and_preset_pins_do_not_conflict():
    chat = open_conversation(
        "c", window=100_000, plugins=[TodoList()], options=Options(settings={"pins": {"tools": ["plan"]}})
    )
    chat.append("Go.")
    chat.append([call("a", "update_todos", todos=todos("open one")), answer("a", "0 of 1 done. Now: one")])
    chat.append([call("b", "plan"), answer("b", "first this, then that")])
    for _ in range(3):
        assert [entry.handle for entry in chat.prepare() if entry.is_pinned()] == ["m2", "m3", "m4", "m5"]
    assert len(chat.journal.receipts()) == 1
