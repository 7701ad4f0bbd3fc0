"""The release: versions, the wheel in empty environments, and builds that give the same bytes.

The slow tests install from the package index, through uv. Without uv or a network they are skipped.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
LARGE = ("all", "dev", "docs", "local-model", "ray", "release")
"""Extras that a test resolves, and does not install."""
BACKPORTS = [] if sys.version_info >= (3, 14) else ["backports-zstd"]
USES = {
    "cli": "import foveate.cli.app",
    "zstd": "import zstandard",
    "prices": "import foveate.models.prices; import genai_prices",
    "agents": "import foveate.agents; import jinja2",
    "expand": "import regex",
    "code": "import tree_sitter, tree_sitter_rust",
    "tokens": "import toktok",
    "otel": "import foveate.telemetry",
    "mcp": "import foveate.mcp",
    "inspect": "from foveate.inspector import build_app; build_app",
    "proxy": "from foveate.proxy import ProxySettings; ProxySettings",
    "bedrock": "import foveate.requests.aws_signature, botocore.auth",
    "anthropic": "import anthropic; from foveate import open_model; open_model('anthropic:claude-haiku-4-5')",
    "openai": "import openai; from foveate import open_model; open_model('openai:gpt-5-mini')",
    "postgres": "import foveate.stores.postgres",
    "worker": "import foveate.ops.worker, procrastinate",
    "build": "import hatchling",
}
"""What a program does with each extra."""
_NO_NETWORK = re.compile(r"error sending request|failed to fetch|dns error|connection|timed out|offline", re.IGNORECASE)
UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
with_uv = pytest.mark.skipif(UV is None, reason="uv is not installed")


def uv(*arguments: str) -> None:
    done = subprocess.run([str(UV), *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode and _NO_NETWORK.search(done.stderr):
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """The module `tools/release.py`."""
    pytest.importorskip("packaging", reason="packaging is not installed (the extra `release`)")
    sys.path.insert(0, str(ROOT / "tools"))
    return importlib.import_module("release")


@pytest.fixture(scope="module")
def wheel(release, tmp_path_factory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling is not installed (the extra `build`)")
    folder = tmp_path_factory.mktemp("dist")
    release.build(folder)
    return folder / release.WHEEL


def test_version_is_the_same_everywhere(release):
    assert release.check_version() == ""


def test_version_check_names_a_difference(release, monkeypatch):
    monkeypatch.setattr(release, "VERSION", "9.9.9")
    assert release.check_version() == "pyproject.toml has 9.9.9, src/foveate/version.py has 0.1.0."


def test_every_extra_is_in_the_table_of_the_readme():
    readme = (ROOT / "README.md").read_text("utf-8")
    for_users = [extra for extra in EXTRAS if extra not in ("build", "dev", "docs", "local-model", "ray", "release")]
    assert [extra for extra in for_users if f"`foveate[{extra}]`" not in readme] == []


def test_every_extra_is_tested():
    assert sorted([*USES, *LARGE]) == sorted(EXTRAS)


@pytest.mark.slow
def test_two_builds_give_the_same_bytes(release, wheel, tmp_path):
    """In a copy of the project in another folder, with other times and rights of the files."""
    pytest.importorskip("hatchling")
    copy = tmp_path / "copy"
    wanted = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if wanted.returncode:
        pytest.skip("this is not a clone of the repository")
    for name in wanted.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
            (copy / name).chmod(0o600 | (ROOT / name).stat().st_mode & 0o100)
    environment = {**os.environ, "TZ": "Pacific/Auckland", "PYTHONHASHSEED": "77", "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "hatchling", "build", "--directory"]
    for folder, place in ((tmp_path / "one", ROOT), (tmp_path / "two", copy)):
        subprocess.run([*command, str(folder)], cwd=place, env=environment, check=True, capture_output=True)
    digests = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((tmp_path / folder).iterdir())}
        for folder in ("one", "two")
    ]
    assert sorted(digests[0]) == [release.WHEEL, release.SDIST]
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_wheel_is_complete_and_bill_names_its_packages(release, wheel, tmp_path, monkeypatch):
    pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib is not installed (the extra `release`)")
    monkeypatch.setattr(release, "DIST", wheel.parent)
    assert release.check_wheel() == ""
    fault = release.write_bill()
    bill = json.loads((wheel.parent / "sbom.cdx.json").read_text("utf-8"))
    names = {part["name"] for part in bill["components"]}
    assert {"msgspec", "starlette"} <= names
    assert "pytest" not in names
    assert bill["metadata"]["component"]["version"] == release.VERSION
    assert fault == "" or fault.startswith("These are not installed: ")


@pytest.mark.slow
@with_uv
def test_wheel_runs_the_first_program_in_an_empty_environment(wheel, tmp_path):
    python = environment(tmp_path, str(wheel))
    listed = subprocess.run([str(UV), "pip", "list", "--python", str(python)], capture_output=True, text=True)
    assert [line.split()[0] for line in listed.stdout.splitlines()[2:]] == [*BACKPORTS, "foveate", "msgspec"]
    readme = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    done = subprocess.run([python, "-c", found[1]], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (found[2], "")
    command = python.parent / "foveate"
    done = subprocess.run([command, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "foveate[cli]" in done.stderr


@pytest.mark.slow
@with_uv
@pytest.mark.parametrize("extra", [extra for extra in EXTRAS if extra not in LARGE])
def test_wheel_installs_with_each_extra_alone(extra, wheel, tmp_path):
    python = environment(tmp_path, f"foveate[{extra}] @ {wheel.as_uri()}")
    done = subprocess.run([python, "-c", USES[extra]], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@with_uv
@pytest.mark.parametrize("extra", LARGE)
def test_large_extras_can_be_resolved(extra, wheel, tmp_path):
    wanted = tmp_path / "requirements.in"
    wanted.write_text(f"foveate[{extra}] @ {wheel.as_uri()}\n")
    uv("pip", "compile", "--quiet", "--python-version", "3.12", "--output-file", str(tmp_path / "out"), str(wanted))
    assert "msgspec==" in (tmp_path / "out").read_text()


def environment(folder: Path, *wanted: str) -> Path:
    """Create an empty environment in this folder, install packages, and return its Python."""
    uv("venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", str(python), *wanted)
    return python
