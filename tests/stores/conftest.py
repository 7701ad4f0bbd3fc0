"""Assertions in the shipped contract tell what they compared, as those in a test file do."""

from __future__ import annotations

import pytest

_CONTRACTS = (
    "store_contract",
    "search_contract",
    "run_contract",
    "catalog_contract",
    "tree_contract",
    "erase_contract",
)
pytest.register_assert_rewrite(*(f"foveate.testing.{name}" for name in _CONTRACTS))
