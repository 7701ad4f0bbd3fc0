"""An agent of LangChain whose state stays whole, while each request stays in its window.

    pip install langchain langchain-openai
    python examples/langchain_agent.py

Asks the model if OPENAI_API_KEY is set, else a server on this computer that answers from a script.
"""

import os
from contextlib import nullcontext
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from foveate import open_conversation
from foveate.hosts.langchain import FoveateMiddleware
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer

PROJECT = Path(__file__).parent / "sample_project"
FILES = sorted(path.relative_to(PROJECT).as_posix() for path in PROJECT.rglob("*.py"))


@tool
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
        model = ChatOpenAI(model="gpt-5-mini", **offline)
        middleware = FoveateMiddleware("sqlite:///threads.db", window=24_000)  # the only change
        agent = create_agent(model, [read_file], middleware=[middleware], checkpointer=InMemorySaver())
        question = f"Read these files, and say what the program does: {', '.join(FILES)}"
        thread = {"configurable": {"thread_id": "review"}, "recursion_limit": 500}
        state = agent.invoke({"messages": [{"role": "user", "content": question}]}, thread)
        print(state["messages"][-1].text)
        print(f"{len(state['messages'])} messages in the state")
        middleware.close()
    with open_conversation("review", store="sqlite:///threads.db", window=24_000) as chat:
        print(chat.totals())


if __name__ == "__main__":
    main()
