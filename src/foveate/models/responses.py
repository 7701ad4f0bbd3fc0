"""Models of OpenAI's Responses API, through the official SDK.

The format `openai_responses` renders the request. Every request holds the whole view, so the provider stores nothing
(`store=False`), and reasoning travels encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .openai import MAX_TOKENS, create_client, import_sdk, with_options
from .sdk import RETRIES, TIMEOUT, SdkModel
from .servers import OPENAI

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["ResponsesModel", "responses_model"]

PROVIDER = "openai-responses"
"""The part before the colon in the name of such a model."""

_INCLUDE = ["reasoning.encrypted_content"]


def responses_model(
    model: str,
    client: OpenAI | AsyncOpenAI | None = None,
    *,
    base_url: str | None = None,
    asynchronous: bool = False,
    max_tokens: int = MAX_TOKENS,
    timeout: float = TIMEOUT,
    max_retries: int = RETRIES,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> ResponsesModel:
    """Return a model of the Responses API, such as `gpt-5.6`.

    `client` is an SDK client, sync or async, with its own address and retries. Without it, the model creates a client
    for its first request, for OpenAI or for the compatible server at `base_url`, with `api_key` or `OPENAI_API_KEY`;
    a server at `base_url` needs neither.
    `max_tokens` limits one answer, including its reasoning. `timeout` is in seconds until the answer, or the next piece
    of a stream. `options` go with every request, such as `{"reasoning": {"effort": "low"}}`, and replace the defaults
    `store=False` and `include=["reasoning.encrypted_content"]`; the request's own fields win over them. Raises
    MissingExtra if the SDK is not installed, BadSetting for an invalid argument.
    """
    sdk = import_sdk("A model of OpenAI's Responses API", client, "responses", base_url)
    return ResponsesModel(
        f"{PROVIDER}:{model}",
        client,
        sdk,
        base_url=base_url,
        asynchronous=asynchronous,
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=max_retries,
        options=options,
        api_key=api_key,
    )


class ResponsesModel(SdkModel):
    """A model of the Responses API (see `responses_model`)."""

    format = "openai_responses"
    """The format of its requests."""

    def __init__(self, name: str, client: Any, sdk: Any, *, base_url: str | None, **settings: Any) -> None:
        super().__init__(name, client, sdk, **settings)
        self._base_url = base_url
        self._reasons = True
        """Whether the model takes `include` for its reasoning. A model without reasoning may refuse it."""

    def _new_client(self) -> Any:
        kind = self._sdk.AsyncOpenAI if self.asynchronous else self._sdk.OpenAI
        return create_client(kind, self.name, OPENAI, self._base_url, self._key, self.max_retries)

    def _sender(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.responses.create
        return send

    def _arguments(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        include = {"include": _INCLUDE} if self._reasons else {}
        own = {"store": False, **include, "max_output_tokens": self.max_tokens}
        return {**own, **with_options(body, self.options)}

    def _alternative(self, arguments: dict[str, Any], error: Exception) -> dict[str, Any] | None:
        """Return the request without `include`, if the model has no reasoning to encrypt."""
        if getattr(error, "status_code", None) != 400 or arguments.get("include") is not _INCLUDE:
            return None
        if not re.search(r"encrypted.content|'include", f"{error} {getattr(error, 'body', '')}", re.IGNORECASE):
            return None
        self._reasons = False
        return {key: value for key, value in arguments.items() if key != "include"}
