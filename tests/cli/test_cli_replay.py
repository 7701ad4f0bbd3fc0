"""`foveate replay`: output, options and wrong input."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing

import pytest
from recordings import call, write

from foveate.cli import replay as command
from foveate.errors import StoreError
from foveate.policies import DEFAULT_PRESET
from foveate.replay.result import Row


def test_replay_prints_table_chart_and_sentences(run, recording):
    code, out, err = run("replay", recording, "--compare", "none,keep-last-1", "--window", "200000")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "fix-login  17 messages, 8 model calls, window 200,000, provider anthropic"
    assert lines[2].split() == ["policy", "cost", "all-in", "peak", "tokens", "recall", "quoted", "edits"]
    assert lines[3].split()[0:4] == ["none", "100", "%", "100"]
    assert lines[4].split()[0] == "keep-last-1"
    assert "Tokens per call" in out
    assert lines[-2:] == [
        "`keep-last-1` costs least, counting what must be fetched back: 82 % of the cost of sending everything, 82 % "
        "without it.",
        "Every view is legal, and no message is lost.",
    ]


def test_single_policy_has_its_own_sentence(run, recording):
    _, out, _ = run("replay", recording, "--policy", "none")
    assert out.splitlines()[-1] == (
        "`none`: 100 % of the cost of sending everything, 100 % counting what must be fetched back; 0 illegal views."
    )


def test_replay_shows_where_everything_outgrows_the_window(run, recording):
    _, out, _ = run("replay", recording, "--compare", "off,keep-last-1", "--window", "1000")
    assert "Sending everything outgrows the window of 1,000 tokens at call " in out
    assert "`keep-last-1` sends " in out
    assert " window\n" in out  # The line of the chart.
    assert "calls over the budget" in out
    _, out, _ = run("replay", recording, "--compare", "off,keep-last-1", "--window", "200000")
    assert "outgrows" not in out
    assert " window\n" not in out


def test_model_chooses_window_provider_and_prices(run, recording):
    _, out, _ = run("replay", recording, "--model", "gpt-5-mini", "--json")
    row = json.loads(out)
    assert (row["model"], row["window"], row["provider"]) == ("gpt-5-mini", 272_000, "openai")
    assert row["money"] > 0
    _, out, _ = run("replay", recording, "--model", "claude-haiku-4-5", "--window", "9000", "--json")
    row = json.loads(out)
    assert (row["window"], row["provider"]) == (9_000, "anthropic")


def test_a_model_that_is_not_known_is_reported(run, recording):
    arguments = ("replay", recording, "--policy", "none", "--model", "gpt5-mini", "--json")
    code, out, err = run(*arguments)
    assert (code, json.loads(out)["window"]) == (0, 200_000)
    assert (
        err == "foveate: The window of model 'gpt5-mini' is not known and counts as 200,000 tokens. --window sets it.\n"
    )
    assert run(*arguments, "--window", "64000")[2] == ""


def test_the_table_explains_its_figures(run, recording):
    _, out, _ = run("replay", recording)
    assert out.index("quoted") < out.index("recall, quoted: of the identifiers") < out.index("Tokens per call")


def test_policy_option_comes_before_the_comparison(run, recording):
    _, out, _ = run("replay", recording, "--policy", "keep-last-2", "--compare", "none, keep-last-2", "--json")
    assert [json.loads(line)["policy"] for line in out.splitlines()] == ["keep-last-2", "none"]


def test_replay_prints_one_json_object_for_each_result(run, recording, tmp_path):
    other = write(tmp_path / "hello.jsonl", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
    code, out, err = run("replay", recording, other, "--compare", "none,prune", "--json", "--jobs", 1)
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["transcript"], row["policy"]) for row in rows] == [
        ("fix-login", "none"),
        ("fix-login", "prune"),
        ("hello", "none"),
        ("hello", "prune"),
    ]
    assert all(tuple(row) == Row.__struct_fields__ for row in rows)
    assert all((row["illegal_views"], row["lost_messages"]) == (0, 0) for row in rows)


@pytest.mark.slow
def test_replay_uses_several_processes(run, recording, tmp_path):
    other = write(tmp_path / "hello.jsonl", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
    one = run("replay", recording, other, "--json", "--jobs", 1)
    two = run("replay", recording, other, "--json", "--jobs", 2)
    assert [figures(line) for line in one[1].splitlines()] == [figures(line) for line in two[1].splitlines()]


def figures(line: str) -> dict:
    return {name: value for name, value in json.loads(line).items() if not name.startswith("ms_")}


def test_replay_sums_several_transcripts(run, recording, tmp_path):
    other = write(tmp_path / "hello.jsonl", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
    _, out, _ = run("replay", recording, other, "--jobs", 1)
    assert out.startswith("2 recordings  19 messages, 9 model calls")
    assert "Tokens per call of fix-login, the largest" in out


def test_wide_table_has_every_figure(run, recording):
    _, out, _ = run("replay", recording, "--wide")
    for title in (
        "model calls",
        "input tokens",
        "prefix rewrites",
        "said",
        "reachable",
        "expansions",
        "ms p50 / p99",
        "illegal views",
    ):
        assert title in out


def test_replay_writes_the_report_and_names_it(run, recording, tmp_path):
    report = tmp_path / "report.html"
    code, out, _ = run("replay", recording, "--html", report, "--prices", "0.5,2")
    assert code == 0
    assert f"The report is in {report}.\n" in out
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "read at 0.5, written at 2 of the base price" in page
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_json_output_has_no_other_text_with_a_report(run, recording, tmp_path):
    _, out, _ = run("replay", recording, "--json", "--html", tmp_path / "report.html")
    assert json.loads(out)["transcript"] == "fix-login"
    assert (tmp_path / "report.html").exists()


def test_replayed_conversations_can_be_stored_and_shown(run, recording, tmp_path):
    db = tmp_path / "kept.db"
    assert run("replay", recording, "--compare", "none,keep-last-1", "--db", db)[0] == 0
    code, out, _ = run("show", db)
    assert code == 0
    assert out.splitlines()[:3] == [f"{db}: 2 conversations", "  fix-login / keep-last-1", "  fix-login / none"]
    code, out, _ = run("show", db, "fix-login / keep-last-1")
    assert (code, out.splitlines()[0]) == (0, "fix-login / keep-last-1  call 8 of 8")


def test_replay_stores_in_a_file_or_a_url(run, recording, tmp_path):
    file, other = tmp_path / "file.db", tmp_path / "other.db"
    assert run("replay", recording, "--policy", "none", "--db", file)[0] == 0
    assert run("replay", recording, "--policy", "none", "--db", f"sqlite:///{other}")[0] == 0
    assert run("show", file)[1].splitlines()[1] == run("show", other)[1].splitlines()[1] == "  fix-login / none"
    code, out, err = run("replay", recording, "--db", "mysql://x")
    assert (code, out) == (2, "")
    assert "mysql://x" in err


def test_replay_adds_to_an_existing_database(run, recording, tmp_path):
    db = tmp_path / "kept.db"
    for policy in ("none", "keep-last-1"):
        assert run("replay", recording, "--policy", policy, "--db", db)[0] == 0
    names = ["  fix-login / keep-last-1", "  fix-login / none"]
    assert run("show", db)[1].splitlines()[:3] == [f"{db}: 2 conversations", *names]


def test_last_chooses_the_newest_recording(run, recording, tmp_path, monkeypatch):
    home = tmp_path / "home"
    folder = home / ".codex" / "sessions" / "2026" / "05" / "01"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert run("replay", "--last")[0] == 2
    (folder / "rollout-1.jsonl").write_bytes(recording.read_bytes())
    code, out, _ = run("replay", "--last", "--json")
    assert (code, json.loads(out)["transcript"]) == (0, "rollout-1")


# ------------------------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "there is no such file"),
        (b"", "the file is empty"),
        (b"  \n\n", "only white space"),
        (b"hello\nworld\n", "not JSON"),
        (b'{"a": 1}\n{"b": 2}\n', "not a known format"),
        (b'{"role": "user", "content": "hi"}\n{"role": "assis', "line 2"),
        (b'{"role": "user", "content": "\xff"}\n{"role": "user", "content": "x"}\n', "UTF-8"),
        (b"SQLite format 3\0" + b"\0" * 100, "SQLite"),
        (b"\x1f\x8b\x08\0\0\0", "gzip"),
    ],
)
@pytest.mark.parametrize("arguments", [["replay"], ["show"], ["check"], ["repair", "--provider", "openai", "-o"]])
def test_bad_input_is_explained_and_nothing_is_written(run, tmp_path, arguments, content, expected):
    if arguments == ["show"] and content and content.startswith(b"SQLite"):
        expected = "SQLite cannot read it"
    path = tmp_path / "input"
    if content is not None:
        path.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    output = {"repair": [tmp_path / "out"], "replay": ["--html", tmp_path / "r.html", "--db", tmp_path / "r.db"]}
    code, out, err = run(*arguments, *output.get(arguments[0], []), path)
    assert (code, out) == (2, "")
    assert err.startswith("foveate: ")
    assert expected in err
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--policy", "prnue"], "Did you mean prune? Known: off, none, keep-last-N, prune"),
        (["--compare", "none,keep-last-0"], "keep-last-0"),
        (["--compare", "none,"], "There is no policy ''"),
        (["--policy", ""], "There is no policy ''"),
        (["--prices", "1"], "--prices"),
        (["--prices", "-1,2"], "--prices"),
        (["--prices", "nan,2"], "--prices"),
        (["--prices", "0,0"], "above 0 for writing"),
        (["--window", "0"], "--window"),
        (["--jobs", "0"], "--jobs"),
        (["--format", "morse"], "Format 'morse' is unknown"),
        (["--html", "nowhere/report.html"], "no folder nowhere"),
        (["--html", "."], "is a folder"),
        (["--db", "nowhere/chats.db"], "no folder nowhere"),
    ],
)
def test_wrong_options_are_named(run, recording, options, expected):
    code, out, err = run("replay", recording, *options)
    assert (code, out) == (2, "")
    assert expected in err


@pytest.mark.parametrize("command", ["replay", "tune"])
def test_a_report_replaces_only_reports(run, recording, tmp_path, command):
    """With `--html *.jsonl` the shell names a recording as the report."""
    before, report = recording.read_bytes(), tmp_path / "report.html"
    code, out, err = run(command, recording, "--html", recording, "--policy", "prune")
    assert (code, out) == (2, "")
    assert f"{recording} exists, and is no report." in err
    assert recording.read_bytes() == before
    report.write_bytes(b"")
    for _ in range(2 if command == "replay" else 0):
        assert run("replay", recording, "--html", report, "--policy", "prune")[0] == 0


def test_bad_file_does_not_stop_the_others(run, recording, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nothing\n")
    code, out, err = run("replay", bad, recording, "--json", "--jobs", 1)
    assert code == 2
    assert json.loads(out)["transcript"] == "fix-login"
    assert err.startswith(f"foveate: {bad}: ")


def test_lenient_skips_and_counts_damaged_lines(run, recording):
    with recording.open("a") as file:
        file.write("{torn")
    assert run("replay", recording)[0] == 2
    code, out, _ = run("replay", recording, "--lenient")
    assert code == 0
    assert "The recording also holds 1 damaged line." in out


def test_read_only_folder_is_refused_before_the_replay(run, recording, tmp_path, monkeypatch):
    monkeypatch.setattr("foveate.cli.files.os.access", lambda path, mode: False)
    report = tmp_path / "report.html"
    expected = f"foveate: {report} cannot be written: you may not write to its folder.\n"
    assert run("replay", recording, "--html", report, "--policy", "prune") == (2, "", expected)


def test_store_that_cannot_be_opened_returns_2(run, recording, tmp_path, monkeypatch):
    def closed(*args, **kwargs):
        raise StoreError("chats.db cannot be opened for writing.")

    monkeypatch.setattr("foveate.replay.corpus.replay", closed)
    code, _, err = run("replay", recording, "--db", tmp_path / "chats.db")
    assert (code, err) == (2, f"foveate: {recording} ({DEFAULT_PRESET}): chats.db cannot be opened for writing.\n")


def test_replay_refuses_a_foreign_database(run, recording, tmp_path):
    db = tmp_path / "shop.db"
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("CREATE TABLE message (text)")
    code, _, err = run("replay", recording, "--db", db)
    assert code == 2
    assert "something else" in err


def test_illegal_view_is_counted_and_returns_1(run, recording, monkeypatch):
    monkeypatch.setattr(command, "second_opinion", lambda provider, body: ["messages[0]: not so"])
    code, out, _ = run("replay", recording)
    assert code == 1
    assert out.splitlines()[-1].endswith("; 8 illegal views.")
    assert f"Refused: fix-login, {DEFAULT_PRESET}, call 1: messages[0]: not so" in out


def test_second_checker_sees_every_request(run, recording, monkeypatch):
    seen = []
    monkeypatch.setattr(
        command,
        "second_opinion",
        lambda provider, body: seen.append((provider, len(json.loads(body)["messages"]))) or [],
    )
    assert run("replay", recording, "--provider", "openai")[0] == 0
    assert seen == [("openai", 2 * number) for number in range(1, 9)]


def test_window_too_small_for_the_request_is_named(run, tmp_path):
    path = write(
        tmp_path / "big.jsonl",
        [{"role": "system", "content": "x" * 50_000}, {"role": "user", "content": "hi"}, call("a", "ls", {})],
    )
    code, out, err = run("replay", path, "--window", "1000", "--db", tmp_path / "chats.db")
    assert (code, out, sorted(tmp_path.iterdir())) == (2, "", [path])
    assert "usable" in err


def test_replay_runs_on_the_named_engine(run, recording, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, out, err = run("replay", recording, "--engine", "ray")
    assert (code, out) == (2, "")
    assert 'The engine ray needs a package: pip install "foveate[ray]".' in err
