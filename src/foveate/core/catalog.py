"""The catalog of an application: actions, bindings of agents to actions, and prompts.

Plain values. `validated` checks a value before it is stored, and databases check the same constraints. `lease_of`
derives the lease of results from a binding.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadSetting
from .stamps import CompactMode, ExpirationMode, Lease
from .tool_names import LONGEST_NAME

__all__ = [
    "LENGTH",
    "SYSTEM_PROMPT",
    "Action",
    "Binding",
    "Prompt",
    "complete_binding",
    "lease_of",
    "model_names",
    "prompt_key",
    "prompt_texts",
    "template_fault",
    "validated",
]

LENGTH = 500
"""Length in characters of a compacted result without a configured length."""
SYSTEM_PROMPT = "Compact Agent Message"
"""Name of the prompt for summaries if no existing prompt is named."""

_INTEGER_MAX = 2**63 - 1
"""The largest integer that every database can store."""
_MODEL = re.compile(r"[\w-]+:\S+")
_PLACE = re.compile(r"\{\{\s*(?:text|originalContent)\s*\}\}")


class Action(Struct, frozen=True):
    """An action that agents can execute."""

    name: str
    """The name that models use, such as `Query Database`. Unique for a tenant."""
    description: str = ""
    """A description for models."""
    parameters: str = ""
    """JSON Schema of its parameters as JSON text; "" for none."""
    default_compact_prompt: str = ""
    """Name of the prompt for summaries of its results if a binding names none."""


class Binding(Struct, frozen=True):
    """The use of an action by an agent, and how the results expire."""

    agent: str
    """Name of the agent."""
    action: str
    """Name of the action."""
    result_expiration_turns: int | None = None
    """Number of model calls that see a result. None: no limit; 0: none sees it."""
    result_expiration_mode: ExpirationMode = "none"
    """The action on an expired result."""
    compact_mode: CompactMode | None = None
    """How a result is compacted."""
    compact_length: int | None = None
    """Length in characters."""
    compact_prompt: str = ""
    """Name of a prompt; "" for the action's own."""

    @property
    def id(self) -> str:
        """Return the id in leases (`Lease.agent_action_id`)."""
        return f"{self.agent}/{self.action}"


class Prompt(Struct, frozen=True):
    """A named prompt for summaries. The prompt `Compact Agent Message` is the default."""

    name: str
    """Unique for a tenant. Case does not matter, and spaces equal hyphens."""
    text: str
    """The template. It contains `{{ text }}` for the text to summarize; `summarizers.templates` lists other variables.
    """
    description: str = ""
    """A description for people."""
    models: str = ""
    """Names of the models that write with this prompt, separated by commas, such as
    `openai:gpt-4.1-mini, anthropic:claude-haiku-4-5`. They are asked in this order. "": those of the summarizer."""


T = TypeVar("T", Action, Binding, Prompt)


def validated(value: T) -> T:
    """Return the value if a database may store it. Raises BadSetting with the problem and the allowed values.

    For a binding: turns are None or at least 0; the modes are those of `ExpirationMode` and `CompactMode`; the length
    is None or at least 1. The mode `compact` needs a compact mode, and `first_chars` needs a length. The other modes
    allow none of these.
    """
    match value:
        case Action():
            _check_action(value)
        case Binding():
            _check_binding(value)
        case Prompt():
            _check_prompt(value)
        case _:
            raise BadSetting(f"A catalog keeps an Action, a Binding or a Prompt, not {value!r:.80}.")
    return value


def complete_binding(binding: Binding) -> Binding:
    """Return the binding with the defaults of its mode: `first_chars` as the compact mode, 500 characters as its
    length. Fields without a meaning in its mode are reset.
    """
    if binding.result_expiration_mode != "compact":
        return replace(binding, compact_mode=None, compact_length=None, compact_prompt="")
    mode, length = binding.compact_mode or "first_chars", binding.compact_length
    if mode == "first_chars":
        return replace(binding, compact_mode=mode, compact_length=LENGTH if length is None else length)
    return replace(binding, compact_mode=mode)


def lease_of(binding: Binding, action: Action | None = None) -> Lease:
    """Return the lease of results for a binding. If the binding names no prompt, the action's prompt counts."""
    is_summary = binding.compact_mode == "summary"
    prompt = binding.compact_prompt or (action.default_compact_prompt if action else "")
    return Lease(
        binding.result_expiration_turns,
        binding.result_expiration_mode,
        binding.compact_mode,
        binding.compact_length,
        (prompt or None) if is_summary else None,
        message_type="action-result",
        action_id=binding.action,
        agent_action_id=binding.id,
    )


def prompt_texts(prompts: Iterable[Prompt]) -> dict[str, str]:
    """Return a dictionary of names and texts, as `model_summarizer(prompts=...)` takes it."""
    return {prompt.name: prompt.text for prompt in prompts}


def model_names(models: str) -> tuple[str, ...]:
    """Return the names in a list of models that commas separate."""
    return tuple(filter(None, (name.strip() for name in models.split(","))))


def prompt_key(name: str) -> str:
    """Return the key of a prompt's name: `Compact Agent Message` has the key `compact-agent-message`."""
    return "-".join(name.casefold().split())


