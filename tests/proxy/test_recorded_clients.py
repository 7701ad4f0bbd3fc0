"""Recorded requests of Claude Code, Codex, OpenCode and pi: each session and agent has one conversation."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from list_clients import ANTHROPIC, CHAT, RESPONSES, Proxy, Wire
from servers import running_proxy

from foveate.open import open_store
from foveate.requests import Api
from foveate.testing import ScriptedModel, say
from foveate.testing.bodies import check_body
from foveate.testing.server import StubServer

CALLS = 300
"""Requests of each session: the recorded ones, and generated ones after them."""
FILES = ("agent", "claude", "codex", "mcpcc", "oc", "sdk")
APIS = {"messages": ANTHROPIC, "completions": CHAT, "responses": RESPONSES}


class Request(NamedTuple):
    api: Api
    headers: dict[str, str]
    body: Wire

    @property
    def client(self) -> tuple[str, ...]:
        """What tells the sessions of the recordings apart. pi has no session on two of its APIs."""
        ids = ("x-claude-code-session-id", "x-claude-code-agent-id", "session-id", "session_id", "x-session-id")
        return self.api.format, *(self.headers.get(id, "") for id in ids), str(bool(self.body.get("tools")))


def recorded(folder: Path, name: str) -> list[Request]:
    requests: list[Request] = []
    for line in (folder / f"{name}.jsonl").read_text().splitlines():
        request = json.loads(line)
        path = request["path"].partition("?")[0]
        if request["method"] == "POST" and not path.endswith("count_tokens"):
            headers = {name.lower(): value for name, value in request["headers"].items()}
            requests.append(Request(APIS[path.rpartition("/")[2]], headers, request["body"]))
    return requests


def turns(api: Api, number: int) -> tuple[list[Wire], list[Wire]]:
    """Return a reply with a call, and what the client adds to it."""
    id, text = f"call_gen_{number}", f"line {number}: all is well\n" * 40
    match api.format:
        case "anthropic":
            call: Wire = {"type": "tool_use", "id": f"toolu_gen_{number}", "name": "Bash", "input": {"command": "ls"}}
            answer: Wire = {"type": "tool_result", "tool_use_id": f"toolu_gen_{number}", "content": text}
            return [{"role": "assistant", "content": [call]}], [{"role": "user", "content": [answer]}]
        case "openai":
            function = {"name": "bash", "arguments": '{"command":"ls"}'}
            call = {"id": id, "type": "function", "function": function}
            reply = {"role": "assistant", "content": None, "tool_calls": [call]}
            return [reply], [{"role": "tool", "tool_call_id": id, "content": text}]
        case _:
            call = {"type": "function_call", "id": f"fc_gen_{number}", "call_id": id, "name": "shell"}
            answer = {"type": "function_call_output", "call_id": id, "output": text}
            return [{**call, "arguments": '{"cmd":"ls"}'}], [answer]


def extended(requests: list[Request]) -> Iterator[tuple[Request, list[Wire]]]:
    """Yield each request with its reply: that of the next recorded list, and generated ones after the last."""
    last: dict[tuple[str, ...], Request] = {}
    for request, following in zip(requests, [*requests[1:], None], strict=True):
        key = request.api.messages
        reply, sent = turns(request.api, 0)[0], len(request.body[key])
        if following is not None and following.client == request.client:
            new = following.body[key][sent:]
            ends = (n for n, item in enumerate(new) if item.get("role") != "assistant" and not is_of_model(item))
            reply = new[: next(ends, len(new))] or reply
        yield request, reply
        last[request.client] = request
    lists: dict[tuple[str, ...], list[Wire]] = {}
    for number in range(CALLS):
        for client, request in last.items():  # Their requests come in turn.
            if request.body.get("tools"):
                messages = lists.setdefault(client, list(request.body[request.api.messages]))
                before = turns(request.api, number - 1 if number else 0)
                messages += [*before[0], *before[1]] if number else []
                if number:
                    body = {**request.body, request.api.messages: list(messages)}
                    yield request._replace(body=body), turns(request.api, number)[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_each_recorded_session_has_one_conversation(name: str, wire_recordings: Path):
    requests = recorded(wire_recordings, name)
    proxy = Proxy(open_store("memory:"), policy="keep-last-3", window=200_000)
    names: dict[tuple[str, ...], set[str]] = {}
    refused: list[Any] = []
    largest: tuple[int, Wire, Wire] = (0, {}, {})
    for request, reply in extended(requests):
        served = proxy.send(request.api, request.body, request.headers)
        assert (served is None) == (not request.body.get("tools")), "Requests for titles are passed on."
        if served is not None:
            names.setdefault(request.client, set()).add(served.name)
            refused += check_body(request.api.format, served.body)
            if (count := len(request.body[request.api.messages])) > largest[0]:
                largest = count, request.body, served.body
            served.reply(*reply)
    assert [sorted(found) for found in names.values() if len(found) > 1] == []
    assert len(proxy.names()) == len(names), "No conversation has another course."
    assert proxy.forks == []
    assert refused == []
    whole, sent = (len(json.dumps(body)) for body in largest[1:])
    assert sent < whole / 2


def is_of_model(item: Wire) -> bool:
    return item.get("type") in ("reasoning", "function_call", "custom_tool_call")


@pytest.mark.parametrize("name", FILES)
def test_recorded_sessions_have_one_conversation_each_over_http(name: str, wire_recordings: Path):
    formats = {"/v1/messages": "anthropic", "/v1/chat": "openai", "/v1/responses": "openai_responses"}
    models = {path: ScriptedModel(lambda request: say("Seen."), format) for path, format in formats.items()}
    names: dict[tuple[str, ...], set[str]] = {}
    with StubServer(models) as provider, running_proxy(provider.url, window=200_000) as proxy:
        for request in recorded(wire_recordings, name):
            headers = {
                key: request.headers[key] for key in request.headers if key.startswith(("x-", "session", "thread"))
            }
            path = next(path for path, api in APIS.items() if api == request.api)
            url = f"{proxy.url}/v1/{'chat/' if request.api == CHAT else ''}{path}"
            post = urllib.request.Request(url, json.dumps(request.body).encode(), {**headers, "x-api-key": "sk-test"})
            with urllib.request.urlopen(post, timeout=60) as answer:
                conversation = answer.headers.get("x-foveate-conversation", "")
                assert b"Seen" in answer.read()
            assert bool(conversation) == bool(request.body.get("tools"))
            if conversation and any(
                request.client[1:-1]
            ):  # Without a session, another reply makes it another conversation.
                names.setdefault(request.client, set()).add(conversation)
        assert provider.illegal == []
    assert [sorted(found) for found in names.values() if len(found) > 1] == []
    assert len(set().union(*names.values())) == len(names)
