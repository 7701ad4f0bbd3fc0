"""A generated project for a generated agent: its files, and tool results about them.

All content is drawn from a `random.Random` argument. A step uses only content of earlier results: paths come from
listings, and lines to edit come from files that were read.
"""

from __future__ import annotations

import json
from random import Random
from typing import Final, NamedTuple

from ..core.messages import ResultState

__all__ = ["Project", "Step", "prose"]


def _words(text: str) -> list[str]:
    return text.split()


NOUNS: Final = _words("""
    account archive batch buffer cache channel client config cursor document event export field filter folder
    gateway handler header index invoice job journal key label ledger limit login mailbox message metric note
    order page parser payment policy profile project queue record report request response route schedule
    schema session setting signal snapshot source stamp store stream summary table target task tenant thread
    ticket token upload user view window worker
""")
VERBS: Final = _words("""
    add apply build check clear close collect compare convert copy count create decode delete drop encode
    expire fetch find flush format group load lock make match merge move normalize open pack parse plan
    publish read refresh render replace resolve restore retry save scan send sort split store strip sync trim
    update validate verify wait write
""")
PLAIN: Final = _words("""
    the a this that of for in with when before after because and but so only also here there it was is are has
    been one two other same first last next old new empty missing wrong slow large small called used kept seen
    left moved
""")


def prose(random: Random, characters: int) -> str:
    """Return sentences with about this many characters, with some identifiers and paths."""
    sentences: list[str] = []
    have = 0
    while have < characters:
        words = random.choices(PLAIN, k=4) + random.choices(NOUNS, k=3) + random.choices(VERBS, k=2)
        random.shuffle(words)
        words[random.randrange(len(words))] = random.choice(
            (_function(random), _path(random), str(random.randrange(9999)))
        )
        sentence = " ".join(words).capitalize() + random.choice((". ", ".\n", ". "))
        sentences.append(sentence)
        have += len(sentence)
    return "".join(sentences)


class Step(NamedTuple):
    """One tool call and its result."""

    tool: str
    arguments: dict[str, object]
    result: str
    state: ResultState = "ok"


