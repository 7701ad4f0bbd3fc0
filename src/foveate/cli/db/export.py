"""`foveate db export`: conversations, and what belongs to them, to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...archive import Count, export_archive
from ...errors import BadSetting
from ...replay.numbers import count, plural
from ._progress import progress
from ._where import NOWHERE, Where, check_names, opened

__all__ = ["export"]


def export(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    conversation: str | None = None,
    /,
    *,
    catalog: bool = False,
    overwrite: bool = False,
    where: Where = NOWHERE,
) -> int:
    """Write a conversation with all its forks, or all conversations of a tenant, to an archive (JSON Lines).

    Example: `foveate db export chats.jsonl.gz --store sqlite:///chat.db`

    Parameters
    ----------
    file
        Where to; `.gz` and `.zst` are compressed, `-` is standard output.
    conversation
        Only this one and its forks.
    catalog
        The actions, bindings and prompts too.
    overwrite
        Whether a file of that name may be replaced.
    """
    from .._print import say

    if file.startswith("-") and file != "-":
        raise BadSetting(f"Unknown option: {file}. A file of that name is ./{file}.")
    check_names(() if conversation is None else (conversation,))
    with opened(where) as (store, tenant), progress() as told:

        def tell(written: Count) -> None:
            told(f"{count(written.messages)} messages written")

        target = sys.stdout.buffer if file == "-" else Path(file)
        done = export_archive(
            store,
            target,
            tenant=tenant,
            conversation=conversation,
            catalog=catalog,
            overwrite=overwrite,
            on_progress=tell,
        )
    if file != "-":
        say(f"{file}: {plural(done.conversations, 'conversation')}, {plural(done.messages, 'message')}.")
    return 0
