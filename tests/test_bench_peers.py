"""The comparison with other libraries: how it finds and measures them, and what it reports. Figures are not checked."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from peers.report import costs, descriptions, gathered, markdown
from peers.runner import Found, Measured, Sizes, find

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parent.parent / "bench"
LIBRARIES = sorted((BENCH / "peers" / "libraries").glob("*.py"))
EVERYTHING = {"turn", "shown", "loading", "import", "append", "disk", "resume", "resumed", "parted", "memory"}

FAKE = """
import json
from pathlib import Path

from peer import parts_of


class Library:
    NAME = "fake"
    NEEDS = {needs}
    USES = "a file"
    LACKS = "parts a call from its result"

    def __init__(self, folder, window, newest):
        self.path, self.newest = Path(folder, "fake.json"), newest
        self.messages = json.loads(self.path.read_text()) if self.path.exists() else []

    def convert(self, messages):
        return messages

    def append(self, messages):
        {fault}
        self.messages += messages
        print("libraries print")
        self.path.write_text(json.dumps(self.messages))

    def request(self):
        return self.messages[-7:]

    def calls(self, request):
        return parts_of(request)

    def close(self):
        pass
"""


def write_fake(folder: Path, name: str = "fake", needs: tuple[str, ...] = (), fault: str = "") -> Path:
    file = folder / f"{name}.py"
    text = FAKE.replace("{needs}", repr(needs)).replace("{fault}", fault).replace('"fake"', repr(name))
    file.write_text(text.replace("        \n", ""))
    return file


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCH / "peers", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def measures(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, list[float]]]:
    """Return the values by library and measure."""
    assert done.returncode == 0, done.stderr
    values: dict[str, dict[str, list[float]]] = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        values.setdefault(row["peer"], {}).setdefault(row["measure"], []).extend(row["values"])
    return values


def found(name: str, **claims: object) -> Found:
    usual = Found(Path(f"{name}.py"), name, ("package",), "all", "", False, True, "python", "1.0")
    return usual._replace(**claims)


def test_a_library_that_is_a_file_is_measured(tmp_path: Path):
    write_fake(tmp_path)
    values = measures(run("--folder", tmp_path, "--quick", "--rounds", "2", "--json"))["fake"]
    assert set(values) == EVERYTHING
    assert all(math.isfinite(value) and value >= 0 for row in values.values() for value in row)
    assert len(values["turn"]) == 12  # Each turn of a quick run.
    assert {len(values[name]) for name in ("append", "import", "resume", "disk", "loading")} == {2}  # One for a round.
    assert values["shown"] == [7]
    assert values["parted"] == [1, 1]  # Of the last seven messages, the first is a result.


def test_a_library_without_its_package_is_named_with_it(tmp_path: Path):
    write_fake(tmp_path)
    write_fake(tmp_path, "absent", ("foveate", "no-such-package"))
    done = run("--folder", tmp_path, "--quick", "--only", "turn")
    assert "without absent: pip install foveate no-such-package" in done.stderr
    assert "not measured: `pip install foveate no-such-package`" in done.stdout


def test_a_library_that_fails_leaves_the_others_measured(tmp_path: Path):
    write_fake(tmp_path)
    write_fake(tmp_path, "broken", fault="assert len(self.messages) < 22, 'the disk is full'")
    done = run("--folder", tmp_path, "--quick", "--json")
    values = measures(done)
    assert "broken failed after 6 turns: " in done.stderr
    assert "the disk is full" in done.stderr
    assert set(values["fake"]) == EVERYTHING
    assert set(values["broken"]) == {"turn", "shown"}


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path):
    write_fake(tmp_path)
    done = run("nothing", "--folder", tmp_path)
    assert (done.returncode, done.stderr.strip()) == (1, "There is no 'nothing'. There are fake.")


def test_measured_lines_are_read_again_as_tables(tmp_path: Path):
    write_fake(tmp_path)
    lines = tmp_path / "lines.jsonl"
    lines.write_text(run("--folder", tmp_path, "--quick", "--json").stdout)
    done = run("--folder", tmp_path, "--quick", "--read", lines, "--markdown")
    assert done.stdout.startswith("|  | turn, ms | p99 | shown |")
    assert "| fake |" in done.stdout
    assert "1 result without a call after this resume" in done.stdout


def test_a_table_has_the_median_and_the_spread_of_the_last_turns():
    sizes = Sizes(turns=6, block=2, last=4)
    rows = [
        Measured("a", "turn", [90, 90, 1, 2, 3, 4]),
        Measured("a", "append", [0.5]),
        Measured("a", "append", [0.125]),
        Measured("slow", "turn", [7, 9]),
    ]
    table = costs([found("a"), found("slow"), found("absent")], gathered(rows), sizes)
    assert [row[:3] for row in table[1:]] == [
        ["a", "2.50 (1.50-3.50)", "4.00"],
        ["slow", "8.00 at 2 turns", "9.00"],
    ]
    assert table[1][4] == "0.31 (0.12-0.50)"


def test_descriptions_say_what_a_library_does_not_do():
    peers = [found("a"), found("b", lacks="does not shrink"), found("c", python=None, needs=("x", "y"))]
    table = descriptions(peers, gathered([Measured("b", "parted", [0.0, 2.0])]))
    assert [row[3] for row in table[1:]] == [
        "-",
        "does not shrink; 2 results without a call after this resume",
        "not measured: `pip install x y`",
    ]
    assert markdown(table[:2]).splitlines()[1] == "|---|---|---|---|"


def test_every_library_has_a_name_of_its_own_and_packages():
    peers = find(LIBRARIES, [sys.executable])
    assert len({peer.name for peer in peers}) == len(LIBRARIES)
    assert [peer.name for peer in peers if not peer.needs] == ["a list", "json", "sqlite3"]
    assert all(peer.uses for peer in peers)
    assert [peer.name for peer in peers if not peer.lacks] == ["foveate"]


def test_every_installed_library_has_every_measure():
    done = run("--quick", "--json")
    values = measures(done)
    for peer in find(LIBRARIES, [sys.executable]):
        expected = EVERYTHING if peer.keeps else {"turn", "shown", "loading"}
        assert set(values.get(peer.name, ())) == (expected if peer.python else set()), f"{peer.name}: {done.stderr}"
    assert values["foveate"]["parted"] == [0]


def test_plots_are_the_same_for_the_same_values(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from peers.plots import draw

    peers = [found("foveate"), found("other"), found("a list", is_limit=True, keeps=False)]
    rows = [Measured(peer.name, "turn", [number / 7 + 1.0 for number in range(500)]) for peer in peers]
    rows += [Measured("other", measure, [2.0, 3.0]) for measure in ("append", "resume", "disk")]
    values = gathered(rows)
    first = {path.name: path.read_bytes() for path in draw(peers, values, Sizes(), tmp_path)}
    again = {path.name: path.read_bytes() for path in draw(peers, values, Sizes(), tmp_path)}
    assert first == again
    assert sorted(first) == [
        f"peers-{name}-{scheme}.svg" for name in ("stores", "turns") for scheme in ("dark", "light")
    ]
    for drawing in first.values():
        assert "other" in ET.fromstring(drawing.decode()).itertext()
