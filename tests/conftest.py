"""What every test may use, and how deep the generated ones dig."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Assertions in the shipped contracts tell what they compared, as those in a test file do. Said here, since whichever
# folder of tests is read first may import them.
_CONTRACTS = (ROOT / "src" / "foveate" / "testing").glob("*_contract.py")
pytest.register_assert_rewrite(*(f"foveate.testing.{path.stem}" for path in _CONTRACTS))

# A quick run checks the same examples each time, so that what fails for one fails for all. A thorough one looks for
# new ones, except where CI is set: there a change is judged, and must not be blamed for what chance finds. No deadline:
# the benchmarks measure time, and a busy machine is not a bug. A test that wants more or fewer examples scales the
# profile's number (`settings.default.max_examples`) and leaves the rest alone.
BASE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", BASE, max_examples=50, derandomize=True)
settings.register_profile("thorough", BASE, max_examples=200, derandomize=bool(os.environ.get("CI")))
settings.load_profile("thorough" if os.environ.get("FOVEATE_THOROUGH") else "quick")


@pytest.fixture(scope="session")
def transcripts() -> Path:
    """The folder of recorded transcripts; they are data beside the project, never part of it."""
    folder = Path(os.environ.get("FOVEATE_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
    if not (folder / "neutral").is_dir():
        pytest.skip(f"no recorded transcripts: {folder} is missing (set FOVEATE_TRANSCRIPTS to a folder that has them)")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server, one for all processes of a test run (`tools/postgres_server.py`)."""
    pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")
    sys.path.insert(0, str(ROOT / "tools"))
    postgres_server = pytest.importorskip("postgres_server", reason="this system has no file locks")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    try:
        # Not in pytest's own folder, which only this user may enter: where this is root, another one runs the server.
        server = postgres_server.Server.shared(Path(tempfile.gettempdir()) / f"foveate-postgres-{run[:12]}")
    except postgres_server.NoServer as error:
        pytest.skip(f"no PostgreSQL server: {error}")
    yield server
    server.let_go()


@pytest.fixture
def postgres_url(postgres: Any) -> str:
    """The URL of a store in an empty schema of its own."""
    import psycopg

    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres.url()}?schema={name}"
