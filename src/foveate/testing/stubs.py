"""Stub clients and a stub summarizer with scripted answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from ..core.summaries import Summary, SummaryRequest
from .model import ScriptedModel
from .responses import Reply, as_reply, gemini_reply
from .script import Script
from .usage import Meter

__all__ = ["ScriptedSummarizer", "StubAnthropic", "StubGemini", "StubOpenAI"]


class StubAnthropic:
    """A stub of `anthropic.Anthropic`: `client.messages.create(...)` and `.count_tokens(...)`.

    >>> client = StubAnthropic(["Hello."])
    >>> reply = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    >>> reply.stop_reason, reply.content[0].text, reply.usage.input_tokens
    ('end_turn', 'Hello.', 5)
    """

    def __init__(self, script: Script, **options: Any) -> None:
        self.model = ScriptedModel(script, "anthropic", **options)
        """The scripted model that answers."""
        self.messages = SimpleNamespace(create=self._create, count_tokens=self._count)
        """Has `create` and `count_tokens`, as the SDK's client."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the keyword arguments of each legal call, in order."""
        return self.model.requests

    def _create(self, **request: Any) -> Reply:
        return as_reply(self.model.reply(request))

    def _count(self, **request: Any) -> Reply:
        return Reply(input_tokens=Meter(marks=True).count(request).total)


class StubOpenAI:
    """A stub of `openai.OpenAI`: `client.chat.completions.create(...)` and `client.responses.create(...)`.

    >>> client = StubOpenAI(["Hello."])
    >>> reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    >>> reply.choices[0].finish_reason, reply.choices[0].message.content, reply.usage.prompt_tokens
    ('stop', 'Hello.', 5)
    """

    def __init__(self, script: Script, **options: Any) -> None:
        script = script if callable(script) else iter(script)  # Both APIs take their answers from one script.
        self.model = ScriptedModel(script, "openai", **options)
        """The scripted model that answers chat completions."""
        self._responses = ScriptedModel(script, "openai_responses", **options)
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))
        """Has `completions.create`, as the SDK's client."""
        self.responses = SimpleNamespace(create=self._create_response)
        """Has `create`, as the SDK's client."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the keyword arguments of each legal call of the chat completions, in order; else of the responses."""
        return self.model.requests or self._responses.requests

    def _create(self, **request: Any) -> Reply:
        return as_reply(self.model.reply(request))

    def _create_response(self, **request: Any) -> Reply:
        return as_reply(self._responses.reply(request))


class StubGemini:
    """A stub of `google.genai.Client`: `client.models.generate_content(...)`.

    >>> client = StubGemini(["Hello."])
    >>> reply = client.models.generate_content(model="m", contents=[{"role": "user", "parts": [{"text": "hi"}]}])
    >>> reply.candidates[0].finish_reason, reply.text, reply.usage_metadata.prompt_token_count
    ('STOP', 'Hello.', 5)
    """

    def __init__(self, script: Script, **options: Any) -> None:
        self.model = ScriptedModel(script, "gemini", **options)
        """The scripted model that answers."""
        self.models = SimpleNamespace(generate_content=self._generate)
        """Has `generate_content`, as the SDK's client."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the keyword arguments of each legal call, in order."""
        return self.model.requests

    def _generate(self, **request: Any) -> Reply:
        return gemini_reply(self.model.reply(request))


Answer = str | Summary | BaseException | Callable[[SummaryRequest], str | Summary]


class ScriptedSummarizer:
    """Returns scripted answers in order, repeats the last one, and keeps its requests.

    An answer is a text or a Summary, an exception to raise, or a function of the request. The object itself is the
    summarizer of a `Conversation`; its method `later` is that of an `AsyncConversation`.

    >>> summarizer = ScriptedSummarizer(["In short.", OSError("down")])
    >>> summarizer(SummaryRequest("compact", (), 100)), len(summarizer.requests)
    ('In short.', 1)
    """

    def __init__(self, answers: Iterable[Answer] = ("So far, so good.",)) -> None:
        self._answers = list(answers)
        self.requests: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> str | Summary:
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, str | Summary) else answer(request)

    async def later(self, request: SummaryRequest) -> str | Summary:
        """Return the next answer as a coroutine."""
        return self(request)
