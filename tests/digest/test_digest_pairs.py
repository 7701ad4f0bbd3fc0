"""Values stay with their keys, rows with their columns, and errors with their counts and places."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.digest import describe, digest

DISK = {"host": "db-1.internal", "disk": {"used": {"pct": 41.3}}, "load": [0.2, 0.4], "note": "not set"}
PADDING = {f"part_{n}": {"words": "some words that nobody asks for, " * 8} for n in range(12)}
SERVICES = [
    {"name": f"service-{n}", "state": "crashed" if n == 11 else "running", "region": "eu", "restarts": 17 * (n == 11)}
    for n in range(40)
]
YAML = "services:\n" + "".join(
    [f"  - name: web{n}\n    limits:\n      memory: {n}GB\n      cpu_share: {n}\n" for n in range(20)]
)
PODS = "NAME          READY   STATUS             RESTARTS\n" + "".join(
    [
        f"pod-{n:<10}{'0/1' if n == 7 else '1/1'}     {'CrashLoopBackOff' if n == 7 else 'Running':<19}{n}\n"
        for n in range(30)
    ]
)
TRACE = (
    'Traceback (most recent call last):\n  File "/app/main.py", line 12, in run\n    step.call(timeout=3)\n'
    '  File "/app/steps/load.py", line 40, in call\n    raise ValueError("the table is not set")\n'
    "ValueError: the table is not set\n"
)


def test_a_value_of_json_follows_its_dotted_key():
    short = digest(json.dumps({**DISK, **PADDING}), 500).text
    assert "disk.used.pct=41.3" in short
    assert "host=db-1.internal" in short
    assert 'note="not set"' in short
    assert "load=[0.2, 0.4]" in short


@pytest.mark.parametrize("form", ["array", "lines", "cut"])
def test_the_rare_item_of_a_list_is_shown_with_its_keys(form):
    text = json.dumps(SERVICES)
    if form == "lines":
        text = "\n".join(map(json.dumps, SERVICES))
    elif form == "cut":
        text = text[:-20]
    short = digest(text, len(text) // 6).text
    assert re.search(r"\[11\]: name=service-11 state=crashed (?:region=eu )?restarts=17", short)
    assert "state: running ×" in short
    assert form == "cut" or "[].region=eu (×40)" in short


def test_a_long_value_counts_what_it_leaves_out_and_lists_its_names():
    value = "Read src/orders/refund_of_order.py first. " + "plain words " * 200
    short = digest(json.dumps({"body": value, "id": "ord_17"}), 600).text
    assert re.search(r'body="Read .* … [\d,]+ more characters"', short)
    assert "src/orders/refund_of_order.py" in short
    assert "id=ord_17" in short


def test_settings_are_values_below_the_paths_of_their_keys():
    assert describe(YAML).kind == "values"
    short = digest(YAML).text
    assert "services[0]" in short
    assert "limits: memory=0GB cpu_share=0" in short


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n".join([f"DB_PART_{n}=host-{n}.internal" for n in range(60)]), "DB_PART_0=host-0.internal"),
        ("[a]\nx = 1\n" + "\n".join([f"key_{n} = {n} ms" for n in range(60)]), 'a: x=1 key_10="10 ms"'),
        ("\n".join([f'requests_total{{code="{n}"}} {n * 7}' for n in range(60)]), 'requests_total: {code="0"}=0'),
        ("HTTP/2 200\n" + "\n".join([f"X-Part{n}-Name: value-{n}" for n in range(60)]), "X-Part0-Name=value-0"),
    ],
    ids=["environment", "ini", "metrics", "headers"],
)
def test_pairs_of_each_form_are_values(text, shown):
    assert describe(text).kind == "values"
    assert shown in digest(text).text


def test_source_code_with_assignments_is_no_settings_file():
    assert describe("import os\n" + "".join([f"NAME_{n} = {n}\n" for n in range(30)])).kind == "code"


def test_a_row_of_a_table_is_whole_and_the_rare_one_stays():
    lines = digest(PODS, 300).text.split("\n")
    assert lines[1] == "1 NAME  READY  STATUS  RESTARTS"
    assert "STATUS: Running ×29, CrashLoopBackOff ×1" in lines
    assert "9 pod-7  0/1  CrashLoopBackOff  7" in lines
    assert not [line for line in lines if line.lstrip().startswith("…")]


def test_a_repeated_error_is_shown_once_with_its_count():
    served = "2026-03-01 10:00:{n:02} INFO served /api/items/{n} in {n} ms"
    failed = "2026-03-01 10:01:{n:02} ERROR [req-{n:04x}3f9c] db-primary refused the connection after {n} ms"
    rows = [form.format(n=n) for n in range(17) for form in (served, served, failed)]
    short = digest("\n".join([*rows, "2026-03-01 10:02:00 ERROR disk is full"])).text
    assert short.count("refused the connection") == 1
    assert "refused the connection after 0 ms (×17)" in short
    assert "ERROR disk is full" in short


def test_an_exception_stands_below_the_frame_that_raised_it():
    text = "".join([f"step {n}: loaded part_{n}\n" for n in range(60)]) + TRACE * 3
    short = digest(text).text
    frame, error = (short.find(line) for line in ('64 File "/app/steps/load.py", line 40, in call', "66 ValueError: "))
    assert 0 < frame < error
    assert "66 ValueError: the table is not set (×3)" in short


def test_numbers_of_assertions_stay_apart():
    text = "".join([f"tests/test_part_{n}.py ......\n" for n in range(60)])
    text += "".join([f"E       assert {n} == {n + 7}\n" for n in range(3)])
    short = digest(text).text
    assert [n for n in range(3) if f"E       assert {n} == {n + 7}" not in short] == []


SCALARS = st.one_of(st.booleans(), st.integers(-999, 999), st.text("abc_01 .", min_size=1, max_size=12))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text("abcxyz_", min_size=1, max_size=8), inner, max_size=5)
    ),
    max_leaves=40,
)


@settings(max_examples=settings.default.max_examples // 2)
@given(value=st.dictionaries(st.text("abcxyz_", min_size=1, max_size=8), VALUES, min_size=4, max_size=9))
def test_every_pair_that_a_digest_of_json_shows_is_in_the_text(value):
    text = json.dumps(value)
    short = digest(text, len(text) // 2)
    if short.description.kind == "json" and not short.is_whole:
        for key, shown in re.findall(r"([a-z_]+)=(-?\d+|true|false)(?=\s|\Z)", short.text.partition("\n")[2]):
            assert re.search(rf'"{key}": "?{re.escape(shown)}(?!\w)', text), (key, shown)


def test_a_key_without_letters_stands_apart_from_its_path():
    """Joined to `__`, the key `_` of one object once looked like the key `___` of another one."""
    keys = ["__", "$ref", "7"]
    value = {f"part_{n}": {key: n + 1} for n, key in enumerate(keys)} | {"plain_words": "word " * 90}
    short = digest(json.dumps(value), 200).text
    assert [f"part_{n}.{key}={n + 1}" in short for n, key in enumerate(keys)] == [True] * 3


def test_a_frame_that_was_printed_before_the_traceback_is_no_loop():
    """The equal line was not shown again, so the exception once stood below itself."""
    frame = 'File "/app/main.py", line 12, in run\n'
    text = f"{frame}Traceback (most recent call last):\n  {frame}ValueError: the table is not set\n"
    text += "step done\n" * 40
    assert "ValueError: the table is not set" in digest(text, 200).text
