"""The table `[ages]` of `foveate.toml`: how long originals are kept, for whoever lets go of them.

It is no part of a preset and no setting of a conversation: nothing is erased because a conversation was opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..core.retention import Age, read_ages
from ..errors import BadSetting
from ..policies.presets.said import Level, Source
from ..policies.presets.toml_file import TomlFile
from .levels import FILE

__all__ = ["ages_in"]


def ages_in(folder: Path) -> tuple[Age, ...]:
    """The ages that `foveate.toml` in this folder tells; none where there is no such file or table.

    Each is one rule in words by its kind, or a list of several: `tool_results = "90 days and 200 turns"`. Raises
    BadSetting, naming the line, for what is not allowed.
    """
    if not os.path.lexists(folder / FILE):
        return ()
    file = TomlFile(folder / FILE, FILE)
    told = file.tables.get("ages", {})
    if not isinstance(told, Mapping):
        raise BadSetting(f'{_subject(file)} is {told!r:.60}; allowed: a table, such as tool_results = "90 days".')
    ages: list[Age] = []
    for kind, said in told.items():
        try:
            ages += read_ages({kind: said})
        except BadSetting as error:
            raise BadSetting(f"{_subject(file, kind)}: {error}") from error
    return tuple(ages)


def _subject(file: TomlFile, *kind: str) -> str:
    return Source(Level.FILE, FILE, file, ("ages", *kind)).subject
