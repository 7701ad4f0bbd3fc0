"""The helpers for PostgreSQL are in the folder of the store tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "stores"))
