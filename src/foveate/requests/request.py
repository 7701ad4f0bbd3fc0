"""A request of a provider's API with the view in place of its messages.

A request whose view shows the client's own list is sent as the client wrote it. In any other, the messages that are
shown unchanged, and every field next to the messages, keep their bytes. With the tool `expand`, its definition stands
behind the client's tools, and its instruction behind the system prompt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, NamedTuple

from ..conversation import Conversation
from ..core.length_errors import is_too_long
from ..core.messages import Message
from ..core.stamps import Usage
from ..core.view import View
from ..errors import BadInput, ConflictError, FoveateError
from ..expand.tool import NAMES
from .answer import Answer
from .apis import Api, model_name
from .body import RequestBody
from .framed_answer import FramedAnswer
from .writing import RequestWriter, has_functions, json_value

__all__ = [
    "LENGTH_STATUSES",
    "MAX_EXPANSIONS",
    "AnsweredCall",
    "ApiError",
    "NotContinued",
    "WireRequest",
    "length_error",
]

_log = logging.getLogger("foveate")

MAX_EXPANSIONS: Final = 8
"""Replies of one answer whose calls of `expand` get originals. The next is refused, and one more ends the answer."""
LENGTH_STATUSES: Final = (400, 413, 422, 429, 500)
"""Statuses of errors that may refuse a request as too long. Sources: OpenAI (429), Groq (413), TGI (422), llama.cpp
(500)."""
_ATTEMPTS: Final = 4
"""Attempts to record an expansion while requests of other processes move the conversation."""
_REFUSAL: Final = (
    f"This answer has used `expand` {MAX_EXPANSIONS} times. Go on with what you have, and say what is missing."
)


class ApiError(Exception):
    """The provider's answer to a request that it refused, as an exception of an SDK."""

    def __init__(self, status_code: int, content: bytes) -> None:
        super().__init__(content.decode(errors="replace")[:10_000])
        self.status_code = status_code
        """The HTTP status of the answer."""

    @property
    def is_too_long(self) -> bool:
        """Return whether the provider refused the request as too long."""
        return is_too_long(str(self), self.status_code)


def length_error(status: int, content: bytes) -> ApiError | None:
    """Return a provider's answer as an error if it refuses the request as too long; None for any other answer."""
    error = ApiError(status, content)
    return error if status in LENGTH_STATUSES and error.is_too_long else None


class NotContinued(Exception):
    """The model asked to expand something, and its answer cannot go on. The client has to send its request again."""


class AnsweredCall(NamedTuple):
    """A request to the provider whose reply was recorded."""

    id: str
    """The id of the reply; "" if only its usage was recorded."""
    reply: Message
    """The reply of the model, in the wire format."""
    view: View
    """The view that it showed."""
    tokens_history: int
    """Tokens of the whole history that it would have had without a view."""
    usage: Usage
    """Tokens that the provider reported."""


