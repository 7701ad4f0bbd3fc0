"""Strands: its session in files, and its sliding window."""

from __future__ import annotations

import json
from typing import Any, cast

from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.models import Model
from strands.session import FileSessionManager


class _NoModel(Model):
    """An agent needs a model. This one is never called."""

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def stream(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    def structured_output(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


class Library:
    NAME = "Strands"
    NEEDS = ("strands-agents",)
    USES = "`FileSessionManager`, `SlidingWindowConversationManager` before each call"
    LACKS = "counts messages, not tokens; drops the oldest; a file a message, without waiting for the disk"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        self._manager = SlidingWindowConversationManager(window_size=newest, per_turn=True)
        self._session = FileSessionManager(session_id="bench", storage_dir=folder)
        self._agent: Any = Agent(
            model=cast(Any, _NoModel()),
            agent_id="bench",
            session_manager=self._session,
            conversation_manager=self._manager,
            callback_handler=None,
        )

    def convert(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self._converted(message) for message in messages]

    def _converted(self, message: dict[str, Any]) -> dict[str, Any]:
        text = message.get("content") or ""
        if message["role"] == "tool":
            result = {"toolUseId": message["tool_call_id"], "status": "success", "content": [{"text": text}]}
            return {"role": "user", "content": [{"toolResult": result}]}
        content: list[dict[str, Any]] = [{"text": text}] if text else []
        for call in message.get("tool_calls") or ():
            arguments = json.loads(call["function"]["arguments"])
            content.append({"toolUse": {"toolUseId": call["id"], "name": call["function"]["name"], "input": arguments}})
        return {"role": message["role"], "content": content}

    def append(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            self._agent.messages.append(message)
            self._session.append_message(cast(Any, message), self._agent)

    def request(self) -> list[dict[str, Any]]:
        self._manager.apply_management(self._agent)
        self._session.sync_agent(self._agent)
        return self._agent.messages

    def calls(self, request: list[dict[str, Any]]) -> tuple[int, list[str], list[str]]:
        blocks = [block for message in request for block in message["content"]]
        calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        return len(request), calls, [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]

    def close(self) -> None:
        pass
