"""Run the benchmark of retention: `python bench/retention [--json] [--held-out] [--losses N]`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from retention.report import main

    main()
