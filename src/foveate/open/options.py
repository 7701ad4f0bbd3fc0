"""Options of a conversation, and the values that result from keywords, environment, `foveate.toml` and preset."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct

from ..conversation import validate
from ..conversation.plugins import Plugin, plugin_policies
from ..core.call_context import Prices
from ..core.events import Event
from ..core.planner import Policy, Stage
from ..core.profiles import Profile
from ..errors import BadSetting
from ..expand.expander import Place
from ..models.known import format_of_model
from ..policies import DEFAULT_PRESET, FLOOR, PolicyChoice, check_policies, load_policies, load_summarizer_name
from ..policies.message_terms import MECHANISMS
from ..ports import Background, Clock, Format, Prompts, RemoteBackground, Store, Summarizer, TokenCounter

__all__ = ["KEYWORDS", "Options", "ResolvedOptions", "grouped", "resolve"]


class Options(Struct, frozen=True, kw_only=True):
    """The less common options of `open_conversation`. None stands for the setting of the same name, or its default."""

    settings: Mapping[str, Any] | None = None
    """Settings of the preset's mechanisms, such as `{"prune": {"protect": 20_000}}`."""
    reserve: int | None = None
    """Tokens kept free for the answer. Default: a tenth of the window, at most 20,000."""
    tenant: str | None = None
    """The owner of the conversation, where one store serves several. Default: ""."""
    expand_where: Literal["view", "tail", "auto"] | None = None
    """Where an expanded original is shown: in its place (`view`), in the result of the call (`tail`), or in the cheaper
    of the two (`auto`, the default)."""
    background: bool | Background | RemoteBackground | None = None
    """Whether summaries are written while the conversation goes on.

    None: those that a policy requests ahead of time from a model or a function. True: all that the view can wait for.
    False: none. A Background or a `foveate.ops.worker.Queue` runs them instead of a thread.
    """
    on_event: Callable[[Event], object] | None = None
    """Called with every Event. It can neither break nor change a run."""
    profile: Profile | None = None
    """The demands of the provider. Default: those of the format and the model."""
    prices: Prices | None = None
    """Prices of cached input and output, relative to input. Default: those of the model."""
    counter: str | TokenCounter | None = None
    """Counts the tokens of a text: a function, or the name of an exact counter such as `o200k`, which needs the extra
    `tokens`. Default: the counter of the model (`foveate.counters`)."""
    prompts: Prompts | None = None
    """The prompts of a summarizer that is a model's name: texts by the names of prompts, or a function that returns the
    prompts of a tenant. Default: those in the store."""
    user: str | None = None
    """The person for whom the program works. Summarizers read it in `request.user`, and prompts as `{{ user }}`."""
    clock: Clock | None = None
    """Returns the time in milliseconds since 1970."""


_VISIBLE = ("store", "format", "model", "window", "policy", "summarizer", "expand", "plugins")
KEYWORDS = frozenset((*_VISIBLE, *Options.__struct_fields__))
"""Names of all options: the keywords of `open_conversation` and the fields of `Options`."""


def grouped(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords for `open_conversation`, with the fields of `Options` moved into `options=`."""
    direct = {name: value for name, value in keywords.items() if name not in Options.__struct_fields__}
    rare = {name: value for name, value in keywords.items() if name in Options.__struct_fields__}
    return {**direct, "options": Options(**rare)} if rare else direct


class ResolvedOptions(NamedTuple):
    """The values that count, after keywords, environment, `foveate.toml` and preset were merged."""

    policies: Sequence[Policy]
    floor: Sequence[Stage]
    store: str | Store
    format: str | Format
    model: str
    window: int | None
    reserve: int | None
    tenant: str
    expand: bool | None
    """Whether requests offer the tool `expand`; None: those with tools."""
    expand_where: Place
    summarizer: str | Summarizer
    """A name, "" for none, or the summarizer itself."""
    switched_off: frozenset[str] = frozenset()
    """Mechanisms that the settings, or the policy `off`, switch off although messages may ask for them."""


def resolve(
    policy: PolicyChoice | None,
    settings: Mapping[str, Any] | None,
    plugins: Sequence[Plugin],
    **keywords: Any,
) -> ResolvedOptions:
    """Merge keywords with the environment, `foveate.toml` and the preset. Raises BadSetting."""
    _check_keywords(**keywords)
    is_plain = settings is None and not plugins and not _is_mixed(policy)
    if is_plain and not os.path.lexists("foveate.toml") and not any(map(_is_ours, os.environ)):
        return _resolve_keywords(DEFAULT_PRESET if policy is None else policy, keywords)
    from ..settings import load

    merged = load(
        policy=policy, environ=os.environ, folder=Path(), settings=settings, has_plugins=bool(plugins), **keywords
    )
    policies = merged.policies
    values = {key: merged[key] for key in keywords}
    if merged["policy"] != "off":  # One switch for everything automatic.
        policies = (*plugin_policies(plugins), *policies)
    elif values["expand"] is None:
        values["expand"] = False
    off = frozenset(name for name in MECHANISMS.values() if merged.is_switched_off(name))
    return ResolvedOptions(policies, merged.floor(), switched_off=off, **values)


def _check_keywords(
    *, model: object, window: object, reserve: object, expand: object, expand_where: object, **_: object
) -> None:
    """Raise BadSetting for a keyword of the wrong kind: the same error with and without other sources of settings."""
    if model is not None:
        validate.text("model=", model)
    if window is not None:
        validate.window(window)
    if reserve is not None:
        validate.integer("reserve= (tokens)", reserve)
    if expand is not None:
        validate.instance("expand=", expand, bool, "True or False")
    if expand_where is not None and expand_where not in get_args(Place):
        raise BadSetting(f"expand_where= is {expand_where!r:.60}. Pass one of {', '.join(get_args(Place))}.")


def _resolve_keywords(policy: PolicyChoice, keywords: Mapping[str, Any]) -> ResolvedOptions:
    """Resolve keywords and the preset, where nothing else sets a value: `settings` need not be imported."""
    policies, floor = load_policies(policy) if isinstance(policy, str) else (check_policies(policy), FLOOR)
    defaults: dict[str, Any] = {
        "store": "memory:",
        "model": "",
        "tenant": "",
        "expand_where": "auto",
        "summarizer": load_summarizer_name(policy) if isinstance(policy, str) else "",
    }
    if policy == "off":
        defaults["expand"] = False
    values = {**keywords} | {key: defaults[key] for key in defaults if keywords[key] is None}
    if values["format"] is None:
        model = values["model"]
        values["format"] = (format_of_model(model) if isinstance(model, str) else None) or "openai"
    off = frozenset(MECHANISMS.values() if policy == "off" else ())
    return ResolvedOptions(policies, floor, switched_off=off, **values)


def _is_mixed(policy: PolicyChoice | None) -> bool:
    """Return whether names of presets stand in a list."""
    return isinstance(policy, list | tuple) and any(isinstance(choice, str) for choice in policy)


def _is_ours(variable: str) -> bool:
    return variable.upper().startswith(("FOVEATE_", "LLM_COMPACTION_"))
