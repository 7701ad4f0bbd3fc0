"""The system prompt of a loop agent: a Jinja2 template, shipped or a user's own, filled in once.

It is the same text at every call of the model, so the provider's cache keeps it. Templates are run in a sandbox: they
see the values that they are handed, and can change nothing. Jinja2 is imported when a prompt is made, never before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from .. import given
from ..errors import BadSetting, MissingExtra
from .tools import Tool

__all__ = ["SHIPPED", "Helper", "system_prompt"]

SHIPPED = "loop.md"
"""The template beside this file."""


class Helper(Struct, frozen=True):
    """An action, or a sub-agent, as a template sees it."""

    name: str
    description: str
    parameters: str = ""
    """JSON Schema, as JSON text in one line; "" for a sub-agent."""


def system_prompt(
    name: str,
    instructions: str,
    actions: Sequence[Tool],
    sub_agents: Sequence[Helper],
    template: str | Path | None = None,
) -> str:
    """The prompt. `template`: a text, or the Path of a file; None: the shipped one.

    A template sees `name`, `instructions`, `actions` and `sub_agents` (each with name, description, parameters), and
    `action_count` and `sub_agent_count`. Raises BadSetting where it has a fault, and MissingExtra without Jinja2.
    """
    told = [
        Helper(one.name, one.description, json.dumps(one.parameters, ensure_ascii=False, separators=(",", ":")))
        for one in actions
    ]
    values = {"name": name, "instructions": instructions.strip(), "actions": told, "sub_agents": list(sub_agents)}
    return _filled(_text_of(template), values | {"action_count": len(told), "sub_agent_count": len(sub_agents)})


def _filled(template: str, values: dict[str, object]) -> str:
    try:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingExtra("A loop agent, whose prompt is a template of Jinja2,", "agents") from None
    try:
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
        return environment.from_string(template).render(values).strip()
    except TemplateError as error:
        raise BadSetting(f"The template of the prompt has a fault: {type(error).__name__}: {error}.") from error
    except Exception as error:  # What a template computes may go wrong like any program.
        raise BadSetting(f"The template of the prompt cannot be filled in: {type(error).__name__}: {error}.") from error


def _text_of(template: str | Path | None) -> str:
    if template is None:
        return _shipped()
    if isinstance(template, Path):
        try:
            return template.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise BadSetting(f"The template {str(template)!r} cannot be read: {error}.") from error
    return given.text("template=, if not a Path,", template)


@cache
def _shipped() -> str:
    return (files(__package__) / "prompts" / SHIPPED).read_text(encoding="utf-8")
