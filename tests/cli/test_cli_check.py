"""`foveate check`: legality of a recording, and its tokens."""

from __future__ import annotations

import json

import pytest
from recordings import call, write


def test_sound_recording_is_legal_for_both_providers(run, recording):
    for provider in ("anthropic", "openai"):
        code, out, err = run("check", recording, "--provider", provider)
        assert (code, err) == (0, "")
        assert f"Legal for {provider} as recorded." in out


def test_check_counts_tokens_by_role_tool_and_message(run, recording):
    out = run("check", recording)[1]
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["fix-login.jsonl", "chat:", "17", "messages,", "5,859", "tokens"]
    assert ["tool", "7", "5,729", "98", "%"] in lines
    assert ["read_file", "6", "5,724", "98", "%"] in lines
    assert ["edit_file", "1", "5", "<1", "%"] not in lines
    table = lines[lines.index(["largest", "from", "begins", "tokens", "share"]) :]
    assert [line[0] for line in table[1:7]] == ["m4", "m6", "m8", "m10", "m12", "m14"]
    assert table.index([]) == 1 + 10


def test_check_prints_json(run, recording):
    code, out, _ = run("check", recording, "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["legal"], facts["findings"], facts["messages"], facts["tokens"]) == (True, [], 17, 5859)
    assert facts["by_tool"] == [
        {"name": "read_file", "messages": 6, "tokens": 5724},
        {"name": "edit_file", "messages": 1, "tokens": 5},
    ]
    assert facts["largest"][0] == {
        "message": 4,
        "role": "tool",
        "tool": "read_file",
        "tokens": 954,
        "begins": "def part_0(): pass def part_0(): pass def part_0(): pass de…",
    }


def test_check_shows_the_results_that_cost_most(run, recording):
    """A result of 954 tokens is written to the cache once, and read by the six calls after it."""
    out = run("check", recording)[1]
    assert "Input cost of 8 calls" in out
    assert "tool results, whole 9" in out
    lines = [line.split() for line in out.splitlines()]
    table = lines[lines.index(["costs", "most", "results", "of", "call", "tokens", "calls", "share"]) :]
    assert table[1] == ["m4", "read_file", "src/part_0.py", "954", "7", "19", "%"]
    facts = json.loads(run("check", recording, "--json")[1])["cost"]
    assert facts["calls"] == 8
    assert facts["results"][0]["cost"] == pytest.approx(954 * (1.25 + 6 * 0.1))
    assert facts["dollars"] is None


ILLEGAL = [
    {"role": "user", "content": "hi"},
    call("a", "ls", {}),
    {"role": "user", "content": "go on"},
    {"role": "tool", "tool_call_id": "a", "content": "late"},
    call("b", "ls", "not json"),
    {"role": "tool", "tool_call_id": "b", "content": "ok"},
    call("b", "ls", {}),
    {"role": "tool", "tool_call_id": "b", "content": "ok"},
]


@pytest.mark.parametrize(
    ("provider", "found"),
    [
        ("openai", [(2, "pairing"), (4, "pairing"), (5, "arguments")]),
        ("anthropic", [(4, "order"), (7, "call-id")]),
        ("gemini", [(2, "pairing"), (4, "pairing"), (5, "thinking"), (7, "thinking")]),
    ],
)
def test_check_names_message_line_and_repair_of_each_problem(run, tmp_path, provider, found):
    path = write(tmp_path / "bad.jsonl", ILLEGAL)
    code, out, _ = run("check", path, "--provider", provider, "--json")
    facts = json.loads(out)
    assert (code, facts["legal"]) == (1, False)
    places = [(one["message"], one["rule"]) for one in facts["findings"]]
    assert places == found
    assert all(one["line"] == one["message"] and one["repair"] and one["problem"] for one in facts["findings"])
    text = run("check", path, "--provider", provider)[1]
    assert f"Not legal for {provider} as recorded: {len(places)} problems." in text
    assert "  message 4 (line 4): " in text
    assert "      foveate repair " in text


HI = {"role": "user", "content": "hi"}
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


@pytest.mark.parametrize(
    ("recorded", "provider"),
    [
        ({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "gemini"),
        ({"model": "gpt-5", "input": [ITEM]}, "openai_responses"),
        ({"messages": [HI, call("a", "ls", {}), {"role": "tool", "tool_call_id": "a", "content": "ok"}]}, "openai"),
        ({"messages": [HI, {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "Hi."}]}]}, "anthropic"),
        ({"messages": [HI], "system": "Be brief."}, "anthropic"),
        ({"messages": [HI], "model": "gpt-5"}, "openai"),
        ({"messages": [HI], "model": "claude-sonnet-4-5"}, "anthropic"),
        ({"messages": [HI]}, "anthropic"),
    ],
)
def test_check_recognises_the_provider_of_a_file(run, tmp_path, recorded, provider):
    """The form of the messages counts most, then the model."""
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(recorded))
    code, out, _ = run("check", path, "--json")
    facts = json.loads(out)
    assert (code, facts["provider"], facts["findings"]) == (0, provider, [])
    assert json.loads(run("check", path, "--provider", "openai", "--json")[1])["provider"] == "openai"


