"""`foveate db prompt`: prompts for summaries, by name."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from ...core.catalog import SYSTEM_PROMPT, Prompt, same_prompt
from ...errors import BadSetting
from ...ports import Database
from ._text import text_from
from ._where import NOWHERE, AsJson, Where, opened, print_json

__all__ = ["drop", "list_", "set_", "show"]


def list_(*, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the prompts. The one called "Compact Agent Message" stands for all that name none.

    Example: `foveate db prompt list --store sqlite:///chat.db`
    """
    from .._print import print_table, say

    with opened(where) as (store, tenant):
        prompts = store.prompts(tenant)
    if as_json:
        print_json(prompts)
    elif prompts:
        rows = [
            (
                one.name,
                "where none is named" if same_prompt(one.name) == same_prompt(SYSTEM_PROMPT) else "where it is named",
                f"{len(one.text):,}",
                one.description or "-",
            )
            for one in prompts
        ]
        print_table(("prompt", "used", "characters", "description"), rows, left=2)
    else:
        say("There is no prompt; those that come with foveate are used.")
    return 0


def show(name: str, /, *, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """Print the text of a prompt, and nothing else.

    Example: `foveate db prompt show "Compact Agent Message" > prompt.md`

    Parameters
    ----------
    name
        The prompt's name.
    """
    with opened(where) as (store, tenant):
        prompt = _of(store, tenant, name)
    if as_json:
        print_json([prompt])
    else:
        sys.stdout.write(prompt.text if prompt.text.endswith("\n") else prompt.text + "\n")
    return 0


def set_(
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
    from .._print import heading, say

    if file is None and description is None:
        raise BadSetting("Name the file with the text, or - for standard input.")
    said = {} if file is None else {"text": text_from(file)}
    said |= {} if description is None else {"description": description}
    with opened(where, create=file is not None) as (store, tenant):
        known = {one.name: one for one in store.prompts(tenant)}
        if file is None and name not in known:
            raise _none(name)
        new = replace(known.get(name, Prompt(name, "")), **said)
        store.put_prompt(tenant, new)
    heading(new.name, new.description)
    say(f"{len(new.text):,} characters.")
    return 0


def drop(name: str, /, *, where: Where = NOWHERE) -> int:
    """Forget a prompt that nothing names any more.

    Example: `foveate db prompt drop Short`

    Parameters
    ----------
    name
        The prompt's name.
    """
    from .._print import say

    with opened(where) as (store, tenant):
        if not store.drop_prompt(tenant, name):
            raise _none(name)
    say(f"{name} is dropped.")
    return 0


def _of(store: Database, tenant: str, name: str) -> Prompt:
    for prompt in store.prompts(tenant):
        if prompt.name == name:
            return prompt
    raise _none(name)


def _none(name: str) -> BadSetting:
    return BadSetting(f"There is no prompt {name!r}.")
