"""Who may use a proxy: hosts, web pages, tokens, tenants, and the sizes that it takes."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from servers import RawProvider, RunningProxy, ask, numbers, post, running_proxy, split
from test_faults import ANSWERED, WHOLE
from waiting import until

import foveate.proxy.server
from foveate.cli.app import main
from foveate.errors import BadSetting
from foveate.open import open_store
from foveate.proxy.settings import ProxySettings, aws_region_of, read_tokens, upstreams_of
from foveate.requests.access import token_key
from foveate.testing import ScriptedModel, say
from foveate.testing.server import StubServer

BODY = json.dumps(WHOLE).encode()
ANN, BEN, OWN = "token-of-ann-0123456789", "token-of-ben-0123456789", "token-of-proxy-0123456789"


def get(proxy: RunningProxy, path: str, *headers: str, host: str = "localhost") -> tuple[int, dict[str, str], bytes]:
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    return split(ask(proxy.port, ("\r\n".join(lines) + "\r\n\r\n").encode()))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8787", "[::1]:8787", "app.localhost", "LOCALHOST:1"])
def test_names_of_this_computer_are_served(host: str):
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        assert get(proxy, "/v1/models", host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "["])
def test_other_names_for_this_computer_are_refused(host: str):
    """The name of a web page may point to this computer (DNS rebinding)."""
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        assert get(proxy, "/v1/models", host=host)[0] == 421
        assert get(proxy, "/metrics", host=host)[0] == 421
    assert provider.received == []


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000"])
def test_web_pages_are_refused(origin: str):
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        status, headers, _ = split(ask(proxy.port, post("/v1/messages", BODY, f"Origin: {origin}")))
    assert (status, provider.received) == (403, [])
    assert not any(name.startswith("access-control") for name in headers)


def test_a_tenant_uses_its_own_conversations_only(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    tokens = {token_key(ANN): "ann", token_key(BEN): "ben", token_key(OWN): ""}
    model = ScriptedModel(lambda request: say("Fine."), "anthropic", strict=True)
    with StubServer(model) as server, running_proxy(server.url, store=url, tokens=tokens) as proxy:
        for token in (ANN, BEN):
            status, _, _ = split(ask(proxy.port, post("/v1/messages", BODY, f"x-foveate-token: {token}")))
            assert status == 200
        assert all("x-foveate-token" not in request.headers for request in server.received)
        for token in ("", "token-of-nobody", ANN[:-1], "\u00e9"):
            status, _, content = split(ask(proxy.port, post("/v1/messages", BODY, f"x-foveate-token: {token}")))
            assert (status, json.loads(content)["error"]["type"]) == (401, "authentication_error")
        assert len(server.received) == 2
        assert get(proxy, "/metrics")[0] == 401
        assert get(proxy, "/health") == (200, get(proxy, "/health")[1], b'{"status":"ok"}')
        until(lambda: numbers(proxy, OWN)['foveate_requests_total{api="anthropic",outcome="managed"}'] == 2)
    with open_store(url) as store:
        assert [len(store.names(tenant)) for tenant in ("ann", "ben", "")] == [1, 1, 0]


@pytest.mark.parametrize("path", ["/metrics", "/foveate/status"])
@pytest.mark.parametrize(
    ("tokens", "status"),
    [({ANN: "ann", BEN: "ben"}, 403), ({ANN: "ann", OWN: ""}, 403), ({ANN: "ann"}, 200), ({ANN: "", BEN: "ben"}, 200)],
)
def test_totals_are_shown_to_a_single_tenant_or_the_proxys_own(path: str, tokens: dict[str, str], status: int):
    """Each tenant could read how much all others use."""
    keys = {token_key(token): tenant for token, tenant in tokens.items()}
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, tokens=keys) as proxy:
        shown = get(proxy, path, f"x-foveate-token: {ANN}")
    assert shown[0] == status
    if status == 403:
        assert "Send the token that the proxy has in FOVEATE_PROXY_TOKEN." in json.loads(shown[2])["error"]["message"]
    assert provider.received == []


def test_a_body_above_the_limit_is_refused_before_it_is_read():
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, max_body=1_000) as proxy:
        head = post("/v1/messages", b"x" * 2_000)[:-2_000]
        status, _, content = split(ask(proxy.port, head))
        assert (status, json.loads(content)["error"]["type"]) == (413, "request_too_large")
        chunked = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunked += b"400\r\n" + b"x" * 1_024 + b"\r\n"
        assert split(ask(proxy.port, chunked))[0] == 413
    assert provider.received == []


def test_a_body_with_many_encodings_is_not_read():
    """A body that is packed a thousand times takes a thousand times as long as the largest one."""
    import gzip

    packed = BODY
    for _ in range(4):
        packed = gzip.compress(packed)
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        encodings = f"Content-Encoding: {', '.join(['gzip'] * 4)}"
        status, headers, _ = split(ask(proxy.port, post("/v1/messages", packed, encodings)))
    assert (status, provider.received[0].body) == (200, packed)
    assert "has 4 encodings" in headers["x-foveate-unchanged"]


def test_settings_print_no_password():
    settings = ProxySettings(anthropic="https://user:hidden@gateway.example", openai="https://u:hidden@other.example")
    assert "hidden" not in repr(settings)
    assert "gateway.example" in repr(settings)


def test_a_small_body_that_grows_beyond_the_limit_is_not_read():
    import gzip

    bomb = gzip.compress(b" " * 1_000_000)
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, max_body=10_000) as proxy:
        status, headers, _ = split(ask(proxy.port, post("/v1/messages", bomb, "Content-Encoding: gzip")))
    assert (status, provider.received[0].body) == (200, bomb)
    assert "10,000 bytes" in headers["x-foveate-unchanged"]


def test_headers_above_the_limit_are_refused():
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        for headers in ([f"x-a: {'a' * 70_000}"], [f"x-{n}: b" for n in range(9_000)]):
            answer = ask(proxy.port, post("/v1/messages", BODY, *headers))
            assert answer == b"" or split(answer)[0] == 400
    assert provider.received == []


@pytest.mark.parametrize("sent", [b"", b"POST /v1/mess", b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_connection_that_sends_no_whole_head_is_closed(sent: bytes, monkeypatch):
    monkeypatch.setattr(foveate.proxy.server, "_HEAD_SECONDS", 0.1)
    with running_proxy("http://127.0.0.1:9") as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.settimeout(20)
        client.sendall(sent)
        assert client.recv(1_000) == b""


def test_a_body_that_stops_coming_is_given_up():
    with running_proxy("http://127.0.0.1:9", max_seconds=0.1) as proxy:
        status, _, _ = split(ask(proxy.port, post("/v1/messages", BODY)[:-5]))
    assert status == 408


def test_requests_above_the_limit_are_told_to_wait():
    with RawProvider(lambda exchange: provider.wait_for_close(exchange)) as provider:  # noqa: SIM117 - named in itself.
        with running_proxy(provider.url, max_requests=1) as proxy:
            with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                client.sendall(post("/v1/messages", BODY))
                until(lambda: provider.received)
                status, headers, content = split(ask(proxy.port, post("/v1/messages", BODY)))
    assert (status, json.loads(content)["error"]["type"]) == (503, "overloaded_error")
    assert headers["retry-after"] == "5"


@pytest.mark.parametrize(
    "line", ["x-a: b\rX-Injected: 1", "x-a: b\x00", "Content-Length: 5", "Transfer-Encoding: chunked", "x a: b"]
)
def test_a_head_with_two_meanings_is_refused(line: str):
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        assert split(ask(proxy.port, post("/v1/messages", BODY, line)))[0] == 400
    assert provider.received == []


def test_a_file_of_tokens_names_each_tenant(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text(f"# who\nann {ANN}\n\nben {BEN} # Ben\n")
    assert read_tokens(file, "", "") == {token_key(ANN): "ann", token_key(BEN): "ben"}
    assert read_tokens(None, ANN, "acme") == {token_key(ANN): "acme"}
    for content in (f"ann {ANN}\nben {ANN}", "ann short", "ann", f"ann {ANN} more"):
        file.write_text(content)
        with pytest.raises(BadSetting):
            read_tokens(file, "", "")
    with pytest.raises(BadSetting, match="cannot be read"):
        read_tokens(tmp_path / "none", "", "")


def test_an_upstream_is_a_provider_or_a_url():
    for given, url in {
        "https://openrouter.ai/api/v1/": "https://openrouter.ai/api",
        "http://localhost:1234/v1/chat/completions": "http://localhost:1234",
        "https://generativelanguage.googleapis.com/v1beta": "https://generativelanguage.googleapis.com",
        "openai": "https://api.openai.com",
    }.items():
        every = ("anthropic", "openai", "gemini", "code_assist", "bedrock")
        assert upstreams_of(given, {}) == dict.fromkeys(every, url)
    assert upstreams_of(None, {}) == {
        "anthropic": "https://api.anthropic.com",
        "openai": "https://api.openai.com",
        "gemini": "https://generativelanguage.googleapis.com",
        "code_assist": "https://cloudcode-pa.googleapis.com",
        "bedrock": "",
    }
    for wrong in ("gateway.example", "ftp://x.example", "https://", "https://x.example?a=1"):
        with pytest.raises(BadSetting, match="--upstream"):
            upstreams_of(wrong, {})


def test_the_region_of_bedrock_comes_from_the_environment():
    url = "https://bedrock-runtime.us-west-2.amazonaws.com"
    for variables in (
        {"AWS_REGION": "us-west-2"},
        {"AWS_DEFAULT_REGION": "us-west-2"},
        {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-east-1"},
    ):
        assert upstreams_of(None, variables)["bedrock"] == url
        assert set(upstreams_of("bedrock", variables).values()) == {url}
    for variables in ({}, {"AWS_REGION": "evil.example/"}):
        assert upstreams_of(None, variables)["bedrock"] == ""
        with pytest.raises(BadSetting, match="Set AWS_REGION, such as us-east-1"):
            upstreams_of("bedrock", variables)


@pytest.mark.parametrize(
    ("arguments", "url", "region"),
    [
        ([], "https://bedrock-runtime.us-west-2.amazonaws.com", ""),
        (["--upstream", "bedrock"], "https://bedrock-runtime.us-west-2.amazonaws.com", "us-west-2"),
        (["--upstream", "https://bedrock-runtime.eu-west-1.amazonaws.com"], None, "eu-west-1"),
        (["--upstream", "https://gateway.example"], None, ""),
    ],
)
def test_the_proxy_signs_only_if_it_is_started_for_bedrock(
    arguments: list[str], url: str | None, region: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Variables of other programs must not let clients use the account."""
    seen: list[ProxySettings] = []
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    monkeypatch.setattr(foveate.proxy.server, "serve", lambda settings, **_: seen.append(settings))
    monkeypatch.setattr(foveate.proxy.server, "check_start", lambda settings: None)
    assert main(["proxy", "--store", str(tmp_path / "chats.db"), *arguments]) == 0
    assert [(settings.bedrock, settings.aws_region) for settings in seen] == [(url or arguments[-1], region)]


