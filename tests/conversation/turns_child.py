"""Child process that runs whole turns until it is killed.

Run it with the path of a database, a seed, and `release` for a policy that releases originals. It prints each
acknowledged write on its own line: `message POSITION ID` or `edit NUMBER`. A policy edits at nearly every turn;
sometimes the process edits, expands, pins or undoes by hand.
"""

from __future__ import annotations

import sys
from random import Random

from foveate import assistant, open_conversation
from foveate.errors import BadEdit, NotExpandable
from foveate.policies.expiry import expire_results
from foveate.testing import answer, call, text_of
from foveate.types import Lease

RELEASING = (expire_results(default=Lease(1, "compact", "first_chars", 50, preserve_original=False)),)


def main(path: str, seed: int, *, releases: bool) -> None:
    random = Random(seed)
    policy = RELEASING if releases else "keep-last-2"
    with open_conversation("one", store=f"sqlite:///{path}", window=6_000, policy=policy) as chat:

        def told(ids: tuple[str, ...]) -> None:
            for position, id in enumerate(ids, len(chat) - len(ids) + 1):
                print("message", position, id, flush=True)

        told(chat.append(f"request {len(chat)}"))
        while True:
            n = len(chat)
            chat.prompt()
            print("edit", chat._agent.head.number, flush=True)
            chat.record(call(f"call{n}", "read", n=n))
            told((chat.tip,))
            told(chat.append(answer(f"call{n}", text_of(random.randrange(1, 700), n))))
            if random.random() < 0.2:
                chat.record(assistant(f"answer {n}"))
                told((chat.tip,))
                told(chat.append(f"request {n}"))
            if random.random() < 0.3:
                by_hand(chat, random)
                print("edit", chat._agent.head.number, flush=True)


def by_hand(chat, random: Random) -> None:
    handle = f"m{random.randrange(1, len(chat) + 1)}"
    try:
        match random.randrange(4):
            case 0:
                chat.expand(handle)
            case 1:
                chat.pin(handle)
                chat.unpin(handle)
            case _:
                chat.undo(random.choice(chat.journal.receipts()[-3:]))
    except (BadEdit, NotExpandable, IndexError):  # Nothing there to take back.
        pass


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), releases="release" in sys.argv[3:])
