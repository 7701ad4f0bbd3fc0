"""Settings of a proxy, which its workers read from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ..errors import BadSetting
from ..requests.access import token_key
from ..stores import without_password

__all__ = ["LEAST_TOKEN", "TOKEN", "ProxySettings", "aws_region_of", "read_tokens", "upstreams_of"]

TOKEN: Final = "FOVEATE_PROXY_TOKEN"
"""The environment variable with the token that clients of other computers send."""
_SETTINGS: Final = "FOVEATE_PROXY_SETTINGS"
"""The environment variable with the settings of a worker, as JSON."""
LEAST_TOKEN: Final = 16
"""Characters of a token."""
_BEDROCK: Final = "bedrock"
_PROVIDERS: Final = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "code_assist": "https://cloudcode-pa.googleapis.com",
}
_AWS_REGION: Final = re.compile(r"[a-z]+(?:-[a-z]+)+-\d+")
_AWS_HOST: Final = re.compile(r"(?:.+\.)?bedrock-runtime(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com")
"""A host of Amazon Bedrock, also in a network of one's own."""


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a proxy. The defaults suit one user on one computer."""

    store: str = "memory:"
    """URL of the store of the conversations."""
    anthropic: str = _PROVIDERS["anthropic"]
    """URL that requests in Anthropic's format are sent to, without `/v1`."""
    openai: str = _PROVIDERS["openai"]
    """URL that all other requests are sent to, without `/v1`."""
    gemini: str = _PROVIDERS["gemini"]
    """URL that requests in Gemini's format are sent to, without `/v1beta`."""
    bedrock: str = ""
    """URL that requests to Amazon Bedrock are sent to; "": they are refused, because the region is not known."""
    aws_region: str = ""
    """The region for which requests to Amazon Bedrock are signed; "": none is signed."""
    code_assist: str = _PROVIDERS["code_assist"]
    """URL that requests of Gemini CLI with a Google login are sent to, without `/v1internal`."""
    policy: str | None = None
    """Preset, or file of a preset. Default: that of the settings of foveate."""
    window: int | None = None
    """Largest window in tokens. Default: that of the model of each request."""
    host: str = "127.0.0.1"
    """Address to listen at."""
    port: int = 8787
    """Port to listen at."""
    tokens: Mapping[str, str] = {}
    """Tenants by keys of their tokens (`token_key`). Empty: every request is served, for `tenant`."""
    tenant: str = ""
    """The tenant of requests without tokens."""
    is_strict: bool = False
    """Whether a request is refused if no view can be made for it, instead of sent as it came."""
    max_body: int = 64_000_000
    """Bytes of the largest request whose conversation is managed."""
    max_requests: int = 2_000
    """Requests that a worker serves at the same time."""
    max_seconds: float = 600
    """Longest pause in seconds in a request's body or in a provider's answer."""
    is_log_json: bool = False
    """Whether each line of the log is a JSON object."""
    secret: str = msgspec.field(default_factory=lambda: token_hex(32))
    """Key of the forms in the pages under `/foveate/`, the same for all workers."""
    counters: str = ""
    """Folder in which several workers count. "": the only worker counts in its memory."""

    def __repr__(self) -> str:
        """Return the settings without keys and passwords."""
        urls = ("store", *_PROVIDERS, _BEDROCK)
        hidden = {name: without_password(getattr(self, name)) for name in urls}
        shown = {**msgspec.structs.asdict(self), **hidden, "tokens": len(self.tokens)}
        return f"<ProxySettings: {', '.join(f'{name}={shown[name]!r}' for name in shown if name != 'secret')}>"

    def shows_totals_to(self, tenant: str) -> bool:
        """Return whether this tenant may read the totals of all tenants: it is the only one, or the proxy's own."""
        return tenant == self.tenant or len(set(self.tokens.values())) == 1

    def to_environment(self) -> None:
        """Store the settings in the environment, for the workers that this process starts."""
        os.environ[_SETTINGS] = msgspec.json.encode(self).decode()

    @classmethod
    def from_environment(cls) -> ProxySettings:
        """Return the settings that `to_environment` stored."""
        return msgspec.json.decode(os.environ[_SETTINGS], type=cls)


def upstreams_of(upstream: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the URLs for Anthropic's format, for Gemini's, for Code Assist, for Amazon Bedrock, and for all else
    (`openai`).

    `upstream`: the name of a provider, a URL, or None for all providers. `environment`: has the region of Bedrock;
    without one, its URL is "". Raises BadSetting.
    """
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""
    region = region if _AWS_REGION.fullmatch(region) else ""
    providers = {**_PROVIDERS, _BEDROCK: f"https://bedrock-runtime.{region}.amazonaws.com" if region else ""}
    if upstream is None:
        return providers
    if upstream == _BEDROCK and not region:
        raise BadSetting("The region of Amazon Bedrock is not known. Set AWS_REGION, such as us-east-1.")
    url = providers.get(upstream, upstream).rstrip("/")
    for end in ("/chat/completions", "/v1", "/v1beta"):
        url = url.removesuffix(end)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadSetting(
            f"--upstream takes {', '.join(providers)}, or a URL such as https://gateway.example, not {upstream!r}. "
            "A URL begins with http:// or https://, and has no query: clients send their own."
        )
    return dict.fromkeys(providers, url)


def aws_region_of(url: str) -> str:
    """Return the region of a URL of Amazon Bedrock; "" for any other, which takes no signatures of AWS."""
    match = _AWS_HOST.fullmatch(urlsplit(url).hostname or "")
    return match["region"] if match else ""


def read_tokens(file: Path | None, token: str, tenant: str) -> dict[str, str]:
    """Return tenants by the keys of their tokens.

    `file`: one `TENANT TOKEN` a line; `#` begins a comment. `token`: that of `tenant`, or "". Raises BadSetting.
    """
    pairs = [(tenant, token)] if token else []
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetting(f"--tokens {file} cannot be read: {error}.") from error
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if words and len(words) != 2:
                raise BadSetting(f"{file}, line {number}: write a tenant and its token, separated by a space.")
            pairs += [(words[0], words[1])] if words else []
    if short := [owner for owner, secret in pairs if len(secret) < LEAST_TOKEN]:
        raise BadSetting(f"The token of {short[0] or 'the proxy'} is too short. Use at least {LEAST_TOKEN} characters.")
    keys = {token_key(secret): owner for owner, secret in pairs}
    if len(keys) < len(pairs):
        raise BadSetting("Two tenants have the same token. Give each one its own.")
    return keys
