"""A client that calls an application without a network."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

__all__ = ["client_of"]


def client_of(app: Any) -> TestClient:
    """Return a client of an application under a local name."""
    return TestClient(app, base_url="http://localhost:8788", follow_redirects=False)
