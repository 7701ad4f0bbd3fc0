"""Run the tests of frameworks, each in an environment that has them: `python tools/host_tests.py [NAME ...]`.

The environments are those of `tests/hosts/environments.toml`; NAME chooses some of them. An environment is created
again when its table changes. One whose packages cannot be installed is left out, and the reason is printed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "hosts" / "environments.toml"
TOOLS = ["pytest>=9", "pytest-timeout>=2.4", "pytest-xdist>=3.8", "hypothesis>=6.150", "toktok-rs>=0.3"]
"""What the tests need in addition to the frameworks."""


def main() -> int:
    tables = tomllib.loads(TABLE.read_text("utf-8"))
    names = sys.argv[1:] or list(tables)
    if unknown := sorted(set(names) - set(tables)):
        print(f"{TABLE.name} has no table {', '.join(unknown)}. It has {', '.join(tables)}.", file=sys.stderr)
        return 2
    return max([run(name, tables[name]) for name in names])


def run(name: str, table: dict[str, list[str]]) -> int:
    """Run the tests of one environment, and return pytest's exit code."""
    if not table["tests"]:
        return 0
    venv = ROOT / f".venv-hosts-{name}"
    python = venv / "bin" / "python"
    if not is_ready(venv, table) and not install(venv, table):
        return 0
    tests = [str(TABLE.parent / test) for test in table["tests"]]
    print(f"Tests of frameworks in {venv.name}: {', '.join(table['tests'])}", flush=True)
    jobs = ["-n", os.environ.get("JOBS", "auto"), "--dist", "worksteal"]
    return subprocess.run([python, "-m", "pytest", "-q", *jobs, *tests], cwd=ROOT).returncode


def is_ready(venv: Path, table: dict[str, list[str]]) -> bool:
    stamp = venv / ".ready"
    return stamp.exists() and stamp.read_text() == fingerprint(table)


def fingerprint(table: dict[str, list[str]]) -> str:
    """Return a hash of everything that is installed: the packages, and what foveate itself needs."""
    text = "\n".join([*table["packages"], *TOOLS, (ROOT / "pyproject.toml").read_text("utf-8")])
    return hashlib.sha256(text.encode()).hexdigest()


def install(venv: Path, table: dict[str, list[str]]) -> bool:
    """Create the environment, and return whether all packages could be installed."""
    python = str(venv / "bin" / "python")
    uv = ["uv", "pip", "install", "--quiet", "--python", python]
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    made = subprocess.run(["sh", "tools/make_venv.sh", venv, "."], cwd=ROOT)
    if made.returncode == 0:
        has_pip = subprocess.run([python, "-c", "import pip"], capture_output=True).returncode == 0
        made = subprocess.run([*(pip if has_pip else uv), *table["packages"], *TOOLS])
    if made.returncode != 0:
        print(f"SKIPPED {', '.join(table['tests'])}: the packages of {venv.name} cannot be installed.", flush=True)
        return False
    (venv / ".ready").write_text(fingerprint(table))
    return True


if __name__ == "__main__":
    sys.exit(main())
