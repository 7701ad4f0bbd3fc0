"""LangGraph: a graph that writes a checkpoint after each step, as an agent with a saver does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph


class Library:
    NAME = "LangGraph"
    NEEDS = ("langgraph", "langgraph-checkpoint-sqlite", "langchain-core")
    USES = "`SqliteSaver`, one step of a graph for each message, `durability=sync`"
    LACKS = "does not shrink; each step stores all messages again"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._connection = sqlite3.connect(f"{folder}/langgraph.db", check_same_thread=False)
        graph = StateGraph(MessagesState)
        graph.add_node("step", lambda state: self._step(state["messages"]))
        graph.add_edge(START, "step")
        graph.add_edge("step", "step")
        self._graph = graph.compile(checkpointer=SqliteSaver(self._connection))
        self._config: Any = {"configurable": {"thread_id": "bench"}, "recursion_limit": 1_000_000}
        self._steps: Iterator[Any] | None = None
        self._new: list[BaseMessage] = []
        self._messages: list[BaseMessage] = self._graph.get_state(self._config).values.get("messages", [])

    def _step(self, messages: list[BaseMessage]) -> dict[str, list[BaseMessage]]:
        self._messages = [*messages, *self._new]
        return {"messages": self._new}

    def convert(self, messages: list[dict[str, Any]]) -> list[BaseMessage]:
        return convert_to_messages(messages)

    def append(self, messages: list[BaseMessage]) -> None:
        if not self._messages:
            self._graph.update_state(self._config, {"messages": messages}, as_node="step")
            self._messages = messages
            return
        if self._steps is None:
            self._steps = self._graph.stream(None, self._config, stream_mode="updates", durability="sync")
        self._new = messages
        next(self._steps)

    def request(self) -> list[BaseMessage]:
        return self._messages

    def calls(self, request: list[BaseMessage]) -> tuple[int, list[str], list[str]]:
        calls = [
            str(call["id"]) for message in request if isinstance(message, AIMessage) for call in message.tool_calls
        ]
        return len(request), calls, [message.tool_call_id for message in request if isinstance(message, ToolMessage)]

    def close(self) -> None:
        self._connection.close()
