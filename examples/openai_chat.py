"""A chat on OpenAI's SDK that goes on where it stopped.

    python examples/openai_chat.py "What is a view?" "And an edit?"
    python examples/openai_chat.py "Where were we?"

The conversation is in chat.db of this folder. Asks the model if OPENAI_API_KEY is set (`pip install openai`), else a
script that needs no network.
"""

import os
import sys

from foveate import open_conversation
from foveate.testing import StubOpenAI

MODEL = "gpt-5-mini"


def open_client():
    if os.environ.get("OPENAI_API_KEY"):
        import openai

        return openai.OpenAI()
    return StubOpenAI(lambda request: f"I see {len(request['messages'])} messages.")


def main() -> None:
    client = open_client()
    with open_conversation("my-chat", model=MODEL, store="sqlite:///chat.db") as chat:
        for question in sys.argv[1:] or ["Hello!"]:
            chat.append(question)
            reply = client.chat.completions.create(model=MODEL, **chat.prompt(system="Answer in one sentence."))
            chat.record(reply)
            print(f"> {question}")
            print(reply.choices[0].message.content)
        print(chat.context())


if __name__ == "__main__":
    main()
