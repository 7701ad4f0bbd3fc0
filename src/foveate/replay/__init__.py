"""What a policy would have cost on a recorded conversation, and what it would have kept readable. No model is called.

`replay` takes one recording through one conversation, `replay_files` many under several policies; `total` sums rows up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .corpus import Corpus, newest_recording, replay_files, total
    from .result import CallFigures, EditFigures, Replayed, Row
    from .run import replay

__all__ = [
    "CallFigures",
    "Corpus",
    "EditFigures",
    "Replayed",
    "Row",
    "newest_recording",
    "replay",
    "replay_files",
    "total",
]

_HOMES = {
    **dict.fromkeys(("Corpus", "newest_recording", "replay_files", "total"), "corpus"),
    **dict.fromkeys(("CallFigures", "EditFigures", "Replayed", "Row"), "result"),
    "replay": "run",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: a row of figures needs neither readers nor processes."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
