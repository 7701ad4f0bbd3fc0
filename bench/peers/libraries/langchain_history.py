"""LangChain: its SQL history of a chat, and its trimming to a number of tokens."""

from __future__ import annotations

from typing import Any

from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolMessage,
    convert_to_messages,
    trim_messages,
)


class Library:
    NAME = "LangChain"
    NEEDS = ("langchain", "langchain-community", "greenlet")
    USES = "`SQLChatMessageHistory`, `trim_messages` by approximate tokens"
    LACKS = "drops the oldest messages; may part a call from its result"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._history = SQLChatMessageHistory("bench", connection=f"sqlite:///{folder}/langchain.db")
        self._window = window
        self._messages: list[BaseMessage] = self._history.messages

    def convert(self, messages: list[dict[str, Any]]) -> list[BaseMessage]:
        return convert_to_messages(messages)

    def append(self, messages: list[BaseMessage]) -> None:
        self._history.add_messages(messages)
        self._messages += messages

    def request(self) -> list[BaseMessage]:
        return trim_messages(self._messages, max_tokens=self._window, token_counter="approximate", strategy="last")

    def calls(self, request: list[BaseMessage]) -> tuple[int, list[str], list[str]]:
        calls = [
            str(call["id"]) for message in request if isinstance(message, AIMessage) for call in message.tool_calls
        ]
        return len(request), calls, [message.tool_call_id for message in request if isinstance(message, ToolMessage)]

    def close(self) -> None:
        self._history.engine.dispose()
