"""The command `foveate`, as far as the base install can take it: it hands over to `foveate.cli`, or says what is
missing.

It knows nothing of the commands themselves.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from foveate.errors import MissingExtra

__all__ = ["main"]

PACKAGES = ("cyclopts", "rich", "jinja2")
"""What the extra `cli` brings, and the command line cannot do without."""


def main() -> int:
    """Run the command line on `sys.argv`. Returns the exit code: 2 where the extra `cli` is not installed, 130
    where it was stopped by the keyboard.
    """
    if any(find_spec(package) is None for package in PACKAGES):
        print(MissingExtra("The command line", "cli"), file=sys.stderr)
        return 2
    try:
        from foveate.cli.app import main as run

        return run()
    except KeyboardInterrupt:  # While all of that is imported, which takes its time where much else runs.
        print("Stopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
