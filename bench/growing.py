"""Turns of the default policy while a conversation grows, split by phase; another checkout can run next to this one.

`python bench/growing.py` prints p50 and p99 of CPU milliseconds. `--old FOLDER` names the `src` folder of another
checkout: both take the same turns in turn, in processes of their own, so that the load of the machine affects both.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import wraps
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import messages, turns
from databases import FigureRow

from foveate import Conversation, open_conversation
from foveate.conversation.plan import Planner
from foveate.conversation.state import State
from foveate.core.checker import Checker
from foveate.core.stamps import Usage

_HUGE = 1_000_000_000
_TURNS = 20
"""Turns that one checkout takes before it is the turn of the other."""
_PHASES = ("append", "plan", "commit", "check", "render", "other")


class Case(NamedTuple):
    """A growing conversation, and the turns that are measured."""

    name: str
    window: int
    first: int
    """The first measured turn."""
    last: int
    shown: int = 0
    """Messages at the beginning."""
    forms: tuple[str, ...] = ("body",)
    """How the turns give the request, one after the other."""


CASES = (
    Case("window 200,000", 200_000, 501, 1_000),
    Case("window 1,000,000", 1_000_000, 3_501, 4_000),
    Case("10,000 shown", _HUGE, 31, 230, 10_000, ("body_parts", "body", "prompt", "prompt shared")),
)
QUICK = (
    Case("window 32,000", 32_000, 51, 100),
    Case("1,000 shown", _HUGE, 11, 50, 1_000, ("body_parts", "body", "prompt", "prompt shared")),
)


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield p50 and p99 of the turns of each case, and the p50 of each phase, on SQLite with `synchronous=full`."""
    yield from _figures(QUICK if quick else CASES[:1], folder, ["this checkout"])


def _figures(cases: Sequence[Case], folder: Path, sources: Sequence[str], sync: str = "full") -> Iterator[FigureRow]:
    for case in cases:
        took, entries = _interleaved(case, folder, sources, sync)
        floors: dict[str, float] = {}
        for source in sources:
            for form in case.forms:
                rows = [row for row in took[source] if row["form"] == form]
                if not rows:
                    continue
                name = f"{case.name}, {form}, {source}"
                for share in (0.5, 0.99):
                    value = _share([sum(row[phase] for phase in _PHASES) for row in rows], share)
                    phases = " ".join(f"{phase} {_share([row[phase] for row in rows], share):.2f}" for phase in _PHASES)
                    note = f"{phases}; {entries[source]:,} entries"
                    floor = floors.setdefault(f"{form} {share}", value) if len(sources) > 1 else None
                    yield f"{name}, p{share * 100:.0f}", value, "ms", floor, None, note


