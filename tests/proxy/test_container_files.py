"""Dockerfile and compose.yaml agree with the package. No container runs here."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("cyclopts", reason="cyclopts is not installed (the extra `cli`)")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from foveate.cli.app import app
from foveate.proxy.server import SHUTDOWN_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE, COMPOSE, GUIDE = (
    (ROOT / name).read_text("utf-8") for name in ("Dockerfile", "compose.yaml", "docs/guides/proxy.md")
)


def test_dockerfile_names_extras_of_the_package():
    """pip only warns about an extra that does not exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.search(r"/src\[(.+)\]", DOCKERFILE)
    assert named is not None
    assert set(named[1].split(",")) <= extras.keys()


def test_dockerfile_copies_all_files_of_its_context():
    context = re.findall("^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    copied = [name for line in re.findall("^COPY (.+)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]]
    assert sorted(copied) == sorted(context)


def test_commands_of_the_container_have_options_of_the_proxy():
    commands = re.findall(r'(?:CMD|command:) (\["proxy".*\])$', DOCKERFILE + COMPOSE, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        _, bound, _ = app.parse_args(json.loads(command), exit_on_error=False)
        assert bound.arguments["host"] == "0.0.0.0"
        assert not bound.arguments.get("arguments")  # An unknown option would be one for the client of --wrap.


def test_containers_are_killed_later_than_answers_are_cut():
    """Answers that are cut are still logged, and the store is closed."""
    seconds = re.findall(r"(?:--stop-timeout|stop_grace_period:) (\d+)", DOCKERFILE + COMPOSE + GUIDE)
    assert len(seconds) == 3
    assert all(int(second) > SHUTDOWN_SECONDS for second in seconds)
