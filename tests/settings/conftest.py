"""Fixtures for tests of settings: a folder with files, and a made-up mechanism with settings of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from foveate.errors import BadSetting
from foveate.policies.presets.mechanisms import MECHANISMS, Mechanism
from foveate.settings import Settings, load


class Loader:
    """Loads settings from its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def __call__(self, toml: str | bytes | None = None, environ: Mapping[str, str] = {}, **keywords: Any) -> Settings:
        if toml is not None:
            self.write("foveate.toml", toml)
        return load(environ=environ, folder=self.folder, **keywords)

    def refused(self, *arguments: Any, **keywords: Any) -> str:
        """Return the error about settings that are not allowed."""
        with pytest.raises(BadSetting) as raised:
            self(*arguments, **keywords)
        return str(raised.value)


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    return Loader(tmp_path)


class Term(Struct, frozen=True):
    """Settings of a tool in the made-up mechanism."""

    turns: int | None = None
    mode: Literal["none", "remove", "compact"] | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        if self.length is not None and self.mode != "compact":
            raise ValueError("length goes with mode compact")
        if self.length is not None and self.length < 1:
            raise BadSetting("Nothing has a length below 1.")


def lend(
    *,
    turns: int | None = 3,
    share: float = 0.5,
    tools: Mapping[str, Term] = {},
    names: Mapping[str, int] = {},
    best: Term | None = None,
    label: str | None = "label",
    count: Callable[[str], int] = len,
) -> Any:
    """A mechanism with settings of every kind; its policy carries the values."""
    if share > 1:
        raise BadSetting(f"lend needs a share of at most 1, not {share}.")
    if turns is not None and any(number > turns for number in names.values()):
        raise BadSetting("lend needs numbers of names that are below turns.")

    def policy(view: Any) -> Any:
        return ()

    policy.message = {"turns": turns, "share": share, "tools": tools, "names": names, "label": label, "count": count}  # type: ignore[attr-defined]
    return policy


@pytest.fixture
def lending(monkeypatch: pytest.MonkeyPatch) -> Callable[[Settings], dict[str, Any]]:
    """Registers `lend` as a mechanism, and returns a function that reads its values."""
    monkeypatch.setitem(MECHANISMS, "lend", Mechanism("lend", lambda: lend))  # type: ignore[misc]
    return lambda settings: settings.policies[-1].message
