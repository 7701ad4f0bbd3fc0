"""`foveate db unfinished`: what imports began and did not finish."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ...archive import Unfinished, drop_unfinished
from ...archive import unfinished as found_in
from ...replay.numbers import plural
from .._said import printable
from ._where import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["unfinished"]


def unfinished(
    *,
    drop: Annotated[bool, Parameter(negative=())] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """List what imports began and did not finish, or take it away.

    An import that broke off is finished by importing the same file again. Where nobody will, `--drop` takes away what
    it wrote; what was imported whole stays. Make sure that no import is going on.

    Example: `foveate db unfinished --drop --store sqlite:///chat.db`

    Parameters
    ----------
    drop
        Take it away.
    """
    from .._print import say

    with opened(where) as (store, tenant):
        whose = tenant if tenant or where.tenant is not None else None
        found = drop_unfinished(store, tenant=whose) if drop else list(found_in(store, tenant=whose))
    if as_json:
        print_json(found)
        return 0
    for one in found:
        say(f"{_label(one)}: {plural(len(one.names), 'conversation')}, {plural(one.messages, 'message')}")
    if not found:
        say("Nothing is unfinished.")
    elif drop:
        say("Taken away. Now vacuum: foveate db vacuum")
    return 0


def _label(one: Unfinished) -> str:
    return printable("/".join([*([one.tenant] if one.tenant else []), one.names[0]]))
