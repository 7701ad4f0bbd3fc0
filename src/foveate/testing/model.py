"""A scripted model: answers by script, as a provider would.

Every request is checked as the provider checks it (`bodies`), counted, and kept. An illegal one is a failure of the
test; one larger than the window is refused in the provider's own words. Replies look like the SDK's objects:
attributes, and `model_dump()`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from ..core.messages import Message, Text
from ..errors import BrokenStream
from ..ports import Delta, Whole
from .bodies import BodyChecker
from .pieces import deltas
from .responses import SIGNED, Reply, anthropic_response, openai_response, shown, sign, wired
from .script import Answer, Answered, Cut, Fails, IllegalRequest, ProviderError, Script, Slow, Stops, failure, too_long
from .usage import Billed, Meter, tokens_of

__all__ = ["ScriptedModel"]


class ScriptedModel:
    """Answers requests by a script. `requests` holds a copy of each that was legal, `billed` what each cost.

    It is a `ports.StreamingModel`: `complete` and `stream` say the same, the latter a word at a time. `provider`:
    "anthropic" or "openai", whose requests and responses it speaks. Where it is `asynchronous`, what `complete`
    returns is awaited, and `stream` is iterated over by `async for`. May be called from several threads; a script that
    is a function is then called by several at once.

    Raises IllegalRequest for what the provider would refuse, and ProviderError for what does not fit the `window` (in
    tokens; None: everything fits). With `strict`, unknown keys are refused too. With `binds_reasoning`, thinking that
    was signed here is taken back only after the very system prompt, tools and messages that came before it (F05).
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
        self.name, self.format = f"{provider}:scripted", provider
        self.window = window
        self.requests: list[dict[str, Any]] = []
        self.billed: list[Billed] = []
        self._answers = script if callable(script) else iter(script)
        self._binds = binds_reasoning
        self._asynchronous = asynchronous
        self._checker = BodyChecker(provider, strict=strict)
        self._meter = Meter(marks=provider == "anthropic")
        self._lock = threading.Lock()

    def complete(self, body: Mapping[str, Any]) -> Any:
        """The response to a request as the SDK's object, a Reply; to be awaited if this model is asynchronous."""
        return self._later(body) if self._asynchronous else shown(self.reply(body))

    def stream(self, body: Mapping[str, Any]) -> Any:
        """The same in pieces, and last the whole of it. Of an answer that is cut, half the pieces, then
        BrokenStream, or what the provider says.
        """
        return self._pieces_later(body) if self._asynchronous else self._pieces(body)

    def reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response to one request, as plain values. Raises BrokenStream where it is cut."""
        answered = self.answer(request)
        if answered.cut:
            raise self.cut(answered.cut)
        return answered.response

    def answer(self, request: Mapping[str, Any]) -> Answered:
        """The response to one request, and what is to happen to it on its way."""
        kept: dict[str, Any] = wired(request)
        with self._lock:
            self._check(kept)
            self.requests.append(kept)
            number = len(self.requests)
            answer = None if callable(self._answers) else self._next(self._answers, number)
        if answer is None:
            assert callable(self._answers)
            answer = self._answers(kept)
        cut = answer if isinstance(answer, Cut) else None
        seconds = answer.seconds if isinstance(answer, Slow) else 0.0
        why = answer.reason if isinstance(answer, Stops) else ""
        match answer:
            case Cut() | Slow() | Stops():
                answer = answer.answer
            case Fails():
                raise failure(self.provider, answer)
            case Exception():
                raise answer
        with self._lock:
            billed = self._meter.take(kept)
            self.billed.append(billed)
        if isinstance(answer, Mapping):
            return Answered(copy.deepcopy(dict(answer)), cut, seconds)
        said = Message("assistant", (Text(answer),)) if isinstance(answer, str) else answer
        written = anthropic_response if self.provider == "anthropic" else openai_response
        response = written(said, number, billed, kept)
        if why:
            ended = response if self.provider == "anthropic" else response["choices"][0]
            ended["stop_reason" if self.provider == "anthropic" else "finish_reason"] = why
        return Answered(response, cut, seconds)

    async def _later(self, body: Mapping[str, Any]) -> Reply:
        return shown(self.reply(body))

    def _pieces(self, body: Mapping[str, Any]) -> Iterator[Delta | Whole]:
        answered = self.answer(body)
        pieces = list(deltas(answered.response))
        yield from pieces[: len(pieces) // 2] if answered.cut else pieces
        if answered.cut:
            raise self.cut(answered.cut)
        yield Whole(shown(answered.response))

    async def _pieces_later(self, body: Mapping[str, Any]) -> AsyncIterator[Delta | Whole]:
        for piece in self._pieces(body):
            yield piece

    def _check(self, request: dict[str, Any]) -> None:
        if refusals := self._checker.check(request):
            raise IllegalRequest(refusals)
        if self._binds:
            self._compare(request)
        if self.window is not None and (size := self._meter.count(request).total) > self.window:
            beside = tokens_of(request["tools"]) - 4 if request.get("tools") else 0
            raise too_long(self.provider, size, self.window, beside)

    def _next(self, answers: Iterator[Answer], number: int) -> Answer:
        try:
            return next(answers)
        except StopIteration:
            raise AssertionError(f"The script has {number - 1} answers, and this is request {number}.") from None

    def cut(self, cut: Cut) -> ProviderError | BrokenStream:
        """The error for an answer that is cut: the provider's own, if it says one."""
        if cut.why is not None:
            return failure(self.provider, cut.why)
        return BrokenStream("The connection broke before the answer was whole. Nothing of it was recorded; ask again.")

    def _compare(self, request: Mapping[str, Any]) -> None:
        for position, message in enumerate(request["messages"]):
            for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                signature = block.get("signature") or block.get("data")
                if block["type"] not in ("thinking", "redacted_thinking") or not str(signature).startswith(SIGNED):
                    continue
                if signature != sign(request, position):
                    said = f"messages.{position}.content.{place}: Invalid `signature` in `{block['type']}` block"
                    raise failure("anthropic", Fails(400, message=said))
