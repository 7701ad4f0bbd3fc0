"""OpenAI's Agents SDK: its SQLite session and its filter of old tool outputs."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, SQLiteSession
from agents.extensions import ToolOutputTrimmer
from agents.run import CallModelData, ModelInputData


class Library:
    NAME = "OpenAI Agents"
    NEEDS = ("openai-agents",)
    USES = "`SQLiteSession` with a limit of items, `ToolOutputTrimmer`"
    LACKS = "counts items, not tokens; a running agent has no limit; a resume may part a call from its result"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._loop = asyncio.Runner()
        self._session = SQLiteSession("bench", f"{folder}/openai.db")
        self._filter = ToolOutputTrimmer()
        self._agent: Any = Agent(name="bench")
        self._items: list[Any] = self._loop.run(self._session.get_items(limit=newest))

    def convert(self, messages: list[dict[str, Any]]) -> list[Any]:
        items: list[Any] = []
        for message in messages:
            if message["role"] == "tool":
                output = {"call_id": message["tool_call_id"], "output": message["content"]}
                items.append({"type": "function_call_output", **output})
                continue
            if message.get("content"):
                items.append({"role": message["role"], "content": message["content"]})
            for call in message.get("tool_calls") or ():
                items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        return items

    def append(self, messages: list[Any]) -> None:
        self._loop.run(self._session.add_items(messages))
        self._items += messages

    def request(self) -> list[Any]:
        data = ModelInputData(input=self._items, instructions=None)
        return self._filter(CallModelData(model_data=data, agent=self._agent, context=None)).input

    def calls(self, request: list[Any]) -> tuple[int, list[str], list[str]]:
        calls = [item["call_id"] for item in request if item.get("type") == "function_call"]
        return len(request), calls, [item["call_id"] for item in request if item.get("type") == "function_call_output"]

    def close(self) -> None:
        self._session.close()
        self._loop.close()
