"""The helpers for PostgreSQL lie beside the tests of the stores."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "stores"))
