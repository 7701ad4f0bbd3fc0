"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..core.view import Prices
from ..errors import BadSetting

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["Provider", "description", "policies_of", "prices_of", "settings_of"]

Provider = Literal["anthropic", "openai"]


def policies_of(policy: str | None, compare: str | None) -> list[str]:
    """The policies asked for, each once; where none is, the one that settings choose.

    Raises BadSetting for one that there is not, and for settings that cannot be.
    """
    asked = [] if policy is None else [policy]
    asked += [] if compare is None else [name.strip() for name in compare.split(",")]
    names = list(dict.fromkeys(asked)) or [settings_of()["policy"]]
    for name in names:
        settings_of(name)
    return names


def settings_of(policy: str | None = None) -> Settings:
    """The settings of a program that runs here and opens its conversations under this policy. Raises BadSetting."""
    from ..settings import load

    return load(policy=policy, environ=os.environ, folder=Path())


def prices_of(text: str) -> Prices:
    """`0.1,1.25` as prices. Raises BadSetting for anything but two numbers of 0 or more."""
    try:
        read, write = (float(number) for number in text.split(","))
    except ValueError:
        read = write = -1.0
    if not (0 <= read < float("inf") and 0 <= write < float("inf")):
        raise BadSetting(f"--prices takes two numbers, for reading and for writing, such as 0.1,1.25; not {text!r}.")
    return Prices(read=read, write=write)


def description(command: Callable[..., int]) -> str:
    """What a docstring says before its parameters, a line a paragraph: the terminal decides where lines end."""
    paragraphs = (getdoc(command) or "").split("\n\nParameters\n")[0].split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()).replace("`", "") for paragraph in paragraphs)
