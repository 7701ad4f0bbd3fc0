"""`foveate db head`: where conversations stand, to be kept outside of the database."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from ...archive import head_text
from ...errors import BadSetting
from ...ports import IMPORTING, Database, Head
from .target import NOWHERE, Where, check_names, opened

__all__ = ["head"]


def head(*conversations: str, where: Where = NOWHERE) -> int:
    """Print where conversations stand, a line of JSON for each: those of the whole database, or those that are named.

    The whole is every conversation of every tenant, or of the one that `--tenant` or the settings name. Kept where
    nobody who may write to the database can reach it, such a line proves later on that the history was not rewritten:
    foveate db verify --head.

    Example: `foveate db head --store sqlite:///chat.db > heads.jsonl`

    Parameters
    ----------
    conversations
        Their names; none for all.
    """
    check_names(conversations)
    with opened(where) as (store, tenant):
        now, number = time.time_ns() // 1_000_000, 0
        everyone = not tenant and where.tenant is None
        for one in _named(store, tenant, conversations) if conversations else _all(store, None if everyone else tenant):
            sys.stdout.write(head_text(one, time=now, erasures=store.erasures(one)) + "\n")
            number += 1
        if not number:
            raise BadSetting("There is no conversation.")
    return 0


def _named(store: Database, tenant: str, names: tuple[str, ...]) -> Iterator[Head]:
    return (store.open(tenant, name, create=False) for name in names)


def _all(store: Database, tenant: str | None) -> Iterator[Head]:
    for whose in store.tenants() if tenant is None else (tenant,):
        for name in store.names(whose):
            if not name.startswith(IMPORTING):
                yield store.open(whose, name, create=False)
