"""The examples of CONTRIBUTING.md run unchanged, each in the package that its first line names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate.core.messages import assistant, user
from foveate.core.profiles import profile_for
from foveate.errors import BadTranscript
from foveate.replay.recordings.recording import RecordedMessage
from foveate.replay.recordings.source import Source
from foveate.testing.builders import answer, call, calls, say

PAGE = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"


def test_the_example_policy_clears_old_results_of_its_tool():
    expire_tool = example("policies/tool_expiry.py")["expire_tool"]
    with foveate.open_conversation("try", window=100_000, policy=expire_tool(tool="search", turns=2)) as chat:
        chat.append(user("Where is it?"))
        for turn, tool in enumerate(["search", "read", "search", "search", "search"]):
            chat.prompt()
            chat.record(call(f"c{turn}", tool))
            chat.append(answer(f"c{turn}", f"{tool} found {turn}. " * 20))
        shown = [message["content"] for message in chat.prompt()["messages"] if message["role"] == "tool"]
    assert [text[:14] for text in shown] == [
        "[Old tool resu",
        "read found 1. ",
        "[Old tool resu",
        "search found 3",
        "search found 4",
    ]


def test_the_example_reader_reads_and_reports_damage(tmp_path):
    reader = example("replay/recordings/chat_log.py")["READER"]
    path = tmp_path / "log.jsonl"
    path.write_text('{"who": "user", "said": "hi", "at": 1700000000}\n{"who": "agent", "said": "hello"}\n')
    assert reader.recognises(Source(path).sample())
    assert reader.read(Source(path)).messages == (
        RecordedMessage(user("hi"), 1, 1_700_000_000_000),
        RecordedMessage(assistant("hello"), 2),
    )
    path.write_text('{"who": "user", "said": "hi"}\n{"who": "dog", "said": "woof"}\n')
    with pytest.raises(BadTranscript, match=r"log\.jsonl, line 2: neither a user nor an agent says anything here\."):
        reader.read(Source(path))


def test_the_example_rule_reports_violations():
    rule = example("core/rules.py")["CallsAreFew"]()
    many = [f"c{number}" for number in range(129)]
    with foveate.open_conversation("try", window=100_000, format="anthropic") as chat:  # It splits no calls.
        chat.append([user("hi"), calls(*many), *map(answer, many), call("last"), answer("last"), say("so")])
        results = [says for entry in chat.view for says in rule.read(entry, profile_for("openai"))]
    assert results + list(rule.end()) == ["makes 129 calls at once"]


def test_the_example_framework_shows_views_and_records_replies():
    hook = example("hosts/pairs.py")["FoveateHook"](window=8_000, policy="balanced")
    pairs = [("user", "Read the logs.")]
    sent = []

    def send(shown: list[tuple[str, str]]) -> tuple[str, str]:
        sent.append(sum(len(text) for _, text in shown))
        return "assistant", f"Log {len(sent)} is well. " * 500

    for _ in range(10):
        pairs += [hook.around_model("t1", "gpt-5", pairs, send), ("user", "And the next one?")]
    assert max(sent) < 4 * 8_000 < sum(len(text) for _, text in pairs)
    assert hook._host.conversation(("t1",)).totals().calls == 10


def example(path: str) -> dict[str, Any]:
    """Return the definitions of the example for this file."""
    (code,) = re.findall(rf"```python\n# src/foveate/{re.escape(path)}\n(.*?)```\n", PAGE.read_text("utf-8"), re.DOTALL)
    package = "foveate." + path.rpartition("/")[0].replace("/", ".")
    names: dict[str, Any] = {"__name__": f"{package}.example", "__package__": package}
    exec(compile(code, f"{PAGE.name}: {path}", "exec"), names)
    return names
