"""Child process whose background summarizer hangs until the process is killed.

Run it with the path of a database. It prints `message POSITION` for each stored message, and `asked` when the
summarizer is called.
"""

from __future__ import annotations

import sys
import threading

from foveate import Options, open_conversation
from foveate.policies import compact_on_overflow
from foveate.summarizers import SummaryRequest
from foveate.testing import say, text_of, user


def main(path: str) -> None:
    begun = threading.Event()

    def hangs(request: SummaryRequest) -> str:
        begun.set()
        threading.Event().wait()
        return ""

    policy = compact_on_overflow(ahead=0.5, keep_recent=0.25, framing="{summary}")
    store = f"sqlite:///{path}"
    with open_conversation(
        "c", store=store, window=11_000, policy=policy, summarizer=hangs, options=Options(reserve=1_000)
    ) as chat:
        for number in range(1, 9):
            if number > 1:
                chat.record(say(f"a{number - 1} " + text_of(490, number)))
            chat.append(user(f"q{number} " + text_of(490, number)))
            chat.prepare()
            print("message", len(chat), flush=True)
        begun.wait()
        print("asked", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
