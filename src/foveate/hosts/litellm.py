"""A logger for LiteLLM and its proxy: each model call gets the view in place of the messages.

litellm.callbacks = [FoveateLogger("sqlite:///chats.db")]

LiteLLM calls the same hooks in a program and in its proxy. They see the deployment that was chosen, so a request has
the window and the rules of its own model, also after a retry or a fallback.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.utils import supports_prompt_caching

from ..core.needs import CACHE_KEY
from ..core.profiles import is_window_documented
from ..core.stamps import Usage
from ..ports import Store
from ..requests import SERVER_STATE
from .host import find_mark, usage_of_totals
from .sdk_requests import SdkRequest, SdkRequests

__all__ = ["FoveateLogger"]

_FORMATS: Final = {
    "acompletion": "openai",
    "anthropic_messages": "anthropic",
    "aresponses": "openai_responses",
    "responses": "openai_responses",
}
"""A kind of LiteLLM's calls -> the wire format of its requests."""
_MAX_CALLS: Final = 1_000
"""Calls without a known end that are remembered. Failed calls have none."""


class _Call(NamedTuple):
    """A call that waits for its reply: its request, and the messages that it sent first."""

    request: SdkRequest
    sent: Any


class FoveateLogger(CustomLogger):
    """Shows the model what fits its window, for `acompletion`, `aresponses` and Anthropic's messages.

    The program, or the client of the proxy, keeps its own list of messages. One logger serves many conversations.
    """

    def __init__(self, store: str | Store = "memory:", **options: Any) -> None:
        """`store`: a URL, or a Store, which stays open. `options`: those of `open_conversation`, such as `window` and
        `policy`. Raises BadSetting.
        """
        super().__init__()
        # LiteLLM's loop has no code that answers calls of `expand`, so by default no request offers the tool.
        self._requests = SdkRequests({"expand": False, "store": store, **options})
        self._has_window = options.get("window") is not None
        self._calls: OrderedDict[str, _Call] = OrderedDict()
        """By LiteLLM's id of the call."""

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._requests.close()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Put the view in place of the messages of a request."""
        format = _FORMATS.get(_kind_of(call_type))
        if format is None:
            return None
        id = kwargs.get("litellm_call_id") or ""
        known = self._calls.get(id)
        if known is not None and known.request.format != format:
            return None  # LiteLLM sends a view through another of its interfaces.
        if known is not None and known.sent == kwargs.get(_list_key(format)):
            return _changed(kwargs, known.request)  # It sends a view once more.
        request = await asyncio.to_thread(self._begin, format, kwargs)
        if request is None:
            return None
        self._calls[id] = _Call(request, request.body[_list_key(format)])
        if len(self._calls) > _MAX_CALLS:
            self._calls.popitem(last=False)
        return _changed(kwargs, request)

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """Record a whole reply, in the form of its own interface."""
        request = self._request(request_data, call_type)
        if request is not None:
            del self._calls[request_data["litellm_call_id"]]
            reply = _plain(getattr(response, "response", response))  # A stream of the Responses API ends with it.
            usage = _usage_of(reply) if request.format == "openai" else None
            await asyncio.to_thread(request.record, reply, usage)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Record a reply that was streamed. LiteLLM reports it later, and Anthropic's in the form of OpenAI's."""
        known = self._calls.pop(kwargs.get("litellm_call_id") or "", None)
        if known is not None:
            reply = _plain(response_obj)
            usage = None if kwargs.get("cache_hit") else _usage_of(reply)
            await asyncio.to_thread(_record_late, known.request, reply, usage)

    async def async_post_call_failure_deployment_hook(
        self, request_data: Any, exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Learn from a prompt that was too long: the next request of the conversation is smaller."""
        request = self._request(request_data, call_type)
        if request is not None:
            status = int(getattr(exception, "status_code", 0) or 0)
            await asyncio.to_thread(request.refused, status, str(exception).encode())

    def _request(self, data: Mapping[str, Any], call_type: Any) -> SdkRequest | None:
        """Return the request of a call, if this is the interface that the program called."""
        known = self._calls.get(data.get("litellm_call_id") or "")
        if known is None or known.request.format != _FORMATS.get(_kind_of(call_type)):
            return None
        return known.request

    def _begin(self, format: str, kwargs: dict[str, Any]) -> SdkRequest | None:
        """Return the request with its view; None if it is sent as it is."""
        body = {key: kwargs[key] for key in (*_KEYS, *SERVER_STATE) if kwargs.get(key) is not None}
        key = _list_key(format)
        if isinstance(body.get(key), list):
            body[key] = [_plain(message) for message in body[key]]
        body["model"] = model = _model_of(kwargs)
        window = None if self._has_window or is_window_documented(model) else _window_in_table(model)
        session, key_hash = _metadata(kwargs, "session_id"), _metadata(kwargs, "user_api_key_hash")
        return self._requests.request(
            format,
            body,
            "",
            session=str(kwargs.get("litellm_session_id") or session),
            user=f"{key_hash}{kwargs.get('user') or ''}",
            window=window,
        )


def _record_late(request: SdkRequest, reply: Any, usage: Usage | None) -> None:
    if request.format != "anthropic" and request.is_newest:
        request.record({key: value for key, value in reply.items() if key != "usage"}, usage)
    elif usage is not None:  # The next list of the program brings the reply, or has brought it.
        request.bill(usage)


_KEYS: Final = ("messages", "system", "input", "instructions", "tools", "thinking")
"""Fields of a request that decide on its view, and that a view may change."""


def _changed(kwargs: dict[str, Any], request: SdkRequest) -> dict[str, Any]:
    """Return the arguments of a call with the view in place of the messages."""
    view: dict[str, Any] = {key: request.body[key] for key in _KEYS if key in request.body}
    return {**_cache_options(kwargs, request), **kwargs, **view, **_headers(kwargs, request)}


def _cache_options(kwargs: dict[str, Any], request: SdkRequest) -> dict[str, Any]:
    """Return the options by which the provider caches the request, as far as LiteLLM has them for the model.

    LiteLLM puts the marks for Anthropic's cache where its option says. A view of chat completions has none of the
    program's own marks in messages, so these two take their place.
    """
    model, provider = str(kwargs.get("model") or _model_of(kwargs)), kwargs.get("custom_llm_provider")
    if key := request.body.get(CACHE_KEY):
        takes_key = CACHE_KEY in (litellm.get_supported_openai_params(model, provider) or ())
        return {CACHE_KEY: key} if takes_key else {}
    list_key = _list_key(request.format)
    own = find_mark(kwargs.get(list_key))
    if own is None:
        others = [kwargs.get("tools"), {"cache_control": kwargs.get("cache_control")}]
        is_on = litellm.enable_anthropic_prompt_caching or kwargs.get("enable_prompt_caching") or find_mark(others)
        if is_on or not request.wants_marks:
            return {}
    if find_mark(request.body[list_key]) or not supports_prompt_caching(model, provider):
        return {}
    places: tuple[dict[str, Any], ...] = ({"role": "system"}, {"index": -1})
    points = [{"location": "message", **place, "control": own or {"type": "ephemeral"}} for place in places]
    return {"cache_control_injection_points": points}


def _kind_of(call_type: Any) -> str:
    """Return the name of a kind of LiteLLM's calls."""
    return str(getattr(call_type, "value", call_type))


def _list_key(format: str) -> str:
    """Return the field of a request with its messages."""
    return "input" if format == "openai_responses" else "messages"


def _metadata(kwargs: Mapping[str, Any], field: str) -> str:
    """Return a field of a request's metadata; "" if it is not there."""
    tables = (kwargs.get("metadata"), kwargs.get("litellm_metadata"))
    values = [table.get(field) for table in tables if isinstance(table, Mapping)]
    return str(next(filter(None, values), ""))


def _model_of(kwargs: Mapping[str, Any]) -> str:
    """Return the name of the model behind a deployment."""
    info = kwargs.get("model_info") or {}
    logged = getattr(kwargs.get("litellm_logging_obj"), "model", "")  # If the program passes it by position.
    return str(info.get("base_model") or kwargs.get("base_model") or kwargs.get("model") or logged or "")


def _window_in_table(model: str) -> int | None:
    """Return the window of a model in tokens from LiteLLM's table, if it is there."""
    try:
        return litellm.get_model_info(model).get("max_input_tokens") or None
    except Exception:  # LiteLLM raises a plain Exception for a model that it does not know.
        return None


def _headers(kwargs: Mapping[str, Any], request: SdkRequest) -> dict[str, Any]:
    """Return the header with the beta features that the view needs."""
    if not request.betas:
        return {}
    headers = dict(kwargs.get("extra_headers") or {})
    betas = [beta.strip() for beta in str(headers.get("anthropic-beta", "")).split(",")]
    headers["anthropic-beta"] = ",".join(dict.fromkeys(filter(None, [*betas, *request.betas])))
    return {"extra_headers": headers}


def _plain(value: Any) -> Any:
    """Return a message or a reply as a dict."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def _usage_of(reply: Any) -> Usage | None:
    """Return the usage of a reply in OpenAI's form.

    Returns None if there is none: the stream of a program that does not ask for it reports zeros.
    """
    used = (reply.get("usage") if isinstance(reply, Mapping) else None) or {}
    if not used.get("prompt_tokens"):
        return None
    read = (used.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (used.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    written = used.get("cache_creation_input_tokens") or None
    return usage_of_totals(used["prompt_tokens"], read, written, used.get("completion_tokens") or 0, reasoning)
