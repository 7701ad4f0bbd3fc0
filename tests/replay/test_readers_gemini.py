"""Readers for recordings of Gemini: a request, a list of contents, or one content in each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foveate.replay.recordings import read_recording, sniff

CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Look."}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2ln"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "x = 1"}}}]},
    {"role": "model", "parts": [{"text": "Done."}]},
]
TOOLS = [{"functionDeclarations": [{"name": "look"}]}]


def written(folder: Path, text: str) -> Path:
    path = folder / "recording.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("document", "system", "tools"),
    [
        (CONTENTS, False, 0),
        ({"history": CONTENTS}, False, 0),
        ({"contents": CONTENTS, "systemInstruction": {"parts": [{"text": "Be brief."}]}, "tools": TOOLS}, True, 1),
        ({"contents": CONTENTS, "config": {"system_instruction": "Be brief.", "tools": TOOLS}}, True, 1),
        ({"request": {"contents": CONTENTS, "systemInstruction": {"parts": [{"text": "Be brief."}]}}}, True, 0),
    ],
)
def test_a_document_with_contents_is_read(tmp_path: Path, document: Any, system: bool, tools: int):
    path = written(tmp_path, json.dumps(document))
    assert sniff(path) == "gemini"
    recording = read_recording(path)
    messages = [row.message for row in recording.messages]
    assert [message.role for message in messages] == ["system"] * system + ["user", "assistant", "tool", "assistant"]
    assert [message.text for message in messages] == ["Be brief."] * system + ["Look.", "", "x = 1", "Done."]
    assert (len(recording.tools), recording.notes) == (tools, {})


def test_lines_with_contents_are_read_with_their_numbers(tmp_path: Path):
    lines = [*CONTENTS, {"sessionId": "s"}]
    recording = read_recording(written(tmp_path, "\n".join(map(json.dumps, lines))))
    assert (recording.format, [row.line for row in recording.messages]) == ("gemini", [1, 2, 3, 4])
    assert recording.notes == {"other lines": 1}


def test_a_repaired_copy_for_gemini_is_read_again(tmp_path: Path):
    from foveate.cli.check import body_of

    recording = read_recording(written(tmp_path, json.dumps({"contents": CONTENTS})))
    messages = [row.message for row in recording.messages]
    copy = written(tmp_path, json.dumps(body_of("gemini", messages)))
    assert [row.message for row in read_recording(copy).messages] == messages
