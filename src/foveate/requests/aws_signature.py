"""Signatures of requests to AWS (version 4), by botocore. It may ask a server of the computer for credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from ..errors import BadSetting, MissingExtra

__all__ = ["Scope", "check_credentials", "is_signature", "scope_of", "sign"]

_SCOPE: Final = re.compile(r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,]+)/\d{8}/(?P<region>[^/,]+)/(?P<service>[^/,]+)/")
_SIGNED: Final = "x-amz-"
"""How the names of headers begin that AWS wants to be signed."""
_OLD: Final = frozenset(("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"))
"""Headers of an earlier signature."""


class Scope(NamedTuple):
    """The region, service and key that a signature names."""

    region: str
    service: str = "bedrock"
    key: str = ""
    """The id of the access key; "" for any."""


def is_signature(authorization: str) -> bool:
    """Return whether the header `authorization` has a signature of AWS, which covers the body and the host."""
    return authorization.startswith("AWS4-")


def scope_of(authorization: str) -> Scope | None:
    """Return the scope of a signature; None for another header."""
    match = _SCOPE.match(authorization)
    return Scope(match["region"], match["service"], match["key"]) if match else None


def sign(
    scope: Scope, method: str, url: str, headers: Iterable[tuple[str, str]], content: bytes
) -> list[tuple[str, str]]:
    """Return the headers of a request with a new signature in place of an earlier one. Names are in any case.

    `url`: as it is sent. Raises BadSetting without credentials, or if they have another key than that of the scope;
    and MissingExtra without botocore.
    """
    credentials = _credentials(scope)
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    kept = [(name, value) for name, value in headers if name.lower() not in _OLD]
    covered = {name: value for name, value in kept if name.lower().startswith(_SIGNED)}
    request = AWSRequest(method, url, data=content, headers=covered)
    SigV4Auth(credentials, scope.service, scope.region).add_auth(request)
    return [(name, value) for name, value in kept if name not in covered] + list(request.headers.items())


def check_credentials(scope: Scope | None) -> None:
    """Raise what `sign` raises for this scope. None: a signature of a kind that is not known."""
    if scope is None:
        raise BadSetting("The request has a signature of AWS of an unknown kind. Use a token of Amazon Bedrock.")
    _credentials(scope)


def _credentials(scope: Scope) -> Any:
    """Return the credentials of AWS. Those that end are renewed. Raises what `sign` raises."""
    try:
        from botocore.exceptions import BotoCoreError
    except ModuleNotFoundError as error:
        raise MissingExtra("Signing requests to Amazon Bedrock", "bedrock") from error
    reason = "None are found."
    try:
        source = _session().get_credentials()
        found = source.get_frozen_credentials() if source is not None else None
    except (BotoCoreError, OSError) as error:
        found, reason = None, str(error)
    if found is None:
        raise BadSetting(
            f"Credentials of AWS are missing: {reason} Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if scope.key not in ("", found.access_key):
        raise BadSetting(
            f"The request is signed with the access key {scope.key}, and this program finds credentials of AWS with "
            "another one. Put those of the request into its environment, or use a token of Amazon Bedrock."
        )
    return found


@cache
def _session() -> Any:
    from botocore.session import Session

    return Session()