def _share(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _interleaved(
    case: Case, folder: Path, sources: Sequence[str], sync: str
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """Return for each source the phases of the measured turns, and the entries of the last view."""
    took: dict[str, list[dict[str, Any]]] = {source: [] for source in sources}
    entries: dict[str, int] = {}
    with ExitStack() as stack:
        workers = {}
        for number, source in enumerate(sources):
            url = f"sqlite:///{folder}/growing-{case.window}-{case.shown}-{number}.db?search=off&synchronous={sync}"
            environment = {**os.environ, **({"PYTHONPATH": source} if Path(source).is_dir() else {})}
            command = [sys.executable, __file__, "--worker", url, json.dumps(case)]
            worker = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
            )
            workers[source] = stack.enter_context(worker)
        for first in range(1, case.last + 1, _TURNS):
            count = min(_TURNS, case.last + 1 - first)
            for source, worker in workers.items():
                if worker.stdin is None or worker.stdout is None:
                    raise RuntimeError("The pipes of a worker are closed.")
                worker.stdin.write(f"{count}\n")
                report = json.loads(worker.stdout.readline())
                entries[source] = report["entries"]
                took[source] += [
                    row for number, row in enumerate(report["turns"], first) if case.first <= number <= case.last
                ]
    return took, entries


# ------------------------------------------------------------------------------------------------------------ a worker


class _Phases:
    """CPU milliseconds of the parts of a turn."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    def time(self, phase: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed. A function that is called inside another timed one counts for both."""

        @wraps(work)
        def timed(*args: Any, **options: Any) -> Any:
            began = process_time()
            try:
                return work(*args, **options)
            finally:
                self.took[phase] = self.took.get(phase, 0.0) + (process_time() - began) * 1000

        return timed


def _work(url: str, case: Case) -> None:
    """Take turns for each number that comes in, and print their phases as a line of JSON."""
    phases = _Phases()
    timed = ((Planner, "_make_plan", "plan"), (State, "commit", "commit"), (Checker, "check", "check"))
    for owner, name, phase in timed:
        setattr(owner, name, phases.time(phase, getattr(owner, name)))
    exchanges = turns()
    with open_conversation("growing", store=url, format="openai", window=case.window) as chat:
        chat.append("Do all of it, one after the other.")
        if case.shown:
            source = messages()
            while len(chat) < case.shown:
                chat.append(list(islice(source, min(500, case.shown - len(chat)))))
        forms = {form: give for form, give in _forms(chat).items() if form in case.forms}
        view = chat.prepare()
        done = 0
        while line := sys.stdin.readline():
            rows = []
            for call, result in list(islice(exchanges, int(line))):
                form = list(forms)[done % len(forms)]
                done += 1
                phases.took = {}
                usage = Usage(input=view.tokens, output=100)
                began = process_time()
                chat.record(call, usage=usage)
                chat.append(result)
                appended, early = process_time(), phases.took  # A plan follows the reply.
                phases.took = {}
                view = chat.prepare()
                prepared = process_time()
                forms[form](view)
                ended = process_time()
                row = {phase: early.get(phase, 0.0) + phases.took.get(phase, 0.0) for phase in _PHASES}
                row["append"] = (appended - began) * 1000 - sum(early.values())
                row["other"] = (prepared - appended) * 1000 - sum(phases.took.values())
                row["render"] = (ended - prepared) * 1000
                rows.append({"form": form, **row})
            print(json.dumps({"turns": rows, "entries": len(view)}), flush=True)


def _forms(chat: Conversation) -> dict[str, Callable[[Any], object]]:
    """Return the ways in which a program can ask for a request, as far as this checkout has them."""
    profile, format = chat._agent.profile, chat.format
    forms: dict[str, Callable[[Any], object]] = {
        "body": lambda view: format.body(view, profile=profile),
        "prompt": lambda view: format.prompt(view, profile=profile),
    }
    if hasattr(format, "body_parts"):
        forms["body_parts"] = lambda view: format.body_parts(view, profile=profile)
        forms["prompt shared"] = lambda view: format.prompt(view, profile=profile, shared=True)
    return forms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="the `src` folder of another checkout")
    parser.add_argument("--quick", action="store_true", help="shorter conversations")
    parser.add_argument("--case", type=int, action="append", help="the number of a case, from 0; default: all")
    parser.add_argument("--sync", default="full", choices=("full", "normal"), help="the database's `synchronous`")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        url, case = arguments.worker
        values = json.loads(case)
        _work(url, Case(*values[:-1], tuple(values[-1])))
        return
    cases = QUICK if arguments.quick else CASES
    chosen = [cases[number] for number in arguments.case or range(len(cases))]
    sources = [*([arguments.old] if arguments.old else []), str(Path(__file__).resolve().parent.parent / "src")]
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        for what, value, unit, floor, _, note in _figures(chosen, Path(folder), sources, arguments.sync):
            ratio = f"x {value / floor:.2f}" if floor else ""
            print(f"{what}: {value:.2f} {unit} {ratio}  {note}", flush=True)


if __name__ == "__main__":
    main()
