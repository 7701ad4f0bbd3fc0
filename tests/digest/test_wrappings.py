"""Wrappings of outputs: what is left of a result, and what its description and its digest say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.digest import describe, digest
from foveate.digest.wrappings import output_of, unwrap, wrapper_end

TABLES = "success: true\ntables: orders, users\nowner: o'neill"


def of_mcp(text: str, **more: object) -> str:
    """Return a result of an MCP server as JSON."""
    return json.dumps({"_meta": None, "content": [{"type": "text", "text": text, "annotations": None}], **more})


def printed(text: str, is_error: bool = False) -> str:
    """Return such a result as Python prints it."""
    return f"meta=None content=[TextContent(type='text', text={text!r}, annotations=None)] isError={is_error}"


@pytest.mark.parametrize(
    "text",
    [
        of_mcp(TABLES, isError=False),
        json.dumps({"type": "text", "text": TABLES, "annotations": None, "meta": None}),
        json.dumps([{"type": "text", "text": part} for part in TABLES.split("\n")]),
        printed(TABLES),
        printed(of_mcp(TABLES, isError=False)),
        json.dumps({"output": TABLES, "metadata": {"exit_code": 0, "duration_seconds": 0.1}}),
        json.dumps({"chunk_id": "87af", "wall_time_seconds": 0.2, "exit_code": 0, "output": TABLES}),
        f"Chunk ID: 87af\nWall time: 0.2 seconds\nProcess exited with code 0\nOutput:\n{TABLES}",
        f"Command: /bin/sh -c 'echo 1\necho 2'\nExit code: 0\nWall time: 0 seconds\nOutput:\n{TABLES}",
        f"Here's the result of running `cat -n` on /srv/app/a.txt:\n{TABLES}",
        f"[File: /srv/app/a.txt (90 lines total)]\n(12 more lines above)\n{TABLES}",
        f"<path>/srv/app/a.txt</path>\n<type>file</type>\n<content>{TABLES}",
    ],
)
def test_the_output_is_what_the_tool_wrote(text: str):
    assert output_of(text) == TABLES
    assert describe(text).kind == "values"


@pytest.mark.parametrize("cut", [1, 20, 40])
def test_an_output_that_was_cut_is_read_as_well(cut: int):
    inner = json.dumps({"_meta": None, "content": [{"type": "text", "text": TABLES * 9}]}, indent=2)
    for text, more in ((of_mcp(TABLES * 9), 24), (printed(inner), 70)):
        own = output_of(text[: -more - cut])
        assert (TABLES * 9).startswith(own)
        assert len(own) > len(TABLES * 7)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Exit code 2\nno rule to make target", "exit code 2: no rule to make target"),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nno rule to make target", "exit code 2: no rule to make target"),
        (json.dumps({"output": "no rule", "metadata": {"exit_code": 2}}), "exit code 2: no rule"),
        ("ERROR:\nNo replacement was performed.", "error: No replacement was performed."),
        (of_mcp("the table is locked", isError=True), "error: the table is locked"),
        (printed("Error executing tool query: locked", True), "Error executing tool query: locked"),
        ("Wall time: 5.0 seconds\nProcess exited with code 1\nOutput:\n", "exit code 1, no output"),
        ("Wall time: 5.0 seconds\nProcess exited with code 0\nOutput:\n", "no output"),
        ("(Bash completed with no output)", "no output"),
    ],
)
def test_a_failure_stands_before_the_output(text: str, shown: str):
    assert output_of(text) == shown


def test_the_progress_of_curl_is_left_out():
    progress = (
        "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
        "                                 Dload  Upload   Total   Spent    Left  Speed\n"
        "  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0\n"
        "100   630    0   630    0     0   8400      0 --:--:-- --:--:-- --:--:--  8289\n"
    )
    assert output_of(f"{progress}42\n") == "42\n"
    page = f"{progress}<!DOCTYPE html>\n<html><head><title>Upload a file</title></head></html>"
    assert (describe(page).kind, describe(page).gist) == ("page", "Upload a file")


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "text", "text": "a", "id": 7}',
        '{"output": "a", "score": 3}',
        '[{"type": "text", "text": "a"}, {"type": "image", "data": "aGk="}]',
        '{"content": [{"type": "text", "text": 5}]}',
        '{"type": "text", "text": "cut in the midd',
        "An example:\n\nInput: 3\n\nOutput:\n9",
        "meta=None content=[TextContent(type='image')] isError=False",
        "Exit code 0\nfine",
        "",
    ],
)
def test_other_texts_stay(text: str):
    assert unwrap(text) == (text, "", False)
    assert wrapper_end(text) == 0


PIECES = st.sampled_from(
    [
        '{"content": [{"type": "text", "text": "',
        '"}], "isError": true}',
        '[{"type": "text", "text": "a',
        "\\",
        '"',
        "'",
        "meta=None content=[TextContent(type='text', text='",
        "', annotations=None)] isError=True",
        '{"output": "',
        "\\n",
        "Command: a\n",
        "Chunk ID: 1\n",
        "Exit code: 1\n",
        "Exit code 1\n",
        "Output:\n",
        "ERROR:\n",
        "<path>/a</path>\n<content>",
        "Found 2 matches\n/a:\n  Line 1: b",
        "  % Total\n  Dload\n",
        "<persisted-output>\nx\nPreview (2KB):\n",
        "\ud800",
        "\0",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_any_text_has_an_output(text: str):
    """It is a part of the text, or was decoded from it; what is above it is so too."""
    own = unwrap(text)
    assert text[wrapper_end(text) :] in (text, own.text)
    assert own.note or not own.is_failed
    assert isinstance(output_of(text), str)
    assert len(digest(text, 200).text) <= 200 or digest(text, 200).is_whole


def test_lines_of_a_digest_have_the_numbers_of_the_whole_text():
    lines = "\n".join(f"row {number} holds the value of item_{number}" for number in range(90))
    shown = digest(f"Here's the result of running `cat -n` on /srv/app/items.txt:\n{lines}", 300).text
    assert "items.txt" in shown.split("\n")[0]
    assert "\n2 row 0 holds" in shown


def test_lines_of_a_text_in_json_have_no_numbers():
    lines = "\n".join(f"row {number} holds the value of item_{number}" for number in range(90))
    assert "\nrow 0 holds" in digest(of_mcp(lines, isError=False), 300).text


@pytest.mark.parametrize(
    ("text", "kind", "gist"),
    [
        ("ok  \tshop/cart\t0.1s\nok  \tshop/order\t0.2s\n", "log", "ok 2"),
        (
            "--- FAIL: TestTotal (0.01s)\n    cart_test.go:7: got 3\nFAIL\tshop/cart\t0.1s\nok  \tshop/order\t0.2s\n",
            "log",
            "FAIL 2, ok 1; --- FAIL: TestTotal (0.01s)",
        ),
        (
            'Traceback (most recent call last):\n  File "/srv/a.py", line 9, in run\n    go()\nValueError: 7 is odd\n',
            "output",
            "ValueError: 7 is odd",
        ),
        ("Error: cannot read it\nif (a) {\n  b();\n}\n", "output", "Error: cannot read it"),
        ("Found 2 matches\n/srv/cart.py:\n  Line 7: a\n\n/srv/a.py:\n  Line 9: b\n", "matches", "in cart.py, a.py"),
        ("Found 2 files limit: 2\nsrc/cart.py\nsrc/order.py\n", "listing", "src/cart.py … src/order.py"),
        ("Found 2 filters\nsomewhere in the shop\n", "output", "Found 2 filters somewhere in the shop"),
        ("tram: 6:04\ntram: 6:24\nbus: 7:10\n" * 3, "output", "tram: 6:04"),
        ("INFO loads part 1\nINFO loads part 2\n" * 3, "log", "INFO 6; INFO loads part 1"),
        ("---\n\ntitle: Sessions\norder: 3\n", "output", "title: Sessions order: 3"),
    ],
)  # fmt: skip
def test_the_gist_of_an_output_is_what_it_came_to(text: str, kind: str, gist: str):
    about = describe(text)
    assert (about.kind, about.gist) == (kind, gist)


def test_the_gist_of_a_long_file_names_its_first_definitions():
    imports = "".join(f"import module_{number}\n" for number in range(200))
    assert describe(f"{imports}\ndef open_cart():\n    pass\n").gist == "def open_cart"
