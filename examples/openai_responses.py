"""An agent on OpenAI's Responses API, whose history stays on your computer.

    python examples/openai_responses.py

Asks the model if OPENAI_API_KEY is set (`pip install openai`), else a script that needs no network.
"""

import json
import os
from pathlib import Path

from foveate import open_conversation, tool_result
from foveate.testing import StubOpenAI, call, say

MODEL = "gpt-5-mini"
SOURCES = Path(__file__).parent / "sample_project" / "granary"
NAMES = sorted(path.name for path in SOURCES.glob("*.py"))
TOOLS = [
    {
        "type": "function",
        "name": "count_lines",
        "description": f"Count the lines of a file, and return it. The files: {', '.join(NAMES)}",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    }
]


def count_lines(name: str) -> str:
    text = (SOURCES / name).read_text("utf-8") if name in NAMES else ""
    return f"{len(text.splitlines())} lines:\n{text}"


def open_client():
    if os.environ.get("OPENAI_API_KEY"):
        import openai

        return openai.OpenAI()
    reads = [call(f"call_{n}", "count_lines", name=name) for n, name in enumerate(NAMES)]
    return StubOpenAI([*reads, say("The longest file has 183 lines.")])


def main() -> None:
    client = open_client()
    with open_conversation("lines", format="openai_responses", model=MODEL, window=24_000) as chat:
        chat.append("How long is each file?")
        while True:
            # store=False: the provider keeps nothing. Reasoning comes back encrypted, and the next request returns it.
            response = client.responses.create(model=MODEL, store=False, **chat.prompt(tools=TOOLS))
            chat.record(response)
            calls = chat.open_calls()
            if not calls:
                break
            chat.append([tool_result(one.call_id, count_lines(**json.loads(one.arguments))) for one in calls])
        print(chat.view.entries[-1].message.text)
        print(chat.totals())


if __name__ == "__main__":
    main()
