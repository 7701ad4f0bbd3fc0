"""The messages of requests as JSON: the part that is kept from the last request equals a new one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate.conversation.request_items import ItemWriter
from foveate.core.profiles import profile_for

TOOLS: list[Any] = [{"name": "read", "input_schema": {"type": "object"}}]
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def turn(number: int, size: int, ending: str, *, has_image: bool) -> list[dict[str, Any]]:
    """Return a reply with a call, and its result. foveate trims space at the end of a reply."""
    use = {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {"number": number}}
    content: list[Any] = [{"type": "text", "text": f"{number} of the log. " * size}, *([PIXEL] if has_image else [])]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": content}
    reply = {"role": "assistant", "content": [{"type": "text", "text": f"Step {number}{ending}"}, use]}
    return [reply, {"role": "user", "content": [result]}]


changes = st.tuples(st.sampled_from(["grow", "grow", "grow", "edit", "cut", "window"]), st.integers(0, 9))
turns = st.tuples(st.integers(1, 80), st.sampled_from(["", " "]), st.booleans())


@given(st.lists(st.tuples(changes, turns), min_size=2, max_size=12))
def test_items_kept_from_the_last_request_equal_new_ones(steps: list[Any]):
    chat = foveate.open_conversation("kept", format="anthropic", policy="keep-last-2", window=16_000)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read the logs."}]
    for number, ((change, at), (size, ending, has_image)) in enumerate(steps):
        if change == "edit" and len(messages) > 2:
            place = 2 * (at % (len(messages) // 2)) + 2
            messages[place] = turn(number, size, ending, has_image=has_image)[1] | {"role": "user"}
            messages[place]["content"][0]["tool_use_id"] = messages[place - 1]["content"][1]["id"]
        elif change == "cut" and len(messages) > 4:
            del messages[len(messages) - 2 :]
        elif change == "window" and len(messages) > 6:
            del messages[1:3]
        messages += turn(number, size, ending, has_image=has_image)
        view = chat.prepare(messages=[json.dumps(message).encode() for message in messages], tools=TOOLS)
        profile = profile_for("anthropic", "")
        assert chat.request_items(view).items == ItemWriter(chat.format).items(view, profile)
