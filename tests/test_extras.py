"""The extras of the package: they install next to frameworks, and the oldest packages that they allow work.

The tests ask the package index, through uv. Without uv or a network they are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
HOSTS = (
    *("agent-framework-core==1.23.0", "crewai[anthropic]==1.15.30", "google-adk[extensions]==2.13.0"),
    *("litellm[proxy]==1.106.2", "pydantic-ai-slim[openai,anthropic]==2.68.0", "smolagents[openai]==1.26.0"),
    "strands-agents[anthropic,openai]==1.62.0",
)
"""Frameworks that hold a package of foveate's back, or that ask for an SDK. Any other one takes the newest versions."""
SDKS = ("openai", "anthropic")
_NO_NETWORK = re.compile(r"error sending request|failed to fetch|dns error|connection|timed out|offline", re.IGNORECASE)

UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
"""The command of this environment, which need not be on the path."""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(UV is None, reason="uv is not installed")]


def uv(*arguments: str) -> None:
    """Run a command of uv. Fails if it fails, and skips if the index cannot be reached."""
    done = subprocess.run([str(UV), *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode and _NO_NETWORK.search(done.stderr):
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("host", HOSTS)
def test_extras_of_the_sdks_install_next_to_a_framework(host, tmp_path):
    # Not the project itself: its wheel would be built for each framework.
    required = [*PROJECT["dependencies"], *(one for sdk in SDKS for one in EXTRAS[sdk]), host]
    wanted = tmp_path / "requirements.in"
    wanted.write_text("\n".join(required))
    uv("pip", "compile", "--quiet", "--python-version", "3.12", "--output-file", str(tmp_path / "out"), str(wanted))


def test_models_work_with_the_oldest_sdks(tmp_path):
    oldest = [one.replace(">=", "==") for sdk in SDKS for one in EXTRAS[sdk]]
    assert len(oldest) == len(SDKS)
    assert all("==" in one for one in oldest)
    uv("pip", "install", "--quiet", "--python", sys.executable, "--target", str(tmp_path), *oldest)
    run_with(tmp_path, "tests/models")
    versions = "import openai, anthropic; print(openai.__file__, anthropic.__file__)"
    files = subprocess.run(
        [sys.executable, "-c", versions],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert files.stdout.count(str(tmp_path)) == len(SDKS)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the oldest packages have no wheels for newer Pythons")
def test_extras_work_with_the_oldest_packages(tmp_path):
    """Older ones installed, and then failed or left a function out: the files below found each of these."""
    lists = [PROJECT["dependencies"], *(EXTRAS[name] for name in re.findall(r"\w+", EXTRAS["all"][0])[1:])]
    wanted = [one for each in lists for one in each if not one.startswith("foveate[")]
    assert {"aiohttp>=3.12", "psycopg-pool>=3.2"} <= set(wanted)
    oldest = ("--resolution", "lowest-direct", "--target", str(tmp_path))
    uv("pip", "install", "--quiet", "--python", sys.executable, *oldest, *wanted)
    files = (
        *("tests/agents/test_builder.py", "tests/cli/test_cli_app.py", "tests/digest/test_digest_code.py"),
        *("tests/proxy/test_recognition.py", "tests/counters/test_exact.py"),
    )
    said = run_with(tmp_path, *files, "tests/mcp_server", "-k", "not mcp_server or command")
    assert "is not installed" not in said, said


def run_with(packages: Path, *arguments: str) -> str:
    """Run tests with the packages of a folder before those of this environment. Returns the output of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3_000:]
    return done.stdout
