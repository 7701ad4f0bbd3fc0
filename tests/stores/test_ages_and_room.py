"""F36: databases must not grow for ever. Erased messages free space in the file."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate.core.messages import ToolCall, assistant, tool_result, user
from foveate.ports import Head, append
from foveate.stores.sql import words as sql_words
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

SOURCES = Path(foveate.__file__).parent
AGES = {"all": "50 turns"}


def results(turns: int) -> Iterator[str]:
    """Return results of reading files: 4,000 characters each, all different."""
    files = [path.read_text("utf-8") for path in sorted(SOURCES.rglob("*.py"))]
    chance = random.Random(4)
    for turn in range(turns):
        text = files[turn % len(files)]
        start = chance.randrange(max(1, len(text) - 4000))
        yield f"# call {turn} {chance.random()}\n{text[start : start + 4000]}"


def room(path: Path, *, ages: Any = None, vacuums: bool = True, turns: int = 1000) -> list[int]:
    """Return the bytes of the file after each 100 turns of an agent that reads files and keeps at most 50 turns."""
    ticks = iter(range(1, 10**9))
    sizes = []
    with SqliteStore(path, synchronous="normal") as store:
        chat = foveate.open_conversation(
            "c",
            store=store,
            format="openai",
            window=16_000,
            summarizer="digest",
            options=foveate.Options(clock=lambda: next(ticks)),
        )
        for turn, text in enumerate(results(turns), 1):
            if turn % 20 == 1:
                chat.append(f"Question {turn}?")
            chat.prepare()
            chat.record(assistant(f"I read {turn}.", ToolCall(f"c{turn}", "read", f'{{"path":"f{turn}.py"}}')))
            chat.append(tool_result(f"c{turn}", text))
            if turn % 50 == 0 and ages:
                chat.privacy.apply_retention(ages)
            if turn % 100 == 0:
                if vacuums:
                    store.vacuum()
                sizes.append(pages(path))
        assert (chat.journal.verify(), chat.privacy.residue()[1]) == ([], [])
    return sizes


def pages(path: Path) -> int:
    """Return the size of a file with the pages that its log will add."""
    with sqlite3.connect(path) as connection:
        count, size = (connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size"))
    connection.close()
    return int(count * size)


@pytest.mark.slow
def test_file_with_retention_grows_by_tombstones_only(tmp_path: Path) -> None:
    """F36: of each message its place, hashes and stamp stay, some 200 bytes; of each edit the fact that it was made.

    That is an eighth of the incoming bytes.
    """
    kept, plain = room(tmp_path / "kept.db", ages=AGES), room(tmp_path / "plain.db", turns=600)
    assert (plain[5] - plain[1]) / 400 > 2_500  # Bytes a turn with the word index: O(n), and not O(n^2).
    assert plain[5] - plain[3] < 1.3 * (plain[3] - plain[1])
    assert (kept[9] - kept[1]) / 800 < 600


@pytest.mark.slow
def test_freed_room_is_reused_without_a_vacuum(tmp_path: Path) -> None:
    """F36: erased messages free whole pages, and new messages use them."""
    sizes = room(tmp_path / "chat.db", ages=AGES, vacuums=False, turns=600)
    assert (sizes[-1] - sizes[2]) / 300 < 1_700  # Bytes a turn; without ages it is more than 2,500, as above.
    assert sizes[-1] < 1_500_000


def test_page_that_an_erasure_freed_is_written_to_before_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path, search=False) as store:
        head = store.open("", "c")
        texts = list(results(60))
        head = append(store, head, chain([user(text) for text in texts[:30]], head))
        before = pages(path)
        store.erase(head, [(1, 30)], keep_shown=True)
        head = append(store, store.open("", "c"), chain([user(text) for text in texts[30:]], head))
        assert pages(path) < before * 1.1
        store.erase(head, [(31, 60)], keep_shown=True)
        assert pages(path) > before * 0.9
        store.vacuum()
        assert pages(path) < before * 0.9


def test_others_write_during_the_search_for_derived_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this ran in the transaction, a slow reader would lock the file for a minute."""
    from foveate.stores.sql import eraser

    with SqliteStore(tmp_path / "chat.db") as store, SqliteStore(tmp_path / "chat.db", wait=0.1) as other:
        head = store.open("", "c")
        head = append(store, head, chain([user(f"message {n}") for n in range(9)], head))
        look, looked = eraser.derived_data, []

        def reach(*args: Any, **options: Any) -> Any:
            found = look(*args, **options)
            now = other.open("", "c")
            append(other, now, chain([user("meanwhile")], now))
            looked.append(now.position)
            return found

        monkeypatch.setattr(eraser, "derived_data", reach)
        done = store.erase(head, [(2, 3), (5, 5)])
        now = store.open("", "c")
        assert (done.messages, looked, now.position) == (3, [9], 10)
        assert (store.verify(now), store.find_residue(now)[0]) == ([], 3)


