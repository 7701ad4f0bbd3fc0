"""Access: hosts, tokens, forms of other sites, paths, and the headers of every answer."""

from __future__ import annotations

import re

import pytest
from clients import client_of
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from foveate import open_conversation
from foveate.inspector import Access, build_app
from foveate.inspector.access import COOKIE, HEADERS
from foveate.inspector.pages.base import form, page
from foveate.requests.access import token_key

ANN, BEN = "ann-has-a-long-token", "ben-has-a-long-token"
PAGES = (
    "/",
    "/c/store/a~2Fb",
    "/c/store/none",
    "/static/style.css",
    "/static/none.css",
    "/none",
    "/figures?source=store",
)


def with_tokens(store):
    """Return the pages of two tenants, as other computers reach them."""
    access = Access(tokens={token_key(ANN): "ann", token_key(BEN): "ben"})
    return TestClient(build_app(store, access=access), base_url="http://pages.example", follow_redirects=False)


async def act(request):
    """Answer a form as an action does."""
    fields = await form(request)
    return page(request, "error.html.j2", title="done", text=fields["what"])


@pytest.fixture
def acting(store):
    """A client of pages with an action that only answers."""
    app = build_app(store)
    app.router.routes.insert(0, Route("/do", act, methods=["POST"]))
    return client_of(app)


def form_token(client):
    """Return the token of the forms, as a page has it."""
    access = client.app.state.page.access
    return access.form_token(access.tenant)


# -------------------------------------------------------------------------------------------------------- every answer


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_has_the_headers(client, path):
    headers = client.get(path).headers
    assert {name: headers[name] for name in HEADERS if name != "cache-control"} == {
        name: value for name, value in HEADERS.items() if name != "cache-control"
    }
    assert headers["cache-control"] in ("no-store", "private, max-age=86400")


def test_browsers_keep_a_script_only_under_the_link_with_its_version(client):
    named = re.findall(r'(?:src|href)="([^"]*/static/[^"]*)"', client.get("/").text)
    assert any("palette.js?v=" in link for link in named)
    assert {client.get(link).headers["cache-control"] for link in named} == {"private, max-age=86400"}
    for link in ("/static/page.js", "/static/page.js?v=older"):
        assert client.get(link).headers["cache-control"] == "no-store"


def test_refusals_have_the_headers_too(client):
    answer = client.get("/", headers={"host": "evil.example"})
    assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]


