"""The page about settings lists every setting."""

from __future__ import annotations

import re
from pathlib import Path

from foveate.policies.presets.mechanisms import MECHANISMS
from foveate.settings.layers import GENERAL

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "settings.md").read_text(encoding="utf-8")


def test_the_page_lists_all_mechanisms_in_order():
    rows = re.findall(r"^\| `\[(\w+)\]` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert rows == [(name, mechanism.function.__name__) for name, mechanism in MECHANISMS.items()]


def test_the_page_names_every_general_setting():
    example = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    assert [name for name in GENERAL if not re.search(rf"\b{name}\b", example)] == []
