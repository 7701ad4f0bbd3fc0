"""What an erasure has to reach: everything in a tree of forks that was made of the messages that are erased.

A pure function of what is stored: it names what still tells of these messages, and what each is to be replaced by. A
store then writes all of that in one transaction; asked again for what is erased already, it names what was left over,
which is how an erasure is proven. It knows no table and no list; `Tree` is what it reads.
"""

from __future__ import annotations

from .asked import check_seen, named, whole_runs
from .found import Reach, counted, left_over
from .reaching import reach
from .tree import Ends, Place, Seen, Tree

__all__ = [
    "Ends",
    "Place",
    "Reach",
    "Seen",
    "Tree",
    "check_seen",
    "counted",
    "left_over",
    "named",
    "reach",
    "whole_runs",
]
