"""Settings of `recap_batches` as an environment gives them. Reads the mapping it is handed, never the process's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

from ..errors import BadSetting
from .recap_batches import BATCH, PRESERVED

__all__ = ["VARIABLES", "RecapSettings", "recap_settings"]

_ENABLED = "LLM_COMPACTION_ENABLED"
_PRESERVED = "LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES"
_BATCH = "LLM_COMPACTION_BATCH_SIZE"
VARIABLES = {"enabled": _ENABLED, "min_preserved_assistant_messages": _PRESERVED, "batch_size": _BATCH}
"""The variable that sets each argument of `recap_batches`."""
_ANSWERS = {**dict.fromkeys(["1", "true", "yes", "on"], True), **dict.fromkeys(["0", "false", "no", "off"], False)}


class RecapSettings(TypedDict):
    """Arguments of `recap_batches`."""

    enabled: bool
    min_preserved_assistant_messages: int
    batch_size: int


def recap_settings(environ: Mapping[str, str]) -> RecapSettings:
    """What an environment such as `os.environ` says: `recap_batches(**recap_settings(os.environ))`.

    `LLM_COMPACTION_ENABLED` is 1, true, yes or on (the default), or 0, false, no or off, in any case;
    `LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES` a number of 0 or more (3); `LLM_COMPACTION_BATCH_SIZE` one of 1 or
    more (4). A blank value counts as none. Raises BadSetting, naming variable and value, for others.
    """
    return RecapSettings(
        enabled=_switch(environ, _ENABLED),
        min_preserved_assistant_messages=_number(environ, _PRESERVED, PRESERVED, 0),
        batch_size=_number(environ, _BATCH, BATCH, 1),
    )


def _switch(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower() or "true"
    if value not in _ANSWERS:
        raise BadSetting(f"{name} is {environ[name]!r}; set it to one of {', '.join(_ANSWERS)}.")
    return _ANSWERS[value]


def _number(environ: Mapping[str, str], name: str, default: int, least: int) -> int:
    value = environ.get(name, "").strip()
    if not value:
        return default
    if not re.fullmatch(r"\+?[0-9]{1,9}", value) or int(value) < least:
        raise BadSetting(f"{name} is {environ[name]!r}; set it to a whole number of {least} or more.")
    return int(value)
