"""A scripted model: clients that stand in for the SDKs' and answer by script, as the providers would.

Every request is checked as the provider checks it (`bodies`), counted, and kept. An illegal one is a failure of the
test; one larger than the window is refused in the provider's own words. Replies look like the SDK's objects:
attributes, and `model_dump()`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from ..core.messages import Message, Text
from ..errors import BrokenStream
from ..ports import Delta, Whole
from .bodies import BodyChecker, Refusal
from .pieces import deltas
from .responses import SIGNED, Reply, anthropic_response, openai_response, shown, sign, wired
from .usage import Billed, Meter, tokens_of

__all__ = [
    "Answer",
    "Answered",
    "Cut",
    "Fails",
    "IllegalRequest",
    "ProviderError",
    "Reply",
    "ScriptedModel",
    "Slow",
    "StubAnthropic",
    "StubOpenAI",
]

Said = str | Message | Mapping[str, Any]
"""Text, a message of the assistant, or a whole response as the provider writes it."""


class Slow(NamedTuple):
    """An answer that a server begins at once, where it streams, and finishes so many seconds later.

    From the model itself it comes without any waiting.
    """

    answer: Said
    seconds: float


class Fails(NamedTuple):
    """The provider has trouble, and says so in its own shape."""

    status: int
    """Of HTTP, such as 429, 500 or 529."""
    retry_after: float | None = None
    """Seconds after which it wants to be asked again, as it says in a header."""
    message: str = "It did not work out."


class Cut(NamedTuple):
    """An answer whose connection breaks in the middle: a stream brings about half of it, and nothing is whole."""

    answer: Said
    politely: bool = False
    """Whether a server ends its response as if all were said, as some proxies do, instead of breaking off."""
    why: Fails | None = None
    """What the provider says of it instead, in the middle of the stream."""


Answer = Said | Cut | Slow | Fails | Exception
"""What a script says: an answer, what goes wrong with one, or an error that is raised as it is."""

Script = Iterable[Answer] | Callable[[dict[str, Any]], Answer]
"""Answers in their order, or a function of the request."""


class IllegalRequest(AssertionError):
    """The provider would refuse this request. `refusals` says why."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("The provider would refuse this request:\n" + "\n".join(map(str, refusals)))


class ProviderError(Exception):
    """An error of the API, as its SDK raises it: `status_code`, `body`, `message`, `code`, and its `headers`."""

    def __init__(self, status_code: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self.status_code, self.body, self.headers = status_code, body, dict(headers or {})
        self.message: str = body["error"]["message"]
        self.code: str | None = body["error"].get("code")
        super().__init__(f"Error code: {status_code} - {body}")


class Answered(NamedTuple):
    """What a script has for one request."""

    response: dict[str, Any]
    cut: Cut | None = None
    """Set where it is cut on its way."""
    seconds: float = 0.0
    """How long a server waits before it has said all of it."""


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

    def stream(self, body: Mapping[str, Any]) -> Iterator[Delta | Whole] | AsyncIterator[Delta | Whole]:
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
        match answer:
            case Cut() | Slow():
                answer = answer.answer
            case Fails():
                raise self._failure(answer)
            case Exception():
                raise answer
        with self._lock:
            billed = self._meter.take(kept)
            self.billed.append(billed)
        if isinstance(answer, Mapping):
            return Answered(copy.deepcopy(dict(answer)), cut, seconds)
        said = Message("assistant", (Text(answer),)) if isinstance(answer, str) else answer
        written = anthropic_response if self.provider == "anthropic" else openai_response
        return Answered(written(said, number, billed, kept), cut, seconds)

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
            raise self._too_long(request, size, self.window)

    def _next(self, answers: Iterator[Answer], number: int) -> Answer:
        try:
            return next(answers)
        except StopIteration:
            raise AssertionError(f"The script has {number - 1} answers, and this is request {number}.") from None

    def cut(self, cut: Cut) -> ProviderError | BrokenStream:
        """The error for an answer that is cut: the provider's own, if it says one."""
        if cut.why is not None:
            return self._failure(cut.why)
        return BrokenStream("The connection broke before the answer was whole. Nothing of it was recorded; ask again.")

    def _failure(self, fails: Fails) -> ProviderError:
        kind = _KINDS.get(fails.status, "api_error")
        headers = {} if fails.retry_after is None else {"retry-after": f"{fails.retry_after:g}"}
        if self.provider == "anthropic":
            error: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": fails.message}}
        else:
            error = {"error": {"message": fails.message, "type": kind, "param": None, "code": None}}
        return ProviderError(fails.status, error, headers)

    def _too_long(self, request: Mapping[str, Any], size: int, window: int) -> ProviderError:
        if self.provider == "anthropic":
            said = f"prompt is too long: {size} tokens > {window} maximum"
            return ProviderError(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
        beside = tokens_of(request["tools"]) - 4 if request.get("tools") else 0
        apart = f" ({size - beside} in the messages, {beside} in the functions)" if beside else ""
        said = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens"
            f"{apart}. Please reduce the length of the messages{' or functions' if beside else ''}."
        )
        error = {
            "message": said,
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
        return ProviderError(400, {"error": error})

    def _compare(self, request: Mapping[str, Any]) -> None:
        for position, message in enumerate(request["messages"]):
            for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                signature = block.get("signature") or block.get("data")
                if block["type"] not in ("thinking", "redacted_thinking") or not str(signature).startswith(SIGNED):
                    continue
                if signature != sign(request, position):
                    said = f"messages.{position}.content.{place}: Invalid `signature` in `{block['type']}` block"
                    error = {"type": "invalid_request_error", "message": said}
                    raise ProviderError(400, {"type": "error", "error": error})


_KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""What Anthropic calls the errors with these numbers; what it says of others is `api_error`."""


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
