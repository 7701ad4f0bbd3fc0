"""Replay of recorded conversations under a policy: costs and readable content, without calling a model.

`replay` runs one recording through one conversation, `replay_files` runs many under several policies, and `sum_rows`
adds up rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names

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


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "CallFigures": ".result",
            "Corpus": ".corpus",
            "EditFigures": ".result",
            "Engine": ".engines",
            "Failure": ".corpus",
            "RecordedMessage": ".recordings.recording",
            "Recording": ".recordings.recording",
            "ReplayResult": ".result",
            "Row": ".result",
            "ViewChange": ".views",
            "ViewLog": ".views",
            "WorkerLost": ".engines",
            "newest_recording": ".corpus",
            "replay": ".run",
            "replay_files": ".corpus",
            "sum_rows": ".corpus",
        },
    )
