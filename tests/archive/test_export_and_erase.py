"""Erasures during an export: the archive is consistent."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from worlds import TENANT, contents

from foveate import ConflictError
from foveate.core.messages import user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.ops.archive import export_archive, import_archive
from foveate.ports import Database, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

SECRET = "my number is 4929 1234"


class Disturbed:
    """A store with an action before or after its n-th read; 0: never."""

    def __init__(self, store: Database, n: int, do: Callable[[], object], *, after: bool = False) -> None:
        self._store, self._n, self._do, self._after = store, n, do, after
        self.readings = 0

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._store, name)

        def reading(*arguments: Any, **keywords: Any) -> Any:
            self.readings += 1
            is_now = self.readings == self._n
            if is_now and not self._after:
                self._do()
            result = read(*arguments, **keywords)
            if is_now and self._after:
                self._do()
            return result

        return reading


def furnished(store: Any) -> Any:
    """Return a conversation with forks and runs, between two other conversations."""
    for name in ("a before", "middle", "z behind"):
        head = store.open(TENANT, name)
        head = append(store, head, chain([user(text) for text in ("hello", SECRET, "so long " * 900, "bye")], head))
        fork = store.fork(head, f"{name}, fork", 3, 0)
        append(store, fork, chain([user("another end")], fork))
        store.put_run(head, AgentRun(f"run of {name}", "me", name, task=SECRET))
        store.put_step(head, AgentRunStep(f"run of {name}", 1, "action", output=SECRET))
    return store


def erasing(store: Any, position: int = 2) -> None:
    store.erase(store.open(TENANT, "middle"), [(position, position)], runs=True, reason="a number")


def check_same_everywhere(path: Path) -> bool:
    """Check that the archive has the erasure in every place, or in none."""
    with MemoryStore() as other:
        import_archive(other, path)
        for name in ("middle", "middle, fork"):
            head = other.open(TENANT, name, create=False)
            gone, left = other.find_residue(head)
            assert left == []
            is_told = other.erasures(head) != []
            assert (gone, other.messages(head, 2, 2)[0].body == b"") == (is_told, is_told)
            assert [SECRET in run.task for run in other.runs(head)] == [not is_told]
            assert other.verify(head) == []
        assert len(contents(other)) == 6
    assert (path.read_text("utf-8").count(SECRET) - 6) / 3 == (0 if is_told else 1)  # Of each tree: message, run, step.
    return is_told


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Yield a function that creates stores; they are closed at the end."""
    stores: list[Any] = []

    def make() -> Any:
        name = tmp_path / f"{len(stores)}.db"
        is_file = request.param == "sqlite"
        stores.append(SqliteStore(name, synchronous="normal", search=False) if is_file else MemoryStore())
        return furnished(stores[-1])

    yield make
    for store in stores:
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_archive_is_consistent_for_any_moment_of_an_erasure(
    make_store: Callable[[], Any], tmp_path: Path, after: bool
) -> None:
    """F35: at each read of an export, and between any two."""
    calm = Disturbed(make_store(), 0, lambda: None)
    export_archive(calm, tmp_path / "calm.jsonl", tenant=TENANT)  # type: ignore[arg-type]
    reports = [check_same_everywhere(tmp_path / "calm.jsonl")]
    for n in range(1, calm.readings + 1):
        store = make_store()
        disturbed, path = Disturbed(store, n, lambda store=store: erasing(store), after=after), tmp_path / f"{n}.jsonl"
        export_archive(disturbed, path, tenant=TENANT)  # type: ignore[arg-type]
        reports.append(check_same_everywhere(path))
    behind = reports.index(False, 1)  # From then on the tree was written before.
    assert set(reports[1:behind]) == {True}
    assert set(reports[behind:]) == {False}
    assert behind > calm.readings // 2


def test_export_that_never_succeeds_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    store = MemoryStore()
    head = store.open(TENANT, "middle")
    append(store, head, chain([user(f"{n}") for n in range(50)], head))

    class Eager(Disturbed):
        """A store that erases one more message each time the tree is read."""

        def __getattr__(self, name: str) -> Any:
            if name == "runs":
                self._do()
            return getattr(self._store, name)

    positions = iter(range(1, 50))
    eager = Eager(store, 0, lambda: erasing(store, next(positions)))
    with pytest.raises(ConflictError, match="Something was erased in 'middle'"):
        export_archive(eager, tmp_path / "a.jsonl", tenant=TENANT)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    stream = io.BytesIO()
    with pytest.raises(ConflictError):
        export_archive(eager, stream, tenant=TENANT)  # type: ignore[arg-type]
    assert stream.getvalue().count(b"\n") == 1  # The beginning of an archive; the reader detects the missing end.


def test_spooled_lines_stand_next_to_the_archive_and_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large tree needs the space of its archive there, and not in the system's temporary folder."""
    store = MemoryStore()
    head = store.open(TENANT, "long")
    append(store, head, chain([user(f"{n} " * 5000) for n in range(200)], head))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    (tmp_path / "here").mkdir()
    export_archive(store, tmp_path / "here" / "a.jsonl", tenant=TENANT)
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["a.jsonl"]
    with MemoryStore() as other:
        import_archive(other, tmp_path / "here" / "a.jsonl")
        assert contents(other) == contents(store)
