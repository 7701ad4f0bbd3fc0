"""The command `foveate` of the base install: runs `foveate.cli`, or names the missing extra."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import foveate
from foveate.errors import MissingExtra

__all__ = ["main"]

PACKAGES = ("cyclopts", "rich", "jinja2")
"""Packages of the extra `cli`, which the command line needs."""


def main() -> int:
    """Run the command line on `sys.argv`. Returns the exit code: 2 without the extra `cli`, 130 after Ctrl-C."""
    if sys.argv[1:] == ["--version"]:  # Without the extra, too.
        print(f"foveate {foveate.__version__}")
        return 0
    if any(find_spec(package) is None for package in PACKAGES):
        print(MissingExtra("The command line", "cli"), file=sys.stderr)
        return 2
    try:
        from foveate.cli.app import main as run

        return run()
    except KeyboardInterrupt:  # Ctrl-C during the imports, which take a while on a busy machine.
        print("Stopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
