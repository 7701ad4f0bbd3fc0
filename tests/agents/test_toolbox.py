"""The toolbox: exact results of each tool, and nothing outside of its resource."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import with_time

from foveate.agents.toolbox import ToolFailed, files, search, shell, shell_tools, sqlite
from foveate.agents.tools import Tool
from foveate.errors import BadInput, BadSetting

Answer = Callable[..., str]


def answering(tools: Iterable[Tool]) -> Answer:
    """Return a function that calls a tool by name, as an agent does. Errors for the model begin with "! "."""
    by_name = {item.name: item for item in tools}

    def answer(name: str, **arguments: object) -> str:
        called = by_name[name]
        try:
            return str(called.call(**called.arguments(json.dumps(arguments))))
        except (ToolFailed, BadInput) as error:
            return f"! {error}"

    return answer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with files, next to a secret file."""
    (tmp_path / "secret.txt").write_text("s3cret")
    home = tmp_path / "home"
    (home / "src").mkdir(parents=True)
    (home / "src" / "a.py").write_text("def f():\n    return 1\n\n\ndef g():\n    return 1\n")
    (home / "notes.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    return home


# ------------------------------------------------------------------------------------------------------------ the fence


OUTSIDE = "is outside of the folder that may be used. Paths are relative to it."


@pytest.mark.parametrize("path", ["../secret.txt", "src/../../secret.txt", "link", "up/secret.txt", "/etc/passwd"])
def test_nothing_outside_of_the_folder_is_read_written_or_found(home: Path, path: str):
    (home / "link").symlink_to(home.parent / "secret.txt")
    (home / "up").symlink_to(home.parent)
    answer = answering([*files(home), *search(home)])
    assert answer("read_file", path=path) == f"! {path} {OUTSIDE}"
    assert answer("write_file", path=path, content="mine") == f"! {path} {OUTSIDE}"
    assert answer("edit_file", path=path, old="s3cret", new="mine") == f"! {path} {OUTSIDE}"
    assert answer("search_files", pattern="s3cret", path=path) == f"! {path} {OUTSIDE}"
    assert answer("search_files", pattern="s3cret") == "(no line matches)"
    assert answer("list_files", deep=True) == "notes.txt 17\nsrc/\nsrc/a.py 46"
    assert (home.parent / "secret.txt").read_text() == "s3cret"


def test_absolute_paths_and_links_inside_the_folder_are_allowed(home: Path):
    (home / "same.py").symlink_to("src/a.py")
    answer = answering(files(home))
    assert answer("read_file", path=str(home / "notes.txt")) == answer("read_file", path="src/../notes.txt")
    assert answer("edit_file", path="same.py", old="def f", new="def h").startswith("Replaced in same.py, line 1:")
    assert (home / "same.py").is_symlink()
    assert (home / "src" / "a.py").read_text().startswith("def h():")


@given(
    st.lists(st.sampled_from(["..", ".", "src", "up", "a.py", "secret.txt", "", "~", "\x00", "x" * 300]), max_size=6),
    st.booleans(),
)
def test_no_path_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, steps: list[str], absolute: bool):
    base = tmp_path_factory.mktemp("fence")
    (base / "secret.txt").write_text("s3cret")
    (base / "home" / "src").mkdir(parents=True)
    (base / "home" / "up").symlink_to(base)
    (base / "home" / "src" / "up").symlink_to("../up/home/src/../..")
    path = ("/" if absolute else "") + "/".join(steps)
    answer = answering(files(base / "home"))
    assert "s3cret" not in answer("read_file", path=path)
    assert "s3cret" not in answer("list_files", path=path, deep=True)
    answer("write_file", path=path, content="mine")
    assert sorted(p.name for p in base.iterdir()) == ["home", "secret.txt"]
    assert (base / "secret.txt").read_text() == "s3cret"


@pytest.fixture
def nest(home: Path) -> Iterator[Callable[[str, int], None]]:
    """Create nested folders below the home. `rm` removes them, because Python's `rmtree` is recursive."""

    def nest(name: str, times: int) -> None:
        here = os.getcwd()
        try:
            os.chdir(home)
            for _ in range(times):
                os.mkdir(name)
                os.chdir(name)
            Path("end.txt").write_text("end")
        finally:
            os.chdir(here)

    yield nest
    subprocess.run(["rm", "-rf", str(home)], check=True)


