"""A program that has its own list of messages, and brings it over.

    python examples/existing_list.py

The list is a recorded session of a coding agent: 386 messages, more than the window. The program keeps the list whole
and goes on appending to it. Asks the model if OPENAI_API_KEY is set (`pip install openai`), else a script.
"""

import json
import os
from pathlib import Path

from foveate import open_conversation
from foveate.testing import StubOpenAI

MODEL = "gpt-4o-mini"
RECORDING = Path(__file__).parent / "data" / "demo.jsonl"


def open_client():
    if os.environ.get("OPENAI_API_KEY"):
        import openai

        return openai.OpenAI()
    return StubOpenAI(["Sixteen bugs are fixed.", "GR-4127."])


def main() -> None:
    client = open_client()
    messages = [json.loads(line) for line in RECORDING.read_text("utf-8").splitlines()]
    with open_conversation("mill", model=MODEL, window=64_000, store="sqlite:///mill.db") as chat:
        for question in ("What did you do so far?", "Under which number?"):
            messages.append({"role": "user", "content": question})
            request = chat.prompt(messages=messages)  # instead of messages=messages
            reply = client.chat.completions.create(model=MODEL, **request)
            messages.append({"role": "assistant", "content": reply.choices[0].message.content})
            print(f"{len(messages) - 1} messages in the list, {len(request['messages'])} in the request")
            print(reply.choices[0].message.content)
        print(chat.context())


if __name__ == "__main__":
    main()
