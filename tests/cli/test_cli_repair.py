"""`foveate repair`: a legal copy that loses no text."""

from __future__ import annotations

import json
import os

import pytest
from recordings import call, write
from test_cli_check import ILLEGAL

from foveate import Message, Reasoning, Text, ToolResult
from foveate.replay.recordings import read_recording
from foveate.testing.bodies import check_body


def body_in(path, provider):
    """Return the request body in a repaired file."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if provider != "openai" else {"messages": [json.loads(line) for line in text.splitlines()]}


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_responses", "gemini"])
def test_copy_is_legal_and_changes_are_listed(run, tmp_path, provider):
    copy = tmp_path / "copy"
    code, out, err = run("repair", write(tmp_path / "bad.jsonl", ILLEGAL), "--provider", provider, "-o", copy)
    assert (code, err) == (0, "")
    assert check_body(provider, body_in(copy, provider)) == []
    lines = out.splitlines()
    assert lines[0].startswith(f"{copy}: 8 messages, ")
    assert [line.split(":")[0].strip() for line in lines[1:-1]] == ["m4", "m5", "m7", "m8"]
    assert lines[1] == "  m4: an answer must directly follow its call"
    for word in ("late", "not json", "go on"):
        assert word in copy.read_text()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_responses", "gemini"])
def test_repaired_copy_needs_no_repair(run, tmp_path, provider):
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    run("repair", write(tmp_path / "bad.jsonl", ILLEGAL), "--provider", provider, "-o", one)
    assert run("check", one, "--provider", provider)[0] == 0
    code, out, _ = run("repair", one, "--provider", provider, "-o", two)
    assert (code, out.splitlines()[0].rpartition(", ")[2]) == (0, "0 changes")
    assert body_in(one, provider) == body_in(two, provider)


def test_sound_recording_is_copied_unchanged(run, recording, tmp_path):
    copy = tmp_path / "copy.jsonl"
    assert run("repair", recording, "--provider", "openai", "-o", copy)[0] == 0
    assert body_in(copy, "openai")["messages"] == [json.loads(line) for line in recording.read_text().splitlines()]


def test_copy_for_anthropic_has_a_separate_system_prompt(run, recording, tmp_path):
    copy = tmp_path / "copy.json"
    assert run("repair", recording, "--provider", "anthropic", "-o", copy)[0] == 0
    body = body_in(copy, "anthropic")
    assert body["system"] == [{"type": "text", "text": "You mend programs."}]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant"] * 8


def test_reasoning_of_another_provider_becomes_text(run, tmp_path):
    think = {"type": "thinking", "thinking": "The key is under the mat.", "signature": "c2ln"}
    source = write(
        tmp_path / "thought.jsonl",
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [think, {"type": "text", "text": "Found."}]},
        ],
    )
    copy = tmp_path / "copy.jsonl"
    code, out, _ = run("repair", source, "--provider", "openai", "-o", copy)
    assert code == 0
    assert "m2: openai does not accept this reasoning or block; it becomes text" in out
    assert "The key is under the mat." in json.dumps(body_in(copy, "openai"))


def test_existing_file_is_overwritten_only_with_force(run, recording, tmp_path):
    copy = tmp_path / "copy.jsonl"
    copy.write_text("mine")
    code, out, err = run("repair", recording, "--provider", "openai", "-o", copy)
    assert (code, out, copy.read_text()) == (2, "", "mine")
    assert "--force" in err
    assert run("repair", recording, "--provider", "openai", "-o", copy, "--force")[0] == 0
    assert copy.read_text() == "".join(
        f"{json.dumps(json.loads(line), ensure_ascii=False)}\n" for line in recording.read_text().splitlines()
    )


def test_recording_is_never_overwritten_by_its_copy(run, recording):
    before = recording.read_bytes()
    code, _, err = run("repair", recording, "--provider", "openai", "-o", recording, "--force")
    assert (code, recording.read_bytes()) == (2, before)
    assert "Name another file." in err


def test_pipe_is_not_replaced_even_with_force(run, recording, tmp_path):
    """As root the command would replace /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    code, _, err = run("repair", recording, "--provider", "openai", "-o", tmp_path / "pipe", "--force")
    assert (code, err) == (2, f"foveate: {tmp_path / 'pipe'} is not a regular file. Name another one.\n")
    assert (tmp_path / "pipe").is_fifo()


def test_copy_that_would_be_refused_is_not_written(run, recording, tmp_path, monkeypatch):
    monkeypatch.setattr("foveate.testing.bodies.check_body", lambda provider, body: ["messages[1]: not so"])
    copy = tmp_path / "copy.jsonl"
    code, out, err = run("repair", recording, "--provider", "openai", "-o", copy)
    assert (code, out, copy.exists()) == (1, "", False)
    assert "  messages[1]: not so" in err


def test_full_disk_leaves_no_partial_file(run, recording, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("foveate.cli.files.os.replace", fail)
    copy = tmp_path / "copy.jsonl"
    code, _, err = run("repair", recording, "--provider", "openai", "-o", copy)
    assert (code, sorted(tmp_path.iterdir())) == (2, [recording])
    assert err == f"foveate: {copy} cannot be written: No space left on device.\n"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_responses", "gemini"])
@pytest.mark.parametrize("largest", [250_000, pytest.param(10**9, marks=pytest.mark.slow)])
def test_copy_of_a_raw_recording_loses_no_text(run, transcripts, tmp_path, provider, largest):
    """The copy has every text of every message, its reasoning and results, and the name of every call."""
    for path in sorted(path for path in (transcripts / "raw").rglob("*.*") if path.stat().st_size < largest):
        copy = tmp_path / f"{path.stem}.copy"
        code, _, err = run("repair", path, "--provider", provider, "-o", copy)
        assert (code, err) == (0, "")
        body = body_in(copy, provider)
        assert check_body(provider, body) == []
        texts = "\n".join(strings(body))
        for one in read_recording(path).messages:
            for text in readable(one.message):
                assert text.strip() in texts, (path.name, text[:80])


def strings(value):
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for nested in value.values() if isinstance(value, dict) else value:
            yield from strings(nested)


def readable(message: Message):
    for part in message.parts:
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield text
            case ToolResult(content=content):
                yield from (nested.text for nested in content if isinstance(nested, Text))
    yield from (one.name for one in message.calls)


def test_call_without_an_answer_gets_one(run, tmp_path):
    source = write(tmp_path / "dead.jsonl", [{"role": "user", "content": "hi"}, call("a", "ls", {})])
    copy = tmp_path / "copy.jsonl"
    assert run("repair", source, "--provider", "openai", "-o", copy)[0] == 0
    assert [message["role"] for message in body_in(copy, "openai")["messages"]] == ["user", "assistant", "tool"]


def test_dash_writes_the_copy_to_standard_output(run, recording, tmp_path):
    code, out, err = run("repair", recording, "--provider", "openai", "-o", "-")
    assert (code, err) == (0, "")
    run("repair", recording, "--provider", "openai", "-o", tmp_path / "copy.jsonl")
    assert out == (tmp_path / "copy.jsonl").read_text(encoding="utf-8")
