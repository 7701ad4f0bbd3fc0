"""Operations on whole stores: archives and proofs, retention and erasing, and a queue of jobs with its worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_names import lazy_names

if TYPE_CHECKING:
    from . import archive as archive
    from . import retention as retention
    from . import worker as worker

__all__ = ["archive", "retention", "worker"]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {"archive": ".archive", "retention": ".retention", "worker": ".worker"})
