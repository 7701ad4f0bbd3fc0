"""Pages that show what a model saw in a conversation, turn by turn: `build_app(store=...)`.

The application runs under any ASGI server, alone (`foveate inspect`) or mounted in another application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .access import Access
    from .app import build_app

__all__ = ["Access", "build_app"]


if not TYPE_CHECKING:  # A type checker then reports names that do not exist.

    def __getattr__(name: str) -> Any:
        """Import a name on first use, because the pages need the extra `inspect`."""
        if name == "Access":
            from .access import Access

            return Access
        if name == "build_app":
            from ..errors import MissingExtra

            try:
                from .app import build_app
            except ModuleNotFoundError as error:
                raise MissingExtra("The inspector", "inspect") from error
            return build_app
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
