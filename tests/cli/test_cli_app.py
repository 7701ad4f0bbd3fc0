"""The command line in general: help, exit codes, messages without tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import ModuleType

import pytest
from costing import is_cheap, processor_seconds

import foveate
import foveate.__main__
from foveate.__main__ import main as start
from foveate.cli import app as module
from foveate.errors import BadSetting
from foveate.policies import DEFAULT_PRESET, PRESET_NAMES


@pytest.mark.parametrize("command", [[], ["replay"], ["show"], ["check"], ["repair"]])
def test_help_is_plain_text_with_an_example(run, command):
    code, out, err = run(*command, "--help")
    assert (code, err) == (0, "")
    assert "Usage: foveate" in out
    assert not command or "Example: foveate" in out


def test_help_breaks_lines_at_the_width_of_the_terminal_alone(run, monkeypatch):
    """Descriptions of parameters kept the line breaks of the docstring."""
    monkeypatch.setenv("COLUMNS", "1000")
    for command in (["replay"], ["inspect"], ["proxy"], ["mcp"], ["db", "age"], ["worker"], ["policy", "show"]):
        rows = [line for line in run(*command, "--help")[1].splitlines() if line.startswith("│")]
        assert [row for row in rows if row.startswith("│  ")] == []


def test_help_of_replay_names_every_policy(run):
    assert [name for name in PRESET_NAMES if name not in run("replay", "--help")[1]] == []


def test_version_is_printed(run):
    assert run("--version") == (0, f"foveate {foveate.__version__}\n", "")


def test_unknown_command_is_refused_with_a_hint(run):
    code, out, err = run("repaly")
    assert (code, out) == (2, "")
    assert err.startswith('foveate: Unknown command "repaly".')
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [["check"], ["show"], ["digest"], ["replay"], ["repair", "--provider", "openai"]])
def test_name_of_a_file_cannot_control_the_terminal(run, command, tmp_path):
    code, out, err = run(
        *command,
        tmp_path / "no\x1b[31mb\x1b]0;PWN\a\u202e.json",
        *(["--output", tmp_path / "x.json"] if command[0] == "repair" else []),
    )
    assert code != 0
    assert "PWN" in err
    assert not [letter for letter in out + err if not letter.isprintable() and letter != "\n"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["replay", "x", "--window", "many"], "--window"),
        (["replay", "x", "--colour"], "--colour"),
        (["replay", "x", "--provider", "acme"], "acme"),
        (["repair", "x"], "foveate repair needs --provider."),
        (["repair", "x", "-o"], "-o needs a value."),
        (["db", "binding", "set", "x"], "foveate db binding set needs ACTION."),
        (["check"], "foveate check needs FILE."),
        (["check", "-"], "foveate check does not read standard input. Name a file."),
        (["repair", "-", "--provider", "openai", "-o", "-"], "foveate repair does not read standard input."),
        (["check", "x", "y"], "foveate check takes no further argument 'y'."),
    ],
)
def test_wrong_usage_names_the_help_of_its_command(run, arguments, expected):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert expected in err
    command = arguments[:3] if arguments[0] == "db" else arguments[:1]
    assert err.endswith(f"\nSee: foveate {' '.join(command)} --help\n")


@pytest.mark.parametrize(
    ("raised", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, "Stopped.\n"),
        (BadSetting("That cannot be."), 2, "foveate: That cannot be.\n"),
        (PermissionError(13, "Permission denied", "a.json"), 2, "foveate: a.json: Permission denied.\n"),
    ],
)
def test_stopped_command_returns_its_exit_code(run, monkeypatch, raised, code, expected):
    def stop(*args, **kwargs):
        raise raised

    monkeypatch.setattr(module, "app", stop)
    assert run("check", "x") == (code, "", expected)


def test_ctrl_c_during_the_import_prints_no_traceback(monkeypatch, capsys):
    class Loading(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "foveate.cli.app", Loading("foveate.cli.app"))
    assert (start(), capsys.readouterr()) == (130, ("", "Stopped.\n"))


def test_closed_standard_output_prints_no_traceback(recording):
    """`foveate show ... | head -1` once ended with a traceback from the last flush of the interpreter."""
    command = [sys.executable, "-m", "foveate", "show", str(recording), "--full"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), complaint) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "arguments", "code", "complaint"),
    [
        (">&-", ("policy", "list"), 0, b""),
        ("<&- >&- 2>&-", ("policy", "list"), 0, b""),
        ("2>&-", ("policy", "show", "none-such"), 2, b""),
        ("<&-", ("db", "verify", "--head", "-"), 2, b"There is no head here."),
    ],
)
def test_streams_closed_at_the_start_print_no_traceback(closed, arguments, code, complaint):
    """Python sets `sys.stdout` to None then, and each command once ended with a traceback."""
    command = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "foveate", *arguments]
    done = subprocess.run(command, capture_output=True, env=environment(), timeout=300)
    assert (done.returncode, b"Traceback" in done.stderr, complaint in done.stderr) == (code, False, True)


def test_output_works_in_ascii(recording):
    command = [sys.executable, "-m", "foveate", "replay", str(recording)]
    done = subprocess.run(
        command, capture_output=True, env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"), check=True
    )
    assert f"`{DEFAULT_PRESET}`: ".encode() in done.stdout
    assert done.stderr == b""
    done.stdout.decode("ascii")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_json_has_escapes_where_output_lacks_characters(tmp_path, encoding):
    """`db head`, `db list --json` and others once ended with a traceback."""
    name, store = "仓库 «müde» 👩🏽‍💻", f"sqlite:///{tmp_path / 'chat.db'}"
    foveate.open_conversation(name, store=store, window=8_000).append("Guten Tag.")
    command = [sys.executable, "-m", "foveate", "db", "head", "--store", store]
    variables = environment(PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    done = subprocess.run(command, capture_output=True, env=variables, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode(encoding))["name"] == name
    again = subprocess.run(
        [*command[:3], "db", "verify", "--head", "-", "--store", store],
        input=done.stdout,
        capture_output=True,
        env=variables,
        timeout=300,
    )
    assert (again.returncode, again.stderr) == (0, b"")


def test_recording_may_have_a_name_that_the_locale_cannot_read(recording, tmp_path):
    """The name of the recording is the name of a conversation, which once was refused."""
    file = tmp_path / "仓库对账.jsonl"
    file.write_bytes(recording.read_bytes())
    command = [sys.executable, "-m", "foveate", "replay", str(file), "--json"]
    variables = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = subprocess.run(command, capture_output=True, env=variables, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["transcript"] == "仓库对账"


def test_help_starts_quickly():
    """Commands import their modules when they run: 0.3 s of processor time on a calm machine."""
    assert is_cheap(lambda: processor_seconds("-m", "foveate", "--help", env=environment()), seconds=0.8, yardsticks=12)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1", **more}


def test_completion_is_installed_for_a_shell(run, tmp_path):
    script = tmp_path / "foveate"
    assert run("--install-completion", "--shell", "bash", "--output", script)[0] == 0
    assert "replay" in script.read_text()


def test_version_needs_no_extra(monkeypatch, capsys):
    monkeypatch.setattr("foveate.__main__.find_spec", lambda package: None)
    monkeypatch.setattr(sys, "argv", ["foveate", "--version"])
    assert (foveate.__main__.main(), capsys.readouterr().out) == (0, f"foveate {foveate.__version__}\n")
    monkeypatch.setattr(sys, "argv", ["foveate", "--help"])
    assert (foveate.__main__.main(), "foveate[cli]" in capsys.readouterr().err) == (2, True)
