"""Assertions in the shipped contract tell what they compared, as those in a test file do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("foveate.testing.store_contract", "foveate.testing.search_contract")
