"""Digests by kind of text: each keeps structure, errors and names, with words of their lines."""

from __future__ import annotations

import json
import re

import pytest

from foveate.digest import Description, describe, digest
from foveate.digest.listings import unfold_paths
from foveate.digest.wrappings import path_of_whole_output

GO = 'package store\n\nimport (\n\t"context"\n)\n\n' + "".join(
    [
        f"func (s *Store) Load{name}(ctx context.Context, id string) (*{name}, error) {{\n"
        f"\t// Reads one row, or says why there is none.\n\treturn s.load(ctx, table{name}, id)\n}}\n\n"
        for name in ("User", "Order", "Invoice", "Session", "Token", "Basket")
    ]
)
CSV = "id,customer_email,total\n" + "\n".join([f"ord_{n},c{n}@example.com,{n * 3}.50" for n in range(40)])
LOG = (
    "\n".join([f"2026-03-01 10:00:{n:02} INFO served /api/items/{n} in {n} ms" for n in range(40)])
    + "\n2026-03-01 10:00:41 ERROR upstream db-primary.internal refused the connection"
)
DIFF = (
    "diff --git a/src/auth/session.py b/src/auth/session.py\nindex 1a2b3c4..5d6e7f8 100644\n--- a/src/auth/session.py\n"
    "+++ b/src/auth/session.py\n@@ -10,8 +10,8 @@ def log_in(user):\n"
    + "".join([f" unchanged line {n}\n" for n in range(12)])
    + "-    cookie = None\n+    cookie = make_cookie(user.session_id)\n"
)
MATCHES = "".join(
    [f"src/app/{name}.go:{n}:\tsrv{n} := NewServer(config{n})\n" for name in ("main", "test") for n in range(20, 30)]
)
LISTING = "\n".join(
    [f"src/segments/{name}_test.go" for name in ("angular", "bazel", "dart", "elixir", "golang", "zig")] * 2
)
PYTEST = (
    "platform linux\n"
    + "".join([f"tests/part_{n}/test_it.py .......... [{n}0%]\n" for n in range(10)])
    + "E   AssertionError: expected 3, got 2\n\ntests/test_cart.py:88: AssertionError\n5 failed, 109 passed in 3.21s\n"
)
PROSE = (
    "# Login report\n\nThe login test fails because the cookie is never set. "
    + "We looked at many other things first and found nothing at all. " * 10
    + "\n\n## Remedy\n\nThe fix belongs in src/auth/session.py, where make_cookie drops the session_id.\n"
)
PAGE = "<html><head><title>Orders</title></head><body>\n" + "\n".join(
    [f'<div class="row"><a href="/orders/ord_{n}">Order number {n}</a></div>' for n in range(20)]
)
SNAPSHOT = "\n".join([f'- button "Add item_{n} to cart" [ref=e{n}]\n- text: in stock' for n in range(16)])
USERS = json.dumps([{"user_id": f"usr_{n}", "address": {"city": "Bern", "zip_code": f"30{n}"}} for n in range(30)])


@pytest.mark.parametrize(
    ("text", "kind", "items"),
    [
        (GO, "code", "6 definitions"),
        (CSV, "table", "40 rows"),
        (LOG, "log", ""),
        (DIFF, "diff", "1 file"),
        (MATCHES, "matches", "20 matches"),
        (LISTING, "listing", "12 entries"),
        (PYTEST, "output", ""),
        (PROSE, "prose", "2 headings"),
        (PAGE, "page", ""),
        (SNAPSHOT, "page", ""),
        (USERS, "json", ""),
        ("\x00\x01\x02\x03" * 300, "binary", ""),
    ],
    ids=["code", "csv", "log", "diff", "matches", "listing", "pytest", "prose", "html", "snapshot", "json", "binary"],
)
def test_a_kind_is_recognised_and_its_things_are_counted(text, kind, items):
    about = describe(text)
    assert (about.kind, about.counted_items if about.items else "") == (kind, items)


def test_a_description_reads_as_one_line():
    assert str(describe(GO)) == (
        f"code, {len(GO):,} characters, 6 definitions: "
        "func LoadUser, func LoadOrder, func LoadInvoice, func LoadSession"
    )
    assert describe(PYTEST).gist == "5 failed, 109 passed in 3.21s"
    assert describe(PAGE).gist == "Orders"
    assert describe(PROSE).gist == "Login report"
    assert describe("") == Description("empty", 0, 0)


