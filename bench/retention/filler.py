"""Everything that a summary may drop: small talk, questions with answers, and steps of an agent with their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

import foveate
from foveate import Message
from retention.vocabulary import listed

__all__ = ["chatter", "endless", "padding", "steps"]

NOUNS = listed(
    "dashboard parser button layout request response table header footer sidebar chart cookie session form column row "
    "filter banner widget migration fixture helper wrapper test handler middleware endpoint socket thread buffer"
)
VERBS = listed("load render parse fetch merge split sort group count hash encode decode validate format retry flush")
SMALL = (
    "Thanks, that looks good.",
    "Okay, go on.",
    "Ha, I did not see that coming.",
    "Great work so far!",
    "Sorry, I was in a meeting. Where were we?",
    "I always like it when a test turns green.",
    "Coffee first, then the {noun}.",
    "Hm, interesting.",
    "Could you look at the {noun} again?",
    "What does the {noun} do when I {verb} it twice?",
    "How do you usually {verb} a {noun}?",
    "I read an article about how to {verb} a {noun}, it was rather long and did not say much.",
    "My colleague says that the {noun} is slow. Is that so?",
    "The weather is awful today, I would rather {verb} a {noun} than go out.",
    "Is there a nicer way to {verb} the {noun}?",
    "Can you explain the difference between a {noun} and a {noun2}?",
    "Let me know when you are done with the {noun}.",
    "Ich schaue mir das {noun} gleich an, danke.",
    "Merci, c'est parfait.",
    "好的,谢谢你。",
)
REPLIES = (
    "Sure, I will look at the {noun} now.",
    "Of course. A {noun} can {verb} its {noun2}, and the {noun2} passes the outcome on to the caller.",
    "Good question. In general you {verb} a {noun} once and let the {noun2} handle the rest of the work.",
    "You are welcome!",
    "I have read the {noun}. It is short and easy to follow, and there is a comment on top of each function.",
    "The {noun} and the {noun2} do similar things, but one of them is older.",
    "That is a common question. Most people {verb} the {noun} first. Then they {verb2} the {noun2}, which takes a "
    "moment. After that the two are compared line by line, and the differences are shown in a list.",
    "Done. Shall I go on with the {noun}?",
    "Let me check the {noun} and come back to you.",
)
BACKGROUND = (
    "The {noun} came first, and a year later somebody added the {noun2}.",
    "I wrote most of it on a train, so the {noun} looks a bit rough.",
    "People like the {noun}, they told us so in the survey.",
    "There was a time when we used to {verb} every {noun} by hand.",
    "Then the {noun2} grew, as these things do, and here we are.",
    "You will find the {noun} next to the {noun2}, it is easy to spot.",
    "I hope this is enough background to start with.",
    "A colleague once tried to {verb} the {noun2} and gave up after lunch.",
    "It is a friendly little {noun}, really.",
)


def _fill(random: Random, text: str) -> str:
    noun, noun2 = random.sample(NOUNS, 2)
    verb, verb2 = random.sample(VERBS, 2)
    return text.format(noun=noun, noun2=noun2, verb=verb, verb2=verb2)


def padding(random: Random, sentences: int) -> str:
    """Return background in prose: some sentences that bind nobody."""
    return " ".join(_fill(random, random.choice(BACKGROUND)) for _ in range(sentences))


def chatter(random: Random) -> list[Message]:
    """Return one or two messages of small talk, or a question with its answer."""
    said = [foveate.user(_fill(random, random.choice(SMALL)))]
    if random.random() < 0.8:
        said.append(
            foveate.assistant(" ".join(_fill(random, random.choice(REPLIES)) for _ in range(random.randint(1, 2))))
        )
    return said


def steps(random: Random, number: int) -> list[Message]:
    """Return one step of an agent: a call with a few words or none, and its result of 300 to 4,000 characters."""
    name, arguments, result = random.choice(_TOOLS)(random)
    words = _fill(random, random.choice(("", "", "I look at the {noun}.", "Now I {verb} the {noun}.")))
    call = foveate.ToolCall(f"call_{number}", name, json.dumps(arguments))
    return [foveate.assistant(words, call), foveate.tool_result(f"call_{number}", result)]


def _file(random: Random) -> str:
    return f"app/{random.choice(NOUNS)}s/{random.choice(VERBS)}_{random.choice(NOUNS)}.py"


def _read(random: Random) -> tuple[str, dict[str, object], str]:
    noun, verb = random.choice(NOUNS), random.choice(VERBS)
    lines = [f"def {verb}_{noun}({noun}, depth=0):", f'    """Return the {noun}."""']
    lines += [
        f"    {random.choice(NOUNS)} = {random.choice(VERBS)}({random.choice(NOUNS)}, {random.randint(0, 9)})"
        for _ in range(random.randint(8, 60))
    ]
    return "read_file", {"path": _file(random)}, "\n".join([*lines, f"    return {noun}"])


def _tests(random: Random) -> tuple[str, dict[str, object], str]:
    rows = [
        f"tests/test_{random.choice(NOUNS)}.py::test_{random.choice(VERBS)}_{random.choice(NOUNS)} PASSED"
        for _ in range(random.randint(6, 50))
    ]
    return "bash", {"command": "pytest -v"}, "\n".join([*rows, f"{len(rows)} passed in 3.{random.randint(10, 99)}s"])


def _listing(random: Random) -> tuple[str, dict[str, object], str]:
    return "bash", {"command": "ls -R app"}, "\n".join(_file(random) for _ in range(random.randint(10, 80)))


def _log(random: Random) -> tuple[str, dict[str, object], str]:
    rows = [
        f"2026-05-{random.randint(1, 28):02d}T10:{number % 60:02d}:07Z INFO {random.choice(NOUNS)} "
        f"{random.choice(VERBS)} took {random.randint(1, 90)} ms"
        for number in range(random.randint(8, 50))
    ]
    return "bash", {"command": f"tail -n 50 {random.choice(NOUNS)}.log"}, "\n".join(rows)


def _records(random: Random) -> tuple[str, dict[str, object], str]:
    rows = [
        {"id": random.randint(10_000, 99_999), "kind": random.choice(NOUNS), "state": random.choice(VERBS) + "ed"}
        for _ in range(random.randint(6, 40))
    ]
    return "query", {"sql": f"select * from {random.choice(NOUNS)}s limit 40"}, json.dumps(rows)


def _page(random: Random) -> tuple[str, dict[str, object], str]:
    return (
        "fetch",
        {"url": f"https://docs.example.org/{random.choice(NOUNS)}"},
        "\n\n".join(padding(random, random.randint(2, 5)) for _ in range(random.randint(2, 8))),
    )


_TOOLS: tuple[Callable[[Random], tuple[str, dict[str, object], str]], ...] = (
    _read,
    _tests,
    _listing,
    _log,
    _records,
    _page,
)


def endless(random: Random, share_of_steps: float) -> Iterator[list[Message]]:
    """Yield groups of messages that belong together, without end."""
    number = 0
    while True:
        number += 1
        yield steps(random, number) if random.random() < share_of_steps else chatter(random)
