"""Token counter without dependencies: a quarter of the characters.

It is off by about 5 % on English prose and code in total, and by two thirds on Chinese. The provider's own figures
correct it for each conversation as soon as they are known (`core.view.Budget.scale`).
"""

from __future__ import annotations

from ..core.sizes import estimate

__all__ = ["EstimatingCounter"]


class EstimatingCounter:
    """Counts a quarter of the characters, rounded up."""

    name = "characters/4"

    def __call__(self, text: str) -> int:
        return estimate(text)
