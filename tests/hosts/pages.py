"""Execution of the documentation of frameworks: every Python block of a page, with its output, and the examples."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "frameworks"
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


def run_example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a program of `examples` in this folder, without a key."""
    monkeypatch.chdir(folder)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