class WireRequest:
    """One request of a client, and its answer.

    Send `content`, and pass on what `received` (a whole answer) or `feed` and `ended` (a stream) return. If the model
    only asked to expand something, there is a `follow_up`: send `content` again, and pass its answer in the same way.
    There is one too if the answer has the status 200, and is an error for a request that is too long.
    """

    def __init__(
        self,
        chat: Conversation,
        api: Api,
        content: bytes | RequestBody,
        *,
        adds_marks: bool = False,
        window: int | None = None,
        watch: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Take over the list of messages in a request, and plan.

        `content`: the body of the request, or what is known of it already. `adds_marks`: mark every request for
        Anthropic's cache if the client marks none. Without it, only requests that offer `expand` are marked, behind the
        first reply. `window`: as for `Conversation.prepare`. `watch`: returns the context in which an answer uses
        the store; its errors are those of the store.

        Raises BadInput for a request whose messages cannot be replaced, ValueError for a body that is no JSON object,
        KeyError for one without messages, and what `Conversation.prepare` raises. The request can then be sent as it
        is.
        """
        body = content if isinstance(content, RequestBody) else RequestBody(api, content)
        if state := body.state:
            raise BadInput(f"{state} lets the provider keep the history. Send whole lists instead.")
        if _answers_asked(api, body) != 1:
            raise BadInput("A request for several answers (n=) keeps its messages. Send n requests instead.")
        if api.is_bedrock and "anthropic_version" not in body.fields:
            raise BadInput(f"The request to {body.model} has no anthropic_version. Only those to Claude get views.")
        self._api, self._body, self._window, self._watch = api, body, window, watch
        raws, messages = _messages(api, body)
        self._writer = RequestWriter(api, body, raws, adds_marks=adds_marks)
        self._system = body.value(body.system_key) if body.system_key else None
        if not isinstance(self._system, dict if api.format == "gemini" else str | list) and self._system is not None:
            raise BadInput(f"{body.system_key} has the wrong type. Correct it: the provider refuses it too.")
        self._tools = body.value("tools") or ()
        self._model = model_name(api.format, body.model) or None
        self._may_expand = _may_expand(api, body)
        self.chat = chat
        """The conversation that the request continues."""
        self.is_stream: bool = body.is_stream
        """Whether the client wants a stream."""
        self.content = b""
        """The body to send next."""
        self.betas: tuple[str, ...] = ()
        """Values that the header `anthropic-beta` needs in addition to those of the client."""
        self.follow_up: bytes | None = None
        """The body to send before the client's answer is complete; None if nothing is to be sent."""
        self.tokens_history = 0
        """Tokens of all messages that the client did not remove: what the request would have without a view."""
        self.expansions = 0
        """Number of replies that only asked to expand something."""
        self.retries = 0
        """Number of times that the request was made smaller."""
        self._answered: list[AnsweredCall] = []
        self._failure = ""  # Why the newest reply, which asked to expand something, is not continued
        self._prepare(messages)
        ours = frozenset(name for name in NAMES if chat.answers(name))
        kind = FramedAnswer if api.is_bedrock else Answer
        self._answer = kind(api.format, ours.__contains__ if ours else None)

    @property
    def model(self) -> str:
        """The name of the model, with `gateway:` before one that the API does not serve itself."""
        return self._model or ""

    @property
    def is_complete(self) -> bool:
        """Return whether the newest answer had its end."""
        return self._answer.reply() is not None

    def _prepare(self, messages: list[Any] | None = None) -> None:
        with self.chat._agent.lock:
            self.view = self.chat.prepare(
                messages=messages,
                system=self._system,
                tools=self._tools,
                model=self._model,
                window=self._window,
                may_expand=self._may_expand,
            )
            """The view that the request shows."""
            self._write()

    def _write(self) -> None:
        """Write the body of the next request."""
        self._place = self.chat.tip, self.view.turn  # Others of the conversation leave it at another place.
        self.content, self.betas, self.tokens_history = self._writer.write(self.chat, self.view)

    @contextmanager
    def _resumed(self) -> Iterator[None]:
        """Use the conversation alone in this block, as this request left it.

        Several requests may be open, such as two questions behind one list. Each shows its own list.
        """
        chat = self.chat
        with chat._agent.lock:
            chat.refresh()
            if (chat.tip, chat.view.turn) != self._place:
                self._prepare(_messages(self._api, self._body)[1])
            yield

    # -------------------------------------------------------------------------------------------------------- answers

    def refused(self, status: int, content: bytes) -> bool:
        """Return whether the provider refused the request as too long, and `content` is smaller now."""
        error = length_error(status, content)
        return error is not None and self._is_smaller_after(error)

    def _is_smaller_after(self, error: ApiError) -> bool:
        """Return whether `content` is smaller now, after this refusal as too long."""
        try:
            with self._watch(), self._resumed():
                self.chat.retry_smaller(error)
                self.view = self.chat.view
                self._write()
        except (ApiError, FoveateError):
            return False
        self.retries += 1
        if self.follow_up is not None:
            self.follow_up = self.content
        return True

    def received(self, content: bytes) -> bytes | None:
        """Record a whole answer, and return what the client gets: None if there is a `follow_up` first.

        Raises NotContinued.
        """
        self.follow_up = None
        shown = self._answer.receive(content)
        if self._is_sent_again() or self._is_continued():
            return None
        if self._failure:
            raise NotContinued(self._failure)
        return self._answer.joined() if shown is None else shown

    def feed(self, piece: bytes) -> bytes:
        """Return what the client gets for a piece of a streamed answer. Neither reads nor changes the conversation."""
        return self._answer.feed(piece)

    def ended(self) -> bytes:
        """Record a stream that was read to its end, and return the rest for the client.

        If there is a `follow_up`, its stream continues the answer. A stream that was cut is not recorded. One that
        cannot be continued ends with an error.
        """
        self.follow_up = None
        if self._is_sent_again():
            return b""
        rest = self._answer.rest()
        if self._is_continued():
            return rest
        return rest + (self._answer.failure(503, self._failure.encode()) if self._failure else self._answer.close())

    def _record(self, reply: dict[str, Any] | Message) -> str:
        """Record a reply behind the list of this request; return its id.

        A Message is a reply whose usage is recorded already. Raises ConflictError if another request moved on.
        """
        session, turn = self.chat._session, self.view.turn
        with session.lock:
            id = session.exchange.record(reply, None, call=turn, after=self._place[0])
        if not isinstance(reply, Message):
            message, usage = self.chat.format.parse_reply(reply)
            self._answered.append(AnsweredCall(id, message, self.view, self.tokens_history, usage))
        return id

    def _record_or_bill(self, reply: dict[str, Any]) -> None:
        """Record a reply, or only its usage if another request moved on. Raises ConflictError then."""
        if self._api.format == "gemini" and self._bill_alone(reply):
            return
        try:
            self._record(reply)
        except ConflictError:
            self.chat.bill(self.view.turn, self.chat.format.parse_reply(reply)[1])
            raise
        with self.chat._session.lock:
            self.chat._session.exchange.after_reply()

    def _bill_alone(self, reply: dict[str, Any]) -> bool:
        """Record only the usage of a reply of Gemini with a call that has no id; return False for any other reply.

        Some clients give such a call an id, as Gemini CLI does, and its result has the same. So the next list brings
        the reply.
        """
        message, usage = self.chat.format.parse_reply(reply)
        lacks_ids = any(call.call_id == call.name for call in message.calls)
        if not lacks_ids or any(self.chat.answers(call.name) for call in message.calls):
            return False
        self.chat.bill(self.view.turn, usage)
        self.chat._session.state.limits.answered()
        self._answered.append(AnsweredCall("", message, self.view, self.tokens_history, usage))
        return True

    def _expand(self, reply: dict[str, Any]) -> bool:
        """Record a reply that only asks to expand something. Return whether a follow-up is prepared."""
        refusal = _REFUSAL if self.expansions > MAX_EXPANSIONS else ""
        unrecorded: dict[str, Any] | Message = reply
        for attempt in range(_ATTEMPTS):
            with self._resumed():
                try:
                    id = self._record(unrecorded)
                    unrecorded = self.chat.format.parse_reply(reply)[0]
                    self.chat._session.exchange.after_reply(refusal, id)
                    if self.expansions > MAX_EXPANSIONS + 1:
                        return False
                    self._prepare()
                    self._require_newest(id)
                except (ConflictError, BadInput):  # A request of another process moved on, or departed from the place.
                    if attempt == _ATTEMPTS - 1:
                        raise
                    self._place = "", 0  # Take the list over again.
                    continue
                return True
        return False

    def _require_newest(self, reply: str) -> None:
        """Raise ConflictError if the view does not end with this reply and its results."""
        for entry in reversed(self.view.entries):
            if entry.id == reply:
                return
            if entry.stamp.origin not in ("tool", "derived", "plugin"):
                break
        raise ConflictError(f"Another request of {self.chat.name!r} went on first.")

    def take_answered(self) -> list[AnsweredCall]:
        """Return the calls whose replies were recorded since the last time."""
        answered, self._answered = self._answered, []
        return answered

    def failure(self, status: int, content: bytes) -> bytes:
        """Return the event that ends a stream whose `follow_up` failed with this error of the provider."""
        return self._answer.failure(status, content)

    def _is_sent_again(self) -> bool:
        """Return whether the answer was an error for a request that is too long, and a smaller one follows.

        LM Studio answers with the status 200, and with the error in the stream; OpenRouter does so in a whole answer.
        """
        error = ApiError(200, self._answer.error)
        if not error.is_too_long or not self._is_smaller_after(error):
            return False
        self._answer.replace_with_next()
        self.follow_up = self.content
        return True

    def _is_continued(self) -> bool:
        """Record the reply, and prepare a follow-up if it continues the answer. Return whether there is one."""
        reply = self._answer.reply()
        if reply is None:
            return False
        more = self._answer.asks_only_us
        self.expansions += more
        try:
            with self._watch():
                if not more:
                    self._record_or_bill(reply)
                    return False
                if not self._expand(reply):
                    return False
        except Exception as error:  # The next list brings the reply again.
            is_conflict = isinstance(error, ConflictError)
            reason = f"Another request of {self.chat.name!r} went on first." if is_conflict else str(error)
            unexpected = None if isinstance(error, FoveateError) else error
            _log.warning("A reply was not recorded, or could not be continued: %s", reason, exc_info=unexpected)
            self._failure = f"foveate could not continue the answer. Send the request again. {reason}" if more else ""
            return False
        self._answer.continue_with_next()
        self.follow_up = self.content
        return True


def _answers_asked(api: Api, body: RequestBody) -> Any:
    """Return how many answers the client wants."""
    if api.format != "gemini":
        return body.value("n") or 1
    config = body.value("generationConfig") or body.value("generation_config")
    return (config.get("candidateCount") or config.get("candidate_count") or 1) if isinstance(config, dict) else 1


def _may_expand(api: Api, body: RequestBody) -> bool:
    """Return whether the request may offer the tool `expand`."""
    match api.format:
        case "openai_responses":
            # A response that the provider stores may be continued by its id. A call of ours has no result there.
            return body.value("store") is False
        case "gemini":  # Most models refuse Google's own tools and functions in one request.
            tools = body.value("tools") or ()
            return not tools or any(has_functions(tool) for tool in tools)
        case _:
            return True


def _messages(api: Api, body: RequestBody) -> tuple[list[bytes], list[Any]]:
    """Return the items of a list of messages as they came, and in the form that the conversation reads."""
    if body.items is None and api.format != "openai_responses":
        raise BadInput(f"{api.messages} is a text. Send a list of messages.")
    if body.items is None:
        text = bytes(body.fields[api.messages])
        return [b'{"role":"user","content":' + text + b"}"], [{"role": "user", "content": json_value(text)}]
    if api.format == "openai_responses":  # Several of its items form one message, so all must be read.
        return body.items, body.values
    return body.items, list(body.items)