def test_code_keeps_declarations_with_their_line_numbers():
    assert digest(GO, handle="m12").text.startswith('[code, 36 lines, go; expand("m12")]\n')
    for name in ("LoadUser", "LoadOrder", "LoadInvoice", "LoadSession", "LoadToken", "LoadBasket"):
        assert name in digest(GO).text


def test_line_numbers_of_a_file_viewer_are_removed_and_reported():
    viewed = "".join(
        [f"{number:6}\t    const value_{number} = readSetting('part.{number}');\n" for number in range(200, 260)]
    )
    assert (
        digest(viewed, handle="m3").text.split("\n")[0]
        == '[code, 60 lines, typescript, file lines 200-259; expand("m3")]'
    )


def test_a_table_keeps_its_columns_and_whole_rows():
    lines = digest(CSV, handle="m1").text.split("\n")
    assert lines[0] == '[table, 41 lines, 3 columns; expand("m1")]'
    assert lines[1:4] == ["1 id,customer_email,total", "total 0.50 to 117.50", "2 ord_0,c0@example.com,0.50"]
    assert lines[-1] == "41 ord_39,c39@example.com,117.50"


def test_a_log_keeps_its_errors_and_collapses_repetitions():
    text = digest(LOG, handle="m1").text
    assert text.startswith('[log, 41 lines, INFO 40, ERROR 1; expand("m1")]\n')
    assert "ERROR upstream db-primary.internal refused the connection" in text
    assert "2026-03-01 10:00:00 INFO served /api/items/0 in 0 ms (×40)" in text


def test_totals_and_errors_of_a_test_run_stay():
    text = digest(PYTEST).text
    assert "5 failed, 109 passed in 3.21s" in text
    assert "AssertionError" in text


def test_a_diff_keeps_paths_and_changed_lines():
    text = digest(DIFF, handle="m1").text
    assert text.startswith('[diff, 19 lines, +1 -1; expand("m1")]\nsrc/auth/session.py (+1 -1)\n')
    assert " @@ 10 def log_in(user):\n … make_cookie user.session_id" in digest(DIFF, 300).text


def test_matches_name_a_file_once_and_keep_the_numbers_of_its_lines():
    text = digest(MATCHES).text
    assert text.count("src/app/main.go") == 1
    assert text.count("src/app/test.go") == 1
    assert "src/app/main.go (10)\n" in text
    assert "src/app/main.go (10): 20 21 22 23 24 25 26 27 …\n" in digest(MATCHES, 500).text


def test_a_gist_of_matches_names_files_of_one_name_once():
    text = "".join([f"{folder}/main.go:{n}:func main() {{ // {n}\n" for n in range(9) for folder in ("a", "b", "c")])
    assert describe(f"{text}src/app/server.go:80: main()\n").gist == "in main.go, server.go"


def test_json_shows_its_keys_and_counts():
    text = digest(USERS, handle="m1").text
    assert "\n[30 of {user_id, address: {city, zip_code}}]\n" in text
    assert "[].address.city=Bern (×30)" in text
    assert "[].address.zip_code 300 to 3029" in digest(USERS, 1_000).text
    assert "usr_12" in text


def test_prose_keeps_its_headings_and_names():
    text = digest(PROSE).text
    assert "# Login report" in text
    assert "src/auth/session.py" in text


def test_markup_keeps_words_and_addresses():
    text = digest(PAGE).text
    assert "<div" not in text
    assert "orders/ord_3" in text
    assert "Orders" in text


def test_a_snapshot_keeps_buttons_links_and_fields():
    assert "item_3" in digest(SNAPSHOT).text


def test_the_wrapping_of_a_tool_is_no_text():
    wrapped = (
        f"Chunk ID: 0a2e42\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 99\nOutput:\n{GO}"
    )
    first = digest(wrapped, handle="m1").text.split("\n")[0]
    assert first == '[code, 41 lines, go, exit code 1; expand("m1")]'
    opencode = "<path>/home/me/store.go</path>\n<type>file</type>\n<content>" + "".join(
        [f"{number}: {line}\n" for number, line in enumerate(GO.split("\n"), 1)]
    )
    assert digest(opencode).text.startswith("[code, 39 lines, go, store.go]\n")


