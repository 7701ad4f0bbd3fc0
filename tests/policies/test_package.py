"""The names that the package exports."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

from foveate import policies


def test_exported_names_are_no_modules_after_all_imports():
    """A module with the name of a function would replace the function once it is imported."""
    for module in pkgutil.iter_modules(policies.__path__):
        import_module(f"foveate.policies.{module.name}")
    assert [name for name in policies.__all__ if isinstance(getattr(policies, name), ModuleType)] == []
    assert set(policies.__all__) <= set(dir(policies))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="prune_everything"):
        policies.prune_everything  # noqa: B018
