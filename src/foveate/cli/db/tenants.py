"""`foveate db tenants`: whose conversations a database holds."""

from __future__ import annotations

from ...replay.numbers import count
from .._said import printable
from ._where import AsJson, Url, Where, opened, print_json

__all__ = ["tenants"]


def tenants(*, store: Url = None, as_json: AsJson = False) -> int:
    """List whose conversations a database holds, and how many each has.

    Example: `foveate db tenants --store sqlite:///chat.db`
    """
    from .._print import print_table, say

    with opened(Where(store)) as (database, _):
        found = database.tenants()
    if as_json:
        print_json({"tenant": tenant, "conversations": number} for tenant, number in found.items())
    elif not found:
        say("There is no conversation.")
    else:
        print_table(
            ("tenant", "conversations"),
            [(printable(tenant) or "(nobody)", count(number)) for tenant, number in found.items()],
        )
    return 0
