"""Bytes on disk for each message beyond those of an empty store, with the index of words and without it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import messages
from databases import Measured, place, servers
from past import settled

from foveate import Message, open_conversation
from foveate.core.wire import encode_message

_KINDS: dict[str, Callable[[int], bool]] = {
    "small messages": lambda size: size <= 400,
    "long results": lambda size: 3_000 <= size <= 20_000,
    "all kinds": lambda size: True,
}
_AIMS = {("small messages", "sqlite"): 1.2, ("long results", "sqlite"): 0.6}
"""For SQLite without the index of words, over the bytes of the messages' JSON."""


def measured(folder: Path, quick: bool) -> Iterator[Measured]:
    """Kilobytes a message, and as a note how much of its JSON that is."""
    number = count()
    wanted = 200 if quick else 3_000
    with servers() as server:
        for kind in ("sqlite", "postgres") if server else ("sqlite",):
            for what, fits in _KINDS.items():
                said = list(islice((one for one in messages() if fits(len(encode_message(one)))), wanted))
                written = sum(len(encode_message(one)) for one in said)
                for search in (False, True):
                    empty, full = (place(kind, folder, server, f"size-{n}") for n in (next(number), next(number)))
                    size = filled(_for(full, search), said) - filled(_for(empty, search), said[:1])
                    ratio = size / written
                    name = f"disk, {what}, {kind}{', index of words' if search else ''}"
                    aim = None if search else _AIMS.get((what, kind))
                    yield name, ratio, "x JSON", None, aim, f"{size / wanted:,.0f} bytes of {written / wanted:,.0f}"


def filled(url: str, said: list[Message]) -> int:
    """Bytes of a new store with these messages in it, once it has settled."""
    with open_conversation("bench", store=url, policy="off") as chat:
        for start in range(0, len(said), 50):
            chat.append(said[start : start + 50])
        if "search=off" not in url:
            chat._engine.store.search(chat.head, "whatever")  # Brings the index up to date.
    settled(url)
    return _on_disk(url)


def _for(url: str, search: bool) -> str:
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
        found = connection.execute(statement, (f'"{schema}"',)).fetchone()
    return int(found[0]) if found else 0
