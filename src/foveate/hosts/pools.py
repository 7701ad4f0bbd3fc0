"""The conversations behind a framework: one store, and a registry for each wire format."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..errors import BadSetting
from ..models.known import check_model
from ..open import open_store
from ..open.pool import Conversations

if TYPE_CHECKING:
    from ..conversation import Conversation

__all__ = ["Pools", "model_name"]


class Pools:
    """Conversations of one store, which a thread of a framework may continue with models of several formats."""

    def __init__(self, **options: Any) -> None:
        """`options`: those of `Conversations`, without `format`. The store is opened at once, and wrong options raise
        BadSetting."""
        store = options.pop("store", None) or "memory:"
        self._owned = open_store(store) if isinstance(store, str) else None
        self._options = {**options, "store": self._owned or store}
        self._lock = threading.Lock()
        self._pools = {"openai": Conversations(format="openai", **self._options)}

    def get(self, format: str, name: str) -> Conversation:
        """Return the conversation with this name, for requests in this format."""
        with self._lock:
            pool = self._pools.get(format) or Conversations(format=format, **self._options)
            self._pools[format] = pool
        return pool.get(name)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
        if self._owned is not None:
            self._owned.close()


def model_name(format: str, name: str) -> str:
    """Return the name of a model for requests in this format.

    A gateway serves models of others in its own format, such as Claude through chat completions.
    """
    try:
        check_model(name, format, None)
    except BadSetting:
        return f"gateway:{name}"
    return name
