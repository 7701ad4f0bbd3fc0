"""`foveate inspect --export`: files of stored and recorded conversations."""

from __future__ import annotations

import pytest

from foveate import open_conversation

pytest.importorskip("starlette", reason="starlette is not installed (the extra `inspect`)")


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.db"
    for name in ("a", "A", "team/b"):
        with open_conversation(name, store=f"sqlite:///{path}", window=20_000) as chat:
            chat.append(f"Hello from {name}")
            chat.prepare()
            chat.record({"role": "assistant", "content": "Good day."})
    return path


def test_export_writes_a_file_for_each_conversation(run, chats, tmp_path):
    code, out, err = run("inspect", chats, "--export", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert code == 0
    assert names == ["A.html", "a~.html", "team~2Fb.html"] or names == ["A~.html", "a.html", "team~2Fb.html"]
    assert sorted(out.splitlines()) == sorted(str(path) for path in (tmp_path / "out").iterdir())
    assert "3 files in" in err
    assert "Hello from team/b" in (tmp_path / "out" / "team~2Fb.html").read_text("utf-8")


def test_inspect_creates_no_data_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("FOVEATE_STORE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("COPILOT_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "a file" / "share"))
    (tmp_path / "a file").touch()
    code, _, err = run("inspect")
    assert (code, err.startswith("foveate: There is nothing to show yet.")) == (2, True)


def test_export_of_one_conversation_writes_one_file(run, chats, tmp_path):
    assert run("inspect", chats, "--export", tmp_path / "out", "--name", "team/b")[0] == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["team~2Fb.html"]
    code, _, err = run("inspect", chats, "--export", tmp_path / "out", "--name", "missing")
    assert (code, err) == (1, "foveate: There is no conversation 'missing' in these sources.\n")


def test_export_of_a_recording_replays_it(run, recording, tmp_path):
    assert run("inspect", recording, "--export", tmp_path / "out", "--policy", "keep-last-5")[0] == 0
    (file,) = (tmp_path / "out").iterdir()
    text = file.read_text("utf-8")
    assert "part_0" in text
    assert "is-placeholder" in text


def test_export_that_fails_leaves_the_older_file(run, chats, tmp_path, monkeypatch):
    assert run("inspect", chats, "--export", tmp_path / "out", "--name", "team/b")[0] == 0
    before = (tmp_path / "out" / "team~2Fb.html").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    code, _, err = run("inspect", chats, "--export", tmp_path / "out", "--name", "team/b")
    assert (code, "No space left on device" in err) == (2, True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["team~2Fb.html"]
    assert (tmp_path / "out" / "team~2Fb.html").read_bytes() == before


def test_export_refuses_what_it_cannot_do(run, chats, tmp_path):
    code, _, err = run("inspect", "--export", tmp_path / "out")
    assert (code, "--export needs a store or a recording" in err) == (2, True)
    assert run("inspect", chats, "--name", "a")[0] == 2
    assert run("inspect", chats, "--export", chats)[0] == 2


def test_printed_address_opens_the_pages_with_any_token(run, chats, monkeypatch):
    from starlette.testclient import TestClient

    served = []

    def serve(app, host, port, *, default_port, begun):
        served.append(app)
        begun(8788)

    monkeypatch.setattr("foveate.inspector.server.serve", serve)
    monkeypatch.setenv("FOVEATE_INSPECT_TOKEN", " a b&c#d=é+%41 ")
    code, _, err = run("inspect", chats, "--host", "0.0.0.0", "--no-browser")
    address = err.removeprefix("Serving ").removesuffix(". Stop with Ctrl-C.\n")
    with TestClient(served[0]) as client:
        assert (code, client.get(address).status_code) == (0, 200)
