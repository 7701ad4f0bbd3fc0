"""Names of a module that are imported at their first use."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from foveate.core.lazy_names import lazy_names
from foveate.errors import MissingExtra


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package with the module `parts`, which counts its imports, and one that needs a missing package."""
    folder = tmp_path / "lazy_sample"
    folder.mkdir()
    (folder / "__init__.py").write_text("known = 1\n")
    (folder / "parts.py").write_text("part = object()\n")
    (folder / "names.py").write_text("")
    (folder / "broken.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_sample", "lazy_sample.parts", "lazy_sample.names", "lazy_sample.broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__("lazy_sample")


def test_a_name_is_imported_once_at_its_first_use(package):
    find, names = lazy_names("lazy_sample", {"part": ".parts", "parts": ".parts"})
    assert "lazy_sample.parts" not in sys.modules
    assert {"known", "part", "parts"} <= set(names())
    assert find("part") is package.part is sys.modules["lazy_sample.parts"].part


def test_a_name_with_the_module_of_that_name_is_the_module(package):
    find, _ = lazy_names("lazy_sample", {"parts": ".parts"})
    assert find("parts") is sys.modules["lazy_sample.parts"]


def test_a_module_that_is_no_package_imports_from_its_package(package):
    """`foveate.types` is one. Its names failed at their first use."""
    names = import_module("lazy_sample.names")
    find, _ = lazy_names("lazy_sample.names", {"part": ".parts"})
    assert find("part") is names.part is package.parts.part


def test_another_name_is_an_attribute_error(package):
    find, _ = lazy_names("lazy_sample", {"part": ".parts"})
    with pytest.raises(AttributeError, match="module 'lazy_sample' has no attribute 'other'"):
        find("other")


def test_a_missing_package_is_an_error_that_names_the_extra(package):
    find, _ = lazy_names("lazy_sample", {"thing": ".broken"}, extra=("The thing", "things"))
    with pytest.raises(MissingExtra, match=r'The thing needs: pip install "foveate\[things\]"'):
        find("thing")
    find, _ = lazy_names("lazy_sample", {"thing": ".broken"})
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        find("thing")
