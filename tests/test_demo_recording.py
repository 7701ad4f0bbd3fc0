"""The recording that ships with the project: its script makes it, and it fits its purpose."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RECORDING = EXAMPLES / "data" / "demo.jsonl"


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the recording quotes messages of Python 3.11 to 3.13")
def test_the_script_gives_the_same_bytes_again(tmp_path):
    """In another folder, with another locale and another hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": "77", "LC_ALL": "C", "TZ": "Pacific/Auckland", "COLUMNS": "40"}
    script = [sys.executable, str(EXAMPLES / "record_demo.py"), str(tmp_path / "again.jsonl")]
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "again.jsonl").read_bytes() == RECORDING.read_bytes()


def test_the_recording_has_a_useful_size(recorded):
    calls = [call for message in recorded for call in message.get("tool_calls", ())]
    texts = [text for message in recorded for text in prompt_texts(message)]
    assert len(calls) >= 80
    assert sum(-(-len(text) // 4) for text in texts) + 4 * len(recorded) >= 100_000
    assert RECORDING.stat().st_size < 1_000_000
    assert sum(message["role"] == "user" for message in recorded) >= 4


def test_every_answer_follows_its_call(recorded):
    waiting: list[str] = []
    for message in recorded:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert waiting == []


def test_the_recording_ends_with_passing_tests(recorded):
    runs = [
        message["content"] for message in recorded if message["role"] == "tool" and " passed, " in message["content"]
    ]
    assert (runs[0].splitlines()[-2:], runs[-1].splitlines()[-2:]) == (
        ["178 tests, 170 passed, 8 failed", "[exit code 1]"],
        ["190 tests, 190 passed, 0 failed", "[exit code 0]"],
    )


def test_each_changelog_entry_keeps_the_first_rule(recorded):
    """The user names the ticket only once, in the first request, so forgetting it has a cost."""
    edits = [
        json.loads(call["function"]["arguments"])
        for message in recorded
        for call in message.get("tool_calls", ())
        if call["function"]["name"] == "edit_file"
    ]
    changes = [edit["new"] for edit in edits if edit["path"] == "CHANGES.md"]
    assert len(changes) >= 8
    assert all(change.rstrip().endswith("(GR-4127)") for change in changes)


def test_the_recording_does_not_name_its_machine():
    text = RECORDING.read_text(encoding="utf-8")
    assert [word for word in ("/home/", "/root/", "/tmp/", "/private/", "/Users/", "0x7") if word in text] == []


@pytest.mark.parametrize(
    ("play", "message"),
    [
        ("@user\nhi\n@narrator\nmeanwhile", "line 3: 'narrator' is none of system, user, agent"),
        ("@agent\n> read_file", "line 2: 'read_file' is not a call"),
        ("@agent\n> edit_file a.py\n---- old\nx\n---- end\n", "'---- new' is missing"),
    ],
)
def test_an_invalid_screenplay_is_refused(play, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        screenplay().read(play)


def test_a_screenplay_keeps_texts_and_calls_as_written():
    module = screenplay()
    edit = "> edit_file x.py\n---- old\n---- new\n\n@z\n---- end\n"
    assert module.read(f"@user\none\n\n two\n@agent\n> search . a b\n{edit}@agent\nDone.\n") == [
        module.Line("user", "one\n\n two", ()),
        module.Line(
            "agent",
            "",
            (
                module.Call("search", {"folder": ".", "pattern": "a b"}),
                module.Call("edit_file", {"path": "x.py", "old": "", "new": "\n@z\n"}),
            ),
        ),
        module.Line("agent", "Done.", ()),
    ]


def prompt_texts(message: dict[str, Any]) -> list[str]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return [message["content"] or "", *(call["name"] + call["arguments"] for call in calls)]


def screenplay() -> ModuleType:
    """Return the module next to the script, which is not part of a package."""
    spec = importlib.util.spec_from_file_location("screenplay", EXAMPLES / "screenplay.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