@pytest.mark.parametrize(
    ("cut", "path"),
    [
        (f"{DIFF * 20}\n\nThe output was truncated. Full output saved to: /home/me/out/tool_ceea1\nUse Grep.",
         "/home/me/out/tool_ceea1"),
        (f"<persisted-output>\nToo large. Full output saved to: C:\\me\\bh8.txt\n\n{LOG * 3}", "C:\\me\\bh8.txt"),
        (f"{LOG * 3}\n\n[Output truncated. Full output: /tmp/pi-bash-1.log]", "/tmp/pi-bash-1.log"),
    ],
)  # fmt: skip
def test_a_digest_names_the_file_with_the_whole_output(cut: str, path: str):
    """A tool that cuts its result names this file once. A later call reads it."""
    assert f", whole output in {path}; " in digest(cut, handle="m1").text.split("\n")[0]
    assert digest(cut, 40, handle="m1").text.count(path) == 0


def test_a_text_that_only_speaks_of_whole_output_names_no_file():
    assert path_of_whole_output("The full output is saved to disk.\nFull output: ${path}") == ""
    assert path_of_whole_output("-" * 700 + "Full output: /tmp/a.log" + "-" * 700) == ""


@pytest.mark.parametrize("text", [GO, CSV, LOG, DIFF, MATCHES, PYTEST, PROSE, PAGE, SNAPSHOT, USERS])
@pytest.mark.parametrize("room", [None, 500])
def test_every_line_is_whole_or_a_list_of_names(text, room):
    """A line of the text is never shown in fragments: it is whole, or `…` stands before the names in it."""
    short = digest(text, room)
    whole = {" ".join(line.split()) for line in text.split("\n")}
    for line in short.text.split("\n")[1:]:
        assert not re.search(r"\w…\w", line), line
        if line.lstrip().startswith("…"):
            assert all(name in text for name in line.split()[1:]), line
        elif short.description.kind in ("code", "log", "output") and not re.match(r"\d+ imports ", line):
            shown = re.sub(r"^\d+ +| \(×\d+\)$", "", line)
            assert any(" ".join(shown.split()) in each for each in whole), line


def test_the_first_line_of_a_large_text_names_its_characters():
    first = digest(GO * 20, handle="m12").text.split("\n")[0]
    assert first == f'[code, 720 lines of {len(GO) * 20:,} characters, go; expand("m12")]'


def test_escaped_line_breaks_are_line_breaks():
    """Results of some protocols come as one line with `\\n` in it; they were once read as one long sentence."""
    tools = "".join(
        [f"\\n- tool_name: make_chart_{n}\\n  tool_description: Makes a chart of kind {n} for you." for n in range(12)]
    )
    text = digest(f"content=[TextContent(text='matched_tools:{tools}')]").text
    assert len(re.findall(r"make_chart_\d+", text)) >= 4
    assert max(map(len, text.split("\n"))) <= 150


@pytest.mark.parametrize("line", ["Error: boom", "some log line here at src/a.py", "The same was said once more."])
def test_identical_lines_are_shown_once_with_their_number(line):
    short = digest(f"{line}\n" * 100).text
    assert short.count(line) == 1
    assert f"{line} (×100)" in short


def test_a_file_that_begins_with_many_imports_is_code():
    imports = "".join(f'\t"example.org/shop/part_{number}"\n' for number in range(30))
    fields = "".join(f'\tField{number} string `json:"field_{number}"`\n' for number in range(20))
    text = f"package shop\n\nimport (\n{imports})\n\ntype Cart struct {{\n{fields}}}\n"
    assert describe(text).kind == "code"
    assert "type Cart struct" in digest(text).text


def test_a_last_empty_line_of_a_numbered_file_is_no_text():
    """A viewer writes `61` and a tab; the tab is cut off with the spaces at the end of a line."""
    text = "".join(f"{number}\tthe line number {number} of it\n" for number in range(1, 61)) + "61\t"
    assert not digest(text, 200).text.endswith("61")


def test_a_title_is_not_repeated_as_a_heading():
    page = "<html><head><title>Upload</title></head><body><h1>Upload</h1><p>Send it.</p><h2>Sizes</h2></body>"
    shown = digest(page + "<p>word</p>" * 200, 120).text
    assert shown.count("Upload") == 1
    assert "## Sizes" in shown


