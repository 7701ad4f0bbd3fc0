"""The table of versions: every test of a framework runs in exactly one environment, with exact versions."""

from __future__ import annotations

import tomllib
from pathlib import Path

HERE = Path(__file__).parent
TABLES = tomllib.loads((HERE / "environments.toml").read_text("utf-8"))


def test_every_host_test_runs_in_exactly_one_environment():
    listed = [HERE / test for table in TABLES.values() for test in table["tests"]]
    here = [path for path in HERE.glob("test_*.py") if path.name != Path(__file__).name]
    assert sorted(path for path in listed if path.parent == HERE) == sorted(here)
    assert [path for path in listed if not path.is_file()] == []


def test_every_framework_has_one_exact_version():
    packages = [package for table in TABLES.values() for package in table["packages"]]
    assert [package for package in packages if "==" not in package] == []
