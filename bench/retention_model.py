"""The chance that a call uses a result, fitted on recorded sessions, and where the money of a preset goes.

    python bench/retention_model.py fit       the numbers of `foveate.policies.result_worth`, and their checks by source
    python bench/retention_model.py validate  replays of each source with the numbers fitted on the other sources
    python bench/retention_model.py costs     the cost of all requests by kind of content, and of fetching

The recordings are chat-completions files in `FOVEATE_TRANSCRIPTS/neutral/SOURCE/`. A call uses a result if its
arguments quote a whole line of it (`foveate.replay.references`) that no later result holds. The model is one number for
each kind of result: chance = number / calls since the result came. A result of a file counts as another kind as soon as
the file was changed. The first call after a result is left out, since it sees every result whole.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from statistics import median
from typing import ClassVar

from corpus import recordings

from foveate.core.messages import Message
from foveate.policies import result_worth
from foveate.policies.tool_kinds import create_classifier, is_same_file
from foveate.replay import measure
from foveate.replay.lookup import content_kind
from foveate.replay.recordings import read_recording
from foveate.replay.references import References
from foveate.replay.result import Row
from foveate.replay.run import replay

LEAST = 600
"""Characters of the shortest result that counts: no policy shrinks shorter ones."""
KINDS = {"files": "CHANCE_READ", "changed": "CHANCE_CHANGED", "others": "CHANCE"}
"""The kinds of results, and the constants for them."""

Exposure = dict[int, list[int]]
"""For each number of calls since a result came: the results that a call could use, and those that it used."""


# ---------------------------------------------------------------------------------------------------------- the model


@dataclass
class Result:
    """A result of a recording."""

    call: int
    """The number of calls before it."""
    file: str
    """The file that it shows; "" if it shows none."""
    position: int


@dataclass
class Session:
    """What a recording says about its results."""

    results: list[Result] = field(default_factory=list)
    uses: list[set[int]] = field(default_factory=list)
    """For each call: the positions of the results that it quotes."""
    changes: list[tuple[str, ...]] = field(default_factory=list)
    """For each call: the files that it changes."""
    inputs: list[int] = field(default_factory=list)
    """For each input of the user: the number of calls before it."""


def read_session(messages: Sequence[Message]) -> Session:
    """Read the results of a recording, and their uses."""
    session, references, classify = Session(), References(), create_classifier()
    calls = {call.call_id: call for message in messages for call in message.calls}
    for position, message in enumerate(messages, 1):
        used = references.read(message)
        if message.role == "assistant":
            session.uses.append({positions[-1] for positions in used.quoted.values()})
            kinds = [classify(call.name, call.arguments) for call in message.calls]
            session.changes.append(tuple(file for kind in kinds if kind.kind == "write" for file in kind.files))
        elif message.role == "user":
            session.inputs.append(len(session.uses))
        elif (result := message.result) is not None and len(message.text) >= LEAST:
            call = calls.get(result.call_id)
            kind = classify(call.name, call.arguments) if call else None
            if kind is None or kind.kind != "write":
                file = kind.files[0] if kind is not None and kind.kind == "read" and result.state != "error" else ""
                session.results.append(Result(len(session.uses), file, position))
    return session


def exposures(session: Session) -> Iterator[tuple[str, int, bool]]:
    """Yield for each result and each later call: the kind, the calls since it came as the policy counts them, the use.

    Left out are the first call after a result, and the calls between a read and the first change of a file since the
    user's input: nothing is edited yet. Files that were read after that change are left out until they change: they are
    fewer, and used more often. After a change of its file, a result has the kind `changed`, and its calls count from
    the last change on.
    """
    changed = [call for call, files in enumerate(session.changes, 1) if files]
    for result in session.results:
        inputs = bisect_right(session.inputs, result.call)
        began = session.inputs[inputs - 1] if inputs else 0
        following = bisect_right(changed, result.call)
        explores = result.file and (not following or changed[following - 1] <= began)
        start = result.call
        if explores:
            start = changed[following] if following < len(changed) else len(session.uses)
        last = 0
        for call in range(result.call + 1, len(session.uses) + 1):
            kind = "others" if not result.file else "changed" if last else "files" if explores else ""
            if kind and call > max(start, result.call + 1):
                yield kind, call - (last or start), result.position in session.uses[call - 1]
            if result.file and any(is_same_file(file, result.file) for file in session.changes[call - 1]):
                last = call


def fit(exposure: Sequence[Exposure], power: float = 1.0) -> float:
    """Return the number with the greatest likelihood, for chance = number / calls ** power."""
    used = sum(count for each in exposure for _, count in each.values())
    expected = sum(count * age**-power for each in exposure for age, (count, _) in each.items())
    return used / expected if expected else 0.0


def likelihood(exposure: Sequence[Exposure], number: float, power: float) -> float:
    """Return the logarithm of the likelihood of uses as rare events."""
    total = 0.0
    for each in exposure:
        for age, (count, used) in each.items():
            chance = number * age**-power
            total += (used * log(chance) if used else 0.0) - count * chance
    return total


def by_source() -> dict[str, list[Path]]:
    """Return the recordings of each source."""
    sources: dict[str, list[Path]] = defaultdict(list)
    for path in recordings():
        sources[path.parent.name].append(path)
    return sources


def measure_exposure() -> dict[str, dict[str, Exposure]]:
    """Return the exposure by kind and source."""
    measured: dict[str, dict[str, Exposure]] = {kind: {} for kind in KINDS}
    for source, paths in by_source().items():
        for kind in KINDS:
            measured[kind][source] = defaultdict(lambda: [0, 0])
        for path in paths:
            for kind, age, used in exposures(read_session([each.message for each in read_recording(path).messages])):
                cell = measured[kind][source][age]
                cell[0] += 1
                cell[1] += used
    return measured


def without(source: str, measured: Mapping[str, Mapping[str, Exposure]]) -> dict[str, float]:
    """Return the numbers by kind, fitted on all sources but one."""
    return {kind: fit([each for name, each in sources.items() if name != source]) for kind, sources in measured.items()}


# ------------------------------------------------------------------------------------------------------- the commands


def print_fit() -> None:
    """Print the numbers, how they vary with the source left out, and uses expected and seen."""
    measured = measure_exposure()
    for kind, sources in measured.items():
        exposure = [*sources.values()]
        powers = {power / 20: fit(exposure, power / 20) for power in range(10, 40)}
        best = max(powers, key=lambda power: likelihood(exposure, powers[power], power))
        print(f"{kind}: {KINDS[kind]} = {fit(exposure):.4f}; the best power is {best:.2f}, with {powers[best]:.4f}")
        print("  left out                 number   its uses: expected    seen")
        for source, each in sources.items():
            number = without(source, measured)[kind]
            expected = sum(count * number / age for age, (count, _) in each.items())
            seen = sum(used for _, used in each.values())
            print(f"  {source:24} {number:6.4f} {expected:19.1f} {seen:7}")
        print("  calls since  results    used    share   model")
        for low, high in ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128)):
            cells = [(age, cell) for each in exposure for age, cell in each.items() if low <= age <= high]
            count, used = sum(cell[0] for _, cell in cells), sum(cell[1] for _, cell in cells)
            model = sum(cell[0] * fit(exposure) / age for age, cell in cells)
            print(f"  {low:4}-{high:<6} {count:8} {used:7} {used / max(1, count):8.4f} {model / max(1, count):7.4f}")
    print(f"calls after a use, until the end: median {median(remaining_calls()):.0f}; STAY = {result_worth.STAY}")


def remaining_calls() -> list[int]:
    """Return the calls that follow each use, except uses by the first calls after a result; [0] if there are none."""
    remaining = []
    for path in recordings():
        session = read_session([each.message for each in read_recording(path).messages])
        came = {result.position: result.call for result in session.results}
        for call, used in enumerate(session.uses, 1):
            remaining += [len(session.uses) - call for position in used if call - came.get(position, call) > 2]
    return remaining or [0]


def print_validation(window: int) -> None:
    """Print the figures of each source with the numbers fitted without it, and with all sources."""
    measured = measure_exposure()
    shipped = {kind: getattr(result_worth, constant) for kind, constant in KINDS.items()}
    rows: dict[str, list[Row]] = {"shipped": [], "cross-validated": []}
    for source, paths in by_source().items():
        for label, numbers in (("shipped", shipped), ("cross-validated", without(source, measured))):
            for kind, constant in KINDS.items():
                setattr(result_worth, constant, numbers[kind])
            new = [replay(read_recording(path), policy="balanced", window=window).row for path in paths]
            rows[label] += new
            print(f"{source:24} {label:16} {figures(new)}", flush=True)
    for label, all_rows in rows.items():
        print(f"{'all':24} {label:16} {figures(all_rows)}")


def figures(rows: Sequence[Row]) -> str:
    """Return the five figures of some transcripts, and the largest all-in of one."""
    whole = sum(row.cost_unmanaged for row in rows)

    def share(counted: str, visible: str) -> float:
        count = sum(getattr(row, counted) for row in rows)
        return sum(getattr(row, counted) * (getattr(row, visible) or 0.0) for row in rows) / count if count else 1.0

    return (
        f"cost {sum(row.cost for row in rows) / whole:.3f}  "
        f"all-in {sum(row.cost_all_in * row.cost_unmanaged for row in rows) / whole:.3f}  "
        f"recall {share('references', 'recall_visible'):.3f}  said {share('said_references', 'said_visible'):.3f}  "
        f"quoted {share('quoted_lines', 'quoted_visible'):.3f}  largest {max(row.cost_all_in for row in rows):.3f}"
    )


class CountingMeter(measure.Meter):
    """A meter that adds up the costs of reading and writing, by kind of content."""

    costs: ClassVar[Counter[str]] = Counter()

    def bill(self, request: Sequence[measure.Rendered], length: int, *, is_cold: bool = False) -> measure.Bill:
        """Return the bill of a request, and count its entries."""
        before = self._length
        bill = super().bill(request, length, is_cold=is_cold)
        for index, rendered in enumerate(request):
            for entry in rendered.entries:
                kind = f"folds by {entry.stamp.source}" if entry.kind == "summary" else content_kind(entry)
                if index < self.kept:
                    self.costs[f"read {kind}"] += entry.tokens * self._prices.read
                else:
                    is_new = entry.position > before and entry.kind != "summary"
                    self.costs[f"{'first write' if is_new else 'rewrite'} {kind}"] += entry.tokens * self._prices.write
        return bill


def print_costs(window: int) -> None:
    """Print the cost of all requests under `balanced` by kind of content."""
    from foveate.replay import run

    run.Meter = CountingMeter
    rows = [replay(read_recording(path), policy="balanced", window=window).row for path in recordings()]
    whole = sum(row.cost_unmanaged for row in rows)
    costs = CountingMeter.costs
    costs["fetching"] = sum(row.cost_all_in * row.cost_unmanaged - row.cost for row in rows)
    print(figures(rows))
    for kind, cost in costs.most_common():
        print(f"{kind:32} {cost / whole:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("fit", "validate", "costs"))
    parser.add_argument("--window", type=int, default=200_000)
    arguments = parser.parse_args()
    match arguments.command:
        case "fit":
            print_fit()
        case "validate":
            print_validation(arguments.window)
        case _:
            print_costs(arguments.window)
