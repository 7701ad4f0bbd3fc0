"""The APIs whose requests can show a view, by their paths."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..errors import BadSetting
from ..models.known import check_model

__all__ = ["Api", "api_of", "model_name"]


class Api(NamedTuple):
    """The format of an API, and the keys of its requests."""

    format: str
    """The name of the format (`get_format`)."""
    messages: str
    """The key of the list of messages."""
    system: str
    """The key of the system prompt; "" if it stands among the messages."""


_APIS: Final = {
    "/v1/messages": Api("anthropic", "messages", "system"),
    "/chat/completions": Api("openai", "messages", ""),
    "/responses": Api("openai_responses", "input", "instructions"),
}


def api_of(path: str) -> Api | None:
    """Return the API of a POST request to this path, without its query; None if its requests show no view.

    `/v1/threads/ID/messages` belongs to another API of OpenAI.
    """
    return next((api for end, api in _APIS.items() if path.endswith(end)), None)


def model_name(format: str, name: str) -> str:
    """Return the name of a model for requests in this format.

    A gateway serves models of others in its own format, such as Claude through chat completions.
    """
    try:
        check_model(name, format, None)
    except BadSetting:
        return f"gateway:{name}"
    return name
