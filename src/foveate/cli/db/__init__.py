"""`foveate db`: the commands for a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cyclopts import App

from ..options import description, unwrapped
from .catalog import (
    drop_action,
    drop_binding,
    drop_prompt,
    list_actions,
    list_bindings,
    list_prompts,
    set_action,
    set_binding,
    set_prompt,
    show_prompt,
)
from .erase import age, erase
from .maintenance import current, index, list_conversations, shards, tenants, upgrade, vacuum
from .runs import list_runs, show_run
from .transfer import backup, export, import_, unfinished
from .verify import head, verify

__all__ = ["db"]


def _group(name: str, help: str, commands: Mapping[str, Callable[..., int]]) -> App:
    group = App(name=name, help=help)
    for word, command in commands.items():
        group.command(unwrapped(command), name=word, help=description(command))
    return group


db = App(name="db", help="Show, change, check and move the content of a database.")
db.command(
    _group(
        "action",
        "List, set and drop actions of agents.",
        {"list": list_actions, "set": set_action, "drop": drop_action},
    )
)
db.command(
    _group(
        "binding",
        "Bind actions to agents, and decide how their results expire.",
        {"list": list_bindings, "set": set_binding, "drop": drop_binding},
    )
)
db.command(
    _group(
        "prompt",
        "List, show, set and drop prompts for summaries.",
        {"list": list_prompts, "show": show_prompt, "set": set_prompt, "drop": drop_prompt},
    )
)
db.command(_group("run", "Show the runs of agents, step by step.", {"list": list_runs, "show": show_run}))
_COMMANDS: dict[str, Callable[..., int]] = {
    "list": list_conversations,
    "tenants": tenants,
    "export": export,
    "import": import_,
    "unfinished": unfinished,
    "backup": backup,
    "head": head,
    "verify": verify,
    "erase": erase,
    "age": age,
    "vacuum": vacuum,
    "current": current,
    "upgrade": upgrade,
    "index": index,
    "shards": shards,
}
for word, command in _COMMANDS.items():
    db.command(unwrapped(command), name=word, help=description(command))
