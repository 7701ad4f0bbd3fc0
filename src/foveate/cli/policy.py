"""`foveate policy`: the presets, and the effective settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from ..stores import without_password
from .options import settings_of

if TYPE_CHECKING:
    from ..settings import Setting, Settings

__all__ = ["list_", "show"]

_WIDEST = 60
"""Largest size of a value in a table, in characters. `--json` prints complete values."""


def show(policy: str | None = None, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Show the effective settings of a program in this folder, and the source of each value.

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
            "settings": _listed(settings.values),
            "unused": _listed(settings.unused),
        }
        sys.stdout.write(_json(facts) + "\n")
    else:
        _print(settings)
    return 0


def list_(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """List the presets of foveate. A preset of your own is a .toml file.

    Example: `foveate policy list`

    Parameters
    ----------
    as_json
        Print JSON Lines: one object for each preset.
    """
    from ..policies import PRESET_NAMES
    from ..policies.presets import MECHANISMS, preset
    from ..policies.presets.assembly import is_on
    from .output import print_table

    read = {name: preset(name.replace("-N", "-5")) for name in PRESET_NAMES}
    found = {
        name: ([one for one in MECHANISMS if is_on(one, known.said)], known.description.replace("newest 5", "newest N"))
        for name, known in read.items()
    }
    if as_json:
        for name, (mechanisms, description) in found.items():
            sys.stdout.write(_json({"policy": name, "mechanisms": mechanisms, "description": description}) + "\n")
    else:
        rows = [(name, ", ".join(mechanisms) or "-", told) for name, (mechanisms, told) in found.items()]
        print_table(("policy", "mechanisms", "what it does"), rows, left=3)
    return 0


def _listed(settings: Mapping[str, Setting]) -> list[dict[str, object]]:
    return [{"name": name, "value": _open(name, one), "source": one.source} for name, one in settings.items()]


def _open(name: str, setting: Setting) -> object:
    """Return the value without its password."""
    is_url = name == "store" and isinstance(setting.value, str)
    return without_password(setting.value) if is_url else setting.value


def _print(settings: Settings) -> None:
    from .output import heading, print_table, say

    heading(f"policy {settings['policy']}", settings.description)
    say()
    rows = [(name, _value(_open(name, one)), one.source) for name, one in settings.values.items()]
    print_table(("setting", "value", "source"), rows, left=3)
    steps = [*settings.steps, *(["the hard floor"] if settings["floor"] else [])]
    say(f"Runs in this order: {', '.join(steps)}." if steps else "No policy runs.")
    if settings.unused:
        say()
        rows = [(name, _value(one.value), one.source) for name, one in settings.unused.items()]
        print_table(("without effect", "value", "source"), rows, left=3)


def _value(value: object) -> str:
    """Return a value as in a TOML file, cut for a table; None as a dash."""
    text = "-" if value is None else _json(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _json(value: object) -> str:
    """Return a value as JSON; values that only Python has as their repr."""
    return msgspec.json.encode(value, enc_hook=repr).decode()
