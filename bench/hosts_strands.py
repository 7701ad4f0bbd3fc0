"""An agent of Strands that reads 100 logs in a window of 16,000 tokens, with its own managers of messages and foveate.

Needs the environment `old-sdks` of tests/hosts. Prices are multiples of the price of an input token: 1.25 for one
that is written to the cache, 0.1 for one that is read from it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.agent import NullConversationManager, SummarizingConversationManager
from strands.models import CacheConfig
from strands.models.anthropic import AnthropicModel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "hosts"))

from scenario import ANSWER, CALLS, QUESTION, WINDOW, largest, log_text

from foveate import Message
from foveate.hosts.strands import FoveatePlugin
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer


@tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


class _Reader:
    """Reads the logs in order, and writes a short summary where it is asked for one."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, request: Mapping[str, Any]) -> Message:
        if "read_log" not in str(request.get("tools")):
            return say("The logs that were read show nothing unusual.")
        self.number += 1
        return (
            call(f"call-{self.number - 1}", "read_log", number=self.number - 1) if self.number <= CALLS else say(ANSWER)
        )


def run(name: str, **options: Any) -> None:
    """Print one row of the table."""
    model = ScriptedModel(_Reader(), "anthropic", window=WINDOW)
    with StubServer(model) as server:
        client = {
            "base_url": server.url,
            "api_key": "none",
            "max_retries": 0,
            "default_headers": {"Connection": "close"},
        }
        cached = CacheConfig(strategy="anthropic")
        llm = AnthropicModel(client_args=client, model_id="claude-haiku-4-5", max_tokens=999, cache_config=cached)
        agent = Agent(model=llm, tools=[read_log], system_prompt="Be brief.", callback_handler=None, **options)
        try:
            end = str(agent(QUESTION)).strip()
        except Exception as error:
            end = type(error).__name__
    sent = sum(bill.total for bill in model.billed)
    price = sum(bill.plain + 1.25 * bill.written + 0.1 * bill.read for bill in model.billed)
    refused = len(server.received) - len(model.requests)
    cells = (len(model.requests), refused, largest(model), sent, round(price), len(agent.messages))
    print(f"| {name} | {end} |", " | ".join(f"{cell:,}" for cell in cells), "|")


if __name__ == "__main__":
    logging.disable()
    print("| manager | the run ends with | requests | refused | largest | sent | price | messages kept |")
    run("no manager", conversation_manager=NullConversationManager())
    run("SummarizingConversationManager", conversation_manager=SummarizingConversationManager())
    run("foveate", conversation_manager=NullConversationManager(), plugins=[FoveatePlugin(window=WINDOW)])
