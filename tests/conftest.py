"""What every test may use, and how deep the generated ones dig."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

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
