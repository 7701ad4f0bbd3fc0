"""Ids that clients send with a request: the session, the agent, and the owner of both.

Sources: recorded requests of Claude Code 2.1, Codex 0.169, OpenCode 1.18, pi 0.74 and Gemini CLI 0.61.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from ..core.conversation_names import child_name
from ..requests import CONVERSATION_HEADER
from ..requests.aws_signature import is_signature

__all__ = ["ClientIds", "read_ids", "session_in"]

_SESSIONS: Final = (
    CONVERSATION_HEADER,
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
)
"""Headers with the id of a session, the first one that is there counts. `session-id`: Codex; `session_id`: pi and older
Codex; `x-session-id` and `x-session-affinity`: OpenCode."""
_AGENTS: Final = ("x-claude-code-agent-id", "thread-id")
"""Headers with the id of an agent in its session. A main agent has none, or the id of the session."""
_WINDOW: Final = "x-codex-window-id"
"""The header with `ID:NUMBER`. Codex adds 1 to the number each time that it compacts."""
_CREDENTIALS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_USER_ID: Final = re.compile(r"user_(?P<owner>\w+?)_account_(?P<account>[\w-]*?)_session_(?P<session>[\w-]+)")
"""The form of `metadata.user_id` in older versions of Claude Code. Newer ones send a JSON object."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class ClientIds(NamedTuple):
    """The ids of one request."""

    session: str
    """"" if the client sends none."""
    agent: str
    """"" for the main agent of a session."""
    compactions: int
    """How often the client says that it compacted."""
    is_named: bool
    """Whether the program chose the name of the conversation."""
    owner: bytes
    """The credential, or the account that it belongs to if it changes every few hours. Never store it."""

    def fingerprint(self, salt: str) -> str:
        """Return 16 hexadecimal digits for the owner, others for each salt."""
        key = blake2b(salt.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        return blake2b(self.owner, digest_size=8, key=key, person=b"foveate proxy 1").hexdigest()

    @property
    def name(self) -> str:
        """The name of the conversation of this session and agent; "" without a session.

        Another owner with the same session gets another name.
        """
        if not self.session:
            return ""
        session = child_name("-", self.session).removeprefix("-/")
        name = f"{session}.{self.fingerprint(self.session)}"
        return child_name(name, self.agent) if self.agent else name


def read_ids(headers: Mapping[str, str], fields: Mapping[str, Raw]) -> ClientIds:
    """Return the ids in a request. `headers`: names in lower case. `fields`: those of the body, not decoded."""
    user = _user_of(fields)
    session = session_in(headers) or user.get("session_id", "") or _text(fields.get("session_id"))  # Of Code Assist.
    if not session:
        cache_key = _text(fields.get("prompt_cache_key"))  # Some programs send one key for all their conversations.
        session = cache_key if _UUID.fullmatch(cache_key) else ""
    agent = next((headers[key] for key in _AGENTS if headers.get(key)), "") if session else ""
    window = headers.get(_WINDOW, "").rpartition(":")[2]
    return ClientIds(
        session,
        "" if agent == session else agent,
        int(window) if window.isdecimal() and len(window) < 10 else 0,
        bool(headers.get(CONVERSATION_HEADER)),
        _owner_of(headers, user),
    )


def session_in(headers: Mapping[str, str]) -> str:
    """Return the id of the session in the headers of a request; "" if there is none."""
    return next((headers[key] for key in _SESSIONS if headers.get(key)), "")


def _user_of(fields: Mapping[str, Raw]) -> dict[str, str]:
    """Return the ids in `metadata.user_id` of Claude Code; {} for the ids of other programs."""
    metadata = _value(fields.get("metadata"))
    user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user_id, str):
        return {}
    if match := _USER_ID.fullmatch(user_id):
        owner, account, session = match.group("owner", "account", "session")
        return {"device_id": owner, "account_uuid": account, "session_id": session}
    user = _value(user_id.encode("utf-8", "surrogatepass")) if user_id.startswith("{") else None
    return {key: value for key, value in user.items() if isinstance(value, str)} if isinstance(user, dict) else {}


def _owner_of(headers: Mapping[str, str], user: Mapping[str, str]) -> bytes:
    """Return the credential of a request, or the account that a credential of short life belongs to."""
    credential = next((headers[key] for key in _CREDENTIALS if headers.get(key)), "")
    token = credential.rpartition(" ")[2]
    if token.startswith("sk-ant-oat"):  # A subscription of Anthropic: the token changes every few hours.
        owner = user.get("account_uuid") or user.get("device_id")
        credential = f"anthropic {owner}" if owner else credential
    elif token.startswith("ya29."):  # A login at Google: the token changes every hour, and does not say whose it is.
        credential = "google"
    elif is_signature(credential) or token.startswith("bedrock-api-key-"):  # Of AWS. Most change every few hours.
        credential = "aws"
    elif token.startswith("eyJ") and token.count(".") == 2:  # A JSON web token, such as that of a ChatGPT login.
        claims = _claims(token)
        issuer, subject = claims.get("iss"), claims.get("sub")
        credential = f"{issuer} {subject}" if isinstance(issuer, str) and isinstance(subject, str) else credential
    return credential.encode("utf-8", "surrogatepass")


def _claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    try:
        claims = _value(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _text(raw: Raw | None) -> str:
    value = _value(raw)
    return value if isinstance(value, str) else ""


def _value(raw: Raw | bytes | None) -> Any:
    """Return a JSON value; None if there is none, or if it cannot be read."""
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
