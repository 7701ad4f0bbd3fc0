"""Train the zstd dictionary of small bodies, and write `src/foveate/stores/dictionary_1.zdict`.

    python tools/train_dictionary.py [--measure]

It reads recorded transcripts (`FOVEATE_TRANSCRIPTS`, or `../shared/transcripts`), and takes only fragments that occur
in at least three unrelated projects, and have 5 to 40 bytes: keys of JSON, names of tools, common words and idioms of
code. So the dictionary contains no text of any one project. Its other part, frequencies of bytes and lengths, contains
no text.

`--measure` writes nothing. It prints the packed size of messages of projects that the dictionary was not trained on.
The dictionary is part of the file format: it never changes, and a better one gets another tag and name.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
from foveate.core.wire import encode_message  # noqa: E402
from foveate.formats import get_format  # noqa: E402
from foveate.stores import codec, zstd  # noqa: E402

TRAINED = ("LiveMCPBench", "SWE-agent", "inspect_scout", "oh-my-posh", "pi-mono", "tau-bench")
"""Projects of the training. Figures are of all others, which are of other authors."""
PROJECTS_MIN = 3
"""Projects that contain a fragment, at least."""
GRAM = 5
"""Bytes of the shortest fragment."""
FRAGMENT_MAX = 40
SAMPLE = 700
"""Messages of each project, at most."""
BODY_MAX = 16_384
LEVEL = 6


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--measure", action="store_true", help="print the size of messages of other projects")
    bodies = read_bodies()
    if options.parse_args().measure:
        _measure([body for project, some in sorted(bodies.items()) if project not in TRAINED for body in some])
        return
    trained = {project: bodies[project] for project in TRAINED}
    path = ROOT / "src" / "foveate" / "stores" / zstd.DICTIONARY
    path.write_bytes(_dictionary(trained))
    print(f"written {path}: {path.stat().st_size:,} bytes")


def read_bodies() -> dict[str, list[bytes]]:
    """Return the bodies of all messages up to BODY_MAX, by project."""
    folder = Path(os.environ.get("FOVEATE_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts")) / "neutral"
    format = get_format("openai")
    bodies: dict[str, list[bytes]] = {}
    for path in sorted(folder.glob("*/*.jsonl")):
        for line in path.read_bytes().splitlines():
            for message in format.parse(json.loads(line)):
                if len(body := encode_message(message)) <= BODY_MAX:
                    bodies.setdefault(path.parent.name, []).append(body)
    if not bodies:
        raise SystemExit(f"There are no transcripts in {folder}.")
    return bodies


def text_of(bodies: Mapping[str, Sequence[bytes]]) -> bytes:
    """Return the fragments that the bodies of several projects share, the most useful last."""
    choice = random.Random(7)
    samples = [choice.sample(some, min(len(some), SAMPLE)) for some in bodies.values()]
    return b"".join(reversed(_chosen(_fragments(samples))))


def _dictionary(bodies: Mapping[str, Sequence[bytes]]) -> bytes:
    """Return a dictionary of fragments with statistics of these bodies."""
    text = text_of(bodies)
    every = [body for some in bodies.values() for body in some]
    random.Random(7).shuffle(every)
    module = zstd.find_module()
    assert module is not None, "Install backports.zstd."
    raw = module.ZstdDict(text, is_raw=True)
    content: bytes = module.finalize_dict(raw, every, len(text) + 8192, LEVEL).dict_content
    return content


def _fragments(projects: Sequence[Sequence[bytes]]) -> Counter[bytes]:
    """Return the longest fragments whose grams all occur in PROJECTS_MIN projects, with the number of their bodies."""
    places: Counter[bytes] = Counter()
    for bodies in projects:
        places.update({body[at : at + GRAM] for body in bodies for at in range(len(body) - GRAM + 1)})
    common = {gram for gram, count in places.items() if count >= PROJECTS_MIN}
    fragments: Counter[bytes] = Counter()
    for bodies in projects:
        for body in bodies:
            fragments.update(set(_common_parts(body, common)))
    return fragments


def _common_parts(body: bytes, common: set[bytes]) -> list[bytes]:
    parts: list[bytes] = []
    begin = -1
    for at in range(len(body) - GRAM + 2):
        is_common = body[at : at + GRAM] in common
        if is_common and begin < 0:
            begin = at
        elif not is_common and begin >= 0:
            parts.append(body[begin : at + GRAM - 1][:FRAGMENT_MAX])
            begin = -1
    return parts


def _chosen(fragments: Counter[bytes]) -> list[bytes]:
    """Return fragments that cover every gram once, those with the most frequent grams first."""
    worth: Counter[bytes] = Counter()
    for fragment, count in fragments.items():
        for gram in _grams(fragment):
            worth[gram] += count
    waiting = [(-_mean(worth, fragment), fragment) for fragment in fragments]
    heapq.heapify(waiting)
    chosen: list[bytes] = []
    while waiting:
        _, fragment = heapq.heappop(waiting)
        now = _mean(worth, fragment)
        if waiting and now < -waiting[0][0]:
            if now:
                heapq.heappush(waiting, (-now, fragment))
            continue
        chosen.append(fragment)
        for gram in _grams(fragment):
            worth[gram] = 0
    return chosen


def _grams(fragment: bytes) -> list[bytes]:
    return [fragment[at : at + GRAM] for at in range(len(fragment) - GRAM + 1)]


def _mean(worth: Mapping[bytes, int], fragment: bytes) -> float:
    return sum(worth[gram] for gram in _grams(fragment)) / len(fragment)


def _measure(bodies: Sequence[bytes]) -> None:
    total = sum(map(len, bodies)) / len(bodies)
    print(f"{len(bodies):,} messages of {total:,.0f} bytes")
    for name, packed in (("zlib", codec.pack_with_zlib), ("zstd", codec.pack)):
        size = sum(len(packed(body)) for body in bodies) / len(bodies)
        print(f"{name}: {size:,.1f} bytes, {size / total:.3f} of the body")


if __name__ == "__main__":
    main()
