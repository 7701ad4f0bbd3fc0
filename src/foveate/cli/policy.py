"""`foveate policy`: the presets, and the effective settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ..stores import without_password
from .options import settings_of
from .text import write_json

if TYPE_CHECKING:
    from ..settings import Setting, Settings

__all__ = ["list_", "show"]

_WIDEST = 60
"""Largest size of a value in a table, in characters. `--json` prints complete values."""


def show(policy: str | None = None, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Show the effective settings of a program in this folder, with the source and the meaning of each.

    Sources, the strongest first: a keyword in the program, the environment (FOVEATE_...), foveate.toml, the preset, the
    default.

    Example: `foveate policy show`, or `foveate policy show mine.toml`

    Parameters
    ----------
    policy
        A preset or a TOML file, as if the program chose it (default: from the settings, else balanced).
    as_json
        Print one JSON object.
    """
    settings = settings_of(policy)
    if as_json:
        facts = {
            "policy": settings["policy"],
            "description": settings.description,
            "mechanisms": settings.mechanisms,
            "floor": settings["floor"],
            "settings": _rows(settings.values),
            "unused": _rows(settings.unused),
        }
        write_json(_json(facts))
    else:
        _print(settings)
    return 0


def list_(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """List the presets that come with foveate, and the policies of other installed packages.

    Example: `foveate policy list`

    Parameters
    ----------
    as_json
        Print JSON Lines: one object for each preset.
    """
    from ..policies import PRESET_NAMES
    from ..policies.presets import load_preset
    from ..policies.presets.assembly import switched_on
    from ..policies.presets.mechanisms import registered
    from .output import print_table

    rows = []
    for name in (*PRESET_NAMES, *registered()):
        preset = load_preset(name.replace("-N", "-5"))
        mechanisms = [mechanism.name for mechanism in switched_on(preset.layer)]
        description = preset.description.replace("5", "N") if name == "keep-last-N" else preset.description
        rows.append((name, mechanisms, description))
    if as_json:
        for name, mechanisms, text in rows:
            write_json(_json({"policy": name, "mechanisms": mechanisms, "description": text}))
    else:
        table = [(name, ", ".join(mechanisms) or "-", text) for name, mechanisms, text in rows]
        print_table(("policy", "mechanisms", "what it does"), table, left=3)
    return 0


def _rows(settings: Mapping[str, Setting]) -> list[dict[str, object]]:
    return [
        {"name": name, "value": _visible(name, setting), "source": setting.source, "meaning": setting.description}
        for name, setting in settings.items()
    ]


def _visible(name: str, setting: Setting) -> object:
    """Return the value without a password."""
    is_url = name == "store" and isinstance(setting.value, str)
    return without_password(setting.value) if is_url else setting.value


def _print(settings: Settings) -> None:
    from .output import heading, print_table, say

    heading(f"policy {settings['policy']}", settings.description)
    say()
    rows = [
        (name, _text(_visible(name, setting)), setting.source, setting.description)
        for name, setting in settings.values.items()
    ]
    print_table(("setting", "value", "source", "meaning"), rows, left=4)
    steps = [*settings.steps, *(["the hard floor"] if settings["floor"] else [])]
    say(f"Runs in this order: {', '.join(steps)}." if steps else "No policy runs.")
    if settings.unused:
        say()
        unused = [(name, _text(setting.value), setting.source) for name, setting in settings.unused.items()]
        print_table(("without effect", "value", "source"), unused, left=3)


def _text(value: object) -> str:
    """Return a value as a file would write it, shortened for a table; a dash for none."""
    text = "-" if value is None else _json(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _json(value: object) -> str:
    """Encode as JSON; an object of a program as its `repr`."""
    return msgspec.json.encode(value, enc_hook=repr).decode()
