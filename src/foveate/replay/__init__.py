"""Replay of recorded conversations under a policy: costs and readable content, without calling a model.

`replay` runs one recording through one conversation, `replay_files` runs many under several policies, and `sum_rows`
adds up rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .corpus import Corpus, Failure, newest_recording, replay_files, sum_rows
    from .engines import Engine, WorkerLost
    from .recordings.recording import RecordedMessage, Recording
    from .result import CallFigures, EditFigures, ReplayResult, Row
    from .run import replay
    from .views import ViewChange, ViewLog

__all__ = [
    "CallFigures",
    "Corpus",
    "EditFigures",
    "Engine",
    "Failure",
    "RecordedMessage",
    "Recording",
    "ReplayResult",
    "Row",
    "ViewChange",
    "ViewLog",
    "WorkerLost",
    "newest_recording",
    "replay",
    "replay_files",
    "sum_rows",
]

_HOMES = {
    **dict.fromkeys(("Corpus", "Failure", "newest_recording", "replay_files", "sum_rows"), "corpus"),
    **dict.fromkeys(("CallFigures", "EditFigures", "ReplayResult", "Row"), "result"),
    **dict.fromkeys(("ViewChange", "ViewLog"), "views"),
    "replay": "run",
    **dict.fromkeys(("Engine", "WorkerLost"), "engines"),
    **dict.fromkeys(("RecordedMessage", "Recording"), "recordings.recording"),
}


if not TYPE_CHECKING:  # A type checker then reports names that do not exist.

    def __getattr__(name: str) -> Any:
        """Import a name on first use, because a row of figures needs neither readers nor processes."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
