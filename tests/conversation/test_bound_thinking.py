"""Thinking bound to its prefix: no request sends a block behind a changed prefix, whatever edits and policies do."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

from foveate import Usage, open_conversation, user
from foveate.errors import BadInput, DoesNotFit, FoveateError
from foveate.testing import answer, check_body
from foveate.testing.bodies.binding import BoundThinking
from foveate.testing.moves import NOWHERE, edit_of

POLICIES = ("none", "balanced", "frugal", "coding", "keep-last-1", "prune", "recap", "expire")


def thought(number: int) -> dict:
    return {"type": "thinking", "thinking": f"Thought {number}.", "signature": f"sig{number}"}


def replies(numbers: random.Random, number: int) -> dict:
    """Return a reply that thinks: with calls, a server tool, a pause, or only text."""
    content = [thought(number)]
    search = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": []}
    text = {"type": "text", "text": f"Step {number}. " * numbers.choice([1, 60]) + "end"}
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"a{number}.py"}}
    match numbers.randrange(6):
        case 0:
            content += [text]
        case 1:
            content += [search, found, thought(number + 10_000), text]
        case 2:
            content += [search]
        case _:
            content += [call, {**call, "id": f"toolu_{number}b"}] if numbers.random() < 0.3 else [text, call]
    return {"role": "assistant", "content": content, "stop_reason": "end_turn"}


def test_the_check_finds_thinking_behind_a_changed_prefix():
    exchange = BoundThinking()
    ask = {"role": "user", "content": "go"}
    assert exchange.send({"messages": [ask]}) == []
    reply = {"role": "assistant", "content": [thought(1), {"type": "text", "text": "Yes."}]}
    exchange.reply(reply)
    assert exchange.send({"messages": [ask, reply, {"role": "user", "content": "on"}]}) == []
    changed = {"role": "user", "content": "stop"}
    assert exchange.send({"messages": [changed, reply, ask]}) == ["thinking 'sig1' is bound to another prefix"]
    assert exchange.send({"system": "Be brief.", "messages": [ask, reply, ask]}) != []


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 8)) for seed in range(24)])
def test_no_request_sends_thinking_behind_a_changed_prefix(seed: int):
    numbers = random.Random(seed)
    policy, ticks = numbers.choice(POLICIES), iter(range(10**6))
    chat = open_conversation(
        "c", model="claude-opus-5-5", window=numbers.choice([6_000, 100_000]), policy=policy, expand=False
    )
    exchange = BoundThinking()
    chat.append("go")
    for number in range(40):
        try:
            body = json.loads(chat.body(system="You help."))
        except (DoesNotFit, BadInput):
            break
        assert check_body("anthropic", body) == []
        assert exchange.send(body) == [], (policy, number)
        reply = replies(numbers, number)
        exchange.reply(reply)
        chat.record(reply, usage=Usage(input=1_000, output=50) if numbers.random() < 0.5 else None)
        for call in chat.open_calls():
            if numbers.random() < 0.9:
                chat.append(answer(call.call_id, f"line {next(ticks)}\n" * numbers.choice([1, 300])))
        if not chat.open_calls() and numbers.random() < 0.6:
            chat.append(user(f"Next {number}"))
        if numbers.random() < 0.3:
            ids = [*(row.id for row in chat.history()), *NOWHERE]
            with suppress(FoveateError, BadInput):
                match numbers.randrange(5):
                    case 0:
                        chat.expand(f"m{numbers.randint(1, len(chat))}")
                    case 1:
                        chat.undo()
                    case 2:
                        chat.privacy.erase(f"m{numbers.randint(1, len(chat))}")
                    case _:
                        draw = numbers.randrange
                        chat.edit(edit_of(ids, draw(10), draw(len(ids)), draw(len(ids)), draw(72)))
        if numbers.random() < 0.1:
            chat._agent.save_snapshot()
    assert chat.journal.verify() == []