def test_key_that_the_provider_does_not_know_is_named_and_left_out(run, tmp_path):
    path = write(tmp_path / "keys.jsonl", [{"role": "user", "content": "hi", "metadata": {"plan": "pro"}}])
    code, out, _ = run("check", path, "--provider", "openai")
    assert (code, "metadata: Additional properties are not allowed" in out) == (1, True)
    (finding,) = json.loads(run("check", path, "--provider", "openai", "--json")[1])["findings"]
    assert finding["repair"] == "leaves out the key, which the provider does not know"
    repaired = tmp_path / "repaired.jsonl"
    assert run("repair", path, "--provider", "openai", "-o", repaired)[0] == 0
    assert json.loads(repaired.read_text()) == {"role": "user", "content": "hi"}


def test_check_of_the_responses_api_names_its_items_messages(run, tmp_path):
    """This API takes a late answer, but no call id twice. Each message may be several items."""
    path = write(tmp_path / "bad.jsonl", ILLEGAL)
    code, out, _ = run("check", path, "--provider", "openai_responses", "--json")
    places = [(one["message"], one["rule"]) for one in json.loads(out)["findings"]]
    assert (code, places) == (1, [(5, "arguments"), (7, "call-id"), (8, "pairing")])


def test_problem_in_a_packed_message_names_the_recorded_message(run, tmp_path):
    """Anthropic's user message has all results of a turn; the second result is wrong."""
    calls = call("a", "ls", {})
    calls["tool_calls"] += call("b", "ls", {})["tool_calls"]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        calls,
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "tool", "tool_call_id": "x", "content": "whose?"},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
    ]
    path = write(tmp_path / "packed.jsonl", messages)
    facts = json.loads(run("check", path, "--provider", "anthropic", "--json")[1])
    assert [(one["message"], one["rule"]) for one in facts["findings"]] == [(5, "pairing")]


def test_check_reads_raw_recordings(run, transcripts):
    """Every raw recording gets a verdict, and every finding names a message."""
    for path in sorted((transcripts / "raw").rglob("*.*")):
        code, out, err = run("check", path, "--json")
        facts = json.loads(out)
        assert err == ""
        assert code == (0 if facts["legal"] else 1)
        assert all(1 <= one["message"] <= facts["messages"] for one in facts["findings"])


def test_check_says_that_no_copy_helps_a_lone_system_prompt(run, tmp_path):
    path = write(tmp_path / "alone.jsonl", [{"role": "system", "content": "You mend programs."}])
    code, out, _ = run("check", path, "--provider", "anthropic")
    assert code == 1
    assert "foveate repair cannot help: the provider wants a message with content that is no system prompt." in out
