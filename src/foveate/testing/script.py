"""What a script says, and what goes wrong in one: the answers of a scripted model, and the errors of its providers.

Knows the words in which the providers tell their errors. Knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..core.messages import Message
from .bodies import Refusal

__all__ = [
    "Answer",
    "Answered",
    "Cut",
    "Fails",
    "IllegalRequest",
    "ProviderError",
    "Said",
    "Script",
    "Slow",
    "Stops",
    "failure",
    "too_long",
]

Said = str | Message | Mapping[str, Any]
"""Text, a message of the assistant, or a whole response as the provider writes it."""


class Slow(NamedTuple):
    """An answer that a server begins at once, where it streams, and finishes so many seconds later.

    From the model itself it comes without any waiting.
    """

    answer: Said
    seconds: float


class Stops(NamedTuple):
    """An answer that ended for a reason of its own: what the provider says of it, such as `max_tokens`."""

    answer: Said
    reason: str


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


Answer = Said | Cut | Slow | Stops | Fails | Exception
"""What a script says: an answer, what goes wrong with one, or an error that is raised as it is."""

Script = Iterable[Answer] | Callable[[dict[str, Any]], Answer]
"""Answers in their order, or a function of the request."""


class Answered(NamedTuple):
    """What a script has for one request."""

    response: dict[str, Any]
    cut: Cut | None = None
    """Set where it is cut on its way."""
    seconds: float = 0.0
    """How long a server waits before it has said all of it."""


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


def failure(provider: str, fails: Fails) -> ProviderError:
    """The error of a provider that has trouble."""
    kind = _KINDS.get(fails.status, "api_error")
    headers = {} if fails.retry_after is None else {"retry-after": f"{fails.retry_after:g}"}
    if provider == "anthropic":
        error: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": fails.message}}
    else:
        error = {"error": {"message": fails.message, "type": kind, "param": None, "code": None}}
    return ProviderError(fails.status, error, headers)


def too_long(provider: str, size: int, window: int, beside: int) -> ProviderError:
    """The error for a prompt of `size` tokens, `beside` of them in its tools, where the window is smaller."""
    if provider == "anthropic":
        return failure(provider, Fails(400, message=f"prompt is too long: {size} tokens > {window} maximum"))
    apart = f" ({size - beside} in the messages, {beside} in the functions)" if beside else ""
    said = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens"
        f"{apart}. Please reduce the length of the messages{' or functions' if beside else ''}."
    )
    error = {"message": said, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
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
"""What Anthropic calls the errors with these numbers; what it says of others is `api_error`."""
