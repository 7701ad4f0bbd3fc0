"""Child process that opens, reads and writes databases, and prints the results: run it with a user id and paths.

If the id is not 0, the process becomes that user after the imports, because root is refused nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial

from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain


def tell(what: str, work: Callable[[], object]) -> None:
    try:
        work()
    except StoreError as error:
        print(f"{what}: {type(error).__name__} {error}")
    else:
        print(f"{what}: done")


def main(id: int, paths: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        SqliteStore(os.path.join(folder, "warm.db")).close()
    if id:
        os.setgid(id)
        os.setuid(id)

    for path in paths:
        print(f"file: {path}")
        tell("open", partial(use, path))


def use(path: str) -> None:
    with SqliteStore(path, wait=0.2) as store:
        tell("read", lambda: store.messages(store.open("acme", "one", create=False), 1, 9))
        head = store.open("acme", "one", create=False)
        tell("write", lambda: append(store, head, chain([user("hi")], head)))
        tell("read again", lambda: store.messages(head, 1, 9))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
