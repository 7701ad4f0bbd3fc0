"""`foveate db head`: the heads of conversations, for a proof outside of the database."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from ...errors import BadSetting
from ...ops.archive import head_text
from ...ports import IMPORTING, Database, Head
from .target import NOWHERE, Where, check_names, opened

__all__ = ["head"]


def head(*conversations: str, where: Where = NOWHERE) -> int:
    """Print the heads of conversations, one JSON line each: of the whole database, or of the named conversations.

    The whole database means all conversations of all tenants, or of the tenant that `--tenant` or the settings name.
    Store the lines where no writer of the database can change them. foveate db verify --head then proves that the
    history was not rewritten.

    Example: `foveate db head --store chat.db > heads.jsonl`

    Parameters
    ----------
    conversations
        Names of conversations (default: all).
    """
    check_names(conversations)
    with opened(where) as (store, tenant):
        now, count = time.time_ns() // 1_000_000, 0
        is_whole = not tenant and where.tenant is None
        heads = _named(store, tenant, conversations) if conversations else _all(store, None if is_whole else tenant)
        for entry in heads:
            sys.stdout.write(head_text(entry, time=now, erasures=store.erasures(entry)) + "\n")
            count += 1
        if not count:
            raise BadSetting("There are no conversations.")
    return 0


def _named(store: Database, tenant: str, names: tuple[str, ...]) -> Iterator[Head]:
    return (store.open(tenant, name, create=False) for name in names)


def _all(store: Database, tenant: str | None) -> Iterator[Head]:
    for owner in store.tenants() if tenant is None else (tenant,):
        for name in store.names(owner):
            if not name.startswith(IMPORTING):
                yield store.open(owner, name, create=False)