def test_only_urls_of_bedrock_have_a_region():
    for url, region in {
        "https://bedrock-runtime.us-west-2.amazonaws.com": "us-west-2",
        "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com": "us-gov-west-1",
        "https://vpce-1-a.bedrock-runtime.eu-central-1.vpce.amazonaws.com": "eu-central-1",
        "https://bedrock-runtime.us-west-2.amazonaws.com.evil.example": "",
        "https://gateway.example": "",
        "": "",
    }.items():
        assert aws_region_of(url) == region


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "Set FOVEATE_PROXY_TOKEN to a random text of at least 16 characters, or use"),
        (["--workers", "2", "--store", "memory:"], "Workers cannot share a store in memory"),
        (["--workers", "0"], "--workers must be at least 1, not 0."),
        (["--port", "70000"], "--port must be a port, not 70000."),
        (["--upstream", "x"], "--upstream takes"),
        (["--window", "5"], "1,000"),
    ],
)
def test_the_command_refuses_settings_that_cannot_work(arguments: list[str], words: str, capsys, monkeypatch):
    monkeypatch.setattr(foveate.proxy.server, "serve", lambda *_, **__: pytest.fail("it started"))
    assert main(["proxy", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_command_names_an_address_that_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["proxy", "--port", str(port), "--store", str(tmp_path / "chats.db")]) == 2
    printed = capsys.readouterr()
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use. Choose" in printed.err
    assert "Serving" not in printed.err


def test_the_command_names_a_store_that_cannot_be_opened(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["proxy", "--port", "0", "--store", str(tmp_path / "missing" / "chats.db")]) == 2
    assert "There is no folder" in capsys.readouterr().err


def test_the_status_of_a_proxy_is_printed(capsys, monkeypatch):
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        ask(proxy.port, post("/v1/messages", BODY))
        get(proxy, "/v1/models")
        until(lambda: sum(n for name, n in numbers(proxy).items() if name.startswith("foveate_requests_total")) == 2)
        assert main(["proxy", "--status", "--json", "--port", str(proxy.port)]) == 0
        assert json.loads(capsys.readouterr().out)["managed"] == 1
        assert main(["proxy", "--status", "--port", str(proxy.port)]) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[0]
        .startswith("1 conversation in the store; 2 requests since the start: 1 with a view")
    )
    assert main(["proxy", "--status", "--port", str(proxy.port)]) == 1
    assert main(["proxy", "--status", "--host", "::1", "--port", str(proxy.port)]) == 1
    errors = capsys.readouterr().err
    assert f"No proxy answers at http://[::1]:{proxy.port}/" in errors
    assert errors.endswith("Start one with `foveate proxy`, or name the port of a running one with --port.\n")


