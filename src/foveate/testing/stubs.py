"""Clients that stand in for the SDKs': the methods that send requests, answered by a scripted model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .model import ScriptedModel
from .responses import Reply, shown
from .script import Script
from .usage import Meter

__all__ = ["StubAnthropic", "StubOpenAI"]


class StubAnthropic:
    """Stands in for `anthropic.Anthropic`: `client.messages.create(...)` and `.count_tokens(...)`.

    >>> client = StubAnthropic(["Hello."])
    >>> reply = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    >>> reply.stop_reason, reply.content[0].text, reply.usage.input_tokens
    ('end_turn', 'Hello.', 5)
    """

    def __init__(self, script: Script, **options: Any) -> None:
        self.model = ScriptedModel(script, "anthropic", **options)
        self.messages = SimpleNamespace(create=self._create, count_tokens=self._count)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The keyword arguments of each legal call, in order."""
        return self.model.requests

    def _create(self, **request: Any) -> Reply:
        return shown(self.model.reply(request))

    def _count(self, **request: Any) -> Reply:
        return Reply(input_tokens=Meter(marks=True).count(request).total)


class StubOpenAI:
    """Stands in for `openai.OpenAI`: `client.chat.completions.create(...)`.

    >>> client = StubOpenAI(["Hello."])
    >>> reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    >>> reply.choices[0].finish_reason, reply.choices[0].message.content, reply.usage.prompt_tokens
    ('stop', 'Hello.', 5)
    """

    def __init__(self, script: Script, **options: Any) -> None:
        self.model = ScriptedModel(script, "openai", **options)
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The keyword arguments of each legal call, in order."""
        return self.model.requests

    def _create(self, **request: Any) -> Reply:
        return shown(self.model.reply(request))
