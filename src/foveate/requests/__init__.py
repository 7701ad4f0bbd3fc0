"""Requests of a provider's API with the view in place of their messages, and their answers.

Everything here works on bytes, so a proxy and the HTTP clients of SDKs share it. Nothing here uses the network, except
botocore when it looks for credentials:

- `apis.py`: the APIs, by path
- `body.py`: the body of a request; what came with an earlier one is not read again
- `request.py`: a request with the view, byte for byte the client's where nothing changes
- `aws_signature.py`: signatures of requests to AWS
- `cache_marks.py`: marks for Anthropic's prompt cache
- `answer.py`: an answer on its way to the client; calls of `expand` are answered inside
- `events.py`: server-sent events, as they came
- `framed_answer.py`, `event_frames.py`: the same for the frames of Amazon Bedrock
- `splice_*.py`: one answer for the client, made of several of one format
"""

from __future__ import annotations

from .apis import (
    BEDROCK_PATHS,
    CONVERSATION_HEADER,
    SERVER_STATE,
    Api,
    api_for,
    api_of,
    beta_header,
    model_name,
    state_in,
    wants_json,
)
from .body import ListMemory, RequestBody
from .request import LENGTH_STATUSES, AnsweredCall, ApiError, NotContinued, WireRequest, length_error
from .writing import add_betas

__all__ = [
    "BEDROCK_PATHS",
    "CONVERSATION_HEADER",
    "LENGTH_STATUSES",
    "SERVER_STATE",
    "AnsweredCall",
    "Api",
    "ApiError",
    "ListMemory",
    "NotContinued",
    "RequestBody",
    "WireRequest",
    "add_betas",
    "api_for",
    "api_of",
    "beta_header",
    "length_error",
    "model_name",
    "state_in",
    "wants_json",
]
