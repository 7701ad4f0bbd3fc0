"""Speed of archives on SQLite and PostgreSQL (export, import), and of a copy of a SQLite file.

Wall-clock time, in megabytes of archive text per second, so that both databases do the same work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter

from foveate.ports import append

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import messages
from databases import FigureRow, Server, new_schema, shared_server

from foveate import open_store
from foveate.edits import Hide, Target
from foveate.ops.archive import backup, export_archive, import_archive
from foveate.ports import Database
from foveate.testing.rows import chain, record_after

EDITED = 20
"""Messages for each record of the journal."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield all figures; those of PostgreSQL have SQLite's as their floor."""
    with shared_server() as server:
        yield from _figures(folder, quick, server)


def _figures(folder: Path, quick: bool, server: Server | None) -> Iterator[FigureRow]:
    path, floors = folder / "archive.jsonl", dict[str, float]()
    store = open_store(f"sqlite:///{folder}/archive.db")
    fill(store, 1_000 if quick else 20_000)
    for what, value, unit in writing(store, path):
        yield f"{what}, sqlite", value, unit, None, None, ""
        floors.setdefault(what, value)
    began = perf_counter()
    size = backup(folder / "archive.db", folder / "copy.db")
    yield "backup, sqlite", size / (perf_counter() - began) / 1e6, "MB/s", None, None, "of the file"
    store.close()
    urls = {
        "sqlite": f"sqlite:///{folder}/imported.db",
        "sqlite, no search": f"sqlite:///{folder}/plain.db?search=off",
    }
    if server:
        urls |= {
            "postgres": new_schema(server, "archive"),
            "postgres, no search": f"{new_schema(server, 'plain')}&search=off",
        }
    for kind, url in urls.items():
        store = open_store(url)
        began = perf_counter()
        import_archive(store, path)
        rate = path.stat().st_size / (perf_counter() - began) / 1e6
        yield f"import, {kind}", rate, "MB/s", floors.get("import"), None, ""
        floors.setdefault("import", rate)
        if kind == "postgres":
            for what, value, unit in writing(store, folder / "again.jsonl"):
                yield f"{what}, postgres", value, unit, floors.get(what), None, ""
        store.close()


def writing(store: Database, path: Path) -> Iterator[tuple[str, float, str]]:
    """Export plain text, then compressed; both count the bytes of the plain text or the file."""
    began = perf_counter()
    export_archive(store, path)
    yield "export", path.stat().st_size / (perf_counter() - began) / 1e6, "MB/s"
    began = perf_counter()
    export_archive(store, path.with_suffix(".jsonl.gz"))
    yield "export, gzip", path.stat().st_size / (perf_counter() - began) / 1e6, "MB/s"


def fill(store: Database, count: int) -> None:
    """Create ten conversations with `count` messages together, with edits and a fork each."""
    source = messages()
    for number in range(10):
        head = store.open("", f"bench {number}")
        while head.position < count // 10:
            head = append(store, head, chain(list(islice(source, EDITED)), head))
            head = store.commit(head, *record_after(head, Hide(Target(head.tip), reason="to have an edit")))
        store.fork(head, f"fork {number}", head.position // 2, 0)
