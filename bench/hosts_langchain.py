"""An agent of LangChain that reads 100 logs in a window of 16,000 tokens, with LangChain's own middleware and foveate.

Needs the environment `new-sdks` of tests/hosts.
"""

from __future__ import annotations

import logging
from typing import Any

from host_rows import HEAD, reading, row, scripted, summarizing
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scenario import QUESTION, WINDOW, log_text

from foveate.hosts.langchain import FoveateMiddleware
from foveate.testing.server import StubServer

_TRIGGER = 10_000
"""Tokens at which LangChain's middleware acts. It counts four characters a token, and neither tools nor prompt."""


@tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


def model_at(url: str) -> ChatAnthropic:
    keywords: Any = {"base_url": url, "api_key": "none", "max_retries": 0, "max_tokens": 999}
    return ChatAnthropic(model="claude-haiku-4-5", **keywords)


def run(name: str, *chosen: Any) -> None:
    """Print one row. A function among the middleware gets the model that writes summaries."""
    models = {"/main": scripted("anthropic", reading()), "/summary": scripted("anthropic", summarizing)}
    with StubServer(models) as server:
        summarizer = model_at(f"{server.url}/summary")
        middleware = [item(summarizer) if callable(item) else item for item in chosen]
        agent = create_agent(
            model_at(f"{server.url}/main"),
            [read_log],
            system_prompt="Be brief.",
            middleware=[AnthropicPromptCachingMiddleware(), *middleware],
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": "t1"}, "recursion_limit": 1_000}
        try:
            end = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]}, thread)["messages"][-1].text
        except Exception as error:
            end = f"`{type(error).__name__}`"
        kept = [message.text for message in agent.get_state(thread).values["messages"]]
        print(row(name, end, server, kept))


if __name__ == "__main__":
    logging.disable()
    print(HEAD)
    run("nothing")
    summaries: dict[str, Any] = {"trigger": ("tokens", _TRIGGER), "keep": ("messages", 6)}
    run("`SummarizationMiddleware`", lambda llm: SummarizationMiddleware(llm, **summaries))
    whole = {**summaries, "trim_tokens_to_summarize": None}
    run("`SummarizationMiddleware`, untrimmed", lambda llm: SummarizationMiddleware(llm, **whole))
    run("`ContextEditingMiddleware`", ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=_TRIGGER)]))
    run("foveate", FoveateMiddleware(window=WINDOW))
