"""`foveate db action`, `binding` and `prompt`: the catalog of agents."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from ...core.catalog import (
    SYSTEM_PROMPT,
    Action,
    Binding,
    CompactMode,
    ExpirationMode,
    Prompt,
    complete_binding,
    prompt_key,
    validated,
)
from ...errors import BadSetting
from ...ports import Database
from ..files import text_from
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

    Example: `foveate db action list --store sqlite:///chat.db`
    """
    from ..output import print_table, say

    with opened(where) as (store, tenant):
        actions, bindings = store.actions(tenant), store.bindings(tenant)
    if as_json:
        print_json(actions)
    elif actions:
        agents = {one.name: [bound.agent for bound in bindings if bound.action == one.name] for one in actions}
        rows = [
            (one.name, ", ".join(agents[one.name]) or "-", one.default_compact_prompt or "-", one.description or "-")
            for one in actions
        ]
        print_table(("action", "agents that have it", "prompt", "description"), rows, left=4)
    else:
        say("There is no action.")
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
    """Set up an action, or change what is named here of one that there is.

    Example: `foveate db action set search --description "Searches the shop."`

    Parameters
    ----------
    name
        What models call it by.
    description
        What models are told of it.
    parameters
        A file with the JSON Schema of its parameters; `-` for standard input, "" for none.
    default_compact_prompt
        The prompt that sums up its results where a binding names none; "" for the usual one.
    """
    said: dict[str, str] = {}
    if description is not None:
        said["description"] = description
    if parameters is not None:
        said["parameters"] = text_from(parameters).strip() if parameters else ""
    if default_compact_prompt is not None:
        said["default_compact_prompt"] = default_compact_prompt
    with opened(where, create=True) as (store, tenant):
        old = next((one for one in store.actions(tenant) if one.name == name), Action(name))
        new = replace(old, **said)
        store.put_action(tenant, new)
    _print_action(new, as_json)
    return 0


def drop_action(name: str, /, *, where: Where = NOWHERE) -> int:
    """Forget an action that no agent has any more.

    Example: `foveate db action drop_action search`

    Parameters
    ----------
    name
        The action's name.
    """
    from ..output import say

    with opened(where) as (store, tenant):
        if not store.drop_action(tenant, name):
            raise BadSetting(f"There is no action {name!r}.")
    say(f"{name} is dropped.")
    return 0


def _print_action(action: Action, as_json: bool) -> None:
    from ..output import heading, say

    if as_json:
        print_json([action])
        return
    heading(action.name, action.description)
    say(f"Parameters: {action.parameters or 'none are said'}")
    say(f"Its results are summed up with {action.default_compact_prompt or 'the usual prompt'}.")


def list_bindings(*, agent: str = "", as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List which agent has which action, and what becomes of the results.

    Example: `foveate db binding list --agent support`

    Parameters
    ----------
    agent
        Only this one's.
    """
    from ..output import print_table, say

    with opened(where) as (store, tenant):
        bindings = store.bindings(tenant, agent)
    if as_json:
        print_json(bindings)
    elif bindings:
        rows = [(one.agent, one.action, *_cells(one), _becomes(one)) for one in bindings]
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
    """Let an agent have an action, or change what is named here of a binding that there is.

    What the mode still needs is filled in (compact: the first 500 characters), and what another mode needed goes.

    Example: `foveate db binding set support search --turns 3 --mode compact --compact-length 300`

    Parameters
    ----------
    agent
        The agent's name.
    action
        The action's name; see `foveate db action list`.
    turns
        Model calls that see a result before it leaves: 0 or more, or `never`.
    mode
        What becomes of it then: `none`, `remove` or `compact`.
    compact_mode
        `first_chars` or `summary`.
    compact_length
        Characters that are kept, or that the summary is to have; `none` for as many as usual.
    compact_prompt
        The prompt of the summary; "" for the action's own, else the usual one.
    """
    said: dict[str, Any] = {}
    if turns is not None:
        said["result_expiration_turns"] = _number("--turns", turns, "never")
    if mode is not None:
        said["result_expiration_mode"] = mode
    if compact_mode is not None:
        said["compact_mode"] = compact_mode
    if compact_length is not None:
        said["compact_length"] = _number("--compact-length", compact_length, "none")
    if compact_prompt is not None:
        said["compact_prompt"] = compact_prompt
    with opened(where) as (store, tenant):
        known = store.bindings(tenant, agent)
        old = next((one for one in known if one.action == action), Binding(agent, action))
        new = _changed(old, said)
        store.put_binding(tenant, new)
    _print_binding(new, as_json)
    return 0


def drop_binding(agent: str, action: str, /, *, where: Where = NOWHERE) -> int:
    """Take an action from an agent.

    Example: `foveate db binding drop_binding support search`

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
    say(f"{agent}/{action} is dropped.")
    return 0


def _changed(old: Binding, said: dict[str, Any]) -> Binding:
    """The binding with what was said, completed. Raises BadSetting where something said has no meaning in its mode."""
    new = complete_binding(replace(old, **said))
    lost = {field: value for field, value in said.items() if value not in (None, "") and getattr(new, field) != value}
    if lost:
        validated(replace(Binding(old.agent, old.action, None, new.result_expiration_mode), **lost))
    return validated(new)


def _number(option: str, text: str, nothing: str) -> int | None:
    if text == nothing:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"{option} takes a whole number or {nothing!r}, not {text!r}.") from None


