"""Finds the libraries, starts a process for each, and lets them take turns, so that load affects all of them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from corpus import turns

from foveate.formats import get_format

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "src"

_EVERY = 20
"""Steps between two messages of the user."""


class Sizes(NamedTuple):
    """How much is measured."""

    turns: int = 500
    block: int = 20
    """Turns that a library takes before it is the turn of the next."""
    last: int = 100
    """The last turns, which are the figures of the table."""
    bulk: int = 470
    """Steps that are imported at once, of about 2.1 messages."""
    single: int = 20
    """Steps whose messages are appended one by one."""
    rounds: int = 5
    window: int = 200_000
    newest: int = 200
    """Messages that a library shows if it counts messages: about as many as foveate shows in this window."""
    seconds: float = 12.0
    """Time for the turns of one library."""


QUICK = Sizes(turns=12, block=6, last=6, bulk=10, single=2, rounds=1, window=32_000, newest=50)


class Found(NamedTuple):
    """A library that an interpreter has, or that none has."""

    file: Path
    name: str
    needs: tuple[str, ...]
    uses: str
    lacks: str
    is_limit: bool
    keeps: bool
    python: str | None
    """None if no interpreter has all packages."""
    version: str
    """Of the first package."""


class Measured(NamedTuple):
    """The values of one measure of one library, one for each turn or round."""

    peer: str
    measure: str
    values: list[float]


def find(files: Sequence[Path], pythons: Sequence[str]) -> list[Found]:
    """Return each library with the first interpreter that has its packages."""
    claims = [(file, _claims(file)) for file in files]
    wanted = sorted({package for _, claim in claims for package in claim["NEEDS"]})
    installed = {python: _versions(python, wanted) for python in pythons}
    found = []
    for file, claim in claims:
        needs = claim["NEEDS"]
        python = next((python for python, have in installed.items() if not set(needs) - set(have)), None)
        version = installed[python][needs[0]] if python and needs else ""
        is_limit, keeps = claim.get("IS_LIMIT", False), claim.get("KEEPS", True)
        found.append(Found(file, claim["NAME"], needs, claim["USES"], claim["LACKS"], is_limit, keeps, python, version))
    return sorted(found, key=lambda one: (not one.is_limit, not one.name.startswith("foveate"), one.name.lower()))


def _claims(file: Path) -> dict[str, Any]:
    """Return the constants of the class in a file, without an import of the library."""
    module = ast.parse(file.read_text("utf-8"))
    library = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Library")
    return {
        target.id: ast.literal_eval(node.value)
        for node in library.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }


_ASK = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
have = {}
for name in json.loads(sys.argv[1]):
    try:
        have[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(have))
"""


def _versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of those packages that an interpreter has."""
    done = subprocess.run([python, "-c", _ASK, json.dumps(packages)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def steps(number: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of an agent's steps: a call and its result, and sometimes an answer and a new question."""
    format = get_format("openai")
    for step, (call, result) in enumerate(islice(turns(), number)):
        reply, answer = format.render([call, result])
        reply["tool_calls"][0]["id"] = answer["tool_call_id"] = f"call_{step}"
        before = []
        if step % _EVERY == 0:
            before = [{"role": "user", "content": f"Please continue with part {step // _EVERY + 1}."}]
            before[:0] = [{"role": "assistant", "content": f"Part {step // _EVERY} is done."}] if step else []
        yield [*before, reply, answer]


