"""A scripted model that answers like a provider.

It checks every request as the provider does (`bodies`), counts it and keeps it. An illegal request fails the test; a
request larger than the window gets the provider's own error. Replies look like the SDK's objects: attributes, and
`model_dump()`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from typing import Any

from ..core.messages import Message, Text
from ..errors import BrokenStream
from ..ports import Delta, StreamEnd
from ..ports.reply_streams import AsyncReplyStream, JoinedPieces, ReplyStream
from .bodies import BodyChecker
from .gemini import gemini_response
from .openai_responses import response_of
from .responses import (
    SIGNED,
    Reply,
    anthropic_response,
    as_reply,
    as_values,
    deltas,
    gemini_reply,
    openai_response,
    sign,
)
from .script import (
    CutReply,
    Failure,
    IllegalRequest,
    ProviderError,
    Script,
    ScriptedReply,
    ScriptItem,
    SlowReply,
    StoppedReply,
    failure,
    too_long,
)
from .usage import BilledTokens, Meter, tokens_of

__all__ = ["ScriptedModel"]

_MAKERS = {"anthropic": anthropic_response, "openai": openai_response, "openai_responses": response_of}
_MAKERS |= {"gemini": gemini_response}


def _stop(response: dict[str, Any], reason: str) -> None:
    """Let a response end for this reason, in the words of its provider."""
    if "output" in response:
        response |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    elif "choices" in response:
        response["choices"][0]["finish_reason"] = reason
    elif "candidates" in response:
        response["candidates"][0]["finishReason"] = reason
    else:
        response["stop_reason"] = reason


class ScriptedModel:
    """Answers requests by a script. `requests` holds a copy of each legal one, `billed` the cost of each.

    It is a `ports.StreamingModel`: `complete` and `stream` return the same content, `stream` word by word. `provider`:
    "anthropic", "openai", "openai_responses" or "gemini", the format of requests and responses. With `asynchronous`,
    the result of `complete` is awaitable, and `stream` returns an async iterator. Several threads may call it; they
    call a script that is a function at the same time.

    Raises IllegalRequest for a request that the provider would refuse, and ProviderError if it exceeds the `window` (in
    tokens; None: no limit). `strict` also refuses unknown keys. With `binds_reasoning`, thinking signed here is
    accepted only after the same system prompt, tools and messages as before (F05).
    """

    def __init__(
        self,
        script: Script,
        provider: str = "anthropic",
        *,
        window: int | None = None,
        strict: bool = False,
        binds_reasoning: bool = False,
        asynchronous: bool = False,
    ) -> None:
        self.provider = provider
        """The format of requests and responses."""
        self.name, self.format = f"{provider}:scripted", provider
        self.window = window
        """The model's window in tokens; larger requests are refused. None: no limit."""
        self.requests: list[dict[str, Any]] = []
        """Each legal request, in order."""
        self.billed: list[BilledTokens] = []
        """The usage of each answer, in order."""
        self._answers = script if callable(script) else iter(script)
        self._binds = binds_reasoning
        self._asynchronous = asynchronous
        self._checker = BodyChecker(provider, strict=strict)
        self._meter = Meter(marks=provider == "anthropic")
        self._lock = threading.Lock()

    def complete(self, body: Mapping[str, Any]) -> Any:
        """Return the response as an object of the SDK, a Reply, or an awaitable of it if this model is asynchronous."""
        return self._later(body) if self._asynchronous else self._as_object(self.reply(body))

    def stream(self, body: Mapping[str, Any]) -> Any:
        """Return an iterator over the parts of the response, and last the whole. A cut reply yields half of its
        parts, then raises BrokenStream or the provider's error. Its method `partial` returns the parts so far.
        """
        arrived = JoinedPieces(self.format)
        pieces = self._pieces(body, arrived)
        if self._asynchronous:
            return AsyncReplyStream(_later(pieces), arrived.partial)
        return ReplyStream(pieces, arrived.partial)

    def reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to one request as plain values. Raises BrokenStream if it is cut."""
        answered = self.answer(request)
        if answered.cut:
            raise self.cut(answered.cut)
        return answered.response

    def answer(self, request: Mapping[str, Any]) -> ScriptedReply:
        """Return the response to one request and the faults of its delivery."""
        copied: dict[str, Any] = as_values(request)
        with self._lock:
            self._check(copied)
            self.requests.append(copied)
            number = len(self.requests)
            answer = None if callable(self._answers) else self._next(self._answers, number)
        if answer is None:
            assert callable(self._answers)
            answer = self._answers(copied)
        cut = answer if isinstance(answer, CutReply) else None
        seconds = answer.seconds if isinstance(answer, SlowReply) else 0.0
        reason = answer.reason if isinstance(answer, StoppedReply) else ""
        match answer:
            case CutReply() | SlowReply() | StoppedReply():
                answer = answer.answer
            case Failure():
                raise failure(self.provider, answer)
            case Exception():
                raise answer
        with self._lock:
            billed = self._meter.take(copied)
            self.billed.append(billed)
        if isinstance(answer, Mapping):
            return ScriptedReply(copy.deepcopy(dict(answer)), cut, seconds)
        message = Message("assistant", (Text(answer),)) if isinstance(answer, str) else answer
        response = _MAKERS[self.provider](message, number, billed, copied)
        if reason:
            _stop(response, reason)
        return ScriptedReply(response, cut, seconds)

    async def _later(self, body: Mapping[str, Any]) -> Reply:
        return self._as_object(self.reply(body))

    def _as_object(self, response: Mapping[str, Any]) -> Reply:
        return gemini_reply(response) if self.provider == "gemini" else as_reply(response)

    def _pieces(self, body: Mapping[str, Any], arrived: JoinedPieces) -> Generator[Delta | StreamEnd]:
        answered = self.answer(body)
        parts = list(deltas(answered.response))
        for part in parts[: len(parts) // 2] if answered.cut else parts:
            arrived.add(part)
            yield part
        if answered.cut:
            raise self.cut(answered.cut)
        yield StreamEnd(self._as_object(answered.response))

    def _check(self, request: dict[str, Any]) -> None:
        if refusals := self._checker.check(request):
            raise IllegalRequest(refusals)
        if self._binds:
            self._compare(request)
        if self.window is not None and (size := self._meter.count(request).total) > self.window:
            tools = tokens_of(request["tools"]) - 4 if request.get("tools") else 0
            raise too_long(self.provider, size, self.window, tools)

    def _next(self, answers: Iterator[ScriptItem], number: int) -> ScriptItem:
        try:
            return next(answers)
        except StopIteration:
            raise AssertionError(f"The script has {number - 1} answers, and this is request {number}.") from None

    def cut(self, cut: CutReply) -> ProviderError | BrokenStream:
        """Return the error of a cut reply: the provider's own error if the script has one."""
        if cut.error is not None:
            return failure(self.provider, cut.error)
        return BrokenStream("The connection broke before the answer was whole. Nothing of it was recorded; ask again.")

    def _compare(self, request: Mapping[str, Any]) -> None:
        for position, message in enumerate(request["messages"]):
            for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                signature = block.get("signature") or block.get("data")
                if block["type"] not in ("thinking", "redacted_thinking") or not str(signature).startswith(SIGNED):
                    continue
                if signature != sign(request, position):
                    problem = f"messages.{position}.content.{place}: Invalid `signature` in `{block['type']}` block"
                    raise failure("anthropic", Failure(400, message=problem))


async def _later(pieces: Generator[Delta | StreamEnd]) -> AsyncGenerator[Delta | StreamEnd]:
    for piece in pieces:
        yield piece
