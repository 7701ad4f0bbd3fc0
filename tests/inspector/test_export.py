"""Saved conversations: self-contained HTML within its limit, and Markdown."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise

import pytest
from clients import client_of
from hostile import fill_hostile
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from prepared import demo_messages, long_run, play
from test_report import read

from foveate import open_conversation
from foveate.core.messages import Message, Reasoning, Text, ToolCall, ToolResult
from foveate.inspector import build_app
from foveate.inspector.saved.export import file_name, html_of
from foveate.inspector.saved.markdown import markdown_of
from foveate.inspector.saved.report import page
from foveate.inspector.sources import StoreSource
from foveate.open import open_store
from foveate.replay.run import replay
from foveate.testing.builders import answer, call


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = f"sqlite:///{tmp_path_factory.mktemp('export') / 'chats.db'}"
    play(path, "demo/first", demo_messages()[:140], window=20_000)
    return path


@pytest.fixture(scope="module")
def saved(url):
    with open_conversation("demo/first", store=url, window=20_000, policy="off", format="anthropic") as chat:
        return html_of(chat)


def views_in(text):
    """Return the rows of each call as a reader of the file finds them, and the HTML of each row."""
    data = json.loads(re.search(r'id="saved-views">(.*?)</script>', text, re.S)[1])
    rows = dict(re.findall(r'data-form="(\d+)">(.*?</article>)', text, re.S))
    scenes = []
    for scene in data["scenes"]:
        forms, views = [], []
        for start, removed, added in scene["changes"]:
            forms[start : start + removed] = added
            views.append(list(forms))
        scenes.append((scene, views))
    return scenes, rows


def test_file_holds_the_view_of_every_call(url, saved):
    ((scene, views),), rows = views_in(saved)
    with open_conversation("demo/first", store=url, window=20_000, policy="off", format="anthropic") as chat:
        turns = list(dict.fromkeys(row.stamp.turn for row in chat.history() if row.stamp.origin == "assistant"))
        assert scene["turns"] == list(range(1, len(turns) + 1))
        for index in (0, 20, len(turns) - 1):
            view = chat.as_of(turns[index])
            shown = [re.search(r'data-position="(\d+)"', rows[str(form)])[1] for form in views[index]]
            assert shown == [str(entry.position) for entry in view]
            assert scene["tokens"][index] == sum(entry.tokens for entry in view)
    assert "is-fold" in saved


def test_file_is_well_formed_and_requests_nothing(saved):
    reader = read(saved)
    policy = next(attrs["content"] for tag, attrs in reader.tags if tag == "meta" and "http-equiv" in attrs)
    for tag in ("style", "script"):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", saved, re.S)[1]
        assert f"{tag}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    names = {name for _, attrs in reader.tags for name in attrs}
    assert "style" not in names
    assert not any(name.startswith("on") for name in names)
    assert not [attrs for _, attrs in reader.tags if attrs.get("href") or attrs.get("src", "").startswith("http")]


def test_file_keeps_its_limit_and_says_what_is_missing(url):
    with open_conversation("demo/first", store=url, window=20_000, policy="off", format="anthropic") as chat:
        small = html_of(chat, limit=60_000)
    assert len(small) < 60_000 + 110_000  # Figures, charts, styles and scripts do not count.
    assert re.search(r"[\d,]+ messages left out: rows have 0.06 MB of room", small)
    ((_, views),), rows = views_in(small)
    assert any(str(form) in rows for form in views[-1])
    newest = [str(form) in rows for form in views[-1]]
    oldest = [str(form) in rows for form in views[0] if form not in views[-1]]
    assert sum(newest) >= sum(oldest)


def test_long_conversation_is_saved_with_its_newest_views(tmp_path, monkeypatch):
    monkeypatch.setattr("foveate.inspector.saved.export.CALLS", 25)
    url = f"sqlite:///{tmp_path / 'long.db'}"
    play(url, "long", list(long_run(160)), window=10_000, policy="prune")
    with open_conversation("long", store=url, window=10_000, policy="off") as chat:
        text = html_of(chat)
    ((scene, views),), _ = views_in(text)
    assert len(views) == 25
    assert re.search(r"The views of calls 1 to \d+ are left out", text)
    assert scene["turns"][-1] > 25


def test_conversation_without_a_call_is_saved(tmp_path):
    with open_conversation("a", store=f"sqlite:///{tmp_path / 'a.db'}", window=20_000) as chat:
        chat.append("Hello")
        assert "No model call has an answer yet." in read(html_of(chat)).text


def test_hostile_conversations_are_saved_as_text(tmp_path):
    """No tag, handler or address of a message becomes one of the file."""
    url = f"sqlite:///{tmp_path / 'hostile.db'}"
    fill_hostile(url)
    source = StoreSource(url)
    for listed in source.list("", 0, 100).rows:
        with source.open(listed.name) as chat:
            text = html_of(chat, limit=1_000_000)
            markdown = "".join(markdown_of(chat))
        reader = read(text)
        tags = {tag for tag, _ in reader.tags}
        assert not tags & {"iframe", "object", "embed", "base", "foreignobject", "link", "audio", "video"}
        executed = [attrs for tag, attrs in reader.tags if tag == "script" and attrs.get("type") != "application/json"]
        assert executed == [{}]
        for _, attrs in reader.tags:
            assert not [name for name in attrs if name.startswith("on") or name == "style"]
            assert not attrs.get("href")
            assert attrs.get("src", "data:image/").startswith("data:image/")
        prose = re.sub(r"(`{3,})[^\n]*\n.*?\n\1\n", "", markdown, flags=re.S)
        assert not re.search(r"<script|<img|<svg|<iframe", re.sub(r"(`+).*?\1", "", prose))
    source.close()


def test_report_shows_the_conversation_under_each_policy():
    messages = demo_messages()[:60]
    replays = [replay(messages, policy=policy, window=20_000, views=True) for policy in ("none", "keep-last-3")]
    text = page(replays)
    scenes, rows = views_in(text)
    assert [len(views) for _, views in scenes] == [replay.row.calls for replay in replays]
    assert "keep-last-3</option>" in text
    for each, (scene, views) in zip(replays, scenes, strict=True):
        assert scene["tokens"] == [call.tokens for call in each.calls]
        positions = [re.search(r'data-position="(\d+)"', rows[str(form)])[1] for form in views[-1]]
        assert positions == [str(entry.position) for entry in each.views.at(len(each.views))]
    shared = set(scenes[0][1][-1]) & set(scenes[1][1][-1])
    assert shared  # A message that both policies show whole is in the file once.
    read(text)


def test_files_are_sent_under_a_safe_name(url):
    with open_store(url) as store, client_of(build_app(store)) as client:
        answer = client.get("/c/store/demo~2Ffirst/export")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].startswith('attachment; filename="demo~2Ffirst.html"')
        markdown = client.get("/c/store/demo~2Ffirst/export.md")
        assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
        assert markdown.text.startswith("# demo/first\n\n140 messages.\n\n## m1 system\n")
        assert markdown.text.count("\n## m") == 140
        for path in ("/c/store/missing/export", "/c/store/missing/export.md"):
            assert client.get(path).status_code == 404


@given(st.text(max_size=300))
def test_file_name_is_safe_for_any_name(name):
    file = file_name(name)
    assert len(file.encode()) <= 125
    assert file.endswith(".html")
    assert not file.startswith(".")
    assert not set(file) & set('/\\:*?"<>|\0\n')


def test_file_name_keeps_letters_of_any_script():
    """Each Chinese letter was nine characters such as `~E4~BB~93`, and the name was cut inside of one."""
    names = ["仓库对账 (二月)", "Сверка/склада", "مطابقة المستودع", "मिलान-क्ष", "กระทบยอด"]
    assert [file_name(name).removesuffix(".html") for name in names] == [
        "仓库对账 (二月)",
        "Сверка~2Fсклада",
        *names[2:],
    ]
    assert file_name("名" * 300) == f"{'名' * 40}.html"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Text("<b>bold</b> and `<i>` code"), "&lt;b>bold&lt;/b> and `<i>` code"),
        (Text("```\n<script>"), "```\n<script>\n```"),
        (Reasoning("one\ntwo"), "> one\n> two"),
        (ToolCall("a", "look", '{"x": 1}'), '**look**\n\n```json\n{"x": 1}\n```'),
        (ToolResult("a", (Text("````\nhi"),)), "`````\n````\nhi\n`````"),
        (Text("a\u202eb\x1b[0m"), "a\ufffdb\ufffd[0m"),
    ],
)
def test_part_becomes_markdown(part, expected):
    role = "tool" if isinstance(part, ToolResult) else "assistant"
    first = Message("assistant", (ToolCall("a", "look", "{}"),)) if role == "tool" else Message("user", (Text("hi"),))
    with open_conversation("a", store="memory:", window=20_000) as chat:
        chat.append(first)
        chat.append(Message(role, (part,)))
        text = "".join(markdown_of(chat))
    assert text.split("\n\n", 3)[-1].rstrip("\n").endswith(expected)


TAG = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    "text",
    [
        f"`foo\nbar` {TAG} `x", f"\\` {TAG} `", f"` {TAG} ``", f"``` `\n{TAG}", f"``` {TAG}` x",
        f"- ```\n  a\n  ```\n\n{TAG}", f"- a\n\n  ```\n{TAG}",
    ],
)  # fmt: skip
def test_no_text_that_looks_like_code_becomes_html(text: str):
    """A line and a whole paragraph, or a list, disagree about where code ends."""
    with open_conversation("a", store="memory:", window=20_000) as chat:
        chat.append(text)
        markdown = "".join(markdown_of(chat))
    tokens = MarkdownIt("commonmark", {"html": True}).parse(markdown)
    inside = [one for token in tokens for one in (token, *(token.children or ()))]
    assert not [one.content for one in inside if one.type.startswith("html_")]
    assert "onerror=alert(1)>" in markdown


@pytest.mark.parametrize(
    "title",
    [
        "##\tm1 user",
        "##  m1 user",
        "## **m1** user",
        "## \\m1 user",
        "## &#109;1 user",
        "m1 user\n---",
        " m1 user\n  ===",
    ],
)
def test_no_text_forges_the_title_of_a_message_in_another_form(title: str):
    with open_conversation("a", store="memory:", window=20_000) as chat:
        chat.append(["Look.", Message("assistant", (Text(f"Fine.\n\n{title}\n\nPush it."),))])
        tokens = MarkdownIt("commonmark").parse("".join(markdown_of(chat)))
    titles = [text.content for token, text in pairwise(tokens) if token.type == "heading_open" and not token.level]
    assert titles == ["a", "m1 user", "m2 assistant"]


def test_no_text_forges_the_title_of_a_message():
    with open_conversation("a", store="memory:", window=20_000) as chat:
        chat.append(["Look.", Message("assistant", (Text("Fine.\n\n## m1 user\n\nPush it."),))])
        markdown = "".join(markdown_of(chat))
    assert re.findall("^## .*", markdown, re.MULTILINE) == ["## m1 user", "## m2 assistant"]


def test_markdown_says_which_messages_are_erased():
    with open_conversation("c", store="memory:", format="openai", window=8_000, policy="off") as chat:
        for message in (Message("user", (Text("Look."),)), call("a", "read", path="x"), answer("a", "line")):
            chat.append(message)
        chat.privacy.erase("m2-m3")
        text = "".join(markdown_of(chat))
    assert text.endswith("\n## m2 assistant\n\n*erased*\n\n## m3 tool read\n\n*erased*\n")
