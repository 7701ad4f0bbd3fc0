"""`foveate show`: the view of one model call."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from recordings import write

import foveate
from foveate.counters import counter_for
from foveate.policies import DEFAULT_PRESET
from foveate.replay.corpus import replay_files

ROOT = Path(__file__).resolve().parents[2]


def test_show_prints_every_message_of_the_last_view(run, recording):
    code, out, err = run("show", recording, "--policy", "none")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:8] == [
        "fix-login.jsonl under none  call 8 of 8",
        "",
        "m1  system · 9 tokens",
        "  │ You mend programs.",
        "",
        "m2  user · 12 tokens",
        "  │ Why does the login test fail?",
        "",
    ]
    assert [line.split()[0] for line in lines if line.startswith("m")] == [f"m{number}" for number in range(1, 17)]
    assert "m4  tool (read_file) · 954 tokens" in lines
    assert '  │ → read_file {"path": "src/part_0.py"}  [c0]' in lines
    assert "  │ … 193 more lines, --full shows all" in lines
    assert "16 messages in the view" in lines[-2]
    assert lines[-2].endswith("of the window of 200,000")


def test_show_replays_for_the_model_of_the_recording_as_replay_does(run, tmp_path):
    """Window, provider and prices decide when a policy acts. Otherwise the two commands show different views."""
    path = tmp_path / "named.json"
    path.write_text(json.dumps({"model": "gpt-5-mini", "messages": [{"role": "user", "content": "Hi."}]}))
    assert run("show", path)[1].splitlines()[-2].endswith("of the window of 272,000")
    assert run("show", path, "--window", 9_000)[1].splitlines()[-2].endswith("of the window of 9,000")


def test_show_has_the_tokens_that_replay_reports(run, tmp_path, monkeypatch):
    monkeypatch.setattr("foveate.open.parts.counter_for", counter_for)
    path = tmp_path / "named.json"
    demo = ROOT / "examples" / "data" / "demo.jsonl"
    messages = [json.loads(line) for line in demo.read_text(encoding="utf-8").splitlines()[:20]]
    path.write_text(json.dumps({"model": "gpt-5-mini", "messages": messages}))
    (replayed,) = replay_files([path], policies=["keep-last-1"], window=8_000, provider=None, prices=None).replayed
    lines = run("show", path, "--policy", "keep-last-1", "--window", 8_000, "--json")[1].splitlines()
    assert sum(json.loads(line)["tokens"] for line in lines) == replayed.calls[-1].tokens


def test_full_shows_complete_messages(run, recording):
    out = run("show", recording, "--full")[1]
    assert "more lines" not in out
    assert out.count("  │ def part_3(): pass\n") == 200


def test_show_of_an_earlier_turn_has_fewer_messages(run, recording):
    out = run("show", recording, "--turn", 2)[1]
    assert out.splitlines()[0] == f"fix-login.jsonl under {DEFAULT_PRESET}  call 2 of 8"
    assert "m4  tool (read_file)" in out
    assert "m5  " not in out


def test_show_can_print_the_next_call(run, recording):
    out = run("show", recording, "--turn", 9)[1]
    assert out.splitlines()[0] == f"fix-login.jsonl under {DEFAULT_PRESET}  the next call"
    assert "Mended." in out


def test_show_names_policy_and_original_size_of_a_change(run, recording):
    out = run("show", recording, "--policy", "keep-last-1")[1]
    block = out[out.index("m4  ") : out.index("m5  ")].splitlines()
    assert block[0].endswith("· 954 as appended")
    assert block[1].startswith("    Edit 1, turn 3: ")
    assert 'expand("m4")' in "\n".join(block)
    assert "Edits changed 6 entries; 0 changed for the provider." in out.splitlines()[-1]


def test_show_explains_changes_for_the_provider(run, tmp_path):
    path = write(
        tmp_path / "late.jsonl",
        [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "late"}],
    )
    out = run("show", path)[1]
    assert "m2  user · note · " in out
    assert "    Changed for its provider: " in out
    assert "1 changed for the provider" in out


def test_unknown_turn_is_refused(run, recording):
    for turn in (0, 10):
        code, out, err = run("show", recording, "--turn", turn)
        assert (code, out) == (2, "")
        assert err == (
            f"foveate: There is no turn {turn}: fix-login.jsonl under {DEFAULT_PRESET} has 8 model calls. "
            "Name one of 1 to 9; 9 is the next call.\n"
        )


def test_show_lists_the_conversations_of_a_database(run, tmp_path):
    db = tmp_path / "chats.db"
    for name in ("second", "first"):
        with foveate.open_conversation(name, store=f"sqlite:///{db}", format="anthropic", window=200_000) as chat:
            chat.append(f"I am the {name}.")
            chat.record(foveate.assistant("So you are."))
    assert run("show", db) == (
        0,
        f"{db}: 2 conversations\n  first\n  second\nShow one: foveate show {db} first\n",
        "",
    )
    code, out, _ = run("show", db, "second")
    assert code == 0
    assert out.splitlines()[:4] == ["second  call 1 of 1", "", "m1  user · 8 tokens", "  │ I am the second."]
    assert "window" not in out


def test_show_advises_a_command_that_finds_the_conversation(run, tmp_path):
    db = tmp_path / "my chats.db"
    name, tenant = "ann's trip", "acme"
    options = foveate.Options(tenant=tenant)
    foveate.open_conversation(name, store=f"sqlite:///{db}", window=1000, options=options).close()
    advised = run("show", db, "--tenant", tenant)[1].partition("Show one: ")[2]
    code, out, err = run(*shlex.split(advised)[1:])
    assert (code, err) == (0, "")
    assert out.startswith(name)


def test_show_takes_a_file_or_a_url(run, tmp_path):
    db = tmp_path / "chats.db"
    foveate.open_conversation("first", store=f"sqlite:///{db}", window=1000).close()
    assert run("show", f"sqlite:///{db}")[1].splitlines()[1] == run("show", db)[1].splitlines()[1] == "  first"
    assert run("show", f"sqlite:///{db}", "first")[0] == 0
    missing = tmp_path / "none.db"
    assert run("show", f"sqlite:///{missing}") == (2, "", f"foveate: There is no database {missing}.\n")
    assert not missing.exists()


def test_show_lists_receipts_with_the_summaries_of_checkpoints(run, tmp_path):
    """The NovaCore document: checkpoints can be listed."""
    db = tmp_path / "chats.db"
    policy = foveate.policies.checkpoint(trigger_at=10, keep_recent=5)
    options = {"window": 9_000, "policy": [policy], "summarizer": lambda request: "They talk about a printer."}
    with foveate.open_conversation("support", store=f"sqlite:///{db}", format="openai", **options) as chat:
        for number in range(8):
            chat.append(f"Question {number}. My printer does not print, whatever I do with it.")
            chat.prompt()
            chat.record(foveate.assistant("Did you try to switch it off and on again?"))
        expected = [str(receipt) for receipt in chat.journal.receipts()]
    code, out, err = run("show", db, "support", "--receipts")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == f"support  {len(expected)} receipts"
    assert [line for line in lines if line.startswith("turn ")] == expected
    assert lines[1].startswith("turn 6: checkpoint made 2 edits, ")
    assert lines[2] == "  m1-m5 as a summary:"
    assert "  │ They talk about a printer." in lines[3:7]
    assert run("show", db, "support", "--receipts", "--turn", "2")[0] == 2


def test_show_takes_a_tenant(run, tmp_path):
    db = tmp_path / "chats.db"
    with foveate.open_conversation(
        "theirs", store=f"sqlite:///{db}", window=1000, options=foveate.Options(tenant="acme")
    ) as chat:
        chat.append("Hi.")
    assert run("show", db)[1].splitlines()[0].endswith(": 0 conversations")
    assert run("show", db, "--tenant", "acme")[1].splitlines()[1] == "  theirs"
    assert "Hi." in run("show", db, "theirs", "--tenant", "acme")[1]


def test_show_reads_a_postgresql_server(run, postgres_url):
    with foveate.open_conversation("first", store=postgres_url, format="anthropic", window=1000) as chat:
        chat.append("I am stored in a server.")
    assert run("show", postgres_url)[1].splitlines()[1] == "  first"
    assert "I am stored in a server." in run("show", postgres_url, "first")[1]
    assert run("show", postgres_url, "first", "--receipts") == (0, "first  0 receipts\n", "")


@pytest.mark.parametrize("options", [("--policy", "prune"), ("--window", 5), ("--format", "chat"), ("--lenient",)])
def test_show_of_a_store_refuses_options_of_recordings(run, tmp_path, options):
    db = tmp_path / "chats.db"
    foveate.open_conversation("first", store=f"sqlite:///{db}", window=1000).close()
    for names in ((), ("first",)):
        code, out, err = run("show", db, *names, *options)
        assert (code, out) == (2, "")
        assert err == f"foveate: {options[0]} belongs to recordings, and {db} is a store. Leave it out.\n"


def test_show_of_a_recording_refuses_a_tenant(run, recording):
    code, out, err = run("show", recording, "--tenant", "acme")
    assert (code, out) == (2, "")
    assert err == f"foveate: --tenant belongs to stores, and {recording} is a recording. Leave it out.\n"


def test_show_of_an_empty_conversation_names_no_roles(run, tmp_path):
    db = tmp_path / "chats.db"
    foveate.open_conversation("first", store=f"sqlite:///{db}", window=1000).close()
    assert run("show", db, "first")[1].splitlines()[-2:] == [
        "0 messages in the view, 0 tokens",
        "Edits changed 0 entries; 0 changed for the provider.",
    ]


def test_show_creates_no_conversation(run, tmp_path):
    db = tmp_path / "chats.db"
    foveate.open_conversation("there", store=f"sqlite:///{db}", window=1000).close()
    code, out, err = run("show", db, "not-there")
    assert (code, out) == (2, "")
    assert "not-there" in err
    assert run("show", db)[1].splitlines()[0].endswith(": 1 conversation")


def test_show_leaves_a_foreign_database_unchanged(run, tmp_path):
    db = tmp_path / "shop.db"
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("CREATE TABLE sale (item)")
        connection.commit()
    before = db.read_bytes()
    code, out, err = run("show", db)
    assert (code, out) == (2, "")
    assert "holds no conversations of foveate" in err
    assert db.read_bytes() == before
    assert list(tmp_path.iterdir()) == [db]


def test_show_refuses_a_name_for_a_recording(run, recording):
    code, _, err = run("show", recording, "fix-login")
    assert code == 2
    assert "takes no name" in err


@pytest.mark.parametrize("hostile", ["\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\r", "\u202e"])
def test_recording_cannot_control_the_terminal(run, tmp_path, hostile):
    path = write(tmp_path / "odd.jsonl", [{"role": "user", "content": f"before{hostile}after[bold]x[/bold]"}])
    for arguments in (["show", path], ["show", path, "--full"], ["check", path]):
        out = run(*arguments)[1]
        assert not any(character in out for character in "\x1b\x07\x9b\r\u202e")
        assert "before" in out
        assert "[bold]x[/bold]" in out


def test_show_lists_children_and_their_totals(run, tmp_path):
    url = f"sqlite:///{tmp_path / 'family.db'}"
    for name in ("trip", foveate.child_name("trip", "tools:6c7e"), "plain/name"):
        with foveate.open_conversation(name, store=url, window=10_000) as chat:
            chat.append("Hello.")
            chat.record(foveate.assistant("Hello."))
    db = tmp_path / "family.db"
    assert run("show", db)[1].splitlines()[1:4] == ["  plain/name", "  trip", "    trip/tools:6c7e"]
    lines = run("show", db, "trip")[1].splitlines()
    assert "Children (1): trip/tools:6c7e." in lines
    assert any(line.startswith("With its children: 2 calls: ") for line in lines)
    assert "Child of trip." in run("show", db, "trip/tools:6c7e")[1].splitlines()
    assert "hild" not in run("show", db, "plain/name")[1]


def test_show_prints_json_of_views_receipts_and_names(run, recording, tmp_path):
    db = tmp_path / "kept.db"
    assert run("replay", recording, "--policy", "keep-last-1", "--db", db)[0] == 0
    assert json.loads(run("show", db, "--json")[1]) == {"name": "fix-login / keep-last-1"}
    entries = [json.loads(line) for line in run("show", db, "fix-login / keep-last-1", "--json")[1].splitlines()]
    assert entries[0]["handle"] == "m1"
    assert entries[0]["message"]["role"] == "system"
    edited = [entry for entry in entries if entry["edits"]]
    assert edited
    assert all(entry["tokens"] < entry["tokens_recorded"] for entry in edited)
    assert all(reason for entry in entries for reason in entry["reasons"])
    receipts = [
        json.loads(line)
        for line in run("show", recording, "--policy", "keep-last-1", "--receipts", "--json")[1].splitlines()
    ]
    assert [receipt["author"] for receipt in receipts] == ["plan"] * len(receipts)
    assert receipts[0]["edits"]
    code, _, err = run("show", recording, "--turn", "99", "--json")
    assert (code, "There is no turn 99" in err) == (2, True)


def test_texts_count_as_for_the_model_that_was_called(run, tmp_path, monkeypatch):
    monkeypatch.setattr("foveate.open.parts.counter_for", counter_for)  # Other tests count characters.
    store = f"sqlite:///{tmp_path}/a.db"
    with foveate.open_conversation("a", model="gpt-5-mini", store=store, policy="off", window=8_000) as chat:
        chat.append("What is this?")
        chat.prepare()
        chat.record(foveate.assistant("A mill."))
        ids = [row.id for row in chat.history()]
        chat.edit(
            foveate.edits.Summarize(foveate.edits.Span(*ids), "The mill by the river grinds the town's rye. " * 20)
        )
        expected = chat.view.entries[0].tokens
    _, out, _ = run("show", tmp_path / "a.db", "a", "--turn", "2", "--provider", "openai")
    assert f"summary · {expected} tokens" in out
    _, out, _ = run("show", tmp_path / "a.db", "a", "--turn", "2", "--provider", "anthropic")
    assert f"summary · {expected} tokens" in out
