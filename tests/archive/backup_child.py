"""Child processes of the backup tests: writers that print acknowledgements, and copies without enough space.

`python backup_child.py write FILE NAME` appends to a conversation until its standard input ends, then prints the
number of acknowledged messages.

`python backup_child.py backup|export FILE TARGET BYTES` makes a copy where no file may exceed this many bytes, and
prints the error.
"""

from __future__ import annotations

import sys
from threading import Thread

from foveate.core.messages import user
from foveate.errors import FoveateError
from foveate.ops.archive import backup, export_archive
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain


def write(file: str, name: str) -> None:
    asked = Thread(target=sys.stdin.read, daemon=True)
    asked.start()
    with SqliteStore(file, synchronous="normal", wait=120) as store:
        head = store.open("acme", name)
        print("ready", flush=True)
        while asked.is_alive():
            head = append(store, head, chain([user(f"{name} {head.position} " * 20)], head))
    print(head.position, flush=True)


def copy(what: str, file: str, target: str, most: int) -> None:
    import resource

    with SqliteStore(file) as store:
        store.names("acme")  # Its files are read before the disk is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        try:
            if what == "backup":
                backup(file, target)
            else:
                export_archive(store, target, tenant="acme")
        except FoveateError as error:
            print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        copy(*sys.argv[1:4], int(sys.argv[4]))
