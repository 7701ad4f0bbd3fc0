"""What keywords, the environment, `foveate.toml` and a preset come to together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.planner import Policy, Stage
from ..expansion.placing import Where
from ..plugins import Plugin, policies_of
from ..policies import DEFAULT_PRESET, FLOOR, check_policies, load_policies, load_summarizer_name
from ..ports import Format, Store, Summarizer

__all__ = ["Told", "told_by"]


class Told(NamedTuple):
    """What keywords, the environment, `foveate.toml` and a preset come to together."""

    policies: Sequence[Policy]
    floor: Sequence[Stage]
    store: str | Store
    format: str | Format
    model: str
    window: int | None
    reserve: int | None
    tenant: str
    expand: bool
    expand_where: Where
    summarizer: str | Summarizer
    """A name, "" for none, or what a program hands in."""


def told_by(
    policy: str | Policy | Sequence[Policy] | None,
    settings: Mapping[str, Any] | None,
    plugins: Sequence[Plugin],
    **keywords: Any,
) -> Told:
    """Merge what is said. Where only keywords speak, nothing is read but the preset."""
    if settings is None and not plugins and not os.path.lexists("foveate.toml") and not any(map(_is_ours, os.environ)):
        chosen = DEFAULT_PRESET if policy is None else policy
        policies, floor = _policies(chosen)
        plain: dict[str, Any] = {
            "store": "memory:",
            "format": "openai",
            "model": "",
            "tenant": "",
            "expand": False,
            "expand_where": "auto",
        }
        plain["summarizer"] = load_summarizer_name(chosen) if isinstance(chosen, str) else ""
        return Told(policies, floor, **keywords | {key: plain[key] for key in plain if keywords[key] is None})
    from ..settings import load

    merged = load(
        policy=policy, environ=os.environ, folder=Path(), settings=settings, has_plugins=bool(plugins), **keywords
    )
    policies = merged.policies()
    if plugins and not isinstance(merged["policy"], str):
        policies = _retaining(policies)
    if merged["policy"] != "off":  # One switch for all that is automatic.
        policies = (*policies_of(plugins), *policies)
    return Told(policies, merged.floor(), **{key: merged[key] for key in keywords})


def _retaining(policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Policies of the program's own, behind the one that plugins cannot do without."""
    from ..policies.block_retention import RetainBlocks, retain_blocks

    is_there = any(isinstance(policy, RetainBlocks) for policy in policies)
    return policies if is_there else (retain_blocks(), *policies)


def _is_ours(variable: str) -> bool:
    return variable.upper().startswith(("FOVEATE_", "LLM_COMPACTION_"))


def _policies(policy: str | Policy | Sequence[Policy]) -> tuple[Sequence[Policy], Sequence[Stage]]:
    if isinstance(policy, str):
        return load_policies(policy)
    return check_policies(policy), FLOOR
