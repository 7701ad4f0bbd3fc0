"""Generates pages from the code: the commands, the presets, the settings, and `llms.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from foveate.policies import PRESET_NAMES
from foveate.policies.presets import load_preset
from foveate.policies.presets.mechanisms import MECHANISMS
from foveate.policies.presets.values import Field, allowed
from foveate.settings.layers import GENERAL

QUESTIONS = {
    "reference/commands.md": "Which commands and options has `foveate`?",
    "reference/presets.md": "Which mechanisms does each preset use, and with which values?",
    "reference/all-settings.md": "Which settings, defaults and environment variables exist?",
    "reference/api/index.md": "Which classes and functions are public, and what do they take, return and raise?",
}
"""The generated pages that the first page of the site lists."""
_ITEM = re.compile(r"^\* `", re.MULTILINE)


def pages() -> dict[str, str]:
    """Return the Markdown of the generated pages by their paths."""
    return {
        "reference/commands.md": commands(),
        "reference/presets.md": presets(),
        "reference/all-settings.md": settings(),
    }


def commands() -> str:
    """Return the page of the command line, from the help texts."""
    from foveate.cli.app import app

    text = re.sub(
        r"## Table of Contents\n.*?(?=\n\*\*Commands)", "", app.generate_docs(output_format="markdown"), flags=re.S
    )
    text = _ITEM.sub("- `", re.sub(r"\*\*(Commands|Arguments|Parameters)\*\*:", r"\1:", text.split("\n", 1)[1]))
    text = re.sub(
        r"^(#+) (foveate .+)$", lambda found: f"{found[1]} {found[2]} {{ #{_anchor(found[2])} }}", text, flags=re.M
    )
    return f"# Commands\n{text}"


def _anchor(title: str) -> str:
    return re.sub("-+", "-", title.replace(" ", "-"))


def presets() -> str:
    """Return the page of the presets: each with its mechanisms, and the values that differ from the defaults."""
    parts = [
        "# Presets",
        "A preset is a named list of mechanisms with their settings. `policy=` of `open_conversation`, `--policy` of "
        "the commands and `policy` in `foveate.toml` choose one. Values that a preset does not set have the defaults "
        "of [all settings](all-settings.md).",
    ]
    for name in PRESET_NAMES:
        preset = load_preset(name.replace("-N", "-5"))
        values: dict[str, list[str]] = {}
        for place, sourced in preset.layer.items():
            if place[0] in MECHANISMS:
                values.setdefault(place[0], [])
                if place[-1] != "enabled":
                    values[place[0]].append(f"`{'.'.join(place[1:])} = {_value(sourced.value)}`")
        description = preset.description.replace("5", "N") if name == "keep-last-N" else preset.description
        parts += [f"## {name}", description]
        rows = [
            f"| [`{mechanism}`](all-settings.md#{mechanism}) | {', '.join(values[mechanism]) or 'the defaults'} |"
            for mechanism in MECHANISMS
            if mechanism in values
        ]
        if rows:
            parts.append("\n".join(["| mechanism | values of this preset |", "|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part) + "\n"


def settings() -> str:
    """Return the page of all settings: general ones, and those of each mechanism."""
    parts = [
        "# All settings",
        "Each setting is a line of `foveate.toml`, an environment variable, and a keyword of `open_conversation` or an "
        "entry of `Options(settings={...})`. [Settings](../guides/settings.md) explains which of them counts. A table "
        "with `enabled = false` switches its mechanism off.",
        "## General",
        _table(GENERAL, "", {name: field.description for name, field in GENERAL.items()}),
    ]
    for mechanism in MECHANISMS.values():
        fields = mechanism.fields
        words = {name: mechanism.description_of(name) for name in fields}
        parts += [f"## {mechanism.name}", mechanism.description, _table(fields, mechanism.name, words)]
    return "\n\n".join(parts) + "\n"


def _table(fields: Mapping[str, Field], table: str, words: Mapping[str, str]) -> str:
    rows = []
    for name, field in fields.items():
        variable = f"FOVEATE_{f'{table}_' if table else ''}{name}".upper()
        default = "required" if field.is_required else f"`{_value(field.default)}`"
        rows.append(f"| `{name}` | {_cell(words[name])} | {default} | {_cell(allowed(field.kind))} | `{variable}` |")
    return "\n".join(["| setting | meaning | default | values | environment |", "|---|---|---|---|---|", *rows])


def _value(value: Any) -> str:
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "none"}[value]
    elif isinstance(value, set | frozenset | tuple | list):
        names = sorted(map(str, value))
        text = ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:6])}, ... ({len(names)} names)"
    else:
        text = str(value)
    text = text if len(text) <= 120 else f"{text[:117]}..."
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def llms(pages: Mapping[str, str], nav: list[dict[str, Any]]) -> str:
    """Return `llms.txt`: every page with its first sentence, for programs that read the documentation."""
    parts = [
        "# foveate",
        "> A Python library that keeps an agent's conversation inside its model's window. It stores the complete "
        "history, and the model sees a shorter view. Every shortened message has a handle, so that the original can "
        "be read again.",
    ]
    for entry in nav:
        for title, content in entry.items():
            lines = [f"- [{name}]({path}): {_first_sentence(pages[path])}" for name, path in _links(title, content)]
            parts.append(f"## {title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _links(title: str, content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield title, content
        return
    for entry in content:
        for name, inside in [(title, entry)] if isinstance(entry, str) else entry.items():
            yield from _links(name, inside)


def _first_sentence(page: str) -> str:
    body = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    for paragraph in body.split("\n\n")[1:]:
        if paragraph.strip() and not paragraph.lstrip().startswith(("#", "|", "<", "!", "-")):
            text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(paragraph.split()))
            return re.split(r"(?<=[.:]) ", text, maxsplit=1)[0].rstrip(":")
    return ""
