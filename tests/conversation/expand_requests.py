"""Helpers of the tests of `expand`: long results, an agent's loop, and the content of its requests."""

from __future__ import annotations

import json
from typing import Any

from foveate import Conversation, Message
from foveate.testing import StubAnthropic, StubOpenAI

LOG = "".join(f"{n:03} {'ERROR disk full' if n % 97 == 0 else 'ok, all is well'}\n" for n in range(1, 301))
"""Three hundred lines; 97, 194 and 291 tell of an error."""
ROWS = json.dumps({"total": 60, "rows": [{"id": n, "name": f"customer {n}", "city": "Oslo"} for n in range(60)]})
SHORT = "nothing to see here, " * 6
TOOLS = [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]


def client_for(provider: str, script: Any, **options: Any) -> Any:
    return (StubAnthropic if provider == "anthropic" else StubOpenAI)(script, **options)


def asked(client: Any, prompt: dict[str, Any]) -> Any:
    """Send the prompt, which must be legal for its provider, to the model; return the reply."""
    if isinstance(client, StubAnthropic):
        return client.messages.create(model="m", max_tokens=99, **prompt)
    return client.chat.completions.create(model="m", **prompt)


def run(chat: Conversation, provider: str, script: list[Message], results: dict[str, str], **said: Any) -> Any:
    """Run an agent: call the model until it makes no calls; answer the calls that the conversation does not answer."""
    client = client_for(provider, list(script))
    for _ in script:
        chat.record(asked(client, chat.prompt(tools=TOOLS, **said)))
        for call in chat.open_calls():
            chat.append(result_of(provider, call.call_id, results.get(call.call_id, SHORT)))
    return client


def result_of(provider: str, call_id: str, text: str) -> object:
    """Return a tool result in the host's wire format."""
    if provider == "anthropic":
        return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]
    return {"role": "tool", "tool_call_id": call_id, "content": text}
