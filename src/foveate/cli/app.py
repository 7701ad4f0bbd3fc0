"""The command `foveate`: its commands, error messages and exit codes.

Exit codes: 0 success; 1 the command found a problem, such as an illegal view; 2 wrong input, nothing was written; 130
stopped by Ctrl-C; 141 the reader of standard output is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnknownOptionError, UnusedCliTokensError

from ..errors import FoveateError
from .chat import chat
from .check import check
from .db import db
from .digest import digest
from .doctor import doctor
from .files import STDOUT
from .inspect import inspect
from .mcp import mcp
from .options import description, unwrapped
from .policy import list_
from .policy import show as show_policy
from .proxy import proxy
from .recordings import STDIN
from .repair import repair
from .replay import replay
from .show import show
from .text import complain
from .tune import tune
from .worker import worker

__all__ = ["app", "main"]


def _version() -> str:
    from .. import __version__

    return f"foveate {__version__}"


app = App(
    name="foveate",
    help="Keep an agent's conversation inside its model's window. The history stays complete in a store; the model "
    "sees a shorter view of it.\n\n"
    "See it work: foveate chat --model demo, and type tour.\n"
    "On a session of your own: foveate replay --last, or foveate inspect",
    version=_version,
    help_format="plaintext",
    default_parameter=Parameter(negative=(), show_default=False),
    suppress_keyboard_interrupt=False,
)
for command in (chat, replay, tune, show, inspect, check, digest, doctor, repair, mcp, proxy):
    app.command(unwrapped(command), help=description(command))
policies = App(name="policy", help="List the presets, and show the effective settings.")
policies.command(unwrapped(show_policy), name="show", help=description(show_policy))
policies.command(unwrapped(list_), name="list", help=description(list_))
app.command(policies)
app.command(db)
app.command(worker)
app.register_install_completion_command(
    add_to_startup=False, help="Install completion of commands and options with the Tab key, for this shell."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. `argv`: arguments without the program's name (default: `sys.argv`). Returns the exit code."""
    _open_streams()
    try:
        words = sys.argv[1:] if argv is None else list(argv)
        if words[:1] == ["replay"]:
            words = [STDIN if word == "-" else word for word in words]
        if words[:1] == ["repair"]:
            outputs = {index + 1 for index, word in enumerate(words) if word in ("-o", "--output")}
            words = [STDOUT if word == "-" and index in outputs else word for index, word in enumerate(words)]
        code = app(words, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        return _refuse(_usage(error))
    except BrokenPipeError:
        _discard_stdout()
        return 141  # The exit code of a program that SIGPIPE ends.
    except FoveateError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}.")
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130


def _usage(error: CycloptsError) -> str:
    """Say what is wrong with the arguments, and which help to read."""
    command = " ".join(("foveate", *(error.command_chain or ())))
    text = str(error)
    match error:
        case UnknownOptionError() if error.token.value == "-":
            text = f"{command} does not read standard input. Name a file."
        case UnusedCliTokensError():
            text = f"{command} takes no further argument {' '.join(error.unused_tokens or ())!r}."
        case MissingArgumentError() if error.argument is not None:
            name = error.keyword or error.argument.name
            text = f"{name} needs a value." if error.keyword else f"{command} needs {name}."
    return f"{text}\nSee: {command} --help"


def _open_streams() -> None:
    """Replace streams that were closed at the start (`foveate ... >&-`), for which Python has None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the end.


def _refuse(message: str) -> int:
    complain(f"foveate: {message}")
    return 2


def _discard_stdout() -> None:
    """Send the rest of standard output nowhere, so that Python's last flush does not raise."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
