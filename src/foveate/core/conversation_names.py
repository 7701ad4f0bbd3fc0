"""Names of conversations that belong to another one, such as those of sub-agents.

A conversation whose name is `PARENT/KEY` is a child of the conversation `PARENT`. `NAME~1`, `NAME~2`, ... are earlier
courses of a conversation, which share a past with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

from ..errors import BadSetting

__all__ = ["ancestors", "child_name", "children_of"]

_KEY_MAX = 100
"""Characters of a key that is kept as it is."""
_NAME_MAX = 480
"""Characters of a name. Stores take 500; the rest is for the number of an earlier course."""
_KEPT = 80
"""Characters of another key that its name begins with."""
_FORMER = re.compile(r"[^/]~\d+(/|\Z)")


def child_name(parent: str, key: str) -> str:
    """Return the name of a child of the conversation `parent`: the same for the same key, another one for another key.

    `key`: what a framework calls the child, such as `tools:6c7e...`. It is kept if it is printable, has neither `/` nor
    `~`, and at most 100 characters. Of any other key the name has the beginning, with `-` for other characters, and
    its hash. Raises BadSetting if the name would be longer than 480 characters, or if one of them is empty.
    """
    if not (isinstance(parent, str) and isinstance(key, str) and parent and key):
        raise BadSetting(f"The name of a child needs a parent and a key, not {parent!r:.60} and {key!r:.60}.")
    legal = "".join(letter if letter.isprintable() and letter not in "/~" else "-" for letter in key)
    if legal != key or len(key) > _KEY_MAX:
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, person=b"foveate child 1").hexdigest()
        legal = f"{legal[:_KEPT]}-{digest}"
    name = f"{parent}/{legal}"
    if len(name) > _NAME_MAX:
        raise BadSetting(
            f"The name of a child of {parent!r:.60} would have {len(name)} characters, and {_NAME_MAX} are allowed. "
            f"Use shorter names, or fewer levels of children."
        )
    return name


def ancestors(name: str) -> list[str]:
    """Return the names of the conversations that a conversation may be a child of, the nearest first."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1) if parts[count - 1]]


def children_of(name: str, names: Iterable[str]) -> list[str]:
    """Return the names among these of children of `name` and of their children, without earlier courses, sorted."""
    prefix = f"{name}/"
    return sorted(child for child in names if child.startswith(prefix) and not _FORMER.search(child, len(prefix)))
