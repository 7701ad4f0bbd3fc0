"""Parts of messages as HTML: what people see of each kind, and that nothing a message holds becomes markup."""

from __future__ import annotations

import base64
import gc
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile import HOSTILE_TEXTS, hostile
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from prepared import pixel

from foveate.core.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from foveate.inspector.content import (
    FOLDED,
    PAGE,
    Limits,
    Links,
    data_url,
    diff_lines,
    file_of,
    headline,
    part_at,
    render,
    render_diff,
    render_page,
)
from foveate.inspector.content.characters import mark_of, visible
from foveate.inspector.content.lines import window_of
from foveate.inspector.content.markdown import render_markdown
from foveate.inspector.content.terminal import render_terminal
from foveate.inspector.content.trees import Node, child_at, parse_tree
from foveate.replay.recordings import read_recording

LINKS = Links(
    lambda part, **query: f"/content?part={part}&first={query.get('first', 1)}&at={query.get('at', '')}",
    lambda part: f"/media?part={part}",
)
STYLES = (Path(__file__).parents[2] / "src/foveate/inspector/static/content.css").read_text()

ELEMENTS = {
    "div": {"class", "data-kind", "tabindex"}, "pre": {"class"}, "span": {"class", "title", "data-n"},
    "p": {"class", "dir"}, "a": {"class", "href", "data-way", "download"}, "mark": {"class"}, "code": set(),
    "hr": {"class"}, "details": {"class", "open"}, "summary": {"class"}, "table": {"class", "dir"}, "thead": set(),
    "tbody": set(), "tr": set(), "th": {"class"}, "td": {"class"}, "ul": {"dir"}, "ol": {"start", "dir"}, "li": set(),
    "blockquote": {"dir"}, "strong": set(), "em": set(), "s": set(), "figure": {"class"}, "figcaption": set(),
    "img": {"class", "src", "width", "height", "alt", "loading"},
}  # fmt: skip
"""All elements with all their attributes."""
VOID = {"img", "hr"}


