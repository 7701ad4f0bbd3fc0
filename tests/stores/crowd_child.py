"""Child process that appends to and compacts one conversation together with others, as one worker of an application.

Run it with a URL, its name, the file for its log, and a seed. It prints a line when it is ready, and reads a line with
the time at which to end (seconds since 1970). It logs each message before it appends it, and each acknowledgement. It
may be killed at any moment; its successor, with the same name and file, first finds out whether the last message was
stored.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from foveate import ConflictError, Conversation, open_conversation
from foveate.core.messages import Message, Text, ToolCall, assistant, tool_result, user
from foveate.core.stamps import Usage
from foveate.core.summaries import SummaryRequest
from foveate.edits import Pin, Target, Unpin
from foveate.open import grouped
from foveate.testing.bodies import check_body

WINDOW = 6_000
BILLED = Usage(input=7, output=3)
"""The usage of each reply."""

LEAST = 6
"""Messages that every writer says, however slow the machine is."""


def summarize(request: SummaryRequest) -> str:
    """Write a summary without a model, sometimes slowly."""
    time.sleep(0.02 if len(request.messages) % 3 == 0 else 0.0)
    return f"In short: {len(request.messages)} messages were exchanged, and all is well so far."


def opened(url: str, n: int, **more: Any) -> Conversation:
    """Open the conversation as each worker does; the workers have different policies."""
    ways: list[dict[str, Any]] = [
        {"policy": "prune-and-compact", "background": False},
        {"policy": "prune-and-compact", "background": True},
        {"policy": "balanced", "background": True},
        {"policy": "prune"},
    ]
    return open_conversation(
        "crowd", store=url, window=WINDOW, summarizer=summarize, **grouped(ways[n % len(ways)] | more)
    )


class Log:
    """The intents and acknowledgements in a writer's file."""

    def __init__(self, path: Path) -> None:
        text = path.read_text("utf-8") if path.exists() else ""
        self.lines: list[list[Any]] = [json.loads(line) for line in text.split("\n") if line.endswith("]")]
        """The last line of a killed process may be cut."""
        self._path = path

    def say(self, *words: object) -> None:
        """Add a line. On return all of it is in the file."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(words) + "\n")
        self.lines.append(list(words))

    @property
    def said(self) -> int:
        """Return the number of acknowledged messages."""
        return sum(line[0] == "said" for line in self.lines)

    @property
    def open(self) -> tuple[int, str] | None:
        """Return the message that was being written when its writer was killed: its number, and the tip that it
        follows.
        """
        last = next((line for line in reversed(self.lines) if line[0] in ("said", "saying")), None)
        return (last[1], last[2]) if last and last[0] == "saying" else None


def message(name: str, n: int) -> Message:
    """Return the n-th message of a writer: questions, calls, and results after their calls."""
    mark, more = f"<{name} {n}>", " and so on" * (n * 37 % 60)
    match n % 4:
        case 1:
            return assistant(f"{mark} I look{more}.", ToolCall(f"{name}-{n}", "look", f'{{"n": {n}}}'))
        case 2:
            return tool_result(f"{name}-{n - 1}", f"{mark} " + " ".join(f"line-{k * n}" for k in range(n * 37 % 200)))
        case 3:
            return assistant(f"{mark} Done{more}.")
        case _:
            return user(f"{mark} And now{more}?")


def marks(rows: Any) -> list[tuple[str, str]]:
    """Return the (mark, id) of these messages."""
    found = []
    for row in rows:
        for part in row.message.parts:
            text = part.text if isinstance(part, Text) else getattr(part, "text", "")
            if isinstance(text, str) and text.startswith("<") and ">" in text:
                found.append((text[1 : text.index(">")], row.id))
    return found


def resume(chat: Conversation, log: Log, name: str) -> None:
    """Find out whether the last message was stored; append it if it was not."""
    if log.open is None:
        return
    n, tip = log.open
    try:
        (id,) = chat.append(message(name, n), after=tip)
    except ConflictError:  # Others went on from there, before it or behind it.
        there = dict(marks(chat.history()))
        id = there.get(f"{name} {n}") or chat.append(message(name, n))[0]
    log.say("said", n, id)


def main(url: str, name: str, path: str, seed: str) -> None:
    random, log = Random(int(seed)), Log(Path(path))
    chat = opened(url, int(name[1:]))
    print("ready", flush=True)
    ends = float(sys.stdin.readline())
    log.say("opened", time.time())
    resume(chat, log, name)
    pinned = ""  # At most one of each writer, or what is pinned would not fit any more.
    while time.time() < ends or log.said < LEAST:
        n = log.said
        said = message(name, n)
        log.say("saying", n, chat.tip)
        if said.role == "assistant":
            chat.prepare()
            id = chat.record(said, usage=BILLED)
        else:
            (id,) = chat.append(said)
        log.say("said", n, id)
        chance = random.random()
        if chance < 0.15:
            receipt = chat.edit(Unpin(Target(pinned)) if pinned else Pin(Target(id)))
            pinned = "" if pinned else id
            log.say("edited", receipt.first, receipt.last)
        elif chance < 0.25:
            chat.refresh()
        elif chance < 0.45:
            refusals = check_body("openai", chat.prompt())
            if refusals:
                log.say("illegal", [str(refusal) for refusal in refusals][:3])
    chat.close()
    log.say("ended", time.time())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException as error:
        Log(Path(sys.argv[3])).say("failed", type(error).__name__, str(error)[:300])
        raise
