"""foveate without a policy: every message is shown."""

from __future__ import annotations

from libraries.foveate_balanced import Library as Balanced


class Library(Balanced):
    NAME = "foveate, `none`"
    NEEDS = ("foveate",)
    USES = "the policy `none`, and a window in which everything fits"
    LACKS = "does not shrink"
    POLICY = "none"

    def __init__(self, folder: str, window: int, newest: int) -> None:
        super().__init__(folder, 1_000_000_000, newest)