class Reader(HTMLParser):
    """Reads HTML strictly: each element and attribute is known, and each end has its begin."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.notes = 0
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS, tag
        names = [name for name, _ in attrs]
        assert set(names) <= ELEMENTS[tag], (tag, attrs)
        assert len(names) == len(set(names)), attrs
        values = dict(attrs)
        for name in values.get("class", "").split():
            assert re.fullmatch(r"c-[a-z]+\d*", name), name
        assert values.get("dir", "auto") == "auto"
        assert values.get("data-kind", "x").isalpha()
        assert values.get("data-n", "1").isdecimal() or values["data-n"] == ""
        for url in (values.get("href"), values.get("src")):
            assert url is None or url.startswith(("/content?", "/media?")), url
            self.links += [url] if url else []
        if self.notes or {"c-cut", "c-foot", "c-more"} & set(values.get("class", "").split()):
            self.notes += tag not in VOID
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag
        self.notes -= self.notes > 0

    def handle_data(self, data):
        if not self.notes:
            self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def read(html: Markup) -> Reader:
    """Parse HTML; fail if it has anything that the package does not write."""
    reader = Reader()
    reader.feed(str(html))
    reader.close()
    assert reader.open == []
    return reader


def text_in(html: Markup) -> str:
    return "".join(read(html).text)


def marked(text: str) -> str:
    """The text that a page shows for a text: one mark for each character that no font shows."""
    return "".join(mark_of(c) if "c-control" in visible(c) else c for c in text)


SNIPPETS = st.sampled_from(
    [
        *HOSTILE_TEXTS.values(), "<", "&", '"', "'", "&lt;", "&#x27;",
        "\x1b[31m", "\x1b]8;;http://x\x07", "\r\n", "\n", "\t", "\x00",
        "\u202e", "\ud800", "\u200b", "```", "```js\n", "| a | b |\n|---|---|\n", "# ", "- ", "1. ",
        "[x](javascript:y)",
        "![i](data:x)", "**", "`", "~~", "<!--", "-->", "]]>", "<![CDATA[", "<?x", "@@ -1 +1 @@\n", "+a\n", "-b\n",
        "diff --git a/x b/x\n", "{", "}", '"a":', "[", "]", ",", "a,b,c\n", "1\t2\t3\n", "src/a.go:12: x\n",
        "  12→", "def f():\n",
        "Output:\n", "<html>", "</pre>", "</div>", "Traceback", "ERROR", "\\", "2024-01-01 10:00:00 INFO x\n",
    ]
)  # fmt: skip
TEXTS = st.lists(SNIPPETS | st.text(max_size=12), max_size=14).map("".join)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
).map(json.dumps)
CONTENTS = (
    st.builds(Text, TEXTS)
    | st.builds(Media, TEXTS, st.sampled_from(["base64", "url", "file"]), TEXTS, TEXTS)
    | st.builds(Opaque, TEXTS, TEXTS, JSONS | TEXTS)
)
PARTS = (
    CONTENTS
    | st.builds(Reasoning, TEXTS, TEXTS, TEXTS, TEXTS)
    | st.builds(ToolCall, TEXTS, TEXTS, JSONS | TEXTS)
    | st.builds(ToolResult, TEXTS, st.lists(CONTENTS, max_size=3).map(tuple))
)


# ------------------------------------------------------------------------------------------------------------- safety


@given(part=PARTS, lines=st.integers(1, 30), call=st.none() | st.builds(ToolCall, TEXTS, TEXTS, JSONS))
def test_any_part_becomes_only_known_elements_and_attributes(part: Part, lines: int, call: ToolCall | None):
    limits = Limits(lines, 50, 300, lines // 3)
    read(render(part, links=LINKS, limits=limits, call=call))
    read(render(part, limits=limits, is_page=True))
    read(headline(part))


@given(text=TEXTS)
def test_plain_text_shows_each_character_of_the_text(text: str):
    page = render_page(Message("user", (Text(text),)), "0", links=LINKS, form="plain")
    if text.strip():
        assert text_in(page) == marked(text.replace("\r\n", "\n").removesuffix("\n"))


@given(
    lines=st.lists(TEXTS.map(lambda text: text.replace("\n", " ")), min_size=1, max_size=8),
    name=st.sampled_from(["a.py", "a.go", "a.ts"]),
)
def test_highlighted_code_shows_each_character_of_the_text(lines: list[str], name: str):
    text = "\n".join(["def f(x): return x", *lines, "class A: pass"])
    call = ToolCall("1", "write", json.dumps({"path": name, "content": text}))
    shown = text_in(render(call, limits=PAGE))
    assert marked(text.replace("\r\n", "\n")) in shown


@given(text=TEXTS | st.text("ab c*_`[]()<>!\\#-\n|~\"'1.:", max_size=60))
def test_markdown_shows_each_word_of_the_text(text: str):
    shown = text_in(render_markdown(text))
    for word in re.findall(r"[a-z]+", text):
        assert word in shown


@given(old=TEXTS, new=TEXTS)
def test_a_diff_shows_both_texts(old: str, new: str):
    rows = diff_lines(old, new, context=1_000)
    assert "\n".join(row.text for row in rows if row.mark in " -") == old
    assert "\n".join(row.text for row in rows if row.mark in " +") == new
    read(render_diff(old, new, FOLDED, "/content?"))


@given(text=TEXTS)
def test_terminal_output_shows_the_text_without_styles(text: str):
    shown = "\n".join(text_in(line) for line in render_terminal(text.split("\n")))
    styles = re.compile(r"\x1b\[[0-9;:]{0,60}m|\x1b\]8;[^;\x07\x1b\n]{0,200};(?:\x07|\x1b\\)")
    links = re.compile(r"\x1b\]8;[^;\x07\x1b\n]{0,200};([^\x07\x1b\n]{1,2000})(?:\x07|\x1b\\)")
    assert shown == marked(styles.sub("", links.sub(r"\1 ", text)))


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_no_hostile_text_becomes_markup(text: str):
    for part in (Text(text), ToolResult("1", (Text(text),)), Reasoning(text), ToolCall("1", text, text)):
        read(render(part, links=LINKS, limits=PAGE))


def test_hostile_conversations_become_only_known_elements():
    for message in hostile(line=100_000):
        for index, part in enumerate(message.parts):
            read(render(part, path=str(index), links=LINKS))
            read(render_page(message, str(index), links=LINKS))


def test_every_class_has_a_style():
    """Classes that the style sheet does not name are spelling mistakes, in one place or the other."""
    written = set()
    for path in (Path(__file__).parents[2] / "src/foveate/inspector/content").glob("*.py"):
        written |= set(re.findall(r"\bc-[a-z]+\b", path.read_text()))
    styled = set(re.findall(r"\.(c-[a-z]+)", STYLES))
    unstyled = {"c-p", "c-h", "c-fg", "c-bg", "c-diff", "c-code", "c-lines", "c-output", "c-index", "c-download"}
    assert written - styled <= unstyled


# -------------------------------------------------------------------------------------------------------------- bounds


def _hard_texts(mega: int) -> dict[str, str]:
    """Return texts of about so many characters, by name."""
    return {
        "one line": "x" * mega,
        "line breaks": "\n" * mega,
        "tags": "<b>" * (mega // 3),
        "controls": "\u202e\x00" * (mega // 2),
        "escapes": "\x1b[31m" * (mega // 5),
        "open links": "\x1b]8;;" * (mega // 5),
        "brackets": "[" * mega,
        "nested objects": '{"a":' * (mega // 5),
        "million keys": "{" + ",".join(f'"{n}":{n}' for n in range(mega // 14)) + "}",
        "large number": "[" + "9" * mega + "]",
        "quotes": '["' + '\\"' * (mega // 2),
        "stars": "**a" * (mega // 3),
        "links": "[a](b" * (mega // 5),
        "images": "![" * (mega // 2),
        "quotations": ">" * mega,
        "fences": "```\n" * (mega // 4),
        "table": "a,b,c\n" * (mega // 6),
        "wide table": "a|" * (mega // 2) + "\n" + "-|" * 1_000,
        "cells": '"' * mega,
        "page": "<html>" + "<a href=" * (mega // 8),
        "comments": "<html>" + "<!--" * (mega // 4),
        "diff": "diff --git a/x b/x\n" + "-a b c d\n+a b d c\n" * (mega // 18),
        "diff words": "diff --git a/x b/x\n" + ("-" + "a b " * 225 + "\n+" + "b a " * 225 + "\n") * 1_000,
        "code": "def f():\n    '''" + "a\\" * (mega // 2),
        "code strings": "x = '" * (mega // 5),
        "code lines": "import os\n" + "a = f'{" * 70 + "\n" + ("f'{a!r:{b}} {" * 60 + "\n") * 1_000,
        "matches": "a/" * (mega // 2) + "b.go:1: x",
        "log": "2024-01-01 10:00:00 ERROR " + "error " * (mega // 6),
        "spaces": " " * mega + "x",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", _hard_texts(0))
def test_hard_texts_of_10_megabytes_do_not_hang(name: str):
    text = _hard_texts(10_000_000)[name]
    message = Message("tool", (ToolResult("1", (Text(text),)),))
    render(ToolResult("1", (Text("def f(): pass\n"),)))
    for show in (
        lambda: render(message.parts[0], links=LINKS),
        lambda: render(Text(text), links=LINKS),
        lambda: headline(message.parts[0]),
        lambda: render_page(message, "0.0", links=LINKS),
        lambda: render(ToolCall("1", "x", json.dumps({"content": text[:5_000_000], "path": "a.py"})), links=LINKS),
    ):
        start = time.process_time()
        html = show()
        assert time.process_time() - start < 20  # Less than one on a computer of its own.
        assert len(html.encode()) < 500_000
    read(html)


def test_a_page_with_hidden_characters_stays_below_500_kilobytes():
    message = Message("user", (Text("\u202e\n" * 100_000 + "\x00" * 1_000_000),))
    page = render_page(message, "0", links=LINKS)
    assert len(page.encode()) < 500_000
    assert any("first=" in link for link in read(page).links)


def test_pages_together_show_each_line_once():
    text = "\n".join(f"line {n}" for n in range(1, 2_001)) + "\n"
    message = Message("tool", (ToolResult("1", (Text(text),)),))
    first, shown = 1, ""
    while first:
        page = read(render_page(message, "0.0", links=LINKS, first=first))
        shown += "".join(page.text) + "\n"
        following = [int(re.search(r"first=(\d+)", link)[1]) for link in page.links]
        first = max((number for number in following if number > first), default=0)
    assert shown == text


@given(text=TEXTS, first=st.integers(1, 30), lines=st.integers(1, 10))
def test_a_window_has_the_lines_of_the_text(text: str, first: int, lines: int):
    window = window_of(text, Limits(lines, 10_000, 10_000), first)
    rows = text.split("\n")[: window.lines]
    start = min(first, max(1, len(rows)))
    assert [row for _, row, _ in window.rows] == [
        row[:-1] if row.endswith("\r") and start + index < text.count("\n") + 1 else row
        for index, row in enumerate(rows[start - 1 : start - 1 + lines])
    ]


def test_the_end_of_output_is_shown_when_its_middle_is_not():
    text = "\n".join([*(f"ok {n}" for n in range(500)), "FAILED one test"])
    shown = text_in(render(ToolResult("1", (Text(text),)), links=LINKS))
    assert shown.startswith("ok 0\n")
    assert shown.endswith("FAILED one test")


def test_a_cut_line_says_how_long_it_is():
    html = render(ToolResult("1", (Text("x" * 100_000),)), links=LINKS)
    assert "100,000 characters in this line" in html
    assert len(html) < 1_000


# --------------------------------------------------------------------------------------------------------------- forms


def test_markdown_becomes_headings_lists_code_and_tables():
    text = "# Plan\n\n1. one\n2. two **bold**\n\n```python\ndef f(): pass\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    html = render(Text(text))
    assert '<p class="c-h1" dir="auto">Plan</p>' in html
    assert '<ol dir="auto"><li><p class="c-tight">one' in html
    assert "<strong>bold</strong>" in html
    assert '<span class="c-key">def</span>' in html
    assert "<td>1</td>" in html


def test_a_link_of_markdown_is_text_with_its_address():
    html = render_markdown(
        "[here](https://example.com/x) [bad](javascript:alert(1)) ![pixel](https://example.com/p.png)"
    )
    assert "href" not in html
    assert "src" not in html
    assert text_in(html) == "here https://example.com/x [bad](javascript:alert(1)) pixel https://example.com/p.png\n"


def test_backslashes_and_controls_of_markdown_stay():
    assert text_in(render(Text("See D:\\x\\.claude \\*a\\* **b**\x00"))) == "See D:\\x\\.claude \\*a\\* bNUL\n"


def test_a_digest_is_shown_as_it_is():
    html = render(Text("[fold]\nGlob(**/*.go) and *x*"), form="plain")
    assert text_in(html) == "[fold]\nGlob(**/*.go) and *x*"


def test_a_page_inside_a_fence_continues_the_fence():
    text = "Look:\n\n```python\n" + "\n".join(f"print('**no**', {n})" for n in range(3_000)) + "\n```\n**bold**\n"
    page = render_page(Message("assistant", (Text(text),)), "0", links=LINKS, first=1_000)
    assert "<strong>" not in page
    assert '<span class="c-str">**no**</span>' in page


def test_json_keeps_numbers_and_repeated_keys():
    text = '{"a": 12345678901234567890.10, "a": 1e400, "b": [NaN, {"c": null}]}'
    shown = text_in(render(ToolResult("1", (Text(text),)), limits=PAGE))
    assert shown == "a12345678901234567890.10a1e400b[2 items]0NaN1{1 key}cnull"


def test_a_long_tree_holds_no_nodes_for_what_no_page_shows():
    tree = parse_tree(json.dumps([[number] for number in range(10_000)]))
    gc.collect()
    assert sum(isinstance(value, Node) for value in gc.get_objects()) < 100
    assert child_at(tree, "9999.0") == "9999"
    with pytest.raises(LookupError):
        child_at(tree, "10000")


def test_deep_json_is_shown_as_text():
    text = "[" * 100_000 + "]" * 100_000
    assert parse_tree(text) is None
    read(render(ToolResult("1", (Text(text),)), links=LINKS))


def test_what_a_tree_leaves_out_has_a_page():
    value = {"rows": [{"n": n, "text": "x" * 5_000} for n in range(700)]}
    message = Message("tool", (ToolResult("1", (Text(json.dumps(value)),)),))
    rows = render_page(message, "0.0", links=LINKS, at="0", first=691)
    assert text_in(rows).startswith("690{2 keys}n690text")
    long = render_page(message, "0.0", links=LINKS, at="0.690.1")
    assert "5,000 characters in this line" in long
    with pytest.raises(LookupError):
        render_page(message, "0.0", links=LINKS, at="0.690.7")


def test_an_edit_is_a_diff_with_the_changed_words():
    call = ToolCall("1", "Edit", json.dumps({"file_path": "a.py", "old_string": "a = 1\nb", "new_string": "a = 2\nb"}))
    html = render(call)
    assert '<span class="c-removed">-a = <mark class="c-word">1</mark></span>' in html
    assert '<span class="c-added">+a = <mark class="c-word">2</mark></span>' in html
    assert text_in(html) == "file_patha.py-a = 1\n+a = 2\n b"


def test_a_cut_line_of_a_diff_says_how_long_it_is():
    html = render_diff("x" * 5_000, "[5,000 characters]", FOLDED)
    assert text_in(html) == "-" + "x" * FOLDED.width + "\n+[5,000 characters]"
    assert html.count("… 5,000 characters in this line") == 1


def test_empty_and_literal_arguments_are_shown():
    call = ToolCall("1", "x", '{"a": [], "b": {}, "c": null, "d": 1.50, "e": [[], [1]]}')
    assert text_in(render(call)) == "a[0 items]b{0 keys}cnulld1.50e0[0 items]1[1 item]01"


def test_a_list_of_edits_and_a_patch_are_diffs():
    edits = json.dumps({"edits": [{"oldText": "x", "newText": "y"}, {"oldText": "1", "newText": "2"}]})
    assert render(ToolCall("1", "edit", edits)).count('data-kind="diff"') == 2
    patch = json.dumps({"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch\n"})
    assert '<span class="c-added">+b</span>' in render(ToolCall("1", "apply_patch", patch))


@pytest.mark.parametrize("command", ["ls -la | wc -l", ["bash", "-lc", "ls -la | wc -l"]])
def test_a_command_is_code(command):
    html = render(ToolCall("1", "Bash", json.dumps({"command": command})))
    assert 'data-kind="code"' in html
    assert text_in(html) == "ls -la | wc -l"


def test_numbers_of_a_viewer_stand_next_to_the_code():
    text = "Preview:\n     7→def f(x):\n     8→    return x\n     9→\n    10→class A: pass"
    call = ToolCall("1", "Read", '{"file_path": "a.py"}')
    html = render(ToolResult("1", (Text(text),)), call=call)
    assert text_in(html) == "Preview:\ndef f(x):\n    return x\n\nclass A: pass"
    assert re.findall(r'data-n="(\d+)"', html) == ["7", "8", "9", "10"]
    assert '<span class="c-line" data-n=""></span>Preview:' in html
    assert '<span class="c-key">def</span>' in html


def test_facts_before_a_file_or_output_stand_above_it():
    file = "<path>/x/a.sql</path>\n<type>file</type>\n<content>1: SELECT 1;\n2: SELECT 2;\n3: SELECT 3;\n</content>"
    html = render(ToolResult("1", (Text(file),)), call=ToolCall("1", "read", '{"path": "a.sql"}'))
    assert '<pre class="c-wrapper">&lt;path&gt;/x/a.sql' in html
    assert re.findall(r'data-n="(\d+)"', html) == ["1", "2", "3"]
    output = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n" + '{"a": 1}'
    html = render(ToolResult("1", (Text(output),)))
    assert text_in(html) == "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:a1"


def test_a_text_in_the_fields_of_a_protocol_is_shown_with_them():
    text = json.dumps({"content": [{"type": "text", "text": "port: 80\nhost: a\nzone: b\n"}], "isError": False})
    html = render(ToolResult("1", (Text(text),)))
    assert "isError" in text_in(html)
    assert 'data-kind="values"' not in html


def test_a_table_has_columns_and_numbers_to_the_right():
    html = render(ToolResult("1", (Text('name,size,note\na.txt,12,"x; y"\nb.txt,340,\nc.txt,5,z'),)))
    assert '<th>name</th><th class="c-number">size</th>' in html
    assert "<td>x; y</td>" in html


def test_colours_of_a_terminal_are_classes_and_other_sequences_are_visible():
    html = render(ToolResult("1", (Text("\x1b[1;31mred\x1b[0m \x1b[2Kline \x1b[38;5;46mgreen\x1b[38;2;0;0;250mblue"),)))
    assert '<span class="c-bold c-fg1">red</span>' in html
    assert '<span class="c-fg10">green</span>' in html
    assert '<span class="c-fg4">blue</span>' in html
    assert text_in(html) == "red ESC[2Kline greenblue"


def test_directions_and_widths_become_visible_and_emoji_stay():
    shown = text_in(visible("a\u202eb\u200b 👩\u200d💻 ⚠\ufe0f \u05e9\ud800"))
    assert shown == "aU+202EbU+200B 👩\u200d💻 ⚠\ufe0f \u05e9U+D800"


def test_an_html_page_is_text_with_its_links():
    page = "<!doctype html><html><head><title>Shop</title></head><h1>Hats</h1><p>Buy <a href='/hats/7'>this</a></p>"
    html = render(ToolResult("1", (Text(page),)))
    assert '<span class="c-heading"># Shop</span>' in html
    assert "Buy this &lt;/hats/7&gt;" in html


def test_reasoning_says_whether_it_is_signed_or_encrypted():
    assert "signed" in render(Reasoning("I think", signature="abc"))
    assert "encrypted, 4 characters" in render(Reasoning(encrypted="abcd"))


# --------------------------------------------------------------------------------------------------------------- media

PNG = pixel(4, 3)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


def _media(body: bytes, mime: str = "image/png", name: str = "") -> Media:
    return Media(mime, "base64", base64.b64encode(body).decode(), name)


def test_an_image_is_shown_by_its_first_bytes():
    html = render(_media(PNG, "text/html"), links=LINKS)
    assert '<img class="c-image" src="/media?part=0"' in html
    assert file_of(_media(PNG, "text/html")).content_type == "image/png"
    assert data_url(_media(PNG)).startswith("data:image/png;base64,")


@pytest.mark.parametrize("body", [SVG, b"%PDF-1.7", b"<html>", b"\x89PNG\r\n\x1a\n<svg", b""])
def test_everything_else_is_a_download(body: bytes):
    media = _media(body, "image/png", '../"x\r\n.svg')
    html = render(media, links=LINKS)
    assert "<img" not in html
    assert data_url(media) is None
    file = file_of(media)
    assert file.headers == {
        "content-type": "application/octet-stream",
        "content-disposition": 'attachment; filename="x-.svg"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


def test_media_of_an_unknown_type_count_as_images():
    html = render(Media("", "url", "https://example.com/cat.png"), links=LINKS)
    assert text_in(html) == "image at https://example.com/cat.png"


def test_a_url_of_media_is_text():
    html = render(Media("image/png", "url", "https://example.com/pixel.png"), links=LINKS)
    assert read(html).links == []
    assert "https://example.com/pixel.png" in html


@pytest.mark.parametrize("path", ["", "1", "0.9", "0.0.0", "-1", "٣", "0.", "x"])
def test_a_path_without_a_part_is_refused(path: str):
    with pytest.raises(LookupError):
        part_at(Message("tool", (ToolResult("1", (Text("x"),)),)), path)


# ------------------------------------------------------------------------------------------------------ real sessions


@pytest.mark.slow
def test_every_part_of_the_recorded_sessions_becomes_known_elements(transcripts: Path):
    for path in sorted((transcripts / "neutral").glob("*/*.jsonl")):
        for recorded in read_recording(path).messages:
            for index, part in enumerate(recorded.message.parts):
                read(render(part, path=str(index), links=LINKS))
                read(headline(part))


@pytest.mark.slow
def test_rows_of_a_recorded_session_do_not_hang(transcripts: Path):
    """The processor's time for 200 messages, without the lexers, which a process loads once."""
    messages = [
        recorded.message
        for recorded in read_recording(
            max((transcripts / "neutral").glob("*/*.jsonl"), key=lambda p: p.stat().st_size)
        ).messages
    ]
    rows = messages[:200]
    for message in rows:
        for part in message.parts:
            render(part, links=LINKS)
    from foveate.core.caches import clear_caches

    clear_caches()
    start = time.process_time()
    for message in rows:
        for part in message.parts:
            render(part, links=LINKS)
    assert time.process_time() - start < 5  # 0.05 on a computer of its own.
