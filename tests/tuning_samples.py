"""Recordings for tests of tuning, in which each step refers to the result of a step some calls before."""

from __future__ import annotations

import json
from pathlib import Path


def write_session(path: Path, seed: int, *, back: int, steps: int = 20, lines: int = 40, at_once: int = 1) -> Path:
    """Write a session of an agent that reads `at_once` files a step.

    Each step uses a name that only the result of `back` steps earlier showed; 0: no step uses a name of a result.
    """
    messages: list[dict] = [{"role": "user", "content": "Read everything."}]
    for step in range(steps):
        wanted = f"key_{seed}_{step - back}_value" if back and step >= back else "the next file"
        asked = {"name": "read", "arguments": json.dumps({"what": wanted})}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{step}.{n}", "type": "function", "function": asked} for n in range(at_once)],
            }
        )
        words = "some plain words of a long text without names\n" * (lines // 2)
        text = f"{words}key_{seed}_{step}_value\n{words}"
        messages += [{"role": "tool", "tool_call_id": f"c{step}.{n}", "content": text} for n in range(at_once)]
    messages.append({"role": "assistant", "content": "Done."})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, messages)))
    return path


def sessions(folder: Path, *, back: int, number: int = 6) -> list[Path]:
    """Write several sessions of different lengths."""
    return [
        write_session(folder / f"{seed}.jsonl", seed, back=back, steps=10 + seed, lines=15 + 2 * seed)
        for seed in range(number)
    ]
