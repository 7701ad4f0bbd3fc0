"""What a catalog refuses, by what is in it: a name that leads nowhere, or one that is still needed.

The same for every store. Looks at plain values; where they lie it does not know. What a value by itself may be is said
in `core/catalog.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.catalog import Action, Binding, Prompt, prompt_key
from ..errors import BadSetting

__all__ = ["check_action_free", "check_known", "check_new", "check_prompt_free"]


def check_known(value: Action | Binding, actions: Iterable[Action], prompts: Iterable[Prompt]) -> None:
    """Raises BadSetting where this names an action or a prompt that there is not."""
    if isinstance(value, Binding):
        whose, named = f"binding {value.id!r}", value.compact_prompt
        if value.action not in (names := [action.name for action in actions]):
            raise BadSetting(f"The {whose} is of an action that there is not. {_there_are('action', names)}")
    else:
        whose, named = f"action {value.name!r}", value.default_compact_prompt
    if named and named not in (names := [prompt.name for prompt in prompts]):
        raise BadSetting(
            f"The {whose} names the prompt {named!r}, which there is not. {_there_are('prompt', names)} One that names "
            f"none has the usual prompt."
        )


def check_new(prompt: Prompt, prompts: Iterable[Prompt]) -> None:
    """Raises BadSetting where a prompt of another name would be looked up by the same."""
    for other in prompts:
        if other.name != prompt.name and prompt_key(other.name) == prompt_key(prompt.name):
            raise BadSetting(
                f"There is a prompt {other.name!r} already, and {prompt.name!r} means the same. Change that one, or "
                f"choose another name."
            )


def check_action_free(name: str, bindings: Iterable[Binding]) -> None:
    """Raises BadSetting where an agent has this action."""
    agents = [binding.agent for binding in bindings if binding.action == name]
    if agents:
        raise BadSetting(f"The action {name!r} is still bound to {_listed(agents)}. Drop the bindings first.")


def check_prompt_free(name: str, actions: Iterable[Action], bindings: Iterable[Binding]) -> None:
    """Raises BadSetting where an action or a binding names this prompt."""
    users = [f"the action {action.name!r}" for action in actions if action.default_compact_prompt == name]
    users += [f"the binding {binding.id!r}" for binding in bindings if binding.compact_prompt == name]
    if users:
        raise BadSetting(f"The prompt {name!r} is still named by {_listed(users)}. Let them name another one first.")


def _there_are(what: str, names: list[str]) -> str:
    return f"Known: {_listed(names)}." if names else f"There is no {what} yet; set it first."


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown
