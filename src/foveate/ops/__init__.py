"""Operations on whole stores: archives and proofs, retention and erasing, and a queue of jobs with its worker."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import archive as archive
    from . import retention as retention
    from . import worker as worker

__all__ = ["archive", "retention", "worker"]


if not TYPE_CHECKING:  # A type checker then reports names that do not exist.

    def __getattr__(name: str) -> Any:
        if name in __all__:  # Imported when it is used: the worker needs the extra `worker`.
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
