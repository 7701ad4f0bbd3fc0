"""Originals of messages with blocks that are kept whole: documents, server tools, shells and tool searches."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from typing import Any

import pytest

from foveate import Options, open_conversation
from foveate.core.edits import Span, Summarize
from foveate.core.messages import Media, Text
from foveate.testing import check_body

PNG = b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + bytes(300)).decode()
TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
USAGE = {"input_tokens": 100, "output_tokens": 5}


def anthropic_reply(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": "end_turn", "usage": USAGE}


def response(*items: dict[str, Any]) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(items), "usage": USAGE}


def summarized(format: str, *messages: dict[str, Any]):
    """Return a conversation in which one summary stands for all these messages and replies."""
    chat = open_conversation("blocks", format=format, window=32_000, options=Options(expand_where="tail"))
    for message in messages:
        chat.record(message) if "usage" in message else chat.append(message)
    history = chat.history()
    chat.append("Go on.")
    chat.edit(Summarize(Span(history[0].id, history[-1].id), "In short.", "test", "for the test"))
    return chat


def expanded(chat, handle: str) -> tuple[object, ...]:
    """Return the parts of the copy that shows an original at the end, without its first line."""
    chat.expand(handle, where="tail")
    return chat.history()[-1].message.parts[1:]


def test_documents_of_the_user_come_back_with_their_text():
    chat = summarized(
        "anthropic",
        {
            "role": "user",
            "content": [
                {
                    "type": "search_result",
                    "source": "https://a",
                    "title": "T",
                    "content": [{"type": "text", "text": "B"}],
                },
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Chunk."}]}},
                {"type": "text", "text": "Compare."},
            ],
        },
    )
    assert expanded(chat, "m1") == (
        Text("[search_result]\nsource: https://a\ntitle: T\nB\n[document]\nChunk.\nCompare."),
    )
    assert chat.expand("m1", lines="6").text == "Chunk.\n"


def test_results_of_server_tools_come_back_with_their_text():
    chat = summarized(
        "anthropic",
        {"role": "user", "content": "Search."},
        anthropic_reply(
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "s", "input": {"q": "kites"}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "content": [{"type": "text", "text": "Red\nBlue"}],
            },
        ),
    )
    assert expanded(chat, "m2") == (
        Text("[mcp_tool_use]\nname: ask\nserver_name: s\nq: kites\n[mcp_tool_result]\nRed\nBlue"),
    )


def test_an_image_that_the_model_made_comes_back_as_an_image():
    chat = summarized(
        "openai_responses",
        {"role": "user", "content": "Draw."},
        response({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}),
    )
    assert expanded(chat, "m2") == (
        Text("[image_generation_call]\n[image 640x480 png]"),
        Media("image/png", "base64", PNG),
    )


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (
            {"type": "shell_call", "action": {"commands": ["ls"]}},
            {"output": [{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        ),
        (
            {"type": "tool_search_call", "execution": "client", "arguments": {"q": "mail"}},
            {"type": "tool_search_output", "execution": "client", "tools": [{"type": "function", "name": "mail"}]},
        ),
        (
            {"type": "computer_call", "action": {"type": "screenshot"}},
            {"output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}},
        ),
    ],
)
def test_copies_of_outputs_of_every_kind_are_legal(call: dict[str, Any], output: dict[str, Any]):
    """The fields of an output, such as the exit code of a shell, are refused in a message and in another output."""
    chat = summarized(
        "openai_responses",
        {"role": "user", "content": "Go."},
        response({**call, "id": "x_1", "call_id": "c1", "status": "completed"}),
        {"type": f"{call['type']}_output", "call_id": "c1", **output},
    )
    chat.expand("m3", where="tail")
    prompt = chat.prompt(tools=TOOLS)
    chat.record(response({"type": "function_call", "call_id": "c2", "name": "expand", "arguments": '{"handle": "m3"}'}))
    chat.append("And?")
    assert check_body("openai_responses", prompt) == check_body("openai_responses", chat.prompt(tools=TOOLS)) == []
    shown = json.dumps(prompt["input"][-1])
    assert "stderr" not in shown
    assert "outcome" not in shown
