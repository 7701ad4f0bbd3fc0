"""What digests of results keep: keys with their values, errors with their counts, names and lines of later calls.

`python bench/result_digests.py [FILE ...] [--seed 1] [--show KIND]`. Generated results have known pairs and errors; the
recordings (as `foveate replay` reads them) show which names and whole lines later calls use. Each result is digested
in the room of the policy `shrink_to_digest` and in `room_for`. To compare two versions, run it with `PYTHONPATH` set to
the `src` of each.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from foveate.digest import digest, room_for
from foveate.replay.recordings import read_recording
from foveate.replay.references import References, identifiers, whole_lines

SHORTEST = 800
"""Characters above which a result counts."""


class Sample(NamedTuple):
    """A result with what is known of it."""

    kind: str
    text: str
    pairs: Sequence[tuple[str, str]] = ()
    """Keys, without what stands above them, with their values."""
    errors: Sequence[tuple[str, int]] = ()
    """What distinguishes an error, and how many lines report it."""
    names: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()


class Kept(NamedTuple):
    """What a digest keeps of a sample."""

    together: int
    """Pairs whose value follows its key in one line."""
    keys_alone: int
    values_alone: int
    errors: int
    counted: int
    """Errors of several lines with their number."""
    names: int
    lines: int


def kept_of(sample: Sample, short: str) -> Kept:
    rows = short.split("\n")[1:]
    together = keys = values = 0
    for key, value in sample.pairs:
        pattern = re.compile(rf"(?<![\w]){re.escape(key)}(?![\w]).*?(?<![\w.]){re.escape(value)}(?![\w]|\.\d)")
        if any(key in row and value in row and pattern.search(row) for row in rows):
            together += 1
        elif re.search(rf"(?<!\w){re.escape(key)}(?!\w)", short):
            keys += 1
        elif re.search(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", short):
            values += 1
    shown = [(next((row for row in rows if error in row), ""), count) for error, count in sample.errors]
    return Kept(
        together,
        keys,
        values,
        sum([bool(row) for row, _ in shown]),
        sum([count > 1 and str(count) in row for row, count in shown]),
        len(sample.names & identifiers(short)),
        len(sample.lines & whole_lines(re.sub(r"(?m)^\d+ +", "", short))),
    )


# ------------------------------------------------------------------------------------------------- generated results

_WORDS = """
    disk cpu memory queue worker cache pool request retry backup index shard lease broker replica gateway scheduler
    ingest ledger billing session token search upload render export import metric audit
