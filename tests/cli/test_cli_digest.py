"""`foveate digest`: the digest of a text, and figures about recorded sessions."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper

import pytest
from recordings import call, write


@pytest.fixture
def session(tmp_path):
    """Write a recording: an agent lists files and reads two of them by name."""
    listing = "\n".join(f"src/module_{number}/part_{number}.py" for number in range(100))
    return write(
        tmp_path / "look.jsonl",
        [
            {"role": "user", "content": "Look."},
            call("a", "find", {"in": "src"}),
            {"role": "tool", "tool_call_id": "a", "content": listing},
            call("b", "read", {"path": "src/module_0/part_0.py"}),
            {"role": "tool", "tool_call_id": "b", "content": "x = 1\n" * 300},
            call("c", "read", {"path": "src/module_77/part_77.py"}),
            {"role": "tool", "tool_call_id": "c", "content": "short"},
        ],
    )


def test_digest_prints_figures_by_kind_and_in_total(run, session):
    code, out, err = run("digest", session)
    rows = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert rows[0] == ["By", "kind", "of", "content"]
    total = next(row for row in rows if row[:1] == ["all"])
    assert total[1] == "2"  # Results of 800 characters or less do not count.
    assert total[5] == "2"
    listings = next(row for row in rows if row[:1] == ["listing"])
    assert "kept: the share of them in the digest." in out
    assert listings[1] == "1"
    assert 0 < float(total[3].rstrip("%")) <= float(total[4].rstrip("%")) <= 25


def test_digest_prints_a_row_for_each_transcript(run, session, recording):
    out = run("digest", session, recording)[1]
    assert [line.split()[0] for line in out.splitlines()[:4]] == ["By", "results", "look", "fix-login"]


def test_the_same_as_json(run, session):
    code, out, _ = run("digest", session, "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["name"], facts["results"], facts["used"]) == (str(session), 2, 2)
    assert facts["kept"] == sum(kind["kept"] for kind in facts["kinds"])
    assert facts["kept_first"] == 1  # The second file is far down in the listing.


def test_digest_of_a_text_is_printed(run, tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("INFO starting worker_process\n" * 200 + "ERROR: lost connection to db-primary-7\n")
    code, out, _ = run("digest", "--show", file)
    assert code == 0
    assert "db-primary-7" in out
    assert "201 lines" in out
    assert len(run("digest", "--show", file, "--room", 200)[1]) <= 201


def test_digest_reads_standard_input(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"INFO starting worker_process\n" * 200)))
    code, out, err = run("digest", "--show", "-")
    assert (code, err) == (0, "")
    assert "200 lines" in out
    assert "worker_process" in out
    assert out.endswith("\n")


def test_digest_of_a_short_text_is_the_text(run, tmp_path):
    file = tmp_path / "short.txt"
    file.write_text("hello world")
    assert run("digest", "--show", file) == (0, "hello world\n", "")


def test_digest_refuses_wrong_arguments(run, tmp_path, session):
    assert run("digest")[0] == 2
    assert run("digest", session, "--show", session)[0] == 2
    assert run("digest", session, "--room", 100)[0] == 2
    assert run("digest", "--show", session, "--room", 0)[0] == 2
    none = tmp_path / "none.txt"
    assert run("digest", "--show", none) == (2, "", f"foveate: {none} cannot be read: No such file or directory.\n")
    assert run("digest", tmp_path / "none.jsonl")[0] == 2


def test_digest_continues_after_a_damaged_recording(run, session, tmp_path):
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("{not json\n")
    notes = tmp_path / "notes.txt"
    notes.write_text("Not a recording.\n")
    code, out, err = run("digest", damaged, notes, session)
    assert code == 2
    assert "all" in out
    assert "damaged.jsonl" in err
    assert "notes.txt" in err


def test_digest_reads_the_recordings_of_a_folder(run, session):
    assert run("digest", session.parent) == run("digest", session)
