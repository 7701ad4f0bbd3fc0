"""The first prompt over a long unshrunk history takes work and memory in proportion to its length."""

from __future__ import annotations

import cProfile
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from foveate import Message, Text, ToolCall, View, open_conversation
from foveate.policies import PRESET_NAMES, compact_on_overflow, floor, fold
from foveate.testing import answer, call, say, user

from .mechanisms import MECHANISMS, opened

PRESETS = [name.replace("-N", "-2") for name in PRESET_NAMES]
NEEDS_SUMMARIES = ("checkpoint", "prune-and-compact")


def steps(count: int, name: str = "module") -> list[Message]:
    """Return one request and many short steps, each with names of its own."""
    messages = [user("Go on until it works.")]
    for number in range(count // 2):
        path = json.dumps({"path": f"src/{name}_{number}.py"})
        said = (Text(f"Now {name}_{number}."), ToolCall(f"c{number}", "read_file", path))
        messages += [
            Message("assistant", said),
            answer(f"c{number}", f"def function_{number}(): return value_{number}"),
        ]
    return messages


def turns(count: int) -> list[Message]:
    """Return many short turns, each with a tool call and a recap line."""
    messages: list[Message] = []
    for number in range(count // 4):
        messages += [
            user(f"Do {number}."),
            call(f"c{number}", "bash", command=f"cat src/module_{number}.py"),
            answer(f"c{number}", f"def function_{number}(): return value_{number}"),
            say(f"recap - did {number} in src/module_{number}.py"),
        ]
    return [*messages, user("And now?")]


def work_of(chat: Any, messages: list[Message]) -> int:
    """Return the number of function calls that the first prompt over these messages makes."""
    chat.append(messages)
    profile = cProfile.Profile()
    profile.runcall(chat.prepare)
    return sum(entry.callcount for entry in profile.getstats())


def first_prompt(policy: str) -> Any:
    return open_conversation(
        "c", window=12_000, policy=policy, summarizer="digest" if policy in NEEDS_SUMMARIES else None
    )


@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=[pytest.mark.slow] * (name != "balanced")) for name in PRESETS]
)
def test_first_prompt_of_a_preset_is_linear(policy: str):
    small, large = (work_of(first_prompt(policy), turns(count)) for count in (1_000, 2_000))
    assert large < 3 * small


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_first_prompt_of_a_mechanism_is_linear(name: str):
    """Only the long history may need the floor, whose note has a digest. Quadratic work would be four times as much."""
    small, large = (work_of(opened(name, window=12_000), steps(count)) for count in (600, 1_200))
    assert large < 3.4 * small


@pytest.mark.slow
def test_folds_copy_no_names_of_earlier_folds():
    """The names of a long history are many: a copy of them for each fold would make the first prompt quadratic."""
    sizes = []
    for count in (1_000, 2_000):
        chat = open_conversation("c", window=12_000, policy=(fold(protect=200, stretch=100),))
        chat.append(steps(count, name="folded"))  # Texts that no other test has left in a cache.
        tracemalloc.start()
        chat.prepare()
        sizes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sizes[1] < 2.6 * sizes[0]


def test_first_prompt_calls_no_policy_again_once_the_summary_is_there():
    """A plan with the answers continues the plan that asked for them."""
    calls: list[int] = []

    def watch(view: View) -> tuple[()]:
        calls.append(len(view))
        return ()

    chat = open_conversation("c", window=12_000, policy=(watch, compact_on_overflow()), summarizer="digest")
    chat.append(steps(1_000))
    chat.prepare()
    assert any(entry.kind == "summary" for entry in chat.view)
    assert calls == [1_001]


def test_first_prompt_digests_the_history_once(monkeypatch: pytest.MonkeyPatch):
    """The floor of a plan that waits for a summary would digest what it hides, in vain."""
    counts: list[int] = []
    monkeypatch.setattr(floor, "digest_messages", lambda messages, *rest, **options: counts.append(len(messages)))
    chat = open_conversation("c", window=12_000, policy="balanced")
    chat.append(steps(2_000))
    chat.prepare()
    assert any(entry.kind == "summary" for entry in chat.view)
    assert counts == []


SCRIPT = """
import re, resource, sys, time
from pathlib import Path
from together.test_first_prompt import first_prompt, steps, turns
history = {"steps": steps, "turns": turns}[sys.argv[2]](int(sys.argv[3]))
chat = first_prompt(sys.argv[1])
chat.append(history)
began = time.process_time()
chat.prepare()
status = Path("/proc/self/status")  # On Linux, ru_maxrss begins with the size of the process that started this one.
peak = re.search(r"VmHWM:\\s*(\\d+)", status.read_text())[1] if status.exists() else 0
print(time.process_time() - began, (int(peak) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024)
"""


LONG = [
    ("balanced", "steps", 100_000),
    ("balanced", "turns", 100_000),
    *[(name, ("steps", "turns")[number % 2], 10_000) for number, name in enumerate(PRESETS) if name != "balanced"],
]
"""The other presets take turns with the two kinds of history. That their work is linear, other tests show."""


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "history", "count"), LONG)
def test_first_prompt_over_a_long_history(policy: str, history: str, count: int, request: pytest.FixtureRequest):
    """The limit of time is for hangs: a calm core takes 7 seconds."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, policy, history, str(count)],
        cwd=request.config.rootpath / "tests",
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes = map(float, run.stdout.split())
    assert seconds < 120
    assert megabytes < 450