def test_no_key_reaches_the_log_or_the_store(tmp_path: Path, caplog):
    url = f"sqlite:///{tmp_path}/chats.db"
    with caplog.at_level("DEBUG"), RawProvider(ANSWERED) as provider, running_proxy(provider.url, store=url) as proxy:
        headers = ("x-api-key: sk-secret-1", "authorization: Bearer sk-secret-2")
        ask(proxy.port, post("/v1/messages?key=sk-secret-3", BODY, *headers))
        ask(proxy.port, post("/v1/messages", b"{", *headers))
    assert provider.received[0].headers["x-api-key"] == "sk-secret-1"
    lines: list[Any] = [vars(record) for record in caplog.records if record.name.startswith("foveate")]
    assert len(lines) >= 2
    assert "sk-secret" not in str(lines)
    assert b"sk-secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_body_writes_no_header_of_its_answer():
    messages = [{"role": "a\r\nx-injected: 1\r\n\r\nb", "content": "x"}]
    body = json.dumps({"model": "claude-haiku-4-5", "messages": messages}).encode()
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        status, headers, content = split(ask(proxy.port, post("/v1/messages", body)))
    assert (status, content, "x-injected" in headers) == (200, b"{}", False)
    assert "x-injected" in headers["x-foveate-unchanged"]
    assert provider.received[0].body == body


