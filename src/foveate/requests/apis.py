"""The APIs whose requests can show a view, and what their requests have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ..errors import BadSetting
from ..formats.responses.items import REFERENCE, kind_of
from ..models.known import check_model

__all__ = [
    "BEDROCK_PATHS",
    "CONVERSATION_HEADER",
    "SERVER_STATE",
    "Api",
    "api_for",
    "api_of",
    "beta_header",
    "model_name",
    "state_in",
    "wants_json",
]

SERVER_STATE: Final = ("previous_response_id", "conversation", "thread", "cachedContent", "cached_content")
"""Fields of requests whose history the provider keeps."""
CONVERSATION_HEADER: Final = "x-foveate-conversation"
"""The header of a request in which a program names the conversation. It is not sent on."""

BEDROCK_PATHS: Final = ("/model/", "/inference-profiles")
"""How paths of Amazon Bedrock begin: those of models, and the list of models that Claude Code asks for."""


class Api(NamedTuple):
    """The format of an API, and the keys of its requests."""

    format: str
    """The name of the format (`get_format`)."""
    messages: str
    """The key of the list of messages."""
    system: str
    """The key of the system prompt; "" if it stands among the messages."""
    model: str = ""
    """The model, if the path names it; "" if the body does."""
    is_stream: bool | None = None
    """Whether the answer is a stream, if the path says so; None if the body does."""
    is_bedrock: bool = False
    """Whether it is Anthropic's API as Amazon Bedrock has it: betas stand in the body, and a stream has frames."""
    inside: str = ""
    """The key of the object that holds all fields but the model; "" if the body holds them."""


_APIS: Final = {
    "/v1/messages": Api("anthropic", "messages", "system"),
    "/chat/completions": Api("openai", "messages", ""),
    "/responses": Api("openai_responses", "input", "instructions"),
}
_GEMINI: Final = Api("gemini", "contents", "systemInstruction")
_BY_FORMAT: Final = {api.format: api for api in (*_APIS.values(), _GEMINI)}
_OF_GOOGLE: Final = re.compile(
    r".*?(?:/publishers/(?P<publisher>[^/]+))?/(?:models|tunedModels|endpoints)/(?P<model>[^/]+):(?P<method>\w+)"
)
"""A path with a model, of the Gemini API and of Vertex AI, which serves Claude as well."""
_OF_BEDROCK: Final = re.compile(r".*?/model/(?P<model>.+)/invoke(?P<stream>-with-response-stream)?")
_CLAUDE_ON_BEDROCK: Final = re.compile(
    r"(?:.*[./])?anthropic\.claude.*|arn:[^/]*:(?:application-inference-profile|provisioned-model)/.*"
)
"""Names of Claude, and those of models of which only the owner knows which they are."""
_OF_CODE_ASSIST: Final = re.compile(r".*/v1internal:(?P<method>\w+)")
"""A path of Code Assist, which Gemini CLI uses with a Google login."""
_COUNTS: Final = "count-tokens"
"""How the names of models begin with which Vertex AI counts the tokens of a request for Claude."""
_JSON_KEY: Final = re.compile(r"response_?(?:mime_?type|(?:json_?)?schema)", re.IGNORECASE).fullmatch
"""Keys of Gemini's for the form of an answer. Google takes two spellings."""


def api_of(path: str, query: str = "") -> Api | None:
    """Return the API of a POST request to this path; None if its requests show no view.

    `/v1/threads/ID/messages` belongs to another API of OpenAI. A stream of Gemini shows a view if it consists of
    events, as Google's SDKs ask for it with `alt=sse` in the query.
    """
    known = next((api for end, api in _APIS.items() if path.endswith(end)), None)
    return known or _api_of_bedrock(path) or (_api_of_google(path, query) if ":" in path else None)


def _api_of_bedrock(path: str) -> Api | None:
    match = _OF_BEDROCK.fullmatch(path)
    if match is None or not _CLAUDE_ON_BEDROCK.fullmatch(match["model"]):
        return None
    model = f"bedrock:{match['model']}"
    return _BY_FORMAT["anthropic"]._replace(model=model, is_stream=bool(match["stream"]), is_bedrock=True)


def _api_of_google(path: str, query: str) -> Api | None:
    match = _OF_GOOGLE.fullmatch(path)
    if match is None:
        other = _OF_CODE_ASSIST.fullmatch(path)
        return _api_of_method(_GEMINI._replace(inside="request"), other["method"], query) if other else None
    publisher, model, method = match.group("publisher", "model", "method")
    if publisher == "anthropic":  # The body of a request is Anthropic's, without the model.
        is_message = method in ("rawPredict", "streamRawPredict") and not model.startswith(_COUNTS)
        return _BY_FORMAT["anthropic"]._replace(model=model) if is_message else None
    return _api_of_method(_GEMINI._replace(model=model), method, query)


def _api_of_method(api: Api, method: str, query: str) -> Api | None:
    match method:
        case "generateContent":
            return api._replace(is_stream=False)
        case "streamGenerateContent" if "alt=sse" in query.split("&"):
            return api._replace(is_stream=True)
        case _:
            return None


def state_in(fields: Mapping[str, Any], items: object) -> str:
    """Return the field or item that lets the provider keep a part of the history, such as `conversation=`; "" for none.

    `items`: those of the Responses API that may be references to items of the provider.
    """
    refers = isinstance(items, list) and any(isinstance(item, dict) and kind_of(item) == REFERENCE for item in items)
    return next((f"{key}=" for key in SERVER_STATE if fields.get(key)), f"An {REFERENCE}" if refers else "")


def wants_json(format: str, value: Callable[[str], Any]) -> bool:
    """Return whether a request wants JSON as its answer. `value`: returns the value of a field."""
    match format:
        case "gemini":
            config = value("generationConfig") or value("generation_config")
            kinds = [each for key, each in config.items() if _JSON_KEY(key)] if isinstance(config, dict) else []
            return any(kind and kind != "text/plain" for kind in kinds)
        case "openai":
            kind = value("response_format")
        case "openai_responses":
            text = value("text")
            kind = text.get("format") if isinstance(text, dict) else None
        case _:
            config = value("output_config")
            kind = value("output_format") or (config.get("format") if isinstance(config, dict) else None)
    return isinstance(kind, dict) and kind.get("type") not in (None, "text")


def api_for(format: str) -> Api:
    """Return the API whose requests have this format. Raises KeyError for a format without requests by path."""
    return _BY_FORMAT[format]


def beta_header(header: str, betas: Iterable[str]) -> str:
    """Return the value of the header `anthropic-beta`: that of the client, and what is missing in it."""
    return ",".join(dict.fromkeys(filter(None, (*map(str.strip, header.split(",")), *betas))))


@lru_cache(256)
def model_name(format: str, name: str) -> str:
    """Return the name of a model for requests in this format.

    A gateway serves models of others in its own format, such as Claude through chat completions.
    """
    try:
        check_model(name, format, None)
    except BadSetting:
        return f"gateway:{name}"
    return name
