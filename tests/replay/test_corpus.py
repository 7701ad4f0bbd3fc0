"""Many recordings: stable order, independent failures, totals; and the newest recording."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from foveate.errors import BadSetting
from foveate.policies import DEFAULT_PRESET
from foveate.replay.corpus import Failure, newest_recording, replay_files, sum_rows
from foveate.replay.result import Row

ROW = Row(
    transcript="a",
    policy="prune",
    messages=10,
    calls=4,
    input_tokens=1_000,
    peak_tokens=400,
    cost=100.0,
    cost_unmanaged=200.0,
    cost_ratio=0.5,
    cost_all_in=0.6,
    expansions=1,
    edits=2,
    prefix_rewrites=2,
    references=10,
    recall_visible=0.9,
    said_references=0,
    said_visible=None,
    quoted_lines=4,
    quoted_visible=0.5,
    recall_reachable=1.0,
    illegal_views=0,
    lost_messages=0,
    ms_per_turn_p50=1.0,
    ms_per_turn_p99=3.0,
    window=200_000,
    provider="openai",
    model="m",
    money=1.0,
    money_unmanaged=2.0,
    kept_apart={"other lines": 2},
)


def write(path: Path, rounds: int) -> Path:
    """Write a recording of an agent that reads a file in each round."""
    lines = [{"role": "user", "content": "Read everything."}]
    for number in range(rounds):
        arguments = json.dumps({"path": f"src/file_{number}.py"})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        lines.append({"role": "assistant", "content": None, "tool_calls": [call]})
        lines.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"next: src/file_{number + 1}.py\n" * 40}
        )
    lines.append({"role": "assistant", "content": "Done."})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def timeless(rows) -> list[Row]:
    return [replace(row, ms_per_turn_p50=0.0, ms_per_turn_p99=0.0) for row in rows]


def refuse_everything(provider: str, body: bytes) -> list[str]:
    return [f"{provider} says no"]


def test_every_file_is_replayed_under_every_policy_in_order(tmp_path):
    files = [write(tmp_path / "b.jsonl", 2), write(tmp_path / "a.jsonl", 4)]
    reports = []
    corpus = replay_files(files, policies=["none", "keep-last-1"], jobs=1, progress=lambda *news: reports.append(news))
    assert [(row.transcript, row.policy, row.calls) for row in corpus.rows] == [
        ("b", "none", 3),
        ("b", "keep-last-1", 3),
        ("a", "none", 5),
        ("a", "keep-last-1", 5),
    ]
    assert corpus.failures == ()
    whole = [news for news in reports if isinstance(news[0], int)]  # Parts of a recording are floats.
    assert whole == [(1, 2, str(files[0])), (2, 2, str(files[1]))]


def test_progress_moves_within_a_recording_when_one_process_replays(tmp_path):
    file, reports = write(tmp_path / "a.jsonl", 4), []
    replay_files([file], policies=["none", "keep-last-1"], progress=lambda *news: reports.append(news))
    parts = [part for part, *_ in reports]
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (0, 1)
    assert len(set(parts)) > 10
    assert {news[1:] for news in reports} == {(1, str(file))}


def test_several_processes_return_the_same_as_one(tmp_path):
    files = [write(tmp_path / f"{name}.jsonl", rounds) for name, rounds in [("x", 2), ("y", 6), ("z", 3)]]
    files.insert(1, tmp_path / "missing.jsonl")
    settings = {"policies": ["prune", "keep-last-1"], "window": 9_000, "check": refuse_everything}
    reports = []
    alone = replay_files(files, jobs=1, **settings)
    shared = replay_files(files, jobs=2, progress=lambda done, *_: reports.append(done), **settings)
    assert timeless(shared.rows) == timeless(alone.rows)
    assert shared.failures == alone.failures
    assert [one.refusals for one in shared.replayed] == [one.refusals for one in alone.replayed]
    assert {row.illegal_views for row in shared.rows} == {3, 7, 4}
    assert reports == [1, 2, 3, 4]


def test_a_recording_that_cannot_be_read_stops_no_other(tmp_path):
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text('{"role": "user", "content": "hi"}\n{"role": "assis')
    good = write(tmp_path / "good.jsonl", 1)
    corpus = replay_files([damaged, good], jobs=1)
    assert [row.transcript for row in corpus.rows] == ["good"]
    (failure,) = corpus.failures
    assert (failure.path, failure.policy, failure.unexpected) == (str(damaged), "", False)
    assert f"{damaged}, line 2" in failure.error


def test_a_policy_that_fails_is_named_with_what_it_raised(tmp_path):
    def broken(view):
        raise ZeroDivisionError("by design")

    corpus = replay_files([write(tmp_path / "a.jsonl", 1)], policies=[broken, "none"])
    assert [row.policy for row in corpus.rows] == ["none"]
    assert corpus.failures == (
        Failure(str(tmp_path / "a.jsonl"), "broken", "ZeroDivisionError: by design", unexpected=True),
    )


def test_functions_that_cannot_be_imported_are_refused_first(tmp_path):
    files = [write(tmp_path / "a.jsonl", 1), write(tmp_path / "b.jsonl", 1)]
    with pytest.raises(BadSetting, match="jobs=1"):
        replay_files(files, policies=[lambda view: ()], jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("wrong", [{"policies": ["sieve"]}, {"format": "stone-tablet"}])
def test_a_wrong_setting_for_all_recordings_is_raised(tmp_path, wrong, jobs):
    files = [write(tmp_path / "a.jsonl", 1), write(tmp_path / "b.jsonl", 1)]
    with pytest.raises(BadSetting, match=r"sieve|stone-tablet"):
        replay_files(files, jobs=jobs, **wrong)


def test_a_window_that_is_too_small_is_an_expected_failure(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(json.dumps({"role": role, "content": "x" * 9_000}) for role in ("user", "assistant")))
    (failure,) = replay_files([path], window=1_000).failures
    assert (failure.policy, failure.unexpected) == (DEFAULT_PRESET, False)


def test_transcript_names_have_enough_folders_to_be_unique(tmp_path):
    files = [write(tmp_path / folder / "session.jsonl", 1) for folder in ("one", "two")]
    assert [row.transcript for row in replay_files(files, jobs=1).rows] == ["one/session", "two/session"]


def test_transcript_names_keep_the_endings_that_tell_files_apart(tmp_path):
    files = [write(tmp_path / name, 1) for name in ("session.json", "session.jsonl")]
    assert [row.transcript for row in replay_files(files, jobs=1).rows] == ["session.json", "session.jsonl"]


def test_with_a_store_the_conversations_are_stored(tmp_path):
    from foveate.open import open_store

    store = f"sqlite:///{tmp_path}/kept.db"
    replay_files([write(tmp_path / "a.jsonl", 1)], policies=["none", "prune"], store=store)
    opened = open_store(store)
    assert opened.names("") == ["a / none", "a / prune"]
    opened.close()


def test_the_total_weights_each_share_by_its_base():
    other = replace(
        ROW,
        transcript="b",
        calls=12,
        cost=900.0,
        cost_unmanaged=600.0,
        cost_ratio=1.5,
        cost_all_in=1.6,
        peak_tokens=900,
        references=30,
        recall_visible=0.5,
        quoted_lines=0,
        quoted_visible=None,
        recall_reachable=0.6,
        ms_per_turn_p50=2.0,
        ms_per_turn_p99=2.5,
        model="n",
        money=None,
        kept_apart={"other lines": 1, "images": 4},
    )
    assert sum_rows([ROW, other]) == Row(
        transcript="2 recordings",
        policy="prune",
        messages=20,
        calls=16,
        input_tokens=2_000,
        peak_tokens=900,
        cost=1_000.0,
        cost_unmanaged=800.0,
        cost_ratio=1.25,
        cost_all_in=(0.6 * 200 + 1.6 * 600) / 800,
        expansions=2,
        edits=4,
        prefix_rewrites=4,
        references=40,
        recall_visible=(9 + 15) / 40,
        said_references=0,
        said_visible=None,
        quoted_lines=4,
        quoted_visible=0.5,
        recall_reachable=(10 + 18) / 40,
        illegal_views=0,
        lost_messages=0,
        ms_per_turn_p50=1.75,
        ms_per_turn_p99=3.0,
        window=200_000,
        provider="openai",
        model="",
        money=None,
        money_unmanaged=4.0,
        kept_apart={"other lines": 3, "images": 4},
    )


def test_the_total_of_one_row_is_that_row():
    assert sum_rows([ROW]) == ROW


def test_a_total_needs_at_least_one_row():
    with pytest.raises(BadSetting, match="no rows"):
        sum_rows([])


@pytest.fixture
def home(tmp_path) -> Path:
    """Create a home folder with recordings of both agents, the older ones first."""
    names = [
        ".codex/sessions/2026/01/02/rollout-1.jsonl",
        ".claude/projects/-home-me-app/5f0c.jsonl",
        ".claude/projects/-home-me-app/agent-77.jsonl",
        ".claude/projects/-home-me-app/notes.txt",
    ]
    for age, name in enumerate(names):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
        os.utime(path, (1_000 + age, 1_000 + age))
    return tmp_path


def test_the_newest_recording_of_both_agents_is_found(home):
    claude, codex = (
        home / ".claude/projects/-home-me-app/5f0c.jsonl",
        home / ".codex/sessions/2026/01/02/rollout-1.jsonl",
    )
    assert newest_recording(home) == claude
    os.utime(codex, (2_000, 2_000))
    assert newest_recording(home) == codex


def test_empty_recordings_and_those_of_subagents_are_ignored(home):
    (home / ".claude/projects/-home-me-app/5f0c.jsonl").write_text("")
    assert newest_recording(home) == home / ".codex/sessions/2026/01/02/rollout-1.jsonl"


def test_environment_variables_of_the_agents_name_their_folders(home, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    path = elsewhere / "projects/x/1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    variables = {"CLAUDE_CONFIG_DIR": str(elsewhere), "CODEX_HOME": str(tmp_path / "nowhere")}
    assert newest_recording(home, variables) == path


def test_without_a_recording_the_error_names_the_folders(tmp_path):
    with pytest.raises(BadSetting, match=r"\.claude.*\.codex.*Name a file"):
        newest_recording(tmp_path)
