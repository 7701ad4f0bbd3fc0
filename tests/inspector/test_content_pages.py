"""The pages of single parts over HTTP."""

from __future__ import annotations

import base64
import json
import re
from html import unescape

import pytest
from clients import client_of
from prepared import pixel

from foveate import open_conversation
from foveate.core.messages import Media, Message, Text, ToolResult
from foveate.inspector import build_app
from foveate.testing.builders import call, say, user

CODE = "\n".join(f"{n:6}→def f{n}(x): return '<b>{n}'" for n in range(1, 3_001))
PNG = pixel(8, 8)


@pytest.fixture
def parts(store):
    """A client of a conversation with a long result, an image, a drawing and nested JSON."""
    encoded = {name: base64.b64encode(body).decode() for name, body in (("png", PNG), ("svg", b"<svg onload='x()'/>"))}
    content = (
        Text(CODE), Media("text/html", "base64", encoded["png"]),
        Media("image/svg+xml", "base64", encoded["svg"], "a.svg"),
        Text(json.dumps({"rows": [{"n": n} for n in range(2_000)]})),
        Media("image/png", "url", "https://example.com/x.png"),
    )  # fmt: skip
    with open_conversation("x/y z", store=store, window=1_000_000, policy="off") as chat:
        chat.append(user("Read it"))
        chat.append(call("c1", "read_file", path="a.py"))
        chat.append(Message("tool", (ToolResult("c1", content),)))
        chat.append(say("Done"))
    with client_of(build_app(store)) as client:
        yield client


URL = "/c/store/x~2Fy~20z"


def test_a_long_result_is_shown_by_pages_that_a_person_can_follow(parts):
    url, numbers = f"{URL}/content?m=3&part=0.0", []
    while url:
        answer = parts.get(url)
        assert answer.status_code == 200
        assert len(answer.content) < 500_000
        assert "&lt;b&gt;" in answer.text
        numbers += [int(number) for number in re.findall(r'data-n="(\d+)"', answer.text)]
        more = re.search(r'<a class="c-more" data-way="after" href="([^"]+)">More', answer.text)
        url = unescape(more[1]) if more else ""
    assert numbers == list(range(1, 3_001))


def test_a_part_for_a_script_is_only_the_part(parts):
    answer = parts.get(f"{URL}/content?m=3&part=0.0", headers={"x-part": "1"})
    assert answer.text.startswith('<div class="c-block" data-kind="code">')


def test_a_long_text_is_a_file_to_download(parts):
    answer = parts.get(f"{URL}/content?m=3&part=0.0&form=file")
    assert answer.text == CODE
    assert answer.headers["content-disposition"] == 'attachment; filename="m3-0.0.txt"'
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_a_tree_leaves_out_is_another_page(parts):
    answer = parts.get(f"{URL}/content?m=3&part=0.3&at=0&first=1001")
    assert '<span class="c-index">1000</span>' in answer.text
    assert "500 more" in answer.text


def test_an_image_has_the_type_of_its_bytes(parts):
    answer = parts.get(f"{URL}/media?m=3&part=0.1")
    assert answer.content == PNG
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_a_drawing_is_a_download(parts):
    answer = parts.get(f"{URL}/media?m=3&part=0.2")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="a.svg"'
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "query",
    [
        "content", "content?m=0&part=0", "content?m=99&part=0", "content?m=3&part=0.99", "content?m=3&part=x&turn=0",
        "content?m=3&part=0.3&at=9", "content?m=3&part=0.3&at=0.0.0.0", "content?m=3&part=0&turn=7",
        "content?m=3&part=0.1", "media?m=3&part=0.4", "media?m=3&part=0.0", "media?m=3&part=9", "media?m=99&part=0",
        "media?m=3&part=0.1&turn=9",
    ],
)  # fmt: skip
def test_what_does_not_exist_is_not_found(parts, query: str):
    assert parts.get(f"{URL}/{query}").status_code == 404


def test_the_content_of_a_turn_is_what_the_model_saw(parts):
    assert "Read it" in parts.get(f"{URL}/content?m=1&part=0&turn=0").text
