"""`foveate db head`: where conversations stand, to be kept outside of the database."""

from __future__ import annotations

import sys
import time

from ...archive import head_text
from ...errors import BadSetting
from ._where import NOWHERE, Where, opened

__all__ = ["head"]


def head(*conversations: str, where: Where = NOWHERE) -> int:
    """Print where conversations stand, a line of JSON for each: all of them, or those that are named.

    Kept where nobody who may write to the database can reach it, such a line proves later on that the history was not
    rewritten: foveate db verify --head.

    Example: `foveate db head support-456 >> heads.jsonl`

    Parameters
    ----------
    conversations
        Their names; none for all.
    """
    with opened(where) as (store, tenant):
        names = conversations or store.names(tenant)
        if not names:
            raise BadSetting("There is no conversation.")
        now = time.time_ns() // 1_000_000
        for name in names:
            sys.stdout.write(head_text(store.open(tenant, name, create=False), time=now) + "\n")
    return 0
