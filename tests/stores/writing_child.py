"""A process that writes one conversation together with others: run with a URL, its own name and how often.

It prints what was acknowledged, a line at a time. Every failure is met as a caller should meet it: the conversation is
opened again and looked at, and what is not there is written again.
"""

from __future__ import annotations

import sys

from foveate import open_store
from foveate.core.messages import user
from foveate.errors import ConflictError, StoreError
from foveate.ports import Database, Head, append
from foveate.testing.rows import chain, record_after


def say(store: Database, head: Head, text: str) -> Head:
    """Append this text exactly once, despite other writers and failures."""
    begun = head
    while True:
        try:
            return append(store, head, chain([user(text)], head))
        except StoreError as error:
            head = reopened(store)
            body = chain([user(text)])[0].body
            # It may be written without an acknowledgement; then the retry is refused because of the first attempt.
            if any(row.body == body for row in store.messages(head, begun.position + 1, head.position)):
                return head
            if not isinstance(error, ConflictError):
                print("failed", type(error).__name__, flush=True)


def reopened(store: Database) -> Head:
    for _ in range(100):
        try:
            return store.open("acme", "one")
        except StoreError as error:
            failure = error
            print("failed", type(error).__name__, flush=True)
    raise failure


def main(url: str, name: str, count: int) -> None:
    store = open_store(url)
    head = reopened(store)
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(count):
        head = say(store, head, f"{name} {turn}" + " and so on" * (turn * 37 % 900))
        print("said", name, turn, flush=True)
        if turn % 4 == 3:
            try:
                head = store.commit(head, *record_after(head))
            except ConflictError:
                head = reopened(store)
            except StoreError as error:
                print("failed", type(error).__name__, flush=True)
                head = reopened(store)
            else:
                print("edited", head.number, flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