@pytest.mark.parametrize(
    "id", [b"../../etc", b"a b/c~1", b"\xff\xfe\x80", b"\xc3\xa4" * 3_000, b"%0d%0ax-injected: 1", b"'; --"]
)
def test_any_id_of_a_session_is_one_of_its_owner_only(id: bytes):
    body = json.dumps({"model": "claude-haiku-4-5", "tools": [{}], "messages": [{"role": "user", "content": "x"}]})
    names = set()
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        for key in (b"one", b"two"):
            request = post("/v1/messages", body.encode(), "x-api-key: KEY", "x-claude-code-session-id: ID")
            status, headers, _ = split(ask(proxy.port, request.replace(b"KEY", key, 1).replace(b"ID", id, 1)))
            assert (status, "x-injected" in headers, "x-foveate-unchanged" in headers) == (200, False, False), headers
            names.add(headers["x-foveate-conversation"])
    assert len(names) == 2


def test_the_status_of_a_proxy_with_tokens_asks_for_one(capsys, monkeypatch):
    monkeypatch.delenv("FOVEATE_PROXY_TOKEN", raising=False)
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, tokens={token_key(ANN): ""}) as proxy:
        assert main(["proxy", "--status", "--port", str(proxy.port)]) == 1
        advice = "Set FOVEATE_PROXY_TOKEN to one of its tokens."
        assert capsys.readouterr().err == f"The proxy at http://127.0.0.1:{proxy.port} needs a token. {advice}\n"
        monkeypatch.setenv("FOVEATE_PROXY_TOKEN", ANN)
        assert main(["proxy", "--status", "--port", str(proxy.port)]) == 0
