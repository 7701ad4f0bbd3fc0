"""The log is empty in normal operation and after dry runs."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from foveate import open_conversation
from foveate.core.messages import ToolCall, assistant, tool_result
from foveate.policies import recap_batches
from foveate.types import Lease

RECAP = "Let me see.\nrecap - step {n} is done."


def test_a_program_without_logging_sees_no_logs():
    code = """
import logging, foveate
assert [type(one).__name__ for one in logging.getLogger("foveate").handlers] == ["NullHandler"]
def fail(event): raise ValueError("a listener's own fault")
foveate.open_conversation("c", window=9_000, options=foveate.Options(on_event=fail)).append("hello")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("policy", "window"), [("none", 20_000), ("prune", 100_000), ("balanced", 20_000), ("keep-last-2", 20_000)]
)
def test_a_normal_run_logs_nothing(policy, window, caplog, tmp_path):
    """`prune` protects 40,000 tokens, so in a small window it warns that it cannot act."""
    caplog.set_level(logging.INFO, "foveate")
    with open_conversation("c", store=f"sqlite:///{tmp_path}/chat.db", policy=policy, window=window) as chat:
        chat.append("Look at the files.")
        for n in range(12):
            chat.prompt()
            chat.record(assistant(f"Step {n}.", ToolCall(f"c{n}", "read", f'{{"n":{n}}}')))
            chat.append(tool_result(f"c{n}", f"line of {n}\n" * 1_000))
        chat.prompt()
        chat.prompt(messages=[{"role": "user", "content": "Another list: the conversation departs from its past."}])
    assert caplog.messages == []


def test_only_an_applied_plan_logs_a_line(caplog):
    caplog.set_level(logging.INFO, "foveate")
    chat = open_conversation("c", policy="expire", window=100_000)
    chat.append("Look.")
    for n in range(4):
        chat.append(assistant("", ToolCall(f"c{n}", "read", f'{{"n":{n}}}')))
        chat.append(tool_result(f"c{n}", "x" * 4_000), lease=Lease(1, "compact", message_type="action-result"))
    chat.pin("m3")
    assert len(chat.plan().edits) == 2
    assert "expire would act on it too" in chat.explain("m3")
    assert caplog.messages == []
    chat.prepare()
    assert caplog.messages == ["[Turn 5] Message pruning: 2 compacted (saved ~1712 tokens), 0 removed"]


def test_dry_runs_of_recaps_log_nothing(caplog):
    caplog.set_level(logging.INFO, "foveate")
    chat = open_conversation("c", policy=[recap_batches()], window=100_000)
    for n in range(9):
        chat.append(f"Do step {n}. " * 20)
        chat.append(assistant(f"{'thinking ' * 50}\n{RECAP.format(n=n)}"))
    chat.append("Go on.")
    assert chat.plan().edits
    assert caplog.messages == []
    chat.prepare()
    assert [line.partition(":")[0] for line in caplog.messages] == ["LLM Context"]
