"""Pages that show what a model saw in a conversation, turn by turn: `build_app(store=...)`.

The application runs under any ASGI server, alone (`foveate inspect`) or mounted in another application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names

if TYPE_CHECKING:
    from .access import Access
    from .app import build_app

__all__ = ["Access", "build_app"]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__, {"Access": ".access", "build_app": ".app"}, extra=("The inspector", "inspect")
    )
