"""Check the request bodies of random conversations: `python bench/legality.py [BODIES] [--from SEED] [--jobs N]`.

A case is a history, a policy, a window, edits by hand, and changes of format and model. Every body passes the rules for
views and the independent check of bodies. The default of 1,000,000 bodies takes about half an hour on two cores.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections import Counter
from contextlib import suppress
from multiprocessing import Pool
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from together.cases import Case, Outcome

_SHARE = 50
"""Cases that a process takes at a time."""


def run_share(start: int) -> Outcome:
    """Run the cases of one share, and return their sum."""
    logging.disable(logging.WARNING)
    bodies = without = 0
    refused, formats = [], Counter[str]()
    for seed in range(start, start + _SHARE):
        outcome = Case(seed).run()
        bodies, without = bodies + outcome.bodies, without + outcome.without
        refused += outcome.refused
        formats.update(outcome.formats)
    return Outcome(bodies, without, refused, formats)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bodies", nargs="?", type=int, default=1_000_000, help="bodies to check (default: 1,000,000)")
    parser.add_argument("--from", dest="start", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    options = parser.parse_args()
    began, cases, bodies, without, refused = monotonic(), 0, 0, 0, 0
    formats: Counter[str] = Counter()
    shares = range(options.start, options.start + options.bodies, _SHARE)
    with Pool(options.jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the run with the figures so far.
            for outcome in pool.imap_unordered(run_share, shares):
                cases, bodies, without = cases + _SHARE, bodies + outcome.bodies, without + outcome.without
                refused += len(outcome.refused)
                formats += outcome.formats
                for one in outcome.refused[:5]:
                    print(f"seed {one.seed}, body {one.body}, {one.format} {one.model} {one.policy}: {one.problem}")
                if bodies >= options.bodies:
                    break
        pool.terminate()
    print(f"{cases:,} cases, {bodies:,} bodies checked ({', '.join(f'{k} {v:,}' for k, v in formats.most_common())})")
    print(f"{without:,} requests with nothing to send or no room; {refused:,} refused; {monotonic() - began:.0f} s")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
