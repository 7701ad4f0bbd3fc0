"""The tokens of system prompt and tools are counted when these change, and not at each request."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from foveate.conversation.limits import Limits
from foveate.core.profiles import PROFILES

from .expand_requests import TOOLS


def test_equal_tools_are_counted_once():
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    limits = Limits(100_000, None, PROFILES["openai"])
    tools: list[dict[str, Any]] = deepcopy(TOOLS)
    for _ in range(3):
        limits.weigh("Be brief.", deepcopy(tools), count)
    assert (len(counted), limits.budget().overhead) == (1, len(counted[0]))
    tools[0]["description"] = "Looks around."  # The program may change its own objects.
    limits.weigh("Be brief.", tools, count)
    limits.weigh("Be brief.", tools, count)
    limits.weigh("Be very brief.", tools, count)
    assert (len(counted), limits.budget().overhead) == (3, len(counted[-1]))
