"""Results of MCP tools are read as parts, from whichever tool they come."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import ChatAgent, Media, Text, tool
from foveate.agents.result_content import content_of
from foveate.testing import ScriptedModel, call

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}

SOUND = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ({"content": [text("a"), IMAGE]}, [Text("a"), Media("image/png", "base64", "iVBORw0KGgo=")]),
        (
            {"content": [{**IMAGE, "type": "audio", "mimeType": "audio/wav"}]},
            [Media("audio/wav", "base64", IMAGE["data"])],
        ),
        ({"content": [text('{"n":1}')], "structuredContent": {"n": 1}}, [Text('{"n":1}')]),
        ({"content": [], "structuredContent": {"n": 1}, "isError": False}, [Text('{"n":1}')]),
        ({"content": [], "isError": False}, [Text("Done. It returned nothing.")]),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a.md", "text": "# A"}}]},
            [Text("[Resource file:///a.md]\n# A")],
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "x:1", "blob": "QQ==", "mimeType": "image/png"}}]},
            [Text("[Resource x:1]"), Media("image/png", "base64", "QQ==", "x:1")],
        ),
        (
            {"content": [{"type": "resource_link", "uri": "x:1", "name": "a", "description": "Notes"}]},
            [Text("[Resource x:1: Notes]")],
        ),
    ],
)
def test_the_blocks_of_a_result_become_parts(result: dict[str, Any], parts: list[Any]):
    assert content_of(result) == (tuple(parts), "ok")


def test_is_error_becomes_the_state_error():
    assert content_of({"content": [text("No such town.")], "isError": True}) == ((Text("No such town."),), "error")
    assert content_of({"content": [], "isError": True}) == ((Text("It failed, and gave no reason."),), "error")


@pytest.mark.parametrize(
    "value",
    [
        {"content": "text"},
        {"content": []},
        {"content": [{"title": "a"}]},
        {"content": [text("a")], "title": "a page"},
        {"content": [{"type": "paragraph", "text": "a"}]},
    ],
)
def test_another_value_with_content_stays_json(value: dict[str, Any]):
    (part,), state = content_of(value)
    assert isinstance(part, Text)
    assert part.text.startswith('{"content":')
    assert state == "ok"


def test_the_sdks_result_is_read_as_its_dict():
    types = pytest.importorskip("mcp.types", reason="mcp is not installed (the extra `mcp`)")
    result = types.CallToolResult(content=[types.TextContent(text="a")], is_error=True, structured_content={"n": 1})
    assert content_of(result) == ((Text("a"),), "error")


def test_a_screenshot_costs_the_tokens_of_an_image():
    """As text, its base64 would cost 30,000 tokens and more."""

    @tool
    def screenshot() -> dict[str, Any]:
        """Show the page."""
        return {"content": [{**IMAGE, "data": "iVBORw0KGgo=" * 10_000}]}

    model = ScriptedModel([call("c1", "screenshot"), "I see."])
    with ChatAgent(model, tools=[screenshot], window=50_000) as agent:
        agent.send("Look.")
        entry = agent.conversation.view.entries[2]
    assert (entry.images, entry.tokens < 5_000) == (1, True)
