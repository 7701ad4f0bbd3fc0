"""Names of a module that are imported at their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from ..errors import MissingExtra

__all__ = ["lazy_names"]


def lazy_names(
    module_name: str, modules: Mapping[str, str], *, extra: tuple[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module, whose other names are imported at their first use.

    `module_name`: that module, which may be a package. `modules`: the module of each other name, such as `.pool`, as
    an import in that module names it. A name with the module of that name, such as `.policies`, is the module. `extra`:
    the arguments of the MissingExtra to raise if a module cannot be imported. Write the same imports under
    `TYPE_CHECKING`, and this call under `not TYPE_CHECKING`: type checkers then report names that do not exist.
    """
    namespace = vars(sys.modules[module_name])

    def import_name(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        try:
            module = import_module(modules[name], namespace["__package__"])
        except ImportError as error:
            if extra is None or isinstance(error, MissingExtra):
                raise
            raise MissingExtra(*extra) from error
        value = namespace[name] = module if modules[name] == f".{name}" else getattr(module, name)
        return value

    def list_names() -> list[str]:
        return sorted({*namespace, *modules})

    return import_name, list_names
