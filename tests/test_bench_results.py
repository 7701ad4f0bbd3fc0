"""The scripts that measure digests of results and fit the worth of results."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

import result_digests
import retention_model

from foveate.core.messages import Message
from foveate.testing import answer, call, say, user

BENCH = Path(__file__).resolve().parent.parent / "bench"
CODE = "".join([f"def handler_{number}(request): return request.items[{number}]\n" for number in range(40)])
DEMO = BENCH.parent / "examples" / "data" / "demo.jsonl"


@pytest.mark.parametrize("make", result_digests.GENERATED, ids=lambda make: make.__name__)
def test_a_generated_result_holds_what_the_sample_claims(make):
    sample = make(Random(7))
    assert len(sample.text) > result_digests.SHORTEST / 2
    whole = result_digests.kept_of(sample, f"first line\n{sample.text}")
    assert (whole.keys_alone, whole.values_alone) == (0, 0) or sample.kind.startswith("json")
    assert [error for error, _ in sample.errors if error not in sample.text] == []
    assert [key for key, value in sample.pairs if key not in sample.text or value not in sample.text] == []


def test_kept_values_are_counted_with_and_without_their_keys():
    sample = result_digests.Sample("t", "", [("disk", "41"), ("cpu", "7"), ("host", "a1")], [("refused", 3)])
    kept = result_digests.kept_of(sample, "[header]\ndisk: 41\ncpu\na1\n3 times: refused")
    assert kept == result_digests.Kept(1, 1, 1, 1, 1, 0, 0)


def run_of(edit_at: int) -> list[Message]:
    """Return a session that reads a file at its first call, and quotes a line of it at the call `edit_at`."""
    messages = [user("Rename the handlers."), call("r", "read_file", path="a.py"), answer("r", CODE)]
    for number in range(1, edit_at - 1):
        messages += [call(f"c{number}", "bash", command="date"), answer(f"c{number}", f"{number} ok")]
    line = CODE.split("\n")[3]
    return [
        *messages,
        call("e", "edit_file", path="a.py", old_string=line, new_string="x"),
        answer("e", "Done."),
        say("."),
    ]


def test_the_use_of_a_file_counts_at_its_edit():
    session = retention_model.read_session(run_of(6))
    assert [(result.call, result.file) for result in session.results] == [(1, "a.py")]
    assert [call for call, used in enumerate(session.uses, 1) if used] == [6]
    rows = list(retention_model.exposures(session))
    assert rows == [("changed", 1, False)]  # Calls up to the first edit do not count.


def test_the_fit_finds_the_number_of_generated_uses():
    rng, exposure = Random(1), defaultdict(lambda: [0, 0])
    for _ in range(4_000):
        for age in range(1, 40):
            exposure[age][0] += 1
            exposure[age][1] += rng.random() < 0.05 / age
    assert retention_model.fit([exposure]) == pytest.approx(0.05, rel=0.1)
    powers = {power: retention_model.fit([exposure], power) for power in (0.5, 1.0, 1.5)}
    assert max(powers, key=lambda power: retention_model.likelihood([exposure], powers[power], power)) == 1.0


@pytest.mark.parametrize("command", [["result_digests.py", str(DEMO), "--count", "1"], ["retention_model.py", "fit"],
                                     ["retention_model.py", "costs"], ["retention_model.py", "validate"]])  # fmt: skip
@pytest.mark.slow
def test_a_script_prints_its_figures(command: list[str], tmp_path: Path):
    done = subprocess.run(
        [sys.executable, BENCH / command[0], *command[1:]],
        capture_output=True, text=True, timeout=120, env={"FOVEATE_TRANSCRIPTS": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3
