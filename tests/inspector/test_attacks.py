"""Requests of other sites, other computers and broken clients, as bytes: the inspector refuses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hostile import HOSTILE_NAMES
from prepared import play
from serving import ask, served
from starlette.routing import Mount, Route

from foveate.inspector import build_app
from foveate.inspector.access import Access
from foveate.requests.access import token_key
from foveate.testing.builders import say, user

NAME = "a/b"
PAGE = "/c/store/a~2Fb"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store with one conversation, `a/b`."""
    url = f"sqlite:///{tmp_path_factory.mktemp('attacked') / 'chats.db'}"
    play(url, NAME, [user("Hello"), say("Good day")])
    return url


@pytest.fixture(scope="module")
def site(store: str) -> Iterator[str]:
    with served(build_app(store)) as url:
        yield url


@pytest.fixture(scope="module")
def guarded_site(store: str) -> Iterator[str]:
    """An inspector that serves other computers: it needs the token `right`."""
    with served(build_app(store, access=Access(tokens={token_key("right"): ""}))) as url:
        yield url


def routes(app: Any) -> list[Route]:
    """Return all routes of an application, also those below a mount."""
    found = []
    for route in app.routes:
        assert not isinstance(route, Mount), "paths below a mount need its prefix"
        if isinstance(route, Route):
            found.append(route)
    return found


def paths(method: str) -> list[str]:
    """Return the path of each route for this method, with the conversation's name and some value for the rest."""
    values = {"source": "store", "name": "a~2Fb", "file": "style.css"}
    fill = re.compile(r"\{(\w+)(?::\w+)?\}")
    return [
        fill.sub(lambda field: values.get(field[1], "undo"), route.path)
        for route in routes(build_app("memory:"))
        if method in (route.methods or ())
    ]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example:80",
        "evil@evil.example",
        "",
        "[::",
    ],
)
def test_a_name_of_another_site_is_refused(site, host):
    """DNS rebinding: a name of another site that points to this computer."""
    for target in ("/", PAGE, "/static/style.css"):
        assert ask(site, target, host=host).status in (400, 421), target


def test_a_whole_url_in_the_request_is_refused_or_ignored(site):
    answer = ask(site, "http://evil.example/", host="evil.example")
    assert answer.status in (400, 421)


@pytest.mark.parametrize(
    "target",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static/..\\app.py",
        "/static/%2e%2e%5capp.py",
        "/static/style.css%00.png",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/../../etc/passwd",
        "/c/store/~2E~2E~2F~2E~2E~2Fetc~2Fpasswd",
        "/c/..%2f..%2fetc/passwd",
        "/c/%2fetc%2fpasswd/x",
        "/c/sqlite:~2F~2F~2Fetc~2Fpasswd/x",
        "/c/store/~00",
        "/c/store/~ED~A0~80",
        "/c/store/~FF~FE",
    ],
)
def test_a_path_that_leaves_its_folder_finds_nothing(site, target):
    answer = ask(site, target)
    assert answer.status in (400, 404), answer.body[:200]
    assert b"root:" not in answer.body
    assert b"import" not in answer.body


@pytest.mark.parametrize("path", paths("POST"))
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example", "sec_fetch_site": "cross-site"},
        {"origin": "http://127.0.0.1:1", "sec_fetch_site": "same-site"},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"sec_fetch_site": "cross-site"},
        {},
    ],
    ids=["other site", "other port", "sandbox", "no metadata", "no origin", "no browser"],
)
def test_a_form_of_another_site_is_refused(site, path, headers):
    """Cross-site request forgery, for every route that changes something."""
    form = {"content_type": "application/x-www-form-urlencoded", **headers}
    assert ask(site, path, "POST", b"token=&handle=m1", **form).status == 403
    assert ask(site, path, "POST", b"token=" + b"0" * 64, **form).status == 403
    plain = {"content_type": "text/plain", **headers}
    assert ask(site, path, "POST", b'{"token": "x"}', **plain).status in (403, 415)


@pytest.mark.parametrize("path", paths("POST"))
def test_nothing_is_changed_by_a_request_that_reads(site, path):
    assert ask(site, path).status in (404, 405)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(site, method):
    assert ask(site, PAGE, method).status == 405


def test_every_answer_has_the_content_security_policy(site):
    for target in (*paths("GET"), "/none", "/c/store/none", "/static/none", "/?from=x"):
        if target.endswith("/events"):
            continue  # An endless stream.
        answer = ask(site, target)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';"), target
        assert "unsafe" not in policy, target
        assert answer.headers["x-content-type-options"] == "nosniff", target
        assert answer.headers["referrer-policy"] == "same-origin", target


def test_another_site_cannot_read_a_page_by_a_script(site):
    """Without these headers of the answer a browser shows no script of another site what came."""
    answer = ask(site, PAGE, origin="https://evil.example", sec_fetch_site="cross-site", sec_fetch_mode="cors")
    assert answer.status == 403
    plain = ask(site, PAGE, origin="https://evil.example")
    assert not [name for name in plain.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("target", ["/", PAGE, "/static/style.css", "/c/store/none"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"cookie": "foveate_inspector=right"}, {"cookie": "foveate_inspector="}, {"authorization": "Bearer wrong"}],
    ids=["nothing", "token as cookie", "empty cookie", "wrong bearer"],
)
def test_a_request_without_the_token_gets_nothing(guarded_site, target, headers):
    answer = ask(guarded_site, target, **headers)
    assert answer.status == 401
    assert b"a/b" not in answer.body


def test_the_token_opens_the_pages_and_leaves_the_address(guarded_site):
    assert ask(guarded_site, f"{PAGE}?token=wrong").status == 401
    answer = ask(guarded_site, f"{PAGE}?turn=1&token=right")
    assert (answer.status, answer.headers["location"]) == (303, f"{PAGE}?turn=1")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "right" not in cookie
    assert ask(guarded_site, PAGE, cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize(
    "target", ["//evil.example/", "/\\evil.example/", "/%5cevil.example/", "///evil.example", "/%2fevil.example"]
)
def test_the_token_leads_to_no_other_site(guarded_site, target):
    answer = ask(guarded_site, f"{target}?token=right")
    if answer.status == 303:
        assert re.match(r"/(?![/\\])", answer.headers["location"]), answer.headers["location"]
    else:
        assert answer.status in (400, 404)


@pytest.mark.parametrize(
    "target", ["/?from=9" + "9" * 400, "/?from=-1", "/?from=1e5", "/?q=" + "%00" * 50, "/?q=%ff%fe"]
)
def test_odd_values_in_a_query_are_no_error_of_the_server(site, target):
    assert ask(site, target).status in (200, 400)


def test_hostile_names_lead_to_their_own_conversation(tmp_path):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    for number, name in enumerate(HOSTILE_NAMES):
        play(url, name, [user(f"Question {number}"), say("Yes")])
    with served(build_app(url)) as site:
        links = set(re.findall(r'href="(/c/store/[^"/]+)"', ask(site, "/").body.decode()))
        assert len(links) == len(HOSTILE_NAMES)
        titles = set()
        for link in links:
            answer = ask(site, link)
            assert answer.status == 200, link
            titles.update(re.findall(rb"<title>.*?</title>", answer.body, re.DOTALL))
        assert len(titles) == len(HOSTILE_NAMES)


def test_the_variable_of_the_token_is_no_setting(monkeypatch, tmp_path):
    monkeypatch.setenv("FOVEATE_INSPECT_TOKEN", "right")
    play(f"sqlite:///{tmp_path / 'chats.db'}", NAME, [user("Hello"), say("Good day")])
