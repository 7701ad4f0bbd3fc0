"""`foveate db action`, `binding` and `prompt`: the catalog of a tenant's agents."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from ...core.catalog import (
    SYSTEM_PROMPT,
    Action,
    Binding,
    Prompt,
    complete_binding,
    prompt_key,
    validated,
)
from ...core.plurals import plural
from ...core.stamps import CompactMode, ExpirationMode
from ...errors import BadSetting
from ...ports import Database
from ..files import read_text
from .target import NOWHERE, AsJson, Where, opened, print_json

__all__ = [
    "drop_action",
    "drop_binding",
    "drop_prompt",
    "list_actions",
    "list_bindings",
    "list_prompts",
    "set_action",
    "set_binding",
    "set_prompt",
    "show_prompt",
]


def list_actions(*, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the actions.

    Example: `foveate db action list --store chat.db`
    """
    from ..output import print_table, say

    with opened(where, reads=True) as (store, tenant):
        actions, bindings = store.actions(tenant), store.bindings(tenant)
    if as_json:
        print_json(actions)
    elif actions:
        agents = {action.name: [bound.agent for bound in bindings if bound.action == action.name] for action in actions}
        rows = [
            (
                action.name,
                ", ".join(agents[action.name]) or "-",
                action.default_compact_prompt or "-",
                action.description or "-",
            )
            for action in actions
        ]
        print_table(("action", "agents", "prompt", "description"), rows, left=4)
    else:
        say("There are no actions.")
    return 0


