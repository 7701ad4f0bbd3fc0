"""Environment variables of recaps, `LLM_COMPACTION_...`: the arguments of `recap_batches` that they set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

from ..errors import BadSetting
from .recaps import BATCH, PRESERVED

__all__ = ["VARIABLES", "RecapSettings", "recap_settings"]

_ENABLED = "LLM_COMPACTION_ENABLED"
_PRESERVED = "LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES"
_BATCH_SIZE = "LLM_COMPACTION_BATCH_SIZE"
VARIABLES = {"enabled": _ENABLED, "min_preserved_assistant_messages": _PRESERVED, "batch_size": _BATCH_SIZE}
"""The environment variable for each argument of `recap_batches`."""
_SWITCHES = {**dict.fromkeys(["1", "true", "yes", "on"], True), **dict.fromkeys(["0", "false", "no", "off"], False)}


class RecapSettings(TypedDict):
    """Arguments of `recap_batches`."""

    enabled: bool
    """Whether the policy does anything."""
    min_preserved_assistant_messages: int
    """The newest messages of the assistant that stay whole."""
    batch_size: int
    """How many messages become recaps at once."""


def recap_settings(environ: Mapping[str, str]) -> RecapSettings:
    """Return the arguments in an environment: `recap_batches(**recap_settings(os.environ))`.

    `LLM_COMPACTION_ENABLED`: 1, true, yes or on (default), or 0, false, no or off, in any case.
    `LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES`: 0 or more (default 3). `LLM_COMPACTION_BATCH_SIZE`: 1 or more
    (default 4). A blank value counts as unset. Raises BadSetting with the variable and its value for others.
    """
    return RecapSettings(
        enabled=_read_switch(environ, _ENABLED),
        min_preserved_assistant_messages=_read_number(environ, _PRESERVED, PRESERVED, 0),
        batch_size=_read_number(environ, _BATCH_SIZE, BATCH, 1),
    )


def _read_switch(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower() or "true"
    if value not in _SWITCHES:
        raise BadSetting(f"{name} is {environ[name]!r}; set it to one of {', '.join(_SWITCHES)}.")
    return _SWITCHES[value]


def _read_number(environ: Mapping[str, str], name: str, default: int, least: int) -> int:
    value = environ.get(name, "").strip()
    if not value:
        return default
    if not re.fullmatch(r"\+?[0-9]{1,9}", value) or int(value) < least:
        raise BadSetting(f"{name} is {environ[name]!r}; set it to a whole number of {least} or more.")
    return int(value)