def template_fault(name: str, text: str) -> str:
    """Return why a text cannot be the prompt of this name, as the rest of a sentence; "" if it can.

    It must contain `{{ text }}`, or its other name `{{ originalContent }}`. Only the prompt `system`, which precedes
    the others, need not. Blocks of template languages would reach the model as they are, so none may be there.
    """
    if block := re.search(r"\{[%#]", text):
        return (
            f"has {block[0]!r}, but prompts have no logic. Use values such as {{{{ focus }}}}; a paragraph whose "
            "values are all empty is left out."
        )
    if prompt_key(name) != "system" and not _PLACE.search(text):
        return "lacks {{ text }}. Put it where the text to summarize goes."
    return ""


# -------------------------------------------------------------------------------------------------------------- checks


def _check_action(action: Action) -> None:
    owner = f"action {action.name!r:.80}"
    _check_name("action", "name", action.name)
    _check_text(owner, "description", action.description)
    _check_text(owner, "parameters", action.parameters)
    _check_name(owner, "default_compact_prompt", action.default_compact_prompt, may_be_empty=True)
    if action.parameters:
        try:
            schema = msgspec.json.decode(action.parameters)
        except msgspec.DecodeError as error:
            raise BadSetting(f"The parameters of {owner} are not JSON ({error}); allowed: a JSON Schema.") from error
        if not isinstance(schema, dict):
            raise BadSetting(f"The parameters of {owner} are not a JSON object; allowed: a JSON Schema of an object.")
        if schema.get("type", "object") != "object":
            raise BadSetting(
                f"The parameters of {owner} do not describe an object, so no model can call it; allowed: a JSON Schema "
                f"of an object."
            )


def _check_binding(binding: Binding) -> None:
    _check_name("binding", "agent", binding.agent)
    _check_name("binding", "action", binding.action)
    owner = f"binding {binding.id!r:.80}"
    mode, method, length = binding.result_expiration_mode, binding.compact_mode, binding.compact_length
    _check_whole(owner, "result_expiration_turns", binding.result_expiration_turns, least=0)
    _check_word(owner, "result_expiration_mode", mode, get_args(ExpirationMode))
    if method is not None:
        _check_word(owner, "compact_mode", method, get_args(CompactMode), or_none=True)
    _check_whole(owner, "compact_length", length, least=1)
    _check_name(owner, "compact_prompt", binding.compact_prompt, may_be_empty=True)
    unused = [name for name in ("compact_mode", "compact_length", "compact_prompt") if getattr(binding, name)]
    if mode != "compact" and unused:
        raise BadSetting(
            f"The {owner} has {', '.join(unused)}, without effect in its result_expiration_mode {mode}; "
            f"allowed: only with compact."
        )
    if mode == "compact" and method is None:
        raise BadSetting(f"The {owner} has no compact_mode; allowed: {_listed(get_args(CompactMode))}.")
    if method == "first_chars" and length is None:
        raise BadSetting(f"The {owner} has first_chars without a compact_length; allowed: 1 or more characters.")


def _check_prompt(prompt: Prompt) -> None:
    _check_name("prompt", "name", prompt.name)
    owner = f"prompt {prompt.name!r:.80}"
    _check_text(owner, "text", prompt.text)
    _check_text(owner, "description", prompt.description)
    if fault := template_fault(prompt.name, prompt.text):
        raise BadSetting(f"The {owner} {fault}")
    _check_text(owner, "models", prompt.models)
    for model in model_names(prompt.models):
        if not _MODEL.fullmatch(model):
            raise BadSetting(
                f"The models of the {owner} hold {model!r:.80}; allowed: names such as openai:gpt-4.1-mini, separated "
                f"by commas."
            )
    if prompt.models and prompt_key(prompt.name) == "system":
        raise BadSetting(f"The {owner} has models, but it only precedes the others. Set models of these.")


def _check_name(owner: str, field: str, name: object, *, may_be_empty: bool = False) -> None:
    _check_text(owner, field, name)
    assert isinstance(name, str)
    if not may_be_empty and not name.strip():
        raise BadSetting(f"The {field} of the {owner} is empty; allowed: 1 to {LONGEST_NAME} characters.")
    if len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise BadSetting(
            f"The {field} of the {owner} is {name!r:.80}; allowed: at most {LONGEST_NAME} printable characters, "
            f"without spaces around them."
        )


def _check_text(owner: str, field: str, text: object) -> None:
    if not isinstance(text, str):
        raise BadSetting(f"The {field} of the {owner} is {text!r:.80}; allowed: a str.")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadSetting(f"The {field} of the {owner} has a NUL or half of a surrogate pair; allowed: plain text.")


def _check_whole(owner: str, field: str, value: object, *, least: int) -> None:
    if value is not None and not (type(value) is int and least <= value <= _INTEGER_MAX):
        raise BadSetting(
            f"The {field} of the {owner} is {value!r:.80}; allowed: a whole number of {least} or more, or none."
        )


def _check_word(owner: str, field: str, value: object, words: Collection[str], *, or_none: bool = False) -> None:
    if not isinstance(value, str) or value not in words:
        raise BadSetting(
            f"The {field} of the {owner} is {value!r:.80}; allowed: {_listed(words)}{', or none' if or_none else ''}."
        )


def _listed(words: Collection[str]) -> str:
    return " or ".join(words) if len(words) < 3 else ", ".join(words)
