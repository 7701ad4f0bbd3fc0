"""Requests of Strands: their messages, system prompt, tools and model, and the usage of the reply."""

from __future__ import annotations

from typing import Any

from strands.tools import PythonAgentTool

from ..core.stamps import Usage
from .host import EXPAND, ModelCall, tool_definition, usage_of_totals, wire_format
from .strands_messages import blocks_of

__all__ = ["RequestParts", "definition_of", "expand_tool", "model_of", "usage_of"]


class RequestParts:
    """The messages of the agent in a request, and the blocks that only this request has at its end."""

    def __init__(self, context: Any) -> None:
        messages, count = context.messages, context.dynamic_trailing_blocks
        content = messages[-1]["content"] if count else []
        self._added = content[-count:] if count else []
        """Blocks such as memories, which are sent and not kept."""
        kept = [{**messages[-1], "content": content[:-count]}] if content[:-count] else []
        self.messages: list[Any] = [*messages[:-1], *kept] if count else messages
        prompt = context.system_prompt or ()
        blocks = [{"text": prompt}] if isinstance(prompt, str) else prompt
        texts = [block.get("text") for block in (*blocks, *self._added)]
        self.system = "\n".join(filter(None, texts)) or None
        """The texts of the system prompt and of the added blocks. Both take tokens."""

    def shown(self, call: ModelCall) -> list[Any]:
        """Return the messages to send: the agent's own where they are shown unchanged, and new ones for the rest."""
        shown: list[Any] = []
        for own, entry, _ in call.shown():
            if entry is None:
                _add(shown, own)
            else:
                role = "assistant" if entry.message.role == "assistant" else "user"
                _add(shown, {"role": role, "content": blocks_of(entry.message, own["content"] if own else ())})
        if self._added:
            _add(shown, {"role": "user", "content": self._added})
        return shown


def definition_of(spec: Any) -> dict[str, Any]:
    """Return the definition of a tool."""
    return tool_definition(spec["name"], spec["description"], spec["inputSchema"]["json"])


def expand_tool(function: Any) -> PythonAgentTool:
    """Return the tool `expand`, whose calls this function answers."""
    name, description, schema = EXPAND["name"], EXPAND["description"], {"json": EXPAND["parameters"]}
    spec: Any = {"name": name, "description": description, "inputSchema": schema}
    return PythonAgentTool(name, spec, function)


def model_of(model: Any) -> tuple[str, str]:
    """Return the wire format whose rules the model has, and its name."""
    kinds = " ".join(kind.__name__ for kind in type(model).__mro__)
    name = str(model.get_config().get("model_id") or "")
    if "Bedrock" in kinds:
        return ("anthropic" if "claude" in name else "openai"), f"bedrock:{name}"
    return wire_format(kinds), name


def usage_of(usage: Any) -> Usage | None:
    """Return the usage of a reply; None if none was reported.

    Some models of Strands count the cache's tokens among the input tokens, others apart. The total has them once.
    """
    read, write = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    output, total = usage["outputTokens"], usage.get("totalTokens") or usage["inputTokens"] + usage["outputTokens"]
    return usage_of_totals(total - output, read, write, output) if total else None


def _add(shown: list[Any], message: Any) -> None:
    """Add a message. Roles alternate, and the results of one reply are in one message."""
    if shown and shown[-1]["role"] == message["role"]:
        shown[-1] = {"role": message["role"], "content": [*shown[-1]["content"], *message["content"]]}
    else:
        shown.append(message)
