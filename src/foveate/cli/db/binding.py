"""`foveate db binding`: which agent has which action, and what becomes of the action's results."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from ...core.catalog import Binding, CompactMode, ExpirationMode, checked, completed
from ...errors import BadSetting
from ._where import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["drop", "list_", "set_"]


def list_(*, agent: str = "", as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List which agent has which action, and what becomes of the results.

    Example: `foveate db binding list --agent support`

    Parameters
    ----------
    agent
        Only this one's.
    """
    from .._print import print_table, say

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


def set_(
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
    _print(new, as_json)
    return 0


def drop(agent: str, action: str, /, *, where: Where = NOWHERE) -> int:
    """Take an action from an agent.

    Example: `foveate db binding drop support search`

    Parameters
    ----------
    agent
        The agent's name.
    action
        The action's name.
    """
    from .._print import say

    with opened(where) as (store, tenant):
        if not store.drop_binding(tenant, agent, action):
            raise BadSetting(f"{agent} does not have the action {action!r}.")
    say(f"{agent}/{action} is dropped.")
    return 0


def _changed(old: Binding, said: dict[str, Any]) -> Binding:
    """The binding with what was said, completed. Raises BadSetting where something said has no meaning in its mode."""
    new = completed(replace(old, **said))
    lost = {field: value for field, value in said.items() if value not in (None, "") and getattr(new, field) != value}
    if lost:
        checked(replace(Binding(old.agent, old.action, None, new.result_expiration_mode), **lost))
    return checked(new)


def _number(option: str, text: str, nothing: str) -> int | None:
    if text == nothing:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"{option} takes a whole number or {nothing!r}, not {text!r}.") from None


def _print(binding: Binding, as_json: bool) -> None:
    from .._print import say

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