@pytest.mark.parametrize("path", PAGES)
def test_pages_ask_no_other_site_and_have_no_inline_script(client, path):
    text = client.get(path).text
    assert not re.search(r"""(?:src|href|action)=["']?(?:https?:)?//""", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=|javascript:", text)


def test_name_of_a_conversation_is_escaped(store):
    with open_conversation('<img src=x onerror="alert(1)">', store=store, window=100_000) as chat:
        chat.append("Hello")
    text = client_of(build_app(store)).get("/").text
    assert "<img" not in text
    assert "&lt;img src=x" in text


# ---------------------------------------------------------------------------------------------------------------- hosts


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8788", "127.0.0.1:9", "[::1]:8788", "foveate.localhost", "127.9.9.9"]
)
def test_local_names_are_served(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "", "[", "a@localhost.example"],
)
def test_other_names_are_refused(client, host):
    """A site that points its name to this computer (DNS rebinding) gets nothing."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "a/b" not in answer.text


def test_other_computers_are_refused_without_tokens(store):
    client = TestClient(build_app(store), base_url="http://localhost", client=("203.0.113.9", 5))
    assert client.get("/").status_code == 403


# --------------------------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_served_without_a_token(store, path):
    answer = with_tokens(store).get(path)
    assert answer.status_code == 401
    assert "a/b" not in answer.text


def test_token_in_the_address_becomes_a_cookie(store):
    client = with_tokens(store)
    answer = client.get("/", params={"q": "a b", "token": ANN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=a+b")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ANN not in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "//evil.example/%2e%2e"])
def test_address_with_a_token_leads_to_no_other_site(store, path):
    answer = with_tokens(store).get(f"http://pages.example{path}?token={ANN}")
    assert answer.status_code == 303
    assert re.match(r"/(?![/\\])", answer.headers["location"])


@pytest.mark.parametrize("token", ["", "wrong", ANN + "x", token_key(ANN)])
def test_wrong_token_is_refused(store, token):
    assert with_tokens(store).get("/", params={"token": token}).status_code == 401
    assert with_tokens(store).get("/", headers={"authorization": f"Bearer {token}"}).status_code == 401
    assert with_tokens(store).get("/", headers={"cookie": f"{COOKIE}={token or 'x'}"}).status_code == 401


def test_cookie_of_a_token_that_was_withdrawn_is_refused(store):
    value = Access(tokens={}).cookie(token_key("a-token-that-was-withdrawn"))
    assert with_tokens(store).get("/", headers={"cookie": f"{COOKIE}={value}"}).status_code == 401


def test_tenant_sees_its_own_conversations_only(store):
    for tenant in ("ann", "ben"):
        from foveate.open import Options

        options = Options(tenant=tenant)
        with open_conversation(f"of {tenant}", store=store, window=100_000, options=options) as chat:
            chat.append(f"The secret of {tenant}")
    client = with_tokens(store)
    client.headers["authorization"] = f"Bearer {ANN}"
    text = client.get("/").text
    assert "of ann" in text
    assert "of ben" not in text
    assert "a/b" not in text
    assert client.get("/c/store/of~20ann").status_code == 200
    assert client.get("/c/store/of~20ben").status_code == 404


# ------------------------------------------------------------------------------------------------- forms of other sites


def test_form_of_a_page_is_accepted(acting):
    fields = {"token": form_token(acting), "what": "it"}
    for headers in ({}, {"origin": "http://localhost:8788", "sec-fetch-site": "same-origin"}):
        answer = acting.post("/do", data=fields, headers=headers)
        assert answer.status_code == 200
        assert "it" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_form_of_another_site_is_refused(acting, headers):
    answer = acting.post("/do", data={"token": form_token(acting), "what": "it"}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", Access(secret="of another run").form_token("")])
def test_form_without_its_token_is_refused(acting, token):
    assert acting.post("/do", data={"token": token, "what": "it"}).status_code == 403


def test_form_token_of_another_tenant_is_refused(store):
    access = Access()
    assert access.form_token("ann") != access.form_token("ben")


def test_form_must_be_a_form(acting):
    body = f'{{"token": "{form_token(acting)}", "what": "it"}}'
    assert acting.post("/do", content=body, headers={"content-type": "text/plain"}).status_code == 415


def test_form_that_is_too_large_is_refused(acting):
    assert acting.post("/do", data={"token": form_token(acting), "what": "x" * 200_000}).status_code == 413


def test_read_only_pages_refuse_every_form(store):
    app = build_app(store, access=Access(is_read_only=True))
    app.router.routes.insert(0, Route("/do", act, methods=["POST"]))
    client = client_of(app)
    assert client.post("/do", data={"token": form_token(client), "what": "it"}).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/").status_code == 405


def test_script_of_another_site_reads_nothing(client):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.get("/", headers=headers).status_code == 403
    assert "access-control-allow-origin" not in client.get("/", headers={"origin": "http://evil.example"}).headers


# ------------------------------------------------------------------------------------------------------ paths and sizes


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/..%2faccess.py",
        "/static/%2e%2e/access.py",
        "/static/....//access.py",
        "/static//etc/passwd",
        "/static/style.css%00",
        "/c/../../etc/passwd",
        "/c/store/~2E~2E~2Fetc~2Fpasswd",
    ],
)
def test_path_leads_to_no_file_outside(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_long_address_is_refused(client):
    assert client.get("/?q=" + "x" * 9_000).status_code == 414


# ------------------------------------------------------------------------------------------------------------- mounting


def test_pages_work_below_a_prefix(store):
    outer = Starlette(routes=[Mount("/tools/inspect", build_app(store))])
    client = client_of(outer)
    text = client.get("/tools/inspect/").text
    links = re.findall(r'(?:href|src|action|data-figures)="([^"#]*)"', text)
    assert "/tools/inspect/c/store/a~2Fb" in links
    assert all(link.startswith("/tools/inspect/") for link in links), links
    for path in links:
        assert client.get(path.replace("&amp;", "&")).status_code == 200, path


def test_cookie_counts_for_the_prefix_only(store):
    access = Access(tokens={token_key(ANN): "ann"})
    client = client_of(Starlette(routes=[Mount("/inspect", build_app(store, access=access))]))
    answer = client.get(f"/inspect/?token={ANN}")
    assert answer.headers["location"] == "/inspect/"
    assert "Path=/inspect;" in answer.headers["set-cookie"] + ";"
