"""The command `foveate`: which commands there are, and how a run ends.

Exit codes: 0 all is well; 1 what was looked at is not (an illegal view, an illegal transcript); 2 what was given cannot
be used, and nothing was written; 130 stopped by the keyboard. Each command is a file beside this one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from ..errors import FoveateError
from .chat import chat
from .check import check
from .db import db
from .digest import digest
from .options import description
from .policy import list_
from .policy import show as show_policy
from .repair import repair
from .replay import replay
from .show import show
from .text import complain
from .worker import worker

__all__ = ["app", "main"]


def _version() -> str:
    try:
        return f"foveate {version('foveate')}"
    except PackageNotFoundError:
        return "foveate (not installed as a package)"


app = App(
    name="foveate",
    help="Keep an agent's conversation inside its model's window: what matters stays sharp, the rest shrinks, nothing "
    "is lost.\n\nStart with a recording of your own: foveate replay --last",
    version=_version,
    help_format="plaintext",
    default_parameter=Parameter(negative=(), show_default=False),
    suppress_keyboard_interrupt=False,
)
for command in (chat, replay, show, check, digest, repair):
    app.command(command, help=description(command))
policies = App(name="policy", help="Which presets there are, and what the settings that count here come to.")
policies.command(show_policy, name="show", help=description(show_policy))
policies.command(list_, name="list", help=description(list_))
app.command(policies)
app.command(db)
app.command(worker)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name, default `sys.argv`. Returns the exit code."""
    _open_streams()
    try:
        code = app(
            None if argv is None else list(argv), print_error=False, exit_on_error=False, result_action="return_value"
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        return _refuse(f"There is no place for {unused!r} in this command.\nfoveate --help shows how it is used.")
    except CycloptsError as error:
        return _refuse(f"{error}\nfoveate --help shows how it is used.")
    except BrokenPipeError:
        _leave_stdout()
        return 141  # As a program ends that is stopped by SIGPIPE.
    except FoveateError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}.")
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130


def _open_streams() -> None:
    """Python has none of the streams that were closed when it began (`foveate ... >&-`): what is said there goes
    nowhere then, and nothing comes from there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as it runs.


def _refuse(message: str) -> int:
    complain(f"foveate: {message}")
    return 2


def _leave_stdout() -> None:
    """Nobody reads any more: what Python still flushes when it ends goes nowhere, and raises nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
