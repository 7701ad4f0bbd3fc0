"""The inspector's pages under `/foveate/` of a proxy."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")
pytest.importorskip("jinja2", reason="Jinja2 is not installed (the extra `inspect`)")

from servers import RawProvider, running_proxy
from test_access import ANN, BEN, get
from test_faults import ANSWERED

from foveate import open_conversation
from foveate.open import Options
from foveate.requests.access import token_key


def filled(path: Path, *tenants: str) -> str:
    """Return the URL of a store with one conversation of each tenant."""
    url = f"sqlite:///{path}"
    for tenant in tenants:
        with open_conversation(
            f"of {tenant or 'nobody'}", store=url, window=100_000, options=Options(tenant=tenant)
        ) as chat:
            chat.append("Hello")
    return url


def test_pages_show_the_conversations_of_the_proxy(tmp_path: Path):
    url = filled(tmp_path / "chats.db", "")
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, store=url) as proxy:
        status, headers, content = get(proxy, "/foveate/")
        assert status == 200
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert b'href="/foveate/c/store/of~20nobody"' in content
        assert get(proxy, "/foveate/c/store/of~20nobody")[0] == 200
        assert get(proxy, "/foveate/status")[2].startswith(b"{")
        assert get(proxy, "/foveate/", host="evil.example")[0] == 421
    assert provider.received == []


def test_tenant_of_a_proxy_sees_its_own_pages_only(tmp_path: Path):
    url = filled(tmp_path / "chats.db", "ann", "ben")
    tokens = {token_key(ANN): "ann", token_key(BEN): "ben"}
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, store=url, tokens=tokens) as proxy:
        assert get(proxy, "/foveate/")[0] == 401
        status, headers, _ = get(proxy, f"/foveate/?token={ANN}")
        assert (status, headers["location"]) == (303, "/foveate/")
        cookie = f"Cookie: {headers['set-cookie'].partition(';')[0]}"
        content = get(proxy, "/foveate/", cookie)[2]
        assert b"of ann" in content
        assert b"of ben" not in content
        assert get(proxy, "/foveate/c/store/of~20ben", cookie)[0] == 404
    assert provider.received == []