def set_action(
    name: str,
    /,
    *,
    description: str | None = None,
    parameters: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    default_compact_prompt: Annotated[str | None, Parameter(name="--prompt")] = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Create an action, or change the fields that the options name.

    Example: `foveate db action set search --description "Searches the shop."`

    Parameters
    ----------
    name
        The name that models use.
    description
        The description that models read.
    parameters
        A file with the JSON Schema of the parameters; - for standard input, "" for none.
    default_compact_prompt
        The prompt for summaries of its results if the binding names none; "" for the default.
    """
    fields: dict[str, str] = {}
    if description is not None:
        fields["description"] = description
    if parameters is not None:
        fields["parameters"] = read_text(parameters).strip() if parameters else ""
    if default_compact_prompt is not None:
        fields["default_compact_prompt"] = default_compact_prompt
    with opened(where, create=True) as (store, tenant):
        old = next((action for action in store.actions(tenant) if action.name == name), Action(name))
        new = replace(old, **fields)
        store.put_action(tenant, new)
    _print_action(new, as_json)
    return 0


def drop_action(name: str, /, *, where: Where = NOWHERE) -> int:
    """Delete an action that no agent has.

    Example: `foveate db action drop search`

    Parameters
    ----------
    name
        The action's name.
    """
    from ..output import say

    with opened(where) as (store, tenant):
        if not store.drop_action(tenant, name):
            raise BadSetting(f"There is no action {name!r}.")
    say(f"{name} is deleted.")
    return 0


def _print_action(action: Action, as_json: bool) -> None:
    from ..output import heading, say

    if as_json:
        print_json([action])
        return
    heading(action.name, action.description)
    say(f"Parameters: {action.parameters or 'none'}")
    say(f"Prompt for summaries of its results: {action.default_compact_prompt or 'the default'}")


def list_bindings(*, agent: str = "", as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the actions of each agent, and how their results expire.

    Example: `foveate db binding list --agent support`

    Parameters
    ----------
    agent
        Only the actions of this agent.
    """
    from ..output import print_table, say

    with opened(where, reads=True) as (store, tenant):
        bindings = store.bindings(tenant, agent)
    if as_json:
        print_json(bindings)
    elif bindings:
        rows = [(bound.agent, bound.action, *_cells(bound), _expiry(bound)) for bound in bindings]
        print_table(("agent", "action", "turns", "mode", "results"), rows, left=5)
    else:
        say("No agent has an action." if not agent else f"{agent} has no action.")
    return 0


def set_binding(
    agent: str,
    action: str,
    /,
    *,
    turns: str | None = None,
    mode: ExpirationMode | None = None,
    compact_mode: CompactMode | None = None,
    compact_length: str | None = None,
    compact_prompt: Annotated[str | None, Parameter(name="--prompt")] = None,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> int:
    """Give an action to an agent, or change the fields of the binding that the options name.

    The command adds defaults that the mode needs (compact: the first 500 characters), and drops the fields of other
    modes.

    Example: `foveate db binding set support search --turns 3 --mode compact --compact-length 300`

    Parameters
    ----------
    agent
        The agent's name.
    action
        The action's name; see foveate db action list.
    turns
        Number of model calls that see a result before it expires: 0 or more, or never.
    mode
        What happens then: none, remove or compact.
    compact_mode
        How results are shortened: first_chars or summary.
    compact_length
        Characters of the short form or of the summary; none for the default.
    compact_prompt
        The prompt of the summary; "" for the one of the action, or the default.
    """
    fields: dict[str, Any] = {}
    if turns is not None:
        fields["result_expiration_turns"] = _number("--turns", turns, "never")
    if mode is not None:
        fields["result_expiration_mode"] = mode
    if compact_mode is not None:
        fields["compact_mode"] = compact_mode
    if compact_length is not None:
        fields["compact_length"] = _number("--compact-length", compact_length, "none")
    if compact_prompt is not None:
        fields["compact_prompt"] = compact_prompt
    with opened(where) as (store, tenant):
        bindings = store.bindings(tenant, agent)
        old = next((bound for bound in bindings if bound.action == action), Binding(agent, action))
        new = _changed(old, fields)
        store.put_binding(tenant, new)
    _print_binding(new, as_json)
    return 0


def drop_binding(agent: str, action: str, /, *, where: Where = NOWHERE) -> int:
    """Take an action from an agent.

    Example: `foveate db binding drop support search`

    Parameters
    ----------
    agent
        The agent's name.
    action
        The action's name.
    """
    from ..output import say

    with opened(where) as (store, tenant):
        if not store.drop_binding(tenant, agent, action):
            raise BadSetting(f"{agent} does not have the action {action!r}.")
    say(f"{agent}/{action} is deleted.")
    return 0


def _changed(old: Binding, fields: dict[str, Any]) -> Binding:
    """Return the binding with these fields, completed. Raises BadSetting for a field that its mode does not use."""
    new = complete_binding(replace(old, **fields))
    lost = {field: value for field, value in fields.items() if value not in (None, "") and getattr(new, field) != value}
    if lost:
        validated(replace(Binding(old.agent, old.action, None, new.result_expiration_mode), **lost))
    return validated(new)


def _number(option: str, text: str, nothing: str) -> int | None:
    if text == nothing:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"{option} must be a whole number or {nothing!r}, not {text!r}.") from None


def _print_binding(binding: Binding, as_json: bool) -> None:
    from ..output import say

    if as_json:
        print_json([binding])
    else:
        say(f"{binding.id}: results {_expiry(binding)}.")


def _cells(binding: Binding) -> tuple[str, str]:
    turns = binding.result_expiration_turns
    return "-" if turns is None else str(turns), binding.result_expiration_mode


def _expiry(binding: Binding) -> str:
    """Return how results expire, as the end of a sentence that begins with "results"."""
    turns, mode = binding.result_expiration_turns, binding.result_expiration_mode
    if mode == "none":
        return "stay" if turns is None else "stay, because the mode is none"
    if turns is None:
        return f"stay, because --turns does not say when to {mode} them"
    when = "before any call sees them" if not turns else f"after {plural(turns, 'call')}"
    if mode == "remove":
        return f"are removed {when}"
    if binding.compact_mode == "first_chars":
        return f"are cut to {binding.compact_length:,} characters {when}"
    length = f" of about {binding.compact_length:,} characters" if binding.compact_length else ""
    prompt = f' by the prompt "{binding.compact_prompt}"' if binding.compact_prompt else ""
    return f"become a summary{length}{prompt} {when}"


def list_prompts(*, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the prompts. "Compact Agent Message" is the default prompt.

    Example: `foveate db prompt list --store chat.db`
    """
    from ..output import print_table, say

    with opened(where, reads=True) as (store, tenant):
        prompts = store.prompts(tenant)
    if as_json:
        print_json(prompts)
    elif prompts:
        rows = [
            (
                prompt.name,
                "by default" if prompt_key(prompt.name) == prompt_key(SYSTEM_PROMPT) else "if named",
                f"{len(prompt.text):,}",
                prompt.description or "-",
            )
            for prompt in prompts
        ]
        print_table(("prompt", "used", "characters", "description"), rows, left=2)
    else:
        say("There are no prompts. foveate uses its own.")
    return 0


def show_prompt(name: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """Print the text of a prompt, and nothing else.

    Example: `foveate db prompt show "Compact Agent Message" > prompt.md`

    Parameters
    ----------
    name
        The prompt's name.
    """
    with opened(where, reads=True) as (store, tenant):
        prompt = _prompt_of(store, tenant, name)
    if as_json:
        print_json([prompt])
    else:
        from ..output import encodable

        sys.stdout.write(encodable(prompt.text if prompt.text.endswith("\n") else prompt.text + "\n"))
    return 0


def set_prompt(
    name: str,
    file: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    description: str | None = None,
    models: str | None = None,
    where: Where = NOWHERE,
) -> int:
    """Create a prompt, or change its text, description or models.

    The text must contain {{ text }}, the place of the text to summarize, and may contain {{ target }}, the wanted
    number of characters.

    Example: `foveate db prompt set "Compact Agent Message" prompt.md`

    Parameters
    ----------
    name
        The prompt's name. "Compact Agent Message" is the default prompt.
    file
        A file with the text; - for standard input.
    description
        The purpose of the prompt.
    models
        The models that write with it, in the order in which they are asked, such as
        openai:gpt-4.1-mini,anthropic:claude-haiku-4-5; "" for those of the summarizer.
    """
    from ..output import heading, say

    if file is None and description is None and models is None:
        raise BadSetting("Name the file with the text, or - for standard input.")
    fields = {} if file is None else {"text": read_text(file)}
    fields |= {} if description is None else {"description": description}
    fields |= {} if models is None else {"models": models}
    with opened(where, create=file is not None) as (store, tenant):
        prompts = {prompt.name: prompt for prompt in store.prompts(tenant)}
        if file is None and name not in prompts:
            raise _no_prompt(name)
        new = replace(prompts.get(name, Prompt(name, "")), **fields)
        store.put_prompt(tenant, new)
    heading(new.name, new.description)
    say(f"{len(new.text):,} characters.")
    return 0


def drop_prompt(name: str, /, *, where: Where = NOWHERE) -> int:
    """Delete a prompt that no action and no binding names.

    Example: `foveate db prompt drop Short`

    Parameters
    ----------
    name
        The prompt's name.
    """
    from ..output import say

    with opened(where) as (store, tenant):
        if not store.drop_prompt(tenant, name):
            raise _no_prompt(name)
    say(f"{name} is deleted.")
    return 0


def _prompt_of(store: Database, tenant: str, name: str) -> Prompt:
    for prompt in store.prompts(tenant):
        if prompt.name == name:
            return prompt
    raise _no_prompt(name)


def _no_prompt(name: str) -> BadSetting:
    return BadSetting(f"There is no prompt {name!r}.")
