"""The command: which part to measure, the table, the lines of JSON, and the losses in words."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from retention.conversations import Sample, samples
from retention.dialogues import dialogues
from retention.foreign import foreign_samples
from retention.scoring import Verdict
from retention.shapes import KINDS, Shape
from retention.templates_blind_agent_facts import BLIND_AGENT_FACTS
from retention.templates_blind_agents import BLIND_AGENTS
from retention.templates_blind_changes import BLIND_CHANGES
from retention.templates_blind_facts import BLIND_FACTS
from retention.templates_blind_fourth import BLIND_FOURTH
from retention.templates_blind_fourth_work import BLIND_FOURTH_WORK
from retention.templates_blind_pairs import BLIND_PAIRS
from retention.templates_blind_people import BLIND_PEOPLE
from retention.templates_blind_work_changes import BLIND_WORK_CHANGES
from retention.templates_changes import CHANGES
from retention.templates_corrections import CORRECTIONS
from retention.templates_facts import FACTS
from retention.templates_foreign_people import PEOPLE
from retention.templates_foreign_work import WORK
from retention.templates_held_out import HELD_OUT
from retention.templates_languages import LANGUAGES
from retention.templates_rules import RULES
from retention.ways import (
    BUDGETS,
    POLICIES,
    ROUNDS,
    SUMMARIZERS,
    WINDOWS,
    Row,
    characters_for,
    measure_summarizer,
    measure_views,
)

__all__ = ["BLIND", "FOREIGN", "HELD_OUT", "SHAPES", "figures", "main"]

SHAPES: tuple[Shape, ...] = (*RULES, *FACTS, *CHANGES, *CORRECTIONS, *LANGUAGES)
BLIND: tuple[Shape, ...] = (
    *BLIND_PEOPLE,
    *BLIND_FACTS,
    *BLIND_AGENTS,
    *BLIND_AGENT_FACTS,
    *BLIND_CHANGES,
    *BLIND_WORK_CHANGES,
    *BLIND_PAIRS,
    *BLIND_FOURTH,
    *BLIND_FOURTH_WORK,
)
FOREIGN = (*WORK, *PEOPLE)


class Aim(NamedTuple):
    """What a figure should reach."""

    least: float | None = None
    most: float | None = None

    def is_met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f">={self.least:.2f}" if self.least is not None else f"<={self.most:.2f}"


COLUMNS = ("kept", "rules_kept", "resolved", "stale", "merged", "bare", "room", "cut")


def aim_of(column: str, row: Row) -> Aim | None:
    """Return the aim of one figure; None if there is none. Baselines have none."""
    if row.way in SUMMARIZERS and row.way != "digest":
        return None
    is_small = row.budget == "10%"
    match column:
        case "kept" if row.rounds and not is_small:
            return Aim(least=0.90 if row.budget == "20%" else 0.97)
        case "rules_kept" if row.rounds and not is_small:
            return Aim(least=0.98)
        case "resolved" if not is_small:
            return Aim(least=0.80)
        case "stale" | "merged" if not is_small:
            return Aim(most=0.05)
        case "room" if row.rounds:
            return Aim(least=0.95)
        case _:
            return None


def value_of(column: str, row: Row) -> float | None:
    value = getattr(row, column) if column in ("room", "cut") else getattr(row.score, column)
    assert value is None or isinstance(value, float)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/retention", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="how often each shape is measured (default: 2)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--held-out", action="store_true", help="measure the shapes that no rule was written for")
    parser.add_argument("--blind", action="store_true", help="measure the shapes that other authors wrote")
    parser.add_argument("--foreign", action="store_true", help="measure whole conversations in other registers")
    parser.add_argument("--dialogues", action="store_true", help="measure the dialogues of people with an agent")
    parser.add_argument("--ways", choices=("summarizer", "views", "all"), default="all")
    parser.add_argument("--rounds", type=int, nargs="+", default=ROUNDS)
    parser.add_argument("--budgets", type=float, nargs="+", default=BUDGETS)
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--no-baselines", action="store_true")
    parser.add_argument("--losses", type=int, default=0, metavar="N", help="show N facts that are lost, with reasons")
    parser.add_argument("--kinds", action="store_true", help="show the share kept of each kind and place")
    parser.add_argument("--show", action="store_true", help="show the last summary of each row")
    parser.add_argument("--compare", metavar="COMMIT", help="measure the package of this commit before the present one")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    if arguments.held_out and (arguments.losses or arguments.kinds or arguments.show):
        parser.error("The part that nobody tunes on gives totals only. Leave out --losses, --kinds and --show.")
    if arguments.compare:
        measure_commit(arguments.compare)
    shapes = HELD_OUT if arguments.held_out else BLIND if arguments.blind else SHAPES
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)

    def draw(rounds: int = 1, characters: int = 0) -> list[Sample]:
        if arguments.dialogues:
            return list(dialogues())
        few = seeds[:1] if characters else seeds
        if arguments.foreign:
            return list(foreign_samples(FOREIGN, few, rounds=rounds, characters=characters))
        return list(samples(shapes, few, rounds=rounds, characters=characters))

    if not arguments.json:
        name = "held out" if arguments.held_out else "by other authors" if arguments.blind else "development"
        part = f"{len(list(dialogues()))} dialogues" if arguments.dialogues else f"{len(shapes)} shapes ({name})"
        print(
            f"{len(FOREIGN)} foreign conversations" if arguments.foreign else part, f"{arguments.seeds} seeds", sep=", "
        )
        print(_heading())
    for row in rows(arguments, draw):
        print(json.dumps(as_json(row)) if arguments.json else line(row), flush=True)
        if arguments.kinds:
            print(by_kind(row))
        if arguments.show:
            print("\n".join(f"    | {text}" for text in row.losses[-1][1].splitlines()))
        for text in describe_losses(row, arguments.losses):
            print(text)


def rows(arguments: argparse.Namespace, draw: Callable[..., list[Sample]]) -> Iterator[Row]:
    """Yield all rows that the arguments select."""
    for rounds in arguments.rounds if arguments.ways != "views" else ():
        drawn = draw(rounds)
        for way in SUMMARIZERS:
            if way == "digest" or not arguments.no_baselines:
                for budget in arguments.budgets:
                    yield measure_summarizer(way, drawn, budget, rounds)
    if arguments.ways != "summarizer":
        for window in arguments.windows:
            long = draw(characters=characters_for(window))
            for policy in arguments.policies:
                yield measure_views(policy, window, long)


def measure_commit(commit: str) -> None:
    """Run the same benchmark with the package of another commit, in a process of its own."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--compare")
    _, arguments = parser.parse_known_args()
    here = Path(__file__).resolve().parent
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=here.parent.parent, check=True, capture_output=True)
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        environment = os.environ | {"PYTHONPATH": str(Path(folder, "src"))}
        subprocess.run([sys.executable, here, *arguments], env=environment, check=True)


