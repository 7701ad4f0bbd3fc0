"""The money that a proxy reports: the bill, and what the same requests would have cost with the whole history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")
pytest.importorskip("genai_prices", reason="genai-prices is not installed (the extra `prices`)")

from servers import RunningProxy, ask, numbers, post, running_proxy, split
from waiting import until

import foveate
from foveate.cli.app import main
from foveate.open import cost_of, open_store
from foveate.proxy.savings import Savings
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer

TOOLS = [{"name": "read_log", "input_schema": {"type": "object"}}]
OPENAI_TOOL = {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
CALLS = 20
PRICED = 'foveate_priced_total{api="anthropic"}'
SPENT = 'foveate_dollars_spent_total{api="anthropic"}'
WHOLE = 'foveate_dollars_whole_total{api="anthropic"}'
ANSWERED = 'foveate_requests_total{api="anthropic",outcome="managed"}'


def work(proxy: RunningProxy, messages: list[Any], model: str, *, marks: bool = False) -> None:
    """Work as an agent with its own list, until the model says something. `marks`: use Anthropic's prompt cache."""
    while True:
        body = {"model": model, "max_tokens": 100, "tools": TOOLS, "messages": messages}
        if marks:
            body |= {"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]}
            *before, last = messages
            content = [*last["content"][:-1], {**last["content"][-1], "cache_control": {"type": "ephemeral"}}]
            body |= {"messages": [*before, {**last, "content": content}]}
        status, _, content = split(ask(proxy.port, post("/v1/messages", json.dumps(body).encode(), "x-api-key: k")))
        assert status == 200, content
        messages.append({"role": "assistant", "content": json.loads(content)["content"]})
        calls = [block for block in messages[-1]["content"] if block["type"] == "tool_use"]
        if not calls:
            return
        text = "".join(f"line {line} of log {len(messages)}: all is well\n" for line in range(150))
        results = [{"type": "tool_result", "tool_use_id": one["id"], "content": text} for one in calls]
        messages.append({"role": "user", "content": results})


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def script() -> list[Any]:
    return [*(call(f"c{n}", "read_log", number=n) for n in range(CALLS)), say("Log 7.")]


@pytest.mark.parametrize("marks", [True, False], ids=["marks of the client", "of the proxy"])
def test_the_money_is_that_of_the_context_meter(marks: bool, tmp_path: Path, capsys):
    url, messages = f"sqlite:///{tmp_path}/chats.db", [user("Which log?")]
    with StubServer(ScriptedModel([*script(), *script()], "anthropic")) as server:
        seen = []
        for _ in range(2):  # A new process counts its own calls, and nothing again.
            with running_proxy(server.url, store=url) as proxy:
                work(proxy, messages, "claude-haiku-4-5", marks=marks)
                until(lambda: numbers(proxy)[ANSWERED] == CALLS + 1)
                assert main(["proxy", "--status", "--port", str(proxy.port)]) == 0
                seen.append(numbers(proxy))
            messages.append(user("Once more."))
    with open_store(url) as store:
        (name,) = store.names("")
        with foveate.open_conversation(name, store=store, format="anthropic", window=16_000) as chat:
            context = chat.context(cost_of=cost_of)
    assert context.dollars is not None
    assert [one[PRICED] for one in seen] == [CALLS + 1, CALLS + 1]
    spent, whole = sum(one[SPENT] for one in seen), sum(one[WHOLE] for one in seen)
    assert spent == pytest.approx(context.dollars)
    assert whole - spent == pytest.approx(context.dollars_saved, rel=0.15)  # Each request has the scale of its time.
    assert context.totals.usage.cache_read
    share = 1 - seen[0][SPENT] / seen[0][WHOLE]
    assert f"saved ({share:.0%}), in {CALLS + 1} requests with known prices" in capsys.readouterr().out


def test_without_a_price_there_is_no_money(capsys):
    with (
        StubServer(ScriptedModel([say("One.")], "anthropic")) as server,
        running_proxy(server.url) as proxy,
    ):
        work(proxy, [user("Hi")], "claude-unknown-model")
        until(lambda: numbers(proxy)[ANSWERED] == 1)
        assert main(["proxy", "--status", "--port", str(proxy.port)]) == 0
        assert numbers(proxy)[SPENT] == 0
    assert "$" not in capsys.readouterr().out


@pytest.mark.parametrize("asks", [True, False], ids=["with usage", "without usage"])
def test_stream_without_usage_counts_as_one_without_a_price(asks: bool, capsys):
    """OpenAI's chat completions report the usage of a stream only if the request asks for it."""
    body = {"model": "gpt-5-mini", "messages": [user("Hi")], "tools": [OPENAI_TOOL], "stream": True}
    body |= {"stream_options": {"include_usage": True}} if asks else {}
    with (
        StubServer(ScriptedModel([say("One.")], "openai")) as server,
        running_proxy(server.url) as proxy,
    ):
        content = json.dumps(body).encode()
        status, *_ = split(ask(proxy.port, post("/v1/chat/completions", content, "authorization: Bearer k")))
        assert status == 200
        until(lambda: numbers(proxy)[ANSWERED.replace("anthropic", "openai")] == 1)
        assert numbers(proxy)[PRICED.replace("anthropic", "openai")] == asks
        assert main(["proxy", "--status", "--port", str(proxy.port)]) == 0
    assert ("$" in capsys.readouterr().out) is asks


def test_a_fault_of_the_count_costs_no_answer(monkeypatch):
    def fail(*arguments: Any) -> Any:
        raise RuntimeError("A price list is broken.")

    monkeypatch.setattr(Savings, "count", fail)
    with StubServer(ScriptedModel([say("One.")], "anthropic")) as server, running_proxy(server.url) as proxy:
        work(proxy, [user("Hi")], "claude-haiku-4-5")
        until(lambda: numbers(proxy)[ANSWERED] == 1)
