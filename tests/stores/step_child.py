"""Child process that stores steps of a run until it is killed.

Run it with the path of a database, an id, a first number and a count. It writes every step twice, as an agent does,
and prints each acknowledgement on its own line: `NUMBER STATE`.
"""

from __future__ import annotations

import sys

from foveate.core.runs import AgentRun, AgentRunStep
from foveate.stores.sqlite import SqliteStore


def output(number: int) -> str:
    """The output of a step, derived from its number, so that a reader can check it."""
    return f"{number}: " + "it went on " * (number * 37 % 900)


def main(path: str, run: str, first: int, count: int) -> None:
    with SqliteStore(path, wait=120) as store:
        head = store.open("acme", "one")
        store.put_run(head, AgentRun(run, "me", "one"))
        for number in range(first, first + count):
            step = AgentRunStep("shared", number, "action", "look", input=f'{{"n":{number}}}', begun=number)
            store.put_step(head, step)
            print(number, "running", flush=True)
            ended = AgentRunStep("shared", number, "action", "look", "", step.input, output(number), "", "done")
            store.put_step(head, ended)
            print(number, "done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
