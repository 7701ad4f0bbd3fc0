"""What an application sets up for its agents, as its database keeps it: actions, which agent has which, and prompts.

Plain values, and one function, `validated`, that says what is allowed; the databases check the same constraints again.
How a result expires follows from a binding by way of `lease_of`, as from everything else that says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadSetting
from .stamps import Lease

__all__ = [
    "LENGTH",
    "SYSTEM_PROMPT",
    "Action",
    "Binding",
    "CompactMode",
    "ExpirationMode",
    "Prompt",
    "complete_binding",
    "is_template",
    "lease_of",
    "prompt_key",
    "prompt_texts",
    "validated",
]

ExpirationMode = Literal["none", "remove", "compact"]
CompactMode = Literal["first_chars", "summary"]

LENGTH = 500
"""Characters that are kept of a compacted result where nobody says how many."""
SYSTEM_PROMPT = "Compact Agent Message"
"""Name of the prompt for summaries where nothing names one that there is."""

_NAME_MAX = 500
_MOST = 2**63 - 1
"""The largest whole number that every database can keep."""
_PLACE = re.compile(r"\{\{\s*text\s*\}\}")


class Action(Struct, frozen=True):
    """Something that agents can have done."""

    name: str
    """What models call it by. Unique for a tenant."""
    description: str = ""
    parameters: str = ""
    """JSON Schema of its parameters, as JSON text; "" where none is said."""
    default_compact_prompt: str = ""
    """Name of the prompt that sums up its results where a binding names none."""


class Binding(Struct, frozen=True):
    """That an agent has an action, and what becomes of its results."""

    agent: str
    action: str
    result_expiration_turns: int | None = None
    """Model calls that see a result before it leaves. None: it never does; 0: it leaves before any has seen it."""
    result_expiration_mode: ExpirationMode = "none"
    compact_mode: CompactMode | None = None
    compact_length: int | None = None
    """Characters."""
    compact_prompt: str = ""
    """Name of a prompt; "" for the action's own."""

    @property
    def id(self) -> str:
        """What a lease calls it (`Lease.agent_action_id`)."""
        return f"{self.agent}/{self.action}"


class Prompt(Struct, frozen=True):
    """A prompt for summaries, by its name. One named `Compact Agent Message` stands for all that name none."""

    name: str
    """Unique for a tenant, whatever its capitals, and whether its words are parted by spaces or hyphens."""
    text: str
    """Where what is summed up goes, it holds `{{ text }}`. What else may stand in it: `summarizers.templates`."""
    description: str = ""


T = TypeVar("T", Action, Binding, Prompt)


