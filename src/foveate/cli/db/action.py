"""`foveate db action`: something that agents can have done."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from ...core.catalog import Action
from ...errors import BadSetting
from ._text import text_from
from ._where import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["drop", "list_", "set_"]


def list_(*, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the actions.

    Example: `foveate db action list --store sqlite:///chat.db`
    """
    from .._print import print_table, say

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


def set_(
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
    _print(new, as_json)
    return 0


def drop(name: str, /, *, where: Where = NOWHERE) -> int:
    """Forget an action that no agent has any more.

    Example: `foveate db action drop search`

    Parameters
    ----------
    name
        The action's name.
    """
    from .._print import say

    with opened(where) as (store, tenant):
        if not store.drop_action(tenant, name):
            raise BadSetting(f"There is no action {name!r}.")
    say(f"{name} is dropped.")
    return 0


def _print(action: Action, as_json: bool) -> None:
    from .._print import heading, say

    if as_json:
        print_json([action])
        return
    heading(action.name, action.description)
    say(f"Parameters: {action.parameters or 'none are said'}")
    say(f"Its results are summed up with {action.default_compact_prompt or 'the usual prompt'}.")
