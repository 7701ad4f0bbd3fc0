"""Access to a server of foveate: from this computer, or with a token."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

__all__ = ["is_local_name", "is_loopback", "token_key"]


@lru_cache(64)  # Each request asks for two names, and reading an address takes time.
def is_loopback(host: str) -> bool:
    """Return whether only programs on this computer reach a server at this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_name(authority: str) -> bool:
    """Return whether a header `Host` names this computer.

    A name of another site may point to this computer (DNS rebinding), and a browser then treats both as one site.
    """
    try:
        host = urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return False
    return is_loopback(host) or host.endswith(".localhost")


def token_key(token: str) -> str:
    """Return a hash of a token. Settings hold the hash alone."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