def validated(value: T) -> T:
    """The value, if a database may keep it. Raises BadSetting: what is wrong with it, and what is allowed.

    Of a binding: turns are None or 0 and more; the modes are those of `ExpirationMode` and `CompactMode`; the length is
    None or 1 and more. The mode compact says in which way, first_chars how many characters, and where the mode is not
    compact, nothing is said of how.
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
    """The binding with what its mode still needs: where it compacts and does not say how, the first characters; where
    it does not say how many, 500 of them. What says nothing in its mode is dropped.
    """
    if binding.result_expiration_mode != "compact":
        return replace(binding, compact_mode=None, compact_length=None, compact_prompt="")
    mode, length = binding.compact_mode or "first_chars", binding.compact_length
    if mode == "first_chars":
        return replace(binding, compact_mode=mode, compact_length=LENGTH if length is None else length)
    return replace(binding, compact_mode=mode)


def lease_of(binding: Binding, action: Action | None = None) -> Lease:
    """What a binding says of the results of its action, and the action of the prompt where the binding names none."""
    is_summed_up = binding.compact_mode == "summary"
    prompt = binding.compact_prompt or (action.default_compact_prompt if action else "")
    return Lease(
        binding.result_expiration_turns,
        binding.result_expiration_mode,
        binding.compact_mode,
        binding.compact_length,
        (prompt or None) if is_summed_up else None,
        message_type="action-result",
        action_id=binding.action,
        agent_action_id=binding.id,
    )


def prompt_texts(prompts: Iterable[Prompt]) -> dict[str, str]:
    """Names to texts, as `model_summarizer(prompts=...)` takes them."""
    return {prompt.name: prompt.text for prompt in prompts}


def prompt_key(name: str) -> str:
    """The name as prompts are looked up by it: `Compact Agent Message` is `compact-agent-message`."""
    return "-".join(name.casefold().split())


def is_template(name: str, text: str) -> bool:
    """Whether a text can be the prompt of this name: it says where what is summed up goes, `{{ text }}`. Only the
    prompt `system`, which stands before each of the others, need not.
    """
    return prompt_key(name) == "system" or _PLACE.search(text) is not None


# -------------------------------------------------------------------------------------------------------------- checks


def _check_action(action: Action) -> None:
    whose = f"action {action.name!r:.80}"
    _check_name("action", "name", action.name)
    _check_text(whose, "description", action.description)
    _check_text(whose, "parameters", action.parameters)
    _check_name(whose, "default_compact_prompt", action.default_compact_prompt, may_be_empty=True)
    if action.parameters:
        try:
            is_object = isinstance(msgspec.json.decode(action.parameters), dict)
        except msgspec.DecodeError as error:
            raise BadSetting(f"The parameters of {whose} are no JSON ({error}); allowed: a JSON Schema.") from error
        if not is_object:
            raise BadSetting(f"The parameters of {whose} are no JSON object; allowed: a JSON Schema of an object.")


def _check_binding(binding: Binding) -> None:
    _check_name("binding", "agent", binding.agent)
    _check_name("binding", "action", binding.action)
    whose = f"binding {binding.id!r:.80}"
    mode, way, length = binding.result_expiration_mode, binding.compact_mode, binding.compact_length
    _check_whole(whose, "result_expiration_turns", binding.result_expiration_turns, least=0)
    _check_word(whose, "result_expiration_mode", mode, get_args(ExpirationMode))
    if way is not None:
        _check_word(whose, "compact_mode", way, get_args(CompactMode), or_none=True)
    _check_whole(whose, "compact_length", length, least=1)
    _check_name(whose, "compact_prompt", binding.compact_prompt, may_be_empty=True)
    said = [name for name in ("compact_mode", "compact_length", "compact_prompt") if getattr(binding, name)]
    if mode != "compact" and said:
        raise BadSetting(
            f"The {whose} has {', '.join(said)}, which its result_expiration_mode {mode} leaves without meaning; "
            f"allowed: only with compact."
        )
    if mode == "compact" and way is None:
        raise BadSetting(f"The {whose} compacts without a compact_mode; allowed: {_listed(get_args(CompactMode))}.")
    if way == "first_chars" and length is None:
        raise BadSetting(f"The {whose} keeps first_chars without a compact_length; allowed: 1 or more characters.")


def _check_prompt(prompt: Prompt) -> None:
    _check_name("prompt", "name", prompt.name)
    whose = f"prompt {prompt.name!r:.80}"
    _check_text(whose, "text", prompt.text)
    _check_text(whose, "description", prompt.description)
    if not is_template(prompt.name, prompt.text):
        raise BadSetting(f"The {whose} has no {{{{ text }}}}, where what is summed up would stand.")


def _check_name(whose: str, field: str, name: object, *, may_be_empty: bool = False) -> None:
    _check_text(whose, field, name)
    assert isinstance(name, str)
    if not may_be_empty and not name.strip():
        raise BadSetting(f"The {field} of the {whose} is empty; allowed: 1 to {_NAME_MAX} characters.")
    if len(name) > _NAME_MAX or not name.isprintable() or name != name.strip():
        raise BadSetting(
            f"The {field} of the {whose} is {name!r:.80}; allowed: at most {_NAME_MAX} printable characters, without "
            f"spaces around them."
        )


def _check_text(whose: str, field: str, text: object) -> None:
    if not isinstance(text, str):
        raise BadSetting(f"The {field} of the {whose} is {text!r:.80}; allowed: a text.")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadSetting(f"The {field} of the {whose} holds a NUL or half of a surrogate pair; allowed: plain text.")


def _check_whole(whose: str, field: str, value: object, *, least: int) -> None:
    if value is not None and not (type(value) is int and least <= value <= _MOST):
        raise BadSetting(
            f"The {field} of the {whose} is {value!r:.80}; allowed: a whole number of {least} or more, or none."
        )


def _check_word(whose: str, field: str, value: object, words: Collection[str], *, or_none: bool = False) -> None:
    if not isinstance(value, str) or value not in words:
        raise BadSetting(
            f"The {field} of the {whose} is {value!r:.80}; allowed: {_listed(words)}{', or none' if or_none else ''}."
        )


def _listed(words: Collection[str]) -> str:
    return " or ".join(words) if len(words) < 3 else ", ".join(words)
