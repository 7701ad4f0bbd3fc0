"""Child process that continues a conversation with compactions.

Run it with a URL, its name, the name of the conversation and the number of turns. It opens the conversation once and
keeps it open. It prints each result on its own line: `said NAME TURN`, `edited NUMBER RECORD`, or `failed` and the
error.
"""

from __future__ import annotations

import sys

from foveate import Conversation, Options, open_conversation
from foveate.errors import ConflictError, StoreError, StoreRolledBack
from foveate.policies import compact_on_overflow


def say(chat: Conversation, text: str) -> None:
    """Append this text once. After a failure, look for it before the next attempt."""
    begun = len(chat)
    while True:
        try:
            chat.append(text)
            return
        except StoreError as error:
            print("failed", " ".join(str(error).split()), flush=True)
            while not is_fresh(chat):
                pass
            if any(row.message.text == text for row in chat.history(begun + 1)):
                return


def is_fresh(chat: Conversation) -> bool:
    try:
        chat.refresh()
    except StoreRolledBack:
        raise  # That stays so: there is nothing to wait for.
    except StoreError as error:
        print("failed", " ".join(str(error).split()), flush=True)
        return False
    return True


def main(url: str, name: str, conversation: str, count: int) -> None:
    policy = (compact_on_overflow(ahead=0.5, keep_recent=0.25),)
    chat = open_conversation(
        conversation,
        store=url,
        policy=policy,
        summarizer="digest",
        window=6_000,
        options=Options(reserve=500, background=False),
    )
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(count):
        say(chat, f"{name} {turn}" + " and so on" * (turn * 37 % 90))
        print("said", name, turn, flush=True)
        try:
            chat.prepare()
        except ConflictError:
            continue
        except StoreError as error:
            print("failed", " ".join(str(error).split()), flush=True)
            continue
        head = chat._agent.head
        print("edited", head.number, head.record, flush=True)
    chat.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