def _print_binding(binding: Binding, as_json: bool) -> None:
    from ..output import say

    if as_json:
        print_json([binding])
    else:
        say(f"{binding.id}: results {_becomes(binding)}.")


def _cells(binding: Binding) -> tuple[str, str]:
    turns = binding.result_expiration_turns
    return "-" if turns is None else str(turns), binding.result_expiration_mode


def _becomes(binding: Binding) -> str:
    """What becomes of results, to stand after "results"."""
    turns, mode = binding.result_expiration_turns, binding.result_expiration_mode
    if mode == "none":
        return "stay" if turns is None else "stay, since the mode is none"
    if turns is None:
        return f"stay, since no turns are said after which to {mode} them"
    seen = "before any call has seen them" if not turns else f"after {turns} call{'s' if turns > 1 else ''}"
    if mode == "remove":
        return f"are removed {seen}"
    if binding.compact_mode == "first_chars":
        return f"are cut to {binding.compact_length:,} characters {seen}"
    length = f" of about {binding.compact_length:,} characters" if binding.compact_length else ""
    prompt = f' by the prompt "{binding.compact_prompt}"' if binding.compact_prompt else ""
    return f"become a summary{length}{prompt} {seen}"


def list_prompts(*, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the prompts. The one called "Compact Agent Message" stands for all that name none.

    Example: `foveate db prompt list --store sqlite:///chat.db`
    """
    from ..output import print_table, say

    with opened(where) as (store, tenant):
        prompts = store.prompts(tenant)
    if as_json:
        print_json(prompts)
    elif prompts:
        rows = [
            (
                one.name,
                "where none is named" if prompt_key(one.name) == prompt_key(SYSTEM_PROMPT) else "where it is named",
                f"{len(one.text):,}",
                one.description or "-",
            )
            for one in prompts
        ]
        print_table(("prompt", "used", "characters", "description"), rows, left=2)
    else:
        say("There is no prompt; those that come with foveate are used.")
    return 0


def show_prompt(name: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """Print the text of a prompt, and nothing else.

    Example: `foveate db prompt show_prompt "Compact Agent Message" > prompt.md`

    Parameters
    ----------
    name
        The prompt's name.
    """
    with opened(where) as (store, tenant):
        prompt = _prompt_of(store, tenant, name)
    if as_json:
        print_json([prompt])
    else:
        sys.stdout.write(prompt.text if prompt.text.endswith("\n") else prompt.text + "\n")
    return 0


def set_prompt(
    name: str,
    file: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    description: str | None = None,
    where: Where = NOWHERE,
) -> int:
    """Set up a prompt, or change what is named here of one that there is.

    Its text holds {{ text }}, where what is summed up goes, and may hold {{ target }}, the characters wanted.

    Example: `foveate db prompt set "Compact Agent Message" prompt.md`

    Parameters
    ----------
    name
        The prompt's name. "Compact Agent Message" stands for all that name none.
    file
        A file with the text; `-` for standard input.
    description
        What it is for.
    """
    from ..output import heading, say

    if file is None and description is None:
        raise BadSetting("Name the file with the text, or - for standard input.")
    said = {} if file is None else {"text": text_from(file)}
    said |= {} if description is None else {"description": description}
    with opened(where, create=file is not None) as (store, tenant):
        known = {one.name: one for one in store.prompts(tenant)}
        if file is None and name not in known:
            raise _no_prompt(name)
        new = replace(known.get(name, Prompt(name, "")), **said)
        store.put_prompt(tenant, new)
    heading(new.name, new.description)
    say(f"{len(new.text):,} characters.")
    return 0


def drop_prompt(name: str, /, *, where: Where = NOWHERE) -> int:
    """Forget a prompt that nothing names any more.

    Example: `foveate db prompt drop_prompt Short`

    Parameters
    ----------
    name
        The prompt's name.
    """
    from ..output import say

    with opened(where) as (store, tenant):
        if not store.drop_prompt(tenant, name):
            raise _no_prompt(name)
    say(f"{name} is dropped.")
    return 0


def _prompt_of(store: Database, tenant: str, name: str) -> Prompt:
    for prompt in store.prompts(tenant):
        if prompt.name == name:
            return prompt
    raise _no_prompt(name)


def _no_prompt(name: str) -> BadSetting:
    return BadSetting(f"There is no prompt {name!r}.")
