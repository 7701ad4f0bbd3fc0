"""Scripts of a scripted model: replies, faults of replies, and the errors of providers.

The errors have the providers' own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..core.messages import Message
from .bodies import Refusal

__all__ = [
    "CutReply",
    "Failure",
    "IllegalRequest",
    "ProviderError",
    "Script",
    "ScriptItem",
    "ScriptedReply",
    "SlowReply",
    "StoppedReply",
    "failure",
    "too_long",
]


class SlowReply(NamedTuple):
    """A reply that a streaming server begins at once and finishes after some seconds.

    Direct calls of the model do not wait.
    """

    answer: str | Message | Mapping[str, Any]
    """The reply: a text, a message of the assistant, or a whole response in the provider's format."""
    seconds: float
    """How long it takes."""


class StoppedReply(NamedTuple):
    """A reply with a given stop reason of the provider, such as `max_tokens`."""

    answer: str | Message | Mapping[str, Any]
    """The reply: a text, a message of the assistant, or a whole response in the provider's format."""
    reason: str
    """The stop reason, in the provider's words."""


class Failure(NamedTuple):
    """An error of the provider, in its own format."""

    status: int
    """HTTP status, such as 429, 500 or 529."""
    retry_after: float | None = None
    """Seconds in the retry header."""
    message: str = "It did not work out."
    """The text of the error."""


class CutReply(NamedTuple):
    """A reply whose connection breaks in the middle. A stream brings about half of it; the response is incomplete."""

    answer: str | Message | Mapping[str, Any]
    """The reply of which half arrives."""
    is_clean: bool = False
    """Whether the server ends its response normally, as some proxies do, instead of breaking the connection."""
    error: Failure | None = None
    """The provider's error in the middle of the stream instead."""


ScriptItem = str | Message | Mapping[str, Any] | CutReply | SlowReply | StoppedReply | Failure | Exception
"""A reply, a reply with a fault, an error of the provider, or an exception to raise."""

Script = Iterable[ScriptItem] | Callable[[dict[str, Any]], ScriptItem]
"""Items in order, or a function of the request."""


class ScriptedReply(NamedTuple):
    """The response to one request, and the faults of its delivery."""

    response: dict[str, Any]
    """The response in the provider's format."""
    cut: CutReply | None = None
    """Set if the reply is cut."""
    seconds: float = 0.0
    """Seconds that a server waits before it finishes the reply."""


class IllegalRequest(AssertionError):
    """The provider would refuse this request. `refusals` has the reasons."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        """The faults of the request."""
        super().__init__("The provider would refuse this request:\n" + "\n".join(map(str, refusals)))


class ProviderError(Exception):
    """An API error as its SDK raises it: `status_code`, `body`, `message`, `code` and `headers`."""

    def __init__(self, status_code: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self.status_code, self.body, self.headers = status_code, body, dict(headers or {})
        self.message: str = body["error"]["message"]
        """The text of the error."""
        self.code: str | None = body["error"].get("code")
        """The provider's name of the error."""
        super().__init__(f"Error code: {status_code} - {body}")


def failure(provider: str, fails: Failure) -> ProviderError:
    """Return the error of a provider."""
    kind = _KINDS.get(fails.status, "api_error")
    headers = {} if fails.retry_after is None else {"retry-after": f"{fails.retry_after:g}"}
    if provider == "anthropic":
        error: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": fails.message}}
    elif provider == "gemini":
        status = _STATUSES.get(fails.status, "INTERNAL")
        error = {"error": {"code": fails.status, "message": fails.message, "status": status}}
    else:
        error = {"error": {"message": fails.message, "type": kind, "param": None, "code": None}}
    return ProviderError(fails.status, error, headers)


def too_long(provider: str, size: int, window: int, tools: int) -> ProviderError:
    """Return the error for a prompt of `size` tokens, `tools` of them in its tools, that exceeds the window."""
    if provider == "anthropic":
        return failure(provider, Failure(400, message=f"prompt is too long: {size} tokens > {window} maximum"))
    if provider == "gemini":
        message = f"The input token count ({size}) exceeds the maximum number of tokens allowed ({window})."
        return failure(provider, Failure(400, message=message))
    split = f" ({size - tools} in the messages, {tools} in the functions)" if tools else ""
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens"
        f"{split}. Please reduce the length of the messages{' or functions' if tools else ''}."
    )
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    return ProviderError(400, {"error": error})


_KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""Anthropic's error types by status; the type of other errors is `api_error`."""

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""Google's names of errors by status; the name of other errors is `INTERNAL`."""
