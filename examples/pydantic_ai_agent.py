"""An agent of Pydantic AI whose messages stay whole, while each request stays in its window.

    pip install "pydantic-ai-slim[openai]"
    python examples/pydantic_ai_agent.py

Asks the model if OPENAI_API_KEY is set, else a server on this computer that answers from a script.
"""

import os
from contextlib import nullcontext
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from foveate.hosts.pydantic_ai import FoveateCapability
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer

PROJECT = Path(__file__).parent / "sample_project"
FILES = sorted(path.relative_to(PROJECT).as_posix() for path in PROJECT.rglob("*.py"))


def read_file(path: str) -> str:
    """Return a file of the project."""
    return (PROJECT / path).read_text("utf-8") if path in FILES else f"There is no file {path}."


def open_server():
    if os.environ.get("OPENAI_API_KEY"):
        return nullcontext()
    reads = [call(f"call_{n}", "read_file", path=path) for n, path in enumerate(FILES)]
    return StubServer(ScriptedModel([*reads, say("It keeps the books of a mill.")], "openai"))


def main() -> None:
    with open_server() as server:
        offline = {"base_url": f"{server.url}/v1", "api_key": "none"} if server else {}
        model = OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(**offline))
        capability = FoveateCapability("sqlite:///runs.db", window=24_000)  # the only change
        agent = Agent(model, tools=[read_file], capabilities=[capability])
        question = f"Read these files, and say what the program does: {', '.join(FILES)}"
        limits = UsageLimits(request_limit=200)
        result = agent.run_sync(question, conversation_id="review", usage_limits=limits)
        print(result.output)
        print(f"{len(result.all_messages())} messages in the run")
        print(capability.conversation("review").totals())
        capability.close()


if __name__ == "__main__":
    main()
