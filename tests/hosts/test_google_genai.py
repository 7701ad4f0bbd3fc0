"""The HTTP client under Google's SDK: a tool loop in a small window, with a server on loopback."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.genai", reason="google-genai is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from google import genai
from google.genai import errors, types
from scenario import ANSWER, CALLS, QUESTION, WINDOW, log_text

import foveate
from foveate.hosts.transport import async_http_client, conversation, http_client
from foveate.testing import Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer

MODEL = "gemini-2.5-pro"
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}}
TOOL = types.Tool(
    function_declarations=[types.FunctionDeclaration(name="read_log", parameters_json_schema=SCHEMA)],
)
CONFIG = types.GenerateContentConfig(
    system_instruction="Be brief.",
    tools=[TOOL],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)


def client_of(url: str, **options: Any) -> genai.Client:
    return genai.Client(api_key="secret-key-1", http_options=types.HttpOptions(base_url=url, **options))


def script() -> list[Any]:
    calls = [call(f"c{number}", "read_log", number=number) for number in range(CALLS)]
    return [*calls[:9], call("e1", "expand", handle="m3"), *calls[9:], say(ANSWER)]


def results_of(content: Any) -> list[types.Part]:
    calls = [part.function_call for part in content.parts if part.function_call]
    return [
        types.Part(
            function_response=types.FunctionResponse(
                id=each.id, name=each.name, response={"output": log_text(each.args["number"])}
            )
        )
        for each in calls
    ]


def run(client: genai.Client, contents: list[Any], *, stream: bool) -> str:
    """The loop of a program with Google's SDK; return the answer."""
    while True:
        if stream:
            pieces = [
                part
                for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=CONFIG)
                for part in chunk.candidates[0].content.parts or ()
                if part.text != "" or part.thought_signature
            ]
            content = types.Content(role="model", parts=pieces)
        else:
            content = (
                client.models.generate_content(model=MODEL, contents=contents, config=CONFIG).candidates[0].content
            )
        contents.append(content)
        results = results_of(content)
        if not results:
            return "".join(part.text or "" for part in content.parts)
        contents.append(types.Content(role="user", parts=results))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_loop_stays_in_the_window(stream: bool, tmp_path: Path):
    store = f"sqlite:///{tmp_path}/chats.db"
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    with (
        StubServer(ScriptedModel(script(), "gemini", strict=True, window=WINDOW)) as server,
        http_client(library="httpx", store=store, window=WINDOW) as http,
    ):
        with conversation("logs"):
            assert run(client_of(server.url, httpx_client=http), contents, stream=stream) == ANSWER
        assert server.illegal == []
    assert "expand" not in json.dumps([each.model_dump(mode="json") for each in contents])
    with foveate.open_conversation("logs", store=store, format="gemini", window=WINDOW) as chat:
        assert chat.totals().calls_billed == CALLS + 2
        assert chat.journal.verify() == []


def test_an_async_client_stays_in_the_window(tmp_path: Path):
    async def main() -> None:
        contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        async with async_http_client(library="httpx", store=f"sqlite:///{tmp_path}/c.db", window=WINDOW) as http:
            client = client_of(server.url, httpx_async_client=http)
            while True:
                answer = await client.aio.models.generate_content(model=MODEL, contents=contents, config=CONFIG)
                contents.append(answer.candidates[0].content)
                results = results_of(contents[-1])
                if not results:
                    assert answer.text == ANSWER
                    return
                contents.append(types.Content(role="user", parts=results))

    with StubServer(ScriptedModel(script(), "gemini", strict=True, window=WINDOW)) as server:
        asyncio.run(main())
        assert server.illegal == []


def test_errors_keep_their_types(tmp_path: Path):
    failure = Failure(429, message="Resource has been exhausted (e.g. check quota).")
    with (
        StubServer(ScriptedModel([failure], "gemini")) as server,
        http_client(library="httpx", store=f"sqlite:///{tmp_path}/c.db") as http,
        pytest.raises(errors.ClientError, match="exhausted") as raised,
    ):
        client_of(server.url, httpx_client=http).models.generate_content(model=MODEL, contents="Hi.", config=CONFIG)
    assert raised.value.code == 429
