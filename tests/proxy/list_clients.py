"""Clients without a network: each keeps its list of messages, and a proxy without HTTP serves its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from foveate.conversation import Conversation
from foveate.core.events import Event
from foveate.core.messages import Message
from foveate.core.stamps import Usage
from foveate.formats import get_format
from foveate.open import Options
from foveate.open.pool import Conversations
from foveate.ports import Store
from foveate.proxy.recognition import Recognized, Recognizer
from foveate.requests import Api, ListMemory, RequestBody, WireRequest

__all__ = ["ANTHROPIC", "CHAT", "RESPONSES", "Proxy", "Served", "assistant", "chat_body", "result", "tool", "user"]

ANTHROPIC = Api("anthropic", "messages", "system")
CHAT = Api("openai", "messages", "")
RESPONSES = Api("openai_responses", "input", "instructions")

USAGE = Usage(input=1_000, output=100)
Wire = dict[str, Any]


class Served(NamedTuple):
    """A request that was sent to the provider, and waits for its reply."""

    recognized: Recognized
    chat: Conversation
    turn: int
    body: Wire
    """The request with the view."""
    api: Api
    note: Callable[[str, Message], None]
    """Notes the id of the recorded reply, as a proxy does."""

    @property
    def name(self) -> str:
        return self.recognized.name

    def reply(self, *wire: Wire) -> None:
        """Record the reply, given as the client will have it in its list."""
        format = get_format(self.api.format)
        value: Any = list(wire)
        (message,) = (message for item in format.group(value) for message in format.parse(item))
        assert isinstance(message, Message)
        self.note(self.chat.record(message, usage=USAGE, call=self.turn), message)


class Proxy:
    """Recognizes requests and makes their views. A second one on the same store is a restart, or another worker."""

    def __init__(self, store: Store, *, policy: str = "keep-last-3", window: int = 20_000) -> None:
        self.store = store
        self.recognizer, self.lists = Recognizer(store), ListMemory()
        self.events: list[Event] = []
        self._options: Wire = {"policy": policy, "window": window}
        self._pools: dict[tuple[str, str], Conversations] = {}

    def send(
        self, api: Api, body: Mapping[str, Any], headers: Mapping[str, str] | None = None, tenant: str = ""
    ) -> Served | None:
        """Serve a request up to the provider; None if it is passed on."""
        content = json.dumps(body).encode()
        read = RequestBody(api, content, self.lists, tenant)
        recognized = self.recognizer.recognize(tenant, headers or {}, api, read)
        if recognized is None:
            return None
        chat = self.pool(tenant, api.format).get(recognized.name)
        wire = WireRequest(chat, api, read)
        note = partial(self.recognizer.note_reply, tenant, recognized.name, recognized.end)
        return Served(recognized, chat, wire.view.turn, json.loads(wire.content), api, note)

    def pool(self, tenant: str, format: str) -> Conversations:
        key = tenant, format
        if key not in self._pools:
            options = Options(tenant=tenant or None, on_event=self.events.append)
            self._pools[key] = Conversations(self.store, format=format, options=options, **self._options)
        return self._pools[key]

    def names(self, tenant: str = "") -> list[str]:
        return self.store.names(tenant)

    @property
    def forks(self) -> list[str]:
        """The reasons of all departures."""
        return [event.reason for event in self.events if event.kind == "list-departed"]


# ------------------------------------------------------------------------------------ messages of the chat completions


def user(text: str) -> Wire:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: str) -> Wire:
    """Return a reply, with a call for each id."""
    message: Wire = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": "run", "arguments": '{"command": "ls"}'}}
            for id in calls
        ]
    return message


def result(id: str, text: str) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": text}


def tool(name: str = "run") -> Wire:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


def chat_body(messages: Sequence[Wire], **fields: Any) -> Wire:
    """Return a request of the chat completions with a tool."""
    return {"model": "gpt-5", "messages": list(messages), "tools": [tool()], **fields}