@pytest.mark.slow
def test_a_deeply_nested_folder_raises_no_recursion_error(home: Path, nest: Callable[[str, int], None]):
    nest("d", 1200)
    answer = answering((*files(home), *search(home)))
    path = "d/" * 1200
    assert answer("list_files", deep=True).count("\n") == 200
    assert answer("list_files", deep=True, pattern="end.txt") == f"{path}end.txt 3"
    assert answer("search_files", pattern="^end$") == f"{path}end.txt:1: end"
    assert answer("read_file", path="end.txt") == f"! There is no file end.txt. Did you mean {path}end.txt?"
    assert answer("read_file", path="none.txt") == "! There is no file none.txt."
    assert answer("write_file", path="n/" * 1200 + "x", content="x").startswith("Made n/")
    assert answer("write_file", path="n/" * 9000 + "x", content="x").startswith("! 'n/n/")


def test_a_path_that_is_too_long_is_skipped(home: Path, nest: Callable[[str, int], None]):
    nest("d" * 200, 25)
    answer = answering((*files(home), *search(home)))
    assert "d/" in answer("list_files", deep=True)
    assert answer("search_files", pattern="none") == "(no line matches)"
    assert answer("read_file", path="none.txt") == "! There is no file none.txt."


def test_pipes_and_circular_links_are_refused(home: Path):
    os.mkfifo(home / "pipe")
    (home / "loop").symlink_to(home / "loop")
    answer = answering(files(home))
    assert answer("read_file", path="pipe") == "! pipe is no regular file."
    assert answer("read_file", path="loop").startswith("! ")


def test_files_of_git_are_not_written(home: Path):
    answer = answering(files(home))
    for path in (".git/hooks/pre-commit", "src/.GIT/config"):  # Some file systems ignore case.
        said = answer("write_file", path=path, content="rm -rf /")
        assert said.startswith(f"! {path} belongs to git")
    assert sorted(p.name for p in home.rglob("*")) == ["a.py", "notes.txt", "src"]


# ---------------------------------------------------------------------------------------------------------------- files


def test_read_file_shows_a_file_or_some_of_its_lines(home: Path):
    answer = answering(files(home))
    assert answer("read_file", path="notes.txt") == "one\ntwo\nthree"
    assert answer("read_file", path="notes.txt", start_line=2) == "two\nthree\n[lines 2 to 3 of 3]"
    assert answer("read_file", path="notes.txt", start_line="2", end_line=2) == "two\n[lines 2 to 2 of 3]"
    assert answer("read_file", path="notes.txt", start_line=4) == "! notes.txt has 3 lines, so none from 4 on."
    assert answer("read_file", path="notes.txt", start_line=3, end_line=2) == (
        "! The last line, 2, is before the first, 3."
    )
    assert answer("read_file", path="a.py") == "! There is no file a.py. Did you mean src/a.py?"
    assert answer("read_file", path="src") == "! src is a folder. List it."


def test_a_large_file_is_read_in_parts_that_join(home: Path):
    lines = [f"{n}: {'x' * (n % 90)}" for n in range(3_000)]
    (home / "big.log").write_text("\n".join(lines))
    answer = answering(files(home))
    seen: list[str] = []
    while len(seen) < len(lines):
        *shown, note = answer("read_file", path="big.log", start_line=len(seen) + 1).split("\n")
        assert note.startswith("[")
        assert sum(map(len, shown)) < 25_000
        seen += shown
    assert seen == lines


