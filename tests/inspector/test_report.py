"""The HTML report: one valid, self-contained file that escapes foreign text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from replay_samples import sample

from foveate.inspector.saved.report import page
from foveate.replay.corpus import sum_rows

EMPTY = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = """</script><script>alert("x")</script>'"><img src=x onerror=alert(1)>&amp;{{ 7*7 }}"""


class Reader(HTMLParser):
    """Parses a page, and fails at a closing tag without its opening tag."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def corpus(count: int, **options):
    """Return several samples and their totals."""
    replays = [one for index in range(count) for one in sample(f"run-{index}", seed=index, **options)]
    policies = dict.fromkeys(one.row.policy for one in replays)
    return replays, [sum_rows([one.row for one in replays if one.row.policy == policy]) for policy in policies]


@pytest.fixture(scope="module")
def one():
    return page(sample(calls=60), created="1 May 2026")


@pytest.fixture(scope="module")
def many():
    return page(*corpus(12, calls=20))


def test_report_is_well_formed_and_self_contained(one, many):
    for text in (one, many):
        reader = read(text)
        addresses = [
            value
            for _, attrs in reader.tags
            for name in ("src", "href", "srcset", "action", "data")
            if (value := attrs.get(name))
        ]
        assert addresses == []
        assert not re.search(r"https?://|//[a-z]|@import|url\(", text)


def test_policy_of_the_file_allows_its_own_style_and_script_only(one):
    """The hashes are those of the texts between the tags, and no element has a style attribute or a handler."""
    reader = read(one)
    policy = next(attrs["content"] for tag, attrs in reader.tags if tag == "meta" and "http-equiv" in attrs)
    style = re.search(r"<style>(.*?)</style>", one, re.S)[1]
    script = re.search(r"<script>(.*?)</script>", one, re.S)[1]
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script)]
    assert policy.startswith(f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; ")
    names = {name for _, attrs in reader.tags for name in attrs}
    assert "style" not in names
    assert not any(name.startswith("on") for name in names)


def test_name_of_a_recording_is_escaped():
    replays = [replace(each, row=replace(each.row, transcript=HOSTILE, model=HOSTILE)) for each in sample(calls=8)]
    refused = replace(replays[0], refusals=(HOSTILE,), row=replace(replays[0].row, policy=HOSTILE))
    text = page([refused, *replays[1:]], failures=[HOSTILE], created=HOSTILE)
    reader = read(text)
    calm = sample(calls=8)
    harmless = read(page([replace(calm[0], refusals=("x",)), *calm[1:]], failures=["x"], created="x"))
    assert {tag for tag, _ in reader.tags} == {tag for tag, _ in harmless.tags}
    assert sum(tag == "script" for tag, _ in reader.tags) == sum(tag == "script" for tag, _ in harmless.tags)
    assert not [name for _, attrs in reader.tags for name in attrs if name.startswith("on")]
    assert HOSTILE in reader.text


def test_report_has_the_sentences_of_the_terminal(one):
    said = read(one).text
    for word in ("fix-login", "none", "keep-last-5", "prune", "1 May 2026", "0 illegal views", "Terms"):
        assert word in said
    assert "of the cost of sending everything" in said
    assert "The recording also holds 12 side-chain lines and 1 native compaction." in said


def test_report_has_a_chart_with_figures_for_each_policy(one):
    reader = read(one)
    charts = [attrs["data-calls"] for _, attrs in reader.tags if "data-calls" in attrs]
    assert charts == ["calls-1-1", "calls-1-2", "calls-1-3"]
    for chart in charts:
        data = json.loads(re.search(f'id="{chart}">(.*?)</script>', one)[1])
        assert data["right"] == list(range(1, 61))
        sums = [sum(values) for values in zip(*(values for _, values in data["kinds"]), strict=True)]
        assert sums == data["tokens"]


def test_report_marks_edits_with_sizes():
    prune = sample(calls=120, policies=("prune",))[0]
    text = page([prune])
    titles = re.findall(r"<title>(Call .*?)</title>", text)
    assert len(titles) == len(prune.edits) > 0
    first = prune.edits[0]
    assert titles[0] == (
        f"Call {first.turn}: {first.edits} edits, {first.tokens_before:,} → {first.tokens_after:,} tokens (prune)"
    )


def test_report_draws_cost_against_no_policy():
    assert "sending everything <tspan>" in page(sample(calls=40, policies=("prune",)))
    assert "sending everything <tspan>" not in page(sample(calls=40, policies=("none", "prune")))


def test_report_draws_the_window_if_it_is_near(one):
    assert "window 200,000" not in one
    assert "is far above all calls" in one
    assert "window 200,000" in page(sample(calls=160))


def test_report_lists_all_transcripts_and_draws_the_largest(many):
    reader = read(many)
    assert "12 recordings" in reader.text
    assert all(f"run-{index}" in reader.text for index in range(12))
    assert sum("data-calls" in attrs for _, attrs in reader.tags) == 4 * 3


def test_report_on_many_transcripts_stays_small():
    """The file stays below 3 MB for any number of transcripts."""
    group = sample(calls=360)
    replays = [replace(each, row=replace(each.row, transcript=f"{index:04}")) for index in range(700) for each in group]
    totals = [each.row for each in group]
    text = page(replays, totals)
    assert len(text.encode()) < 3_000_000
    assert "500 smaller recordings left out" in read(text).text


def test_recording_without_a_call_has_a_report():
    bare = sample(calls=1, policies=("prune",))[0]
    row = replace(bare.row, calls=0, cost=0, cost_unmanaged=0, cost_ratio=1.0, cost_all_in=1.0, recall_visible=None)
    text = page([replace(bare, row=row, calls=(), edits=())])
    assert "no model call to compare" in read(text).text


def test_report_highlights_illegal_views_and_failures():
    bad = sample(calls=5, policies=("prune",))[0]
    bad = replace(bad, row=replace(bad.row, illegal_views=2), refusals=("call 3: ids must be unique",))
    text = " ".join(read(page([bad], failures=["x.json: the file is empty."])).text.split())
    assert "✕ 2 illegal views" in text
    assert "fix-login, prune: call 3: ids must be unique" in text
    assert "Not replayed x.json: the file is empty." in text
