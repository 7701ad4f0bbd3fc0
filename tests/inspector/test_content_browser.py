"""Parts of messages in a browser: they open in place, and look right in light and dark, wide and narrow."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from browsing import LOOKS, Look, check_accessibility, screenshot
from prepared import pixel
from serving import served

from foveate import open_conversation
from foveate.core.messages import Media, Message, Text, ToolCall, ToolResult
from foveate.inspector import build_app
from foveate.open import open_store
from foveate.testing import answer, call, user

pytestmark = pytest.mark.slow

CODE = "\n".join(f"{n:6}→def f{n}(x): return {n}" for n in range(1, 1_201))
TERMINAL = "\x1b[1mBuild\x1b[0m\n\x1b[32mok\x1b[0m a\n\x1b[31mfailed\x1b[0m \x1b[7minverse\x1b[0m\n\x1b[2K\x1b[41;97mx"
TABLE = "id,name,price\n" + "\n".join(f"{n},item {n},{n * 3.5}" for n in range(30))
DIFF = (
    "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n def f():\n-    return 1\n+    return 2\n # end"
)
JSON = json.dumps({"rows": [{"n": n, "tags": ["a", "b"], "long": "x" * 3_000} for n in range(700)], "ok": True})
PROSE = """\
# Plan

See [this](https://example.com/x) and `f`:

- one
- two

```python
def f(): return 'x'
```

> quoted

1. **bold**
2. ~~old~~

| a | b |
|---|---|
| 1 | 2 |
"""
LOG = "\n".join([*(f"2026-01-01 10:00:{n:02} INFO step {n}" for n in range(40)), "2026-01-01 10:01:00 ERROR failed"])
PAGE = "<!doctype html><html><head><title>Shop</title></head><body><h1>Hats</h1><p>Buy <a href='/hats/7'>this</a></p>"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """The URL of a conversation with a message whose result has a part of each kind."""
    image = base64.b64encode(pixel(300, 120)).decode()
    texts = (CODE, TERMINAL, TABLE, DIFF, JSON, PROSE, LOG, PAGE, "a\u202eb\u0000c")
    content = (*(Text(text) for text in texts), Media("image/png", "base64", image, "shot.png"))
    edit = {"file_path": "a.py", "old_string": "a = 1\nb = 2", "new_string": "a = 3\nb = 2", "replace_all": False}
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('content') / 'chats.db'}") as store:
        with open_conversation("parts", store=store, window=10_000_000, policy="off") as chat:
            chat.append(Message("user", (Text(PROSE),)))
            chat.append(Message("assistant", (ToolCall("c1", "edit", json.dumps(edit)),)))
            chat.append(Message("tool", (ToolResult("c1", content),)))
        with served(build_app(store)) as url:
            yield f"{url}/c/store/parts"


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize("message", [1, 2, 3])
def test_parts_are_legible(pages, site: str, look: Look, message: int):
    page = pages.open(f"{site}/content?m={message}&part=0", look)
    check_accessibility(page)
    screenshot(page, f"parts-{message}-{look}", whole=True)


def test_pages_of_a_long_part_open_in_place(pages, site: str):
    page = pages.open(f"{site}/content?m=3&part=0.0")
    while page.locator("a.c-more[data-way=after]").count():
        blocks = page.locator(".c-block").count()
        page.locator("a.c-more[data-way=after]").click()
        page.locator(".c-block").nth(blocks).wait_for()
    numbers = page.eval_on_selector_all(".c-line", "all => all.map(one => one.dataset.n)")
    assert numbers == [str(number) for number in range(1, 1_201)]
    assert "content" in page.url


def test_the_rest_of_a_tree_opens_in_place(pages, site: str):
    page = pages.open(f"{site}/content?m=3&part=0.4")
    more = page.locator(".c-tree > .c-node > a.c-more")
    more.click()
    page.locator(".c-tree .c-tree").wait_for()
    text = page.locator("a.c-more", has_text="all 3,000 characters").first
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    text.click()
    page.locator(".c-leaf .c-block").wait_for()


def test_a_text_can_be_read_as_it_is(pages, site: str):
    page = pages.open(f"{site}/content?m=1&part=0")
    page.get_by_text("As plain text").click()
    page.locator("[data-kind=plain]").wait_for()
    assert page.locator("[data-kind=plain] pre").inner_text() == PROSE.removesuffix("\n")


def test_an_image_is_shown(pages, site: str):
    page = pages.open(f"{site}/content?m=3&part=0")
    image = page.locator("img.c-image")
    image.scroll_into_view_if_needed()
    assert image.evaluate("one => one.decode().then(() => one.naturalWidth)") == 300


HEBREW = "שלום, הבדיקה test_login נכשלה"
LONG_NAME = "mcp__server_of_the_whole_company__" + "read_one_page_of_the_manual_" * 5


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> Iterator[str]:
    """The URL of a conversation in Hebrew, whose tool has a long name."""
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('words') / 'chats.db'}") as store:
        with open_conversation("words", store=store, window=10_000_000, policy="off") as chat:
            chat.append(Message("user", (Text(f"{HEBREW}\n\n- {HEBREW}\n\nThe {HEBREW}"),)))
            chat.record(Message("assistant", (ToolCall("c1", LONG_NAME, "{}"),)))
            chat.append(Message("tool", (ToolResult("c1", (Text(f"{HEBREW}\n" * 3),)),)))
        with served(build_app(store)) as url:
            yield f"{url}/c/store/words"


def test_words_from_right_to_left_stand_in_their_order(pages, words: str):
    """Regression: each run of Hebrew was in order, but the runs stood from left to right."""
    find = """(all, word) => all.map(one => {
        const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const at = walker.currentNode.data.indexOf(word);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(walker.currentNode, at);
            range.setEnd(walker.currentNode, at + word.length);
            return range.getBoundingClientRect().x;
        }
    })"""
    page = pages.open(f"{words}/content?m=1&part=0")
    blocks = ".c-prose > p, .c-prose > ul"
    first, last = (page.eval_on_selector_all(blocks, find, word) for word in ("שלום", "נכשלה"))
    assert [left > right for left, right in zip(first, last, strict=True)] == [True, True, False]
    page.goto(f"{words}/content?m=3&part=0.0")
    (first,), (last,) = (page.eval_on_selector_all("pre", find, word) for word in ("שלום", "נכשלה"))
    assert first > last


@pytest.mark.parametrize("look", [Look("light", 1280), Look("light", 390)], ids=str)
def test_a_long_name_of_a_tool_is_not_cut(pages, words: str, look: Look):
    page = pages.open(words, look)
    excess = "all => all.map(one => Math.max(0, one.getBoundingClientRect().right - innerWidth))"
    assert page.eval_on_selector_all(".about > *", excess) == [0] * page.locator(".about > *").count()
    page.goto(f"{words}/entry?m=3")
    check_accessibility(page)


def test_length_of_a_cut_line_is_readable_between_arabic_words(pages):
    """The number stood behind the words: "characters in this line 3,000"."""
    with open_store("memory:") as store, open_conversation("arabic", store=store, window=100_000) as chat:
        chat.append([user("Read it."), call("a", "read", path="a.txt"), answer("a", "السطر\n" + "ا" * 3_000)])
        with served(build_app(store)) as site:
            page = pages.open(f"{site}/c/store/arabic")
            page.locator("#rows summary").first.click()
            places = page.locator(".c-cut").first.evaluate(
                """cut => {
                    const text = cut.firstChild, at = text.data.indexOf("3,000");
                    return [[at, at + 5], [at + 6, at + 16]].map(([from, to]) => {
                        const range = document.createRange();
                        range.setStart(text, from);
                        range.setEnd(text, to);
                        const box = range.getBoundingClientRect();
                        return [box.left, box.top];
                    });
                }"""
            )
            (left, top), (right, below) = places
            assert left < right or top < below
            pages.close()
