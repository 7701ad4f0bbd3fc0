"""An agent of OpenAI's SDK that reads 100 logs in a window of 16,000 tokens, with the SDK's own tools and foveate.

The agent reads them in one run, or five in each of twenty runs. Needs the environment `new-sdks` of tests/hosts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import agents
import openai
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, function_tool
from agents.extensions import ToolOutputTrimmer
from agents.memory import OpenAIResponsesCompactionSession
from host_rows import HEAD, reading, row, scripted
from scenario import CALLS, QUESTION, WINDOW, log_text

from foveate.hosts.openai_agents import FoveateSession
from foveate.testing.script import ScriptedReply
from foveate.testing.server import ReceivedRequest, StubServer
from foveate.testing.usage import Billed, tokens_of

_SUMMARY = {"type": "compaction", "encrypted_content": "gAAAA-" + 500 * "abc "}
"""What the server makes of a conversation: about 500 tokens."""


@function_tool
def read_log(number: int) -> str:
    """Return the log with a number."""
    return log_text(number)


class CompactingServer(StubServer):
    """Answers requests at `/responses/compact` too: the messages of the user, and one item for all the others."""

    def answer(self, request: ReceivedRequest) -> ScriptedReply:
        if not request.path.endswith("/compact"):
            return super().answer(request)
        self.received.append(request)
        items, model = request.values["input"], self.models[""]
        size = sum(map(tokens_of, items))
        model.billed.append(Billed(0, 0, size))
        model.requests.append(request.values)
        users = [{"type": "message", **item} for item in items if item.get("role") == "user"]
        number = len(self.received)
        output = [*users, {"id": f"cmp_{number}", **_SUMMARY}]
        bill = {"input_tokens": size, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
        bill |= {"output_tokens": 500, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": size + 500}
        names = {"id": f"resp_c{number}", "created_at": 1_790_000_000, "object": "response.compaction"}
        return ScriptedReply({**names, "output": output, "usage": bill})


async def run(name: str, rest: int, options: Callable[[Any], dict[str, Any]]) -> None:
    """Print one row. `rest`: calls of a run; 0 for all of them in one. `options`: the keywords of a run."""
    with CompactingServer(scripted("openai_responses", reading(rest=rest))) as server:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            chosen = options(client)
            session = chosen["session"]
            tools = [read_log, *([session.expand_tool] if isinstance(session, FoveateSession) else [])]
            model = OpenAIResponsesModel("gpt-5", client)
            agent = Agent(name="reader", instructions="Be brief.", tools=tools, model=model)
            try:
                for _ in range(CALLS // rest if rest else 1):
                    end = (await Runner.run(agent, QUESTION, max_turns=300, **chosen)).final_output
            except Exception as error:
                end = f"`{type(error).__name__}`"
            print(row(name, end, server, await session.get_items(), written=1.0))


def compacting(client: Any) -> dict[str, Any]:
    inner: Any = SQLiteSession("t1")
    return {"session": OpenAIResponsesCompactionSession("t1", inner, client=client, compaction_mode="input")}


def trimming(client: Any) -> dict[str, Any]:
    return {
        "session": SQLiteSession("t1"),
        "run_config": RunConfig(call_model_input_filter=ToolOutputTrimmer(recent_turns=1)),
    }


def foveate_session(client: Any) -> dict[str, Any]:
    return FoveateSession("t1", window=WINDOW).for_run()


if __name__ == "__main__":
    logging.disable()
    agents.set_tracing_disabled(True)
    print(HEAD)
    for rest, runs in (0, "one run"), (5, "20 runs"):
        asyncio.run(run(f"nothing, {runs}", rest, lambda client: {"session": SQLiteSession("t1")}))
        asyncio.run(run(f"`OpenAIResponsesCompactionSession`, {runs}", rest, compacting))
        asyncio.run(run(f"`ToolOutputTrimmer`, {runs}", rest, trimming))
        asyncio.run(run(f"foveate, {runs}", rest, foveate_session))
