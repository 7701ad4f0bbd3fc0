"""Fixtures for all tests, and the settings of generated examples."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

ROOT = Path(__file__).resolve().parent.parent

# Assertions in the contract kits show their values, like those in test files. Registered here, because any folder of
# tests may import them first.
_CONTRACTS = (ROOT / "src" / "foveate" / "testing").glob("*_contract.py")
pytest.register_assert_rewrite(*(f"foveate.testing.{path.stem}" for path in _CONTRACTS))

# A quick run checks the same examples each time, so a failure for one is a failure for all. A thorough run looks for
# new examples, unless CI is set: CI judges a change, not chance. There is no deadline: benchmarks measure time, and a
# busy machine is not a bug. A test that needs more or fewer examples scales `settings.default.max_examples`.
BASE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", BASE, max_examples=30, derandomize=True)
settings.register_profile("thorough", BASE, max_examples=80, derandomize=bool(os.environ.get("CI")))
settings.load_profile("thorough" if os.environ.get("FOVEATE_THOROUGH") else "quick")

# Hypothesis also draws constants that it finds in the modules imported so far. Which modules these are depends on the
# tests that the process ran before, so with them two runs differ. Hypothesis has no setting to leave them out.
if settings.default is not None and settings.default.derandomize:
    providers._get_local_constants = lambda: providers._local_constants


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one process more than the machine has cores: tests wait for servers, processes and disks."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without garbage collections: nearly all objects that it makes stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of garbage collections, which otherwise visit all of them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def transcripts() -> Path:
    """The folder of recorded transcripts, outside the project."""
    folder = Path(os.environ.get("FOVEATE_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
    if not (folder / "neutral").is_dir():
        pytest.skip(f"no recorded transcripts: {folder} is missing (set FOVEATE_TRANSCRIPTS to a folder that has them)")
    return folder


@pytest.fixture(scope="session")
def wire_recordings() -> Path:
    """The folder of recorded requests of real clients, outside the project."""
    folder = Path(os.environ.get("FOVEATE_WIRE", ROOT.parent / "shared" / "wire"))
    if not folder.is_dir():
        pytest.skip(f"no recorded requests: {folder} is missing (set FOVEATE_WIRE to a folder that has them)")
    return folder


@pytest.fixture(scope="module", autouse=True)
def sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Count a quarter of the characters where a test or an example does not name a counter, so that it can state sizes.

    The folders `counters`, `hosts` and `together` count as users do.
    """
    if request.path.parent.name in ("counters", "hosts", "together"):
        yield
        return
    from foveate.counters import counter_named

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foveate.open.parts.counter_for", lambda model, format="": counter_named("characters", model))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server for all processes of a test run (`tools/postgres_server.py`)."""
    pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")
    sys.path.insert(0, str(ROOT / "tools"))
    postgres_server = pytest.importorskip("postgres_server", reason="this system has no file locks")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    try:
        # Not in pytest's folder, which only this user may enter: for root, another user runs the server.
        server = postgres_server.Server.shared(Path(tempfile.gettempdir()) / f"foveate-postgres-{run[:12]}")
    except postgres_server.NoServer as error:
        pytest.skip(f"no PostgreSQL server: {error}")
    yield server
    server.release()


@pytest.fixture
def postgres_url(postgres: Any) -> str:
    """The URL of a store in a new schema."""
    import psycopg

    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres.url()}?schema={name}"
