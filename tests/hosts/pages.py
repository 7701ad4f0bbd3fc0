"""Execution of the documentation of frameworks: every Python block of a page, and the output after it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "frameworks"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run_page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in order, in this folder, and compare what they print."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = BLOCK.findall((DOCS / name).read_text("utf-8"))
    assert blocks
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{name}: {code[:40]!r}", "exec"), names)
        if printed:
            assert out.getvalue() == printed