def test_binary_and_huge_files_are_refused(home: Path):
    (home / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    (home / "old.txt").write_bytes("grün".encode("latin-1"))
    (home / "huge.txt").write_text("x" * 4_000_001)
    (home / "empty.txt").write_text("")
    (home / "long.json").write_text("[" + "1," * 5_000 + "1]")
    answer = answering(files(home))
    assert answer("read_file", path="a.png") == "! a.png is no text (11 bytes of a PNG image)."
    assert answer("read_file", path="old.txt") == "! old.txt is no text (4 bytes of another encoding than UTF-8)."
    assert answer("read_file", path="huge.txt") == (
        "! huge.txt has 4,000,001 bytes, too many to be read. Search it, or look at a part of it."
    )
    assert answer("read_file", path="empty.txt") == "(empty.txt is empty)"
    assert answer("read_file", path="long.json").endswith("... [8,003 more characters]")


def test_write_file_creates_folders_and_keeps_the_mode(home: Path):
    answer = answering(files(home))
    assert answer("write_file", path="new/deep/x.txt", content="a\nb\n") == "Made new/deep/x.txt: 2 lines."
    (home / "src" / "a.py").chmod(0o755)
    assert answer("write_file", path="src/a.py", content="pass") == "Wrote src/a.py: 1 line."
    assert (home / "src" / "a.py").stat().st_mode & 0o777 == 0o755
    assert answer("write_file", path="src/a.py/x", content="").startswith("! src/a.py/x cannot be written:")
    assert answer("write_file", path="src", content="") == "! src is a folder. List it."
    assert sorted(p.name for p in home.rglob("*")) == ["a.py", "deep", "new", "notes.txt", "src", "x.txt"]


def test_edit_file_replaces_exactly_one_place(home: Path):
    answer = answering(files(home))
    assert answer("edit_file", path="src/a.py", old="    return 1", new="    return 2") == (
        "! src/a.py holds this text 2 times, in lines 2, 6. Give more around it, or all=true."
    )
    assert answer("edit_file", path="src/a.py", old="def f():\n  return 1", new="x") == (
        "! src/a.py does not hold this text: line 1 begins like it, and goes on, or is indented, in another way. "
        "Read it, and copy it exactly."
    )
    assert answer("edit_file", path="src/a.py", old="def h", new="x") == (
        "! src/a.py does not hold this text: no line has 'def h'. Read it, and copy it exactly."
    )
    assert answer("edit_file", path="src/a.py", old="def f():\n    return 1", new="def f():\n    return 2") == (
        "Replaced in src/a.py, line 1:\ndef f():\n    return 2\n\n"
    )
    assert answer("edit_file", path="src/a.py", old="    return", new="    yield", all=True) == (
        "Replaced 2 places in src/a.py."
    )
    assert (home / "src" / "a.py").read_text() == "def f():\n    yield 2\n\n\ndef g():\n    yield 1\n"
    assert answer("edit_file", path="notes.txt", old="", new="x").startswith(
        "! notes.txt does not hold this text: it is"
    )


def test_edit_file_keeps_line_ends(home: Path):
    answering(files(home))("edit_file", path="notes.txt", old="one\ntwo", new="1\n2")
    assert (home / "notes.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_list_files_is_limited_and_skips_folders_of_programs(home: Path):
    (home / "node_modules" / "x").mkdir(parents=True)
    for n in range(300):
        (home / "src" / f"{n:03}.txt").touch()
    answer = answering(files(home))
    assert answer("list_files", deep=True, pattern="*.py") == "src/a.py 46"
    *listed, note = answer("list_files", path="src").split("\n")
    assert (len(listed), note) == (200, "[... 101 others: name a folder below, or a narrower pattern ...]")
    assert answer("list_files", path="node_modules") == "node_modules/x/"
    assert answer("list_files", pattern="*.rs") == "(nothing)"
    assert answer("list_files", path="nowhere") == "! There is no folder nowhere."


def test_reading_tools_are_repeatable_and_writing_tools_not_parallel(home: Path, tmp_path: Path):
    sqlite3.connect(tmp_path / "x.db").close()
    made = [
        *files(home),
        *search(home),
        *shell(home),
        *sqlite(tmp_path / "x.db"),
        *sqlite(tmp_path / "x.db", read_only=False),
    ]
    assert [(item.name, item.is_repeatable, item.is_parallel, item.needs_approval) for item in made] == [
        ("list_files", True, True, False),
        ("read_file", True, True, False),
        ("write_file", False, False, False),
        ("edit_file", False, False, False),
        ("search_files", True, True, False),
        ("run_command", False, False, True),
        ("database_schema", True, True, False),
        ("query_database", True, True, False),
        ("database_schema", True, True, False),
        ("query_database", False, False, True),
    ]
    assert [one.name for one in files(home, read_only=True)] == ["list_files", "read_file"]
    assert [item.needs_approval for item in files(home, needs_approval=True)] == [False, False, True, True]


def test_a_missing_folder_is_refused(home: Path):
    for make in (files, search, shell):
        with pytest.raises(BadSetting, match="There is no folder"):
            make(home / "nowhere")
        with pytest.raises(BadSetting, match="is not a folder"):
            make(home / "notes.txt")
    with pytest.raises(BadSetting, match="There is no database"):
        sqlite(home / "nowhere.db")
    with pytest.raises(BadSetting, match="timeout= must be seconds"):
        shell(home, timeout=0)


# --------------------------------------------------------------------------------------------------------------- search


def test_search_files_shows_file_line_and_text(home: Path):
    (home / "a.bin").write_bytes(b"def \0")
    answer = answering(search(home))
    assert answer("search_files", pattern=r"def (f|g)\(") == (
        "src/a.py:1: def f():\nsrc/a.py:5: def g():\n[1 file passed over: no text, or too large]"
    )
    assert answer("search_files", pattern="TWO", ignore_case=True, files="*.txt") == "notes.txt:2: two"
    assert answer("search_files", pattern="^return", path="src") == "(no line matches)"
    assert answer("search_files", pattern="return", path="src/a.py", files="*.md") == (
        "src/a.py:2: return 1\nsrc/a.py:6: return 1"
    )


@pytest.mark.slow
def test_search_files_is_limited_and_stops_endless_patterns(home: Path):
    (home / "big.log").write_text("line " * 100 + "\n" + "line\n" * 200 + "x" * 5_000)
    answer = answering(search(home))
    *lines, note = answer("search_files", pattern="line").split("\n")
    assert (len(lines), note) == (100, "[the first 100 lines; there are more: narrow the pattern or the files]")
    assert lines[0].endswith("... [259 more characters]")
    assert answer("search_files", pattern="(") == "! The pattern is no regular expression: missing ) at position 1."
    assert answer("search_files", pattern="") == "! The pattern is empty."
    assert answer("search_files", pattern="x", path="gone") == "! There is no gone."
    assert answer("search_files", pattern="(x+x+)+y", files="*.log").startswith("! The pattern took longer than 1 s.")


def test_search_files_searches_literally_without_regex(home: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    answer = answering(search(home))
    note = "[looked for to the letter: patterns need the package regex, which is not installed]"
    assert answer("search_files", pattern="f()") == f"src/a.py:1: def f():\n{note}"
    assert answer("search_files", pattern="TWO", ignore_case=True) == f"notes.txt:2: two\n{note}"


# ---------------------------------------------------------------------------------------------------------------- shell


def test_a_command_runs_in_the_folder_and_shows_its_exit_code(home: Path):
    answer = answering(shell(home))
    said = answer("run_command", command="ls; echo oh >&2; exit 3")
    assert said.startswith("notes.txt\nsrc\noh\n[exit code 3, ")
    assert answer("run_command", command="cat").startswith("[exit code 0, ")  # Standard input is empty.
    assert answer("run_command", command="kill -9 $$").startswith("[exit code -9 (SIGKILL), ")
    assert answer("run_command", command=" ") == "! There is no command."


def test_a_timeout_kills_all_processes_of_a_command(home: Path):
    def story(seconds: float) -> None:
        answer = answering(shell(home, timeout=seconds))
        said = answer("run_command", command="(while :; do date > alive; done) & echo begun; wait")
        assert said == f"begun\n[killed after {seconds:g} seconds, with all that it had started]"

    with_time(story, 0.3, 3, 30)
    (home / "alive").unlink(missing_ok=True)
    assert answering(shell(home))("run_command", command="sleep 0.1; ls alive").startswith("ls: ")


def test_background_processes_of_a_command_are_killed(home: Path):
    answer = answering(shell(home))
    begun = time.monotonic()
    assert answer("run_command", command="sleep 600 & echo begun").startswith("begun\n[exit code 0, ")
    assert time.monotonic() - begun < 300


def test_a_process_outside_of_the_group_is_not_waited_for(home: Path):
    writes = "import os; os.setsid(); open('left', 'w').close()\nwhile True: os.write(1, b'x' * 65_536)"
    (home / "writes.py").write_text(writes)
    said = answering(shell(home))(
        "run_command", command=f"{sys.executable} writes.py & while [ ! -e left ]; do sleep 0.01; done; exit 3"
    )
    assert said.partition("\n")[0].strip("x") == ""
    assert "\n[exit code 3, " in said


def test_stop_commands_stops_a_command_that_is_starting(home: Path, monkeypatch):
    """Regression: Ctrl-C before the starting thread had registered the command left it running."""
    begun = shell_tools._start
    stopping: list[threading.Thread] = []

    def beginning(*given: Any) -> Any:
        process = begun(*given)
        stopping.append(threading.Thread(target=shell_tools.stop_commands))
        stopping[0].start()
        stopping[0].join(0.05)
        return process

    monkeypatch.setattr(shell_tools, "_start", beginning)
    assert answering(shell(home))("run_command", command="sleep 50").startswith("[exit code -9 (SIGKILL), ")
    stopping[0].join(60)


@pytest.mark.slow
def test_output_is_complete_after_this_program_stood_still(home: Path, monkeypatch):
    """Regression: the output was lost when the machine was too busy to read it for two seconds."""
    keep = shell_tools._Output._keep

    def late(*given: Any) -> None:
        threading.Event().wait(2.5)
        keep(*given)

    monkeypatch.setattr(shell_tools._Output, "_keep", late)
    assert answering(shell(home))("run_command", command="echo begun").startswith("begun\n[exit code 0, ")


def test_both_ends_of_a_long_output_are_shown(home: Path):
    said = answering(shell(home))("run_command", command="seq 1 3000000")
    assert len(said) < 17_000
    assert said.startswith("1\n2\n3\n")
    assert "lines left out; write it to a file and look at parts of it ...]" in said
    assert said.split("\n")[-2] == "3000000"


def test_a_command_sees_no_keys_and_passwords(home: Path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "s3cret")
    monkeypatch.setenv("DB_PASSWORD", "s3cret")
    monkeypatch.setenv("COLOUR", "green")
    assert answering(shell(home, environment=["COLOUR"]))(
        "run_command", command="echo $SOME_API_KEY$DB_PASSWORD$COLOUR"
    ).startswith("green\n")
    own = answering(shell(home, environment={"SOME_API_KEY": "mine"}))
    assert own("run_command", command="echo $SOME_API_KEY$COLOUR").startswith("mine\n")


def test_a_command_sees_base_variables_and_named_ones(home: Path, monkeypatch):
    for name in ("FOVEATE_STORE", "DATABASE_URL", "STRIPE_KEY", "GH_PAT", "BASIC_AUTH", "COLOUR"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    names = lambda text: {line.partition("=")[0] for line in text.splitlines() if "=" in line}  # noqa: E731
    seen = names(answering(shell(home))("run_command", command="env"))
    assert {"PATH", "LANG"} <= seen <= {*shell_tools._BASE, "PWD", "OLDPWD", "SHLVL", "_"}
    more = names(answering(shell(home, environment=("COLOUR", "NOT_SET")))("run_command", command="env"))
    assert more - seen == {"COLOUR"}


@pytest.mark.parametrize("environment", ["COLOUR", 5, [5], {"A": 5}, None])
def test_a_wrong_environment_is_refused(home: Path, environment: Any):
    with pytest.raises(BadSetting, match="environment= must be names"):
        shell(home, environment=environment)


# --------------------------------------------------------------------------------------------------------------- sqlite


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop ?#.db"  # Letters with a meaning in URLs.
    db = sqlite3.connect(path)
    db.executescript(
        "CREATE TABLE wares(\n  id INTEGER PRIMARY KEY,\n  name TEXT\n);"
        "CREATE VIEW cheap AS SELECT * FROM wares WHERE id < 2;"
        "INSERT INTO wares VALUES (1, 'a|b' || char(10) || 'c'), (2, NULL);"
    )
    db.close()
    return path


def test_schema_and_rows_of_a_query_are_shown(shop: Path):
    answer = answering(sqlite(shop))
    assert answer("database_schema") == (
        "CREATE VIEW cheap AS SELECT * FROM wares WHERE id < 2;\n"
        "CREATE TABLE wares( id INTEGER PRIMARY KEY, name TEXT );"
    )
    assert answer("query_database", sql="SELECT * FROM wares") == "id | name\n1 | a\\|b\\nc\n2 | NULL\n[2 rows]"
    assert answer("query_database", sql="SELECT x'00ff' AS b, 1.5") == "b | 1.5\n<2 bytes> | 1.5\n[1 row]"
    assert answer("query_database", sql="PRAGMA table_info(wares)").endswith("[2 rows]")


@pytest.mark.parametrize("read_only", [True, False])
def test_virtual_tables_and_text_of_any_bytes_can_be_read(shop: Path, read_only: bool):
    """The authorizer refused what SQLite itself asks for when a query reads such a table."""
    db = sqlite3.connect(shop)
    modules = {name for (name,) in db.execute("SELECT name FROM pragma_module_list")}
    if not {"fts4", "fts5", "rtree"} <= modules:
        pytest.skip("This SQLite has no such tables.")
    db.executescript(
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('rye and wheat'), ('oats');"
        "CREATE VIRTUAL TABLE places USING rtree(id, x0, x1); INSERT INTO places VALUES (1, 2, 3);"
        "CREATE VIRTUAL TABLE old USING fts4(body); INSERT INTO old VALUES ('rye');"
        "INSERT INTO wares VALUES (3, CAST(x'636166e9' AS TEXT));"
    )
    db.close()
    answer = answering(sqlite(shop, read_only=read_only, needs_approval=False))
    for sql, row in (
        ("SELECT body FROM notes WHERE notes MATCH 'rye'", "rye and wheat"),
        ("SELECT body FROM old WHERE body MATCH 'rye'", "rye"),
        ("SELECT x1 FROM places WHERE x0 > 1", "3.0"),
        ("SELECT value FROM json_each('[7]')", "7"),
        ("SELECT name FROM pragma_table_info('wares') WHERE pk", "id"),
        ("SELECT name FROM wares WHERE id = 3", "caf\N{REPLACEMENT CHARACTER}"),
    ):
        assert answer("query_database", sql=sql).split("\n")[1:] == [row, "[1 row]"]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO wares VALUES (3, '')",
        "UPDATE wares SET name = ''",
        "DELETE FROM wares",
        "UPDATE sqlite_master SET sql = ''",
        "CREATE TABLE t AS SELECT 1",
        "PRAGMA page_size = 512",
        "DROP TABLE wares",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = WAL",
        "CREATE TEMP TABLE t (a)",
        "SELECT load_extension('x')",
        "SELECT 1; DROP TABLE wares",
    ],
)
def test_changes_and_other_files_are_refused(shop: Path, sql: str, monkeypatch):
    monkeypatch.chdir(shop.parent)
    before = shop.read_bytes()
    assert answering(sqlite(shop))("query_database", sql=sql).startswith("! ")
    assert (shop.read_bytes(), os.listdir(shop.parent)) == (before, [shop.name])


def test_an_endless_query_is_stopped_and_many_rows_are_cut(shop: Path):
    counting = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"
    assert answering(sqlite(shop, timeout=0.2))("query_database", sql=counting.format("max(x)")) == (
        "! The query took longer than 0.2 seconds. Narrow it, or count first."
    )
    answer = answering(sqlite(shop))
    lines = answer("query_database", sql=counting.format("x")).split("\n")
    assert (len(lines), lines[1], lines[-1]) == (
        102,
        "1",
        "[the first 100 rows; there are more: LIMIT and OFFSET, or a narrower question, show them]",
    )
    assert answer("query_database", sql="SELECT randomblob(100000000)") == "! SQLite says: string or blob too big."
    assert answer("query_database", sql="SELEC") == '! SQLite says: near "SELEC": syntax error.'
    assert answer("query_database", sql=" ") == "! There is no statement."


def test_an_allowed_change_is_one_transaction(shop: Path):
    answer = answering(sqlite(shop, read_only=False))
    assert answer("query_database", sql="INSERT INTO wares VALUES (3, 'c'), (4, 'd')") == "Done: 2 rows changed."
    assert answer("query_database", sql="INSERT INTO wares VALUES (5, 'e'), (1, 'x')").startswith(
        "! SQLite says: UNIQUE"
    )
    assert answer("query_database", sql="SELECT count(*) AS n FROM wares") == "n\n4\n[1 row]"
    assert answer("query_database", sql="ATTACH 'other.db' AS other").startswith("! This statement is not allowed here")