@pytest.mark.parametrize("meanwhile", ["copy", "edit", "fork", "same words", "erasure"])
def test_derived_data_added_meanwhile_is_erased_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Conflicting writes come three times; then the tree is locked."""
    from foveate.core.edits import Replace, Target
    from foveate.core.messages import Text
    from foveate.core.stamps import Expansion
    from foveate.stores.sql import eraser
    from foveate.testing.erase_contract import LONG, WORD, append_at, commit_edits, everything

    with SqliteStore(tmp_path / "chat.db") as store, SqliteStore(tmp_path / "chat.db", wait=0.1) as other:
        head = store.open("", "c")
        for text in (LONG, "another", "a third", "a fourth"):
            head = append_at(store, head, user(text))
        one = store.messages(head, 1, 1)[0]
        look, looked = eraser.derived_data, []

        def reach(*args: Any, **options: Any) -> Any:
            found = look(*args, **options)
            looked.append(1)
            if len(looked) < 3:
                intervene(other.open("", "c"), len(looked))
            return found

        def intervene(now: Head, n: int) -> None:
            match meanwhile:
                case "copy":
                    append_at(other, now, user(WORD), origin="derived", expanded=Expansion("whole", "m1", one.id))
                case "edit":
                    commit_edits(other, now, Replace(Target(one.id, (0,)), (Text(WORD),)))
                case "fork":
                    other.fork(now, f"fork {n}", 2, 0)
                case "same words":
                    append_at(other, now, user(LONG))
                case "erasure":
                    other.erase(now, [(n + 1, n + 1)])

        with monkeypatch.context() as patched:
            patched.setattr(eraser, "derived_data", reach)
            store.erase(head, [(1, 1)])
        assert len(looked) == {"same words": 2, "erasure": 5}.get(meanwhile, 3)  # The other erasure looks too.
        now = store.open("", "c")
        assert (store.verify(now), store.find_residue(now)[1]) == ([], [])
        if meanwhile == "same words":
            assert [bool(row.body) for row in store.messages(now, 1, 6)] == [False, True, True, True, True, True]
        else:
            assert WORD not in everything(store, now)


def test_erasing_writes_each_run_of_the_index_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writes of an erasure grow with the runs of the index, not with the erased messages."""
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("", "c")
        head = append(store, head, chain([user(text) for text in results(120)], head))
        store.search(head, "import")
        with sqlite3.connect(tmp_path / "chat.db") as connection:
            (runs,) = connection.execute("SELECT count(*) FROM said").fetchone()
        connection.close()
        packed: list[int] = []
        for name in ("pack_run", "pack_piece"):
            pack = getattr(sql_words, name)
            monkeypatch.setattr(sql_words, name, lambda keys, pack=pack: packed.append(len(keys)) or pack(keys))
        store.erase(head, [(n, n) for n in range(1, 120, 3)])
        assert 0 < len(packed) <= runs
        assert store.find_residue(store.open("", "c")) == (40, [])
