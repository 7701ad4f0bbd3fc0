"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def transcripts() -> Path:
    """The folder of recorded transcripts; they are data beside the project, never part of it."""
    folder = Path(os.environ.get("FOVEATE_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
    if not (folder / "neutral").is_dir():
        pytest.skip(f"no recorded transcripts: {folder} is missing (set FOVEATE_TRANSCRIPTS to a folder that has them)")
    return folder