def figures(quick: bool) -> Iterator[tuple[str, float, str, None, float | None]]:
    """Yield the main figures for `bench/run.py`: shares that are lost, which should be small."""
    for rounds in (1,) if quick else (1, 10):
        drawn = list(samples(SHAPES, range(1, 2 if quick else 4), rounds=rounds))
        for budget in BUDGETS:
            score = measure_summarizer("digest", drawn, budget, rounds).score
            what = f"digest in {budget:.0%} of the text, {rounds} round{'s' * (rounds > 1)}"
            aim = {0.2: 0.10, 0.3: 0.03}.get(budget)
            yield f"{what}: facts lost", 1 - (score.kept or 0.0), "share", None, aim
            yield f"{what}: stale", score.stale or 0.0, "share", None, None if aim is None else 0.05


def _heading() -> str:
    return f"{'way':18}{'room of':>8}{'rounds':>7}{'facts':>6}" + "".join(f"{column:>12}" for column in COLUMNS)


def line(row: Row) -> str:
    """Return a row of the table. A figure that misses its aim has a `!`."""
    cells = []
    for column in COLUMNS:
        value, aim = value_of(column, row), aim_of(column, row)
        text = "-" if value is None else f"{value:.3f}"
        cells.append(f"{text}{'!' if value is not None and aim and not aim.is_met(value) else ' '}".rjust(12))
    return f"{row.way:18}{row.budget:>8}{row.rounds or '-':>7}{row.score.facts:>6}" + "".join(cells)


def as_json(row: Row) -> dict[str, object]:
    """Return a row as plain values, each figure with its aim."""
    figures = {column: value_of(column, row) for column in COLUMNS}
    aims = {column: str(aim) for column in COLUMNS if (aim := aim_of(column, row))}
    return {
        "way": row.way,
        "budget": row.budget,
        "rounds": row.rounds,
        "facts": row.score.facts,
        **figures,
        "aims": aims,
    }


def by_kind(row: Row) -> str:
    """Return the share that is kept, by kind and by place."""
    cells = []
    for name, values in (("kind", KINDS), ("place", ("start", "middle", "end"))):
        for value in values:
            states = [verdict.kept for verdict, _ in row.losses if getattr(verdict.fact, name) == value]
            if states:
                cells.append(f"{value} {sum(states) / len(states):.2f}")
    return "    " + ", ".join(cells)


def describe_losses(row: Row, count: int) -> Iterator[str]:
    """Yield facts that are lost, in words, with the nearest line of the text."""
    shown = 0
    for verdict, text in row.losses:
        if shown < count and (fault := _fault(verdict)):
            shown += 1
            fact = verdict.fact
            values = (*fact.keep, *fact.old, *fact.other)
            near = [
                line
                for line in text.splitlines()
                if any(value.strip("*") in line for value in values if "|" not in value)
            ]
            yield f"    {fault} [{fact.kind}, {fact.place}] {' // '.join(fact.says)!r}"
            yield "".join(f"        text: {line[:200]}\n" for line in near[:3]) or "        text: nothing of it\n"


def _fault(verdict: Verdict) -> str:
    faults = {
        "LOST": not verdict.kept,
        "OTHER LOST": bool(verdict.fact.other) and not verdict.other_kept,
        "STALE": verdict.stale,
        "BARE": verdict.bare,
    }
    return ", ".join(name for name, is_so in faults.items() if is_so)
