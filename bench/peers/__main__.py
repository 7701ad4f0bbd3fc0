"""foveate next to other libraries: `python bench/peers [NAME ...] [--python PATH ...] [--quick]`.

Measures CPU time, bytes on disk and memory of each library that an interpreter has, and names the packages of the
others. Nothing is installed. Libraries conflict: give `--python` for each environment, which is searched after this
one. Each library runs in a process of its own, and they take turns.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from run import machine

from peers.report import costs, descriptions, gathered, markdown, plain
from peers.runner import QUICK, Found, Measured, Sizes, find, measure

HERE = Path(__file__).resolve().parent


@dataclass
class Options:
    names: list[str]
    python: list[str]
    folder: Path
    only: str | None
    quick: bool
    rounds: int | None
    json: bool
    read: list[Path]
    markdown: bool
    plots: Path | None


def main() -> None:
    options = _parsed()
    files = sorted(options.folder.glob("*.py"))
    peers = find(files, [sys.executable, *options.python])
    if unknown := sorted(set(options.names) - {peer.name for peer in peers}):
        sys.exit(f"There is no {unknown[0]!r}. There are {', '.join(peer.name for peer in peers)}.")
    chosen = [peer for peer in peers if not options.names or peer.name in options.names]
    sizes = QUICK if options.quick else Sizes()
    sizes = sizes._replace(rounds=options.rounds or sizes.rounds)
    rows = list(_read(options.read) if options.read else _run(chosen, sizes, options))
    if options.json:
        return
    values = gathered(rows)
    write = markdown if options.markdown else plain
    print(write(costs(chosen, values, sizes)), write(descriptions(chosen, values)), sep="\n\n")
    if options.plots:
        from peers.plots import draw

        for path in draw(chosen, values, sizes, options.plots):
            print(path, file=sys.stderr)


def _parsed() -> Options:
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("names", nargs="*", help="libraries by their names in the table (default: all)")
    parser.add_argument("--python", action="append", default=[], help="the interpreter of another environment")
    parser.add_argument("--folder", type=Path, default=HERE / "libraries", help="the folder of the libraries' files")
    parser.add_argument("--only", choices=("turn", "rest"), help="turns, or everything else")
    parser.add_argument("--quick", action="store_true", help="short conversations, one round")
    parser.add_argument("--rounds", type=int, help="conversations of each library, for everything but turns")
    parser.add_argument("--json", action="store_true", help="print a line for each value, for --read")
    parser.add_argument("--read", type=Path, action="append", default=[], help="measure nothing, read these lines")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    parser.add_argument("--plots", type=Path, help="write plots into this folder (needs matplotlib)")
    return Options(**vars(parser.parse_args()))


def _run(peers: list[Found], sizes: Sizes, options: Options) -> Iterator[Measured]:
    print(machine(), file=sys.stderr)
    for peer in peers:
        if peer.python is None:
            print(f"without {peer.name}: pip install {' '.join(peer.needs)}", file=sys.stderr)
    kinds = [options.only] if options.only else ["turn", "rest"]
    with tempfile.TemporaryDirectory() as folder:
        for row in measure([peer for peer in peers if peer.python], Path(folder), sizes, kinds):
            if options.json:
                print(json.dumps(row._asdict()), flush=True)
            yield row


def _read(files: list[Path]) -> Iterator[Measured]:
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            yield Measured(**json.loads(line))


if __name__ == "__main__":
    main()