""".split()  # noqa: SIM905 - a list of words reads better


def _word(rng: random.Random) -> str:
    return rng.choice(_WORDS)


def _scalar(rng: random.Random) -> object:
    match rng.randrange(6):
        case 0:
            return round(rng.uniform(0, 1000), 2)
        case 1:
            return rng.randrange(100_000)
        case 2:
            return rng.choice([True, False])
        case 3:
            return f"{_word(rng)}-{rng.randrange(16**6):06x}"
        case 4:
            return f"{rng.randrange(1, 500)}{rng.choice(['ms', 'GB', 'MiB', '%', 's'])}"
        case _:
            return rng.choice(["enabled", "degraded", "ready", "pending", "failed", "standby"])


def _tree(rng: random.Random, depth: int) -> dict[str, object]:
    keys = list(dict.fromkeys([_word(rng) + rng.choice(["", "_pct", "_total", "_id", "_name"]) for _ in range(6)]))
    return {key: _tree(rng, depth - 1) if depth and rng.random() < 0.55 else _scalar(rng) for key in keys}


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def leaves(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys and values of the leaves of a JSON value; items of lists have the key of their list."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from leaves(inner, name)
        case list():
            for inner in value:
                yield from leaves(inner, key)
        case None:
            pass
        case _:
            if key and 0 < len(_written(value)) <= 60 and "\n" not in _written(value):
                yield key, _written(value)


def _records(rng: random.Random) -> list[dict[str, object]]:
    count = rng.randrange(12, 60)
    bad = rng.randrange(count)
    return [
        {
            "service_id": f"svc_{rng.randrange(16**5):05x}",
            "name": f"{_word(rng)}-{number}",
            "state": "crashed" if number == bad else "running",
            "region": "eu-west-1",
            "restarts": 17 if number == bad else rng.randrange(2),
            "usage": {"cpu_pct": round(rng.uniform(1, 99), 1), "memory_mb": rng.randrange(64, 4096)},
        }
        for number in range(count)
    ]


def json_tree(rng: random.Random) -> Sample:
    value = _tree(rng, 4)
    return Sample("json tree", json.dumps(value, indent=rng.choice([None, 2])), list(leaves(value)))


def json_records(rng: random.Random) -> Sample:
    rows = _records(rng)
    value = {"services": rows, "total": len(rows), "next_page": f"cur_{rng.randrange(16**6):06x}"}
    odd = next(row for row in rows if row["state"] == "crashed")
    pairs = [
        ("total", str(len(rows))),
        ("next_page", str(value["next_page"])),
        ("state", "crashed"),
        ("restarts", "17"),
    ]
    pairs += [("service_id", str(odd["service_id"])), ("name", str(odd["name"])), ("region", "eu-west-1")]
    return Sample("json records", json.dumps(value, indent=rng.choice([None, 2])), pairs)


def json_lines(rng: random.Random) -> Sample:
    rows = _records(rng)
    odd = next(row for row in rows if row["state"] == "crashed")
    pairs = [
        ("state", "crashed"),
        ("restarts", "17"),
        ("service_id", str(odd["service_id"])),
        ("name", str(odd["name"])),
    ]
    return Sample("json lines", "\n".join([json.dumps(row) for row in rows]), pairs)


def _yaml(value: dict[str, object], depth: int = 0) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield f"{'  ' * depth}{key}:"
            yield from _yaml(inner, depth + 1)
        else:
            yield f"{'  ' * depth}{key}: {_written(inner)}"


def yaml(rng: random.Random) -> Sample:
    value = _tree(rng, 4)
    return Sample("yaml", "\n".join(_yaml(value)), list(leaves(value)))


def _flat(rng: random.Random, count: int, shout: bool) -> list[tuple[str, str]]:
    found = {f"{_word(rng)}_{_word(rng)}": _written(_scalar(rng)) for _ in range(count)}
    return [(key.upper() if shout else key, value) for key, value in found.items()]


def ini(rng: random.Random) -> Sample:
    sections = {_word(rng): _flat(rng, 8, False) for _ in range(8)}
    text = "\n\n".join(
        ["\n".join([f"[{name}]", *[f"{key} = {value}" for key, value in rows]]) for name, rows in sections.items()]
    )
    return Sample("ini", text, [pair for rows in sections.values() for pair in rows])


def env(rng: random.Random) -> Sample:
    rows = _flat(rng, 60, True)
    return Sample("env", "\n".join([f"{key}={value}" for key, value in rows]), rows)


def headers(rng: random.Random) -> Sample:
    rows = [(f"X-{_word(rng).title()}-{_word(rng).title()}", _written(_scalar(rng))) for _ in range(30)]
    rows = list({key: (key, value) for key, value in rows}.values())
    return Sample("headers", "\n".join(["HTTP/2 503", *[f"{key}: {value}" for key, value in rows]]), rows)


def report(rng: random.Random) -> Sample:
    """A report of a command: labels with colons between sentences."""
    rows = [(f"{_word(rng)} {_word(rng)}", _written(_scalar(rng))) for _ in range(30)]
    rows = list({key: (key, value) for key, value in rows}.values())
    lines = [f"{key}: {value}" for key, value in rows]
    for _ in range(10):
        lines.insert(rng.randrange(len(lines)), f"Checking the {_word(rng)} of {_word(rng)} before the next step runs")
    return Sample("report", "\n".join(lines), rows)


def prometheus(rng: random.Random) -> Sample:
    lines: list[str] = []
    pairs = []
    for _ in range(12):
        name = f"{_word(rng)}_{_word(rng)}_total"
        lines += [f"# HELP {name} The number of {_word(rng)} events.", f"# TYPE {name} counter"]
        for code in (200, 404, 500):
            value = str(rng.randrange(10**6))
            lines.append(f'{name}{{code="{code}",host="{_word(rng)}"}} {value}')
            pairs.append((name, value))
    return Sample("prometheus", "\n".join(lines), pairs)


def df(rng: random.Random) -> Sample:
    lines = ["Filesystem      Size  Used Avail Use% Mounted on"]
    pairs = []
    for number in range(25):
        share = 97 if number == 7 else rng.randrange(1, 60)
        mount = f"/mnt/{_word(rng)}-{number}"
        sizes = f"{rng.randrange(10, 900)}G  {rng.randrange(9)}G  {rng.randrange(99)}G"
        lines.append(f"/dev/nvme{number}n1    {sizes}  {share}% {mount}")
        pairs.append((f"{share}%", mount))
    return Sample("df", "\n".join(lines), pairs)


def pods(rng: random.Random) -> Sample:
    lines = ["NAME                                READY   STATUS             RESTARTS   AGE"]
    pairs = []
    for number in range(30):
        name = f"{_word(rng)}-{rng.randrange(16**8):08x}-{number:05d}"
        state = "CrashLoopBackOff" if number == 11 else "Running"
        lines.append(
            f"{name:<36}{'0/1' if number == 11 else '1/1'}     {state:<19}{17 if number == 11 else 0:<11}{number}d"
        )
        if number == 11:
            pairs = [(name, state), (name, "17"), ("NAME", "STATUS")]
    return Sample("pods", "\n".join(lines), pairs)


def csv(rng: random.Random) -> Sample:
    lines = ["order_id,customer,total_eur,state"]
    for number in range(60):
        lines.append(f"ord_{number:04d},{_word(rng)} ltd,{'99999.50' if number == 31 else rng.randrange(900)},open")
    return Sample("csv", "\n".join(lines), [("ord_0031", "99999.50"), ("customer", "total_eur")])


def log(rng: random.Random) -> Sample:
    errors = [
        (f"connection to {_word(rng)}-{number}.internal refused", rng.choice([1, 2, 17, 40])) for number in range(6)
    ]
    rows = [f"INFO served /api/{_word(rng)}/{rng.randrange(999)} in {rng.randrange(99)} ms" for _ in range(150)]
    for text, count in errors:
        for _ in range(count):
            rows.insert(
                rng.randrange(len(rows)), f"ERROR [req-{rng.randrange(16**8):08x}] {text} after {rng.randrange(900)} ms"
            )
    lines = [f"2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} {row}" for n, row in enumerate(rows)]
    return Sample("log", "\n".join(lines), errors=errors)


def tests(rng: random.Random) -> Sample:
    failed = [f"tests/test_{_word(rng)}_{n}.py::test_{_word(rng)}_{n}" for n in range(4)]
    lines = ["============ test session starts ============"]
    lines += [f"tests/test_{_word(rng)}_{n}.py {'.' * rng.randrange(5, 40)} [{n}%]" for n in range(60)]
    lines += ["================ FAILURES ================"]
    errors: list[tuple[str, int]] = []
    for number, name in enumerate(failed):
        message = f"assert {rng.randrange(100)} == {rng.randrange(100, 200)} + {number}"
        lines += [
            f"____ {name.split('::')[1]} ____",
            "",
            f"    def {name.split('::')[1]}():",
            "        value = compute()",
        ]
        lines += [
            f">       assert value == expected_{number}",
            f"E       {message}",
            "",
            f"{name.split('::')[0]}:{number + 31}: AssertionError",
        ]
        errors += [(message, 1), (f"{name.split('::')[0]}:{number + 31}", 1)]
    lines += [f"FAILED {name} - AssertionError" for name in failed]
    return Sample("tests", "\n".join([*lines, "===== 4 failed, 391 passed in 8.21s ====="]), errors=errors)


def traces(rng: random.Random) -> Sample:
    lines = [f"step {n}: loaded {_word(rng)} batch {n * 7}" for n in range(50)]
    errors: list[tuple[str, int]] = []
    for number in range(3):
        count = rng.choice([1, 3, 17])
        last = f"ValueError: {_word(rng)} {number} is not configured for {_word(rng)}"
        trace = ["Traceback (most recent call last):"]
        for depth in range(6):
            trace += [f'  File "/app/src/{_word(rng)}_{depth}.py", line {rng.randrange(400)}, in run_{_word(rng)}']
            trace += [f"    return self.{_word(rng)}.call(request, timeout={depth})"]
        for _ in range(count):
            at = rng.randrange(len(lines))
            while lines[at][:4] != "step":
                at = rng.randrange(len(lines))
            lines[at:at] = [*trace, last]
        errors += [(last, count), (trace[-2].strip(), 1)]
    return Sample("traces", "\n".join(lines), errors=errors)


GENERATED: tuple[Callable[[random.Random], Sample], ...] = (
    json_tree, json_records, json_lines, yaml, ini, env, headers, report, prometheus, df, pods, csv, log, tests, traces,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------- recorded results

_PAIR = re.compile(
    r"\s*(?:export )?[\"']?([A-Za-z][\w.-]{1,40})[\"']?(?: ?= ?|: )[\"']?([\w./:@%+-]{1,60}?)[\"']?,?\s*\Z"
)


def recorded(path: Path) -> Iterator[Sample]:
    """Yield the long results of a recording with their pairs, and with what later calls use of each alone."""
    texts: dict[int, str] = {}
    names: dict[int, set[str]] = {}
    lines: dict[int, set[str]] = {}
    references = References()
    for position, entry in enumerate(read_recording(path).messages, 1):
        used = references.read(entry.message)
        for found, group in ((used.recall, names), (used.quoted, lines)):
            for each, positions in found.items():
                if len(positions) == 1 and positions[0] in texts:
                    group.setdefault(positions[0], set()).add(each)
        if entry.message.role == "tool" and len(entry.message.text) > SHORTEST:
            texts[position] = entry.message.text
    for position, text in texts.items():
        kind = f"recorded {digest(text).description.kind}"
        used_names, used_lines = (frozenset(group.get(position, ())) for group in (names, lines))
        yield Sample(kind, text, list(_pairs_in(text)), names=used_names, lines=used_lines)


def _pairs_in(text: str) -> Iterator[tuple[str, str]]:
    try:
        yield from leaves(json.loads(text))
    except (ValueError, RecursionError):
        yield from [(match[1], match[2]) for match in map(_PAIR.match, text.split("\n")) if match]


ROOMS: dict[str, Callable[[int], int]] = {
    "policy": lambda size: max(200, min(int(size * 0.15), 16_000)),
    "room_for": room_for,
}


def measure(samples: Sequence[Sample], room: Callable[[int], int]) -> Iterator[list[str]]:
    """Yield a row of figures for each kind of samples, and one for all."""
    totals: dict[str, Counter[str]] = {}
    for sample in samples:
        begin = process_time()
        short = digest(sample.text, room(len(sample.text)), "m12").text
        spent = process_time() - begin
        kept = kept_of(sample, short)._asdict()
        of = {
            "pairs_": len(sample.pairs),
            "errors_": len(sample.errors),
            "names_": len(sample.names),
            "lines_": len(sample.lines),
        }
        of |= {
            "counted_": sum([count > 1 for _, count in sample.errors]),
            "text": len(sample.text),
            "short": len(short),
        }
        total = "all recorded" if sample.kind.startswith("recorded") else "all generated"
        for name in (sample.kind, total):
            totals.setdefault(name, Counter()).update({**kept, **of, "results": 1})
            totals[name]["microseconds"] += int(spent * 1e6)
    for name, sums in sorted(totals.items(), key=lambda item: (item[0].startswith("all"), item[0])):
        yield [
            name, str(sums["results"]), _share(sums["short"], sums["text"]),
            f"{sums['microseconds'] / sums['text'] * 1000:.1f}",
            *[_share(sums[part], sums["pairs_"]) for part in ("together", "keys_alone", "values_alone")],
            *[_share(sums[part], sums[f"{part}_"]) for part in ("errors", "counted", "names", "lines")],
        ]  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


TITLES = ["", "results", "size", "ns/char", "together", "key", "value", "errors", "counted", "names", "lines"]


def table(rows: Iterable[Sequence[str]]) -> str:
    cells = [TITLES, *rows]
    widths = [max([len(row[column]) for row in cells]) for column in range(len(TITLES))]
    return "\n".join(
        [
            "  ".join(
                [
                    cell.rjust(width) if column else cell.ljust(width)
                    for column, (cell, width) in enumerate(zip(row, widths, strict=True))
                ]
            )
            for row in cells
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12, help="generated results of each kind")
    parser.add_argument("--show", help="print one generated result of this kind and its digest")
    options = parser.parse_args()
    samples = [make(random.Random(f"{options.seed} {number}")) for make in GENERATED for number in range(options.count)]
    if options.show:
        for sample in [each for each in samples if each.kind == options.show][:2]:
            print(
                sample.text[:1_500], digest(sample.text, ROOMS["policy"](len(sample.text)), "m12").text, sep="\n---\n"
            )
        return
    samples += [sample for path in options.files for sample in recorded(path)]
    for name, room in ROOMS.items():
        print(f"\nroom: {name}\n{table(measure(samples, room))}")


if __name__ == "__main__":
    main()
