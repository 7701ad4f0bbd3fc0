"""An agent of Pydantic AI that reads 100 logs in a window of 16,000 tokens, with its harness and foveate.

Needs the environment `new-sdks` of tests/hosts, or one with `pydantic-ai-harness[anthropic]==0.62.0` and `toktok-rs`,
which pins another version of Pydantic AI. Without the harness, its rows are left out.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

from host_rows import HEAD, reading, row, scripted, summarizing
from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import UsageLimits
from scenario import QUESTION, WINDOW, log_text

from foveate.hosts.pydantic_ai import FoveateCapability
from foveate.testing.server import StubServer

_TRIGGER = 11_000
"""Tokens at which the harness acts, of 16,000."""


def model_at(url: str) -> AnthropicModel:
    return AnthropicModel("claude-haiku-4-5", provider=AnthropicProvider(base_url=url, api_key="none"))


def run(name: str, *chosen: Callable[[Any], Any]) -> None:
    """Print one row. `chosen`: functions that return a capability; they get the model that writes summaries."""
    models = {"/main": scripted("anthropic", reading()), "/summary": scripted("anthropic", summarizing)}
    with StubServer(models) as server, capture_run_messages() as messages:
        summarizer = model_at(f"{server.url}/summary")
        settings: Any = {"anthropic_cache": True, "max_tokens": 999}
        capabilities = [make(summarizer) for make in chosen]
        agent = Agent(
            model_at(f"{server.url}/main"),
            instructions="Be brief.",
            capabilities=capabilities,
            model_settings=settings,
        )

        @agent.tool_plain
        def read_log(number: int) -> str:
            """Return the log with a number."""
            return log_text(number)

        kept: list[ModelMessage] = messages
        try:
            result = agent.run_sync(QUESTION, usage_limits=UsageLimits(request_limit=None))
            end, kept = result.output, result.all_messages()
        except Exception as error:
            end = f"`{type(error).__name__}`"
        results = [part.content for message in kept for part in message.parts if isinstance(part, ToolReturnPart)]
        print(row(name, end, server, results))


if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    print(HEAD)
    run("nothing")
    try:
        from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, SummarizingCompaction
    except ImportError:
        pass
    else:
        run(
            "`SlidingWindowCompaction`",
            lambda llm: SlidingWindowCompaction(max_tokens=_TRIGGER, keep_tokens=_TRIGGER // 2),
        )
        run("`ClearToolResults`", lambda llm: ClearToolResults(max_tokens=_TRIGGER, keep_pairs=3))
        run(
            "`SummarizingCompaction`",
            lambda llm: SummarizingCompaction(llm, max_tokens=_TRIGGER, keep_messages=6),
        )
    run("foveate", lambda llm: FoveateCapability(window=WINDOW))
