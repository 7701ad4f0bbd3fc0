"""Bytes on disk for each message, compared with an empty store, with and without the word index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import messages
from databases import FigureRow, new_store, shared_server
from past import settle

from foveate import Message, open_conversation, open_store
from foveate.core.wire import encode_message

_KINDS: dict[str, Callable[[int], bool]] = {
    "small messages": lambda size: size <= 400,
    "long results": lambda size: 3_000 <= size <= 20_000,
    "all kinds": lambda size: True,
}
_AIMS = {("small messages", "sqlite"): 1.2, ("long results", "sqlite"): 0.6}
"""Targets for SQLite without the word index, relative to the bytes of the messages' JSON."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield the size relative to the messages' JSON, with the bytes of a message as a note."""
    number = count()
    wanted = 60 if quick else 3_000
    with shared_server() as server:
        for kind in ("sqlite", "postgres") if server else ("sqlite",):
            for what, fits in _KINDS.items():
                inputs = list(islice((message for message in messages() if fits(len(encode_message(message)))), wanted))
                written = sum(len(encode_message(message)) for message in inputs)
                for search in (False, True):
                    empty, full = (new_store(kind, folder, server, f"size-{n}") for n in (next(number), next(number)))
                    size = fill(store_url(full, search), inputs) - fill(store_url(empty, search), inputs[:1])
                    ratio = size / written
                    name = f"disk, {what}, {kind}{', index of words' if search else ''}"
                    aim = None if search else _AIMS.get((what, kind))
                    yield name, ratio, "x JSON", None, aim, f"{size / wanted:,.0f} bytes of {written / wanted:,.0f}"


def fill(url: str, inputs: list[Message]) -> int:
    """Return the bytes of a new, settled store with these messages."""
    with open_conversation("bench", store=url, policy="off") as chat:
        for start in range(0, len(inputs), 50):
            chat.append(inputs[start : start + 50])
        if "search=off" not in url:
            chat._agent.store.search(chat._agent.head, "whatever")  # Brings the index up to date.
    with open_store(url) as store:  # The view that closing saved is not part of the messages.
        store._driver.write(lambda session: session.rows("DELETE FROM snapshot"))  # type: ignore[attr-defined]
        store.vacuum()  # type: ignore[attr-defined]
    settle(url)
    return _on_disk(url)


def store_url(url: str, search: bool) -> str:
    return url if search else f"{url}{'&' if '?' in url else '?'}search=off"


def _on_disk(url: str) -> int:
    if url.startswith("sqlite"):
        return Path(url.removeprefix("sqlite:///").partition("?")[0]).stat().st_size
    import psycopg

    schema = url.partition("schema=")[2].partition("&")[0]
    statement = """
        SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relkind = 'r' AND relnamespace = CAST(%s AS regnamespace)"""
    with psycopg.connect(url.partition("?")[0]) as connection:
        row = connection.execute(statement, (f'"{schema}"',)).fetchone()
    return int(row[0]) if row else 0
