"""Child process that writes until it is killed: run it with the path of a database, a name and a seed.

It prints each acknowledged write on its own line: `message N TEXT` or `edit N`. The text of a message contains its
position, so that a reader can detect a wrong one.
"""

from __future__ import annotations

import sys

from foveate.core.messages import user
from foveate.errors import ConflictError
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after


def text(position: int, name: str) -> str:
    return f"{name} {position} " + "so it went on " * (position * 37 % 1500)


def main(path: str, name: str, count: int) -> None:
    with SqliteStore(path, wait=120) as store:
        head = store.open("acme", name)
        for turn in range(count):
            messages = [user(text(head.position + n, name)) for n in range(1, 2 + turn % 3)]
            try:
                head = append(store, head, chain(messages, head))
            except ConflictError:
                head = store.open("acme", name)
                continue
            print("message", head.position, flush=True)
            if turn % 4 == 3:
                try:
                    head = store.commit(head, *record_after(head))
                except ConflictError:
                    head = store.open("acme", name)
                    continue
                print("edit", head.number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
