"""The fields of LiteLLM's requests and replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import litellm

from ..core.stamps import Usage
from .host import usage_of_totals
from .sdk_requests import SdkRequest

__all__ = ["KEYS", "changed", "kind_of", "list_key", "metadata", "model_of", "plain", "usage_of", "window_in_table"]

KEYS: Final = ("messages", "system", "input", "instructions", "tools", "thinking")
"""Fields of a request that decide on its view, and that a view may change."""


def changed(kwargs: dict[str, Any], request: SdkRequest) -> dict[str, Any]:
    """Return the arguments of a call with the view in place of the messages."""
    view: dict[str, Any] = {key: request.body[key] for key in KEYS if key in request.body}
    return {**kwargs, **view, **_headers(kwargs, request)}


def kind_of(call_type: Any) -> str:
    """Return the name of a kind of LiteLLM's calls."""
    return str(getattr(call_type, "value", call_type))


def list_key(format: str) -> str:
    """Return the field of a request with its messages."""
    return "input" if format == "openai_responses" else "messages"


def metadata(kwargs: Mapping[str, Any], field: str) -> str:
    """Return a field of a request's metadata; "" if it is not there."""
    tables = (kwargs.get("metadata"), kwargs.get("litellm_metadata"))
    values = [table.get(field) for table in tables if isinstance(table, Mapping)]
    return str(next(filter(None, values), ""))


def model_of(kwargs: Mapping[str, Any]) -> str:
    """Return the name of the model behind a deployment."""
    info = kwargs.get("model_info") or {}
    logged = getattr(kwargs.get("litellm_logging_obj"), "model", "")  # If the program passes it by position.
    return str(info.get("base_model") or kwargs.get("base_model") or kwargs.get("model") or logged or "")


def window_in_table(model: str) -> int | None:
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


def plain(value: Any) -> Any:
    """Return a message or a reply as a dict."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def usage_of(reply: Any) -> Usage | None:
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
