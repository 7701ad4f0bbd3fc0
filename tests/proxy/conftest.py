"""Fixtures of several tests of the proxy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from foveate.requests import aws_signature


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Credentials of AWS in the environment; the secret key."""
    pytest.importorskip("botocore", reason="botocore is not installed (the extra `bedrock`)")
    secret = "secret-key-1"
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    variables = {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": secret, "SESSION_TOKEN": "session-token-1"}
    files = {name: str(tmp_path / "none") for name in ("CONFIG_FILE", "SHARED_CREDENTIALS_FILE")}
    for name, value in {**variables, **files, "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    aws_signature._session.cache_clear()
    yield secret
    aws_signature._session.cache_clear()