def test_a_literal_in_code_is_no_list_of_values():
    fields = "\n".join(f"      {name}: review.stats.{name}," for name in ("files", "bytes", "tokens", "budget"))
    literal = f"{fields}\n    }},\n    validation: {{\n{fields}\n    }},\n    schemaVersion: 'v2',"
    assert describe(literal).kind == "code"
    numbered = "\n".join(f"{number}: {line}" for number, line in enumerate(literal.split("\n"), 1458))
    assert describe(numbered).kind == "code"
    assert describe(fields).kind == "code"


def test_a_line_that_sums_up_has_no_number_of_a_file_viewer():
    numbered = "\n".join(f"  {number:>4}→{line}" for number, line in enumerate(PYTEST.split("\n"), 1))
    assert describe(numbered).gist == describe(PYTEST).gist == "5 failed, 109 passed in 3.21s"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("данные", "приход"),
        ("数据", "入库明细"),
        ("بيانات", "الوارد"),
        ("डेटा", "आवक_सूची"),
        ("ข้อมูล", "รับเข้า"),
        ("de\u0301po\u0302t", "entre\u0301e"),
    ],
)
def test_names_in_any_script_are_kept_whole(folder, name):
    """Only the ASCII end of such a name was an identifier, and a digest listed `12.csv`."""
    paths = [f"{folder}/{n // 10}/{name}_{n}.csv" for n in range(80)]
    listed = digest("\n".join(paths), 600)
    assert listed.description.kind == "listing"
    assert set(unfold_paths(listed.text)) & set(paths)
    found = digest("\n".join(f"{paths[n % 5]}:{n}:  total = {name}_{n % 5}" for n in range(60)), 600)
    assert found.description.kind == "matches"
    assert all(path in found.text for path in paths[:5])
    code = "import csv\nimport os\n\n" + "\n\n\n".join(
        f"def {name}_{n}(rows):\n    return sum(rows)" for n in range(20)
    )
    outline = digest(code, 500).text
    assert f"def {name}_0" in outline
    assert all(word == "" or word.startswith(name) for word in re.findall(r"(\S*)_\d+\b", outline))


@pytest.mark.parametrize(
    "sentence",
    [
        "我们今天先检查仓库的入库记录，然后再处理退货单。",
        "Сначала мы проверим приход на складе, а потом возвраты.",
        "نفحص اليوم سجلات الوارد في المستودع ثم نعالج المرتجعات.",
        "आज हम पहले गोदाम की आवक देखेंगे और फिर वापसी।",
        "วันนี้เราจะตรวจบันทึกการรับเข้าคลังสินค้าก่อนแล้วจึงดูใบคืน",
    ],
)
def test_prose_in_any_script_is_prose(sentence):
    assert describe("\n\n".join(f"# {n}\n\n{sentence}" for n in range(9))).kind == "prose"


def test_escapes_of_json_are_the_letters_that_they_name():
    """`json.dumps` writes them by default. A digest showed them, five times as long, and cut them inside."""
    files = [f"данные/приход_{n}.csv" for n in range(40)]
    rows = [
        {"编号": n, "供应商": ["上海宏达贸易", "北京蓝天物流"][n % 2], "файл": file} for n, file in enumerate(files)
    ]
    plain = json.dumps({"rows": rows}, indent=1, ensure_ascii=False)
    escaped = json.dumps({"rows": rows}, indent=1)
    shown = digest(escaped, 900).text
    assert "rows[].供应商: 上海宏达贸易 ×20, 北京蓝天物流 ×20" in shown
    assert "\\u" not in shown
    assert describe(escaped).gist == describe(plain).gist
    log = "\n".join(f"2026-02-01 03:{n:02}:00 INFO saved {json.dumps(files[n])}" for n in range(40))
    assert "данные/приход_39.csv" in digest(log, 900).text
    functions = "".join(f"\n\ndef f{n}():\n    pass\n" for n in range(30))
    code = f"import re\n\nNAME = re.compile('[\\u4e00-\\u9fff]+')\n{functions}"
    assert "[\\u4e00-\\u9fff]+" in digest(code, 650).text
