"""Import of foveate: its cost, the base install, and docstrings of public names."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from costing import is_cheap, processor_seconds

import foveate

SOURCE = Path(foveate.__file__).resolve().parent.parent
FOR_FEW = {"importlib.metadata", "importlib.resources", "shutil", "foveate.summarizers.acceptance"}
"""Modules that take long to load."""
MISSING = 'The command line needs: pip install "foveate[cli]".\n'


def test_importing_foveate_loads_only_msgspec():
    """If `typing_extensions` is installed, msgspec itself imports it. A test below covers an install without it."""
    code = "import sys; before = set(sys.modules); import foveate; print(*set(sys.modules) - before)"
    loaded = {name.partition(".")[0] for name in python("-c", code).stdout.split()}
    assert loaded - sys.stdlib_module_names - {"typing_extensions"} == {"foveate", "msgspec"}


def test_importing_foveate_takes_less_than_200_ms_of_cpu():
    """On a fast and idle computer; elsewhere at most as long as some modules of the standard library."""
    assert is_cheap(lambda: processor_seconds("-c", "import foveate", env=environment()), seconds=0.200, yardsticks=4)


def test_a_first_request_loads_no_module_that_few_need(tmp_path):
    """They are for policies of other packages, summaries of models, and full disks."""
    open_and_prepare = f"""
import sys
before = set(sys.modules)
import foveate
with foveate.open_conversation("a", store="sqlite:///{(tmp_path / "a.db").as_posix()}", window=100_000) as chat:
    chat.append("hi")
    chat.prompt()
print(*set(sys.modules) - before)
"""
    loaded = set(python("-c", open_and_prepare).stdout.split())
    assert "foveate.stores.sqlite.store" in loaded
    assert loaded & FOR_FEW == set()


def test_foveate_imports_with_only_msgspec_installed(base_install):
    assert python("-S", "-c", "import foveate", path=base_install).returncode == 0


def test_the_bare_command_names_the_extra_it_needs(base_install):
    done = python("-S", "-m", "foveate", path=base_install)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", MISSING)


@pytest.mark.parametrize("package", ["cyclopts", "rich", "jinja2"])
def test_the_command_names_the_extra_for_a_missing_package(package):
    hidden = f"import sys; sys.modules['{package}'] = None; from foveate.__main__ import main; sys.exit(main())"
    done = python("-c", hidden)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", MISSING)


@pytest.mark.parametrize("package", ["jinja2", "markdown_it", "markupsafe", "pygments", "starlette"])
def test_the_inspector_names_the_extra_for_a_missing_package(package):
    """Programs with FastAPI often have some of these packages, and not all."""
    pytest.importorskip("starlette", reason="starlette is not installed (the extra `inspect`)")
    hidden = f"import sys; sys.modules['{package}'] = None; from foveate.inspector import build_app"
    done = python("-c", hidden)
    assert done.returncode == 1
    assert done.stderr.endswith('MissingExtra: The inspector needs: pip install "foveate[inspect]".\n')


def test_every_public_name_exists_and_is_named_once():
    assert len(foveate.__all__) == len(set(foveate.__all__))
    assert [name for name in foveate.__all__ if not hasattr(foveate, name)] == []


def test_every_public_class_and_function_is_documented():
    assert [name for name in foveate.__all__ if explained(getattr(foveate, name)) is False] == []


def test_every_name_in_the_package_is_public_or_private():
    """A reachable name such as `foveate.name` would be part of the public surface."""
    modules = {name.rpartition(".")[2] for name in sys.modules if name.startswith("foveate.")}
    visible = {name for name in vars(foveate) if not name.startswith("_")} - modules - {"annotations"}
    assert visible - set(foveate.__all__) == set()


def test_a_class_without_its_own_docstring_is_reported():
    class Bare(ValueError):
        pass

    def silent() -> None: ...

    judged = [explained(thing) for thing in (Bare, silent, "1.0", pytest, base_path)]
    assert judged == [False, False, None, True, True]


def explained(thing: object) -> bool | None:
    """Return whether a class, function or module has a docstring; None for a plain value, which cannot have one."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)):
        return None
    # A class inherits its docstring, but the docstring of the parent does not describe it.
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return bool((text or "").strip())


@pytest.fixture
def base_install(tmp_path):
    return base_path(tmp_path)


def base_path(folder: Path) -> str:
    """Return a search path with only msgspec and foveate, for a Python run with -S."""
    for package in (foveate, msgspec):
        (folder / package.__name__).symlink_to(Path(package.__file__).parent)
    return str(folder)


def python(*arguments: str, path: str = str(SOURCE)) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment(path), capture_output=True, text=True, timeout=300)


def environment(path: str = str(SOURCE)) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": path}
