"""An agent on Anthropic's SDK that reads a project larger than its window.

    python examples/anthropic_loop.py

Asks Claude if ANTHROPIC_API_KEY is set (`pip install anthropic`), else a script that needs no network.
"""

import json
import os
from pathlib import Path

from foveate import open_conversation, tool_result
from foveate.testing import StubAnthropic, call, say

MODEL = "claude-haiku-4-5"
PROJECT = Path(__file__).parent / "sample_project"
FILES = sorted(path.relative_to(PROJECT).as_posix() for path in PROJECT.rglob("*.py"))
TOOLS = [
    {
        "name": "read_file",
        "description": f"Return a file of the project. The files: {', '.join(FILES)}",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]


def read_file(path: str) -> str:
    return (PROJECT / path).read_text("utf-8") if path in FILES else f"There is no file {path}."


def open_client():
    if os.environ.get("ANTHROPIC_API_KEY"):
        import anthropic

        return anthropic.Anthropic()
    reads = [call(f"toolu_{n}", "read_file", path=path) for n, path in enumerate(FILES)]
    return StubAnthropic([*reads, say("It keeps the books and the stock of a mill.")])


def main() -> None:
    client = open_client()
    with open_conversation("review", model=MODEL, window=24_000) as chat:
        chat.append("Read every file of this project. What does it do?")
        while True:
            request = chat.prompt(system="You review programs.", tools=TOOLS)
            reply = client.messages.create(model=MODEL, max_tokens=4096, **request)
            chat.record(reply)
            calls = chat.open_calls()  # without those of `expand`, which foveate answers
            if not calls:
                break
            chat.append([tool_result(one.call_id, read_file(**json.loads(one.arguments))) for one in calls])
        print(reply.content[-1].text)
        print(chat.totals())


if __name__ == "__main__":
    main()
