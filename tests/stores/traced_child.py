"""Child process that runs the scenario on a new file, whose path it is given, and reports each step.

It prints with system calls, so that a trace shows the reports in order.
"""

from __future__ import annotations

import os
import sys

from store_states import scenario

from foveate.ports import Head
from foveate.stores.sqlite import SqliteStore


def main(path: str) -> None:
    heads: dict[str, Head] = {}
    with SqliteStore(path, search=False) as store:
        for step in scenario():
            step(store, heads)
            os.write(1, b"acknowledged\n")


if __name__ == "__main__":
    main(sys.argv[1])