class Project:
    """Files that a listing shows, a search finds and a reader reads."""

    def __init__(self, random: Random) -> None:
        paths = {_path(random) for _ in range(40)}
        self.files = {path: _code(random, random.randrange(20, 160)) for path in sorted(paths)}
        self.seen: list[str] = []
        self.read: list[tuple[str, str]] = []

    def request(self, random: Random) -> str:
        """Return a request of the user."""
        problem = random.choice(("fails", "is slow", "loses records", "raises KeyError", "ignores the setting"))
        subject, when = f"{random.choice(NOUNS)} {random.choice(NOUNS)}", random.choice(NOUNS)
        return f"The {subject} {problem} when the {when} is empty. Fix it."

    def remark(self, random: Random) -> str:
        """Return a text of the assistant before a call."""
        return f"I will {random.choice(VERBS)} the {random.choice(NOUNS)} and look at the {random.choice(NOUNS)}."

    def report(self, random: Random) -> str:
        """Return a report of the assistant at the end of its work."""
        where = self.seen[-1] if self.seen else "the project"
        return f"Done: `{_function(random)}` in {where} now handles an empty {random.choice(NOUNS)}. The tests pass."

    def step(self, random: Random, result_chars: tuple[int, int]) -> Step:
        """Return the agent's next step. Small results are more frequent than large ones."""
        least, most = result_chars
        size = least + int((most - least) * random.random() ** 2)
        kind = random.choice(("list", "search", "read", "read", "edit", "test", "query")) if self.seen else "list"
        match kind:
            case "read":
                return self._read(random, size)
            case "search":
                return self._search(random, size)
            case "edit" if self.read:
                return self._edit(random)
            case "test":
                return self._test(random, size)
            case "query":
                return _query(random, size)
            case _:
                return self._list(random, size)

    def _list(self, random: Random, size: int) -> Step:
        shown = [f"-rw-r--r-- 1 dev dev {len(self.files[path]):>7} {path}" for path in self.files]
        while sum(map(len, shown)) < size:
            shown.append(f"-rw-r--r-- 1 dev dev {random.randrange(99999):>7} build/{_path(random)}")
        self.seen = list(self.files)
        return Step("bash", {"command": "ls -lR src tests"}, _cut("\n".join(shown), size))

    def _search(self, random: Random, size: int) -> Step:
        word = random.choice(VERBS)
        matches = [f"{path}:{n}: {line.strip()}" for path, n, line in self._lines() if word in line]
        return Step("grep", {"pattern": word, "path": "src"}, _cut("\n".join(matches) or "no matches", size))

    def _read(self, random: Random, size: int) -> Step:
        path = random.choice(self.seen)
        shown = _cut(self.files[path], size)
        self.read.append((path, random.choice([line for line in shown.split("\n") if line.strip()])))
        return Step("read_file", {"path": path}, shown)

    def _edit(self, random: Random) -> Step:
        path, old = random.choice(self.read[-5:])
        if old not in self.files[path]:
            return Step("edit", {"path": path, "old": old, "new": old}, f"error: no such text in {path}", "error")
        new = f"{old}  # {random.choice(NOUNS)} may be empty"
        self.files[path] = self.files[path].replace(old, new, 1)
        return Step("edit", {"path": path, "old": old, "new": new}, f"1 replacement in {path}")

    def _test(self, random: Random, size: int) -> Step:
        path = random.choice(self.seen)
        passed = random.random() < 0.7
        lines = [f"{path}::test_{_function(random)} {'PASSED' if passed else 'FAILED'}" for _ in range(6)]
        while sum(map(len, lines)) < size - 80:
            lines.append(
                f"2026-03-0{random.randrange(1, 9)} 10:{random.randrange(10, 60)} DEBUG {_function(random)} ok"
            )
        lines.append(
            "6 passed in 0.41s" if passed else f"E   KeyError: '{random.choice(NOUNS)}'\n1 failed, 5 passed in 0.52s"
        )
        return Step("bash", {"command": f"pytest -q {path}"}, _cut("\n".join(lines), size), "ok" if passed else "error")

    def _lines(self) -> list[tuple[str, int, str]]:
        return [(path, n, line) for path, text in self.files.items() for n, line in enumerate(text.split("\n"), 1)]


def _query(random: Random, size: int) -> Step:
    table = random.choice(NOUNS)
    rows: list[dict[str, object]] = []
    while not rows or len(json.dumps(rows)) < size - 90:
        key = f"{table}-{random.randrange(16**8):08x}"
        rows.append(
            {"id": key, "owner": _function(random), "size": random.randrange(9999), "open": random.random() < 0.5}
        )
    return Step("query", {"table": table, "limit": len(rows)}, json.dumps(rows))


def _path(random: Random) -> str:
    return f"src/{random.choice(NOUNS)}/{random.choice(VERBS)}_{random.choice(NOUNS)}.py"


def _function(random: Random) -> str:
    return f"{random.choice(VERBS)}_{random.choice(NOUNS)}_{random.choice(NOUNS)}"


def _code(random: Random, lines: int) -> str:
    text_lines = ["from __future__ import annotations", ""]
    while len(text_lines) < lines:
        first, second = random.choice(NOUNS), random.choice(NOUNS)
        text_lines += [
            "",
            f"def {_function(random)}({first}: dict[str, int], {second}: str) -> int:",
            f'    """{random.choice(VERBS).capitalize()} the {first} of a {second}."""',
            f"    if {second} not in {first}:",
            f"        raise KeyError(f'{random.choice(NOUNS)}: {{{second}}}')",
            f"    return {first}[{second}] + {random.randrange(999)}",
            "",
        ]
    return "\n".join(text_lines)


def _cut(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    return text[:size].rsplit("\n", 1)[0] or text[:size]