class Worker:
    """The process of one library."""

    def __init__(self, peer: Found, folder: Path) -> None:
        assert peer.python is not None, "find() names the interpreter"
        command = [peer.python, str(HERE / "child.py"), str(peer.file)]
        quiet = {"HF_HUB_OFFLINE": "1", "HEADROOM_TELEMETRY": "off", "AGNO_TELEMETRY": "false"}
        paths = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # Closed with the process.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **quiet, "PYTHONPATH": paths, "no_proxy": "127.0.0.1"},
        )
        self.imported: float = self._answer()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._log.close()

    def ask(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None, "a pipe"
        self._process.stdin.write(json.dumps([command, arguments]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None, "a pipe"
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise WorkerFailed(self._log.read().decode(errors="replace").strip()[-500:])
        return json.loads(line)


class WorkerFailed(Exception):
    """The process of a library ended. The text is the end of what it wrote to standard error."""


def measure(peers: Sequence[Found], folder: Path, sizes: Sizes, kinds: Sequence[str]) -> Iterator[Measured]:
    """Yield what the libraries cost: `turn`, and `rest` for everything else."""
    file = folder / "steps.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for step in steps(max(sizes.turns, sizes.bulk + sizes.single)):
            lines.write(json.dumps(step) + "\n")
    if "turn" in kinds:
        yield from _turns(peers, folder, file, sizes)
    if "rest" in kinds:
        yield from _rest(peers, folder, file, sizes)


def _turns(peers: Sequence[Found], folder: Path, file: Path, sizes: Sizes) -> Iterator[Measured]:
    took: dict[str, list[float]] = {peer.name: [] for peer in peers}
    shown: dict[str, int] = {}
    spent = dict.fromkeys(took, 0.0)
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for peer in peers:
            try:
                worker = stack.enter_context(Worker(peer, folder))
                worker.ask("warm_up", folder=_new(folder), file=str(file))
                worker.ask("open", folder=_new(folder), window=sizes.window, newest=sizes.newest)
                workers[peer.name] = worker
            except WorkerFailed as error:
                print(f"{peer.name} failed: {error}", file=sys.stderr)
        for first in range(0, sizes.turns, sizes.block):
            for name, worker in list(workers.items()):
                began = monotonic()
                last = min(first + sizes.block, sizes.turns)
                try:
                    answer = worker.ask("turns", file=str(file), first=first, last=last)
                except WorkerFailed as error:
                    print(f"{name} failed after {first} turns: {error}", file=sys.stderr)
                    del workers[name]
                    continue
                took[name] += answer["took"]
                shown[name] = answer["shown"]
                spent[name] += monotonic() - began
                if spent[name] > sizes.seconds:
                    print(f"{name} stops after {last} turns: they took {spent[name]:.0f} s", file=sys.stderr)
                    del workers[name]
    for name, values in took.items():
        if values:
            yield Measured(name, "turn", values)
            yield Measured(name, "shown", [shown[name]])


def _rest(peers: Sequence[Found], folder: Path, file: Path, sizes: Sizes) -> Iterator[Measured]:
    named = {"window": sizes.window, "newest": sizes.newest}
    for number in range(sizes.rounds):
        for peer in peers:
            try:
                yield from _round(peer, folder, str(file), sizes, named, is_first=number == 0)
            except WorkerFailed as error:
                print(f"{peer.name} failed: {error}", file=sys.stderr)


def _round(
    peer: Found, folder: Path, file: str, sizes: Sizes, named: dict[str, int], is_first: bool
) -> Iterator[Measured]:
    """Yield the costs of one conversation. Each part has a process of its own, because a resume begins with one."""
    kept = _new(folder)
    with Worker(peer, folder) as worker:
        worker.ask("warm_up", folder=_new(folder), file=file)
        costs = worker.ask("fill", folder=kept, file=file, bulk=sizes.bulk, single=sizes.single, **named)
        yield Measured(peer.name, "loading", [worker.imported])
        if peer.keeps:
            yield from (Measured(peer.name, measure, [value]) for measure, value in costs.items())
    if not peer.keeps:
        return
    for traced in (False, True) if is_first else (False,):
        with Worker(peer, folder) as worker:
            worker.ask("warm_up", folder=_new(folder), file=file)
            answer = worker.ask("resume", folder=kept, traced=traced, **named)
        if traced:
            yield Measured(peer.name, "memory", [answer["held"] / 1e6])
        else:
            yield Measured(peer.name, "resume", [answer["took"]])
            yield Measured(peer.name, "resumed", [answer["shown"]])
            yield Measured(peer.name, "parted", [answer["parted"]])


_NUMBERS = count()


def _new(folder: Path) -> str:
    """Return a new folder for a conversation."""
    path = folder / f"conversation-{next(_NUMBERS)}"
    path.mkdir()
    return str(path)
