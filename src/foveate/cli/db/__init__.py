"""`foveate db`: what a database holds beside what was said. Each group of commands is a file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cyclopts import App

from .._help import description
from . import action, binding, prompt, run
from .age import age
from .backup import backup
from .erase import erase
from .export import export
from .head import head
from .importing import import_
from .shards import shards
from .tenants import tenants
from .unfinished import unfinished
from .upgrade import current, upgrade
from .vacuum import vacuum
from .verify import verify

__all__ = ["db"]


def _group(name: str, help: str, commands: Mapping[str, Callable[..., int]]) -> App:
    group = App(name=name, help=help)
    for word, command in commands.items():
        group.command(command, name=word, help=description(command))
    return group


db = App(name="db", help="A database: what agents have in it, and what keeps it whole.")
db.command(
    _group(
        "action",
        "Something that agents can have done.",
        {"list": action.list_, "set": action.set_, "drop": action.drop},
    )
)
db.command(
    _group(
        "binding",
        "Which agent has which action, and what becomes of the action's results.",
        {"list": binding.list_, "set": binding.set_, "drop": binding.drop},
    )
)
db.command(
    _group(
        "prompt",
        "Prompts for summaries, by name.",
        {"list": prompt.list_, "show": prompt.show, "set": prompt.set_, "drop": prompt.drop},
    )
)
db.command(_group("run", "What agents did, step by step.", {"list": run.list_, "show": run.show}))
_COMMANDS: dict[str, Callable[..., int]] = {
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
    "shards": shards,
}
for word, command in _COMMANDS.items():
    db.command(command, name=word, help=description(command))
