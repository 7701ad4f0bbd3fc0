"""A provider with the API of Amazon Bedrock: Claude by script."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

from aws_frames import exception, framed
from servers import Exchange, RawProvider

from foveate.testing import ScriptedModel
from foveate.testing.script import IllegalRequest, ProviderError, ScriptedReply

EXCEPTIONS = {400: "ValidationException", 403: "AccessDeniedException", 429: "ThrottlingException"}


def check_signature(exchange: Exchange, secret: str) -> None:
    """Assert that a request has a valid signature (AWS, "Signature Version 4", written apart from botocore)."""
    fields = exchange.headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
    parts = dict(field.split("=", 1) for field in fields)
    key, scope = parts["Credential"].split("/", 1)
    day, region, service, _ = scope.split("/")
    assert (key, region, service) == ("AKIDEXAMPLE", "eu-west-1", "bedrock")
    names = parts["SignedHeaders"].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names)
    assert exchange.headers["x-amz-security-token"] == "session-token-1"
    lines = [
        exchange.head.split(b" ", 1)[0].decode(),
        quote(exchange.target, safe="/~"),
        "",
        *(f"{name}:{exchange.headers[name].strip()}" for name in names),
        "",
        parts["SignedHeaders"],
        hashlib.sha256(exchange.body).hexdigest(),
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", exchange.headers["x-amz-date"], scope, digest))
    signed = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request", text):
        signed = hmac.digest(signed, part.encode(), "sha256")
    assert parts["Signature"] == signed.hex()


class BedrockProvider(RawProvider):
    """Answers `invoke` and `invoke-with-response-stream`, and refuses what Bedrock refuses."""

    def __init__(self, script: Iterable[Any], **options: Any) -> None:
        """`options`: those of `ScriptedModel`."""
        self.model = ScriptedModel(script, "anthropic", **options)
        self.illegal: list[Any] = []
        self.sent: list[bytes] = []
        """The bodies of all answers."""
        super().__init__(self._reply)

    def _reply(self, exchange: Exchange) -> None:
        _, _, model, method = exchange.target.split("/", 3)
        try:
            answered = self._answered(unquote(model), json.loads(exchange.body))
        except ProviderError as error:
            kind = EXCEPTIONS.get(error.status_code, "InternalServerException")
            content = json.dumps({"message": error.message}).encode()
            self._send(exchange, error.status_code, "application/json", content, f"x-amzn-ErrorType: {kind}\r\n")
            return
        if method == "invoke":
            self._send(exchange, 200, "application/json", json.dumps(answered.response).encode())
            return
        frames = framed(answered.response, len(self.sent))
        if answered.cut is not None:
            frames = frames[: len(frames) // 2]
            if answered.cut.error is not None:
                frames.append(exception("throttlingException", answered.cut.error.message))
            else:
                frames[-1] = frames[-1][:-9]
        self._send(exchange, 200, "application/vnd.amazon.eventstream", b"".join(frames))

    def _answered(self, model: str, body: dict[str, Any]) -> ScriptedReply:
        fields = {**body, "model": model}
        refused = {"model", "stream", "betas"} & body.keys()
        if refused or not fields.pop("anthropic_version", None):
            self.illegal.append(body)
            raise _failure(f"extraneous key {sorted(refused)} is not permitted")
        betas = fields.pop("anthropic_beta", [])
        if not isinstance(betas, list) or len(set(betas)) < len(betas):
            self.illegal.append(body)
            raise _failure("invalid beta flag")
        try:
            return self.model.answer(fields)
        except IllegalRequest as error:
            self.illegal.append(error)
            raise _failure(str(error)) from error

    def _send(self, exchange: Exchange, status: int, kind: str, content: bytes, more: str = "") -> None:
        self.sent.append(content)
        head = f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}"
        exchange.connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + content)


def _failure(message: str) -> ProviderError:
    return ProviderError(400, {"error": {"message": message}})
